// Serves the webhooks of a simulated process: the endpoints of the executable, without their HTTPS server.
import type { Agent } from '../../agent/agent.ts';
import type { AgentConfig } from '../../agent/config.ts';
import type { AgentEnv } from '../../agent/env.ts';
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

/** Creates the endpoints. */
export function createEndpoints({ env, agent: { guard, followed }, config }: EndpointsOptions): ReviewEndpoints {
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
