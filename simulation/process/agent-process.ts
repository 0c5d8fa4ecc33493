// Starts the real agent in a simulated process: with its writers as in the executable, on simulated ports, and
// with the endpoints of its webhooks, without their HTTPS server.
import { Agent } from '../../agent/agent.ts';
import type { AgentConfig } from '../../agent/config.ts';
import type { AgentEnv, Log, PolicyDirectory } from '../../agent/env.ts';
import { turnLog } from '../../agent/process/turn-log.ts';
import { createWriters, handOver } from '../../agent/published/writers.ts';
import type { TurnListener } from '../../agent/report.ts';
import { sleep } from '../../cluster/env.ts';
import { agentName } from '../../policies/objects/agent-deployment.ts';
import { evictionCache } from '../../webhook/compat/eviction/eviction-cache.ts';
import { podEviction } from '../../webhook/compat/eviction/pod-eviction.ts';
import { noDownscale } from '../../webhook/compat/no-downscale.ts';
import { prepareDownscale } from '../../webhook/compat/prepare/downscale.ts';
import { startZoneBudgets, zpdbValidation } from '../../webhook/compat/zpdb.ts';
import { enforceEndpoint } from '../../webhook/native/enforce.ts';
import { stampEndpoint } from '../../webhook/native/stamp-endpoint.ts';
import { validateEndpoint } from '../../webhook/native/validate-endpoint.ts';
import { decide } from '../../webhook/review/decide.ts';
import type { Answer, Endpoint, Review } from '../../webhook/review/review.ts';
import { streamOf } from '../random.ts';
import type { AgentsOptions } from './agents.ts';
import type { Life } from './life.ts';
import { createPods, gateHttp } from './pods.ts';
import { Transport, type TransportOptions } from './transport.ts';

/** The user name of the agents at the API server. */
export const agentUser = 'system:serviceaccount:rollout-group:rollout-group-agent';
/** The user name of the webhooks. It differs from that of the agents, so that judges can tell their writes apart. */
const webhookUser = 'system:serviceaccount:rollout-group:rollout-group-webhook';
export const agentNamespace = 'rollout-group';
export const leaseName = 'rollout-group-agent';

interface AgentProcessOptions extends AgentsOptions, Pick<TransportOptions, 'frozenFrontEnd' | 'showVersion' | 'isPastShown'> {
  readonly life: Life;
  /** Called when a listener of the agent threw an error. */
  readonly onDefect: (message: string) => void;
}

export interface AgentProcess {
  readonly agent: Agent;
  /** Returns whether the process is ready, so that its webhooks receive reviews. */
  readonly isServing: () => boolean;
  /** Answers the review as the webhook server does. Never settles if the process ends first. */
  readonly review: (path: string, review: Review) => Promise<Answer>;
  /** Shuts the agent down as after SIGTERM. Resolves with `late` after 25 s. Never resolves if the process crashes first. */
  readonly handOver: () => Promise<'ended' | 'late'>;
}

/** The time limit of a shutdown, as in the executable (agent/process/start.ts). */
const handOverMs = 25_000;

export function startAgentProcess(options: AgentProcessOptions): AgentProcess {
  const { life, namespaces, policyDirectory, listenerOf, gateServer } = options;
  const { clock, timers } = life.time;
  const transport = { ...options, user: agentUser };
  const log = logOf(options);
  const rest = {
    clock,
    timers,
    log,
    pods: createPods(options),
    ...(gateServer === undefined ? {} : { gates: gateHttp({ life, server: gateServer }) }),
    ...(policyDirectory === undefined ? {} : { policyDirectory: directoryOf(life, policyDirectory) }),
  };
  const env: AgentEnv = { ...rest, kubernetes: new Transport(transport, 'acting'), random: streamOf(life.seed, `${life.name} random`) };
  const writersEnv: AgentEnv = {
    ...rest,
    kubernetes: new Transport(transport, 'writing'),
    random: streamOf(life.seed, `${life.name} random of writers`),
  };
  const admissionEnv: AgentEnv = {
    ...rest,
    pods: createPods({ ...options, isWebhook: true }),
    kubernetes: new Transport({ ...transport, user: webhookUser }, 'admitting'),
    random: streamOf(life.seed, `${life.name} random of webhooks`),
  };
  const config = configOf(life.name, namespaces);
  const writers = createWriters({ env: writersEnv, config, mayWrite: () => agent.mayWrite() });
  const listeners = listenerOf === undefined ? [] : [whileAlive(life, listenerOf(life.name))];
  const agent = new Agent(env, config, [...listeners, turnLog(log), ...writers.listeners], admissionEnv);
  const reviews = new Set<Promise<Answer>>();
  const endpoints = createEndpoints({ env: admissionEnv, agent, config });
  return {
    agent,
    isServing: () => agent.isReady() && endpoints.isReady(),
    review: (path, review) => {
      const answer = endpoints.answer(path, review);
      reviews.add(answer);
      return answer.finally(() => reviews.delete(answer));
    },
    handOver: async () => {
      const timeout = new AbortController();
      const limit = sleep(env, handOverMs, timeout.signal).then(() => 'late' as const);
      // The webhook answers its last reviews before the guard stops.
      const served = Promise.allSettled(reviews);
      endpoints.close();
      const end = await Promise.race([handOver(env, agent, writers, served).then(() => 'ended' as const), limit]);
      timeout.abort();
      return end;
    },
  };
}

/** Returns the directory as the process sees it. A suspended process sees a change later, and a dead process does not see it. */
function directoryOf({ time, onEnd }: Life, directory: PolicyDirectory): PolicyDirectory {
  return {
    ...directory,
    watch: (onChange) => {
      const unwatch = directory.watch(() => time.take(onChange));
      onEnd.add(unwatch);
      return unwatch;
    },
  };
}

function configOf(identity: string, namespaces: readonly string[]): AgentConfig {
  return {
    namespaces,
    agentNamespace,
    identity,
    clusterDomain: 'cluster.local.',
    policySources: ['directory', 'objects', 'adopted'],
    areIntentsStamped: true,
    podTimeoutMs: 5_000,
    kubernetesTimeoutMs: 30_000,
    retryMs: 1_000,
    publishEveryMs: 5_000,
    lease: { mode: 'required', name: leaseName, durationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2_000 },
  };
}

function logOf({ life, log, onDefect }: AgentProcessOptions): Log {
  const at =
    (level: keyof Log): Log['info'] =>
    (message, fields = {}) => {
      if (!life.time.isAlive()) return;
      // An error in a listener only causes this log entry, so the entry is reported as a defect.
      if (message === 'listener failed') onDefect(`${life.name}: ${message}: ${String(fields['problem'])}`);
      log?.(life.name, level, message, fields);
    };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

function whileAlive({ time }: Life, listener: TurnListener): TurnListener {
  return {
    turnEnded: (report) => {
      if (time.isAlive()) listener.turnEnded(report);
    },
    groupsChanged: (groups, findings) => {
      if (time.isAlive()) listener.groupsChanged?.(groups, findings);
    },
    degraded: (degradations) => {
      if (time.isAlive()) listener.degraded?.(degradations);
    },
    leadershipChanged: (state) => {
      if (time.isAlive()) listener.leadershipChanged?.(state);
    },
  };
}

interface EndpointsOptions {
  readonly env: AgentEnv;
  readonly agent: Pick<Agent, 'guard' | 'followed'>;
  readonly config: AgentConfig;
}

/** The deadlines of the native and of the drop-in endpoints (agent/process/serve-webhook.ts, webhook/server/exchange.ts). */
const nativeMs = 4_000;
const dropInMs = 9_000;

interface ReviewEndpoints {
  /** Returns whether reviews can be answered: the policies and budgets are known. */
  readonly isReady: () => boolean;
  /** Answers a review at a path. Never settles if the process ends first. */
  readonly answer: (path: string, review: Review) => Promise<Answer>;
  readonly close: () => void;
}

function createEndpoints({ env, agent: { guard, followed }, config }: EndpointsOptions): ReviewEndpoints {
  const { agentNamespace, namespaces, clusterDomain, podTimeoutMs } = config;
  const own = { namespace: agentNamespace, names: [agentName] };
  const enforce = enforceEndpoint({ env, guard, own, namespaces, isPreparedElsewhere: true });
  const validate = validateEndpoint(env, { agentNamespace, groups: (namespace) => guard.everyGroup(namespace) });
  const native = [enforce, stampEndpoint(env), validate];
  const budgets = startZoneBudgets({ log: env.log, followed: followed.zoneBudgets });
  const cache = evictionCache(env, { guard, isAlone: () => false });
  const dropIn = [
    noDownscale(env),
    prepareDownscale(env, { clusterDomain, podTimeoutMs, native: enforce.preview }),
    podEviction(env, { budgets, cache, native: enforce.preview }),
    zpdbValidation(),
  ];
  const endpoints = new Map<string, readonly [Endpoint, number]>([
    ...native.map((one) => [one.path, [one, nativeMs]] as const),
    ...dropIn.map((one) => [one.path, [one, dropInMs]] as const),
  ]);
  const answer: ReviewEndpoints['answer'] = async (path, review) => {
    const [endpoint, limitMs] = endpoints.get(path) ?? [];
    if (endpoint === undefined || limitMs === undefined) throw new Error(`no endpoint serves ${path}`);
    const deadline = new AbortController();
    const cancel = env.timers.after(limitMs, () => deadline.abort());
    const call = { deadlineMs: env.clock.monotonicMs() + limitMs, signal: deadline.signal };
    const decided = await decide(review, { endpoint, call, isOverloaded: false, log: env.log });
    cancel();
    return decided.answer;
  };
  return { isReady: () => guard.isSettled() && budgets.isSettled(), answer, close: budgets.stop };
}
