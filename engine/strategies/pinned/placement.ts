// What becomes of a pod that is about to be made: it is made at the revision that the ledger pins its ordinal to, or stays as it is, and why.
import type { GroupDefinition } from '../../../policies/definition.ts';
import { traitsOf } from '../../../policies/strategies.ts';
import { isMap, type ObjectContent } from '../../diff/field-diff.ts';
import { fieldAt } from '../../observe/raw.ts';
import { observeTemplate } from '../../observe/revisions.ts';
import { isUnknown, type Known, type Ledger } from '../../snapshot.ts';
import { pinnedPod } from './pinned-pod.ts';

/** A pod of a StatefulSet as the API server has it in admission, before it is stored. */
export interface NewPod {
  readonly namespace: string;
  readonly name: string;
  readonly statefulSet: string;
  /** Of that StatefulSet. */
  readonly uid: string;
  /** It counts from `spec.ordinals.start`, as the name does. */
  readonly ordinal: number;
  /** Label `controller-revision-hash`: the ControllerRevision that the pod was made from. */
  readonly revision: string;
  readonly content: ObjectContent;
}

/** What became of reading a ControllerRevision. */
export type ReadRevision =
  | { readonly kind: 'template'; readonly template: ObjectContent }
  /** It is there, and is another object's, or no revision of pods. */
  | { readonly kind: 'unusable'; readonly problem: string }
  | { readonly kind: 'missing' }
  | { readonly kind: 'unread'; readonly problem: string };

export interface PlacementQuestion {
  /** Of the group that the pod is in. */
  readonly ledger: Known<Ledger>;
  /** Name of the zone that the StatefulSet is. */
  readonly zone: string;
  /** Of the StatefulSet as it was last seen; absent when it was not. */
  readonly knownUid?: string | undefined;
  /** By name, those that `revisionsToRead` names. */
  readonly revisions: ReadonlyMap<string, ReadRevision>;
}

export type Placement =
  | { readonly kind: 'pinned'; readonly pod: ObjectContent; readonly from: string; readonly to: string }
  /** With a problem it is not what should be, or nobody knows: one sentence that names the pod, the revision it gets, and why. */
  | { readonly kind: 'stays'; readonly problem?: string };

/**
 * The pod of a request to create one; undefined when no StatefulSet of `apps` controls it. Unknown, with the reason, when it cannot be told which
 * ordinal or revision it is: name, label `apps.kubernetes.io/pod-index` and label `controller-revision-hash` must fit together.
 */
export function newPod(namespace: string, content: ObjectContent): Known<NewPod> | undefined {
  const owner = controllerOf(content);
  if (owner === undefined || owner.kind !== 'StatefulSet' || !owner.apiVersion.startsWith('apps/')) return undefined;
  const name = textAt(content, 'metadata', 'name') ?? '';
  const index = textAt(content, 'metadata', 'labels', 'apps.kubernetes.io/pod-index');
  const revision = textAt(content, 'metadata', 'labels', 'controller-revision-hash') ?? '';
  const unknown = (why: string): Known<NewPod> => ({ unknown: `pod ${name} of StatefulSet ${owner.name} is made as it is: ${why}` });
  const digits = name.startsWith(`${owner.name}-`) ? name.slice(owner.name.length + 1) : '';
  if (!/^(?:0|[1-9]\d{0,9})$/.test(digits)) return unknown('its name ends in no ordinal');
  if (index !== undefined && index !== digits) return unknown(`its name and the label apps.kubernetes.io/pod-index ${index} disagree`);
  if (revision === '') return unknown('it has no label controller-revision-hash');
  if (!isName(revision)) return unknown('its label controller-revision-hash is no name of a ControllerRevision');
  if (owner.uid === '') return unknown('its owner has no UID');
  return { namespace, name, statefulSet: owner.name, uid: owner.uid, ordinal: Number(digits), revision, content };
}

/** Whether pods of the group may be pinned, now or from the time before its engine was changed. */
export function mayPin(group: GroupDefinition): boolean {
  return traitsOf(group).holdsPartition;
}

/**
 * The group that the pod's StatefulSet is a zone of, if its pods may be pinned. A group that has changed from the strategy `pinned` to `partition` in
 * the middle of a rollout still has pins in its ledger.
 */
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

/** Names of the ControllerRevisions by which the pod can be placed: none when it stays whatever they say. */
export function revisionsToRead(pod: NewPod, question: Omit<PlacementQuestion, 'revisions'>): readonly string[] {
  const target = targetOf(pod, question);
  return typeof target === 'string' ? [pod.revision, target] : [];
}

/** A ControllerRevision as the API server gives it; undefined when there is none. It counts when the StatefulSet that controls the pod controls it, too. */
export function readRevision(object: ObjectContent | undefined, { uid }: Pick<NewPod, 'uid'>): ReadRevision {
  if (object === undefined) return { kind: 'missing' };
  const template = observeTemplate(object, uid);
  return isUnknown(template) ? { kind: 'unusable', problem: template.unknown } : { kind: 'template', template };
}

/**
 * The pod as it should be made, or why it stays. A pod that carries the pinned revision already stays, so that being asked twice about one pod
 * changes nothing; whatever is unknown leaves it at the revision that its controller gave it, which is never a newer one. A template counts from the
 * ControllerRevision, and from the ledger's copy where the history no longer has it or it cannot be read.
 */
export function placementOf(pod: NewPod, question: PlacementQuestion): Placement {
  const target = targetOf(pod, question);
  if (target === undefined) return { kind: 'stays' };
  if (typeof target !== 'string') return { kind: 'stays', problem: target.unknown };
  const stays = (why: string): Placement => ({
    kind: 'stays',
    problem: `${made(pod)} and not at ${target}, to which it is pinned: ${why}`,
  });
  const [from, to] = [templateOf(pod.revision, question, pod), templateOf(target, question, pod)];
  if (isUnknown(to)) return stays(to.unknown);
  if (isUnknown(from)) return stays(from.unknown);
  return {
    kind: 'pinned',
    pod: pinnedPod({ pod: pod.content, made: from, target: to, revision: target }),
    from: pod.revision,
    to: target,
  };
}

/** What is said of a pod of which nobody could tell whether it is pinned. */
export function unplaced(pod: Pick<NewPod, 'name' | 'revision'>, why: string): string {
  return `${made(pod)}, and whether it is pinned to another is not known: ${why}`;
}

/** The revision that the pod should have instead of its own. */
function targetOf(pod: NewPod, { ledger, zone, knownUid }: Omit<PlacementQuestion, 'revisions'>): Known<string> | undefined {
  if (isUnknown(ledger)) return { unknown: unplaced(pod, ledger.unknown) };
  const revision = placedRevision(ledger, zone, pod);
  if (revision === pod.revision) return undefined;
  if (!isName(revision)) return { unknown: unplaced(pod, 'the ledger pins it to what is no name of a ControllerRevision') };
  if (knownUid !== undefined && knownUid !== pod.uid) {
    return { unknown: unplaced(pod, `StatefulSet ${pod.statefulSet} was made anew, and the ledger is about the one before`) };
  }
  return revision;
}

/**
 * The revision at which a pod of the zone is made by what the ledger says, when the controller would make it at `revision`. Where a whole zone had
 * moved to a revision that was rolled back, that is the current one for Kubernetes, and pods of new ordinals would be made at it.
 */
export function placedRevision(
  { pins = [], run }: Ledger,
  zone: string,
  { ordinal, revision }: Pick<NewPod, 'ordinal' | 'revision'>,
): string {
  const pinned = pins.find((one) => one.zone === zone && one.ordinal === ordinal)?.revision;
  if (pinned !== undefined) return pinned;
  return run?.rolledBack?.revisions[zone] === revision ? (run.target[zone] ?? revision) : revision;
}

function templateOf(name: string, { ledger, zone, knownUid, revisions }: PlacementQuestion, { uid }: NewPod): Known<ObjectContent> {
  const read = revisions.get(name) ?? { kind: 'unread', problem: 'it was not read' };
  if (read.kind === 'template') return read.template;
  if (read.kind === 'unusable') return { unknown: `ControllerRevision ${name} cannot be used: ${read.problem}` };
  // A copy names no owner: it is believed of the StatefulSet that is known to be there.
  const copy = isUnknown(ledger) ? undefined : ledger.templates?.find((one) => one.zone === zone && one.revision === name);
  if (copy !== undefined && knownUid === uid) return copy.template;
  const why = read.kind === 'missing' ? 'is not there any more' : `cannot be read (${read.problem})`;
  return { unknown: `ControllerRevision ${name} ${why}, and the ledger has no copy that counts` };
}

/** As Kubernetes names objects (RFC 1123 subdomain): names become parts of paths. */
function isName(text: string): boolean {
  return text.length <= 253 && /^[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?$/.test(text);
}

function made({ name, revision }: Pick<NewPod, 'name' | 'revision'>): string {
  return `pod ${name} is made at revision ${revision}`;
}

interface Controller {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

function controllerOf(object: ObjectContent): Controller | undefined {
  const owners = fieldAt(object, ['metadata', 'ownerReferences']);
  const owner: unknown = Array.isArray(owners) ? owners.find((one) => fieldAt(one, ['controller']) === true) : undefined;
  if (!isMap(owner)) return undefined;
  const text = (field: string): string => textAt(owner, field) ?? '';
  return { apiVersion: text('apiVersion'), kind: text('kind'), name: text('name'), uid: text('uid') };
}

function textAt(object: ObjectContent, ...path: readonly string[]): string | undefined {
  const value = fieldAt(object, path);
  return typeof value === 'string' ? value : undefined;
}
