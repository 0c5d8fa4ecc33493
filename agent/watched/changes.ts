// Counts writes in flight: the Lease is released only after they have ended.
import type { AgentEnv } from '../env.ts';

export interface CountedChanges {
  /** Passes everything through. */
  readonly env: AgentEnv;
  /** Writes to the API server and calls to pods that have not ended. */
  readonly underWay: () => number;
}

/** Counts what goes through. */
export function countChanges(env: AgentEnv): CountedChanges {
  let underWay = 0;
  const counted = async <Answer>(ask: () => Promise<Answer>): Promise<Answer> => {
    underWay += 1;
    try {
      return await ask();
    } finally {
      underWay -= 1;
    }
  };
  const { kubernetes, pods } = env;
  return {
    env: {
      ...env,
      kubernetes: {
        request: (request) => (request.method === 'GET' ? kubernetes.request(request) : counted(() => kubernetes.request(request))),
        stream: (request, onLine) => kubernetes.stream(request, onLine),
      },
      pods: { call: (request) => counted(() => pods.call(request)) },
    },
    underWay: () => underWay,
  };
}
