// Computes the facts about one group that the decision does not contain: estimated end, roles of zones and image changes.
import type { KubernetesObject } from '../../cluster/request/resource.ts';
import { observePod } from '../../engine/observe/objects.ts';
import { type Estimate, estimateEnd, type SuccessorPod } from '../../engine/plan/estimate.ts';
import type { PublishedDecision, PublishedWait } from '../../engine/publish/published.ts';
import { isMisplacedUntilRetry } from '../../engine/publish/status.ts';
import { isUnknown, type Known } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { valueAt } from '../../policies/schema/schema-walk.ts';
import { evidenceNames, itemsOf, type Listing, noPermissionText, unreadLists } from '../cluster-snapshot/listing.ts';
import { clusterSnapshot } from '../cluster-snapshot/snapshot.ts';
import { isUnderWay, isUnfinished, type LiveGroup, type ReadGroups } from './groups.ts';

/** A display omits each part that is absent. */
export interface Facts {
  readonly estimation?: Estimation;
  /** The roles by zone: `leader` or `follows a`. */
  readonly roles?: ReadonlyMap<string, string>;
  readonly changes?: readonly ImageChange[];
}

export function factsOf(read: ReadGroups, live: LiveGroup, nowMs: number, estimate: Estimator): Facts {
  const { decision, definition } = live;
  const estimation = estimate(read, live, nowMs);
  return { estimation, changes: imageChanges(decision, read.listing), ...(definition && { roles: rolesIn(definition) }) };
}

/** Returns the roles of the zones. A zone that neither follows nor is followed has no role. */
export function rolesIn({ zones }: Pick<GroupDefinition, 'zones'>): ReadonlyMap<string, string> {
  const leaders = new Set(zones.flatMap(({ follows }) => follows ?? []));
  return new Map(
    zones.flatMap(({ name, follows }): readonly (readonly [string, string])[] => {
      if (follows !== undefined) return [[name, `follows ${follows}`]];
      return leaders.has(name) ? [[name, 'leader']] : [];
    }),
  );
}

/**
 * The estimated end, or the reason why it is unknown. Undefined if `isUnderWay` is false or nothing is left to do. Also undefined while a
 * list is missing (not requested or not complete yet), unless the end is unknown for another reason.
 */
export type Estimation = Known<Estimate> | undefined;

export type Estimator = (read: ReadGroups, live: LiveGroup, nowMs: number) => Estimation;

/** If nothing changes, the next estimate follows after at least 5 s, and after at least 20 times the duration of the last estimate. */
const minIntervalMs = 5000;
const costShare = 20;

/** Returns an estimator that caches the estimates of one display. It estimates again after a change, and at intervals. */
export function createEstimator(clock: () => number): Estimator {
  const latest = new Map<string, { readonly estimation: Estimation; readonly about: string; readonly untilMs: number }>();
  return (read, live, nowMs) => {
    const { decision, unattended } = live;
    const key = `${decision.namespace}/${decision.group}`;
    const about = `${decision.phase} ${decision.run?.id} ${decision.wave?.index} ${decision.outcome} ${unattended !== undefined} ${timelessWait(decision)?.fact}`;
    const known = latest.get(key);
    if (known?.estimation !== undefined && known.about === about && nowMs < known.untilMs) return known.estimation;
    const beganMs = clock();
    const estimation = estimationOf(read, live, nowMs);
    latest.set(key, { estimation, about, untilMs: nowMs + Math.max(minIntervalMs, costShare * (clock() - beganMs)) });
    return estimation;
  };
}

export function estimationOf(
  { world, listing, replicaSources }: ReadGroups,
  { decision, definition: group, unattended }: LiveGroup,
  nowMs: number,
): Estimation {
  if (!isUnderWay(decision)) return undefined;
  if (unattended !== undefined) return { unknown: 'no agent acts on the group' };
  const wait = timelessWait(decision);
  if (wait !== undefined) return { unknown: wait.fact };
  const unread = noPermissionText(unreadLists(listing));
  if (unread !== undefined) return { unknown: unread };
  if (group === undefined) return { unknown: 'the group is defined in files of the agent' };
  if (evidenceNames.some((name) => listing[name] === undefined)) return undefined;
  const snapshot = clusterSnapshot(listing, { ...world, nowMs, replicaSources });
  return estimateEnd({ snapshot, group, pods: successorsOf(itemsOf(listing.pods), decision, group) });
}

/**
 * Returns a wait that time alone does not end: a `no` without a known end, or misplaced pods that need a retry. The estimate may not know its
 * cause, such as a missing permission of the agent.
 */
function timelessWait({ waits }: PublishedDecision): PublishedWait | undefined {
  return waits.find((wait) => (wait.outcome === 'no' && wait.earliestMs === undefined) || isMisplacedUntilRetry(wait));
}

/** Returns the successor pods of this run. A pod that became ready again counts as slow: only its latest ready time is known. */
function successorsOf(
  pods: readonly KubernetesObject[],
  { run }: PublishedDecision,
  { namespace, zones }: GroupDefinition,
): readonly SuccessorPod[] {
  if (run === undefined) return [];
  return zones.flatMap(({ name: zone, statefulSet }) =>
    podsOf(pods, namespace, statefulSet).flatMap((pod) => {
      const view = observePod(pod);
      const createdMs = Date.parse(pod.metadata.creationTimestamp ?? '');
      if (isUnknown(view) || view.revision !== run.target[zone] || !(createdMs >= run.startedMs)) return [];
      const readyMs = view.readyChangedMs;
      return [{ zone, createdMs, ...(view.isReady && readyMs >= createdMs ? { readyMs } : {}) }];
    }),
  );
}

export interface ImageChange {
  readonly from: string;
  readonly to: string;
  /** The zones that request the image; absent if no zone requests another image for the container. */
  readonly zones?: readonly string[];
}

/** Returns each image change once; empty if no rollout is unfinished, no image differs or the pods were not read. */
export function imageChanges(decision: PublishedDecision, listing: Listing): readonly ImageChange[] {
  if (!isUnfinished(decision)) return [];
  const { namespace } = decision;
  const members = decision.zones.flatMap(({ zone, statefulSet, desiredRevision }) => {
    const set = itemsOf(listing.statefulSets).find(({ metadata }) => metadata.namespace === namespace && metadata.name === statefulSet);
    if (set === undefined) return [];
    // A rollback returns pods to an earlier revision than the update revision, also after an abort.
    const target = desiredRevision ?? valueAt(set, ['status', 'updateRevision']);
    return [memberImages(zone, set, podsOf(itemsOf(listing.pods), namespace, statefulSet), target)];
  });
  const changes = members.flatMap((member) => changesOf(member).map((change) => withZones(change, members)));
  return [...new Map(changes.map((change) => [JSON.stringify(change), change])).values()];
}

interface MemberImages {
  readonly zone: string;
  /** The images of the requested revision by container: as its template requests them, else as its pods have them. */
  readonly requested: ReadonlyMap<string, string>;
  /** The images of an updated pod. A webhook can give pods another registry than the template names. */
  readonly made: ReadonlyMap<string, string> | undefined;
  /** The images of each outdated pod. */
  readonly outdated: readonly ReadonlyMap<string, string>[];
}

/** Returns the images of one member, of the containers in its template: other writers can inject containers into pods. */
function memberImages(zone: string, set: KubernetesObject, pods: readonly KubernetesObject[], target: unknown): MemberImages {
  const ofPod = (pod: KubernetesObject): ReadonlyMap<string, string> => imagesIn(valueAt(pod, ['spec', 'containers']));
  const [updated] = pods.filter((pod) => revisionOf(pod) === target);
  const made = updated && ofPod(updated);
  const template = imagesIn(valueAt(set, ['spec', 'template', 'spec', 'containers']));
  const known = [...template.keys()].flatMap((container): readonly (readonly [string, string])[] => {
    const image = made?.get(container);
    return image === undefined ? [] : [[container, image]];
  });
  const requested = isTemplateOf(set, target) ? template : new Map(known);
  return { zone, requested, made, outdated: pods.filter((pod) => revisionOf(pod) !== target).map(ofPod) };
}

interface ContainerChange extends ImageChange {
  readonly container: string;
  readonly requested: string;
}

function changesOf({ requested, made, outdated }: MemberImages): readonly ContainerChange[] {
  return [...requested].flatMap(([container, image]) => {
    const to = made === undefined ? image : made.get(container);
    return outdated.flatMap((pod) => {
      const from = pod.get(container);
      if (from === undefined || to === undefined || from === to) return [];
      return made === undefined && partsOf(from).repository !== partsOf(to).repository ? [] : [{ container, requested: image, from, to }];
    });
  });
}

function withZones({ container, requested, from, to }: ContainerChange, members: readonly MemberImages[]): ImageChange {
  const others = members.filter((member) => member.requested.has(container));
  const zones = others.filter((member) => member.requested.get(container) === requested).map(({ zone }) => zone);
  return { from, to, ...(zones.length === others.length ? {} : { zones }) };
}

/** Reports whether the StatefulSet controller has seen the present template and given it this revision. */
function isTemplateOf(set: KubernetesObject, target: unknown): boolean {
  const observed = valueAt(set, ['status', 'observedGeneration']);
  return valueAt(set, ['status', 'updateRevision']) === target && observed === valueAt(set, ['metadata', 'generation']);
}

function podsOf(pods: readonly KubernetesObject[], namespace: string, statefulSet: string): readonly KubernetesObject[] {
  const isOwner = (one: Readonly<Record<string, unknown>>): boolean =>
    one['kind'] === 'StatefulSet' && one['controller'] === true && one['name'] === statefulSet;
  return pods.filter(({ metadata }) => metadata.namespace === namespace && metadata.ownerReferences?.some(isOwner));
}

function revisionOf({ metadata }: KubernetesObject): string | undefined {
  return metadata.labels?.['controller-revision-hash'];
}

export function imagesIn(containers: unknown): ReadonlyMap<string, string> {
  if (!Array.isArray(containers)) return new Map();
  return new Map(
    containers.flatMap((one: unknown): readonly (readonly [string, string])[] => {
      const [name, image] = [valueAt(one, ['name']), valueAt(one, ['image'])];
      return typeof name === 'string' && typeof image === 'string' ? [[name, image]] : [];
    }),
  );
}

interface ImageParts {
  /** For example `grafana/mimir`. */
  readonly repository: string;
  readonly tag?: string;
  /** Without its algorithm. */
  readonly digest?: string;
}

/** Splits `REPOSITORY[:TAG][@ALGORITHM:DIGEST]`. A port before a slash belongs to the repository. */
export function partsOf(image: string): ImageParts {
  const [named = image, hash] = image.split('@');
  const [, repository = named, tag] = /^(.*):([^:/]+)$/.exec(named) ?? [];
  const digest = hash?.split(':').at(-1);
  return { repository, ...(tag === undefined ? {} : { tag }), ...(digest === undefined ? {} : { digest }) };
}
