// StatefulSets that nobody lets go on: a partition of ours holds all their pods, and no group is there for them.
import { isUnknown } from '../../engine/snapshot.ts';
import { releaseCommand } from '../../install/held-partitions.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { holdingPartition } from '../../policies/strategies.ts';
import { keptLeases } from './agent.ts';
import type { Check, CheckResult, Facts } from './check.ts';

/** Nothing else tells: Kubernetes takes such a StatefulSet to be rolled out. */
export const heldPartitions: Check = (facts) => {
  const { sets, groups, ledgers } = facts;
  return sets
    .filter(({ updateStrategy, partition }) => updateStrategy === 'RollingUpdate' && partition >= holdingPartition)
    .filter(({ namespace, name }) => !groups.some((group) => isMember(group, namespace, name)) && !isDecided(facts, namespace, name))
    .map(({ namespace, name }): CheckResult => {
      const isReleasing = !isUnknown(ledgers) && ledgers.some((one) => one.namespace === namespace && one.isReleased === true);
      const until = isReleasing ? ', unless a group that is gone is handing it back' : '';
      const message = `StatefulSet ${namespace}/${name} has the partition ${holdingPartition} and no group: changes of its pods are ignored${until}; define the group, or let it roll its pods: ${releaseCommand({ namespace, name })}`;
      return { check: 'partition', verdict: 'warn', message, code: 'RG6023' };
    });
};

/** Groups in the policy directory of an agent are known by what it publishes; what one has published that is gone says nothing. */
function isDecided(facts: Facts, wanted: string, name: string): boolean {
  const holders = new Set(keptLeases(facts).map(({ holder }) => holder));
  const decisions = isUnknown(facts.published) ? [] : facts.published;
  return decisions.some(
    ({ namespace, leader, members = [] }) => namespace === wanted && leader !== undefined && holders.has(leader) && members.includes(name),
  );
}

function isMember({ namespace, zones }: GroupDefinition, wanted: string, name: string): boolean {
  return namespace === wanted && zones.some(({ statefulSet }) => statefulSet === name);
}
