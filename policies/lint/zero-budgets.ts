// PodDisruptionBudgets that let no pod of a group go, as far as the files alone show it.

import type { GroupDefinition, ZoneDefinition } from '../definition.ts';
import { type Finding, finding } from '../findings/finding.ts';
import { matchesSelector } from '../label-selector.ts';
import type { Manifest } from '../load.ts';
import { type BudgetAmounts, type Standstill, standstillOf } from '../objects/pod-budget.ts';
import { labelsOf } from '../resolve/resolve.ts';
import { type LabelSelector, labelSelector } from '../schema/scalars.ts';
import { valueAt } from '../schema/schema-walk.ts';
import { traitsOf } from '../strategies.ts';
import { listed } from '../wording.ts';
import type { LintCheck, LintContext } from './context.ts';
import { manifestOf, statedReplicas } from './stated.ts';
import { isExcused } from './zero-limits.ts';

/** A PodDisruptionBudget of zero over pods that are evicted, or whose number of unavailable ones is taken from it. */
export const budgetsOfZero: LintCheck = (context) => {
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
  const zones = covered.filter((zone) => !zone.paused && asksBudget(context, group, zone));
  const standstill = zones.length === 0 ? undefined : standstillUnder({ context, budget, group, covered, selector: selector.data });
  if (standstill === undefined) return [];
  const { field, text } = standstill;
  const which = `${zones.length === 1 ? 'zone' : 'zones'} ${listed(
    zones.map(({ name }) => name),
    'and',
  )}`;
  const message = `PodDisruptionBudget ${budget.name} lets no pod of ${which} go (${text}), so no rollout of the group ${group.name} replaces one`;
  const source = group.sources['rollout.strategy'] ?? group.sources[''];
  const place = field === undefined ? budget.place(['spec'], 'key') : budget.place(['spec', field]);
  return [finding('RG2216', place, message, { hint: budgetHint(group), related: source === undefined ? [] : [source] })];
}

function budgetHint({ name, namespace }: GroupDefinition): string {
  return `let it spare a pod, such as maxUnavailable: 1; zones that are to stand still say paused: true, in a cluster also kubectl rollout-group pause ${name} -n ${namespace}`;
}

/** The eviction API asks budgets; so does the agent before it leaves pods to the StatefulSet controller. */
function asksBudget(context: LintContext, group: GroupDefinition, { name, maxUnavailable }: ZoneDefinition): boolean {
  const { rotateBy } = group.rollout;
  return traitsOf(group).lowersPartition || rotateBy === 'evict' || (maxUnavailable === 'fromBudget' && !isExcused(context, group, name));
}

interface Covered {
  readonly context: LintContext;
  readonly budget: Manifest;
  readonly group: GroupDefinition;
  /** The zones whose pods the budget covers. */
  readonly covered: readonly ZoneDefinition[];
  readonly selector: LabelSelector;
}

/**
 * No pods at all, and 100 percent, hold whatever number of pods there is. Other amounts hold only some numbers of pods, which the files say of the
 * group's own pods alone.
 */
function standstillUnder(question: Covered): Standstill | undefined {
  const amounts = amountsOf(question.budget);
  const pods = statedPods(question);
  if (pods === 0 || hasOtherVersions(question)) return undefined;
  return standstillOf(amounts) ?? (pods === undefined || hasOtherPods(question) ? undefined : standstillOf(amounts, pods));
}

/** Base and overlay of kustomize among the files: none of them alone says what the budget is. */
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

/** The pods of the group that the budget covers; undefined where the files do not say how many one of its zones has. */
function statedPods({ context, group, covered }: Covered): number | undefined {
  return covered.reduce<number | undefined>((sum, zone) => {
    const pods = statedReplicas(context, group, zone);
    return sum === undefined || pods === undefined ? undefined : sum + pods;
  }, 0);
}

/** Whether the budget covers pods of anything else too: of a Deployment, of a Job, of StatefulSets of no group or of another one. */
function hasOtherPods({ context, budget, covered, selector }: Covered): boolean {
  const own = new Set(covered.map(({ statefulSet }) => statefulSet));
  return context.load.manifests.some(
    (one) => one.namespace === budget.namespace && !(one.kind === 'StatefulSet' && own.has(one.name)) && matches(selector, one),
  );
}

/** Whether the selector finds the pods of a workload, whatever its kind: a template of pods, a Pod, or the template of a CronJob's Jobs. */
function matches(selector: LabelSelector, { kind, value }: Manifest): boolean {
  const pods =
    kind === 'Pod' ? value : (valueAt(value, ['spec', 'template']) ?? valueAt(value, ['spec', 'jobTemplate', 'spec', 'template']));
  const metadata = valueAt(pods, ['metadata']);
  return valueAt(metadata, ['labels']) !== undefined && matchesSelector(selector, labelsOf(metadata));
}
