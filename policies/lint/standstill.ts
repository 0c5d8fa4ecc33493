// Limits of zero: what the files alone show to hold every rollout until somebody changes it.
import type { GroupDefinition, ZoneDefinition } from '../definition.ts';
import { type Finding, finding } from '../findings/finding.ts';
import { matchesSelector } from '../label-selector.ts';
import type { Loaded, Manifest } from '../load.ts';
import { type BudgetAmounts, standstillOf } from '../pod-budget.ts';
import { type LabelSelector, labelSelector } from '../schema/scalars.ts';
import { isRecord, valueAt } from '../schema/schema-walk.ts';
import { listed } from '../wording.ts';
import { eachGroup, eachPolicy, type LintCheck, type LintContext } from './context.ts';
import { manifestOf, setManifests, statedReplicas, writtenReplicas } from './stated.ts';

/** `maxUnavailable: 0` of a group or of one of its zones. A zone that is paused says that it is to stand still. */
export const unavailableZero: LintCheck = eachGroup((group) => {
  const { rollout, members } = group.value.spec;
  const zones = members.zones ?? [];
  const ofZones = zones.flatMap(({ name, maxUnavailable, paused }, index) => {
    if (maxUnavailable !== 0 || paused === true) return [];
    const message = `no pod of zone ${name} may be unavailable, so no rollout of the group ${group.name} gets past it`;
    const hint = 'write 1 or more; a zone that is to stand still says paused: true';
    return [finding('RG2216', group.place(['spec', 'members', 'zones', index, 'maxUnavailable']), message, { hint })];
  });
  const isInherited = zones.length === 0 || zones.some((zone) => zone.maxUnavailable === undefined && zone.paused !== true);
  if (rollout.maxUnavailable !== 0 || !isInherited) return ofZones;
  const message = `no pod may be unavailable, so no rollout of the group ${group.name} ever replaces one`;
  return [finding('RG2216', group.place(['spec', 'rollout', 'maxUnavailable']), message, { hint: pauseHint(group) }), ...ofZones];
});

function pauseHint({ namespace, name }: Loaded<'RolloutGroup'>): string {
  return `write 1 or more; a group that is to stand still is paused: kubectl rollout-group pause ${name} -n ${namespace}, or paused: true in its zones`;
}

/** The same as a cap of a policy. */
export const cappedAtZero: LintCheck = eachPolicy((policy) => {
  if (policy.value.spec.limits?.maxUnavailable !== 0) return [];
  const message = `the policy ${policy.name} lets no pod be unavailable, so no rollout of the groups that it binds replaces one`;
  const hint = 'write 1 or more; rollouts that are to stand still are held by a deny window, or by a rule with the effect hold';
  return [finding('RG2216', policy.place(['spec', 'limits', 'maxUnavailable']), message, { hint })];
});

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
  const zones = group.zones.filter(
    (zone) => !zone.paused && asksBudget(group, zone) && isSelected(selector.data, manifestOf(context, group, zone)),
  );
  const amounts = amountsOf(budget);
  const covered = zones.length === 0 ? 0 : coveredPods(context, budget, selector.data, amounts);
  const standstill = standstillOf(amounts, covered);
  if (standstill === undefined) return [];
  const { field } = standstill;
  const which = `${zones.length === 1 ? 'zone' : 'zones'} ${listed(
    zones.map(({ name }) => name),
    'and',
  )}`;
  const text = field !== undefined && covered === manyPods ? `${field} is ${amounts[field]}` : standstill.text;
  const message = `PodDisruptionBudget ${budget.name} lets no pod of ${which} go (${text}), so no rollout of the group ${group.name} replaces one`;
  const source = group.sources['rollout.engine'] ?? group.sources[''];
  const place = field === undefined ? budget.place(['spec'], 'key') : budget.place(['spec', field]);
  return [finding('RG2216', place, message, { hint: budgetHint, related: source === undefined ? [] : [source] })];
}

const budgetHint = 'let it spare a pod, such as maxUnavailable: 1; a group that is to stand still is paused: kubectl rollout-group pause';

/** The eviction API asks budgets; so does the agent before it leaves pods to the StatefulSet controller. */
function asksBudget({ rollout }: GroupDefinition, { maxUnavailable }: ZoneDefinition): boolean {
  return rollout.engine === 'partition' || rollout.rotateBy === 'evict' || maxUnavailable === 'fromBudget';
}

function amountsOf({ value }: Manifest): BudgetAmounts {
  const amount = (field: 'maxUnavailable' | 'minAvailable'): BudgetAmounts => {
    const found = valueAt(value, ['spec', field]);
    return typeof found === 'number' || typeof found === 'string' ? { [field]: found } : {};
  };
  return { ...amount('maxUnavailable'), ...amount('minAvailable') };
}

/** More pods than any budget counts by number: stands for what the files do not say. */
const manyPods = 1_000_000;

/** The pods that a budget covers. A number of pods that must stay decides only where the files say how many there are. */
function coveredPods(context: LintContext, budget: Manifest, selector: LabelSelector, { minAvailable }: BudgetAmounts): number {
  const counts = setManifests(context)
    .filter((set) => set.namespace === budget.namespace && isSelected(selector, set))
    .map((set) => replicasOf(context, set));
  if (counts.some((count) => count === undefined)) return typeof minAvailable === 'number' ? 0 : manyPods;
  return counts.reduce<number>((sum, count = 0) => sum + count, 0);
}

function replicasOf(context: LintContext, set: Manifest): number | undefined {
  for (const group of context.bundle.groups) {
    const zone = group.zones.find(({ statefulSet }) => group.namespace === set.namespace && statefulSet === set.name);
    if (zone !== undefined) return statedReplicas(context, group, zone);
  }
  return writtenReplicas(set);
}

function isSelected(selector: LabelSelector, set: Manifest | undefined): boolean {
  const labels = valueAt(set?.value, ['spec', 'template', 'metadata', 'labels']);
  if (!isRecord(labels)) return false;
  return matchesSelector(
    selector,
    Object.fromEntries(Object.entries(labels).flatMap(([key, value]) => (typeof value === 'string' ? [[key, value]] : []))),
  );
}
