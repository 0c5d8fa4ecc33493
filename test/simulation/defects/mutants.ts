// Lists the mutants by the part of the project that they break.
import { agentMutants } from './mutants/agent.ts';
import { clusterMutants } from './mutants/cluster.ts';
import { engineMutants } from './mutants/engine.ts';
import type { Mutant } from './mutants/mutant.ts';
import { webhookMutants } from './mutants/webhook.ts';

/** The webhooks decide by `agent/admission`, `engine/judge`, `engine/disruption` and the placement of pins, so these count as `webhook`. */
export const mutants: Readonly<Record<'engine' | 'agent' | 'cluster' | 'webhook', readonly Mutant[]>> = {
  engine: engineMutants,
  agent: agentMutants,
  cluster: clusterMutants,
  webhook: webhookMutants,
};
