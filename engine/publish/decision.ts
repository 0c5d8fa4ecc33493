// Makes the published form of a decision, and decides whether it differs from the previous publication.
import type { GroupDefinition } from '../../policies/definition.ts';
import { holdingPartition, traitsOf } from '../../policies/strategies.ts';
import { defined } from '../../policies/values/defined.ts';
import { isRecord } from '../../policies/values/is-record.ts';
import { ordinalRanges } from '../amount.ts';
import { contextOf } from '../context.ts';
import type { GroupDecision, RuleResult } from '../decision.ts';
import { absentOrdinals, type GroupView, isAvailable, isCrashing, viewGroup, type ZoneView } from '../observe/view.ts';
import { storedResult } from '../rule.ts';
import { unusedExceptions } from '../rules/exception.ts';
import { judgeReading } from '../rules/gate.ts';
import { recordedKind } from '../run/origin.ts';
import type { RunState } from '../run/run-state.ts';
import { type Claim, type GateReading, type Ledger, type PodView, type Snapshot, setNamed } from '../snapshot.ts';
import { bounded } from './bounds.ts';
import { publishedMetrics } from './metrics.ts';
import {
  actionText,
  type PodState,
  type PublishedAction,
  type PublishedDecision,
  type PublishedGate,
  type PublishedPod,
  type PublishedReading,
  type PublishedReservation,
  type PublishedRun,
  type PublishedWait,
  type PublishedZone,
  podStates,
  publishedFormat,
  publishedPodLimit,
  publishedReservationLimit,
  publishedStopLimit,
  type TakenAction,
} from './published.ts';

export interface PublishInput {
  readonly group: GroupDefinition;
  readonly decision: GroupDecision;
  readonly snapshot: Snapshot;
  /** The ledger after the turn; absent: the ledger of the snapshot. */
  readonly ledger?: Ledger;
  readonly performed?: readonly TakenAction[];
  /** The time of these actions, if an earlier turn performed them. */
  readonly performedMs?: number;
  /** The previous publication: phase, waits and actions keep their instants. */
  readonly previous?: PublishedDecision;
  readonly atMs: number;
  readonly leader?: string;
  readonly lease?: PublishedDecision['lease'];
  readonly origin?: string;
  /** The reason why the webhooks may not receive every request that concerns this group. */
  readonly unenforced?: string;
}

/** Returns the publication with at most `publishedByteLimit` bytes of JSON. `bounded` drops the rest. */
export function publishedDecision(input: PublishInput): PublishedDecision {
  const { group, decision, snapshot, previous, atMs, leader, lease, origin } = input;
  const view = viewGroup(snapshot, group);
  const { pods, count } = podsWorthNaming(view, snapshot.nowMs);
  const ledger = input.ledger ?? view.ledger;
  const run = ledger.run ?? decision.run;
  const unused = unusedExceptions(contextOf(snapshot, group), decision.permitted ?? []);
  return bounded({
    format: publishedFormat,
    namespace: decision.namespace,
    group: decision.group,
    goal: decision.goal,
    phase: decision.phase,
    phaseSinceMs: previous?.phase === decision.phase ? previous.phaseSinceMs : atMs,
    outcome: decision.outcome,
    strategy: group.rollout.strategy,
    ...defined({ wave: decision.wave }),
    zones: decision.zones.map((zone) => ({ ...zone, ...partitionOrPins(zone, group, snapshot, ledger) })),
    pods,
    waits: waitsOf(decision, previous, atMs).map(storedResult),
    stops: decision.stops.slice(0, publishedStopLimit),
    ...defined({ permitted: decision.permitted?.slice(0, publishedStopLimit).map(storedResult) }),
    ...(unused.length === 0 ? {} : { unusedExceptions: unused.slice(0, publishedStopLimit) }),
    ...defined({ deadline: decision.deadline && storedResult(decision.deadline) }),
    steps: decision.steps.map(({ id, kind, zone, from, to, outcome, pods: named, results }) => ({
      id,
      kind,
      zone,
      ...defined({ from, to }),
      outcome,
      podCount: named.length,
      results: results.map(storedResult),
    })),
    warnings: decision.warnings.map(storedResult),
    ...defined({ left: decision.left?.slice(0, publishedStopLimit) }),
    gates: gatesOf(group, snapshot, decision),
    ...publishedMetrics(group, snapshot),
    ...(run === undefined ? {} : { run: publishedRun(run) }),
    openClaims: ledger.claims.length,
    ...reservationsOf(ledger),
    actions: actionsOf(input),
    policyDigest: snapshot.policyDigest,
    ...defined({ leader, lease, origin }),
    decidedMs: atMs,
    ...defined({ wakeAtMs: decision.wakeAtMs, unenforced: input.unenforced }),
    omitted: [
      ...(count > pods.length ? [`pods: ${count - pods.length}`] : []),
      ...(decision.stops.length > publishedStopLimit ? [`stops: ${decision.stops.length - publishedStopLimit}`] : []),
      ...(unused.length > publishedStopLimit ? [`unusedExceptions: ${unused.length - publishedStopLimit}`] : []),
    ],
  });
}

function partitionOrPins(
  { zone, statefulSet }: PublishedZone,
  group: GroupDefinition,
  snapshot: Snapshot,
  { pins = [] }: Ledger,
): Pick<PublishedZone, 'partition' | 'pinned'> {
  const set = setNamed(snapshot, group.namespace, statefulSet);
  const { lowersPartition, pinsPods } = traitsOf(group);
  if (lowersPartition && set?.updateStrategy === 'RollingUpdate' && set.partition < holdingPartition) return { partition: set.partition };
  const ordinals = pins.filter((pin) => pin.zone === zone).map(({ ordinal }) => ordinal);
  return pinsPods && ordinals.length > 0 ? { pinned: ordinalRanges(ordinals) } : {};
}

/** Returns the latest open claims of admission with their requesters. Claims of the agent have no requester. */
function reservationsOf({ claims }: Pick<Ledger, 'claims'>): { readonly reservations?: readonly PublishedReservation[] } {
  const asked = claims.flatMap((claim) =>
    claim.user === undefined ? [] : [{ what: reservedText(claim), user: claim.user, atMs: claim.atMs }],
  );
  const latest = asked.sort((a, b) => b.atMs - a.atMs || (a.what < b.what ? -1 : 1)).slice(0, publishedReservationLimit);
  return latest.length === 0 ? {} : { reservations: latest };
}

function reservedText({ verb, zone, ordinal, from, to }: Claim): string {
  if (verb === 'deletePod' || verb === 'evictPod') return `${verb === 'evictPod' ? 'evict' : 'delete'} pod ${ordinal} of zone ${zone}`;
  return verb === 'scaleDown' ? `scale zone ${zone} from ${from} to ${to}` : `partition ${to} of zone ${zone}`;
}

/** Returns the waits. A wait keeps its start while the same rule, from the same object, blocks one of the same zones with the same outcome. */
function waitsOf(decision: GroupDecision, previous: PublishedDecision | undefined, atMs: number): readonly PublishedWait[] {
  return decision.waits.map((wait) => {
    const held = new Set(decision.steps.filter((step) => step.results.some((one) => isSame(one, wait))).map(({ zone }) => zone));
    const zones = decision.zones.map(({ zone }) => zone).filter((zone) => held.has(zone));
    const isOfWait = ({ rule, outcome, source }: PublishedWait): boolean =>
      rule === wait.rule && outcome === wait.outcome && source?.object === wait.source?.object;
    const before = previous?.waits.find((one) => isOfWait(one) && one.zones.some((zone) => zones.includes(zone)));
    return { ...wait, sinceMs: before?.sinceMs ?? atMs, zones };
  });
}

function isSame(a: RuleResult, b: RuleResult): boolean {
  return a.rule === b.rule && a.outcome === b.outcome && a.fact === b.fact;
}

/** Returns the gates with the readings that the decision still needs: the agent forgets all others before the next decision. */
function gatesOf(group: GroupDefinition, snapshot: Snapshot, { wantedReadings }: GroupDecision): readonly PublishedGate[] {
  return group.gates.map((gate) => {
    const { name, mode } = gate;
    const wanted = wantedReadings.some(({ gate }) => gate === name) ? snapshot.gateReadings : [];
    const readings = wanted
      .filter((view) => view.namespace === group.namespace && view.group === group.name && view.gate === name)
      .flatMap((view) => view.readings);
    const [latest] = readings.toSorted((a, b) => b.atMs - a.atMs);
    const failures = readings.filter((reading) => judgeReading(gate, reading, reading.atMs) === 'failure').length;
    return {
      gate: name,
      mode,
      readings: readings.length,
      ...(failures === 0 ? {} : { failures }),
      ...(latest === undefined ? {} : { latest: publishedReading(latest) }),
    };
  });
}

/** Returns the published readings of each gate: the latest one and, if it is a failure, the failures before it. */
export function publishedReadings(group: GroupDefinition, { gates }: PublishedDecision): Snapshot['gateReadings'] {
  return gates.flatMap(({ gate: name, latest, failures = 0 }) => {
    const gate = group.gates.find((one) => one.name === name);
    if (gate === undefined || latest === undefined) return [];
    const count = judgeReading(gate, latest, latest.atMs) === 'failure' ? Math.max(1, failures) : 1;
    // The exact instants of the earlier failures do not count.
    const readings = Array.from({ length: count }, (_, index) => ({ ...latest, atMs: latest.atMs - index })).reverse();
    return [{ namespace: group.namespace, group: group.name, gate: name, readings }];
  });
}

/** Returns the reading. A value that is not finite becomes an error, because the published format cannot contain the value. */
function publishedReading(reading: GateReading): PublishedReading {
  if (reading.result !== 'notFinite') return reading;
  return { atMs: reading.atMs, result: 'error', message: `the value is ${reading.value}` };
}

function actionsOf({ performed = [], previous, atMs, performedMs = atMs }: PublishInput): readonly PublishedAction[] {
  if (performed.length === 0) return previous?.actions ?? [];
  return performed.map(({ action, result, message }) => ({
    kind: action.kind,
    ...('zone' in action ? { zone: action.zone } : {}),
    what: actionText(action),
    result,
    ...defined({ message }),
    atMs: performedMs,
  }));
}

function publishedRun(run: RunState): PublishedRun {
  const { id, target, previous, startedMs, wave, waveStartedMs, outcome, openZone, waveAvailableMs } = run;
  const { rolledBack, returning, restores, kept } = run;
  const kind = recordedKind(run);
  return {
    id,
    kind,
    ...(run.kind === kind ? {} : { returns: run.kind === 'rollback' }),
    target,
    previous,
    startedMs,
    wave,
    waveStartedMs,
    ...defined({ waveAvailableMs, openZone }),
    outcome,
    ...(run.outcome === 'failed' ? { failure: run.failure, failedMs: run.failedMs } : {}),
    ...(run.outcome === 'completed' ? { completedMs: run.completedMs } : {}),
    ...defined({ rolledBack, returning, restores, kept }),
  };
}

/** The difference up to which two values of `earliestMs` count as equal, because each retry of a wait moves the value. */
const earliestToleranceMs = 15 * 60_000;

const aging: ReadonlySet<string> = new Set(['decidedMs', 'wakeAtMs', 'atMs', 'readings', 'earliestMs']);

/** The pattern of durations in facts: `12m`, `1h30m`, `3d`. */
const lengthOfTime = /\b\d+(?:\.\d+)?(?:ms|s|m|h|d|w)(?:\d+(?:\.\d+)?(?:ms|s|m|h|d|w))*\b/g;

/**
 * Reports whether two publications differ only by the passing of time: decision times, ages, equal readings, repeated actions, and earliest
 * times within 15 minutes. A newer metric reading is a change after a third of its maximum age, and a newer gate reading or a repeated
 * call after a minute. Otherwise readers would see ages that are too high.
 */
export function samePublished(a: PublishedDecision, b: PublishedDecision): boolean {
  return isSameButAges(a, b) && haveSameActions(a, b) && isSameEarliest(a, b) && areMetricsFresh(a, b) && areGatesFresh(a, b);
}

/** The time after which a repeated reading or call is a change. Readers see ages in minutes. */
const repetitionMs = 60_000;

/** Reports whether both have the same actions. A repeated eviction is a new action; a repeated call to pods is a new action only after a minute. */
function haveSameActions(a: PublishedDecision, b: PublishedDecision): boolean {
  return a.actions.every(({ kind, atMs }, index) => {
    const laterMs = Math.abs((b.actions[index]?.atMs ?? atMs) - atMs);
    return kind === 'evictPod' || kind === 'deletePod' ? laterMs === 0 : laterMs < repetitionMs;
  });
}

function areGatesFresh({ gates: before }: PublishedDecision, { gates }: PublishedDecision): boolean {
  return gates.every(({ latest }, index) => (latest?.atMs ?? 0) - (before[index]?.latest?.atMs ?? 0) < repetitionMs);
}

function areMetricsFresh({ metrics: before = [] }: PublishedDecision, { metrics = [] }: PublishedDecision): boolean {
  return metrics.every(({ atMs, maxAgeMs }, index) => {
    const beforeMs = before[index]?.atMs;
    return atMs === undefined || (beforeMs !== undefined && atMs - beforeMs < maxAgeMs / 3);
  });
}

/** Compares without ages. It runs after every turn of every group, so it copies nothing. An undefined field counts as absent, as in JSON. */
function isSameButAges(a: unknown, b: unknown, key = ''): boolean {
  if (typeof a === 'string' && typeof b === 'string')
    return a === b || ((key === 'fact' || key === 'message') && ageless(a) === ageless(b));
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((member, index) => isSameButAges(member, b[index]));
  if (!isRecord(a) || !isRecord(b)) return a === b || JSON.stringify(a) === JSON.stringify(b);
  return hasAll(a, b) && hasAll(b, a) && Object.keys(a).every((name) => aging.has(name) || isSameButAges(a[name], b[name], name));
}

function ageless(text: string): string {
  return text.replace(lengthOfTime, '…');
}

function hasAll(a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>): boolean {
  return Object.keys(b).every((name) => b[name] === undefined || a[name] !== undefined || aging.has(name));
}

/** Compares `earliestMs` of the waits. After a minute, an instant in the past and a later instant count as different. */
function isSameEarliest(a: PublishedDecision, b: PublishedDecision): boolean {
  const isOld = b.decidedMs - a.decidedMs >= repetitionMs;
  return a.waits.every(({ earliestMs: before }, index) => {
    const now = b.waits[index]?.earliestMs;
    if (before === undefined || now === undefined) return before === now;
    const isPassed = before <= b.decidedMs && now > before;
    return Math.abs(before - now) <= earliestToleranceMs && !(isOld && isPassed);
  });
}

interface NamedPods {
  readonly pods: readonly PublishedPod[];
  /** The number of all pods with a state in `podStates`. */
  readonly count: number;
}

/** Returns up to `publishedPodLimit` pods with a state in `podStates`, the most serious first, then in the order of zones and ordinals. */
export function podsWorthNaming(view: GroupView, nowMs: number): NamedPods {
  const rank = (pod: PublishedPod): number => podStates.indexOf(pod.state);
  const zones = view.zones.map((zone) => podsOfZone(view, zone, nowMs));
  const pods = zones.flatMap((zone) => zone.pods).sort((a, b) => rank(a) - rank(b));
  return { pods: pods.slice(0, publishedPodLimit), count: zones.reduce((sum, zone) => sum + zone.count, 0) };
}

/** Returns the pods of a zone with a state. Of the missing pods, only the lowest `publishedPodLimit` are named. */
function podsOfZone({ group }: GroupView, zone: ZoneView, nowMs: number): NamedPods {
  const { set } = zone;
  if (set === undefined || zone.unknown !== undefined) return { pods: [], count: 0 };
  const claimed = new Set(zone.claims.map((claim) => claim.uid));
  const surplus = new Set(zone.surplus);
  const found = zone.pods.flatMap((pod): PublishedPod[] => {
    const isUp = isAvailable(pod, group, set.minReadySeconds, nowMs);
    const state = stateOf(pod, { isUp, isClaimed: claimed.has(pod.uid), isSurplus: surplus.has(pod), target: set.status.updateRevision });
    return state === undefined ? [] : [namedPod(zone, pod, state)];
  });
  const present = new Set(zone.pods.filter((pod) => !surplus.has(pod)).map(({ ordinal }) => ordinal));
  const end = set.firstOrdinal + set.replicas;
  const missing = absentOrdinals(present, set.firstOrdinal, { end, most: publishedPodLimit }).map(
    (ordinal): PublishedPod => ({ zone: zone.zone.name, pod: `${set.name}-${ordinal}`, state: 'missing' }),
  );
  return { pods: [...found, ...missing], count: found.length + set.replicas - present.size };
}

interface PodFacts {
  readonly isUp: boolean;
  readonly isClaimed: boolean;
  readonly isSurplus: boolean;
  readonly target: string;
}

function stateOf(pod: PodView, { isUp, isClaimed, isSurplus, target }: PodFacts): PodState | undefined {
  if (pod.isTerminating) return 'terminating';
  if (isSurplus) return 'leaving';
  if (isClaimed) return 'announced';
  if (isUp) return undefined;
  if (isCrashing(pod)) return 'crashing';
  if (!pod.nodeReady) return 'nodeDown';
  return pod.revision === target ? 'starting' : 'unready';
}

/** Returns when the state began; undefined if unknown, as for a claimed or surplus pod that is still ready. */
function sinceMsOf(pod: PodView, state: PodState): number | undefined {
  if (pod.isTerminating) return pod.terminatingSinceMs;
  const isStillReady = pod.isReady && (state === 'announced' || state === 'leaving');
  return isStillReady ? undefined : pod.readyChangedMs;
}

function namedPod({ zone }: ZoneView, pod: PodView, state: PodState): PublishedPod {
  const [reason] = pod.waitingReasons;
  return {
    zone: zone.name,
    pod: pod.name,
    state,
    ...defined({ reason }),
    ...(pod.node === '' ? {} : { node: pod.node }),
    ...defined({ sinceMs: sinceMsOf(pod, state) }),
  };
}
