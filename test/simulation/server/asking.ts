// A model server for tests: requests as objects, watches as the events that came, time under control.
import { createScheduler, type Scheduler } from '../../../simulation/scheduler.ts';
import type { Answered, Commit, Json, ModelRequest, ModelResponse } from '../../../simulation/server/request.ts';
import { ModelServer, type ModelServerOptions } from '../../../simulation/server/server.ts';

export interface Reply {
  readonly status: number;
  readonly body: ReplyBody;
  readonly headers: Readonly<Record<string, string>>;
}

/** The fields of answers that tests look at. */
interface ReplyBody extends Json {
  readonly kind?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly details?: Json & { readonly causes?: readonly Json[] };
  readonly metadata: Json & { readonly name: string; readonly uid: string; readonly resourceVersion: string; readonly generation?: number };
  readonly items?: readonly ReplyBody[];
  readonly spec?: Json;
  readonly status?: unknown;
}

interface WatchEvent {
  readonly type: string;
  readonly object: ReplyBody;
}

interface Following {
  readonly events: readonly WatchEvent[];
  /** `TYPE name` of each event. */
  readonly told: () => readonly string[];
  readonly ends: readonly string[];
  readonly close: () => void;
  readonly refusal: Reply | undefined;
}

export interface Asking {
  readonly server: ModelServer;
  readonly scheduler: Scheduler;
  readonly commits: readonly Commit[];
  readonly answers: readonly Answered[];
  readonly ask: (method: ModelRequest['method'], path: string, body?: unknown, options?: AskOptions) => Reply;
  readonly merge: (path: string, patch: unknown) => Reply;
  readonly watch: (path: string, frontEnd?: number) => Following;
  readonly advance: (durationMs: number) => Promise<void>;
}

interface AskOptions {
  readonly contentType?: string;
  readonly accept?: string;
  readonly frontEnd?: number;
}

export const actor = { user: 'jane' };
const startMs: number = Date.UTC(2026, 0, 15, 12);

export const paths = {
  configMaps: '/api/v1/namespaces/one/configmaps',
  pods: '/api/v1/namespaces/one/pods',
  sets: '/apis/apps/v1/namespaces/one/statefulsets',
  budgets: '/apis/policy/v1/namespaces/one/poddisruptionbudgets',
  leases: '/apis/coordination.k8s.io/v1/namespaces/one/leases',
  groups: '/apis/rollout-group.dev/v1alpha1/namespaces/one/rolloutgroups',
  intents: '/apis/rollout-group.dev/v1alpha1/namespaces/one/rolloutintents',
} as const;

export function asking(options: Partial<ModelServerOptions> = {}): Asking {
  const scheduler = createScheduler(1);
  const server = new ModelServer({ scheduler, wallMs: () => startMs + scheduler.nowMs(), seed: 1, ...options });
  const commits: Commit[] = [];
  const answers: Answered[] = [];
  server.observe({ committed: (commit) => commits.push(commit), answered: (answered) => answers.push(answered) });
  const ask: Asking['ask'] = (method, path, body, { contentType, accept, frontEnd = 0 } = {}) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const request = {
      method,
      path,
      actor,
      ...(body !== undefined && { body: text }),
      ...(contentType !== undefined && { contentType }),
      ...(accept !== undefined && { accept }),
    };
    return replyOf(server.handle(request, frontEnd));
  };
  return {
    server,
    scheduler,
    commits,
    answers,
    ask,
    merge: (path, patch) => ask('PATCH', path, patch, { contentType: 'application/merge-patch+json' }),
    watch: (path, frontEnd = 0) => follow(server, path, frontEnd),
    advance: (durationMs) => scheduler.runUntil(scheduler.nowMs() + durationMs),
  };
}

function replyOf({ status, body, headers }: ModelResponse): Reply {
  return { status, headers, body: (body.startsWith('{') ? JSON.parse(body) : { text: body }) as ReplyBody };
}

function follow(server: ModelServer, path: string, frontEnd: number): Following {
  const events: WatchEvent[] = [];
  const ends: string[] = [];
  const sink = {
    line: (text: string) => {
      events.push(JSON.parse(text) as WatchEvent);
    },
    end: (reason: string) => {
      ends.push(reason);
    },
  };
  const opened = server.watch({ method: 'GET', path, actor }, sink, frontEnd);
  const isRefused = 'status' in opened;
  return {
    events,
    ends,
    told: () => events.map(({ type, object }) => `${type} ${object.metadata.name ?? ''}`.trim()),
    close: () => {
      if (!isRefused) opened.close();
    },
    refusal: isRefused ? replyOf(opened) : undefined,
  };
}

/** The parts of a refusal that a client decides by. */
export function refusalOf({ status, body }: Reply): readonly [number, string | undefined, string | undefined] {
  return [status, body.reason, body.message];
}

export function configMap(name: string, data: Json = { key: '1' }, labels?: Json) {
  return { metadata: { name, ...(labels !== undefined && { labels }) }, data };
}

export function pod(name: string, { metadata = {}, spec = {} }: { readonly metadata?: Json; readonly spec?: Json } = {}) {
  return {
    metadata: { name, namespace: 'one', labels: { app: 'x' }, ...metadata },
    spec: { nodeName: 'node-1', containers: [{ name: 'app', image: 'app:1' }], ...spec },
  };
}

export function statefulSet(name: string, spec: Json = {}) {
  return {
    metadata: { name, namespace: 'one' },
    spec: {
      serviceName: name,
      replicas: 2,
      selector: { matchLabels: { app: 'x' } },
      template: { metadata: { labels: { app: 'x' } }, spec: { containers: [{ name: 'app', image: 'app:1' }] } },
      ...spec,
    },
  };
}
