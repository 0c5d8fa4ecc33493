// Decides the revision of a pod that is about to be created, and changes the pod to that revision. Keeps fields that admission added.
import type { GroupDefinition } from '../../../policies/definition.ts';
import { traitsOf } from '../../../policies/strategies.ts';
import { canonicalJson, isSameValue } from '../../../policies/values/canonical-json.ts';
import { isRecord } from '../../../policies/values/is-record.ts';
import { listOf } from '../../../policies/values/list-of.ts';
import { entryKey, keyOf, type ObjectContent } from '../../diff/field-diff.ts';
import { controllerOf } from '../../observe/objects.ts';
import { reader } from '../../observe/raw.ts';
import { observeTemplate } from '../../observe/revisions.ts';
import { restoredRevision } from '../../run/states.ts';
import { isUnknown, type Known, type Ledger, type Snapshot } from '../../snapshot.ts';

/** A pod of a StatefulSet as the API server has it in admission, before it is stored. */
export interface NewPod {
  readonly namespace: string;
  readonly name: string;
  readonly statefulSet: string;
  readonly uid: string;
  /** The number at the end of the name; at least `spec.ordinals.start`. */
  readonly ordinal: number;
  /** Label `controller-revision-hash`: the ControllerRevision from which the pod was created. */
  readonly revision: string;
  readonly content: ObjectContent;
}

export type ReadRevision =
  | { readonly kind: 'template'; readonly template: ObjectContent }
  /** The object exists, but belongs to another StatefulSet or has no pod template. */
  | { readonly kind: 'unusable'; readonly problem: string }
  | { readonly kind: 'missing' }
  | { readonly kind: 'unread'; readonly problem: string };

/** The parts of a StatefulSet that decide the revision of its new pods. */
export interface SeenSet {
  readonly uid: string;
  /** `status.updateRevision`. */
  readonly updateRevision: string;
}

/** A pod that the controller creates at `revision`. */
export interface UnplacedPod extends Pick<NewPod, 'ordinal' | 'revision'> {
  /** The update revision of its StatefulSet; undefined if unknown. */
  readonly updateRevision: string | undefined;
}

export interface PlacementQuestion {
  readonly ledger: Known<Ledger>;
  readonly zone: string;
  /** The StatefulSet as last seen; absent if it was not seen. */
  readonly seen?: SeenSet | undefined;
  /** The revisions that `revisionsToRead` names, by name. */
  readonly revisions: ReadonlyMap<string, ReadRevision>;
}

export type Placement =
  | { readonly kind: 'pinned'; readonly pod: ObjectContent; readonly from: string; readonly to: string }
  /** `problem`: the pod has the wrong revision, or the right revision is unknown. One sentence with the pod, its revision and the cause. */
  | { readonly kind: 'stays'; readonly problem?: string };

/**
 * Returns the pod of a create request; undefined if no StatefulSet controls it. Unknown if its name, labels and owner do not show its
 * ordinal, its revision and the UID of its StatefulSet.
 */
export function newPod(namespace: string, content: ObjectContent): Known<NewPod> | undefined {
  const fields = reader(content);
  const owner = controllerOf(fields);
  if (owner?.text('kind') !== 'StatefulSet' || owner.text('apiVersion')?.startsWith('apps/') !== true) return undefined;
  const [statefulSet, uid] = [owner.text('name') ?? '', owner.text('uid') ?? ''];
  const name = fields.text('metadata.name') ?? '';
  const labels = fields.texts('metadata.labels');
  const index = labels['apps.kubernetes.io/pod-index'];
  const revision = labels[revisionLabel] ?? '';
  const unknown = (why: string): Known<NewPod> => ({ unknown: `pod ${name} of StatefulSet ${statefulSet} is created unchanged: ${why}` });
  const digits = name.startsWith(`${statefulSet}-`) ? name.slice(statefulSet.length + 1) : '';
  if (!/^(?:0|[1-9]\d{0,9})$/.test(digits)) return unknown('its name does not end in an ordinal');
  if (index !== undefined && index !== digits) return unknown(`its name and the label apps.kubernetes.io/pod-index ${index} differ`);
  if (revision === '') return unknown('it has no label controller-revision-hash');
  if (!isName(revision)) return unknown('its label controller-revision-hash is not a name of a ControllerRevision');
  if (uid === '') return unknown('its owner has no UID');
  return { namespace, name, statefulSet, uid, ordinal: Number(digits), revision, content };
}

/** Reports whether pods of the group may be pinned, by its strategy or by pins from before a change of the strategy. */
export function mayPin(group: GroupDefinition): boolean {
  return traitsOf(group).holdsPartition;
}

/** Returns the group and zone of the pod's StatefulSet, if its pods may be pinned. */
export function pinnedGroupOf(
  groups: readonly GroupDefinition[],
  pod: Pick<NewPod, 'namespace' | 'statefulSet'>,
): { readonly group: GroupDefinition; readonly zone: string } | undefined {
  for (const group of groups.filter(mayPin)) {
    if (group.namespace !== pod.namespace) continue;
    const zone = group.zones.find(({ statefulSet }) => statefulSet === pod.statefulSet);
    if (zone !== undefined) return { group, zone: zone.name };
  }
  return undefined;
}

/** Returns the names of the ControllerRevisions that `placementOf` needs; [] if the pod keeps its own revision. */
export function revisionsToRead(pod: NewPod, question: Omit<PlacementQuestion, 'revisions'>): readonly string[] {
  const target = targetOf(pod, question);
  return typeof target === 'string' ? [pod.revision, target] : [];
}

/** Reads a ControllerRevision; undefined stands for a missing object. A revision is usable if the StatefulSet of the pod controls it. */
export function readRevision(object: ObjectContent | undefined, { uid }: Pick<NewPod, 'uid'>): ReadRevision {
  if (object === undefined) return { kind: 'missing' };
  const template = observeTemplate(object, uid);
  return isUnknown(template) ? { kind: 'unusable', problem: template.unknown } : { kind: 'template', template };
}

/**
 * Returns the pod at its pinned revision; otherwise `stays`, with the problem if something is unknown. A second call changes nothing. The
 * template comes from the ControllerRevision, or else from the copy in the ledger.
 */
export function placementOf(pod: NewPod, question: PlacementQuestion): Placement {
  const target = targetOf(pod, question);
  if (target === undefined) return { kind: 'stays' };
  if (typeof target !== 'string') return { kind: 'stays', problem: target.unknown };
  const stays = (why: string): Placement => ({
    kind: 'stays',
    problem: `${created(pod)} instead of ${target}, to which it is pinned: ${why}`,
  });
  const [from, to] = [templateOf(pod.revision, question, pod), templateOf(target, question, pod)];
  if (isUnknown(to)) return stays(to.unknown);
  if (isUnknown(from)) return stays(from.unknown);
  const content = pinnedPod({ pod: pod.content, made: from, target: to, revision: target });
  return { kind: 'pinned', pod: content, from: pod.revision, to: target };
}

/** Returns the message for a pod if it is unknown whether the pod is pinned. */
export function unplaced(pod: Pick<NewPod, 'name' | 'revision'>, why: string): string {
  return `${created(pod)}; it is unknown whether the pod is pinned to another revision: ${why}`;
}

function targetOf(pod: NewPod, { ledger, zone, seen }: Omit<PlacementQuestion, 'revisions'>): Known<string> | undefined {
  if (isUnknown(ledger)) return { unknown: unplaced(pod, ledger.unknown) };
  const revision = placedRevision(ledger, zone, { ...pod, updateRevision: seen?.uid === pod.uid ? seen.updateRevision : undefined });
  if (revision === pod.revision) return undefined;
  if (!isName(revision)) return { unknown: unplaced(pod, 'the ledger pins it to a text that is not a name of a ControllerRevision') };
  if (seen !== undefined && seen.uid !== pod.uid) {
    return { unknown: unplaced(pod, `StatefulSet ${pod.statefulSet} was recreated, and the ledger is about its predecessor`) };
  }
  return revision;
}

/**
 * Returns the pinned revision of a pod that the controller creates at `revision`. Without a pin, returns the target of the rollback if the
 * update revision or `revision` was rolled back, else `revision`. The current revision of a rolled-back zone may be the failed revision, or
 * that of an earlier template that was never rolled out completely.
 */
export function placedRevision({ pins = [], run }: Ledger, zone: string, { ordinal, revision, updateRevision }: UnplacedPod): string {
  const pinned = pins.find((one) => one.zone === zone && one.ordinal === ordinal)?.revision;
  if (pinned !== undefined) return pinned;
  return restoredRevision(run, zone, updateRevision) ?? restoredRevision(run, zone, revision) ?? revision;
}

/** Returns why the webhook changes no new pod; undefined if it works, and if its state was not read. */
export function unpinnedReason({ webhookProblems: { pins, coverage } = {} }: Pick<Snapshot, 'webhookProblems'>): string | undefined {
  return isUnknown(pins) ? undefined : (pins ?? coverage);
}

function templateOf(name: string, { ledger, zone, seen, revisions }: PlacementQuestion, { uid }: NewPod): Known<ObjectContent> {
  const read = revisions.get(name) ?? { kind: 'unread', problem: 'it was not read' };
  if (read.kind === 'template') return read.template;
  if (read.kind === 'unusable') return { unknown: `ControllerRevision ${name} cannot be used: ${read.problem}` };
  // A copy names no owner, so it counts only for the StatefulSet that was observed.
  const copy = isUnknown(ledger) ? undefined : ledger.templates?.find((one) => one.zone === zone && one.revision === name);
  if (copy !== undefined && seen?.uid === uid) return copy.template;
  const why = read.kind === 'missing' ? 'no longer exists' : `cannot be read (${read.problem})`;
  return { unknown: `ControllerRevision ${name} ${why}, and the ledger has no usable copy` };
}

/** Reports whether a text is a name of a Kubernetes object (RFC 1123 subdomain). Names become parts of URL paths. */
function isName(text: string): boolean {
  return text.length <= 253 && /^[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?$/.test(text);
}

function created({ name, revision }: Pick<NewPod, 'name' | 'revision'>): string {
  return `pod ${name} is created at revision ${revision}`;
}

interface PodMerge {
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
 * Returns the three-way merge of the pod and two templates. Fields added by the controller or by admission stay; fields that differ between
 * the templates have the value of the target. If the service account, priority class or runtime class changes, values derived from it are
 * dropped: the API server derives them again after a webhook. The label and the spec change together.
 */
export function pinnedPod({ pod, made, target, revision }: PodMerge): ObjectContent {
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

/** Removes the values that admission derived from a field, if the target has another value in that field. */
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
  if (isRecord(own) && isRecord(target)) return mergedMap(mapOf(made), own, target);
  if (Array.isArray(own) && Array.isArray(target)) return mergedList(key, listOf(made), own, target);
  // Additions inside the field stay, although the target does not have the field.
  if (target === undefined && (isRecord(own) || Array.isArray(own))) return additions(key, made, own);
  return target;
}

/** Returns the part of a map or a list that the template does not contain; undefined if the template contains everything. */
function additions(key: string, made: unknown, own: unknown): unknown {
  const rest = Array.isArray(own) ? mergedList(key, listOf(made), own, []) : mergedMap(mapOf(made), mapOf(own), {});
  return Object.keys(rest).length === 0 ? undefined : rest;
}

/** Merges lists by their merge key, and lists of maps without a merge key as sets. A list of plain values comes from the target. */
function mergedList(key: string, made: readonly unknown[], own: readonly unknown[], target: readonly unknown[]): readonly unknown[] {
  const by = entryKey(key, [made, own, target]);
  if (by === undefined) {
    if (![...made, ...own, ...target].every(isRecord)) return target;
    const known = new Set([...made, ...target].map(canonicalJson));
    return [...target, ...own.filter((entry) => !known.has(canonicalJson(entry)))];
  }
  const index = (list: readonly unknown[]): ReadonlyMap<string, unknown> => new Map(list.map((entry) => [keyOf(entry, by) ?? '', entry]));
  const [before, present, wanted] = [index(made), index(own), index(target)];
  const kept = [...wanted].flatMap(([name, entry]): unknown[] => {
    // The pod lacks an entry of its template, and the target does not change this entry.
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
  return a === b || (a !== undefined && b !== undefined && isSameValue(a, b));
}

function mapOf(value: unknown): ObjectContent {
  return isRecord(value) ? value : {};
}
