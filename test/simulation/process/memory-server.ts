// A small API server and a life of a process, for tests of what lies between the two.
import type { Faults, PlacedFault } from '../../../simulation/faults/fault.ts';
import { placedFaults } from '../../../simulation/faults/source.ts';
import { createHolds, createMachineClock, type Holds, ProcessTime, runStartMs } from '../../../simulation/process/clock.ts';
import { createPlaces, type Life } from '../../../simulation/process/life.ts';
import { createScheduler, type Scheduler } from '../../../simulation/scheduler.ts';
import type { ModelRequest, ModelResponse, WatchSink } from '../../../simulation/server/request.ts';
import type { ModelServer } from '../../../simulation/server/server.ts';
import { MemoryApi } from '../../kit/memory-api.ts';
import { MemoryWorkloads } from '../../kit/memory-workloads.ts';
import type { Served, ServedRequest } from '../../kit/virtual-env.ts';

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

/** A cluster of three zones of three pods, reached as the model of the API server is. */
export function memoryServer(scheduler: Scheduler) {
  const nowMs = (): number => runStartMs + scheduler.nowMs();
  const api = new MemoryApi({ nowMs });
  const workloads = new MemoryWorkloads(api, scheduler, nowMs);
  api.put('/v1/nodes', { metadata: { name: 'node-1' }, status: { conditions: [{ type: 'Ready', status: 'True' }] } });
  const writes: string[] = [];
  const serve = (request: ModelRequest, isStream: boolean): Served => {
    const [pathname = '', query = ''] = request.path.split('?');
    const json: unknown = request.body === undefined ? undefined : JSON.parse(request.body);
    if (request.method !== 'GET') {
      writes.push(`${request.actor.process} ${request.actor.site} ${request.method} ${pathname.split('/').slice(-2).join('/')}`);
    }
    const served: ServedRequest = {
      method: request.method,
      path: request.path,
      isStream,
      pathname,
      query: new URLSearchParams(query),
      json,
      timeoutMs: 30_000,
      site: request.actor.site ?? '',
      sentAtMs: request.actor.sentAtMs ?? 0,
      ...(request.contentType === undefined ? {} : { contentType: request.contentType }),
    };
    return api.serve(served);
  };
  const server = {
    handle: (request: ModelRequest): ModelResponse => answerOf(serve(request, false)),
    watch: (request: ModelRequest, sink: WatchSink) => {
      const answer = serve(request, true);
      if (!('watch' in answer)) return answerOf(answer);
      const stream = answer.watch.connect(sink.line);
      void stream.ended.then(sink.end);
      return { close: stream.close };
    },
    lagFrontEnd: () => undefined,
    goBackFrontEnd: () => undefined,
  };
  return { api, workloads, writes, server };
}

/** Of a transport whose servers never go back. */
export const nowOnly = { showVersion: () => undefined, isPastShown: () => false };

function answerOf(answer: Served): ModelResponse {
  if (!('status' in answer)) throw new Error('the memory server loses nothing');
  const { status, headers = {}, body } = answer;
  return { status, headers, body: typeof body === 'string' ? body : JSON.stringify(body ?? {}) };
}
