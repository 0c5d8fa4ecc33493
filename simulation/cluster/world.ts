// Defines what the models around the agents share: the API server, the clocks and the seed.
import type { Scheduler } from '../scheduler.ts';
import type { ModelServer } from '../server/server.ts';

/** Reads of the newest state, writes without preconditions, and every commit. Resources are named as in Commit. */
export type ClusterApi = Pick<ModelServer, 'get' | 'list' | 'create' | 'change' | 'remove' | 'terminate' | 'evict' | 'observe'>;

export interface World {
  readonly server: ClusterApi;
  readonly scheduler: Pick<Scheduler, 'nowMs' | 'after'>;
  /** Wall clock of the cluster, in milliseconds since 1970. */
  readonly wallMs: () => number;
  readonly seed: number;
}
