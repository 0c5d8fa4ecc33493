// Computes the differences between two sets of manifests, and between the zones of a group, for diff and plan.
import { comparedVersions, type FieldChange, fieldDiff, type ObjectContent } from '../engine/diff/field-diff.ts';
import { driftedFields, type FieldWriter, hasField, managerEntries, writersOf } from '../engine/diff/field-writers.ts';
import { fieldAt, objectKey } from '../engine/observe/raw.ts';
import { comparedMember, manifestOf } from '../engine/plan/changes.ts';
import type { GroupPlan, ObjectChange, Plan, PlannedChange, Refusal } from '../engine/plan/document.ts';
import type { GroupDefinition, ZoneDefinition } from '../policies/definition.ts';
import { canonicalJson } from '../policies/values/canonical-json.ts';
import { defined } from '../policies/values/defined.ts';
import { isRecord } from '../policies/values/is-record.ts';

/** A field manager that owns the live value of a changed field. Without `manager`, no manager owns it. */
export interface ValueWriter extends Partial<FieldWriter> {
  /** The zones with this writer; absent for an object outside of groups. */
  readonly zones?: readonly string[];
}

/** The writers of the live value; absent without a live value, and for objects without managed fields. */
interface Written {
  readonly writers?: readonly ValueWriter[];
}

export interface ZonePart {
  readonly zones: readonly string[];
  readonly changes: readonly (PlannedChange & Written)[];
}

/** A field that another manager wrote and that the manifests do not contain: an apply keeps it. */
export interface KeptField {
  readonly field: string;
  readonly manager: string;
  readonly zones: readonly string[];
  readonly atMs?: number;
}

export interface GroupDifference {
  readonly namespace: string;
  readonly group: string;
  readonly parts: readonly ZonePart[];
  /** Absent without such fields. */
  readonly kept?: readonly KeptField[];
  readonly refused: readonly Refusal[];
  readonly permitted?: GroupPlan['permitted'];
  readonly zones: GroupPlan['zones'];
  readonly waits: GroupPlan['waits'];
  readonly stops?: NonNullable<GroupPlan['stops']>;
}

export interface ObjectDifference {
  /** `kind namespace/name`. */
  readonly object: string;
  readonly operation: 'created' | 'deleted' | 'changed';
  /** The changed fields; empty for a created or deleted object. */
  readonly changes: readonly (FieldChange & Written)[];
}

export interface Difference {
  readonly groups: readonly GroupDifference[];
  readonly denied?: Plan['denied'];
  /** The differences of objects that are not members of groups, sorted by kind, namespace and name. */
  readonly objects: readonly ObjectDifference[];
}

export function isDifferent({ groups, objects }: Difference): boolean {
  return objects.length > 0 || groups.some((group) => group.parts.length > 0);
}

/** The running objects, and the manifests as they were written. */
interface Sources {
  readonly current: readonly unknown[];
  readonly written?: readonly unknown[];
}

/** Returns the changes of each group in the plan. Changes of the same zones form one part. */
export function groupDifferences(plan: Plan, sources: Sources): readonly GroupDifference[] {
  return plan.groups.map(({ namespace, group, changes, refused, permitted, zones, waits, stops }) => {
    const parts = new Map<string, { zones: readonly string[]; changes: (PlannedChange & Written)[] }>();
    const members = zones.map(({ zone, statefulSet }) => {
      const find = (objects: readonly unknown[] = []) => manifestOf(objects, 'StatefulSet', namespace, statefulSet);
      return { zone, live: find(sources.current), manifest: find(sources.written) };
    });
    const kept = keptFields(members);
    // Replica sources and budgets are compared as objects outside of groups.
    for (const change of changes.filter(isOfMember)) {
      const key = change.zones.join('\n');
      const part = parts.get(key) ?? { zones: change.zones, changes: [] };
      part.changes.push({ ...change, ...writtenIn(change, members) });
      parts.set(key, part);
    }
    return {
      namespace,
      group,
      refused,
      ...defined({ permitted, stops }),
      ...(kept.length === 0 ? {} : { kept }),
      zones,
      waits,
      parts: [...parts.values()].sort((a, b) => b.zones.length - a.zones.length),
    };
  });
}

/** Reports whether a StatefulSet differs. A field that differs only in pods is no difference of the objects. */
function isOfMember({ kind }: PlannedChange): boolean {
  return kind !== 'source' && kind !== 'budget' && kind !== 'pods';
}

interface Member {
  readonly zone: string;
  readonly live: ObjectContent | undefined;
  readonly manifest: ObjectContent | undefined;
}

function writtenIn({ zones, field, before, after }: PlannedChange, members: readonly Member[]): Written {
  if (before === undefined && after !== undefined) return {};
  const writers = new Map<string, ValueWriter>();
  for (const { zone, live } of members) {
    if (!zones.includes(zone) || managerEntries(live).length === 0) continue;
    for (const owner of ownersOrNone(writersOf(live, field))) {
      const key = canonicalJson([owner.manager, owner.operation, owner.subresource]);
      const known = writers.get(key);
      const latest = (known?.atMs ?? 0) > (owner.atMs ?? 0) ? known : owner;
      writers.set(key, { ...owner, ...defined({ atMs: latest?.atMs }), zones: [...(known?.zones ?? []), zone] });
    }
  }
  return writers.size === 0 ? {} : { writers: [...writers.values()] };
}

function ownersOrNone(owners: readonly FieldWriter[]): readonly Partial<FieldWriter>[] {
  return owners.length === 0 ? [{}] : owners;
}

function keptFields(members: readonly Member[]): readonly KeptField[] {
  const kept = new Map<string, KeptField>();
  for (const { zone, live, manifest } of members) {
    if (manifest === undefined) continue;
    for (const { field, manager, atMs } of driftedFields(live)) {
      if (hasField(manifest, field)) continue;
      const key = canonicalJson([field, manager]);
      const known = kept.get(key);
      const latestMs = Math.max(known?.atMs ?? 0, atMs ?? 0);
      kept.set(key, { field, manager, zones: [...(known?.zones ?? []), zone], ...(latestMs === 0 ? {} : { atMs: latestMs }) });
    }
  }
  return [...kept.values()];
}

/** Compares the objects that are not members of groups. With a namespace, compares only the objects in it. */
export function objectDifferences(
  current: readonly ObjectContent[],
  desired: readonly ObjectContent[],
  { members, namespace }: { readonly members: ReadonlySet<string>; readonly namespace?: string | undefined },
): readonly ObjectDifference[] {
  const pairs = objectPairs(current, desired, namespace).filter(({ object }) => !members.has(object));
  return pairs.flatMap(({ object, before, after }): readonly ObjectDifference[] => {
    if (before === undefined) return [{ object, operation: 'created', changes: [] }];
    if (after === undefined) return [{ object, operation: 'deleted', changes: [] }];
    const hasManagers = managerEntries(before).length > 0;
    const changes = fieldDiff(before, after).map((change) =>
      hasManagers && change.operation !== 'add' ? { ...change, writers: ownersOrNone(writersOf(before, change.path)) } : change,
    );
    return changes.length === 0 ? [] : [{ object, operation: 'changed', changes }];
  });
}

type Versions = Readonly<Record<'current' | 'desired', readonly ObjectContent[]>>;

/** Returns the changes of our objects, and of other objects that are not members. Without `members`, omits the other objects. */
export function objectChanges(
  ours: Versions,
  others: Versions,
  members?: ReadonlySet<string>,
): Pick<Plan, 'policyChanges' | 'otherChanges'> {
  // Manifests need not contain every object of the cluster, which has a uid, and `apply` deletes no object.
  const stored = new Set(others.current.filter((one) => fieldAt(one, ['metadata', 'uid']) !== undefined).map(nameOf));
  const otherChanges = members && changesOf(others, members).filter((one) => one.operation !== 'deleted' || !stored.has(one.object));
  return { policyChanges: changesOf(ours, new Set()), ...defined({ otherChanges }) };
}

function changesOf({ current, desired }: Versions, members: ReadonlySet<string>): readonly ObjectChange[] {
  return objectDifferences(current, desired, { members }).map(({ object, operation, changes }) => ({
    object,
    operation,
    fields: changes.map(({ path }) => path),
  }));
}

/** Both versions of an object, at least one of them present. */
export interface ObjectPair {
  /** `kind namespace/name`. */
  readonly object: string;
  readonly before?: ObjectContent | undefined;
  readonly after?: ObjectContent | undefined;
}

function objectPairs(
  current: readonly ObjectContent[],
  desired: readonly ObjectContent[],
  namespace: string | undefined,
): readonly ObjectPair[] {
  const isCompared = (object: ObjectContent) => namespace === undefined || objectKey(object).startsWith(`${namespace}/`);
  const before = new Map(current.filter(isCompared).map((object) => [nameOf(object), object]));
  const after = new Map(desired.filter(isCompared).map((object) => [nameOf(object), object]));
  const names = [...new Set([...before.keys(), ...after.keys()])].sort();
  return names.map((object) => ({ object, before: before.get(object), after: after.get(object) }));
}

/** Returns both versions of each object for `diff -o external`, reduced to the fields that the other formats of diff compare. */
export function comparedPairs(
  current: readonly ObjectContent[],
  desired: readonly ObjectContent[],
  { members, namespace }: { readonly members: ReadonlySet<string>; readonly namespace?: string | undefined },
): readonly ObjectPair[] {
  return objectPairs(current, desired, namespace).map(({ object, before, after }) => {
    const running = before !== undefined && after !== undefined && members.has(object) ? comparedMember(before, after) : before;
    const [old, next] = comparedVersions(running ?? {}, after ?? {});
    return { object, before: before && old, after: after && next };
  });
}

export function memberNames(groups: readonly GroupDefinition[]): ReadonlySet<string> {
  return new Set(groups.flatMap((group) => group.zones.map((zone) => `StatefulSet ${group.namespace}/${zone.statefulSet}`)));
}

/** Returns `kind namespace/name`. As in kubectl, an object without a namespace is in `default`. */
export function nameOf(object: ObjectContent): string {
  return `${String(object['kind'] ?? '')} ${objectKey(object)}`;
}

export interface SiblingDifference {
  readonly zone: string;
  /** The first zone of the group that has a StatefulSet. */
  readonly comparedWith: string;
  readonly changes: readonly FieldChange[];
}

export interface GroupSiblings {
  readonly namespace: string;
  readonly group: string;
  readonly siblings: readonly SiblingDifference[];
  /** The fields that differ in every zone, such as a rack: settings of the zones, not drift. */
  readonly perZone: readonly string[];
  /** The zones without a StatefulSet among the manifests. */
  readonly missing: readonly string[];
}

type ZoneNames = Pick<ZoneDefinition, 'name' | 'statefulSet'>;

interface ZonesOfGroup extends Pick<GroupDefinition, 'namespace' | 'name'> {
  readonly zones: readonly ZoneNames[];
}

/** Compares the members of each group with its first zone. */
export function siblingDifferences(objects: readonly ObjectContent[], groups: readonly ZonesOfGroup[]): readonly GroupSiblings[] {
  const byName = new Map(objects.map((object) => [nameOf(object), object]));
  return groups.map((group) => {
    const found = group.zones.map((zone) => ({ zone, object: byName.get(`StatefulSet ${group.namespace}/${zone.statefulSet}`) }));
    const running = found.flatMap(({ zone, object }) => (object === undefined ? [] : [{ zone, object }]));
    const present = running.map(({ zone, object }) => {
      const others = running.map((one) => one.object).filter((other) => other !== object);
      const mark = marking(zone, group.zones);
      return { zone, object: mapTexts(object, others, (text, same) => (same.every((other) => other === text) ? text : mark(text))) };
    });
    const [first, ...rest] = present;
    const compared =
      first === undefined
        ? []
        : rest.map(({ zone, object }) => ({ zone, changes: fieldDiff(first.object, object).filter((change) => !isExpected(change)) }));
    const perZone = fieldsPerZone(compared.map(({ changes }) => changes));
    const isDrift = (change: FieldChange) => !perZone.includes(change.path);
    return {
      namespace: group.namespace,
      group: group.name,
      siblings: compared
        .map(({ zone, changes }) => ({
          zone: zone.name,
          comparedWith: first?.zone.name ?? '',
          changes: changes.filter(isDrift).map((change) => withNames(change, zone)),
        }))
        .filter(({ changes }) => changes.length > 0),
      perZone: first === undefined ? [] : perZone.map((path) => withNames(path, first.zone)),
      missing: found.filter(({ object }) => object === undefined).map(({ zone }) => zone.name),
    };
  });
}

/** Returns the fields with a different value in every zone. Needs at least three zones. */
function fieldsPerZone(compared: readonly (readonly FieldChange[])[]): readonly string[] {
  if (compared.length < 2) return [];
  const values = new Map<string, Set<string>>();
  for (const { path, after } of compared.flat()) values.set(path, (values.get(path) ?? new Set()).add(canonicalJson(after)));
  return [...values].filter(([, seen]) => seen.size === compared.length).map(([path]) => path);
}

/** Reports whether a difference between zones is expected: rollout labels and annotations, omitted replicas, or scheduling. */
function isExpected(change: FieldChange): boolean {
  if (change.path === 'spec.replicas') return change.operation !== 'change';
  return /^metadata\.(?:labels|annotations)[.[](?:grafana\.com\/)?rollout-|^spec\.template\.spec\.(?:affinity|nodeSelector|topologySpreadConstraints)\b/.test(
    change.path,
  );
}

/** The placeholders for the names of a zone: private-use characters, which no manifest contains. */
const marks = { statefulSet: '\ue000', zone: '\ue001' };

/** Returns a function that replaces the names of a zone by placeholders, but only whole words that are no part of another zone's name. */
function marking({ name, statefulSet }: ZoneNames, zones: readonly ZoneNames[]): (text: string) => string {
  const names = zones.flatMap((zone) => [zone.statefulSet, `zone-${zone.name}`]).sort((a, b) => b.length - a.length);
  const words = new RegExp(`(?<![A-Za-z0-9])(?:${names.map(escaped).join('|')})(?![A-Za-z0-9])`, 'g');
  const mark = (word: string) => (word === statefulSet ? marks.statefulSet : word === `zone-${name}` ? `zone-${marks.zone}` : word);
  const value = new RegExp(`(^|=)${escaped(name)}$`);
  return (text) => text.replace(value, `$1${marks.zone}`).replace(words, mark);
}

/** Replaces the placeholders by the names of this zone. Values of the first zone are then shown with the names of this zone. */
function withNames<Value>(value: Value, { name, statefulSet }: ZoneNames): Value {
  return mapTexts(value, [], (text) => text.replaceAll(marks.statefulSet, statefulSet).replaceAll(marks.zone, name));
}

/** Replaces every string in the value. `replace` also receives the values at the same path in `others`. */
function mapTexts<Value>(value: Value, others: readonly unknown[], replace: Replace): Value;
function mapTexts(value: unknown, others: readonly unknown[], replace: Replace): unknown {
  if (typeof value === 'string') return replace(value, others);
  const partOf = (part: unknown, valueIn: (other: unknown) => unknown): unknown => mapTexts(part, others.map(valueIn), replace);
  if (Array.isArray(value)) return value.map((entry, index) => partOf(entry, (other) => (Array.isArray(other) ? other[index] : undefined)));
  if (!isRecord(value)) return value;
  const entries = Object.entries(value).map(([key, part]) => [key, partOf(part, (other) => (isRecord(other) ? other[key] : undefined))]);
  return Object.fromEntries(entries);
}

type Replace = (text: string, others: readonly unknown[]) => string;

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
