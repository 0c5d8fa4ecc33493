// One whole run with everything that a run may have: waves, a gate, an approval, a record, and two services that are told. What it comes to is one value.
import { setTimeout as delay } from 'node:timers/promises';
import { customResourceDefinition } from '../../policies/schema/json-schema.ts';
import type { InProcessAgent } from '../control-plane/agent-in-process.ts';
import type { KubernetesObject } from '../control-plane/client.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import type { Call } from '../control-plane/crash.ts';
import type { HistoryRecorder } from '../control-plane/history.ts';
import { agentRules, sourceRules } from '../control-plane/roles.ts';
import { type Arena, openArena } from './arena.ts';
import { type LoopbackService, onLoopback } from './notify/loopback.ts';
import { type Answer, type Asked, callbackKey, fakeCallback, fakeSlack, slackChannel, slackToken } from './notify/services.ts';

const apiVersion = 'rollout-group.dev/v1alpha1';
const ours = `/apis/${apiVersion}/namespaces`;
const zones = ['a', 'b'] as const;
const metricsToken = 'canary-metrics';

/** Longer than in other suites, and asked for less often: many leaders share a process. */
const lease = { mode: 'required', name: 'rollout-group-agent', durationMs: 6000, renewDeadlineMs: 5000, retryPeriodMs: 500 } as const;

/** Pods of the group. */
export const podCount = 4;

/** What is left when the run is over. */
interface EndState {
  readonly images: readonly string[];
  readonly phase: string | undefined;
  readonly openClaims: number | undefined;
  /** Outcomes of all records of the group: the older one is beyond its limit. */
  readonly records: readonly (string | undefined)[];
  /** Kinds of the events, each counted once for its id, as a receiver does. */
  readonly called: readonly string[];
  /** Messages of the run itself, and replies that say that it is complete. */
  readonly slack: { readonly runs: number; readonly completions: number };
}

export const wholeEnd: EndState = {
  images: Array.from({ length: podCount }, () => 'example.com/server:2'),
  phase: 'Done',
  openClaims: 0,
  records: ['completed'],
  called: ['started', 'completed'],
  slack: { runs: 1, completions: 1 },
};

interface WholeRun {
  readonly arena: Arena;
  /** The next process, which dies at the first call for which `diesAt` says so. */
  readonly next: (diesAt?: (call: Call) => boolean) => Promise<InProcessAgent>;
  readonly processes: () => readonly InProcessAgent[];
  /** Waits until nothing is left to be done, to be told or to be recorded. Rejects with what there is when that takes longer. */
  readonly untilOver: (timeoutMs: number) => Promise<EndState>;
  readonly close: () => Promise<void>;
}

interface Group extends KubernetesObject {
  readonly status?: {
    readonly phase?: string;
    readonly decision?: {
      readonly run?: { readonly id: string };
      readonly waits?: readonly { readonly rule: string; readonly digest?: string }[];
    };
  };
}

interface Run extends KubernetesObject {
  readonly spec: { readonly outcome?: string };
}

interface ImagePod extends KubernetesObject {
  readonly spec: { readonly containers: readonly { readonly image: string }[] };
}

/** The kinds that the run needs. Once for each control plane. */
export async function createKinds({ client }: Pick<ControlPlane, 'client'>): Promise<void> {
  for (const kind of ['RolloutGroup', 'MetricSource', 'NotificationChannel', 'RolloutRun', 'RolloutIntent'] as const)
    await client.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', customResourceDefinition(kind) ?? {});
}

/** A group that is whole, with a new template that nobody has begun to roll. Whoever may approve does so as soon as they are asked. */
export async function openWholeRun(controlPlane: ControlPlane, recorder: HistoryRecorder, namespace: string): Promise<WholeRun> {
  const { client } = controlPlane;
  const [slack, callback] = [fakeSlack(() => Date.now()), fakeCallback(() => Date.now())];
  const servers: LoopbackService[] = [];
  const urlOf = async (service: Parameters<typeof onLoopback>[0]): Promise<string> => {
    const server = await onLoopback(service);
    servers.push(server);
    return server.url;
  };
  const arena = await openArena(controlPlane, recorder, {
    namespace,
    zones,
    replicas: podCount / zones.length,
    rules: [...agentRules(), ...sourceRules(), secretRule],
  });
  for (const [name, key] of Object.entries({ slack: slackToken, hook: callbackKey, metrics: metricsToken }))
    await client.create(`/api/v1/namespaces/${namespace}/secrets`, { metadata: { name }, stringData: { key } });
  const usableFrom = { namespaces: [namespace] };
  const create = (kind: string, name: string, spec: object): Promise<unknown> =>
    client.create(`${ours}/${namespace}/${kind.toLowerCase()}s`, { apiVersion, kind, metadata: { name }, spec });
  await create('MetricSource', 'prod', {
    prometheus: { url: await urlOf({ answer: goodMetrics }), bearerToken: { name: 'metrics', key: 'key' } },
    usableFrom,
    limits: { minInterval: '1s' },
  });
  await create('NotificationChannel', 'sre', {
    slack: { url: `${await urlOf(slack)}/api`, token: { name: 'slack', key: 'key' }, channel: slackChannel },
    usableFrom,
  });
  await create('NotificationChannel', 'ui', {
    callback: { url: await urlOf(callback), signingKey: { name: 'hook', key: 'key' } },
    usableFrom,
  });
  await create('RolloutRun', 'ingester-older', olderRun);
  await create('RolloutGroup', 'ingester', groupSpec);
  await arena.group.setImage('example.com/server:2');
  const processes: InProcessAgent[] = [];
  const ending = new AbortController();
  const approved = approve(controlPlane, namespace, ending.signal);

  const look = async (): Promise<EndState> => {
    const [groups, records, pods, ledger] = await Promise.all([
      client.list<Group>(`${ours}/${namespace}/rolloutgroups`),
      client.list<Run>(`${ours}/${namespace}/rolloutruns`),
      client.list<ImagePod>(arena.group.podsPath),
      client.ask<{ readonly data?: { readonly ledger?: string } }>(
        'GET',
        `/api/v1/namespaces/${namespace}/configmaps/rollout-group-ingester`,
      ),
    ]);
    const claims = JSON.parse(ledger.body.data?.ledger ?? '{}').claims;
    const called = new Map(callback.taken.map(({ id, body }) => [id, JSON.parse(body).event]));
    const replies = slack.messages.filter(({ thread_ts }) => thread_ts !== undefined);
    return {
      images: pods.map(({ spec }) => spec.containers[0]?.image ?? ''),
      phase: groups[0]?.status?.phase,
      openClaims: Array.isArray(claims) ? claims.length : undefined,
      records: records.map(({ spec }) => spec.outcome),
      called: [...called.values()],
      slack: {
        runs: slack.messages.length - replies.length,
        completions: replies.filter(({ text }) => text.startsWith(':white_check_mark:')).length,
      },
    };
  };

  return {
    arena,
    processes: () => processes,
    next: async (diesAt) => {
      const agent = await arena.startInside({
        name: `agent-${processes.length}`,
        isTelling: true,
        config: { areIntentsStamped: true, lease },
        ...(diesAt === undefined ? {} : { diesAt }),
      });
      processes.push(agent);
      return agent;
    },
    untilOver: async (timeoutMs) => {
      await approved;
      const wanted = JSON.stringify(wholeEnd);
      let seen = await look();
      for (const endsAt = Date.now() + timeoutMs; JSON.stringify(seen) !== wanted && Date.now() < endsAt; seen = await look())
        await delay(1000);
      return seen;
    },
    close: async () => {
      ending.abort();
      await arena.close();
      for (const server of servers) await server.close();
    },
  };
}

const secretRule = { apiGroups: [''], resources: ['secrets'], verbs: ['get'], resourceNames: ['slack', 'hook', 'metrics'] };

const groupSpec = {
  members: { zones: zones.map((name) => ({ name, statefulSet: `ingester-zone-${name}` })) },
  replicas: { leader: true },
  gates: [
    {
      name: 'errors',
      every: '1s',
      failureLimit: 0,
      pass: { '<=': [{ var: 'value' }, 0.5] },
      prometheus: { source: 'prod', query: 'errors' },
    },
  ],
  rollout: {
    strategy: 'onDelete',
    rotateBy: 'delete',
    historyLimit: 1,
    waves: [
      { name: 'first', zones: ['a'], pods: 1, after: { soak: '1s', gates: ['errors'] } },
      { name: 'rest', zones, percent: 100, before: { approval: { count: 1, from: ['oncall'] } } },
    ],
  },
  notify: ['sre', 'ui'].map((channel) => ({ channel, events: ['started', 'failed', 'completed'] })),
};

/** A finished one, which goes when the next is recorded as finished. */
const olderRun = {
  group: 'ingester',
  id: 'older',
  kind: 'rollout',
  outcome: 'completed',
  waited: 0,
  zones: [],
  steps: [],
  waits: [],
  startedAt: '2026-01-01T00:00:00Z',
  endedAt: '2026-01-01T00:10:00Z',
};

/** What Prometheus documents for an instant query of one series. */
function goodMetrics({ headers }: Asked): Answer {
  if (headers['authorization'] !== `Bearer ${metricsToken}`) return { status: 401 };
  const result = [{ metric: {}, value: [Date.now() / 1000, '0'] }];
  return { status: 200, body: { status: 'success', data: { resultType: 'vector', result } } };
}

/** Approves once, as the webhook would have written it down, when the agent has published that it waits for that. */
async function approve({ client }: ControlPlane, namespace: string, signal: AbortSignal): Promise<void> {
  const isAsked = ({ status }: Group): boolean => status?.decision?.waits?.some(({ rule }) => rule === 'approval') ?? false;
  for (; !signal.aborted; await delay(200)) {
    const [group] = await client.list<Group>(`${ours}/${namespace}/rolloutgroups`);
    const decision = group?.status?.decision;
    if (group === undefined || !isAsked(group) || decision?.run === undefined) continue;
    const digest = decision.waits?.find(({ rule }) => rule === 'approval')?.digest;
    const requestedBy = { user: 'anna', groups: ['oncall'], at: new Date().toISOString() };
    await client.create(`${ours}/${namespace}/rolloutintents`, {
      apiVersion,
      kind: 'RolloutIntent',
      metadata: { name: 'approval' },
      spec: {
        group: 'ingester',
        action: 'approve',
        runId: decision.run.id,
        wave: 'rest',
        requestedBy,
        ...(digest === undefined ? {} : { digest }),
      },
    });
    return;
  }
}
