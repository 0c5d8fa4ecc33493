// Differences of two sets of manifests, and of the zones of a group.
import { type FieldChange, fieldDiff, type ObjectContent } from '../engine/diff/field-diff.ts';
import { fieldAt, objectKey } from '../engine/observe/raw.ts';
import type { GroupPlan, Plan, PlannedChange, Refusal } from '../engine/plan/document.ts';
import type { GroupDefinition, ZoneDefinition } from '../policies/definition.ts';
import { canonicalJson } from '../policies/values/canonical-json.ts';

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
  const isCompared = (object: ObjectContent) =>
    !members.has(nameOf(object)) && (namespace === undefined || namespaceOf(object) === namespace);
  const before = new Map(current.filter(isCompared).map((object) => [nameOf(object), object]));
  const after = new Map(desired.filter(isCompared).map((object) => [nameOf(object), object]));
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
  return `${String(object['kind'] ?? '')} ${objectKey(object)}`;
}

function namespaceOf(object: ObjectContent): string {
  return String(fieldAt(object, ['metadata', 'namespace']) ?? 'default');
}

export interface SiblingDifference {
  readonly zone: string;
  /** The first zone of the group with a StatefulSet. */
  readonly comparedWith: string;
  readonly changes: readonly FieldChange[];
}

export interface GroupSiblings {
  readonly namespace: string;
  readonly group: string;
  /** Zones that differ; the other zones are alike. */
  readonly siblings: readonly SiblingDifference[];
  /** Fields that differ in every zone, such as a rack: settings of the zones, not drift. */
  readonly perZone: readonly string[];
  /** Zones without a StatefulSet among the manifests. */
  readonly missing: readonly string[];
}

/** Compares the members of each group with its first zone. */
export function siblingDifferences(objects: readonly ObjectContent[], groups: readonly GroupDefinition[]): readonly GroupSiblings[] {
  const byName = new Map(objects.map((object) => [nameOf(object), object]));
  return groups.map((group) => {
    const found = group.zones.map((zone) => ({ zone, object: byName.get(`StatefulSet ${group.namespace}/${zone.statefulSet}`) }));
    const present = found.flatMap(({ zone, object }) => (object === undefined ? [] : [{ zone, object: withoutZone(object, zone) }]));
    const [first, ...rest] = present;
    const compared = rest.map(({ zone, object }) => ({
      zone: zone.name,
      comparedWith: first?.zone.name ?? '',
      changes: first === undefined ? [] : fieldDiff(first.object, object).filter((change) => !isExpected(change)),
    }));
    const perZone = fieldsPerZone(compared);
    return {
      namespace: group.namespace,
      group: group.name,
      siblings: compared
        .map((sibling) => ({ ...sibling, changes: sibling.changes.filter(({ path }) => !perZone.includes(path)) }))
        .filter(({ changes }) => changes.length > 0),
      perZone,
      missing: found.filter(({ object }) => object === undefined).map(({ zone }) => zone.name),
    };
  });
}

/** Returns the fields with a different value in every zone. Needs at least three zones. */
function fieldsPerZone(compared: readonly SiblingDifference[]): readonly string[] {
  if (compared.length < 2) return [];
  const values = new Map<string, Set<string>>();
  for (const { changes } of compared) {
    for (const { path, after } of changes) values.set(path, (values.get(path) ?? new Set()).add(canonicalJson(after)));
  }
  return [...values].filter(([, seen]) => seen.size === compared.length).map(([path]) => path);
}

/** Reports expected differences: the place in the chain of leaders, omitted replicas, and scheduling to the zone. */
function isExpected(change: FieldChange): boolean {
  if (change.path === 'spec.replicas') return change.operation !== 'change';
  return /^metadata\.(?:labels|annotations)[.[](?:grafana\.com\/)?rollout-|^spec\.template\.spec\.(?:affinity|nodeSelector|topologySpreadConstraints)\b/.test(
    change.path,
  );
}

/** Replaces the names of the zone by placeholders, so that only other differences are left. */
function withoutZone(object: ObjectContent, zone: ZoneDefinition): ObjectContent {
  const name = new RegExp(`(?<![a-z0-9])zone-${escaped(zone.name)}(?![a-z0-9])`, 'g');
  const replaced = (text: string) =>
    text === zone.name ? 'ZONE' : text.replaceAll(zone.statefulSet, 'STATEFULSET').replace(name, 'zone-ZONE');
  const walk = (value: unknown): unknown => {
    if (typeof value === 'string') return replaced(value);
    if (Array.isArray(value)) return value.map(walk);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, walk(part)]));
  };
  return Object.fromEntries(Object.entries(object).map(([key, part]) => [key, walk(part)]));
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
