// The changed disruption budgets of a group. A changed budget restarts no pod, but limits how many pods may be replaced.
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
  /** The zones whose pods the budget covers. */
  readonly zones: ReadonlySet<string>;
  /** The manifest; undefined if the input does not contain it. */
  readonly object: ObjectContent | undefined;
}

/** Returns the changed budgets of the group's namespace, by kind and name, with the zones whose pods they cover before or after. */
export function budgetChanges(group: GroupDefinition, compared: ComparedBudgets): readonly PlannedChange[] {
  const before = budgetsOf(compared.before, compared.current, group);
  const after = budgetsOf(compared.after, compared.desired, group);
  return [...new Set([...before.keys(), ...after.keys()])].sort().flatMap((title): readonly PlannedChange[] => {
    const [old, next] = [before.get(title), after.get(title)];
    const zones = group.zones.map(({ name }) => name).filter((name) => old?.zones.has(name) || next?.zones.has(name));
    if (zones.length === 0) return [];
    return amountChanges(title, old, next).map((change) => ({ kind: 'budget', zones, consequence: 'none', ...change }));
  });
}

function amountChanges(
  title: string,
  old: Budget | undefined,
  next: Budget | undefined,
): readonly Omit<PlannedChange, 'kind' | 'zones' | 'consequence'>[] {
  if (old === undefined) return next?.object === undefined ? [] : [{ field: title, after: amountText(next.object) }];
  if (next === undefined) return old.object === undefined ? [] : [{ field: title, before: amountText(old.object) }];
  if (old.object === undefined || next.object === undefined) return [];
  return fieldDiff(old.object, next.object)
    .filter(({ path }) => path.startsWith('spec'))
    .map(({ path, before, after }) => ({
      field: `${title} ${path}`,
      ...(before === undefined ? {} : { before }),
      ...(after === undefined ? {} : { after }),
    }));
}

/** Returns the budgets of the group's namespace by kind and name, without the kinds that could not be read. */
function budgetsOf(snapshot: Snapshot, objects: readonly unknown[], group: GroupDefinition): ReadonlyMap<string, Budget> {
  const { podBudgets, zoneBudgets, statefulSets } = snapshot;
  const members = group.zones.flatMap((zone) => {
    const set = statefulSets.find(({ namespace, name }) => namespace === group.namespace && name === zone.statefulSet);
    return set === undefined ? [] : [{ zone: zone.name, set }];
  });
  const entry = (kind: string, name: string, covers: (set: StatefulSetView) => boolean): [string, Budget] => {
    const zones = new Set(members.filter(({ set }) => covers(set)).map(({ zone }) => zone));
    return [`${kind} ${name}`, { zones, object: manifestOf(objects, kind, group.namespace, name) }];
  };
  const pods = (isUnknown(podBudgets) ? [] : podBudgets)
    .filter(({ namespace }) => namespace === group.namespace)
    .map(({ name, selector }) => entry('PodDisruptionBudget', name, ({ podLabels }) => matchesSelector(selector, podLabels)));
  const zones = (isUnknown(zoneBudgets) ? [] : zoneBudgets)
    .filter(({ namespace }) => namespace === group.namespace)
    .map(({ name, matchLabels }) =>
      entry(
        'ZoneAwarePodDisruptionBudget',
        name,
        ({ labels, podLabels }) => matchesSelector({ matchLabels }, labels) || matchesSelector({ matchLabels }, podLabels),
      ),
    );
  return new Map([...pods, ...zones]);
}

function manifestOf(objects: readonly unknown[], kind: string, namespace: string, name: string): ObjectContent | undefined {
  return objects.find(
    (object): object is ObjectContent =>
      fieldAt(object, ['kind']) === kind &&
      fieldAt(object, ['metadata', 'name']) === name &&
      (fieldAt(object, ['metadata', 'namespace']) ?? 'default') === namespace,
  );
}

/** Returns the amounts that a budget sets, such as `maxUnavailable: 1`. */
function amountText(budget: ObjectContent): string {
  const fields = ['maxUnavailable', 'minAvailable', 'maxUnavailablePercentage'];
  const named = fields.flatMap((field) => {
    const amount = fieldAt(budget, ['spec', field]);
    return amount === undefined ? [] : [`${field}: ${String(amount)}`];
  });
  return named.length === 0 ? 'no amount' : named.join(', ');
}
