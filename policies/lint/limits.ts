// Checks limits and PodDisruptionBudgets for lint: zero blocks every rollout.
import type { GroupDefinition, ZoneDefinition } from '../definition.ts';
import { type Finding, finding } from '../findings/finding.ts';
import { matchesSelector } from '../label-selector.ts';
import type { Loaded, Manifest, ObjectName } from '../load.ts';
import { type BudgetAmounts, type ZeroBudget, zeroBudgetOf } from '../objects/pod-budget.ts';
import { type LabelSelector, labelSelector } from '../schema/scalars.ts';
import { textsOf, valueAt } from '../schema/schema-walk.ts';
import { traitsOf } from '../strategies.ts';
import { zonesText } from '../wording.ts';
import { definitionOf, eachGroup, eachPolicy, type LintCheck, type LintContext, targetsOf } from './context.ts';
import { manifestOf, replicasInFiles } from './manifests.ts';

type Group = Loaded<'RolloutGroup'>;
type DocumentName = Pick<ObjectName, 'namespace' | 'name'>;

/** Reports `maxUnavailable: 0` of a group or of a zone. Paused zones and zones with an exception are omitted: their zero is deliberate. */
const findZeroMaxUnavailable: LintCheck = eachGroup((group, context) => {
  const { rollout, members } = group.value.spec;
  const zones = members.zones ?? [];
  const isUnintended = ({ name, paused }: { readonly name: string; readonly paused?: boolean | undefined }): boolean =>
    paused !== true && !hasException(context, group, name);
  const ofZones = zones.flatMap((zone, index) => {
    if (zone.maxUnavailable !== 0 || !isUnintended(zone)) return [];
    const message = `zone ${zone.name} blocks every rollout of the group ${group.name}: its maxUnavailable is 0`;
    const hint = 'write 1 or more, or paused: true to stop the zone on purpose';
    return [finding('RG2216', group.place(['spec', 'members', 'zones', index, 'maxUnavailable']), message, { hint })];
  });
  const isInherited =
    members.zones === undefined
      ? !hasExceptionForAllZones(context, group)
      : zones.some((zone) => zone.maxUnavailable === undefined && isUnintended(zone));
  if (rollout.maxUnavailable !== 0 || !isInherited) return ofZones;
  const message = `no rollout of the group ${group.name} can replace a pod: maxUnavailable is 0`;
  return [finding('RG2216', group.place(['spec', 'rollout', 'maxUnavailable']), message, { hint: pauseHint(group) }), ...ofZones];
});

/** Returns the hint for a group. A group with a selector has no zones in the file that could set `paused`. */
function pauseHint({ namespace, name, value }: Group): string {
  const command = `kubectl rollout-group pause ${name} -n ${namespace}`;
  return value.spec.members.zones === undefined
    ? `write 1 or more; to stop the group on purpose, run: ${command}`
    : `write 1 or more; to stop zones on purpose, set paused: true or run: ${command}`;
}

/** Reports policies with `maxUnavailable: 0`, unless every group in the files to which the policy applies has an exception. */
const findPoliciesOfZero: LintCheck = eachPolicy((policy, context) => {
  if (policy.value.spec.limits?.maxUnavailable !== 0) return [];
  const bound = targetsOf(context, policy);
  if (bound.length > 0 && bound.every((group) => hasExceptionForAllZones(context, group))) return [];
  const message = `the policy ${policy.name} blocks every rollout of its groups: its maxUnavailable is 0`;
  const hint = 'write 1 or more; to stop rollouts on purpose, use a deny window or a rule with the effect hold';
  return [finding('RG2216', policy.place(['spec', 'limits', 'maxUnavailable']), message, { hint })];
});

/** Reports whether a RolloutException in the files overrides the limit of the zone, so that the zero is deliberate. */
function hasException({ bundle }: Pick<LintContext, 'bundle'>, group: DocumentName, zone?: string): boolean {
  return bundle.exceptions.some(
    (one) =>
      one.rule === 'zone-budget' &&
      one.namespace === group.namespace &&
      one.group === group.name &&
      (one.zone === undefined || one.zone === zone),
  );
}

function hasExceptionForAllZones(context: LintContext, group: DocumentName): boolean {
  const zones = definitionOf(context, group)?.zones ?? [];
  return hasException(context, group) || (zones.length > 0 && zones.every(({ name }) => hasException(context, group, name)));
}

/** Reports PodDisruptionBudgets that allow no disruption, if they limit a zone of a group. */
const findBudgetsOfZero: LintCheck = (context) => {
  const budgets = context.load.manifests.filter(
    ({ kind, apiVersion }) => kind === 'PodDisruptionBudget' && apiVersion.startsWith('policy/'),
  );
  return budgets.flatMap((budget) => context.bundle.groups.flatMap((group) => budgetFindings(context, budget, group)));
};

function budgetFindings(context: LintContext, budget: Manifest, group: GroupDefinition): readonly Finding[] {
  const selector = labelSelector.safeParse(valueAt(budget.value, ['spec', 'selector']));
  if (budget.namespace !== group.namespace || !selector.success) return [];
  const covered = group.zones.filter((zone) => {
    const set = manifestOf(context, group, zone);
    return set !== undefined && matches(selector.data, set);
  });
  const zones = covered.filter((zone) => !zone.paused && isLimitedByBudget(context, group, zone));
  const zeroBudget = zones.length === 0 ? undefined : zeroBudgetIn({ context, budget, group, covered, selector: selector.data });
  if (zeroBudget === undefined) return [];
  const { field, text } = zeroBudget;
  const names = zones.map(({ name }) => name);
  const message = `PodDisruptionBudget ${budget.name} blocks every pod of ${zonesText(names)}: ${text}; no rollout of the group ${group.name} can replace a pod`;
  const source = group.sources['rollout.strategy'] ?? group.sources[''];
  const place = field === undefined ? budget.place(['spec'], 'key') : budget.place(['spec', field]);
  return [finding('RG2216', place, message, { hint: budgetHint(group), related: source === undefined ? [] : [source] })];
}

function budgetHint({ name, namespace }: GroupDefinition): string {
  return `allow one disruption, such as maxUnavailable: 1; to stop zones on purpose, set paused: true or run: kubectl rollout-group pause ${name} -n ${namespace}`;
}

/** Returns whether the budget limits the zone: with evictions, with the strategy partition, or with `maxUnavailable: fromBudget`. */
function isLimitedByBudget(context: LintContext, group: GroupDefinition, { name, maxUnavailable }: ZoneDefinition): boolean {
  const { rotateBy } = group.rollout;
  return (
    traitsOf(group).lowersPartition || rotateBy === 'evict' || (maxUnavailable === 'fromBudget' && !hasException(context, group, name))
  );
}

interface Covered {
  readonly context: LintContext;
  readonly budget: Manifest;
  readonly group: GroupDefinition;
  readonly covered: readonly ZoneDefinition[];
  readonly selector: LabelSelector;
}

/** Returns why the budget is zero. Amounts other than 0 and 100% need the number of covered pods, which the files must show. */
function zeroBudgetIn(question: Covered): ZeroBudget | undefined {
  const amounts = amountsOf(question.budget);
  const pods = podsInFiles(question);
  if (pods === 0 || hasOtherVersions(question)) return undefined;
  return zeroBudgetOf(amounts) ?? (pods === undefined || hasOtherPods(question) ? undefined : zeroBudgetOf(amounts, pods));
}

/** Reports whether the files have another version of the budget with other amounts, such as a kustomize overlay. */
function hasOtherVersions({ context, budget }: Covered): boolean {
  const { maxUnavailable, minAvailable } = amountsOf(budget);
  return context.load.manifests.some((one) => {
    if (one.kind !== budget.kind || one.namespace !== budget.namespace || one.name !== budget.name) return false;
    const other = amountsOf(one);
    return other.maxUnavailable !== maxUnavailable || other.minAvailable !== minAvailable;
  });
}

function amountsOf({ value }: Manifest): BudgetAmounts {
  const amount = (field: 'maxUnavailable' | 'minAvailable'): BudgetAmounts => {
    const found = valueAt(value, ['spec', field]);
    return typeof found === 'number' || typeof found === 'string' ? { [field]: found } : {};
  };
  return { ...amount('maxUnavailable'), ...amount('minAvailable') };
}

/** Returns the number of pods of the group that the budget covers; undefined if the files do not show the replicas of a zone. */
function podsInFiles({ context, group, covered }: Covered): number | undefined {
  return covered.reduce<number | undefined>((sum, zone) => {
    const pods = replicasInFiles(context, group, zone);
    return sum === undefined || pods === undefined ? undefined : sum + pods;
  }, 0);
}

/** Reports whether the budget also covers pods of other workloads, such as a Deployment, a Job or another StatefulSet. */
function hasOtherPods({ context, budget, covered, selector }: Covered): boolean {
  const own = new Set(covered.map(({ statefulSet }) => statefulSet));
  return context.load.manifests.some(
    (one) => one.namespace === budget.namespace && !(one.kind === 'StatefulSet' && own.has(one.name)) && matches(selector, one),
  );
}

/** Reports whether the selector matches the pods of a workload: its pod template, a Pod, or the template of the Jobs of a CronJob. */
function matches(selector: LabelSelector, { kind, value }: Manifest): boolean {
  const pods =
    kind === 'Pod' ? value : (valueAt(value, ['spec', 'template']) ?? valueAt(value, ['spec', 'jobTemplate', 'spec', 'template']));
  const labels = valueAt(pods, ['metadata', 'labels']);
  return labels !== undefined && matchesSelector(selector, textsOf(labels));
}

export const zeroLimitChecks: readonly LintCheck[] = [findZeroMaxUnavailable, findPoliciesOfZero, findBudgetsOfZero];
