// Reads the field managers of a live object, and computes the result of a server-side apply from them.
import type { ObjectContent } from '../../../engine/diff/field-diff.ts';
import { clientSideManagers, managerEntries } from '../../../engine/diff/field-writers.ts';
import { fieldAt } from '../../../engine/observe/raw.ts';
import { canonicalJson } from '../../../policies/values/canonical-json.ts';
import { isRecord } from '../../../policies/values/is-record.ts';
import { listOf } from '../../../policies/values/list-of.ts';
import { tryParseJson } from '../../../policies/values/try-parse-json.ts';
import { fieldManager } from '../../connection.ts';

interface ManagedFields {
  readonly manager: string;
  /** A tree (FieldsV1): `f:NAME` is a field, `k:KEYS` and `v:VALUE` are list entries, `.` is the value itself. */
  readonly fields: unknown;
}

export function managedFields(live: unknown): readonly ManagedFields[] {
  return specEntriesOf(live).flatMap(({ manager, fieldsV1: fields }) => (typeof manager === 'string' ? [{ manager, fields }] : []));
}

function specEntriesOf(live: unknown): readonly ObjectContent[] {
  return managerEntries(live).filter(({ subresource }) => subresource !== 'status');
}

/** Reports whether the manager uses server-side apply: a field that its manifest no longer names is removed. */
function isApplier({ operation, subresource = '' }: ObjectContent): boolean {
  return operation === 'Apply' && subresource === '';
}

/** The default manager of `kubectl apply --server-side`. */
const serverSideManager = 'kubectl';

function isOfClientSideApply({ manager, operation, subresource = '' }: ObjectContent): boolean {
  return clientSideManagers.has(manager) && operation === 'Update' && subresource === '';
}

/** Reports whether the entry has the fields of a manifest that a person applied with kubectl, with or without --server-side. */
function isOfKubectlApply(entry: ObjectContent): boolean {
  return isOfClientSideApply(entry) || (isApplier(entry) && entry['manager'] === serverSideManager);
}

/** Returns the managers of client-side apply that own fields of the object. */
export function clientSideManagersOf(live: unknown): readonly string[] {
  return [
    ...new Set(
      managerEntries(live)
        .filter(isOfClientSideApply)
        .map(({ manager }) => String(manager)),
    ),
  ];
}

interface Adoption {
  /** The managers whose fields move to our manager. */
  readonly managers: readonly string[];
  /** The managed fields of the object, with the moved fields in our entry. */
  readonly managedFields: readonly ObjectContent[];
}

/**
 * Returns the managed fields after the fields of `kubectl apply` moved to our manager, as `UpgradeManagedFields` of client-go moves those of
 * client-side apply; undefined without such a field.
 */
export function adoptionOf(live: unknown): Adoption | undefined {
  const entries = managerEntries(live);
  const moving = entries.filter(isOfKubectlApply);
  const [first] = moving;
  if (first === undefined) return undefined;
  const own = entries.find(isOwn);
  const into = own ?? first;
  const joined = [into, ...moving].filter(({ apiVersion }) => apiVersion === into['apiVersion']);
  const entry = { ...into, manager: fieldManager, operation: 'Apply', fieldsV1: unionOf(joined) };
  return {
    managers: [...new Set(moving.map(({ manager }) => String(manager)))],
    managedFields: [...entries.filter((one) => one !== own && !moving.includes(one)), entry],
  };
}

/**
 * Returns managed fields in which the manager that applies the pod template owns the fields that our patch added; undefined without such a
 * field or manager. If the manager of our patch kept these fields, no manifest could remove them again.
 */
export function handedOver(before: unknown, patched: unknown): readonly ObjectContent[] | undefined {
  const entries = managerEntries(patched);
  const ours = entries.find((entry) => entry['manager'] === fieldManager && !isApplier(entry) && (entry['subresource'] ?? '') === '');
  if (ours === undefined) return undefined;
  const added = without(ours['fieldsV1'], unionOf(managerEntries(before)));
  const rest = without(ours['fieldsV1'], added);
  const manager = templateManager(before, rest);
  const applier = entries.find((entry) => isApplier(entry) && entry['manager'] === manager);
  if (added === undefined || applier === undefined || applier['apiVersion'] !== ours['apiVersion']) return undefined;
  return entries.flatMap((entry) => {
    if (entry === applier) return [{ ...entry, fieldsV1: union(entry['fieldsV1'], added) }];
    if (entry !== ours) return [entry];
    return rest === undefined ? [] : [{ ...entry, fieldsV1: rest }];
  });
}

/**
 * Returns the manager that applies the containers of the pod template; undefined without such a manager. Of several, chooses the one that
 * owns most of the fields in `changed`, then most fields of the template, then the newest: the others may no longer apply.
 */
export function templateManager(live: unknown, changed?: unknown): unknown {
  const templateOf = ({ fieldsV1 }: ObjectContent): unknown => fieldAt(fieldsV1, ['f:spec', 'f:template']);
  const ownedOf = ({ fieldsV1 }: ObjectContent): number => countOf(fieldsV1) - countOf(without(fieldsV1, changed));
  const appliers = managerEntries(live).filter(
    (entry) => isApplier(entry) && fieldAt(templateOf(entry), ['f:spec', 'f:containers']) !== undefined,
  );
  return appliers.toSorted((a, b) => ownedOf(a) - ownedOf(b) || countOf(templateOf(a)) - countOf(templateOf(b))).at(-1)?.['manager'];
}

function countOf(fields: unknown): number {
  const parts = isRecord(fields) ? Object.values(fields) : [];
  return parts.length === 0 ? Number(fields !== undefined) : parts.reduce<number>((sum, part) => sum + countOf(part), 0);
}

/** Returns the fields of the first tree that the second does not have; undefined without such a field. */
function without(fields: unknown, others: unknown): unknown {
  if (others === undefined || !isRecord(fields)) return fields;
  const left = Object.entries(fields)
    .map(([key, part]) => [key, without(part, fieldAt(others, [key]))] as const)
    .filter(([, part]) => part !== undefined);
  return left.length === 0 ? undefined : Object.fromEntries(left);
}

function isOwn(entry: ObjectContent): boolean {
  return entry['manager'] === fieldManager && isApplier(entry);
}

export function adopted<Live extends { readonly metadata?: unknown }>(live: Live, { managedFields: list }: Adoption): Live {
  return { ...live, metadata: { ...Object(live.metadata), managedFields: list } };
}

/** Returns the live object after our manager applies `asked`, without the defaults of the API server. Every conflict is forced. */
export function applied(live: ObjectContent | undefined, asked: ObjectContent): ObjectContent {
  if (live === undefined) return asked;
  const { ours, others } = ownersOf(live);
  return mergeMaps(live, asked, ours, others);
}

/** Returns the fields that an apply removes if the manifest omits them: only we own them. Fields of `kubectl apply` count as ours. */
export function removableFields(live: { readonly metadata?: unknown }): readonly string[] {
  const adoption = adoptionOf(live);
  const { ours, others } = ownersOf(adoption === undefined ? live : adopted(live, adoption));
  const walk = (mine: unknown, theirs: unknown, path: string): readonly string[] => {
    if (!isRecord(mine)) return [];
    const parts = Object.entries(mine);
    if (parts.length === 0) return theirs === undefined ? [path] : [];
    return parts.flatMap(([key, part]) => walk(part, fieldAt(theirs, [key]), `${path}/${key}`));
  };
  return walk(ours, others, '').toSorted();
}

interface KeptFields {
  readonly manager: string;
  /** True if --force-conflicts removes the fields. */
  readonly isOfKubectl: boolean;
  /** The stored object without the fields. */
  readonly without: ObjectContent;
}

/**
 * Returns the fields that our manifest omits and that stay because the manifest of another manager names them, by manager. Of other
 * managers than kubectl, only the fields that our earlier manifest named count: these managers share the object on purpose.
 */
export function keptFields(before: unknown, stored: ObjectContent): readonly KeptFields[] {
  const { ours } = ownersOf(stored);
  const dropped = without(ownersOf(before).ours, ours);
  const all = unionOf(specEntriesOf(stored));
  return managerEntries(stored).flatMap((entry): readonly KeptFields[] => {
    if (!isApplier(entry) || isOwn(entry)) return [];
    const { manager, fieldsV1: fields } = entry;
    const isOfKubectl = isOfKubectlApply(entry);
    const kept = isOfKubectl ? without(fields, ours) : without(fields, without(fields, dropped));
    const rest = kept === undefined ? undefined : withoutOurs(stored, kept, without(all, kept));
    return isRecord(rest) ? [{ manager: String(manager), isOfKubectl, without: rest }] : [];
  });
}

function ownersOf(live: unknown): { readonly ours: unknown; readonly others: unknown } {
  const entries = specEntriesOf(live);
  return { ours: unionOf(entries.filter(isOwn)), others: unionOf(entries.filter((entry) => !isOwn(entry))) };
}

function unionOf(entries: readonly ObjectContent[]): unknown {
  return entries.map(({ fieldsV1 }) => fieldsV1).reduce(union, undefined);
}

function union(left: unknown, right: unknown): unknown {
  if (!isRecord(left) || !isRecord(right)) return left ?? right;
  const keys = new Set([...Object.keys(left), ...Object.keys(right)]);
  return Object.fromEntries([...keys].map((key) => [key, union(left[key], right[key])]));
}

function merge(live: unknown, asked: unknown, ours: unknown, others: unknown): unknown {
  if (asked === undefined) return withoutOurs(live, ours, others);
  // A map or list is one value if it has an owner, but its parts have no owners.
  const known = union(ours, others);
  const isWhole = isRecord(known) && Object.keys(known).length === 0;
  if (isRecord(live) && isRecord(asked) && !isWhole) return mergeMaps(live, asked, ours, others);
  const identify = Array.isArray(live) && Array.isArray(asked) ? identityOf(known) : undefined;
  return identify === undefined ? asked : mergeLists({ live: listOf(live), asked: listOf(asked), ours, others, identify });
}

function mergeMaps(live: ObjectContent, asked: ObjectContent, ours: unknown, others: unknown): ObjectContent {
  return mapOf([...new Set([...Object.keys(live), ...Object.keys(asked)])], (key) =>
    merge(live[key], asked[key], fieldAt(ours, [`f:${key}`]), fieldAt(others, [`f:${key}`])),
  );
}

/** Returns the remaining parts of a value that the manifest omits: the parts of other managers. Undefined if no part remains. */
function withoutOurs(live: unknown, ours: unknown, others: unknown): unknown {
  if (ours === undefined) return live;
  if (others === undefined) return undefined;
  if (isRecord(live)) {
    return mapOf(Object.keys(live), (key) => withoutOurs(live[key], fieldAt(ours, [`f:${key}`]), fieldAt(others, [`f:${key}`])));
  }
  const identify = Array.isArray(live) ? identityOf(union(ours, others)) : undefined;
  return identify === undefined ? live : mergeLists({ live: listOf(live), asked: [], ours, others, identify });
}

function mapOf(keys: readonly string[], fieldOf: (key: string) => unknown): ObjectContent {
  return Object.fromEntries(keys.map((key) => [key, fieldOf(key)] as const).filter(([, value]) => value !== undefined));
}

type Identify = (entry: unknown) => string;

interface Lists {
  readonly live: readonly unknown[];
  readonly asked: readonly unknown[];
  readonly ours: unknown;
  readonly others: unknown;
  readonly identify: Identify;
}

/** Merges entry by entry. As in the API server, desired entries keep their order, and each other live entry follows its predecessor. */
function mergeLists({ live, asked, ours, others, identify }: Lists): readonly unknown[] {
  const [mine, theirs] = [entryFields(ours, identify), entryFields(others, identify)];
  const running = new Map(live.map((entry) => [identify(entry), entry]));
  const wanted = new Set(asked.map(identify));
  const done = new Set<string>();
  const result: unknown[] = [];
  let next = 0;
  const takeOthers = (): void => {
    for (; next < live.length; next += 1) {
      const id = identify(live[next]);
      if (wanted.has(id) && !done.has(id)) return;
      if (!wanted.has(id)) result.push(withoutOurs(live[next], mine.get(id), theirs.get(id)));
    }
  };
  for (const entry of asked) {
    takeOthers();
    const id = identify(entry);
    result.push(merge(running.get(id), entry, mine.get(id), theirs.get(id)));
    done.add(id);
  }
  takeOthers();
  return result.filter((entry) => entry !== undefined);
}

/** Returns how the owners identify the entries of a list: by keys or by value. Undefined for a list that is one value. */
function identityOf(known: unknown): Identify | undefined {
  const [first] = entryNames(known);
  if (first === undefined) return undefined;
  if (first.startsWith('v:')) return canonicalJson;
  const keys = Object.keys(Object(tryParseJson(first.slice(2)))).sort();
  // `protocol` is the only key with a default.
  return (entry) => canonicalJson(keys.map((key) => fieldAt(entry, [key]) ?? (key === 'protocol' ? 'TCP' : null)));
}

function entryNames(fields: unknown): readonly string[] {
  return Object.keys(isRecord(fields) ? fields : {}).filter((key) => /^[kv]:/.test(key));
}

function entryFields(fields: unknown, identify: Identify): ReadonlyMap<string, unknown> {
  return new Map(entryNames(fields).map((name) => [identify(tryParseJson(name.slice(2))), fieldAt(fields, [name])]));
}
