// Turns a pod that the StatefulSet controller creates at one revision into the pod of another revision, and keeps the fields that others added.

import { canonicalJson } from '../../../policies/values/canonical-json.ts';
import { entryKey, isMap, keyOf, type ObjectContent } from '../../diff/field-diff.ts';

interface Pin {
  /** The pod as the API server has it in admission. */
  readonly pod: ObjectContent;
  /** `data.spec.template` of the ControllerRevision from which the pod was created. */
  readonly made: ObjectContent;
  /** `data.spec.template` of the ControllerRevision to which the pod is pinned. */
  readonly target: ObjectContent;
  /** The name of the ControllerRevision to which the pod is pinned. */
  readonly revision: string;
}

const revisionLabel = 'controller-revision-hash';

/**
 * Returns the three-way merge of the pod and two templates. A field that differs between the pod and its own template was added by the
 * controller (name, claims, hostname) or by admission (tokens, tolerations, sidecars) and stays. A field that differs between the two templates has
 * the value of the target, also where both changed it. Values that built-in admission derived from a service account, a priority class or a runtime
 * class are dropped when the target names another one: the API server asks its own plugins again after a webhook has changed a pod. The label and
 * the spec change together, because the controller trusts the label.
 */
export function pinnedPod({ pod, made, target, revision }: Pin): ObjectContent {
  const [metadata, spec] = [mapOf(pod['metadata']), mapOf(pod['spec'])];
  const parts = (template: ObjectContent) => ({ metadata: mapOf(template['metadata']), spec: mapOf(template['spec']) });
  const [from, to] = [parts(made), parts(target)];
  const own = withoutDerived(spec, from.spec, to.spec);
  const mergedSpec = mergedMap(from.spec, own, to.spec);
  const labels = mergedMap(mapOf(from.metadata['labels']), mapOf(metadata['labels']), mapOf(to.metadata['labels']));
  const annotations = mergedMap(mapOf(from.metadata['annotations']), mapOf(metadata['annotations']), mapOf(to.metadata['annotations']));
  return {
    ...pod,
    metadata: {
      ...metadata,
      labels: { ...labels, [revisionLabel]: revision },
      ...(Object.keys(annotations).length === 0 && metadata['annotations'] === undefined ? {} : { annotations }),
    },
    // The controller sets the network name of the pod, and no template can.
    spec: { ...mergedSpec, ...only(spec, 'hostname', 'subdomain') },
  };
}

function only(map: ObjectContent, ...keys: readonly string[]): ObjectContent {
  return Object.fromEntries(keys.flatMap((key) => (map[key] === undefined ? [] : [[key, map[key]]])));
}

/** Values that built-in admission derives from a field of the pod. */
const derived: readonly { readonly from: string; readonly fields: readonly string[] }[] = [
  { from: 'serviceAccountName', fields: ['serviceAccount', 'imagePullSecrets'] },
  { from: 'priorityClassName', fields: ['priority', 'preemptionPolicy'] },
  { from: 'runtimeClassName', fields: ['overhead'] },
];

/** The path at which the API server mounts the token of the service account. */
const tokenPath = '/var/run/secrets/kubernetes.io/serviceaccount';

/** Returns the spec of the pod without the values that admission derived from a field of which the target has another value. */
function withoutDerived(spec: ObjectContent, made: ObjectContent, target: ObjectContent): ObjectContent {
  const changed = derived.filter(({ from }) => !isSame(made[from], target[from]));
  const gone = new Set(
    changed
      .flatMap(({ from, fields }) => [from, ...fields])
      .filter((field) => made[field] === undefined || !isSame(made[field], spec[field])),
  );
  const kept = Object.fromEntries(Object.entries(spec).filter(([key]) => !gone.has(key)));
  // The merge handles the values that the template itself has.
  const restored = { ...kept, ...Object.fromEntries([...gone].flatMap((key) => (made[key] === undefined ? [] : [[key, made[key]]]))) };
  return changed.some(({ from }) => from === 'serviceAccountName') ? withoutToken(restored, made) : restored;
}

function withoutToken(spec: ObjectContent, made: ObjectContent): ObjectContent {
  const own = new Set(listOf(made['volumes']).map((volume) => keyOf(volume, 'name')));
  const isToken = (volume: unknown): boolean => {
    const name = keyOf(volume, 'name') ?? '';
    return /^kube-api-access-/.test(name) && !own.has(name);
  };
  const tokens = new Set(
    listOf(spec['volumes'])
      .filter(isToken)
      .map((volume) => keyOf(volume, 'name')),
  );
  const withoutMount = (container: unknown): unknown => {
    const map = mapOf(container);
    const mounts = map['volumeMounts'];
    if (!Array.isArray(mounts)) return container;
    const rest = mounts.filter((mount) => keyOf(mount, 'mountPath') !== tokenPath || !tokens.has(keyOf(mount, 'name')));
    return { ...map, volumeMounts: rest };
  };
  const containers = ['containers', 'initContainers'].filter((key) => Array.isArray(spec[key]));
  return {
    ...spec,
    ...(Array.isArray(spec['volumes']) ? { volumes: spec['volumes'].filter((volume) => !isToken(volume)) } : {}),
    ...Object.fromEntries(containers.map((key) => [key, listOf(spec[key]).map(withoutMount)])),
  };
}

function mergedMap(made: ObjectContent, own: ObjectContent, target: ObjectContent): ObjectContent {
  const keys = new Set([...Object.keys(own), ...Object.keys(target)]);
  const entries = [...keys].map((key) => [key, merged(key, made[key], own[key], target[key])] as const);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

/** Merges one field. `key` is its name, which decides whether a list has a merge key. */
function merged(key: string, made: unknown, own: unknown, target: unknown): unknown {
  if (isSame(made, target)) return own;
  if (isSame(made, own)) return target;
  if (isMap(own) && isMap(target)) return mergedMap(mapOf(made), own, target);
  if (Array.isArray(own) && Array.isArray(target)) return mergedList(key, listOf(made), own, target);
  // Additions inside the field stay, although the target does not have the field.
  if (target === undefined && (isMap(own) || Array.isArray(own))) return additions(key, made, own);
  return target;
}

/** Returns the part of a map or a list that the template does not contain; undefined if it contains everything. */
function additions(key: string, made: unknown, own: unknown): unknown {
  const rest = Array.isArray(own) ? mergedList(key, listOf(made), own, []) : mergedMap(mapOf(made), mapOf(own), {});
  return Object.keys(rest).length === 0 ? undefined : rest;
}

/** Merges lists by their merge key, and lists of other maps as sets. A list of plain values, such as arguments, is that of the target. */
function mergedList(key: string, made: readonly unknown[], own: readonly unknown[], target: readonly unknown[]): readonly unknown[] {
  const by = entryKey(key, [made, own, target]);
  if (by === undefined) {
    if (![...made, ...own, ...target].every(isMap)) return target;
    const known = new Set([...made, ...target].map(canonicalJson));
    return [...target, ...own.filter((entry) => !known.has(canonicalJson(entry)))];
  }
  const index = (list: readonly unknown[]): ReadonlyMap<string, unknown> => new Map(list.map((entry) => [keyOf(entry, by) ?? '', entry]));
  const [before, present, wanted] = [index(made), index(own), index(target)];
  const kept = [...wanted].flatMap(([name, entry]): unknown[] => {
    // The pod does not have the entry although its template has, and the target does not change the entry.
    if (!present.has(name) && before.has(name) && isSame(before.get(name), entry)) return [];
    return present.has(name) ? [merged(key, before.get(name), present.get(name), entry)] : [entry];
  });
  const added = own.filter((entry) => !before.has(keyOf(entry, by) ?? '') && !wanted.has(keyOf(entry, by) ?? ''));
  // Containers start in their order, so a container that was added before all others stays first.
  const first = own.findIndex((entry) => before.has(keyOf(entry, by) ?? ''));
  const isLeading = (entry: unknown): boolean => first !== -1 && own.indexOf(entry) < first;
  return [...added.filter(isLeading), ...kept, ...added.filter((entry) => !isLeading(entry))];
}

function isSame(a: unknown, b: unknown): boolean {
  return a === b || (a !== undefined && b !== undefined && canonicalJson(a) === canonicalJson(b));
}

function mapOf(value: unknown): ObjectContent {
  return isMap(value) ? value : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
