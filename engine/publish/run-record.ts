// Keeps the record of a rollout or of a change of replicas (a RolloutRun): adds the steps, waits and requests of each turn.
import type { GroupDefinition } from '../../policies/definition.ts';
import { instantMs, instantText } from '../../policies/instant.ts';
import { apiVersion, type RolloutRun } from '../../policies/schema/kinds.ts';
import { runLimits } from '../../policies/schema/rollout-run.ts';
import { defined } from '../../policies/values/defined.ts';
import { groupBy } from '../../policies/values/group-by.ts';
import { hashText } from '../../policies/values/hash.ts';
import { ordinalRanges, ordinalsOf } from '../amount.ts';
import { contextOf } from '../context.ts';
import { type Action, asksToPrepare, type GroupDecision, isMoving, replacedBy, type ZoneDecision } from '../decision.ts';
import { storedResult } from '../rule.ts';
import { isRejection } from '../rules/approval.ts';
import { noReading } from '../rules/gate.ts';
import { changeOf, recordedKind } from '../run/origin.ts';
import { cancelRequests, isOfRun, requestOf as requestNameOf } from '../run/requests.ts';
import { leavesZone, type RevisionCounts, revisionBefore } from '../run/revisions.ts';
import type { RunState } from '../run/run-state.ts';
import { type IntentView, isUnknown, type PodView, type Snapshot } from '../snapshot.ts';
import { bytesOf } from './bounds.ts';
import { earlierReplacements, exposedActions } from './exposed.ts';
import { actionText, type TakenAction } from './published.ts';

export interface RunTurn {
  readonly group: GroupDefinition;
  readonly snapshot: Snapshot;
  /** Absent if the turn failed before a decision. The record then stays the same. */
  readonly decision?: GroupDecision;
  readonly performed: readonly TakenAction[];
  /** The start of the turn, in milliseconds since 1970. */
  readonly startedMs: number;
}

type Spec = RolloutRun['spec'];

/**
 * Returns the record of the rollout after a turn, or with `scale` the record of a change of replicas; the same value if nothing changed. If
 * a run is superseded, one call ends its record and the next call starts the record of the newer run. Limits: 100 steps and 64 KiB.
 */
export function runRecord(previous: RolloutRun | undefined, turn: RunTurn, of: 'rollout' | 'scale' = 'rollout'): RolloutRun | undefined {
  const { decision } = turn;
  if (decision === undefined) return previous;
  return of === 'rollout' ? rolloutRecord(previous, turn, decision) : scaleRecord(previous, turn, decision);
}

function rolloutRecord(previous: RolloutRun | undefined, turn: RunTurn, decision: GroupDecision): RolloutRun | undefined {
  const { run } = decision;
  if (run === undefined) return previous;
  if (previous?.spec.id === run.id) return runState(previous, turn, decision, run);
  if (previous?.spec.outcome === 'running') {
    const isJoin = previous.metadata.name === recordName(turn.group.name, changeOf(run));
    if (!isJoin) return ended(previous, 'superseded', turn.startedMs);
    const earlier = earlierReplacements(turn, previous.spec, run);
    return runState(withTarget(previous, run, decision, earlier), withPerformed(turn, earlier), decision, run);
  }
  // A run that needs to replace no pod begins and ends in one turn.
  const isAtOnce = run.outcome === 'completed' && run.startedMs >= turn.snapshot.nowMs;
  if (run.outcome !== 'running' && !isAtOnce) return previous;
  const earlier = previous === undefined ? [] : earlierReplacements(turn, previous.spec, run);
  const began = newRecord(turn, changeOf(run), {
    id: run.id,
    kind: recordedKind(run),
    startedAt: timeText(run.startedMs),
    zones: turn.group.zones.slice(0, runLimits.zones).map(({ name, statefulSet }) => {
      const zone = decision.zones.find((one) => one.zone === name);
      const [to, revisions] = [run.target[name], revisionsBefore(zone, previous, earlier)];
      const from = leavesZone(run, name, revisions) ? to : revisionBefore(run, name, revisions);
      return {
        zone: name,
        statefulSet,
        ...(from ? { fromRevision: from } : {}),
        ...(to ? { toRevision: to } : {}),
        ...defined({ pods: zone && podsOfRun(zone) }),
      };
    }),
  });
  return runState(began, withPerformed(turn, earlier), decision, run);
}

/** Returns the number of pods that the run updates. The waves include these pods. */
function podsOfRun({ replicas, podsInNoWave = 0 }: ZoneDecision): number {
  return replicas - podsInNoWave;
}

function withPerformed(turn: RunTurn, earlier: readonly TakenAction[]): RunTurn {
  return { ...turn, performed: [...earlier, ...turn.performed] };
}

/** Returns the revisions that the pods of the zone ran before the run. Pods that were replaced earlier ran the revision of the last record. */
function revisionsBefore(zone: ZoneDecision | undefined, last: RolloutRun | undefined, earlier: readonly TakenAction[]): RevisionCounts {
  const counts = new Map(zone?.revisions.map(({ revision, ordinals }) => [revision, ordinalsOf(ordinals).length]));
  const before = last?.spec.zones.find((one) => one.zone === zone?.zone)?.toRevision;
  const replaced = earlier.flatMap(({ action }) => replacedBy(action)).filter((pod) => pod.zone === zone?.zone);
  return before === undefined || replaced.length === 0 ? counts : counts.set(before, (counts.get(before) ?? 0) + replaced.length);
}

/** Returns the record with the targets of a run that joins it. Pods of a zone that gets another target still run the revision from before. */
function withTarget(record: RolloutRun, run: RunState, decision: GroupDecision, earlier: readonly TakenAction[]): RolloutRun {
  const { id, target } = run;
  const zones = record.spec.zones.map((known) => {
    const toRevision = target[known.zone];
    if (toRevision === known.toRevision) return known;
    const zone = decision.zones.find((one) => one.zone === known.zone);
    return { ...known, ...defined({ fromRevision: revisionBefore(run, known.zone, revisionsBefore(zone, record, earlier)), toRevision }) };
  });
  const earlierIds = [...(record.spec.earlierIds ?? []), record.spec.id].slice(-runLimits.earlierIds);
  return { ...record, spec: { ...record.spec, id, earlierIds, zones } };
}

function runState(record: RolloutRun, turn: RunTurn, decision: GroupDecision, run: RunState): RolloutRun {
  const isOver = record.spec.outcome !== 'running';
  if (isOver && run.outcome !== 'running') return record;
  // A retried run is the same run, and keeps the cause of its last failure.
  const { endedAt: _endedAt, took: _took, ...open } = record.spec;
  const reopened = isOver ? { ...record, spec: { ...open, outcome: 'running' as const } } : withPods(withOrigin(record, run), decision);
  const isKnown = (zone: string, { ordinal }: PodView): boolean =>
    record.spec.steps.some((step) => step.zone === zone && ordinalsOf(step.pods ?? '').includes(ordinal));
  const performed = [...turn.performed, ...exposedActions(turn, isKnown)];
  const isOwn = (action: Action): boolean => replacedBy(action).length > 0 || action.kind === 'advanceCurrentRevision';
  const acted = progressed(reopened, { ...turn, performed }, decision, isOwn);
  const spec = withPeople(acted.spec, turn, run);
  const complete = spec === acted.spec ? acted : fitted({ ...acted, spec });
  if (run.outcome === 'running') return complete;
  if (run.outcome === 'completed' && isReverted(complete))
    return ended(withRevertedChange(complete, record, run), 'cancelled', run.completedMs);
  if (run.outcome === 'completed') return ended(complete, run.outcome, run.completedMs);
  return ended(complete, run.outcome, run.failedMs, run.failure);
}

/** Returns the record with the kind and the origin of the run. The agent may observe the origin after the start of the run. */
function withOrigin(record: RolloutRun, run: RunState): RolloutRun {
  const { spec } = record;
  const kind = recordedKind(run);
  const { isUndo: _isUndo, ...origin } = run.origin ?? {};
  const { cause, commit, planDigest, ...rest } = spec;
  const isSame = spec.kind === kind && cause === origin.cause && commit === origin.commit && planDigest === origin.planDigest;
  return isSame ? record : { ...record, spec: { ...rest, kind, ...origin } };
}

/**
 * Returns the record with the largest number of pods of each zone: a run also replaces pods that a scale-up added. Of a zone that left the
 * group, only the replaced pods count, because the run updates no other pod of it.
 */
function withPods(record: RolloutRun, { zones: now }: GroupDecision): RolloutRun {
  const { steps } = record.spec;
  const zones = record.spec.zones.map((zone) => {
    const present = now.find((one) => one.zone === zone.zone);
    const replaced = replacedPodCount({ steps: steps.filter((step) => step.zone === zone.zone) });
    const pods = present === undefined ? replaced : Math.max(zone.pods ?? 0, podsOfRun(present));
    return zone.pods === undefined || zone.pods === pods ? zone : { ...zone, pods };
  });
  const isSame = zones.every((zone, index) => zone === record.spec.zones[index]);
  return isSame ? record : { ...record, spec: { ...record.spec, zones } };
}

/** Reports whether the change was reverted before the run replaced a pod. An undo that replaces no pod is complete. */
function isReverted({ spec: { kind, zones, steps } }: RolloutRun): boolean {
  return kind !== 'rollback' && steps.length === 0 && zones.every(({ fromRevision, toRevision }) => fromRevision === toRevision);
}

/** Returns the record of a reverted change with the revisions and the origin that the change had before. */
function withRevertedChange({ spec, ...record }: RolloutRun, before: RolloutRun, { base = {} }: RunState): RolloutRun {
  const { cause: _cause, commit: _commit, planDigest: _planDigest, ...rest } = spec;
  const { cause, commit, planDigest } = before.spec;
  const zones = spec.zones.map((one) => ({ ...one, ...defined({ toRevision: base[one.zone] ?? one.toRevision }) }));
  return { ...record, spec: { ...rest, zones, ...defined({ cause, commit, planDigest }) } };
}

function scaleRecord(previous: RolloutRun | undefined, turn: RunTurn, decision: GroupDecision): RolloutRun | undefined {
  const steps = decision.steps.filter((step) => step.kind !== 'roll');
  const isAboutReplicas = ({ kind }: Action): boolean => kind === 'scaleStatefulSet' || kind === 'callPods' || kind === 'writeBackReplicas';
  const open = previous?.spec.outcome === 'running' ? previous : undefined;
  if (open === undefined && !turn.performed.some(({ action }) => action.kind === 'scaleStatefulSet' || asksToPrepare(action)))
    return previous;
  const id = `scale-${turn.startedMs.toString(36)}`;
  const record = open ?? newRecord(turn, id, { id, kind: 'scale', startedAt: timeText(turn.startedMs), zones: [] });
  const acted = progressed(record, turn, decision, isAboutReplicas);
  const replicated = withReplicas(acted, turn, steps);
  const cancellations = cancellationsOf(replicated, turn, decision);
  const spec = withRequests(
    replicated.spec,
    cancellations.map((one) => requestOf(one, turn.startedMs)),
  );
  const complete = spec === replicated.spec ? replicated : fitted({ ...replicated, spec });
  const isRunning =
    steps.length > 0 || turn.performed.some(({ action }) => isAboutReplicas(action)) || decision.zones.some((zone) => !zone.isReady);
  if (isRunning) return complete;
  const hasScaled = complete.spec.steps.some((step) => step.action === 'scale' && step.count > (step.failures ?? 0));
  if (!hasScaled) return ended(complete, 'cancelled', turn.startedMs);
  return ended(withFinalReplicas(complete, decision), cancellations.length > 0 ? 'cancelled' : 'completed', turn.startedMs);
}

/** Returns the requests in force that cancelled the decrease of a zone of the record before that zone had the requested replicas. */
function cancellationsOf(
  { spec }: RolloutRun,
  { snapshot, group }: RunTurn,
  { zones: now, warnings }: GroupDecision,
): readonly IntentView[] {
  const inForce = new Set(warnings.flatMap((warning) => (warning.rule === 'replica-source' ? (requestNameOf(warning) ?? []) : [])));
  if (inForce.size === 0) return [];
  const open = spec.zones.filter(({ zone, toReplicas }) => now.some((one) => one.zone === zone && one.replicas !== toReplicas));
  const ofZones = open.flatMap(({ zone }) => cancelRequests(contextOf(snapshot, group), zone));
  return [...new Set(ofZones.filter(({ name }) => inForce.has(name)))];
}

/** Returns the record with the present replicas of its zones, without zones that have the same number as before, unless all have. */
function withFinalReplicas(record: RolloutRun, { zones: now }: GroupDecision): RolloutRun {
  const zones = record.spec.zones.map((one) => {
    const toReplicas = now.find(({ zone }) => zone === one.zone)?.replicas ?? one.toReplicas;
    return { ...one, ...defined({ toReplicas }) };
  });
  const changed = zones.filter(({ fromReplicas, toReplicas }) => fromReplicas !== toReplicas);
  return { ...record, spec: { ...record.spec, zones: changed.length === 0 ? zones : changed } };
}

function withReplicas(record: RolloutRun, { performed, group }: RunTurn, steps: GroupDecision['steps']): RolloutRun {
  let { zones } = record.spec;
  const written = performed.flatMap(({ action }) => (action.kind === 'scaleStatefulSet' ? [action] : []));
  for (const { zone, from, to } of [...steps, ...written]) {
    if (from === undefined || to === undefined) continue;
    const known = zones.find((one) => one.zone === zone);
    const statefulSet = group.zones.find(({ name }) => name === zone)?.statefulSet;
    if (known?.toReplicas === to || (known === undefined && zones.length >= runLimits.zones)) continue;
    zones =
      known === undefined
        ? [...zones, { zone, ...(statefulSet && { statefulSet }), fromReplicas: from, toReplicas: to }]
        : zones.map((one) => (one === known ? { ...one, toReplicas: to } : one));
  }
  return zones === record.spec.zones ? record : { ...record, spec: { ...record.spec, zones } };
}

function newRecord(turn: RunTurn, change: string, begun: Pick<Spec, 'id' | 'kind' | 'startedAt' | 'zones'>): RolloutRun {
  const { group, snapshot } = turn;
  return {
    apiVersion,
    kind: 'RolloutRun',
    metadata: { name: recordName(group.name, change), namespace: group.namespace },
    spec: {
      group: group.name,
      ...begun,
      outcome: 'running',
      waited: 0,
      steps: [],
      waits: [],
      ...(snapshot.policyDigest === '' ? {} : { policyDigest: snapshot.policyDigest.slice(0, 64) }),
    },
  };
}

/** Returns a valid object name, always the same for the same change. */
function recordName(group: string, id: string): string {
  const slug = id
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '');
  const tail = slug === id && slug.length <= 40 ? slug : `${slug.slice(0, 24)}-${hashText(id).slice(0, 10)}`.replace(/^-+/, '');
  return `${group.slice(0, 200)}-${tail}`;
}

function progressed(record: RolloutRun, turn: RunTurn, decision: GroupDecision, isOfRun: (action: Action) => boolean): RolloutRun {
  const taken = turn.performed.filter(({ action }) => isOfRun(action));
  const waited = addWait(record.spec, turn, decision);
  const spec = taken.length === 0 ? waited : addSteps(waited, taken, turn.startedMs, decision.wave?.name);
  return spec === record.spec ? record : fitted({ ...record, spec });
}

/** Records the rule that blocks a group without progress. When another rule or no rule blocks, adds the blocked time to the waits. */
function addWait(spec: Spec, { startedMs }: RunTurn, decision: GroupDecision): Spec {
  const [first] = isMoving(decision) || decision.outcome === 'act' ? [] : decision.waits;
  const { waiting, ...rest } = spec;
  const now = first && { rule: first.rule.slice(0, 317), fact: storedResult(first).fact.slice(0, 512) };
  if (waiting?.rule === now?.rule) {
    // A rejection ends no wait for an approval, but it changes what ends the wait. The first reading of a gate shows why it does not pass.
    const isFirstReading = first?.rule === 'gate' && waiting?.fact.endsWith(noReading) === true;
    const isNews = first !== undefined && (isRejection(first) || isFirstReading) && waiting?.fact !== now?.fact;
    return isNews && waiting && now ? { ...spec, waiting: { ...waiting, fact: now.fact } } : spec;
  }
  const settled = waiting === undefined ? rest : settle(rest, waiting, startedMs);
  return now === undefined ? settled : { ...settled, waiting: { ...now, since: timeText(startedMs) } };
}

function settle(spec: Spec, { rule, fact, since }: NonNullable<Spec['waiting']>, nowMs: number): Spec {
  const seconds = Math.max(0, Math.round((nowMs - (instantMs(since) ?? nowMs)) / 1000));
  if (seconds === 0) return spec;
  const known = spec.waits.find((wait) => wait.rule === rule);
  const waits = known
    ? spec.waits.map((wait) => (wait === known ? { rule, fact, seconds: wait.seconds + seconds } : wait))
    : [...spec.waits, { rule, fact, seconds }].sort((a, b) => b.seconds - a.seconds).slice(0, runLimits.waits);
  return { ...spec, waits, waited: spec.waited + seconds };
}

function ended(record: RolloutRun, outcome: Spec['outcome'], atMs: number, failure?: string): RolloutRun {
  const { waiting, ...rest } = record.spec;
  const settled = waiting === undefined ? rest : settle(rest, waiting, atMs);
  const took = Math.max(0, Math.round((atMs - (instantMs(settled.startedAt) ?? atMs)) / 1000));
  const spec = { ...settled, outcome, endedAt: timeText(atMs), took, ...defined({ failure: failure?.slice(0, 1024) }) };
  return fitted({ ...record, spec });
}

/** Removes steps from the middle until the record is short enough, because its start and its end are the most useful parts. */
function fitted(record: RolloutRun): RolloutRun {
  let fits = record;
  while (fits.spec.steps.length > 2 && bytesOf(fits) > runLimits.bytes) {
    const { steps, stepsOmitted = 0 } = fits.spec;
    const middle = Math.floor(steps.length / 2);
    fits = { ...fits, spec: { ...fits.spec, steps: steps.filter((_, index) => index !== middle), stepsOmitted: stepsOmitted + 1 } };
  }
  return fits;
}

function timeText(ms: number): string {
  return instantText(ms) ?? '1970-01-01T00:00:00Z';
}

type Step = Spec['steps'][number];

/** Adds the actions of a turn to the record. Beyond 100 steps, steps in the middle are omitted and counted. */
function addSteps(spec: Spec, taken: readonly TakenAction[], atMs: number, wave: string | undefined): Spec {
  let steps = spec.steps;
  let { stepsOmitted = 0 } = spec;
  for (const one of taken) {
    const step = stepOf(one, atMs, wave);
    const last = steps.at(-1);
    steps = last !== undefined && isSameStep(last, step) ? [...steps.slice(0, -1), merged(last, step)] : [...steps, step];
    if (steps.length > runLimits.steps) {
      const middle = Math.floor(runLimits.steps / 2);
      steps = steps.filter((_, index) => index !== middle);
      stepsOmitted += 1;
    }
  }
  return { ...spec, steps, ...(stepsOmitted === 0 ? {} : { stepsOmitted }) };
}

const kinds: Readonly<Record<Action['kind'], Step['action']>> = {
  deletePod: 'replace',
  evictPod: 'replace',
  scaleStatefulSet: 'scale',
  setPartition: 'replace',
  callPods: 'prepare',
  writeBackReplicas: 'writeBack',
  advanceCurrentRevision: 'advanceRevision',
};

function stepOf({ action, result, message }: TakenAction, atMs: number, wave: string | undefined): Step {
  const isWithdrawal = action.kind === 'callPods' && action.method === 'DELETE';
  const isApplied = result === 'done' || result === 'unknown';
  const ordinals = 'ordinals' in action ? action.ordinals : replacedBy(action).map(({ ordinal }) => ordinal);
  const applied = isApplied ? ordinals : [];
  const at = timeText(atMs);
  return {
    action: isWithdrawal ? 'withdraw' : kinds[action.kind],
    ...('zone' in action ? { zone: action.zone } : {}),
    ...(wave === undefined ? {} : { wave }),
    what: actionText(action).slice(0, 1024),
    ...(applied.length === 0 ? {} : { pods: shortRanges(applied) }),
    count: ordinals.length === 0 ? 1 : applied.length,
    ...(result === 'done' ? {} : { failures: 1, message: `${result}${message === undefined ? '' : `: ${message}`}`.slice(0, 256) }),
    startedAt: at,
    endedAt: at,
  };
}

function isSameStep(a: Step, b: Step): boolean {
  return a.action === b.action && a.zone === b.zone && a.wave === b.wave;
}

function merged(before: Step, next: Step): Step {
  const failures = (before.failures ?? 0) + (next.failures ?? 0);
  const pods = before.pods === undefined || next.pods === undefined ? (before.pods ?? next.pods) : joinRanges(before.pods, next.pods);
  const hasEveryPod = before.pods !== undefined && next.pods !== undefined && pods?.endsWith('…') === false;
  const message = next.message ?? before.message;
  // A pod that was replaced twice counts once.
  const count = hasEveryPod ? ordinalsOf(pods).length : before.count + next.count;
  const { what, endedAt } = next;
  return { ...before, what, ...defined({ pods }), count, ...(failures === 0 ? {} : { failures }), ...defined({ message }), endedAt };
}

/** Joins two texts of ranges. If one text was cut and ends in `…`, returns the first text. */
function joinRanges(a: string, b: string): string {
  if (a.endsWith('…') || b.endsWith('…')) return a;
  return shortRanges([...new Set([...ordinalsOf(a), ...ordinalsOf(b)])]);
}

function shortRanges(ordinals: readonly number[]): string {
  const ranges = ordinalRanges(ordinals);
  return ranges.length <= 1000 ? ranges : `${ranges.slice(0, 1000).replace(/,[^,]*$/, '')},…`;
}

/** Returns the number of pods that the run replaced. A pod that was replaced in several waves counts once. */
export function replacedPodCount({ steps }: Pick<Spec, 'steps'>): number {
  const replacements = steps.filter(({ action }) => action === 'replace');
  const counts = [...groupBy(replacements, ({ zone = '' }) => zone).values()].map((ofZone) => {
    const hasEveryPod = ofZone.every(({ pods, count }) => count === 0 || pods?.endsWith('…') === false);
    if (!hasEveryPod) return ofZone.reduce((sum, { count }) => sum + count, 0);
    return new Set(ofZone.flatMap(({ pods = '' }) => ordinalsOf(pods))).size;
  });
  return counts.reduce((sum, count) => sum + count, 0);
}

type RecordedRequest = NonNullable<Spec['people']>[number];

/** Returns the spec with new requests and exceptions added, up to the limit. Returns the same value if nothing is new. */
function withPeople(spec: Spec, { snapshot, group, startedMs }: RunTurn, run: RunState): Spec {
  const { intents, exceptions, nowMs } = contextOf(snapshot, group);
  const requests = isUnknown(intents) ? [] : intents.filter((intent) => isAbout(intent, run)).map((intent) => requestOf(intent, startedMs));
  const excepted = exceptions
    .filter(({ notBeforeMs = 0, expiresMs }) => notBeforeMs <= nowMs && expiresMs > nowMs)
    .map(({ name, rule, reason, zone, requestedBy }) => {
      const about = zone === undefined ? rule : `${rule} in zone ${zone}`;
      const by = defined({ by: requestedBy?.user });
      return shortened({ name, action: 'override', ...by, at: timeText(requestedBy?.atMs ?? startedMs), reason, about });
    });
  return withRequests(spec, [...requests, ...excepted]);
}

function withRequests(spec: Spec, requests: readonly RecordedRequest[]): Spec {
  const { people = [] } = spec;
  const isKnown = ({ name, action, by, at }: RecordedRequest): boolean =>
    people.some((one) => one.name === name && one.action === action && (by === undefined || one.at === at));
  const added = requests.filter((request) => !isKnown(request)).slice(0, Math.max(0, runLimits.people - people.length));
  return added.length === 0 ? spec : { ...spec, people: [...people, ...added] };
}

/** Reports whether a request is about the run: it names this run, or it names no run and is no approval from before the run. */
function isAbout(intent: IntentView, run: RunState): boolean {
  return intent.runId === undefined ? intent.action !== 'approve' || isOfRun(intent, run) : intent.runId === run.id;
}

function requestOf({ name, action, requestedBy, reason, zone, wave, rule, gate, ordinals }: IntentView, seenMs: number): RecordedRequest {
  const named = Object.entries(defined({ wave, rule, gate, zone, pods: ordinals?.slice(0, 20).join(', ') }));
  const about = named.map(([what, value]) => `${what} ${value}`);
  const at = timeText(requestedBy?.atMs ?? seenMs);
  const optional = defined({ by: requestedBy?.user, reason, about: about.length === 0 ? undefined : about.join(', ') });
  return shortened({ name, action, at, ...optional });
}

/** Shortens a request to the limits of the schema, so that many requests fit next to the steps. */
function shortened({ name, by, reason, about, ...rest }: RecordedRequest): RecordedRequest {
  return {
    ...rest,
    name: name.slice(0, 253),
    ...defined({ by: by?.slice(0, 253), reason: reason?.slice(0, 256), about: about?.slice(0, 256) }),
  };
}

/** The outcome in output. `abandoned`, which is never stored: the group was deleted or another run started while the run was running. */
type ShownOutcome = Spec['outcome'] | 'abandoned';

export type Images = Readonly<Record<string, string>>;

/** A zone of a record, with data of the ControllerRevisions that Kubernetes still keeps. Absent values are unknown. */
export type ShownZone = Spec['zones'][number] & {
  readonly fromImages?: Images;
  readonly toImages?: Images;
  readonly changedFields?: readonly string[];
  /** The number of `toRevision` in `kubectl rollout history`. It changes if `toRevision` becomes the update revision again. */
  readonly revisionNumber?: number;
};

export type ShownRun = Omit<Spec, 'outcome' | 'zones'> & { readonly outcome: ShownOutcome; readonly zones: readonly ShownZone[] };

/**
 * Returns the records of one group for output. In `runs` the newest record is the first. A change of replicas and a rollout may run at the
 * same time. The time waited includes the wait in progress.
 */
export function shownRuns(runs: readonly Spec[], isDefined: boolean, nowMs: number): readonly ShownRun[] {
  return runs.map((run, index) => {
    if (run.outcome !== 'running') return run;
    const hasSuccessor = runs.slice(0, index).some((newer) => isScale(newer) === isScale(run));
    if (!isDefined || hasSuccessor) return { ...run, outcome: 'abandoned' };
    return run.waiting === undefined ? run : { ...run, waited: settle(run, run.waiting, nowMs).waited };
  });
}

function isScale({ kind }: Pick<Spec, 'kind'>): boolean {
  return kind === 'scale';
}
