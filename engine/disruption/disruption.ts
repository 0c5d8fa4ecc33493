// Evaluates zone-aware disruption budgets: whether an eviction or a rollout may disrupt one pod now.
import type { DisruptionDefinition, GroupDefinition } from '../../policies/definition.ts';
import { matchesSelector } from '../../policies/label-selector.ts';
import { type PartitionPattern, partitionReader } from '../../policies/text/partition-pattern.ts';
import { defined } from '../../policies/values/defined.ts';
import { counted } from '../../policies/wording.ts';
import { isAvailable, isServing } from '../observe/view.ts';
import { profileOf } from '../profiles.ts';
import { earliest } from '../rule.ts';
import { type Claim, isUnknown, type PodView, podsNamed, type Snapshot, type StatefulSetView, type ZoneBudgetView } from '../snapshot.ts';

export interface DisruptionQuestion {
  readonly snapshot: Pick<Snapshot, 'nowMs' | 'statefulSets' | 'pods' | 'zoneBudgets'>;
  /** The group of the pod. It defines when a pod is ready, and may have a budget; undefined for a pod without a group. */
  readonly group?: GroupDefinition;
  /** The StatefulSet that controls the pod; undefined if the pod has no such owner or the owner is unreadable. */
  readonly set: StatefulSetView | undefined;
  readonly pod: PodView;
  /** Open claims. A pod with a claim counts as unready for two minutes. */
  readonly claims: readonly Claim[];
  /** The limit for a rollout if the limit of the budget is 0; a budget that counts partitions then uses 1. */
  readonly override?: number;
  readonly requester: 'eviction' | 'rollout';
}

/** The reasons of verdicts, as the metric `zpdb_eviction_requests_total` of grafana/rollout-operator labels them. */
export type DisruptionReason =
  | 'pod-not-ready'
  | 'cfg-not-found'
  | 'pod-not-in-scope'
  | 'sts-no-found'
  | 'max-unavailable-0'
  | 'min-sts-not-found'
  | 'partition-not-identified'
  | 'err: sts-pod-status-not-determined'
  | 'denied'
  | 'allowed';

export interface DisruptionVerdict {
  readonly allowed: boolean;
  /** The HTTP status of the answer. 200 allows. Drains retry after 429, and give up after 400, 403 and 500. */
  readonly code: 200 | 400 | 403 | 429 | 500;
  readonly reason: DisruptionReason;
  readonly message: string;
  /** Number of pods, except the pod in question, that count against the limit: in its zone, the zone that denies, or the partition. */
  readonly unavailable: number;
  /** Undefined if the limit was not evaluated. */
  readonly limit?: number;
  /** The ZoneAwarePodDisruptionBudget that decided, as `kind namespace/name`; undefined for a group's own budget. */
  readonly budget?: string;
  /** The earliest instant at which time alone could change a denial. */
  readonly earliestMs?: number;
}

/**
 * Returns whether the pod may be disrupted. Evaluates its ZoneAwarePodDisruptionBudget, then the budget of the group; the first denial
 * counts. Unlike in grafana/rollout-operator, a budget may select the pod but not its StatefulSet.
 */
export function disruptionVerdict(question: DisruptionQuestion): DisruptionVerdict {
  const { pod, snapshot, set } = question;
  if (pod.isTerminating || pod.phase === 'Pending' || pod.phase === 'Succeeded' || pod.phase === 'Failed') {
    return plain(200, 'pod-not-ready', 'pod is not ready');
  }
  if (isUnknown(snapshot.zoneBudgets))
    return plain(400, 'cfg-not-found', `disruption budgets could not be read: ${snapshot.zoneBudgets.unknown}`);
  const matching = zoneBudgetsFor(snapshot.zoneBudgets, set?.namespace, pod.labels);
  if (matching.length > 1) {
    const names = matching.map(({ name }) => name).join(', ');
    return plain(400, 'cfg-not-found', `multiple disruption budgets match the pod: ${names}`);
  }
  const { group } = question;
  const own = group?.disruption === undefined ? [] : [groupBudget(group, group.disruption, snapshot)];
  const budgets = [...matching.map((budget) => zoneBudget(budget, snapshot)), ...own];
  if (budgets.length > 0 && set === undefined)
    return plain(500, 'sts-no-found', `pod ${pod.name} is not controlled by a StatefulSet that could be read`);
  const verdicts = set === undefined ? [] : budgets.map((budget) => underBudget({ ...question, set }, budget));
  const [first = plain(200, 'pod-not-in-scope', 'no disruption budget selects the pod')] = verdicts;
  return verdicts.find((verdict) => !verdict.allowed) ?? first;
}

type BudgetQuestion = DisruptionQuestion & { readonly set: StatefulSetView };

function underBudget(question: BudgetQuestion, budget: DisruptionBudget): DisruptionVerdict {
  const limit = effectiveLimit(budget, question.set, question.requester === 'rollout' ? question.override : undefined);
  const details = { limit, ...(budget.object === undefined ? {} : { budget: budget.object }) };
  if (limit === 0) return { ...plain(403, 'max-unavailable-0', 'max unavailable = 0'), ...details };
  if (budget.members.length < budget.leastMembers) {
    return { ...plain(400, 'min-sts-not-found', 'minimum number of StatefulSets not found'), ...details };
  }
  return { ...(budget.partition === undefined ? inZones(question, budget, limit) : inPartition(question, budget, limit)), ...details };
}

/** Evaluates a budget by zone: all pods of other zones must be ready, and the unready pods of the pod's zone must be below the limit. */
function inZones(question: BudgetQuestion, budget: DisruptionBudget, limit: number): DisruptionVerdict {
  const { set } = question;
  const [missing] = budget.missing;
  if (missing !== undefined) return { ...plain(429, 'denied', `StatefulSet ${missing} was not found`), unavailable: 1 };
  const others = budget.members.filter((member) => member.uid !== set.uid);
  const test = readyTest(question, 0);
  for (const member of others) {
    const count = countPods(question.snapshot, member, test);
    if (count === undefined) return undetermined(member);
    if (count.notReady + count.unknown > 0) return denied(count, member.name);
  }
  const count = countPods(question.snapshot, set, test);
  if (count === undefined) return undetermined(set);
  return within(count, limit, set.name);
}

/** Evaluates a budget by partition: the unready pods of the partition in all other zones together must be below the limit. */
function inPartition(question: BudgetQuestion, budget: DisruptionBudget, limit: number): DisruptionVerdict {
  const { pod, set, snapshot } = question;
  const partitionOf = partitionReader(budget.partition ?? { pattern: '', group: 0 });
  const partition = partitionOf(pod.name);
  if (partition === undefined)
    return plain(400, 'partition-not-identified', `pod name ${pod.name} does not match the pattern of partitions`);
  const test = {
    ...readyTest(question, budget.crossZoneDelayMs),
    isMember: (candidate: PodView) => partitionOf(candidate.name) === partition,
  };
  let sum: Counted = { tested: 0, notReady: 0, unknown: budget.missing.length };
  for (const member of budget.members) {
    if (member.uid === set.uid) continue;
    const count = countPods(snapshot, member, test);
    if (count === undefined) return undetermined(member);
    // A zone without a pod of the partition may have lost that pod.
    const nothing = count.tested === 0 && count.notReady === 0 && count.unknown === 0 ? 1 : 0;
    sum = {
      tested: sum.tested + count.tested,
      notReady: sum.notReady + count.notReady,
      unknown: sum.unknown + count.unknown + nothing,
      earliestMs: earliest([sum.earliestMs, count.earliestMs]),
    };
  }
  return within(sum, limit, `partition ${partition}`);
}

/** The time for which a claim makes its pod count as unready: as long as grafana/rollout-operator caches an eviction. */
const claimMs = 120_000;

function readyTest({ group, claims, pod }: BudgetQuestion, crossZoneDelayMs: number): ReadyTest {
  const claimed = new Map(claims.map((claim) => [claim.uid, claim.atMs + claimMs]));
  return { group, claimed, exceptUid: pod.uid, crossZoneDelayMs };
}

function within(count: Counted, limit: number, span: string): DisruptionVerdict {
  const unavailable = count.notReady + count.unknown;
  if (unavailable >= limit) return denied(count, span);
  return { ...plain(200, 'allowed', `${unavailable} of ${limit} unavailable in ${span}`), unavailable };
}

function denied(count: Counted, span: string): DisruptionVerdict {
  const { notReady, unknown, earliestMs } = count;
  const parts = [
    ...(notReady > 0 ? [`${counted(notReady, 'pod')} not ready`] : []),
    ...(unknown > 0 ? [`${counted(unknown, 'pod')} unknown`] : []),
  ];
  return {
    ...plain(429, 'denied', `${parts.join(', ')} in ${span}`),
    unavailable: notReady + unknown,
    ...(earliestMs === undefined ? {} : { earliestMs }),
  };
}

function undetermined(set: StatefulSetView): DisruptionVerdict {
  return plain(500, 'err: sts-pod-status-not-determined', `the pods of ${set.name} could not be read`);
}

function plain(code: DisruptionVerdict['code'], reason: DisruptionReason, message: string): DisruptionVerdict {
  return { allowed: code === 200, code, reason, message, unavailable: 0 };
}

type Amount = Omit<DisruptionBudget, 'object' | 'members' | 'missing' | 'leastMembers'>;

interface DisruptionBudget {
  /** `kind namespace/name` of the object; undefined for a group's own budget. */
  readonly object?: string;
  readonly maxUnavailable: number;
  readonly maxUnavailablePercent: number;
  /** The StatefulSets whose pods are counted, by name. */
  readonly members: readonly StatefulSetView[];
  /** The StatefulSets of the group that were not found. Each may lack a pod of every partition. */
  readonly missing: readonly string[];
  /** The minimum number of members. With fewer members the budget denies every disruption. */
  readonly leastMembers: number;
  readonly partition?: PartitionPattern;
  readonly crossZoneDelayMs: number;
}

type Objects = Pick<Snapshot, 'statefulSets'>;

/** Returns the budgets that select a pod with these labels, by name; of every namespace if `namespace` is undefined. */
export function zoneBudgetsFor(
  budgets: readonly ZoneBudgetView[],
  namespace: string | undefined,
  labels: PodView['labels'],
): readonly ZoneBudgetView[] {
  return budgets
    .filter((budget) => (namespace === undefined || budget.namespace === namespace) && matchesSelector(budget, labels))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Returns the budget of an object. It needs two members (StatefulSets that its selector matches), so that another zone stays available. */
function zoneBudget(budget: ZoneBudgetView, { statefulSets }: Objects): DisruptionBudget {
  const members = statefulSets.filter((set) => set.namespace === budget.namespace && matchesSelector(budget, set.labels)).sort(byName);
  return {
    object: `ZoneAwarePodDisruptionBudget ${budget.namespace}/${budget.name}`,
    members,
    missing: [],
    leastMembers: 2,
    ...amountOf(budget),
  };
}

/** Returns the budget of a group. Its members are the zones of the group; a group of one zone may have a budget too. */
function groupBudget(group: GroupDefinition, disruption: DisruptionDefinition, { statefulSets }: Objects): DisruptionBudget {
  const names = group.zones.map((zone) => zone.statefulSet);
  const members = statefulSets.filter((set) => set.namespace === group.namespace && names.includes(set.name)).sort(byName);
  const missing = names.filter((name) => !members.some((set) => set.name === name));
  return { members, missing, leastMembers: 1, ...amountOf(disruption) };
}

/**
 * Returns how many pods may be unavailable. A percentage applies to the desired or to the present replicas, whichever are fewer, rounded
 * down but at least 1. If the limit is 0 and a rollout has an override, the override applies, or 1 if the budget counts partitions.
 */
function effectiveLimit(budget: DisruptionBudget, set: StatefulSetView, override: number | undefined): number {
  const limit = ownLimit(budget, set);
  if (limit > 0 || override === undefined) return limit;
  return budget.partition === undefined ? override : 1;
}

function ownLimit({ maxUnavailable, maxUnavailablePercent }: DisruptionBudget, set: StatefulSetView): number {
  if (maxUnavailable > 0) return maxUnavailable;
  const replicas = Math.min(set.replicas, set.status.replicas);
  if (maxUnavailablePercent <= 0 || replicas === 0) return 0;
  return Math.max(1, Math.floor((maxUnavailablePercent * replicas) / 100));
}

/** Returns the limits of a budget; one pod if the budget sets no limit. */
function amountOf({ maxUnavailable, maxUnavailablePercent, crossZoneDelayMs, partition }: DisruptionDefinition): Amount {
  const count = maxUnavailable ?? (maxUnavailablePercent === undefined ? 1 : 0);
  return { maxUnavailable: count, maxUnavailablePercent: maxUnavailablePercent ?? 0, crossZoneDelayMs, ...defined({ partition }) };
}

function byName(a: StatefulSetView, b: StatefulSetView): number {
  return a.name < b.name ? -1 : 1;
}

interface Counted {
  readonly tested: number;
  readonly notReady: number;
  readonly unknown: number;
  /** The earliest instant at which an unready pod becomes ready by time alone. */
  readonly earliestMs?: number | undefined;
}

/** The definition of a ready pod, and the pods to count. */
interface ReadyTest {
  /** Defines when a pod is ready; undefined: a pod is ready if all its containers are. */
  readonly group: GroupDefinition | undefined;
  /** Time at which the claim on a pod stops counting, by pod UID. */
  readonly claimed: ReadonlyMap<string, number>;
  /** UID of the pod in question, which does not count. */
  readonly exceptUid: string;
  /** The time for which a pod must have been ready, in milliseconds. */
  readonly crossZoneDelayMs: number;
  /** Selects the pods to count; absent: all pods. */
  readonly isMember?: (pod: PodView) => boolean;
}

/** Returns the pod counts of one StatefulSet; undefined if its pods could not be read. */
function countPods(snapshot: Pick<Snapshot, 'nowMs' | 'pods'>, set: StatefulSetView, test: ReadyTest): Counted | undefined {
  const pods = podsNamed(snapshot, set.namespace, set.name);
  if (pods === undefined || isUnknown(pods)) return undefined;
  let tested = 0;
  let notReady = 0;
  const waking: number[] = [];
  for (const pod of pods) {
    if (test.isMember !== undefined && !test.isMember(pod)) continue;
    tested += 1;
    if (pod.uid === test.exceptUid) continue;
    const sinceMs = readyFromMs(pod, set, test, snapshot.nowMs);
    if (sinceMs !== undefined && sinceMs <= snapshot.nowMs) continue;
    notReady += 1;
    if (sinceMs !== undefined) waking.push(sinceMs);
  }
  // Missing pods may belong to any partition, so they always count.
  const unknown = Math.max(0, Math.max(set.replicas, set.status.replicas) - pods.length);
  return { tested, notReady, unknown, earliestMs: earliest(waking) };
}

/** Returns the instant from which the pod counts as ready if nothing changes; undefined if time alone does not make the pod ready. */
function readyFromMs(pod: PodView, set: StatefulSetView, test: ReadyTest, nowMs: number): number | undefined {
  const claimEndMs = test.claimed.get(pod.uid) ?? 0;
  const { group } = test;
  const readsCondition = group !== undefined && profileOf(group).podReadiness === 'condition';
  const isUp = group === undefined ? isServing(pod) : isAvailable(pod, group, 0, nowMs);
  if (!isUp) return undefined;
  const availableMs = readsCondition ? pod.readyChangedMs + set.minReadySeconds * 1000 : 0;
  if (test.crossZoneDelayMs === 0) return Math.max(claimEndMs, availableMs);
  // In adopted groups only the annotation gives the ready time. Without it, the delay of a pod never ends.
  const readyTimeMs = pod.readyTimeMs ?? (readsCondition ? pod.readyChangedMs : undefined);
  if (readyTimeMs === undefined) return undefined;
  return Math.max(claimEndMs, availableMs, readyTimeMs + test.crossZoneDelayMs + 1);
}
