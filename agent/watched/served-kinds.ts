// Finds kinds that the server does not serve. It asks only after a 403, because the server checks permissions before existence.
import { type Discovery, discover } from '../../cluster/request/discovery.ts';
import type { Resource } from '../../cluster/request/resource.ts';
import { messageOf } from '../../policies/error-message.ts';
import type { AgentEnv } from '../env.ts';

interface ServedKinds {
  /** Asks the server, at most once a minute. */
  readonly learn: () => void;
  /** Reports whether the kind is known not to be served. */
  readonly isMissing: (resource: Resource) => boolean;
}

const timeoutMs = 30_000;
const askAgainAfterMs = 60_000;

/** `onLearned` is called when the answer is there. */
export function servedKinds(env: AgentEnv, onLearned: () => void): ServedKinds {
  let known: Discovery | undefined;
  let askedMs = Number.NEGATIVE_INFINITY;
  const ask = async (): Promise<void> => {
    try {
      known = await discover(env, { timeoutMs });
      onLearned();
    } catch (error) {
      env.log.warn('API discovery failed', { problem: messageOf(error) });
    }
  };
  return {
    learn: () => {
      if (env.clock.monotonicMs() - askedMs < askAgainAfterMs) return;
      askedMs = env.clock.monotonicMs();
      void ask();
    },
    isMissing: (resource) => known?.knows(resource) === true && !known.has(resource),
  };
}
