// Builds the state in which a plan starts: the running objects, with every requested change judged and, if allowed, applied.
import type { GroupDefinition } from '../../policies/definition.ts';
import { matchesSelector } from '../../policies/label-selector.ts';
import { canonicalJson, isSameValue } from '../../policies/values/canonical-json.ts';
import { defined, extended } from '../../policies/values/defined.ts';
import { keptByObject } from '../../policies/values/map.ts';
import { decideGroup } from '../decide/decide.ts';
import type { AdmissionRequest, Judgement, RuleResult } from '../decision.ts';
import { judge } from '../judge/judge.ts';
import { snapshotFromManifests } from '../observe/manifests.ts';
import { fieldAt } from '../observe/raw.ts';
import { otherOwners } from '../observe/view.ts';
import { blockingResults, leadingResult } from '../rule.ts';
import { permittedResults } from '../rules/exception.ts';
import { readsTime } from '../rules/policy.ts';
import { requestOf } from '../run/requests.ts';
import { isUnknown, type PodBudgetView, type PodView, type Snapshot, type StatefulSetView, setNamed } from '../snapshot.ts';
import { withHoldingPartitions } from '../strategies/partition.ts';
import type { World } from '../world/model.ts';
import { createWorld, type Quantile, step } from '../world/world.ts';
import { manifestOf } from './changes.ts';
import type { Refusal } from './document.ts';
import { withAssumedMetrics } from './forward.ts';
import type { PlanInput } from './plan.ts';

export interface PlanSnapshots {
  /** True if the plan depends on the calendar, for example on a window. Otherwise the plan starts at 0. */
  readonly usesCalendar: boolean;
  readonly nowMs: number;
  readonly before: Snapshot;
  readonly after: Snapshot;
  /** Mirrored objects whose requested replicas differ from the current ones. Only for a plan on a cluster. */
  readonly changedSources?: Snapshot['replicaSources'];
}

/** Start time of a plan that does not depend on the calendar, so that plans of equal inputs have the same bytes. */
const fixedStartMs = 0;

/** Reads the state before and after the change. A plan, its order of writes and its notes need it of the same input. */
export const readPlanSnapshots: (input: PlanInput) => PlanSnapshots = keptByObject((input: PlanInput): PlanSnapshots => {
  const usesCalendar = input.running !== undefined || dependsOnCalendar(input);
  const nowMs = usesCalendar ? input.nowMs : fixedStartMs;
  const after = snapshotFromManifests(input.desired, { nowMs, groups: input.groups, pods: 'none' }).snapshot;
  if (input.running !== undefined) return seenSnapshots(input, input.running, nowMs, after);
  const before = withHoldingPartitions(snapshotFromManifests(input.current, { nowMs, groups: input.groups }).snapshot);
  return { usesCalendar, nowMs, before, after };
});

/** Takes `before` from the cluster. The current manifests only show which mirrored objects get other replicas. */
function seenSnapshots(input: PlanInput, running: Snapshot, nowMs: number, after: Snapshot): PlanSnapshots {
  const before = snapshotFromManifests(input.current, { nowMs, groups: input.groups, pods: 'none' }).snapshot;
  const replicasOf = ({ replicaSources }: Snapshot, wanted: Snapshot['replicaSources'][number]) =>
    replicaSources.find((source) => source.namespace === wanted.namespace && source.kind === wanted.kind && source.name === wanted.name)
      ?.replicas;
  const changedSources = after.replicaSources.filter((source) => !isSameValue(replicasOf(before, source), source.replicas));
  return { usesCalendar: true, nowMs, before: { ...running, nowMs, groups: input.groups }, after, changedSources };
}

/** Reports whether the input has windows, exceptions, conditions on the time, or recorded times of pods and downscales. */
function dependsOnCalendar(input: PlanInput): boolean {
  const { policies, exceptions, current, desired } = input;
  if (exceptions.length > 0 || policies.some((policy) => policy.windows.length > 0)) return true;
  if (policies.some((policy) => policy.rules.some((rule) => readsTime(rule.when)))) return true;
  return /grafana\.com\/(?:last-downscale|ready-time)|"lastTransitionTime"/.test(JSON.stringify([current, desired]));
}

function snapshotBefore(input: PlanInput, { before, after }: PlanSnapshots, group: GroupDefinition): Snapshot {
  const { policies, exceptions, policyDigest, agentNamespace = before.agentNamespace } = input;
  const part = { ...groupPart(before, group, after), policies, exceptions, policyDigest };
  return agentNamespace === undefined ? part : extended(part, { agentNamespace });
}

/** Returns the inputs of one group with the new budgets and mirrored objects, which are applied before the members. */
export function snapshotAsked(input: PlanInput, snapshots: PlanSnapshots, group: GroupDefinition): Snapshot {
  return askedOf(input)(snapshots)(group);
}

/** A plan needs the inputs of a group several times, and a group is selected from the objects of all groups. */
const askedOf = keptByObject((input: PlanInput) =>
  keptByObject((snapshots: PlanSnapshots) => keptByObject((group: GroupDefinition) => withNewBudgets(input, snapshots, group))),
);

function withNewBudgets(input: PlanInput, snapshots: PlanSnapshots, group: GroupDefinition): Snapshot {
  const before = snapshotBefore(input, snapshots, group);
  const { zoneBudgets, podBudgets, replicaSources } = snapshots.after;
  const { changedSources } = snapshots;
  if (changedSources === undefined) return { ...before, zoneBudgets, podBudgets, replicaSources };
  const isChanged = (source: Snapshot['replicaSources'][number]): boolean =>
    changedSources.some((one) => one.namespace === source.namespace && one.kind === source.kind && one.name === source.name);
  return {
    ...before,
    // An object that could not be read stays unknown, also if the change includes it.
    zoneBudgets: isUnknown(before.zoneBudgets) ? before.zoneBudgets : zoneBudgets,
    podBudgets: isUnknown(before.podBudgets) ? before.podBudgets : podBudgets,
    replicaSources: [...before.replicaSources.filter((source) => !isChanged(source)), ...changedSources],
  };
}

interface WorldOptions {
  /** The quantile of the assumed durations; absent: `p50`. */
  readonly quantile?: Quantile;
  /** False if the changes are judged without the assumed metrics. */
  readonly hasMetrics?: boolean;
}

/** Returns the group with which the agent decides after the change: without the members that leave it. A deleted group has no members. */
export function desiredGroup({ desiredGroups }: Pick<PlanInput, 'desiredGroups'>, group: GroupDefinition): GroupDefinition {
  if (desiredGroups === undefined) return group;
  return desiredGroups.find(({ namespace, name }) => namespace === group.namespace && name === group.name) ?? { ...group, zones: [] };
}

/** Judges the requested changes of members and applies the allowed changes. Returns the model, and the group without leaving members. */
export function requestedWorld(
  input: PlanInput,
  snapshots: PlanSnapshots,
  group: GroupDefinition,
  { quantile = 'p50', hasMetrics = true }: WorldOptions = {},
): RequestedChanges & Pick<ChangeRequest, 'group'> {
  const world = createWorld(snapshotAsked(input, snapshots, group), input.assumptions, quantile);
  const requested = requestChanges({
    group,
    groupsBefore: input.groupsBefore ?? [],
    world: hasMetrics ? withAssumedMetrics(world, group) : world,
    after: snapshots.after,
    desired: input.desired,
    written: input.written ?? input.desired,
    ...defined({ requester: input.requester }),
  });
  const desired = desiredGroup(input, group);
  const groups = [desired, ...otherOwners(desired, input.desiredGroups ?? input.groups)];
  return { ...requested, group: desired, world: { ...requested.world, snapshot: { ...requested.world.snapshot, groups } } };
}

/** Returns the zones that keep their replicas after the change because a user cancelled the decrease to the requested number. */
export function cancelledDecreases(input: PlanInput): readonly string[] {
  const { intents = [] } = input.running ?? {};
  const cancels = isUnknown(intents) ? [] : intents.filter(({ action }) => action === 'cancel');
  // Most plans have no such group. For the others, the plan decides once more.
  const groups = input.groups.filter(({ namespace, name }) => cancels.some((one) => one.namespace === namespace && one.group === name));
  if (groups.length === 0) return [];
  const snapshots = readPlanSnapshots(input);
  return groups.flatMap((group) => {
    const { world, group: desired } = requestedWorld(input, snapshots, group);
    const cancelled = decideGroup(world.snapshot, desired).warnings.filter(
      (one) => one.rule === 'replica-source' && requestOf(one) !== undefined,
    );
    return cancelled.map(({ fact }) => `${group.namespace}/${group.name}: ${fact}`);
  });
}

/**
 * Returns the part of a snapshot that one group depends on, so that the cost of a plan is linear in the number of groups: its members, and
 * the StatefulSets that share a disruption budget with them, now or with the objects of `after`.
 */
export function groupPart(snapshot: Snapshot, group: GroupDefinition, after: Snapshot = snapshot): Snapshot {
  const { zoneBudgets } = snapshot;
  const names = new Set(group.zones.map((zone) => zone.statefulSet));
  const isMember = (namespace: string, name: string): boolean => namespace === group.namespace && names.has(name);
  const budgets = budgetsOf(group, [snapshot, after], isMember);
  const sharesZoneBudget = isUnknown(zoneBudgets) || zoneBudgets.some((budget) => budget.namespace === group.namespace);
  const keepsAll = budgets === undefined || sharesZoneBudget;
  const shares = (set: StatefulSetView): boolean =>
    keepsAll || budgets.some(({ selector }) => labelsIn(snapshot, set).some((labels) => matchesSelector(selector, labels)));
  const isPart = (set: StatefulSetView): boolean => set.namespace === group.namespace && (names.has(set.name) || shares(set));
  const statefulSets = snapshot.statefulSets.filter(isPart);
  const kept = new Set(statefulSets.map((set) => set.name));
  const isKept = ({ namespace, statefulSet }: Snapshot['pods'][number]): boolean =>
    namespace === group.namespace && (keepsAll || names.has(statefulSet) || kept.has(statefulSet));
  return { ...snapshot, groups: [group], statefulSets, pods: snapshot.pods.filter(isKept) };
}

/** Returns the labels of the template and of the pods. The pods may have the labels of an earlier template. */
function labelsIn({ pods }: Pick<Snapshot, 'pods'>, { namespace, name, podLabels }: StatefulSetView): readonly PodView['labels'][] {
  return [podLabels, ...(podLabelsBySet(pods).get(`${namespace}/${name}`) ?? [])];
}

/** The labels of pods by StatefulSet. Pods whose labels differ only in those that the StatefulSet controller adds count once. */
const podLabelsBySet = keptByObject((pods: Snapshot['pods']): ReadonlyMap<string, readonly PodView['labels'][]> => {
  return new Map(pods.map((view) => [`${view.namespace}/${view.statefulSet}`, isUnknown(view.pods) ? [] : distinctLabels(view.pods)]));
});

const labelsOfController: ReadonlySet<string> = new Set([
  'controller-revision-hash',
  'statefulset.kubernetes.io/pod-name',
  'apps.kubernetes.io/pod-index',
]);

function distinctLabels(pods: readonly PodView[]): readonly PodView['labels'][] {
  const keyOf = ({ labels }: PodView): string =>
    canonicalJson(Object.fromEntries(Object.entries(labels).filter(([name]) => !labelsOfController.has(name))));
  return [...new Map(pods.map((pod) => [keyOf(pod), pod.labels])).values()];
}

/** Returns the PodDisruptionBudgets of the members and their pods; undefined if budgets could not be read. */
function budgetsOf(
  { namespace }: GroupDefinition,
  snapshots: readonly Snapshot[],
  isMember: (namespace: string, name: string) => boolean,
): readonly PodBudgetView[] | undefined {
  const members = snapshots.flatMap(({ statefulSets }) => statefulSets.filter((set) => isMember(set.namespace, set.name)));
  const views = snapshots.flatMap(({ pods }) => pods.filter((view) => isMember(view.namespace, view.statefulSet)));
  const pods = views.flatMap((view) => (isUnknown(view.pods) ? [] : view.pods));
  const labels = [...members.map(({ podLabels }) => podLabels), ...pods.map((pod) => pod.labels)];
  const budgets = snapshots.map(({ podBudgets }) => podBudgets);
  if (budgets.some(isUnknown)) return undefined;
  return budgets
    .flatMap((list) => (isUnknown(list) ? [] : list))
    .filter((budget) => budget.namespace === namespace && labels.some((one) => matchesSelector(budget.selector, one)));
}

interface ChangeRequest extends Pick<PlanInput, 'requester'> {
  readonly group: GroupDefinition;
  readonly groupsBefore: readonly GroupDefinition[];
  readonly world: World;
  readonly after: Snapshot;
  readonly desired: readonly unknown[];
  /** The manifests as written, without defaults of the API server. */
  readonly written: readonly unknown[];
}

interface RequestedChanges {
  readonly world: World;
  readonly refused: readonly Refusal[];
  /** Results of allowed requests that pass only because of an exception. */
  readonly permitted: readonly RuleResult[];
}

/** Judges the requested change of each member, in the order of the zones, and applies the allowed changes except deletions. */
export function requestChanges(request: ChangeRequest): RequestedChanges {
  let { world } = request;
  const refused: Refusal[] = [];
  const permitted: RuleResult[] = [];
  for (const zone of request.group.zones) {
    const wanted = setNamed(request.after, request.group.namespace, zone.statefulSet);
    const present = setNamed(world.snapshot, request.group.namespace, zone.statefulSet);
    const outcome =
      wanted === undefined ? deletion(request, world, zone.name, present) : change(request, world, { zone: zone.name, present, wanted });
    world = outcome.world;
    refused.push(...outcome.refused);
    permitted.push(...outcome.permitted);
  }
  return { world, refused, permitted: permittedResults(permitted) };
}

function deletion(request: ChangeRequest, world: World, zone: string, present: StatefulSetView | undefined): RequestedChanges {
  if (present === undefined) return { world, refused: [], permitted: [] };
  const asked: AdmissionRequest = {
    kind: 'deleteStatefulSet',
    namespace: present.namespace,
    statefulSet: present.name,
    dryRun: false,
    ...request.requester,
  };
  const judgement = judgeBoth(request, world, asked);
  const what = `delete StatefulSet ${present.name}`;
  const refused = judgement.outcome === 'deny' ? [refusal(request, { what, zone, world, judgement })] : [];
  return { world, refused, permitted: refused.length > 0 ? [] : judgement.results };
}

interface MemberChange {
  readonly zone: string;
  readonly present: StatefulSetView | undefined;
  readonly wanted: StatefulSetView;
}

/** The replicas that the API server gives to a StatefulSet whose manifest names none. */
const defaultReplicas = 1;

function namesReplicas(manifest: unknown): boolean {
  return fieldAt(manifest, ['spec', 'replicas']) !== undefined;
}

/** Returns how to keep the replicas if a manifest resets them because it no longer names them; undefined for another change. */
function resetReplicas({ written }: ChangeRequest, { namespace, name, replicas }: StatefulSetView, to: number): string | undefined {
  const manifest = manifestOf(written, 'StatefulSet', namespace, name);
  if (manifest === undefined || to === replicas || namesReplicas(manifest)) return undefined;
  return `the manifest of StatefulSet ${name} no longer names its replicas, so an apply resets them to ${to}; write replicas: ${replicas} into the manifest`;
}

function change(request: ChangeRequest, world: World, { zone, present, wanted }: MemberChange): RequestedChanges {
  const manifest = manifestOf(request.desired, 'StatefulSet', wanted.namespace, wanted.name);
  const isNumbered = namesReplicas(manifest);
  if (present === undefined) {
    const status = { ...wanted.status, replicas: 0, readyReplicas: 0, updatedReplicas: 0 };
    const created = { ...wanted, replicas: isNumbered ? wanted.replicas : defaultReplicas, status };
    return { world: step(world, { kind: 'createStatefulSet', set: created }), refused: [], permitted: [] };
  }
  const revision = wanted.status.updateRevision;
  const isTemplateChanged = revision !== present.status.updateRevision;
  const to = isNumbered ? wanted.replicas : present.replicas;
  const namesPartition = fieldAt(manifest, ['spec', 'updateStrategy', 'rollingUpdate', 'partition']) !== undefined;
  const asked: AdmissionRequest = {
    kind: 'update',
    namespace: wanted.namespace,
    statefulSet: wanted.name,
    from: present.replicas,
    to,
    isTemplateChanged,
    strategy: wanted.updateStrategy,
    ...(namesPartition ? { partition: wanted.partition } : {}),
    via: 'apply',
    dryRun: false,
    ...request.requester,
  };
  const judged = judgeWithCalls(request, world, asked);
  if (judged.judgement.outcome !== 'allow') {
    const what =
      to === present.replicas ? `update StatefulSet ${wanted.name}` : `scale StatefulSet ${wanted.name} from ${present.replicas} to ${to}`;
    const denied = refusal(request, { what, zone, ...judged });
    const reset = resetReplicas(request, present, to);
    return { world: judged.world, refused: [reset === undefined ? denied : { ...denied, hint: reset }], permitted: [] };
  }
  let changed = withSettings(judged.world, present, namesPartition ? wanted : { ...wanted, partition: unnamedPartition(present, wanted) });
  if (isTemplateChanged) changed = step(changed, { kind: 'setTemplate', namespace: wanted.namespace, statefulSet: wanted.name, revision });
  if (to !== present.replicas)
    changed = step(changed, { kind: 'setReplicas', namespace: wanted.namespace, statefulSet: wanted.name, replicas: to });
  return { world: changed, refused: [], permitted: judged.judgement.results };
}

interface DeniedWrite {
  readonly what: string;
  readonly zone: string;
  readonly world: World;
  readonly judgement: Judgement;
}

/** Returns the refusal, with a hint if the requested definition or an earlier state of the other members permits the write. */
function refusal(request: ChangeRequest, { what, zone, world, judgement }: DeniedWrite): Refusal {
  const { message, results, override } = judgement;
  const leading = leadingResult(results);
  const underNewGroup = judge(world.snapshot, judgement.request);
  if (blockingResults(underNewGroup.results).some(({ rule }) => rule === leading?.rule)) {
    const isByOthers = judgeBoth(request, request.world, judgement.request).outcome !== 'deny';
    return { what, zone, message, results, ...(isByOthers ? { hint: oneAfterTheOther(request) } : defined({ override })) };
  }
  // The labels of a StatefulSet define a drop-in group.
  const first = leading?.source?.object?.startsWith('StatefulSet ') ? 'the labels' : 'the group';
  return { what, zone, message, results, hint: permittedLater(first) };
}

/** Returns what to do if only the changes of other members deny a write: first the change of replicas that no rule denies now, if any. */
function oneAfterTheOther(request: ChangeRequest): string {
  const { namespace, name, zones } = request.group;
  const group = `${namespace}/${name}`;
  const advice = 'other changes of this request cause the denial';
  for (const zone of zones) {
    const [present, wanted] = [request.world.snapshot, request.after].map((snapshot) => setNamed(snapshot, namespace, zone.statefulSet));
    const isDirect = zone.replicas.kind === 'leader' && zone.follows === undefined;
    const manifest = manifestOf(request.desired, 'StatefulSet', namespace, zone.statefulSet);
    if (!isDirect || present === undefined || wanted === undefined || !namesReplicas(manifest)) continue;
    const { replicas: to } = wanted;
    const set = { namespace, statefulSet: zone.statefulSet, from: present.replicas, to, dryRun: false, ...request.requester };
    if (to === present.replicas || judgeBoth(request, request.world, { ...set, kind: 'scale', via: 'scale' }).outcome !== 'allow') continue;
    const scale = `kubectl rollout-group scale ${group} --zone ${zone.name} --replicas ${to}`;
    return `${advice}; to change one zone after the other: ${scale}; repeat the request when all zones are available`;
  }
  return `${advice}; change one zone after the other`;
}

/** Returns the order of the writes if the change of `first` permits a write of a StatefulSet that is denied before this change. */
export function permittedLater(first: string): string {
  return `the requested change of ${first} permits this write, but is not in force yet: apply ${first} first, then the StatefulSet`;
}

/** Judges a request under the groups after and before the change, so that a write cannot remove the labels that would deny the write. */
function judgeBoth(request: ChangeRequest, world: World, asked: AdmissionRequest): Judgement {
  const now = judge(world.snapshot, asked);
  if (now.outcome === 'deny' || request.groupsBefore.length === 0) return now;
  const before = judge({ ...world.snapshot, groups: request.groupsBefore }, asked);
  return before.outcome === 'deny' ? before : now;
}

/** Judges a request. If pods must be called first, makes the calls in the model and judges again. */
function judgeWithCalls(
  request: ChangeRequest,
  world: World,
  asked: AdmissionRequest,
): { readonly world: World; readonly judgement: Judgement } {
  const first = judgeBoth(request, world, asked);
  if (first.outcome !== 'prepare') return { world, judgement: first };
  let called = world;
  for (const action of first.actions) called = step(called, { kind: 'action', action });
  const second = judgeBoth(request, called, asked);
  return { world: called, judgement: second.outcome === 'prepare' ? { ...second, outcome: 'deny' } : second };
}

/** Returns the partition if the manifest omits it: the current one, or the default of the API server if the strategy changes. */
function unnamedPartition(present: StatefulSetView, wanted: StatefulSetView): number {
  return present.updateStrategy === wanted.updateStrategy ? present.partition : wanted.partition;
}

/** Applies the changes that take effect at once: everything except the template and the replicas. */
function withSettings(world: World, present: StatefulSetView, wanted: StatefulSetView): World {
  const { uid, resourceVersion, generation, replicas, status } = present;
  const changed: StatefulSetView = { ...wanted, uid, resourceVersion, generation, replicas, status };
  const statefulSets = world.snapshot.statefulSets.map((set) =>
    set.namespace === present.namespace && set.name === present.name ? changed : set,
  );
  return { ...world, snapshot: { ...world.snapshot, statefulSets } };
}
