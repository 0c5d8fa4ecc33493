// The agent as a whole: caches, policies, leadership and the loop of turns, put together.
import type { AgentConfig } from './config.ts';
import type { AgentEnv } from './env.ts';
import type { TurnListener } from './report.ts';

export interface Agent {
  /** Whether every cache has synced, or is known to be missing or forbidden, and the policies were read once. Never goes back to false. */
  readonly isReady: () => boolean;
  /**
   * Hands over: no new turn and no new request of the acting path, the request under way finishes, the Lease is released, watches end. Resolves
   * when nothing is left running; calling it twice waits for the same end.
   */
  readonly stop: () => Promise<void>;
}

/** Starts the agent; it works until it is stopped. Never throws: what is missing is reported to the listeners, and tried again. */
export function startAgent(_env: AgentEnv, _config: AgentConfig, _listeners: readonly TurnListener[]): Agent {
  throw new Error('the agent is not put together yet');
}
