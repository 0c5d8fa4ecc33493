// Checks the groups for doctor: missing members, wrong strategies and labels, overlapping budgets, ledgers without a group, partitions.
import { ledgerName } from '../../engine/ledger/ledger-document.ts';
import { foreignPods } from '../../engine/observe/cluster.ts';
import { profileOf } from '../../engine/profiles.ts';
import { releaseAdvice } from '../../engine/release/left.ts';
import { releaseGraceMs } from '../../engine/release/release.ts';
import { isUnknown, type StatefulSetView } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { matchesSelector } from '../../policies/label-selector.ts';
import { holdingPartition, traitsOf } from '../../policies/strategies.ts';
import { groupBy } from '../../policies/values/group-by.ts';
import { counted } from '../../policies/wording.ts';
import { itemsOf } from '../cluster-snapshot/listing.ts';
import { keptLeases } from './agent.ts';
import { type Check, check, type Facts, isMember, type LedgerFact, type Outcome, orOk, result, skipped } from './check.ts';

function membersOf({ sets }: Pick<Facts, 'sets'>, group: GroupDefinition): readonly StatefulSetView[] {
  return group.zones.flatMap((zone) => sets.find((set) => set.namespace === group.namespace && set.name === zone.statefulSet) ?? []);
}

export const missingMembers: Check = check('groups', ['groups'], ({ groups, sets }) => {
  if (groups.length === 0) return [result('warn', 'no group exists here')];
  const results = groups.flatMap(({ namespace, name, zones }) =>
    zones
      .filter(({ statefulSet }) => !sets.some((set) => set.namespace === namespace && set.name === statefulSet))
      .map(({ statefulSet }) => result('FAIL', `${namespace}/${name}: StatefulSet ${statefulSet} does not exist`, 'RG6019')),
  );
  return orOk(results, `${counted(groups.length, 'group')}, every member exists`);
});

/** Reports findings of lint and adoption about live objects, with their own codes. Leaves out notices: they are for authors of policies. */
export const settings: Check = check('settings', ['findings'], ({ findings }) => {
  const shown = findings.filter(({ severity, code }) => severity !== 'notice' && !ownChecks.has(code));
  return orOk(
    shown.map(({ severity, code, message, object, file }) =>
      result(severity === 'error' ? 'FAIL' : 'warn', `${object ?? file}: ${message}`, code),
    ),
    'every setting is valid',
  );
});

/** The findings that another check reports with more facts from the cluster. */
const ownChecks: ReadonlySet<string> = new Set(['RG4012', 'RG4013', 'RG2117', 'RG2118', 'RG2110']);

export const strategies: Check = check('strategy', ['groups'], (facts) => {
  const results = facts.groups.flatMap((group) => {
    const wanted = traitsOf(group).updateStrategy;
    return membersOf(facts, group)
      .filter(({ updateStrategy }) => updateStrategy !== wanted)
      .map(({ namespace, name, updateStrategy }) => {
        const message = `${namespace}/${name} has the updateStrategy ${updateStrategy}: the rollout strategy ${group.rollout.strategy} needs ${wanted}`;
        return result('FAIL', message, 'RG6013');
      });
  });
  return facts.groups.length === 0 ? [] : orOk(results, 'every updateStrategy fits the rollout strategy');
});

/** Checks the label `name`, by which pods of adopted groups are found. */
export const nameLabels: Check = check('labels', ['groups'], (facts) => {
  const byName = facts.groups.filter((group) => profileOf(group).matchesPodsByNameLabel).flatMap((group) => membersOf(facts, group));
  if (byName.length === 0) return [];
  const labelOf = ({ podLabels }: StatefulSetView): string | undefined => podLabels['name'];
  const unlabelled = byName
    .filter((set) => labelOf(set) === undefined)
    .map(({ namespace, name }) => result('FAIL', `the pods of ${namespace}/${name} have no label "name"`, 'RG4013'));
  const labels = groupBy(byName, (set) => labelOf(set) && `${set.namespace}/${labelOf(set)}`);
  const shared = [...labels.values()].filter((sets) => sets.length > 1);
  const results = shared.map((sets) => {
    const names = sets.map(({ namespace, name }) => `${namespace}/${name}`).join(' and ');
    return result('FAIL', `${names} share the label name=${sets[0]?.podLabels['name'] ?? ''}`, 'RG6014');
  });
  return orOk([...unlabelled, ...results], 'every member has its own value for the label "name"');
});

export const foreignMemberPods: Check = check('foreign pods', ['groups'], ({ groups, sets, pods }) => {
  if (groups.length === 0) return [];
  if (isUnknown(pods)) return skipped(pods.unknown);
  const members = sets.filter((set) => groups.some((group) => isMember(group, set)));
  return orOk(
    foreignPods({ statefulSets: members, pods }).map(({ namespace, name, statefulSet, owner }) => {
      const message = `Pod ${namespace}/${name} has the labels of ${statefulSet} and belongs to ${owner ?? 'no owner'}`;
      return result('warn', message, 'RG6015');
    }),
    'every pod with the labels of a member belongs to it',
  );
});

export const overlappingBudgets: Check = check('PDB', ['groups'], (facts) => {
  if (facts.groups.length === 0) return [];
  if (isUnknown(facts.budgets)) return skipped(facts.budgets.unknown);
  const { budgets } = facts;
  const results = facts.groups.flatMap((group) =>
    membersOf(facts, group).flatMap((set): readonly Outcome[] => {
      const over = budgets.filter((budget) => budget.namespace === set.namespace && matchesSelector(budget.selector, set.podLabels));
      if (over.length < 2) return [];
      const names = over.map(({ name }) => name).sort();
      const message = `${names.join(' and ')} cover the pods of ${set.namespace}/${set.name}: the eviction API refuses to evict these pods`;
      return [result('FAIL', message, 'RG6012')];
    }),
  );
  return orOk(results, 'no pod is selected by two budgets');
});

export const leftLedgers: Check = check('ledgers', ['groups', 'ledgers'], ({ groups, ledgers }) => {
  const known = new Set(groups.map(({ namespace, name }) => `${namespace}/${ledgerName(name)}`));
  const left = ledgers.filter(({ namespace, name }) => !known.has(`${namespace}/${name}`));
  return orOk(
    left.map((ledger) => result('warn', leftText(ledger), 'RG6016')),
    'every ledger belongs to a group',
  );
});

/** Describes a ledger without a group. Deleting a ledger with release terms ends the release and leaves the partitions unchanged. */
function leftText({ namespace, name, isReleased, goneMs }: LedgerFact): string {
  const remove = `kubectl delete configmap ${name} -n ${namespace}`;
  const what = `ConfigMap ${namespace}/${name} belongs to no group`;
  if (isReleased !== true) return `${what}. When it has no open claims, run: ${remove}`;
  const when =
    goneMs === undefined
      ? 'one minute after the agent sees that no policy defines the group'
      : `after ${new Date(goneMs + releaseGraceMs).toISOString().replace(/\.\d+Z$/, 'Z')}`;
  return `${what}. The agent releases the StatefulSets of the deleted group (onPolicyDeleted: release) ${when}. After that, run: ${remove}. If the ConfigMap is deleted earlier, the release stops`;
}

/** Reports StatefulSets that belong to no group and whose partition blocks every update. Kubernetes itself shows them as rolled out. */
export const blockingPartitions: Check = check('partition', ['groups'], (facts) => {
  const { sets, groups, ledgers, leases, published } = facts;
  const held = sets.filter(({ updateStrategy, partition }) => updateStrategy === 'RollingUpdate' && partition >= holdingPartition);
  const ungrouped = held.filter((set) => !groups.some((group) => isMember(group, set)));
  const unread = [published, leases, ledgers].find(isUnknown);
  if (ungrouped.length > 0 && unread !== undefined) return skipped(unread.unknown);
  return ungrouped
    .filter((set) => !isDecided(facts, set))
    .map((set) => {
      const { namespace, name } = set;
      const isReleasing = itemsOf(ledgers).some((one) => one.namespace === namespace && one.isReleased === true);
      const until = isReleasing ? ', unless the agent is releasing it because its group was deleted' : '';
      const message = `StatefulSet ${namespace}/${name} has the partition ${holdingPartition} and no group: template changes do not reach its pods${until}. ${releaseAdvice(set)}`;
      return result('warn', message, 'RG6023');
    });
});

/** Reports whether a running agent decides about the StatefulSet: its group may exist only in the policy directory of the agent. */
function isDecided(facts: Facts, set: StatefulSetView): boolean {
  const holders = keptLeases(facts).map(({ holder }) => holder);
  return itemsOf(facts.published).some(
    ({ namespace, leader = '', zones = [] }) =>
      namespace === set.namespace && holders.includes(leader) && zones.some(({ statefulSet }) => statefulSet === set.name),
  );
}
