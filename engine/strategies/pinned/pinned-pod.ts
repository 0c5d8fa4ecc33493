// A pod that a StatefulSet controller makes at one revision, as it would have made it at another: what the target changes, with all that others have added.
import { entryKey, isMap, keyOf, type ObjectContent } from '../../diff/field-diff.ts';
import { canonicalJson } from '../../hash.ts';

interface Pin {
  /** The pod as the API server has it in admission. */
  readonly pod: ObjectContent;
  /** `data.spec.template` of the ControllerRevision that it was made from. */
  readonly made: ObjectContent;
  /** The same of the revision that it is to have. */
  readonly target: ObjectContent;
  /** The name of that ControllerRevision. */
  readonly revision: string;
}

const revisionLabel = 'controller-revision-hash';

/**
 * A three-way merge: what differs between the pod and the template that it was made from was added by the controller (name, claims, hostname) or by
 * admission (tokens, tolerations, sidecars) and stays; what differs between the two templates is taken from the target. Where both have changed the same
 * value the target's counts. What built-in admission derived from a service account, a priority class or a runtime class goes with it when the target
 * names another one: the API server asks its own plugins again after a webhook has changed a pod. The label and the spec change together, because the
 * controller believes the label.
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
    // The controller names the pod in the network, whatever a template says.
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

/** Where the API server mounts the token of the service account. */
const tokenPath = '/var/run/secrets/kubernetes.io/serviceaccount';

/** The spec of the pod without what follows from a field of which the target has another value. */
function withoutDerived(spec: ObjectContent, made: ObjectContent, target: ObjectContent): ObjectContent {
  const changed = derived.filter(({ from }) => !isSame(made[from], target[from]));
  const gone = new Set(
    changed
      .flatMap(({ from, fields }) => [from, ...fields])
      .filter((field) => made[field] === undefined || !isSame(made[field], spec[field])),
  );
  const kept = Object.fromEntries(Object.entries(spec).filter(([key]) => !gone.has(key)));
  // What the template itself has of them the merge looks after.
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

/** `key` is the name of the field, by which lists are told apart that have merge keys. */
function merged(key: string, made: unknown, own: unknown, target: unknown): unknown {
  if (isSame(made, target)) return own;
  if (isSame(made, own)) return target;
  if (isMap(own) && isMap(target)) return mergedMap(mapOf(made), own, target);
  if (Array.isArray(own) && Array.isArray(target)) return mergedList(key, listOf(made), own, target);
  // Whatever was added inside of it stays, although the target has nothing of the kind.
  if (target === undefined && (isMap(own) || Array.isArray(own))) return additions(key, made, own);
  return target;
}

/** What of a map or a list was not in the template; undefined when that is nothing. */
function additions(key: string, made: unknown, own: unknown): unknown {
  const rest = Array.isArray(own) ? mergedList(key, listOf(made), own, []) : mergedMap(mapOf(made), mapOf(own), {});
  return Object.keys(rest).length === 0 ? undefined : rest;
}

/** Entries by their merge key; lists of other maps as sets; lists of plain values, such as arguments, as the target has them. */
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
    // Somebody has taken it away, and the target asks for nothing new there.
    if (!present.has(name) && before.has(name) && isSame(before.get(name), entry)) return [];
    return present.has(name) ? [merged(key, before.get(name), present.get(name), entry)] : [entry];
  });
  const added = own.filter((entry) => !before.has(keyOf(entry, by) ?? '') && !wanted.has(keyOf(entry, by) ?? ''));
  // Containers start in their order, so one that was put before all others stays there.
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
