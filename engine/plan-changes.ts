// The differences between what runs and what is asked for, one line for zones that change alike.
import type { GroupDefinition } from '../policies/definition.ts';
import { type FieldChange, fieldDiff, type ObjectContent } from './field-diff.ts';
import { canonicalJson } from './hash.ts';
import type { PlannedChange, Refusal } from './plan-document.ts';
import { fieldAt } from './raw.ts';

/** The changes of all members of a group, in the order of the zones; changes that several zones share stand once. */
export function plannedChanges(
  group: GroupDefinition,
  current: readonly unknown[],
  desired: readonly unknown[],
  refused: readonly Refusal[],
): readonly PlannedChange[] {
  const byText = new Map<string, PlannedChange>();
  for (const zone of group.zones) {
    const before = memberNamed(current, group.namespace, zone.statefulSet);
    const after = memberNamed(desired, group.namespace, zone.statefulSet);
    const isRefused = refused.some((refusal) => refusal.zone === zone.name);
    for (const change of changesOf(before, after, isRefused)) {
      const key = canonicalJson(change);
      const known = byText.get(key);
      byText.set(key, { ...change, zones: [...(known?.zones ?? []), zone.name] });
    }
  }
  return [...byText.values()];
}

function changesOf(
  before: ObjectContent | undefined,
  after: ObjectContent | undefined,
  isRefused: boolean,
): readonly Omit<PlannedChange, 'zones'>[] {
  if (before === undefined && after === undefined) return [];
  if (before === undefined) return [{ kind: 'created', field: 'metadata.name', consequence: isRefused ? 'refused' : 'scaleUp' }];
  if (after === undefined) return [{ kind: 'deleted', field: 'metadata.name', consequence: isRefused ? 'refused' : 'none' }];
  return (
    fieldDiff(before, after)
      // A manifest that leaves replicas to others does not ask for a change of them.
      .filter((change) => change.path !== 'spec.replicas' || fieldAt(after, ['spec', 'replicas']) !== undefined)
      .map((change) => plannedChange(change, isRefused))
  );
}

function plannedChange(change: FieldChange, isRefused: boolean): Omit<PlannedChange, 'zones'> {
  const kind = change.path.startsWith('spec.template') ? 'template' : change.path === 'spec.replicas' ? 'replicas' : 'settings';
  return {
    kind,
    field: change.path,
    ...(change.before === undefined ? {} : { before: change.before }),
    ...(change.after === undefined ? {} : { after: change.after }),
    consequence: isRefused ? 'refused' : change.consequence,
  };
}

function memberNamed(objects: readonly unknown[], namespace: string, name: string): ObjectContent | undefined {
  return objects.find(
    (object): object is ObjectContent =>
      fieldAt(object, ['kind']) === 'StatefulSet' &&
      fieldAt(object, ['metadata', 'name']) === name &&
      (fieldAt(object, ['metadata', 'namespace']) ?? 'default') === namespace,
  );
}
