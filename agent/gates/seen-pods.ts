// Builds the view of a group's pods for gates from the caches.
import { snapshotOf } from '../../engine/observe/cluster.ts';
import { viewGroup } from '../../engine/observe/view.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import type { AgentConfig } from '../config.ts';
import type { AgentEnv } from '../env.ts';
import type { ActivePolicies } from '../policies/policies.ts';
import type { Caches } from '../watched/caches.ts';
import type { SeenPods } from './pods.ts';

interface SeenPodsParts {
  readonly clock: AgentEnv['clock'];
  readonly config: Pick<AgentConfig, 'agentNamespace'>;
  readonly caches: Pick<Caches, 'observe' | 'ageMs'>;
  readonly policies: ActivePolicies | undefined;
}

/** The pods of the group now; undefined while the policies are not known. Claims, which are no state of pods, are left out. */
export function seenPods(group: GroupDefinition, { clock, config, caches, policies }: SeenPodsParts): SeenPods | undefined {
  if (policies === undefined) return undefined;
  const snapshot = snapshotOf({
    nowMs: Math.floor(clock.nowMs()),
    policyDigest: policies.digest,
    agentNamespace: config.agentNamespace,
    groups: policies.groups,
    policies: [],
    exceptions: [],
    intents: [],
    ...caches.observe(group.namespace),
    replicaSources: [],
    gateReadings: [],
    metrics: [],
    ledgers: [],
  });
  return { view: viewGroup(snapshot, group), ageMs: caches.ageMs(group.namespace) };
}
