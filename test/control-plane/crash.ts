// Runs an agent inside the process of the test that dies at a given call: after that it neither sends nor receives.
import type { AgentEnv } from '../../agent/env.ts';

/** The moments at which a process can die: before a request is sent, or after its response has arrived. */
export type Moment = 'before send' | 'after reply';

export interface Call {
  readonly site: string;
  readonly moment: Moment;
}

export interface MortalEnv {
  readonly env: AgentEnv;
  /** Wraps another call of the process. It never returns if the process died. */
  readonly around: <Value>(site: string, send: () => Promise<Value>) => Promise<Value>;
  /** The number of calls at each site. */
  readonly reached: () => ReadonlyMap<string, number>;
  readonly isDead: () => boolean;
  readonly die: () => void;
}

/**
 * Returns the environment of a process that may die. `diesAt` is called at each site and moment. At the first true the process dies: the
 * current call never returns, timers never fire, streams become silent. `onDeath` closes the connections, as the kernel would.
 */
export function mortal(inner: AgentEnv, diesAt: (call: Call) => boolean, onDeath: () => void): MortalEnv {
  const reached = new Map<string, number>();
  let isDead = false;
  const never = <Value>(): Promise<Value> => new Promise(() => undefined);
  const die = (): void => {
    if (isDead) return;
    isDead = true;
    onDeath();
  };
  const live = (site: string, moment: Moment): boolean => {
    if (!isDead && diesAt({ site, moment })) die();
    return !isDead;
  };
  const around = async <Value>(site: string, send: () => Promise<Value>): Promise<Value> => {
    reached.set(site, (reached.get(site) ?? 0) + 1);
    if (!live(site, 'before send')) return never();
    try {
      const answer = await send();
      return live(site, 'after reply') ? answer : await never();
    } catch (error) {
      if (isDead) return never();
      throw error;
    }
  };
  const env: AgentEnv = {
    ...inner,
    timers: {
      after: (delayMs, callback) =>
        inner.timers.after(delayMs, () => {
          if (!isDead) callback();
        }),
    },
    kubernetes: {
      request: (request) => around(request.site, () => inner.kubernetes.request(request)),
      stream: (request, onLine) =>
        around(request.site, async () => {
          const stream = await inner.kubernetes.stream(request, (line) => {
            if (!isDead) onLine(line);
          });
          return { ...stream, ended: stream.ended.then((reason) => (isDead ? never<string>() : reason)) };
        }),
    },
    pods: { call: (request) => around(request.site, () => inner.pods.call(request)) },
  };
  return { env, around, reached: () => reached, isDead: () => isDead, die };
}
