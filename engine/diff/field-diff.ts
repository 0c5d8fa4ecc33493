// Compares two versions of a Kubernetes object field by field, and finds the effect of each change on pods, for plans.

import { valueAt } from '../../policies/schema/schema-walk.ts';
import { canonicalJson, isSameValue } from '../../policies/values/canonical-json.ts';
import { hashText } from '../../policies/values/hash.ts';
import { isRecord } from '../../policies/values/is-record.ts';
import { masked, withoutFlagValues } from './field-secrets.ts';

type Consequence = 'restart' | 'scaleUp' | 'scaleDown' | 'none' | 'refused';

/** One changed field. Its secret values are masked. */
export interface FieldChange {
  /** The path for users, such as `spec.template.spec.containers[mimir].image`. Brackets contain list keys and unusual map keys. */
  readonly path: string;
  /** `reorder`: a list has the same entries in another order, and `before` and `after` are absent. */
  readonly operation: 'add' | 'remove' | 'change' | 'reorder';
  /** The old value. For lists that are compared as sets (`args`): the removed entries. */
  readonly before?: unknown;
  /** The new value. For lists that are compared as sets: the added entries. */
  readonly after?: unknown;
  readonly consequence: Consequence;
}

export type ObjectContent = Readonly<Record<string, unknown>>;

/** The position in the object: `path` for users, and `pattern` for the tables of this file (without list keys). */
interface Place {
  readonly path: string;
  readonly pattern: string;
  readonly key: string;
}

interface Walk {
  readonly kind: string;
  readonly changes: FieldChange[];
}

/** Returns the differences of two versions of an object. Skips status, server fields and defaults. `1024Mi` equals `1Gi`. */
export function fieldDiff(before: ObjectContent, after: ObjectContent): readonly FieldChange[] {
  const walk: Walk = { kind: String(after['kind'] ?? before['kind'] ?? ''), changes: [] };
  // Unchanged files share their values, so most parts of two revisions are one object.
  if (before !== after) compareMaps(walk, { path: '', pattern: '', key: '' }, before, after);
  return walk.changes;
}

function compareMaps(walk: Walk, place: Place, before: ObjectContent, after: ObjectContent): void {
  const keys = [...Object.keys(after), ...Object.keys(before)].filter((key) => before[key] !== after[key]);
  for (const [field, old, next] of comparedFields(place, before, after, keys)) compare(walk, field, old, next);
}

/** Returns the part of a path for a field of a map: `.image`, or in brackets for an unusual key. */
export function fieldStep(key: string): string {
  return /^[\w-]+$/.test(key) ? `.${key}` : `[${key}]`;
}

type ComparedField = readonly [place: Place, before: unknown, after: unknown];

/** Returns the compared fields of two maps with both values, in the order of `keys`. A field that only one map omits has its default. */
function comparedFields(place: Place, before: ObjectContent, after: ObjectContent, keys: readonly string[]): readonly ComparedField[] {
  return [...new Set(keys)].flatMap((key): readonly ComparedField[] => {
    const pattern = place.pattern === '' ? key : `${place.pattern}.${key}`;
    if (isServerField(pattern)) return [];
    const path = place.path === '' ? key : place.path + fieldStep(key);
    const [old, next] = [before[key], after[key]];
    if (isAbsent(old) === isAbsent(next)) return [[{ path, pattern, key }, old, next]];
    const defaultValue = fieldDefault(pattern, { ...before, ...after });
    return [[{ path, pattern, key }, isAbsent(old) ? defaultValue : old, isAbsent(next) ? defaultValue : next]];
  });
}

/** Two versions of a value; undefined where a version does not have it. */
type Pair<Value> = readonly [before: Value, after: Value];

/**
 * Returns `after` as the API server stores it when an apply removes fields of a workload: with the known default of each field that `before`
 * has and `after` omits. Fields of list entries and fields without a known default stay omitted.
 */
export function withDefaults(before: ObjectContent, after: ObjectContent): ObjectContent {
  return kindsWithPods.has(String(after['kind'])) ? defaultedMap('', before, after) : after;
}

function defaultedMap(pattern: string, before: ObjectContent, after: ObjectContent): ObjectContent {
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const fields = keys.map((key): readonly [string, unknown] => {
    const field = pattern === '' ? key : `${pattern}.${key}`;
    const [old, next] = [before[key], after[key]];
    if (isRecord(old) && isRecord(next)) return [key, defaultedMap(field, old, next)];
    return [key, isAbsent(next) ? removedField(field, old, { ...before, ...after }) : next];
  });
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined));
}

/** Returns the value that the API server stores for a removed field; undefined without a known default. */
function removedField(pattern: string, old: unknown, siblings: ObjectContent): unknown {
  if (pattern === 'spec.updateStrategy.rollingUpdate' && siblings['type'] === 'OnDelete') return undefined;
  // `fieldDefault` has no replicas, because comparisons may not assume their default.
  if (!isRecord(old) || !opened.test(pattern)) return pattern === 'spec.replicas' ? 1 : fieldDefault(pattern, siblings);
  const inner = defaultedMap(pattern, old, {});
  return Object.keys(inner).length === 0 ? undefined : inner;
}

/** Returns both versions as `fieldDiff` compares them, for an external diff program. Parts without a difference have the same text. */
export function comparedVersions(before: ObjectContent, after: ObjectContent): Pair<ObjectContent> {
  return alignMaps({ path: '', pattern: '', key: '' }, before, after);
}

function alignMaps(place: Place, before: ObjectContent, after: ObjectContent): Pair<ObjectContent> {
  const keys = [...Object.keys(before), ...Object.keys(after)];
  const fields = comparedFields(place, before, after, keys);
  const pairs = fields.map(([field, old, next]) => [field.key, align(field, old, next)] as const);
  const side = (index: 0 | 1) => Object.fromEntries(pairs.flatMap(([key, pair]) => (isAbsent(pair[index]) ? [] : [[key, pair[index]]])));
  return [side(0), side(1)];
}

function align(place: Place, before: unknown, after: unknown): Pair<unknown> {
  if (isNothing(before, place.key) && isNothing(after, place.key)) return [undefined, undefined];
  if (isRecord(before) && isRecord(after)) return alignMaps(place, before, after);
  if (isRecord(before) && isAbsent(after)) return [alignMaps(place, before, {})[0], undefined];
  if (isRecord(after) && isAbsent(before)) return [undefined, alignMaps(place, {}, after)[1]];
  if (Array.isArray(before) && Array.isArray(after)) return alignLists(place, before, after);
  return sameValue(place, before, after) ? [before, before] : [before, after];
}

/**
 * Returns ten hexadecimal digits of the hash of the pod template of a workload. Known defaults of the API server and the notation of
 * quantities have no influence: a manifest has the digest of the object that the API server stores.
 */
export function templateDigest(workload: unknown): string {
  return hashText(canonicalJson(withoutDefaults('spec.template', valueAt(workload, ['spec', 'template'])) ?? {})).slice(0, 10);
}

function withoutDefaults(pattern: string, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((entry) => withoutDefaults(`${pattern}[]`, entry) ?? {});
  if (!isRecord(value)) return value;
  const kept = Object.entries(value).flatMap(([key, inner]): readonly (readonly [string, unknown])[] => {
    const field = `${pattern}.${key}`;
    if (isServerField(field) || isNothing(inner, key) || isSameValue(inner, fieldDefault(field, value))) return [];
    const plain = isQuantity(field) ? canonicalQuantity(inner) : withoutDefaults(field, inner);
    return plain === undefined ? [] : [[key, plain]];
  });
  // An empty selector selects everything.
  return kept.length === 0 && !isSelector(pattern) ? undefined : Object.fromEntries(kept);
}

function alignLists(place: Place, before: readonly unknown[], after: readonly unknown[]): Pair<readonly unknown[]> {
  const key = entryKey(place.key, [before, after]);
  if (key === undefined) return [before, after];
  const [old, next] = [keyed(before, key), keyed(after, key)];
  const pair = (name: string) => align({ path: '', pattern: `${place.pattern}[]`, key: name }, old.get(name), next.get(name));
  return [[...old.keys()].map((name) => pair(name)[0]), [...next.keys()].map((name) => pair(name)[1])];
}

function compare(walk: Walk, place: Place, before: unknown, after: unknown): void {
  if (before === after || (isNothing(before, place.key) && isNothing(after, place.key))) return;
  if (isRecord(before) && isRecord(after)) compareMaps(walk, place, before, after);
  else if (isRecord(before) && isAbsent(after) && opened.test(place.pattern)) compareMaps(walk, place, before, {});
  else if (isRecord(after) && isAbsent(before) && opened.test(place.pattern)) compareMaps(walk, place, {}, after);
  else if (Array.isArray(before) && Array.isArray(after)) compareLists(walk, place, before, after);
  else if (!sameValue(place, before, after)) record(walk, place, before, after);
}

/** Maps whose fields are listed one by one even if the other object lacks the map: they contain defaults or secrets. */
const opened =
  /^(?:spec|data|stringData|spec\.(?:template|updateStrategy(?:\.rollingUpdate)?|persistentVolumeClaimRetentionPolicy)|(?:spec\.template\.)?metadata(?:\.(?:annotations|labels))?)$/;

function compareLists(walk: Walk, place: Place, before: readonly unknown[], after: readonly unknown[]): void {
  const key = entryKey(place.key, [before, after]);
  if (key === undefined) compareAsSets(walk, place, before, after);
  else compareEntries(walk, place, keyed(before, key), keyed(after, key));
}

function compareEntries(walk: Walk, place: Place, before: Map<string, unknown>, after: Map<string, unknown>): void {
  for (const name of new Set([...after.keys(), ...before.keys()])) {
    const entry = { path: `${place.path}[${name}]`, pattern: `${place.pattern}[]`, key: name };
    compare(walk, entry, before.get(name), after.get(name));
  }
  const kept = [...after.keys()].filter((name) => before.has(name));
  if ([...before.keys()].filter((name) => after.has(name)).join('\n') !== kept.join('\n')) recordReorder(walk, place);
}

function compareAsSets(walk: Walk, place: Place, before: readonly unknown[], after: readonly unknown[]): void {
  if (isSameValue(before, after)) return;
  const removed = without(before, after);
  const added = without(after, before);
  if (removed.length + added.length > 0) record(walk, place, removed, added);
  else recordReorder(walk, place);
}

/** Returns the entries of a list that the other list lacks. Repeated entries count one by one. Values of credential flags are hidden. */
function without(list: readonly unknown[], other: readonly unknown[]): readonly unknown[] {
  const rest = new Map<string, number>();
  for (const entry of other) rest.set(canonicalJson(entry), (rest.get(canonicalJson(entry)) ?? 0) + 1);
  const shown = withoutFlagValues(list);
  return shown.filter((_, index) => {
    const entry = list[index];
    const count = rest.get(canonicalJson(entry)) ?? 0;
    rest.set(canonicalJson(entry), count - 1);
    return count <= 0;
  });
}

/** The merge keys of Kubernetes, which identify the entries of a list, by the name of the list. */
const keysOfList: Readonly<Record<string, readonly string[]>> = {
  volumeMounts: ['mountPath'],
  volumeDevices: ['devicePath'],
  ports: ['name', 'containerPort', 'port'],
  hostAliases: ['ip'],
  topologySpreadConstraints: ['topologyKey'],
  items: ['key'],
};

/** Returns the key that identifies all entries of the lists; undefined if no key does. */
export function entryKey(list: string, lists: readonly (readonly unknown[])[]): string | undefined {
  return mergeKeys(list).find((key) =>
    lists.every((entries) => {
      const names = entries.map((entry) => keyOf(entry, key));
      return names.every((name) => name !== undefined) && new Set(names).size === names.length;
    }),
  );
}

/** Returns the entry of a list that a path names by one of the merge keys; undefined if no key identifies one entry by this name. */
export function entryNamed(list: string, entries: readonly unknown[], name: string): unknown {
  const found = mergeKeys(list).map((key) => entries.filter((entry) => keyOf(entry, key) === name));
  return found.find(({ length }) => length === 1)?.[0];
}

function mergeKeys(list: string): readonly string[] {
  return [...(keysOfList[list] ?? []), 'name', 'metadata.name'];
}

function keyed(entries: readonly unknown[], key: string): Map<string, unknown> {
  return new Map(entries.map((entry) => [keyOf(entry, key) ?? '', entry]));
}

export function keyOf(entry: unknown, key: string): string | undefined {
  const value = valueAt(entry, key.split('.'));
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
}

function record(walk: Walk, place: Place, before: unknown, after: unknown): void {
  const consequence = consequenceOf(walk.kind, place.pattern, before, after);
  const shown = masked(walk.kind, place, before, after);
  if (isAbsent(before)) walk.changes.push({ path: place.path, operation: 'add', after: shown.after, consequence });
  else if (isAbsent(after)) walk.changes.push({ path: place.path, operation: 'remove', before: shown.before, consequence });
  else walk.changes.push({ path: place.path, operation: 'change', before: shown.before, after: shown.after, consequence });
}

/** Records another order of list entries, only in pod templates. The order is part of the template's hash, so pods are replaced. */
function recordReorder(walk: Walk, place: Place): void {
  const consequence = consequenceOf(walk.kind, place.pattern, undefined, undefined);
  if (consequence === 'restart') walk.changes.push({ path: place.path, operation: 'reorder', consequence });
}

const kindsWithPods: ReadonlySet<string> = new Set(['StatefulSet', 'Deployment', 'DaemonSet']);

function consequenceOf(kind: string, pattern: string, before: unknown, after: unknown): Consequence {
  if (!kindsWithPods.has(kind)) return 'none';
  if (pattern === 'spec.template' || pattern.startsWith('spec.template.')) return 'restart';
  if (kind === 'StatefulSet' && isImmutableField(pattern)) return 'refused';
  if (pattern !== 'spec.replicas') return 'none';
  return Number(after ?? 1) < Number(before ?? 1) ? 'scaleDown' : 'scaleUp';
}

function sameValue(place: Place, before: unknown, after: unknown): boolean {
  if (isSameValue(before, after)) return true;
  return isQuantity(place.pattern) && sameQuantity(before, after);
}

function isQuantity(pattern: string): boolean {
  return /\.(?:limits|requests|capacity)\.[^.]+$|\.sizeLimit$/.test(pattern);
}

/** Reports whether the field is absent. JSON `null` in a manifest means the same. */
function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}

/** Reports whether the value is absent or empty. An empty selector counts as a value: unlike no selector, it selects everything. */
function isNothing(value: unknown, key: string): boolean {
  if (isAbsent(value)) return true;
  if (isSelector(key)) return false;
  return (Array.isArray(value) && value.length === 0) || (isRecord(value) && Object.keys(value).length === 0);
}

function isSelector(key: string): boolean {
  return /selector$/i.test(key) && !/nodeSelector$/.test(key);
}

/** Defaults of Kubernetes by field, without list keys. `spec.replicas` has no entry: a manifest without replicas leaves them to other writers. */
const defaults: Readonly<Record<string, unknown>> = {
  'spec.podManagementPolicy': 'OrderedReady',
  'spec.revisionHistoryLimit': 10,
  'spec.minReadySeconds': 0,
  'spec.updateStrategy.type': 'RollingUpdate',
  'spec.updateStrategy.rollingUpdate.partition': 0,
  'spec.persistentVolumeClaimRetentionPolicy.whenDeleted': 'Retain',
  'spec.persistentVolumeClaimRetentionPolicy.whenScaled': 'Retain',
  'spec.volumeClaimTemplates[].spec.volumeMode': 'Filesystem',
  'spec.template.spec.restartPolicy': 'Always',
  'spec.template.spec.dnsPolicy': 'ClusterFirst',
  'spec.template.spec.schedulerName': 'default-scheduler',
  'spec.template.spec.terminationGracePeriodSeconds': 30,
  'spec.template.spec.enableServiceLinks': true,
  'spec.template.spec.containers[].terminationMessagePath': '/dev/termination-log',
  'spec.template.spec.containers[].terminationMessagePolicy': 'File',
  'spec.template.spec.containers[].ports[].protocol': 'TCP',
  'spec.template.spec.containers[].env[].valueFrom.fieldRef.apiVersion': 'v1',
  'spec.template.spec.volumes[].configMap.defaultMode': 420,
  'spec.template.spec.volumes[].secret.defaultMode': 420,
  'spec.template.spec.volumes[].projected.defaultMode': 420,
  'spec.template.spec.volumes[].downwardAPI.defaultMode': 420,
  'spec.template.spec.volumes[].downwardAPI.items[].fieldRef.apiVersion': 'v1',
  'spec.template.spec.volumes[].projected.sources[].downwardAPI.items[].fieldRef.apiVersion': 'v1',
  'spec.template.spec.volumes[].projected.sources[].serviceAccountToken.expirationSeconds': 3600,
  // The API server drops these fields if they have their zero value.
  'spec.template.spec.volumes[].hostPath.type': '',
  'spec.template.spec.hostNetwork': false,
  'spec.template.spec.hostPID': false,
  'spec.template.spec.hostIPC': false,
  'spec.template.spec.containers[].tty': false,
  'spec.template.spec.containers[].stdin': false,
  'spec.template.spec.containers[].stdinOnce': false,
  'spec.template.spec.containers[].volumeMounts[].readOnly': false,
  'spec.template.spec.containers[].env[].value': '',
  'spec.template.spec.containers[].env[].valueFrom.resourceFieldRef.divisor': '0',
};

const probeDefaults: Readonly<Record<string, unknown>> = {
  timeoutSeconds: 1,
  periodSeconds: 10,
  successThreshold: 1,
  failureThreshold: 3,
  initialDelaySeconds: 0,
  'httpGet.scheme': 'HTTP',
  'httpGet.path': '/',
  'grpc.service': '',
};

/** Returns the known default that the API server sets for an absent `pattern`. `siblings` are the other fields of the map. */
function fieldDefault(pattern: string, siblings: Readonly<Record<string, unknown>>): unknown {
  const field = pattern.replace('.initContainers[]', '.containers[]');
  // The API server copies the name to the deprecated field.
  if (field === 'spec.template.spec.serviceAccount') return siblings['serviceAccountName'];
  if (field === 'spec.template.spec.containers[].imagePullPolicy') return imagePullPolicy(String(siblings['image'] ?? ''));
  const probe = /\.(?:(?:liveness|readiness|startup)Probe|lifecycle\.(?:preStop|postStart))\.(.+)$/.exec(field);
  return probe?.[1] === undefined ? defaults[field] : probeDefaults[probe[1]];
}

/** Returns the default of the API server: `Always` for the tag latest and for no tag, else `IfNotPresent`. */
function imagePullPolicy(image: string): string {
  const name = image.slice(image.lastIndexOf('/') + 1);
  return !image.includes('@') && (!name.includes(':') || name.endsWith(':latest')) ? 'Always' : 'IfNotPresent';
}

/** `kubectl apply` stores the whole manifest in this annotation. */
export const lastAppliedAnnotation = 'kubectl.kubernetes.io/last-applied-configuration';

const serverFields: ReadonlySet<string> = new Set([
  'status',
  'metadata.uid',
  'metadata.resourceVersion',
  'metadata.generation',
  'metadata.creationTimestamp',
  'metadata.deletionTimestamp',
  'metadata.deletionGracePeriodSeconds',
  'metadata.managedFields',
  'metadata.selfLink',
  // A copy of an earlier manifest, with its secrets.
  `metadata.annotations.${lastAppliedAnnotation}`,
  'spec.template.metadata.creationTimestamp',
  'spec.volumeClaimTemplates[].status',
  'spec.volumeClaimTemplates[].apiVersion',
  'spec.volumeClaimTemplates[].kind',
  'spec.volumeClaimTemplates[].metadata.creationTimestamp',
]);

/** Reports whether the API server writes the field, or a client only for its own bookkeeping. */
export function isServerField(pattern: string): boolean {
  return serverFields.has(pattern);
}

const mutableOfStatefulSet: readonly string[] = [
  'replicas',
  'ordinals',
  'template',
  'updateStrategy',
  'revisionHistoryLimit',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
];

/** Reports whether the field of a StatefulSet is immutable: all of `spec` except a short list. */
function isImmutableField(pattern: string): boolean {
  const field = /^spec\.(\w+)/.exec(pattern)?.[1];
  return field !== undefined && !mutableOfStatefulSet.includes(field);
}

const decimalPower: Readonly<Record<string, number>> = { n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 };
const binaryPower: Readonly<Record<string, number>> = { Ki: 10, Mi: 20, Gi: 30, Ti: 40, Pi: 50, Ei: 60 };

interface Quantity {
  /** The API server keeps the notation: `1Gi` and `1073741824` stay different texts and make different pod templates. */
  readonly notation: 'decimal' | 'binary' | 'exponent';
  /** The value is numerator divided by denominator. */
  readonly numerator: bigint;
  readonly denominator: bigint;
}

/** Reports whether the API server stores two quantities as the same text: `1024Mi` and `1Gi`, `1000m` and `1`. */
function sameQuantity(left: unknown, right: unknown): boolean {
  const a = parseQuantity(left);
  const b = parseQuantity(right);
  if (a === undefined || b === undefined) return false;
  return a.notation === b.notation && a.numerator * b.denominator === b.numerator * a.denominator;
}

/** Returns one text for all notations of a quantity that the API server stores as the same text. */
function canonicalQuantity(value: unknown): unknown {
  const quantity = parseQuantity(value);
  if (quantity === undefined) return value;
  const { notation, numerator, denominator } = quantity;
  // Every denominator is a power of ten, so at most so many halvings and fifths cancel.
  let [top, bottom] = [numerator, denominator];
  for (const prime of [2n, 5n]) while (bottom % prime === 0n && top % prime === 0n) [top, bottom] = [top / prime, bottom / prime];
  return `${notation} ${top}/${bottom}`;
}

function parseQuantity(value: unknown): Quantity | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') return undefined;
  const match = /^([+-]?)(\d{1,30})(?:\.(\d{0,30}))?(?:([eE][+-]?\d{1,2})|([numkMGTPE]|[KMGTPE]i)?)$/.exec(String(value).trim());
  if (!match) return undefined;
  const [, sign, whole = '', fraction = '', exponent, suffix = ''] = match;
  const digits = BigInt(`${sign === '-' ? '-' : ''}${whole}${fraction}`);
  const binary = binaryPower[suffix];
  const power = (exponent === undefined ? (decimalPower[suffix] ?? 0) : Number(exponent.slice(1))) - fraction.length;
  const numerator = digits * 2n ** BigInt(binary ?? 0) * 10n ** BigInt(Math.max(power, 0));
  const notation = binary !== undefined ? 'binary' : exponent !== undefined ? 'exponent' : 'decimal';
  return { notation, numerator, denominator: 10n ** BigInt(Math.max(-power, 0)) };
}
