// A server that notes its requests, and a life of a process, for tests of the parts between the two.
import type { Faults, PlacedFault } from '../../../simulation/faults/fault.ts';
import { placedFaults } from '../../../simulation/faults/source.ts';
import { createHolds, createMachineClock, type Holds, ProcessTime, runStartMs } from '../../../simulation/process/clock.ts';
import { createPlaces, type Life } from '../../../simulation/process/life.ts';
import { createScheduler, type Scheduler } from '../../../simulation/scheduler.ts';
import type { ModelRequest, ModelResponse, WatchSink } from '../../../simulation/server/request.ts';
import type { ModelServer } from '../../../simulation/server/server.ts';
import { startWorkloads } from '../../kit/cluster.ts';
import { ModelApi } from '../../kit/model-server.ts';

export interface OpenWatch {
  readonly request: ModelRequest;
  readonly frontEnd: number;
  readonly sink: WatchSink;
  isClosed: boolean;
}

/** Takes note of what arrives, and answers 200 with the number of the request. */
function noteServer(scheduler: Pick<Scheduler, 'nowMs'>) {
  const arrived: { readonly atMs: number; readonly request: ModelRequest; readonly frontEnd: number }[] = [];
  const watches: OpenWatch[] = [];
  const touched: string[] = [];
  const server: Pick<ModelServer, 'handle' | 'watch'> = {
    handle: (request, frontEnd = 0): ModelResponse => {
      arrived.push({ atMs: scheduler.nowMs(), request, frontEnd });
      return { status: 200, headers: {}, body: JSON.stringify({ count: arrived.length }) };
    },
    watch: (request, sink, frontEnd = 0) => {
      const watch: OpenWatch = { request, frontEnd, sink, isClosed: false };
      watches.push(watch);
      return {
        close: () => {
          watch.isClosed = true;
        },
      };
    },
  };
  return { server, arrived, watches, touched };
}

/** A process without an agent in it. */
export function newLife(scheduler: Scheduler, faults: Faults, { name = 'a1', seed = 1, rate = 1 } = {}) {
  const holds: Holds = createHolds(scheduler);
  const changes: string[] = [];
  const machine = createMachineClock(scheduler, rate);
  const time = new ProcessTime({
    scheduler,
    machine,
    holds,
    seed,
    name,
    onPaused: () => changes.push(`paused at ${scheduler.nowMs()}`),
    onResumed: () => changes.push(`resumed at ${scheduler.nowMs()}`),
  });
  const life: Life = {
    name,
    seed,
    scheduler,
    time,
    holds,
    faults,
    places: createPlaces(name, scheduler),
    crash: (restartAfterMs) => {
      changes.push(`died at ${scheduler.nowMs()} for ${restartAfterMs}`);
      time.end();
      for (const callback of [...life.onEnd]) callback();
    },
    note: () => undefined,
    open: { requests: 0, watches: 0, begun: 0, dead: 0 },
    onEnd: new Set(),
  };
  return { life, machine, holds, changes };
}

export function lifeWith(...placed: readonly PlacedFault[]) {
  const scheduler = createScheduler(1);
  return { scheduler, ...noteServer(scheduler), ...newLife(scheduler, placedFaults(placed)) };
}

/** The model of the API server with its controllers, as agents of the simulation reach it. */
export function modelCluster({ nowMs, after }: Scheduler) {
  const env = { clock: { nowMs: () => runStartMs + nowMs(), monotonicMs: nowMs }, timers: { after } };
  const api = new ModelApi({ env });
  return { api, workloads: startWorkloads(env, api) };
}

/** Of a transport whose servers never go back. */
export const nowOnly = { showVersion: () => undefined, isPastShown: () => false };
