// Reads the managed fields of an object: who wrote a field, and which fields differ from the manifest because another manager wrote them.
import { instantMs } from '../../policies/instant.ts';
import { agentName } from '../../policies/objects/agent-deployment.ts';
import { isSameValue } from '../../policies/values/canonical-json.ts';
import { compareText } from '../../policies/values/compare-text.ts';
import { isRecord } from '../../policies/values/is-record.ts';
import { tryParseJson } from '../../policies/values/try-parse-json.ts';
import { counted } from '../../policies/wording.ts';
import { fieldAt } from '../observe/raw.ts';
import { entryKey, entryNamed, fieldDiff, fieldStep, keyOf, lastAppliedAnnotation, type ObjectContent } from './field-diff.ts';

/** A manager that wrote the current value of a field. `atMs`: its last write of the object. */
export interface FieldWriter {
  readonly manager: string;
  readonly operation: string;
  readonly subresource?: string;
  readonly atMs?: number;
}

/** A field of a StatefulSet whose value comes from no manifest: no applier wrote it, and the creator of the object does not own it. */
interface DriftedField {
  /** The path, as in `FieldChange`. */
  readonly field: string;
  readonly manager: string;
  /** The last write of the manager; it can be later than the write of this field. */
  readonly atMs?: number;
}

export interface Drift {
  /** The number of all drifted fields. */
  readonly count: number;
  /** The first fields by path, at most `driftedFieldLimit`. */
  readonly fields: readonly DriftedField[];
}

const driftedFieldLimit = 10;

/** The tools that apply manifests, by the names of their managers, with and without server-side apply. */
const tools: readonly (readonly [manager: RegExp, tool: string])[] = [
  [/^argocd-(?:application-)?controller$|^argocd-server$|^argocd$/, 'Argo CD'],
  [/^kustomize-controller$/, 'Flux'],
  [/^helm-controller$/, 'Flux'],
  [/^flux(?:$|-)/, 'Flux'],
  [/^helm$/, 'Helm'],
  [/^(?:config-sync|configsync|applier-manager)/, 'Config Sync'],
  [/^fleet(?:agent|-agent)/, 'Fleet'],
];

/** Returns the name of the tool that writes objects from Git or from a release as this manager; undefined for other managers. */
export function toolOf(manager: string): string | undefined {
  return tools.find(([pattern]) => pattern.test(manager))?.[1];
}

/** The managers of `kubectl apply` without --server-side, and of writes from before the API server recorded managers. */
export const clientSideManagers: ReadonlySet<unknown> = new Set(['kubectl-client-side-apply', 'before-first-apply']);

/** The fields that people, autoscalers and the agent change on purpose: replicas, the partition, and the request to restart. */
const changedOnPurpose: ReadonlySet<string> = new Set([
  'spec.replicas',
  'spec.updateStrategy.rollingUpdate.partition',
  'spec.template.metadata.annotations[kubectl.kubernetes.io/restartedAt]',
]);

/** Returns the entries of `metadata.managedFields` that are objects. */
export function managerEntries(live: unknown): readonly ObjectContent[] {
  const list = fieldAt(live, ['metadata', 'managedFields']);
  return Array.isArray(list) ? list.filter(isRecord) : [];
}

/**
 * Returns the managers that own the field at a path of `FieldChange`, the latest first. Without an owner of the field itself, the owners of
 * the whole map or list around it. Empty if no manager owns it, as for a default, and if the object does not have the field.
 */
export function writersOf(live: unknown, path: string): readonly FieldWriter[] {
  const steps = stepsTo(live, path);
  if (steps === undefined) return [];
  const found = managerEntries(live).map((entry) => ({ entry, owned: ownership(entry['fieldsV1'], steps) }));
  const exact = found.filter(({ owned }) => owned === 'field');
  const owners = exact.length > 0 ? exact : found.filter(({ owned }) => owned === 'around');
  return owners.map(({ entry }) => writer(entry)).toSorted((a, b) => (b.atMs ?? 0) - (a.atMs ?? 0) || compareText(a.manager, b.manager));
}

/** Reports whether the object has a field, by its path as in `FieldChange`. */
export function hasField(object: unknown, path: string): boolean {
  return stepsTo(object, path) !== undefined;
}

function writer({ manager, operation, subresource = '', time }: ObjectContent): FieldWriter {
  const atMs = typeof time === 'string' ? instantMs(time) : undefined;
  return {
    manager: String(manager ?? ''),
    operation: String(operation ?? ''),
    ...(subresource === '' ? {} : { subresource: String(subresource) }),
    ...(atMs === undefined ? {} : { atMs }),
  };
}

/** Reports whether a key of FieldsV1 is the next step of a path. */
type Step = (key: string) => boolean;

/** Returns the steps of FieldsV1 to a field of the object; undefined if the object does not have the field. */
function stepsTo(live: unknown, path: string): readonly Step[] | undefined {
  const steps: Step[] = [];
  let [value, list] = [live, ''];
  for (const [, key, word] of path.matchAll(/\[([^\]]*)\]|([^.[\]]+)/g)) {
    const name = key ?? word ?? '';
    if (Array.isArray(value)) {
      const entry: unknown = entryNamed(list, value, name);
      if (entry === undefined) return undefined;
      steps.push((step) => isKeyOf(step, entry));
      value = entry;
    } else {
      value = fieldAt(value, [name]);
      if (value === undefined) return undefined;
      steps.push((step) => step === `f:${name}`);
      list = name;
    }
  }
  return steps;
}

/** Reports whether a key of FieldsV1 identifies the entry of a list: `k:` by its merge keys, `v:` by its value. */
function isKeyOf(step: string, entry: unknown): boolean {
  const named = tryParseJson(step.slice(2));
  if (step.startsWith('v:')) return isSameValue(named, entry);
  if (!step.startsWith('k:') || !isRecord(named)) return false;
  // `protocol` is the only key with a default.
  return Object.entries(named).every(([key, value]) =>
    isSameValue(value, fieldAt(entry, [key]) ?? (key === 'protocol' ? 'TCP' : undefined)),
  );
}

/** Returns whether a tree has the field itself, or a whole map or list around it. */
function ownership(fields: unknown, steps: readonly Step[]): 'field' | 'around' | undefined {
  let node = fields;
  for (const [index, step] of steps.entries()) {
    const keys = Object.keys(isRecord(node) ? node : {});
    if (keys.length === 0 && index > 0) return 'around';
    const key = keys.find(step);
    if (key === undefined) return undefined;
    node = fieldAt(node, [key]);
  }
  return 'field';
}

/**
 * Returns the drifted fields of `spec` by path: neither an applier nor the creator owns them, and the last applied manifest, if it is known,
 * does not have their values. Empty without such a field, and if no applier owns a part of the pod template, because then no manifest is
 * known. A field that a manager removed leaves no trace in managed fields.
 */
export function driftedFields(live: unknown): readonly DriftedField[] {
  const entries = managerEntries(live).filter(({ subresource = '' }) => subresource === '');
  const appliers = entries.filter((entry) => isApplier(entry) && fieldAt(entry['fieldsV1'], ['f:spec', 'f:template']) !== undefined);
  if (appliers.length === 0) return [];
  const fromManifests = entries.filter((entry) => isApplier(entry) || isCreator(entry));
  const known = fromManifests.flatMap((entry) => fieldAt(entry['fieldsV1'], ['f:spec']) ?? []);
  const place = { path: 'spec', list: '', value: fieldAt(live, ['spec']) };
  const found = entries
    .filter((entry) => !fromManifests.includes(entry) && entry['manager'] !== agentName)
    .flatMap((entry) => fieldsBeyond(fieldAt(entry['fieldsV1'], ['f:spec']), known, place).map((field) => driftedField(field, entry)))
    .filter(({ field }) => !changedOnPurpose.has(field))
    .sort((a, b) => compareText(a.field, b.field) || (b.atMs ?? 0) - (a.atMs ?? 0) || compareText(a.manager, b.manager));
  const differing = found.length === 0 ? undefined : changedSinceApply(live, appliers);
  return found.filter(
    ({ field }, index) => field !== found[index - 1]?.field && differing?.some((path) => isPartOf(path, field)) !== false,
  );
}

/**
 * Returns the paths in which the object differs from the manifest in its annotation: client-side apply owns no field that has the requested
 * value already. Undefined if the newest applier of the template stored no manifest, and if one of them uses server-side apply, which owns
 * each requested field.
 */
function changedSinceApply(live: unknown, appliers: readonly ObjectContent[]): readonly string[] | undefined {
  const [newest] = appliers.toSorted((a, b) => (writer(b).atMs ?? 0) - (writer(a).atMs ?? 0));
  const hasStored = fieldAt(newest, ['fieldsV1', 'f:metadata', 'f:annotations', `f:${lastAppliedAnnotation}`]) !== undefined;
  const manifest = tryParseJson(fieldAt(live, ['metadata', 'annotations', lastAppliedAnnotation]));
  if (!hasStored || !isRecord(manifest) || !isRecord(live) || appliers.some(({ operation }) => operation === 'Apply')) return undefined;
  return fieldDiff(manifest, live).map(({ path }) => path);
}

/** Reports whether one of two paths is the other path, or a part of it. */
function isPartOf(a: string, b: string): boolean {
  const [short, long] = a.length < b.length ? [a, b] : [b, a];
  return long.startsWith(short) && (long.length === short.length || '.['.includes(long.charAt(short.length)));
}

/** Returns the number of drifted fields and the first of them; undefined without a drifted field. */
export function driftOf(live: unknown): Drift | undefined {
  const fields = driftedFields(live);
  return fields.length === 0 ? undefined : { count: fields.length, fields: fields.slice(0, driftedFieldLimit) };
}

function driftedField(field: string, entry: ObjectContent): DriftedField {
  const { manager, atMs } = writer(entry);
  return atMs === undefined ? { field, manager } : { field, manager, atMs };
}

/** Reports whether the manager writes what a manifest contains. `argocd-server` writes the edits and actions of people in the web interface. */
function isApplier({ manager, operation }: ObjectContent): boolean {
  if (operation === 'Apply' || clientSideManagers.has(manager)) return true;
  return manager !== 'argocd-server' && toolOf(String(manager)) !== undefined;
}

/** Reports whether the manager created the object, with its defaults: it owns the immutable selector. */
function isCreator({ fieldsV1 }: ObjectContent): boolean {
  return fieldAt(fieldsV1, ['f:spec', 'f:selector']) !== undefined;
}

interface Place {
  readonly path: string;
  /** The name of the list or map. */
  readonly list: string;
  readonly value: unknown;
}

/** Returns the paths of the fields in the tree that no known tree has. An added list entry is one field. */
function fieldsBeyond(fields: unknown, known: readonly unknown[], place: Place): readonly string[] {
  return Object.entries(isRecord(fields) ? fields : {}).flatMap(([key, part]): readonly string[] => {
    if (key === '.') return [];
    const knownParts = known.flatMap((tree) => fieldAt(tree, [key]) ?? []);
    const isKnown = knownParts.length > 0;
    const isWhole = !isRecord(part) || Object.keys(part).length === 0 || (key.startsWith('k:') && !isKnown && '.' in part);
    if (isWhole && isKnown) return [];
    const inner = placeOf(key, place);
    return isWhole ? [inner.path] : fieldsBeyond(part, knownParts, inner);
  });
}

function placeOf(key: string, { path, list, value }: Place): Place {
  if (key.startsWith('f:')) {
    const name = key.slice(2);
    return { path: `${path}${fieldStep(name)}`, list: name, value: fieldAt(value, [name]) };
  }
  const entries: readonly unknown[] = Array.isArray(value) ? value : [];
  const entry = entries.find((one) => isKeyOf(key, one));
  const field = entryKey(list, [entries]);
  const name = (field === undefined ? undefined : keyOf(entry, field)) ?? key.slice(2);
  return { path: `${path}[${name}]`, list: '', value: entry };
}

/**
 * Returns the drift of StatefulSets as a clause with the first fields, without times, so that equal drift has equal text. Undefined without
 * drift.
 */
export function driftText(sets: readonly { readonly name: string; readonly drift?: Drift }[]): string | undefined {
  const drifted = sets.flatMap(({ name, drift }) => (drift === undefined ? [] : [{ name, drift }]));
  const fields = drifted.flatMap(({ name, drift }) => drift.fields.map((one) => ({ name, ...one })));
  const count = drifted.reduce((sum, { drift }) => sum + drift.count, 0);
  if (count === 0) return undefined;
  const named = fields.slice(0, namedFieldLimit).map(({ name, field, manager }) => `${manager} wrote ${field} of ${name}`);
  const rest = count - named.length;
  return `${counted(count, 'field')} ${count === 1 ? 'differs' : 'differ'} from the manifests: ${named.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
}

/** The number of fields that a text names. */
const namedFieldLimit = 2;
