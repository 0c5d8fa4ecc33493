// The model of the API server as something that sequences are played on.
import { createScheduler } from '../../../simulation/scheduler.ts';
import type { ModelRequest, ModelResponse } from '../../../simulation/server/request.ts';
import { ModelServer } from '../../../simulation/server/server.ts';
import type { FilledRequest, Target } from './operation.ts';

const actor = { user: 'admin' };

/** Longer than anything that the model does later than at once. In milliseconds of its clock. */
const settlingMs = 1000;

/** A server of its own with nothing in it. As on the real one, nobody collects garbage. */
export function modelTarget(seed: number): Target {
  const scheduler = createScheduler(seed);
  const server = new ModelServer({ scheduler, wallMs: () => Date.UTC(2026, 0, 15, 12) + scheduler.nowMs(), seed, collectsGarbage: false });
  const target = targetOf(server, () => scheduler.runUntil(scheduler.nowMs() + settlingMs));
  return {
    ...target,
    prepare: async (name) => {
      await target.prepare('default');
      await target.prepare(name);
      // What was at resourceVersion 1 is past telling, as on the real one.
      server.restartFrontEnd(0, { isCompacted: true });
    },
  };
}

/** `settle` lets everything happen that is on its way. */
function targetOf(server: Pick<ModelServer, 'handle' | 'watch'>, settle: () => Promise<void>): Target {
  return {
    ask: async (request) => server.handle(requestOf(request)),
    open: async (request, onLine, onEnd) => {
      const opened = server.watch(requestOf(request), { line: onLine, end: onEnd });
      return isRefusal(opened) ? { refusal: opened, close: () => undefined } : { close: () => opened.close() };
    },
    settle,
    prepare: async (name) => {
      const body = JSON.stringify({ metadata: { name } });
      const { status } = server.handle(requestOf({ method: 'POST', path: '/api/v1/namespaces', body }));
      if (status !== 201) throw new Error(`the model answers the creation of a namespace with ${status}`);
    },
  };
}

function requestOf(request: FilledRequest): ModelRequest {
  return { ...request, accept: 'application/json', actor };
}

function isRefusal(opened: ReturnType<ModelServer['watch']>): opened is ModelResponse {
  return 'status' in opened;
}
