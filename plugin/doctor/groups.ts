// The groups themselves: members that are missing, strategies and labels that do not fit, budgets that overlap, ledgers without a group.

import { ledgerName } from '../../engine/ledger/ledger-document.ts';
import { foreignPods } from '../../engine/observe/cluster.ts';
import { profileOf } from '../../engine/profiles.ts';
import { releaseGraceMs } from '../../engine/release/release.ts';
import { isUnknown, type StatefulSetView } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { matchesSelector } from '../../policies/label-selector.ts';
import { traitsOf } from '../../policies/strategies.ts';
import { plural } from '../output/plural.ts';
import { type Check, type CheckResult, type Facts, type LedgerFact, orOk, skipped } from './check.ts';

function membersOf({ sets }: Facts, group: GroupDefinition): readonly StatefulSetView[] {
  return group.zones.flatMap((zone) => sets.find((set) => set.namespace === group.namespace && set.name === zone.statefulSet) ?? []);
}

export const missingMembers: Check = ({ groups, sets }) => {
  if (groups.length === 0) return [{ check: 'groups', verdict: 'warn', message: 'there is no group here' }];
  const results = groups.flatMap(({ namespace, name, zones }) =>
    zones
      .filter(({ statefulSet }) => !sets.some((set) => set.namespace === namespace && set.name === statefulSet))
      .map(
        ({ statefulSet }): CheckResult => ({
          check: 'groups',
          verdict: 'FAIL',
          message: `${namespace}/${name}: StatefulSet ${statefulSet} does not exist`,
          code: 'RG6019',
        }),
      ),
  );
  return orOk('groups', results, `${plural(groups.length, 'group')}, every member there`);
};

/** What lint and adoption say about live objects, under their own codes; notices are for authors and not for operators. */
export const settings: Check = ({ findings }) => {
  const told = findings.filter(({ severity, code }) => severity !== 'notice' && !ownChecks.has(code));
  return orOk(
    'settings',
    told.map(({ severity, code, message, object, file }) => ({
      check: 'settings',
      verdict: severity === 'error' ? 'FAIL' : 'warn',
      message: `${object ?? file}: ${message}`,
      code,
    })),
    'every setting can be understood',
  );
};

/** Findings of lint for which there is a check of its own, which knows the cluster. */
const ownChecks: ReadonlySet<string> = new Set(['RG4012', 'RG4013', 'RG2117', 'RG2118', 'RG2110']);

export const strategies: Check = (facts) => {
  const results = facts.groups.flatMap((group) => {
    const wanted = traitsOf(group).updateStrategy;
    return membersOf(facts, group)
      .filter(({ updateStrategy }) => updateStrategy !== wanted)
      .map(({ namespace, name, updateStrategy }): CheckResult => {
        const message = `${namespace}/${name} has the strategy ${updateStrategy}, and the strategy ${group.rollout.strategy} needs ${wanted}`;
        return { check: 'strategy', verdict: 'FAIL', message, code: 'RG6013' };
      });
  });
  return facts.groups.length === 0 ? [] : orOk('strategy', results, 'every strategy fits its strategy');
};

/** Pods of adopted groups are found by the label `name`. */
export const nameLabels: Check = (facts) => {
  const byName = facts.groups.filter((group) => profileOf(group).matchesPodsByNameLabel).flatMap((group) => membersOf(facts, group));
  if (byName.length === 0) return [];
  const labels = new Map<string, StatefulSetView[]>();
  const unlabelled: CheckResult[] = [];
  for (const set of byName) {
    const label = set.podLabels['name'];
    if (label !== undefined) labels.set(`${set.namespace}/${label}`, [...(labels.get(`${set.namespace}/${label}`) ?? []), set]);
    else
      unlabelled.push({
        check: 'labels',
        verdict: 'FAIL',
        message: `the pods of ${set.namespace}/${set.name} have no label name`,
        code: 'RG4013',
      });
  }
  const shared = [...labels.values()].filter((sets) => sets.length > 1);
  const results = shared.map((sets): CheckResult => {
    const names = sets.map(({ namespace, name }) => `${namespace}/${name}`).join(' and ');
    return {
      check: 'labels',
      verdict: 'FAIL',
      message: `${names} share the label name=${sets[0]?.podLabels['name'] ?? ''}`,
      code: 'RG6014',
    };
  });
  return orOk('labels', [...unlabelled, ...results], 'every member has a label name of its own');
};

export const strangers: Check = ({ groups, sets, pods }) => {
  if (groups.length === 0) return [];
  if (isUnknown(pods)) return skipped('foreign pods', pods.unknown);
  const members = sets.filter((set) =>
    groups.some(({ namespace, zones }) => namespace === set.namespace && zones.some((zone) => zone.statefulSet === set.name)),
  );
  return orOk(
    'foreign pods',
    foreignPods({ statefulSets: members, pods }).map(({ namespace, name, statefulSet, owner }) => ({
      check: 'foreign pods',
      verdict: 'warn',
      message: `Pod ${namespace}/${name} looks like one of ${statefulSet} and belongs to ${owner ?? 'nobody'}`,
      code: 'RG6015',
    })),
    'every pod that looks like a member’s is one',
  );
};

/** The eviction API refuses pods that two budgets select. */
export const overlappingBudgets: Check = (facts) => {
  if (facts.groups.length === 0) return [];
  if (isUnknown(facts.budgets)) return skipped('PDB', facts.budgets.unknown);
  const { budgets } = facts;
  const results = facts.groups.flatMap((group) =>
    membersOf(facts, group).flatMap((set): readonly CheckResult[] => {
      const over = budgets.filter((budget) => budget.namespace === set.namespace && matchesSelector(budget.selector, set.podLabels));
      if (over.length < 2) return [];
      const message = `${over
        .map(({ name }) => name)
        .sort()
        .join(' and ')} cover the pods of ${set.namespace}/${set.name}: the eviction API refuses these`;
      return [{ check: 'PDB', verdict: 'FAIL', message, code: 'RG6012' }];
    }),
  );
  return orOk('PDB', results, 'no pod is under two budgets');
};

export const leftLedgers: Check = ({ groups, ledgers }) => {
  if (isUnknown(ledgers)) return skipped('ledgers', ledgers.unknown);
  const known = new Set(groups.map(({ namespace, name }) => `${namespace}/${ledgerName(name)}`));
  const left = ledgers.filter(({ namespace, name }) => !known.has(`${namespace}/${name}`));
  return orOk(
    'ledgers',
    left.map((ledger) => ({ check: 'ledgers', verdict: 'warn', message: leftText(ledger), code: 'RG6016' })),
    'every ledger belongs to a group',
  );
};

/** The terms of a release are nowhere but in the ledger: whoever deletes it leaves the partitions as they are. */
function leftText({ namespace, name, isReleased, goneMs }: LedgerFact): string {
  const remove = `kubectl delete configmap ${name} -n ${namespace}`;
  const what = `ConfigMap ${namespace}/${name} belongs to no group`;
  if (isReleased !== true) return `${what}; when no disruption of it is open any more: ${remove}`;
  const when =
    goneMs === undefined
      ? 'once the agent has seen for a minute that nothing defines it'
      : `from ${new Date(goneMs + releaseGraceMs).toISOString().replace(/\.\d+Z$/, 'Z')} on`;
  return `${what} and hands its StatefulSets back (onPolicyDeleted: release) ${when}; it goes by itself, and deleting it earlier stops the release`;
}
