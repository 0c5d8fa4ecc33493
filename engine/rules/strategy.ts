// Checks the update strategies of the members, and StatefulSet writes that can replace pods or change their next revision: a new strategy,
// partition, first ordinal or template.
import type { GroupDefinition } from '../../policies/definition.ts';
import { holdingPartition, traitsOf } from '../../policies/strategies.ts';
import { counted } from '../../policies/wording.ts';
import { type GroupContext, sourceOf } from '../context.ts';
import type { AdmissionRequest, RuleResult } from '../decision.ts';
import type { ZoneView } from '../observe/view.ts';
import { profileOf } from '../profiles.ts';
import { result } from '../rule.ts';
import type { PodView, StatefulSetView } from '../snapshot.ts';
import { oldStatusOf, type RollQuestion, unreadResult } from './roll.ts';

export type UpdateRequest = Extract<AdmissionRequest, { kind: 'update' }>;

/** Blocks while a member has another update strategy than the strategy of its group needs. */
export function updateStrategy({ context, zone }: RollQuestion): RuleResult {
  const asked = profileOf(context.group).checksStrategyOfAllZones ? context.view.zones : [zone.view];
  const [unfit] = unfitMembers(context.group, asked);
  const limit = traitsOf(context.group).updateStrategy;
  return unfit ?? result('update-strategy', 'ok', `the update strategy is ${limit}`, { limit });
}

/** Returns a blocking result for each zone whose StatefulSet has another update strategy than the strategy of the group needs. */
export function unfitMembers(group: GroupDefinition, zones: readonly ZoneView[]): readonly RuleResult[] {
  const { updateStrategy: limit } = traitsOf(group);
  return zones.flatMap((zone) => {
    const { set } = zone;
    if (set === undefined || set.updateStrategy === limit) return [];
    const source = { object: `StatefulSet ${group.namespace}/${set.name}`, field: 'spec.updateStrategy.type' };
    const fact = `${set.name} has the update strategy ${set.updateStrategy}: the strategy ${group.rollout.strategy} needs ${limit}`;
    return [result('update-strategy', 'no', fact, { limit, source, endsWith: fittingChange(group, zone, set) })];
  });
}

/** Returns the steps that give the StatefulSet the update strategy of its group. No rule denies the write, and it replaces no pod. */
function fittingChange({ namespace, name, rollout }: GroupDefinition, zone: ZoneView, set: StatefulSetView): string {
  const { updateStrategy: type, holdsPartition } = traitsOf({ rollout });
  const rollingUpdate = holdsPartition ? { partition: holdingPartition } : null;
  const patch = JSON.stringify({ spec: { updateStrategy: { type, rollingUpdate } } });
  const write = `kubectl patch statefulset ${set.name} -n ${namespace} --type=merge -p '${patch}', and write type: ${type} into its manifest`;
  const pods = holdsPartition ? displacedPods({ rollout }, zone, set) : set.partition >= holdingPartition ? notUpdated(zone) : [];
  if (pods.length === 0) return write;
  // An undo gives the StatefulSet the template of its pods only if all of them run the same revision.
  if (new Set(zone.pods.map(({ revision }) => revision)).size === 1)
    return `kubectl rollout-group undo ${namespace}/${name}; then: ${write}; then cancel the undo, and apply the new template again`;
  return `set a strategy of RolloutGroup ${namespace}/${name} that needs ${set.updateStrategy} until the rollout is complete; then set ${rollout.strategy} again; then: ${write}`;
}

/**
 * Returns the outdated pods that come back at a third revision after a change from OnDelete with the holding partition: neither at their own
 * nor at the update revision. Pins keep the revision of every pod.
 */
function displacedPods(
  group: Pick<GroupDefinition, 'rollout'>,
  zone: ZoneView,
  set: StatefulSetView,
  isTemplateChanged = false,
): readonly PodView[] {
  if (traitsOf(group).pinsPods || set.updateStrategy !== 'OnDelete') return [];
  const outdated = isTemplateChanged ? zone.pods.filter((pod) => !zone.surplus.includes(pod)) : notUpdated(zone);
  return outdated.filter(({ revision }) => revision !== set.status.currentRevision);
}

/**
 * Blocks writes that expose outdated pods (RollingUpdate, a lower partition, a template under RollingUpdate), every change of the first
 * ordinal, and a change to OnDelete that would update pods when they restart.
 */
export function strategyKept(context: GroupContext, zone: ZoneView, request: UpdateRequest): readonly RuleResult[] {
  const { set } = zone;
  if (set === undefined) return [];
  return [...ordinalsKept(set, request), ...updatesKept(context, zone, set, request)];
}

function ordinalsKept(set: StatefulSetView, { firstOrdinal = set.firstOrdinal }: UpdateRequest): readonly RuleResult[] {
  if (firstOrdinal === set.firstOrdinal) return [];
  const fact = `the write changes the first ordinal of ${set.name}, so the StatefulSet controller would delete pods`;
  return [result('ordinals-kept', 'no', fact, { limit: `first ordinal ${set.firstOrdinal}` })];
}

function updatesKept(context: GroupContext, zone: ZoneView, set: StatefulSetView, request: UpdateRequest): readonly RuleResult[] {
  const { strategy, isTemplateChanged, partition = set.partition } = request;
  const { pinsPods, holdsPartition } = traitsOf(context.group);
  if (strategy === 'OnDelete') return versionsKept(context, zone, request);
  const awaited = templateHeld(context, zone, request);
  if (awaited !== undefined) return [awaited];
  const isOther = set.updateStrategy !== strategy;
  if (isOther && pinsPods && partition >= zone.replicas) return pinsNoted(context, zone);
  if (!isOther && partition >= set.partition && (!isTemplateChanged || holdsPartition)) return [];
  const unread = unreadResult(zone);
  if (unread !== undefined) return [unread];
  const old = isTemplateChanged ? undefined : oldStatusOf(zone);
  return old === undefined ? podsKept(context, zone, set, request) : [old];
}

/** Blocks a write after which the StatefulSet controller would replace outdated pods by itself. */
function podsKept(context: GroupContext, zone: ZoneView, set: StatefulSetView, request: UpdateRequest): readonly RuleResult[] {
  const { strategy, isTemplateChanged, partition = set.partition } = request;
  const { holdsPartition, pinsPods } = traitsOf(context.group);
  const isOther = set.updateStrategy !== strategy;
  const beyond = isOther && !holdsPartition ? 0 : partition;
  const outdated = countExposed(zone, set, { isTemplateChanged, pinsPods, beyond });
  if (outdated === 0) return isOther && holdsPartition ? revisionsKept(context, zone, set, request) : [];
  const { what, ...details } = exposureOf(context, zone, set, request);
  const fact = `${what} would replace ${counted(outdated, 'pod')} of ${set.name} that ${outdated === 1 ? 'is' : 'are'} not at the update revision`;
  return [result('update-strategy', 'no', fact, { ...details, source: sourceOf(context, 'rollout.strategy') })];
}

/** Describes the part of a write that exposes pods, with its limit. */
function exposureOf(
  context: GroupContext,
  zone: ZoneView,
  set: StatefulSetView,
  request: UpdateRequest,
): { readonly what: string; readonly limit: string; readonly endsWith?: string } {
  const { strategy, partition = set.partition } = request;
  const isOther = set.updateStrategy !== strategy;
  if (isOther && traitsOf(context.group).holdsPartition) {
    return { what: `${strategy} without the ${holdingLimit}`, limit: holdingLimit, endsWith: fittingWrite(context, zone, set, request) };
  }
  if (isOther) return { what: 'another strategy', limit: set.updateStrategy };
  if (partition < set.partition) return { what: `the partition ${partition}`, limit: `partition ${set.partition}` };
  return { what: `a template under ${strategy}`, limit: 'OnDelete' };
}

interface Exposure {
  readonly isTemplateChanged: boolean;
  readonly pinsPods: boolean;
  /** The partition after the write. */
  readonly beyond: number;
}

function countExposed(zone: ZoneView, set: StatefulSetView, { isTemplateChanged, pinsPods, beyond }: Exposure): number {
  if (isTemplateChanged) return Math.max(0, zone.replicas - beyond);
  return notUpdated(zone).filter((pod) => pinsPods || pod.ordinal >= set.firstOrdinal + beyond).length;
}

/** Blocks a change from OnDelete after which a restart brings a pod to a revision that it does not run and that is not the update revision. */
function revisionsKept(context: GroupContext, zone: ZoneView, set: StatefulSetView, request: UpdateRequest): readonly RuleResult[] {
  const displaced = displacedPods(context.group, zone, set, request.isTemplateChanged);
  if (displaced.length === 0) return [];
  const fact = `${counted(displaced.length, 'pod')} of ${set.name} would come back at ${set.status.currentRevision} after a restart, an earlier revision than ${displaced.length === 1 ? 'it runs' : 'they run'}`;
  const details = { limit: set.updateStrategy, source: sourceOf(context, 'rollout.strategy') };
  return [result('update-strategy', 'no', fact, { ...details, endsWith: fittingWrite(context, zone, set, request) })];
}

function fittingWrite({ group }: GroupContext, zone: ZoneView, set: StatefulSetView, { isTemplateChanged }: UpdateRequest): string {
  const change = fittingChange(group, zone, set);
  return isTemplateChanged ? `${change}; then apply the new template` : change;
}

/**
 * Blocks a change from OnDelete while a pod without a pin would come back at another revision after a restart: at `status.currentRevision`,
 * which OnDelete does not advance.
 */
function pinsNoted({ group, view }: GroupContext, member: ZoneView): readonly RuleResult[] {
  const { zone, set, pods: members } = member;
  const unread = unreadResult(member);
  if (unread !== undefined) return [unread];
  const isNoted = (pod: PodView): boolean =>
    pod.revision === set?.status.currentRevision ||
    view.ledger.pins?.some((one) => one.zone === zone.name && one.ordinal === pod.ordinal && one.revision === pod.revision) === true;
  const lost = members.filter((pod) => !isNoted(pod));
  if (lost.length === 0) return [];
  const fact = `${counted(lost.length, 'pod')} of ${zone.statefulSet} would come back at ${set?.status.currentRevision || 'an unknown revision'}: the agent has not pinned ${lost.length === 1 ? 'it' : 'them'} yet`;
  const endsWith = 'apply the group first; when the agent has pinned the pods, write the update strategy again';
  return [result('update-strategy', 'wait', fact, { limit: set?.updateStrategy, source: group.sources['rollout.strategy'], endsWith })];
}

/** Blocks a change to OnDelete while a partition keeps pods at an earlier revision: a restart would update such a pod before its wave. */
function versionsKept({ group }: GroupContext, zone: ZoneView, { isTemplateChanged }: UpdateRequest): readonly RuleResult[] {
  const { set } = zone;
  if (set === undefined || !traitsOf(group).holdsPartition || set.updateStrategy === 'OnDelete') return [];
  const unread = unreadResult(zone);
  if (unread !== undefined) return [unread];
  const count = isTemplateChanged ? zone.replicas : notUpdated(zone).length;
  if (count === 0) return [];
  const fact = `under OnDelete ${counted(count, 'pod')} of ${set.name} would come back at the update revision whenever they restart`;
  return [result('update-strategy', 'no', fact, { limit: set.updateStrategy, source: group.sources['rollout.strategy'] })];
}

const holdingLimit = `partition ${holdingPartition}`;

/** Blocks a template while the partition does not protect the pods yet: after the end of a rollout, until the next turn of the agent. */
function templateHeld({ group }: GroupContext, zone: ZoneView, request: UpdateRequest): RuleResult | undefined {
  const { set, replicas } = zone;
  if (!traitsOf(group).holdsPartition || !request.isTemplateChanged || set === undefined || zone.unknown !== undefined) return undefined;
  const { partition = set.partition } = request;
  const isRepair = !traitsOf(group).pinsPods && isUnfinished(zone, set);
  if (set.updateStrategy !== request.strategy || isRepair || partition !== set.partition || partition >= replicas) return undefined;
  const count = replicas - partition;
  const fact = `the partition of ${set.name} does not protect ${counted(count, 'pod')} yet: a new template would replace ${count === 1 ? 'it' : 'them'} at once`;
  return result('update-strategy', 'wait', fact, { limit: holdingLimit, source: group.sources['rollout.strategy'] });
}

/**
 * Reports whether the rollout of the zone goes on: pods are outdated, or a pod that is not ready keeps the agent from raising the partition.
 * Only another template can repair a broken template then. A ready pod becomes available by time alone (`minReadySeconds`).
 */
function isUnfinished({ outdated, updated, replicas, pods: members, surplus }: ZoneView, { status }: StatefulSetView): boolean {
  if (outdated.length > 0) return true;
  if (updated === replicas && status.currentRevision === status.updateRevision) return false;
  return members.some((pod) => !pod.isTerminating && !pod.isReady && !surplus.includes(pod));
}

/** Reports whether a template waits only until the agent sets the partition: for seconds after the group is defined or a rollout ends. */
export function waitsForPartition({ rule, outcome, limit }: RuleResult): boolean {
  return rule === 'update-strategy' && outcome === 'wait' && limit === holdingLimit;
}

/** Returns the pods that are not at the update revision, including rolled-back pods. The StatefulSet controller would replace them. */
function notUpdated({ set, pods: members, surplus }: ZoneView): readonly PodView[] {
  return members.filter((pod) => pod.revision !== set?.status.updateRevision && !surplus.includes(pod));
}
