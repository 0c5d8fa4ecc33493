// Endpoints for evictions before an API server in memory and in virtual time: what a test puts there, asks, and finds afterwards.
import { TransportFailure } from '../../../cluster/request/failure.ts';
import { type Claim, emptySnapshot, type Ledger } from '../../../engine/snapshot.ts';
import type { GroupDefinition } from '../../../policies/definition.ts';
import { projectKinds, type ServedKind } from '../../../simulation/server/kinds.ts';
import { type EvictionCacheOptions, evictionCache } from '../../../webhook/compat/eviction/eviction-cache.ts';
import { type EvictionReason, podEviction } from '../../../webhook/compat/eviction/pod-eviction.ts';
import { startZoneBudgets, type ZoneBudgets } from '../../../webhook/compat/zpdb.ts';
import type { Guard, WebhookEnv } from '../../../webhook/env.ts';
import type { Answer, Endpoint, Review } from '../../../webhook/review/review.ts';
import { followedBudgets } from '../../kit/followed.ts';
import { ModelApi } from '../../kit/model-server.ts';
import { type Serve, seededRandom, type VirtualEnv, virtualEnv } from '../../kit/virtual-env.ts';

type Json = Readonly<Record<string, unknown>>;

const resources: Readonly<Record<string, string>> = {
  Pod: 'pods',
  ConfigMap: 'configmaps',
  StatefulSet: 'statefulsets.apps',
  ZoneAwarePodDisruptionBudget: 'zoneawarepoddisruptionbudgets.rollout-operator.grafana.com',
};

interface EvictionWorldOptions {
  readonly objects: readonly Json[];
  /** As in `ModelApi.forbid`. */
  readonly forbidden?: readonly string[];
  /** `METHOD path` (a part of it) that finds no answer. */
  readonly broken?: readonly string[];
  readonly seed?: number;
  /** The longest time that an answer takes, in milliseconds; 0: none. */
  readonly latencyMs?: number;
  readonly kinds?: readonly ServedKind[];
}

interface Told {
  readonly level: string;
  readonly message: string;
}

export interface EvictionWorld {
  readonly env: VirtualEnv;
  readonly api: ModelApi;
  readonly uidOf: (pod: string) => string | undefined;
  readonly log: readonly Told[];
  /** Whatever changes the server. */
  readonly writes: () => readonly string[];
  readonly put: (...objects: readonly Json[]) => void;
  /** Another process: its own connection, budgets and memory. */
  readonly start: (options?: StartOptions) => Promise<Replica>;
  readonly webhookEnv: () => WebhookEnv;
}

interface StartOptions {
  readonly guard?: Guard;
  readonly isAlone?: EvictionCacheOptions['isAlone'];
  /** False: asked before the budgets are known. */
  readonly waits?: boolean;
}

export interface Replica {
  readonly endpoint: Endpoint;
  readonly budgets: ZoneBudgets;
  readonly ask: (pod: string, overrides?: Partial<Review>) => Promise<Answer>;
  /** Without letting time pass: whoever calls it does. */
  readonly begin: (pod: string, overrides?: Partial<Review>) => Promise<Answer>;
  readonly outcomes: readonly { readonly reason: EvictionReason; readonly code: number }[];
  /** How many were in hand at once, at most, and now. */
  readonly inFlight: () => { readonly now: number; readonly most: number };
}

/** Nine seconds, as the server gives its handlers. */
const handlerMs = 9000;

export function evictionWorld(options: EvictionWorldOptions): EvictionWorld {
  const { objects, forbidden = [], broken = [], seed = 1, latencyMs = 0, kinds = projectKinds } = options;
  const env = virtualEnv({ seed });
  // Tests have pods without their StatefulSet.
  const api = new ModelApi({ env, seed, kinds, user: 'webhook', collectsGarbage: false });
  const random = seededRandom(seed + 1000);
  const pauseOf = (): number => Math.floor(random() * latencyMs);
  const serve: Serve = async (request) => {
    if (broken.some((part) => `${request.method} ${request.path}`.includes(part))) return { lost: 'before-apply' };
    if (latencyMs > 0) await new Promise<void>((resolve) => void env.timers.after(pauseOf(), resolve));
    const served = await api.serve(request);
    return latencyMs > 0 && 'status' in served ? { ...served, delayMs: pauseOf() } : served;
  };
  env.replaceServer(serve);
  const log: Told[] = [];
  const tell = (level: string) => (message: string) => void log.push({ level, message });
  const webhookEnv = (): WebhookEnv => ({
    ...env,
    pods: { call: () => Promise.reject(new Error('no pod is called')) },
    log: { debug: tell('debug'), info: tell('info'), warn: tell('warn'), error: tell('error') },
  });
  const uids = new Map<unknown, string>();
  const put = (...more: readonly Json[]): void => {
    for (const object of more) putObject(api, object, uids);
  };
  put(...objects);
  api.forbid(...forbidden);
  const start = async ({ guard, isAlone = () => false, waits = true }: StartOptions = {}): Promise<Replica> => {
    const own = webhookEnv();
    const budgets = startZoneBudgets({ log: own.log, followed: followedBudgets(own) });
    if (waits) await env.until(() => budgets.isSettled());
    const outcomes: { readonly reason: EvictionReason; readonly code: number }[] = [];
    let now = 0;
    let most = 0;
    const cache = evictionCache(own, { isAlone, ...(guard && { guard }) });
    const observer = {
      onBegin: () => {
        now += 1;
        most = Math.max(most, now);
      },
      onEnd: (outcome: { readonly reason: EvictionReason; readonly code: number }) => {
        now -= 1;
        outcomes.push(outcome);
      },
    };
    const endpoint = podEviction(own, { budgets, cache, observer });
    const begin = (pod: string, overrides: Partial<Review> = {}): Promise<Answer> =>
      endpoint.handle(evictionReview(pod, overrides), {
        deadlineMs: env.clock.monotonicMs() + handlerMs,
        signal: new AbortController().signal,
      });
    return {
      endpoint,
      budgets,
      begin,
      outcomes,
      ask: (pod, overrides) => env.finish(begin(pod, overrides)),
      inFlight: () => ({ now, most }),
    };
  };
  const writes = (): readonly string[] =>
    env.requests.filter(({ method }) => method !== 'GET').map(({ method, path }) => `${method} ${path}`);
  const uidOf = (pod: string): string | undefined => api.get('pods', 'mimir', pod)?.metadata.uid;
  return { env, api, uidOf, log, writes, put, start, webhookEnv };
}

/** The server chooses UIDs and deletion times: owners get the chosen UID, and an object with a deletion time is deleted. */
function putObject(api: ModelApi, object: Json, uids: Map<unknown, string>): void {
  const {
    uid,
    deletionTimestamp,
    ownerReferences = [],
    ...rest
  } = object['metadata'] as Json & { readonly ownerReferences?: readonly Json[] };
  const resource = resources[String(object['kind'])];
  if (resource === undefined) throw new Error(`the world has no ${String(object['kind'])}`);
  const owners = ownerReferences.map((owner) => ({ ...owner, uid: uids.get(owner['uid']) ?? owner['uid'] }));
  const stored = api.put(resource, { ...object, metadata: { ...rest, ownerReferences: owners } });
  uids.set(uid, stored.metadata.uid);
  if (deletionTimestamp !== undefined) api.terminate('mimir', stored.metadata.name);
}

export function evictionReview(pod: string, overrides: Partial<Review> = {}): Review {
  return {
    apiVersion: 'admission.k8s.io/v1',
    uid: 'review-1',
    kind: { group: 'policy', version: 'v1', kind: 'Eviction' },
    resource: { group: '', version: 'v1', resource: 'pods' },
    subresource: 'eviction',
    operation: 'CREATE',
    namespace: 'mimir',
    name: pod,
    user: { name: 'somebody', groups: [] },
    object: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: pod, namespace: 'mimir' } },
    dryRun: false,
    ...overrides,
  };
}

export interface SharedLedger {
  readonly guard: () => Guard;
  readonly ledger: () => Ledger;
  readonly claims: () => readonly Claim[];
  readonly storeCount: () => number;
}

/** Ledgers of groups as a quorum has them, with guards that ask over a network: reads and stores take up to `latencyMs`. */
export function sharedLedger(
  { env }: EvictionWorld,
  groups: readonly GroupDefinition[],
  given: { readonly seed?: number; readonly latencyMs?: number; readonly problem?: string; readonly failStore?: 'refuse' | 'lose' } = {},
): SharedLedger {
  const { seed = 1, latencyMs = 0, problem, failStore } = given;
  const random = seededRandom(seed + 2000);
  const ledgers = new Map<string, Ledger>();
  let storeCount = 0;
  const travel = (): Promise<void> => new Promise((resolve) => void env.timers.after(random() * latencyMs, resolve));
  const ledgerOf = (namespace: string, group: string): Ledger =>
    ledgers.get(group) ?? { namespace, group, claims: [], downscales: [], preparations: [] };
  const guard = (): Guard => ({
    isSettled: () => true,
    snapshot: async (namespace, asked) => {
      await travel();
      const read = asked.map(({ name }) => ledgerOf(namespace, name));
      await travel();
      const unread = problem === undefined ? {} : { unread: [{ kind: 'Ledger' as const, namespace, unknown: problem }] };
      return { ...emptySnapshot(env.clock.nowMs()), groups, ledgers: read, ...unread };
    },
    store: async ({ namespace, name }, base, next) => {
      await travel();
      if (failStore === 'lose') throw new TransportFailure('the connection was reset', { site: 'ledger', mayBeApplied: true });
      const isBase = failStore !== 'refuse' && JSON.stringify(ledgerOf(namespace, name)) === JSON.stringify(base);
      if (isBase) ledgers.set(name, next);
      storeCount += 1;
      await travel();
      return isBase;
    },
    report: () => undefined,
  });
  const [first] = groups;
  const ledger = (): Ledger => ledgerOf(first?.namespace ?? '', first?.name ?? '');
  return { guard, ledger, claims: () => ledger().claims, storeCount: () => storeCount };
}
