// Provides the real clock, timers, randomness and process. No other file in cluster/ reads them.
import { randomInt } from 'node:crypto';
import { watch } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import type { Clock, ClusterEnv, KubernetesHttp, Timers } from '../env.ts';
import type { ConnectionProcess } from '../kubeconfig/kubeconfig.ts';

export const processClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
};

/** The longest delay of setTimeout. A longer delay counts as 1 ms. */
const longestTimerMs = 2 ** 31 - 1;

/** The timers of Node.js. A pending timer keeps the process alive. */
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

/** Returns an unpredictable number of at least 0 and less than 1, which can also create unique names. */
export const processRandom = (): number => randomInt(randomSteps) / randomSteps;

/** Watches the directory. Returns a function that ends the watch. Never throws: if the system has no watch, callers have to poll. */
export function watchDirectory(path: string, onEvent: () => void): () => void {
  try {
    const watcher = watch(path, { persistent: false }, onEvent);
    watcher.on('error', () => watcher.close());
    return () => watcher.close();
  } catch {
    return () => undefined;
  }
}

export function processEnv(kubernetes: KubernetesHttp): ClusterEnv {
  return { clock: processClock, timers: processTimers, random: processRandom, kubernetes };
}

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
