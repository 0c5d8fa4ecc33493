// Changed disruption budgets over the members of a group: pods restart for none of them, and what may be replaced depends on each.
import type { GroupDefinition } from '../../policies/definition.ts';
import { matchesSelector } from '../../policies/label-selector.ts';
import { fieldDiff, type ObjectContent } from '../diff/field-diff.ts';
import { fieldAt } from '../observe/raw.ts';
import { isUnknown, type Snapshot, type StatefulSetView } from '../snapshot.ts';
import type { PlannedChange } from './document.ts';

/** The running and the requested manifests, as read. */
interface ComparedBudgets {
  readonly current: readonly unknown[];
  readonly desired: readonly unknown[];
  readonly before: Snapshot;
  readonly after: Snapshot;
}

interface Budget {
  readonly kind: 'PodDisruptionBudget' | 'ZoneAwarePodDisruptionBudget';
  readonly namespace: string;
  readonly name: string;
  readonly covers: (set: StatefulSetView) => boolean;
}

/** The budgets of the group's namespace that come, go or change, with the zones whose pods they cover before or after, by kind and name. */
export function budgetChanges(group: GroupDefinition, compared: ComparedBudgets): readonly PlannedChange[] {
  const [before, after] = [budgetsOf(compared.before, group), budgetsOf(compared.after, group)];
  return [...new Set([...before.keys(), ...after.keys()])].sort().flatMap((title): readonly PlannedChange[] => {
    const [old, next] = [before.get(title), after.get(title)];
    const zones = [...new Set([...zonesUnder(old, group, compared.before), ...zonesUnder(next, group, compared.after)])];
    const [from, to] = [objectOf(compared.current, old), objectOf(compared.desired, next)];
    if (zones.length === 0 || (from === undefined && to === undefined)) return [];
    const ordered = group.zones.map(({ name }) => name).filter((name) => zones.includes(name));
    const change = { kind: 'budget', zones: ordered, consequence: 'none' } as const;
    if (old === undefined) return to === undefined ? [] : [{ ...change, field: title, after: amountText(to) }];
    if (next === undefined) return from === undefined ? [] : [{ ...change, field: title, before: amountText(from) }];
    if (from === undefined || to === undefined) return [];
    return fieldDiff(from, to)
      .filter(({ path }) => path.startsWith('spec'))
      .map((one) => ({
        ...change,
        field: `${title} ${one.path}`,
        ...(one.before === undefined ? {} : { before: one.before }),
        ...(one.after === undefined ? {} : { after: one.after }),
      }));
  });
}

/** None of a kind that could not be read. */
function budgetsOf({ podBudgets, zoneBudgets }: Snapshot, { namespace }: GroupDefinition): ReadonlyMap<string, Budget> {
  const pods = (isUnknown(podBudgets) ? [] : podBudgets).map(
    ({ selector, ...budget }): Budget => ({
      kind: 'PodDisruptionBudget',
      namespace: budget.namespace,
      name: budget.name,
      covers: ({ podLabels }) => matchesSelector(selector, podLabels),
    }),
  );
  const zones = (isUnknown(zoneBudgets) ? [] : zoneBudgets).map(
    ({ matchLabels, ...budget }): Budget => ({
      kind: 'ZoneAwarePodDisruptionBudget',
      namespace: budget.namespace,
      name: budget.name,
      covers: ({ labels, podLabels }) => matchesSelector({ matchLabels }, labels) || matchesSelector({ matchLabels }, podLabels),
    }),
  );
  const own = [...pods, ...zones].filter((budget) => budget.namespace === namespace);
  return new Map(own.map((budget) => [`${budget.kind} ${budget.name}`, budget]));
}

function zonesUnder(budget: Budget | undefined, group: GroupDefinition, { statefulSets }: Snapshot): readonly string[] {
  if (budget === undefined) return [];
  return group.zones.flatMap(({ name, statefulSet }) => {
    const set = statefulSets.find((one) => one.namespace === group.namespace && one.name === statefulSet);
    return set !== undefined && budget.covers(set) ? [name] : [];
  });
}

function objectOf(objects: readonly unknown[], budget: Budget | undefined): ObjectContent | undefined {
  if (budget === undefined) return undefined;
  return objects.find(
    (object): object is ObjectContent =>
      fieldAt(object, ['kind']) === budget.kind &&
      fieldAt(object, ['metadata', 'name']) === budget.name &&
      (fieldAt(object, ['metadata', 'namespace']) ?? 'default') === budget.namespace,
  );
}

/** `maxUnavailable: 1`, whichever of the amounts it names. */
function amountText(budget: ObjectContent): string {
  const fields = ['maxUnavailable', 'minAvailable', 'maxUnavailablePercentage'];
  const named = fields.flatMap((field) => {
    const amount = fieldAt(budget, ['spec', field]);
    return amount === undefined ? [] : [`${field}: ${String(amount)}`];
  });
  return named.length === 0 ? 'no amount' : named.join(', ');
}
