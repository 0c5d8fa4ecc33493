// Differences of two sets of manifests: groups by zones with equal changes, other objects one by one.
import { type FieldChange, fieldDiff, type ObjectContent } from '../engine/diff/field-diff.ts';
import { fieldAt } from '../engine/observe/raw.ts';
import type { GroupPlan, Plan, PlannedChange, Refusal } from '../engine/plan/document.ts';
import type { GroupDefinition } from '../policies/definition.ts';

/** Zones of a group with the changes that they share. */
export interface ZonePart {
  readonly zones: readonly string[];
  readonly changes: readonly PlannedChange[];
}

export interface GroupDifference {
  readonly namespace: string;
  readonly group: string;
  /** Parts of all zones first. */
  readonly parts: readonly ZonePart[];
  readonly refused: readonly Refusal[];
  readonly zones: GroupPlan['zones'];
}

export interface ObjectDifference {
  /** `kind namespace/name`. */
  readonly object: string;
  readonly operation: 'created' | 'deleted' | 'changed';
  /** Empty unless it is changed. */
  readonly changes: readonly FieldChange[];
}

export interface Difference {
  readonly groups: readonly GroupDifference[];
  /** Different objects that are not members of groups, by kind, namespace and name. */
  readonly objects: readonly ObjectDifference[];
}

/** Reports whether anything differs. */
export function isDifferent({ groups, objects }: Difference): boolean {
  return objects.length > 0 || groups.some((group) => group.parts.length > 0);
}

/** Returns the changes of the plan's groups, in parts. */
export function groupDifferences(plan: Plan): readonly GroupDifference[] {
  return plan.groups.map(({ namespace, group, changes, refused, zones }) => {
    const parts = new Map<string, { zones: readonly string[]; changes: PlannedChange[] }>();
    // Replica sources and budgets are among the other objects.
    for (const change of changes.filter(({ kind }) => kind !== 'source' && kind !== 'budget')) {
      const key = change.zones.join('\n');
      const part = parts.get(key) ?? { zones: change.zones, changes: [] };
      part.changes.push(change);
      parts.set(key, part);
    }
    return { namespace, group, refused, zones, parts: [...parts.values()].sort((a, b) => b.zones.length - a.zones.length) };
  });
}

/** Compares objects that are not members one by one; with a namespace, only its objects. */
export function objectDifferences(
  current: readonly ObjectContent[],
  desired: readonly ObjectContent[],
  { members, namespace }: { readonly members: ReadonlySet<string>; readonly namespace?: string | undefined },
): readonly ObjectDifference[] {
  const isMeant = (object: ObjectContent) => !members.has(nameOf(object)) && (namespace === undefined || namespaceOf(object) === namespace);
  const before = new Map(current.filter(isMeant).map((object) => [nameOf(object), object]));
  const after = new Map(desired.filter(isMeant).map((object) => [nameOf(object), object]));
  return [...new Set([...before.keys(), ...after.keys()])].sort().flatMap((object): readonly ObjectDifference[] => {
    const [old, next] = [before.get(object), after.get(object)];
    if (old === undefined) return [{ object, operation: 'created', changes: [] }];
    if (next === undefined) return [{ object, operation: 'deleted', changes: [] }];
    const changes = fieldDiff(old, next);
    return changes.length === 0 ? [] : [{ object, operation: 'changed', changes }];
  });
}

/** Returns the object names of the groups' StatefulSets. */
export function memberNames(groups: readonly GroupDefinition[]): ReadonlySet<string> {
  return new Set(groups.flatMap((group) => group.zones.map((zone) => `StatefulSet ${group.namespace}/${zone.statefulSet}`)));
}

/** `kind namespace/name`; objects that name no namespace are in `default`, as kubectl would put them. */
export function nameOf(object: ObjectContent): string {
  return `${String(object['kind'] ?? '')} ${namespaceOf(object)}/${String(fieldAt(object, ['metadata', 'name']) ?? '')}`;
}

function namespaceOf(object: ObjectContent): string {
  return String(fieldAt(object, ['metadata', 'namespace']) ?? 'default');
}
