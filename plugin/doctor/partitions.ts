// Checks for StatefulSets that a partition of ours blocks although no group manages them.
import { isUnknown } from '../../engine/snapshot.ts';
import { releaseCommand } from '../../install/held-partitions.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { holdingPartition } from '../../policies/strategies.ts';
import { keptLeases } from './agent.ts';
import type { Check, CheckResult, Facts } from './check.ts';

/** Reports blocked StatefulSets: Kubernetes itself shows them as rolled out. */
export const heldPartitions: Check = (facts) => {
  const { sets, groups, ledgers } = facts;
  return sets
    .filter(({ updateStrategy, partition }) => updateStrategy === 'RollingUpdate' && partition >= holdingPartition)
    .filter(({ namespace, name }) => !groups.some((group) => isMember(group, namespace, name)) && !isDecided(facts, namespace, name))
    .map(({ namespace, name }): CheckResult => {
      const isReleasing = !isUnknown(ledgers) && ledgers.some((one) => one.namespace === namespace && one.isReleased === true);
      const until = isReleasing ? ', unless a group that was deleted is releasing it' : '';
      const message = `StatefulSet ${namespace}/${name} has the partition ${holdingPartition} and no group: template changes do not reach its pods${until}. Define the group, or release the StatefulSet: ${releaseCommand({ namespace, name })}`;
      return { check: 'partition', verdict: 'warn', message, code: 'RG6023' };
    });
};

/** Groups in the policy directory of an agent are known only from published decisions. Decisions of an agent that stopped prove nothing. */
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
