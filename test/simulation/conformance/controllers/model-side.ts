// The model of the API server with the models of the StatefulSet controller, the disruption controller and the node controller.
import { admitAll } from '../../../../simulation/cluster/admitted.ts';
import { startDisruptionController } from '../../../../simulation/cluster/budgets.ts';
import { Nodes } from '../../../../simulation/cluster/nodes.ts';
import { StatefulSetController } from '../../../../simulation/cluster/statefulset-controller.ts';
import { createScheduler } from '../../../../simulation/scheduler.ts';
import { ModelServer } from '../../../../simulation/server/server.ts';
import type { Side } from './workload.ts';

/** Longer than all delays of the models together, and shorter than the time for which an eviction counts. In milliseconds. */
const settlingMs = 30_000;
/** Longer than any sequence, so that the node controller deletes pods only in the step that waits for it. */
const evictedAfterMs = 40_000_000;

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
  let nodes: Nodes | undefined;
  let find: (() => void) | undefined;
  const settle = (ms = settlingMs) => scheduler.runUntil(scheduler.nowMs() + ms);
  return {
    changeNode: async (namespace, state) => {
      if (state === 'evicting') await settle(evictedAfterMs);
      else if (state === 'back') find?.();
      else {
        nodes ??= new Nodes({
          ...world,
          ...{ zones: [namespace], zoneOf: () => namespace, nodesPerZone: 1, evictedAfterMs },
          ...{ isBack: () => undefined, admit: admitAll },
        });
        find = nodes.lose(namespace);
      }
    },
    ask: async (request) => server.handle({ ...request, accept: 'application/json', actor: { user: 'admin' } }),
    nowMs,
    settle: () => settle(),
  };
}
