// The model of the API server with the models of the StatefulSet controller and the disruption controller.
import { startDisruptionController } from '../../../../simulation/cluster/budgets.ts';
import { StatefulSetController } from '../../../../simulation/cluster/statefulset-controller.ts';
import { createScheduler } from '../../../../simulation/scheduler.ts';
import { ModelServer } from '../../../../simulation/server/server.ts';
import type { Side } from './workload.ts';

/** Longer than all delays of the models together, and shorter than the time for which an eviction counts. In milliseconds. */
const settlingMs = 30_000;

export interface ModelSide extends Side {
  /** Lets the controllers act until nothing changes. */
  readonly settle: () => Promise<void>;
}

export function createModelSide(seed: number, { hasMaxUnavailable = false } = {}): ModelSide {
  const scheduler = createScheduler(seed);
  const nowMs = (): number => Date.UTC(2026, 0, 15, 12) + scheduler.nowMs();
  const server = new ModelServer({ scheduler, wallMs: nowMs, seed });
  const world = { server, scheduler, wallMs: nowMs, seed };
  const controllers = [new StatefulSetController({ ...world, hasMaxUnavailable }), startDisruptionController(world)];
  server.observe({
    committed: (commit) => {
      for (const controller of controllers) controller.hear(commit);
    },
  });
  return {
    ask: async (request) => server.handle({ ...request, accept: 'application/json', actor: { user: 'admin' } }),
    nowMs,
    settle: () => scheduler.runUntil(scheduler.nowMs() + settlingMs),
  };
}
