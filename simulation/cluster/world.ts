// Defines the ports that the models around the agents share: the API server, the clocks and the seed.
import type { Scheduler } from '../scheduler.ts';
import type { ModelServer } from '../server/server.ts';

/** The access of the models to the API server: reads of the newest state, writes without preconditions, and every commit. */
export type ClusterApi = Pick<
  ModelServer,
  'get' | 'list' | 'create' | 'change' | 'apply' | 'remove' | 'terminate' | 'evict' | 'observe' | 'terminateNamespace' | 'isTerminating'
>;

export interface World {
  readonly server: ClusterApi;
  readonly scheduler: Pick<Scheduler, 'nowMs' | 'after'>;
  /** Returns the wall-clock time of the cluster. */
  readonly wallMs: () => number;
  readonly seed: number;
}
