// Tracks which manager owns each field of an object, and merges manifests by server-side apply. Only objects that were applied are tracked.
import { isObject, isSame, objectOf } from './json.ts';
import type { Actor, Json, ModelObject } from './request.ts';

/** An entry of `metadata.managedFields`. */
export interface ManagerEntry {
  readonly manager: string;
  readonly operation: string;
  readonly apiVersion: string;
  readonly time: string;
  readonly fieldsType: string;
  readonly fieldsV1: Json;
}

/** The owner of every field that the object had before its first apply, as the API server names it. */
const firstManager = 'before-first-apply';

export interface Manifest {
  readonly object: Json;
  /** The name of the tool that applies it. */
  readonly manager: string;
  /** True if the tool takes the fields of other managers. Otherwise a field with another value and another manager is a conflict. */
  readonly isForced: boolean;
}

/** The result of an apply: the object to store and its managers, or the managers that own fields with other values. */
type Applied = { readonly object: Json; readonly managedFields: readonly ManagerEntry[] } | { readonly conflicts: readonly string[] };

/** Merges a manifest into the stored object. A field that only this manager applied, and that the manifest leaves out, is removed. */
export function applied(before: ModelObject, { object: manifest, manager, isForced }: Manifest, time: string): Applied {
  const everything = [...leavesOf(before).keys()];
  const entries = entriesOf(before) ?? [entry({ manager: firstManager, operation: 'Update' }, before, everything, time)];
  const isOwn = (one: ManagerEntry): boolean => one.manager === manager && one.operation === 'Apply';
  const [live, wanted] = [leavesOf(before), leavesOf(manifest)];
  const isOther = (path: string): boolean => wanted.has(path) && !isSame(wanted.get(path), live.get(path));
  const others = entries.filter((one) => !isOwn(one));
  const conflicts = others.filter(({ fieldsV1 }) => pathsOf(fieldsV1).some(isOther));
  if (conflicts.length > 0 && !isForced) return { conflicts: conflicts.map((one) => one.manager) };
  const kept = new Set(others.flatMap(({ fieldsV1 }) => pathsOf(fieldsV1)));
  const known = entries.find(isOwn);
  const dropped = (known === undefined ? [] : pathsOf(known.fieldsV1)).filter((path) => !wanted.has(path) && !kept.has(path));
  const own = entry({ manager, operation: 'Apply' }, before, [...wanted.keys()], time);
  const isKnown = known !== undefined && isSame(known.fieldsV1, own.fieldsV1) && ![...wanted.keys()].some(isOther);
  const merged = dropped.reduce<unknown>((object, path) => without(object, path.split(separator)), mergedWith(before, manifest));
  const left = others.map((one) => reduced(one, isOther, time)).filter((one) => one !== undefined);
  return { object: objectOf(merged), managedFields: [...left, isKnown ? known : own] };
}

/**
 * Returns the managers after a write that is no apply: the writer owns each field that it changed. Undefined for an object that was never
 * applied.
 */
export function managersAfter(
  before: ModelObject,
  after: ModelObject,
  actor: Actor,
  time: () => string,
): readonly ManagerEntry[] | undefined {
  const entries = entriesOf(before);
  if (entries === undefined) return undefined;
  const [was, is] = [leavesOf(before), leavesOf(after)];
  const changed = new Set([...is.keys()].filter((path) => !was.has(path) || !isSame(was.get(path), is.get(path))));
  const isGone = (path: string): boolean => !is.has(path);
  if (changed.size === 0 && ![...was.keys()].some(isGone)) return entries;
  const manager = managerOf(actor);
  const isOwn = (one: ManagerEntry): boolean => one.manager === manager && one.operation === 'Update';
  const known = entries.filter(isOwn).flatMap(({ fieldsV1 }) => pathsOf(fieldsV1));
  const own = [...new Set([...known.filter((path) => !isGone(path)), ...changed])];
  const left = entries
    .filter((one) => !isOwn(one))
    .map((one) => reduced(one, (path) => changed.has(path) || isGone(path), time()))
    .filter((one) => one !== undefined);
  return [...left, ...(own.length === 0 ? [] : [entry({ manager, operation: 'Update' }, before, own, time())])];
}

/** Returns the manager of a write: the program of a service account, or kubectl. */
function managerOf({ user }: Actor): string {
  return user.startsWith('system:serviceaccount:') ? (user.split(':').at(-1) ?? user) : 'kubectl-edit';
}

function entriesOf({ metadata }: ModelObject): readonly ManagerEntry[] | undefined {
  return metadata['managedFields'] as readonly ManagerEntry[] | undefined;
}

type Owner = Pick<ManagerEntry, 'manager' | 'operation'>;

function entry({ manager, operation }: Owner, { apiVersion }: ModelObject, paths: readonly string[], time: string): ManagerEntry {
  return { manager, operation, apiVersion, time, fieldsType: 'FieldsV1', fieldsV1: treeOf(paths) };
}

/** Returns the entry without these fields; undefined if no field is left. */
function reduced(one: ManagerEntry, isLost: (path: string) => boolean, time: string): ManagerEntry | undefined {
  const paths = pathsOf(one.fieldsV1);
  const left = paths.filter((path) => !isLost(path));
  if (left.length === 0) return undefined;
  return left.length === paths.length ? one : { ...one, time, fieldsV1: treeOf(left) };
}

/** Separates the keys of a path of FieldsV1, which contain no line end. */
const separator = '\n';

/** Returns the values of the fields that managers own, by path: labels, annotations and the spec. */
function leavesOf(object: Json): ReadonlyMap<string, unknown> {
  const leaves = new Map<string, unknown>();
  const { labels, annotations } = objectOf(object['metadata']);
  collect({ metadata: { labels, annotations }, spec: object['spec'] }, [], leaves);
  return leaves;
}

function collect(value: unknown, path: readonly string[], leaves: Map<string, unknown>): void {
  const inner = value === undefined || value === null ? [] : innerOf(value);
  if (inner === undefined) leaves.set(path.join(separator), value);
  else for (const [key, member] of inner) collect(member, [...path, key], leaves);
}

/** Returns the members of a map, or of a list whose entries have names; undefined for a value that one manager owns as a whole. */
function innerOf(value: unknown): readonly (readonly [key: string, member: unknown])[] | undefined {
  if (Array.isArray(value)) return isNamedList(value) ? value.map((one) => [keyOf(one), one]) : undefined;
  if (!isObject(value)) return undefined;
  return Object.entries(value).map(([key, member]) => [`f:${key}`, member]);
}

function isNamedList(list: readonly unknown[]): boolean {
  return list.length > 0 && list.every((one) => typeof objectOf(one)['name'] === 'string');
}

function keyOf(one: unknown): string {
  return `k:${JSON.stringify({ name: objectOf(one)['name'] })}`;
}

function treeOf(paths: readonly string[]): Json {
  const tree: Record<string, unknown> = {};
  for (const path of [...paths].sort()) {
    let node = tree;
    for (const key of path.split(separator)) {
      // The entry of a list belongs to each manager of one of its fields.
      const next = (node[key] ?? (key.startsWith('k:') ? { '.': {} } : {})) as Record<string, unknown>;
      node[key] = next;
      node = next;
    }
  }
  return tree;
}

function pathsOf(tree: Json, path: readonly string[] = []): readonly string[] {
  return Object.entries(tree).flatMap(([key, inner]) => {
    if (key === '.') return [];
    const own = [...path, key];
    return Object.keys(objectOf(inner)).length === 0 ? [own.join(separator)] : pathsOf(objectOf(inner), own);
  });
}

function mergedWith(live: unknown, manifest: unknown): unknown {
  if (Array.isArray(manifest) && Array.isArray(live) && isNamedList(manifest) && isNamedList(live)) {
    const names = live.map(keyOf);
    const added = manifest.filter((one) => !names.includes(keyOf(one)));
    return [...live.map((one, index) => mergedWith(one, manifest.find((other) => keyOf(other) === names[index]) ?? one)), ...added];
  }
  if (!isObject(manifest) || !isObject(live)) return manifest;
  const merged: Record<string, unknown> = { ...live };
  for (const [key, value] of Object.entries(manifest)) merged[key] = mergedWith(live[key], value);
  return merged;
}

/** Removes the field at a path. */
function without(value: unknown, [key = '', ...rest]: readonly string[]): unknown {
  if (Array.isArray(value)) return value.map((one) => (keyOf(one) === key ? without(one, rest) : one));
  const name = key.slice(2);
  const object = objectOf(value);
  if (!(name in object)) return value;
  const { [name]: member, ...others } = object;
  return rest.length === 0 ? others : { ...others, [name]: without(member, rest) };
}
