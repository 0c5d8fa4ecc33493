// Builds the state of a policy test case: the manifests as a healthy cluster, changed by the `given` of the case.

import type { GroupDefinition, PolicyBundle, PolicyDefinition, ZoneDefinition } from '../../policies/definition.ts';
import { durationMs } from '../../policies/duration.ts';
import type { GivenState } from '../../policies/schema/policy-test.ts';
import { holdingPartition, traitsOf } from '../../policies/strategies.ts';
import { defined, extended } from '../../policies/values/defined.ts';
import { getOrCreate, keptByObject } from '../../policies/values/map.ts';
import { counted } from '../../policies/wording.ts';
import { contextOf } from '../context.ts';
import { controllerLabels, snapshotFromManifests, unmodelledPods, withReportedReplicas } from '../observe/manifests.ts';
import { profileOf } from '../profiles.ts';
import { planDeviations, withApprovedPlan } from '../run/approved-plan.ts';
import { digestOfRule, digestOfWaves } from '../run/requests.ts';
import {
  emptyLedger,
  type GateReading,
  type GateReadingsView,
  type IntentView,
  isUnknown,
  type Ledger,
  type MetricView,
  type PodView,
  type ReplicaSourceView,
  type Snapshot,
  type StatefulSetView,
  setNamed,
} from '../snapshot.ts';
import { withHoldingPartitions } from '../strategies/partition.ts';

interface StateQuestion {
  readonly bundle: PolicyBundle;
  readonly manifests: readonly unknown[];
  readonly group: GroupDefinition;
  readonly given: GivenState;
  readonly nowMs: number;
  readonly agentNamespace?: string;
}

interface CaseState {
  readonly snapshot: Snapshot;
  /** The same object for equal states. */
  readonly given: GivenState;
  /** The problems of a case that names missing objects or an impossible state, each as one clause. */
  readonly problems: readonly string[];
}

type ZoneState = NonNullable<GivenState['zones']>[string];

/** The states by their bundle and manifests, then by the rest of the question. A review asks several requests in one state. */
const statesBy = keptByObject((_bundle: PolicyBundle) => keptByObject((_manifests: readonly unknown[]) => new Map<string, CaseState>()));

/** Builds the state of one case. Parts that the case omits are healthy, updated and not scaled. */
export function caseState(question: StateQuestion): CaseState {
  const { bundle, manifests, group, given, nowMs, agentNamespace } = question;
  const kept = statesBy(bundle)(manifests);
  if (kept.size >= keptStateLimit) kept.clear();
  return getOrCreate(kept, JSON.stringify([group.namespace, group.name, nowMs, agentNamespace, given]), () => buildState(question));
}

function buildState(question: StateQuestion): CaseState {
  const { bundle, group, nowMs, agentNamespace } = question;
  const zones = zonesGiven(question);
  const read = runningManifests(question, zones);
  const problems = [...read.problems, ...unknownZones(question), ...largeSets(group, read.snapshot)];
  let snapshot: Snapshot = extended(read.snapshot, {
    policies: bundle.policies,
    exceptions: bundle.exceptions,
    ...defined({ agentNamespace }),
    ledgers: [ledgerOf(group, zones, nowMs, read.snapshot)],
  });
  for (const { zone, state } of zones) {
    const set = setNamed(snapshot, group.namespace, zone.statefulSet);
    if (set === undefined) problems.push(`zone ${zone.name}: the manifests contain no StatefulSet ${zone.statefulSet}`);
    else {
      problems.push(...impossible(zone, state, set));
      snapshot = withZone(snapshot, group, state, set);
    }
  }
  if (question.given.approvedPlan === true) snapshot = withApprovedPlan(contextOf(snapshot, group));
  const inputs = inputsGiven(snapshot, group, question.given);
  return { snapshot: inputs.snapshot, given: question.given, problems: [...problems, ...inputs.problems] };
}

type RunningManifests = ReturnType<typeof snapshotFromManifests>;

/** The running manifests by their groups, then by replicas and time. Most cases differ only in other parts of the state. */
const runningBy = keptByObject((_groups: readonly GroupDefinition[]) =>
  keptByObject((_manifests: readonly unknown[]) => new Map<string, RunningManifests>()),
);

/** The maximum number of states that are kept for one bundle. */
const keptStateLimit = 100;

/** Returns the manifests as a healthy cluster with the replicas of the case. */
function runningManifests({ bundle: { groups }, manifests, group, nowMs }: StateQuestion, zones: readonly GivenZone[]): RunningManifests {
  const replicas = new Map(
    zones.flatMap(({ zone, state }): [string, number][] =>
      state.replicas === undefined ? [] : [[`${group.namespace}/${zone.statefulSet}`, state.replicas]],
    ),
  );
  const kept = runningBy(groups)(manifests);
  if (kept.size >= keptStateLimit) kept.clear();
  return getOrCreate(kept, JSON.stringify([nowMs, ...replicas]), () => {
    const { snapshot, problems } = snapshotFromManifests(manifests, { nowMs, groups, replicas });
    return { snapshot: withHoldingPartitions(snapshot), problems };
  });
}

interface GivenZone {
  readonly zone: ZoneDefinition;
  readonly state: ZoneState;
}

function zonesGiven({ group, given }: StateQuestion): readonly GivenZone[] {
  return group.zones.flatMap((zone) => {
    const state = given.zones?.[zone.name];
    return state === undefined ? [] : [{ zone, state }];
  });
}

function unknownZones({ group, given }: StateQuestion): readonly string[] {
  const names = group.zones.map((zone) => zone.name);
  return Object.keys(given.zones ?? {})
    .filter((name) => !names.includes(name))
    .map((name) => `the group ${group.name} has no zone ${name}; its zones are ${names.join(', ')}`);
}

function largeSets({ namespace, zones }: GroupDefinition, snapshot: Snapshot): readonly string[] {
  return zones.flatMap(({ statefulSet }) => unmodelledPods(statefulSet, setNamed(snapshot, namespace, statefulSet)?.replicas ?? 0) ?? []);
}

/** Returns the problems of a state that no cluster can have, or that sets both `ready` and `unready`. */
function impossible({ name }: ZoneDefinition, state: ZoneState, set: StatefulSetView): readonly string[] {
  const end = set.firstOrdinal + set.replicas;
  const outside = [...(state.unready ?? []), ...(state.missing ?? [])].find((ordinal) => ordinal < set.firstOrdinal || ordinal >= end);
  return [
    ...(outside === undefined ? [] : [`zone ${name} has no pod ${outside}; its ordinals are ${set.firstOrdinal} to ${end - 1}`]),
    ...(['ready', 'updated'] as const).flatMap((field) => {
      const count = state[field] ?? 0;
      return count > set.replicas ? [`zone ${name} has ${counted(set.replicas, 'replica')}, so ${count} cannot be ${field}`] : [];
    }),
    ...(state.ready !== undefined && state.unready !== undefined ? [`zone ${name}: set either ready or unready, not both`] : []),
  ];
}

function withZone(snapshot: Snapshot, group: GroupDefinition, state: ZoneState, set: StatefulSetView): Snapshot {
  const isSame = (view: { readonly namespace: string; readonly statefulSet: string }): boolean =>
    view.namespace === set.namespace && view.statefulSet === set.name;
  const known = snapshot.pods.find(isSame)?.pods ?? [];
  const revised = { ...set, ...partitionOf(group, state, set), status: { ...set.status, updateRevision: revisionAsked(set, state) } };
  const pods = isUnknown(known) ? known : podsGiven(revised, state, known, snapshot.nowMs);
  const counted = isUnknown(pods) ? revised : withCounters(revised, pods);
  const dated = profileOf(group).downscaleTime === 'ledger' ? counted : withDownscale(counted, state, snapshot.nowMs);
  return {
    ...snapshot,
    statefulSets: snapshot.statefulSets.map((candidate) => (candidate === set ? dated : candidate)),
    pods: snapshot.pods.map((view) =>
      isSame(view) ? { ...view, pods: state.unknown === true ? { unknown: 'set by the case' } : pods } : view,
    ),
  };
}

/** Returns the partition at which a rollout has updated as many pods as in the case; unchanged if the strategy lowers no partition. */
function partitionOf(
  group: GroupDefinition,
  { updated = 0 }: ZoneState,
  { partition, replicas }: StatefulSetView,
): Pick<StatefulSetView, 'partition'> {
  const isMoved = traitsOf(group).lowersPartition && partition === holdingPartition && updated > 0 && updated < replicas;
  return { partition: isMoved ? replicas - updated : partition };
}

/** The suffix of the update revision in a case. The manifests have only the revision before it. */
const newRevisionSuffix = '-next';

/** Returns the revision before the update revision of a case. */
export function previousRevision(revision: string): string {
  return revision.endsWith(newRevisionSuffix) ? revision.slice(0, -newRevisionSuffix.length) : revision;
}

function revisionAsked({ status }: StatefulSetView, state: ZoneState): string {
  return state.updated === undefined ? status.updateRevision : `${status.updateRevision}${newRevisionSuffix}`;
}

function podsGiven(set: StatefulSetView, state: ZoneState, pods: readonly PodView[], nowMs: number): readonly PodView[] {
  const { updateRevision } = set.status;
  const outdatedRevision = previousRevision(updateRevision);
  const end = set.firstOrdinal + set.replicas;
  const unready = new Set(state.unready ?? []);
  const readyEnd = set.firstOrdinal + (state.ready ?? set.replicas);
  const missing = new Set(state.missing ?? []);
  const firstUpdated = end - (state.updated ?? set.replicas);
  const readySinceMs = state.readyFor === undefined ? undefined : nowMs - durationMs(state.readyFor);
  const isGiven = (pod: PodView): boolean => pod.revision === updateRevision && pod.labels['controller-revision-hash'] === updateRevision;
  // The engine caches views by their list of pods, so an unchanged list stays the same.
  if (Object.keys(state).every((field) => field === 'replicas') && pods.every(isGiven)) return pods;
  return pods
    .filter((pod) => !missing.has(pod.ordinal))
    .map((pod) => {
      const revision = pod.ordinal >= firstUpdated ? updateRevision : outdatedRevision;
      const labels = { ...pod.labels, ...controllerLabels(set, pod.ordinal, revision) };
      return { ...pod, revision, labels, ...readiness(pod, unready.has(pod.ordinal) || pod.ordinal >= readyEnd, { readySinceMs, nowMs }) };
    });
}

/** Returns the changed readiness of a pod. An unready pod became unready now. A ready pod became ready at `readySinceMs`, if set. */
function readiness(
  pod: PodView,
  isUnready: boolean,
  { readySinceMs, nowMs }: { readonly readySinceMs: number | undefined; readonly nowMs: number },
): Partial<PodView> {
  if (isUnready) return { isReady: false, containersReady: false, readyChangedMs: nowMs };
  if (readySinceMs === undefined || !pod.isReady) return {};
  return { readyChangedMs: readySinceMs, readyTimeMs: readySinceMs };
}

function withCounters(set: StatefulSetView, pods: readonly PodView[]): StatefulSetView {
  const readyReplicas = pods.filter((pod) => pod.isReady).length;
  const updatedReplicas = pods.filter((pod) => pod.revision === set.status.updateRevision).length;
  return { ...set, status: { ...set.status, replicas: pods.length, readyReplicas, updatedReplicas } };
}

/** Adds the annotation in which grafana/rollout-operator stores the time of a downscale. Rules of adopted groups read it. */
function withDownscale(set: StatefulSetView, { lastDownscale }: ZoneState, nowMs: number): StatefulSetView {
  if (lastDownscale === undefined) return set;
  const at = new Date(nowMs - durationMs(lastDownscale)).toISOString();
  return { ...set, annotations: { ...set.annotations, 'grafana.com/last-downscale': at } };
}

function ledgerOf(group: GroupDefinition, zones: readonly GivenZone[], nowMs: number, snapshot: Snapshot): Ledger {
  const isDated = profileOf(group).downscaleTime === 'ledger';
  const downscales = zones.flatMap(({ zone, state }) => {
    if (state.lastDownscale === undefined || !isDated) return [];
    const to = setNamed(snapshot, group.namespace, zone.statefulSet)?.replicas ?? 0;
    return [{ zone: zone.name, atMs: nowMs - durationMs(state.lastDownscale), from: to + 1, to }];
  });
  return { ...emptyLedger(group.namespace, group.name), downscales };
}

function inputsGiven(snapshot: Snapshot, group: GroupDefinition, given: GivenState) {
  const problems: string[] = [];
  const metrics = metricsGiven(snapshot, given, problems);
  const gateReadings = gatesGiven(snapshot, group, given, problems);
  const intents = [...approvalsGiven(snapshot, group, given, problems), ...pausesGiven(snapshot, group, given)];
  // Each mirrored object reports the replicas of the case instead of those in its manifest.
  const replicaSources = sourcesGiven(snapshot, group, given, problems).map((source) => ({ ...source, statusReplicas: 0 }));
  return { snapshot: withReportedReplicas({ ...snapshot, metrics, gateReadings, intents, replicaSources }), problems };
}

/** Returns the readings of the case. A key `input` sets the input in every policy, a key `policy/input` in one policy. */
function metricsGiven(snapshot: Snapshot, given: GivenState, problems: string[]): readonly MetricView[] {
  return Object.entries(given.metrics ?? {}).flatMap(([key, value]) => {
    const input = key.slice(key.indexOf('/') + 1);
    const declares = (policy: PolicyDefinition): boolean =>
      Object.hasOwn(policy.metrics, input) && (key === input || key === `${policy.name}/${input}`);
    const owners = snapshot.policies.filter(declares);
    if (owners.length === 0) problems.push(`no policy declares the metric ${key}`);
    return owners.map(
      (policy): MetricView => ({
        namespace: policy.namespace,
        policy: policy.name,
        input,
        value: value === 'unknown' ? { unknown: 'set by the case' } : value,
        atMs: snapshot.nowMs,
      }),
    );
  });
}

/** Returns the gate readings of a case, one period apart. The newest reading is of this instant. */
function gatesGiven(snapshot: Snapshot, group: GroupDefinition, given: GivenState, problems: string[]): readonly GateReadingsView[] {
  return Object.entries(given.gates ?? {}).flatMap(([name, values]) => {
    const gate = group.gates.find((candidate) => candidate.name === name);
    if (gate === undefined) {
      problems.push(`the group ${group.name} has no gate ${name}`);
      return [];
    }
    const { nowMs } = snapshot;
    const readings: readonly GateReading[] =
      values === 'error'
        ? [{ atMs: nowMs, result: 'error', message: 'set by the case' }]
        : values === 'noData'
          ? [{ atMs: nowMs, result: 'noData' }]
          : values.map((value, index) => ({ atMs: nowMs - (values.length - 1 - index) * gate.everyMs, result: 'value', value }));
    return [{ namespace: group.namespace, group: group.name, gate: name, readings }];
  });
}

/** Returns the approvals of a case, as if the webhook had recorded their requesters at this instant. */
function approvalsGiven(snapshot: Snapshot, group: GroupDefinition, given: GivenState, problems: string[]): readonly IntentView[] {
  return (given.approvals ?? []).map((approval, index) => {
    const { wave, rule, user, groups } = approval;
    const digest = rule === undefined ? digestOfWaves(group) : ruleDigest(snapshot, group, rule);
    problems.push(...approvalProblems(group, approval, digest));
    const requestedBy = { user, groups, atMs: snapshot.nowMs };
    const request = { namespace: group.namespace, name: `approval-${index + 1}`, group: group.name, action: 'approve' as const };
    return { ...request, ...defined({ wave, rule, digest }), requestedBy };
  });
}

function approvalProblems(
  group: GroupDefinition,
  { wave, rule, user }: NonNullable<GivenState['approvals']>[number],
  digest: string | undefined,
): readonly string[] {
  if (wave === undefined && rule === undefined) return [`the approval of ${user} names neither a wave nor a rule`];
  const isKnownWave = wave === undefined || group.rollout.waves.some(({ name }) => name === wave);
  return [
    ...(isKnownWave ? [] : [`the group ${group.name} has no wave ${wave}`]),
    ...(digest === undefined ? [`no policy has the rule ${rule}; rules are named as policy/rule`] : []),
  ];
}

function ruleDigest(snapshot: Snapshot, group: GroupDefinition, name: string): string | undefined {
  for (const policy of snapshot.policies) {
    const rule = policy.rules.find((one) => `${policy.name}/${one.name}` === name);
    if (rule === undefined) continue;
    const context = contextOf(snapshot, group);
    return digestOfRule(policy, rule, rule.effect === 'requireApprovedPlan' ? planDeviations(context, context.view.ledger.run) : []);
  }
  return undefined;
}

function pausesGiven(snapshot: Snapshot, group: GroupDefinition, given: GivenState): readonly IntentView[] {
  const requestedBy = { user: 'unnamed', groups: [], atMs: snapshot.nowMs };
  const pause = { namespace: group.namespace, group: group.name, action: 'pause', requestedBy } as const;
  const zones = group.zones.filter((zone) => given.zones?.[zone.name]?.paused === true);
  return [
    ...(given.paused === true ? [extended(pause, { name: 'pause' })] : []),
    ...zones.map((zone): IntentView => extended(pause, { name: `pause-${zone.name}`, zone: zone.name })),
  ];
}

function sourcesGiven(snapshot: Snapshot, group: GroupDefinition, given: GivenState, problems: string[]): readonly ReplicaSourceView[] {
  const mirrors = group.zones.flatMap(({ replicas }) => (replicas.kind === 'mirror' ? [replicas] : []));
  if (given.source === undefined) return snapshot.replicaSources;
  if (mirrors.length === 0) problems.push(`the group ${group.name} mirrors no replica count`);
  const replicas = given.source === 'unknown' ? { unknown: 'set by the case' } : given.source;
  const sources = new Map(snapshot.replicaSources.map((source) => [`${source.namespace}/${source.kind}/${source.name}`, source]));
  for (const { apiVersion, resourceKind: kind, name } of mirrors) {
    const key = `${group.namespace}/${kind}/${name}`;
    sources.set(key, { ...(sources.get(key) ?? { namespace: group.namespace, apiVersion, kind, name }), replicas });
  }
  return [...sources.values()];
}
