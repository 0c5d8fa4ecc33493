// The real clock, timers, chance and process: the only place of this layer that asks the machine for them.
import { randomInt } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import type { Clock, ClusterEnv, KubernetesHttp, Timers } from '../env.ts';
import type { ConnectionProcess } from '../kubeconfig/kubeconfig.ts';

export const processClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
};

/** setTimeout takes a longer delay for 1 ms. */
const longestTimerMs = 2 ** 31 - 1;

/**
 * Timers keep the process alive: who waits for one must not see the process end in the middle of it, and who no longer waits cancels it. The
 * agent needs no timer to stay alive, for its HTTP server does that.
 */
export const processTimers: Timers = {
  after: (delayMs, callback) => {
    const endMs = performance.now() + delayMs;
    let timer: NodeJS.Timeout;
    const arm = (): void => {
      const restMs = endMs - performance.now();
      timer = restMs > longestTimerMs ? setTimeout(arm, longestTimerMs) : setTimeout(callback, Math.max(0, restMs));
    };
    arm();
    return () => clearTimeout(timer);
  },
};

const randomSteps = 2 ** 47;

/** Not predictable, so that what is drawn from it may also name things. */
export const processRandom = (): number => randomInt(randomSteps) / randomSteps;

/** Everything real, around a connection to an API server. */
export function processEnv(kubernetes: KubernetesHttp): ClusterEnv {
  return { clock: processClock, timers: processTimers, random: processRandom, kubernetes };
}

/** This process as `loadConnection` sees it. */
export function connectionProcess(): ConnectionProcess {
  return {
    env: process.env,
    homeDir: homedir(),
    serviceAccountDir: '/var/run/secrets/kubernetes.io/serviceaccount',
    isWindows: process.platform === 'win32',
    isTerminal: process.stdin.isTTY === true,
    pluginStderr: 'inherit',
    readFile: (path) => readFile(path),
    clock: processClock,
  };
}
