// Derives the status of a RolloutGroup object and its conditions from a published decision.
import type { GroupDefinition } from '../../policies/definition.ts';
import { instantText } from '../../policies/instant.ts';
import type { Phase } from '../../policies/rollout/phases.ts';
import { defined } from '../../policies/values/defined.ts';
import { listed } from '../../policies/wording.ts';
import type { GroupDecision, LeftMember, RuleResult, Step, Stop } from '../decision.ts';
import { fieldAt } from '../observe/raw.ts';
import { isUntilPerson } from '../rule.ts';
import { lacksApproval } from '../rules/approval.ts';
import { reasonOf } from '../rules/catalog.ts';
import { whyNotRolledBack } from '../run/effects.ts';
import { noWaveText } from '../run/included.ts';
import { isRollingBack } from '../run/origin.ts';
import { requestOf } from '../run/requests.ts';
import { newRevisions } from '../run/revisions.ts';
import type { RunState } from '../run/run-state.ts';
import { completeRun } from '../run/states.ts';
import { type Snapshot, setNamed } from '../snapshot.ts';
import type { PublishedDecision, PublishedPod, PublishedRun, PublishedWait } from './published.ts';

interface ScaleTarget {
  /** Number of pods of the scaled zone, from the status of its StatefulSet. */
  readonly replicas: number;
  readonly selector?: string;
}

export interface StatusContext {
  /** `metadata.generation` of the object from which the decision was made. */
  readonly generation?: number;
  /** The status as stored: conditions keep their `lastTransitionTime`. */
  readonly previous?: unknown;
  /** The pods that the scale subresource reports (`scaleTargetOf`). */
  readonly scale?: ScaleTarget;
}

interface Condition {
  readonly type: 'Ready' | 'Progressing' | 'Degraded' | 'Reconciling' | 'Stalled' | 'Stopped' | 'MemberLeft' | 'Enforced';
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
  /** RFC 3339. */
  readonly lastTransitionTime: string;
  readonly observedGeneration?: number;
}

/** The number of drifted fields that the status names. */
const driftedFieldsOfStatus = 5;

/**
 * Returns the target of the scale subresource: the first zone that follows no zone, so that an autoscaler counts the load of one zone.
 * Undefined if its StatefulSet does not exist.
 */
export function scaleTargetOf(group: GroupDefinition, snapshot: Pick<Snapshot, 'statefulSets'>): ScaleTarget | undefined {
  const leader = group.zones.find((zone) => zone.follows === undefined);
  const set = leader && setNamed(snapshot, group.namespace, leader.statefulSet);
  if (set === undefined) return undefined;
  return { replicas: set.status.replicas, ...(set.selector === undefined ? {} : { selector: set.selector }) };
}

/** Returns the complete status, which replaces the previous status; `rolloutGroupStatus` is its schema. */
export function groupStatus(published: PublishedDecision, context: StatusContext = {}) {
  const { generation, scale } = context;
  const [first] = published.waits;
  const sum = (count: (zone: PublishedDecision['zones'][number]) => number): number =>
    published.zones.reduce((total, zone) => total + count(zone), 0);
  return {
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    phase: published.phase,
    goal: published.goal,
    reason: first === undefined ? published.phase : reasonOf(first.rule),
    message: first === undefined ? published.goal : waitText(first),
    ...(published.wave === undefined ? {} : { wave: `${published.wave.name} (${published.wave.index + 1}/${published.wave.count})` }),
    ...(scale === undefined ? {} : scale),
    pods: sum((zone) => zone.replicas),
    updatedPods: sum((zone) => zone.updated),
    readyPods: sum((zone) => zone.available),
    decidedAt: timeText(published.decidedMs),
    policyDigest: published.policyDigest,
    ...driftOfGroup(published),
    conditions: conditionsOf(published, context),
    decision: published,
  };
}

function driftOfGroup({ zones }: PublishedDecision) {
  const drifted = zones.flatMap(({ statefulSet, drift }) => (drift === undefined ? [] : [{ statefulSet, drift }]));
  if (drifted.length === 0) return {};
  const fields = drifted.flatMap(({ statefulSet, drift }) =>
    drift.fields.map(({ field, manager, atMs }) => {
      const named = { statefulSet, field: field.slice(0, longestMessage), manager };
      return atMs === undefined ? named : { ...named, lastWriteAt: timeText(atMs) };
    }),
  );
  return {
    drift: { fieldCount: drifted.reduce((sum, { drift }) => sum + drift.count, 0), fields: fields.slice(0, driftedFieldsOfStatus) },
  };
}

type Verdict = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;
type Stall = Pick<Condition, 'reason' | 'message'>;

function conditionsOf(published: PublishedDecision, { generation, previous }: StatusContext): readonly Condition[] {
  const before = fieldAt(previous, ['conditions']);
  const known: readonly unknown[] = Array.isArray(before) ? before : [];
  const [isReady, stall] = [ready(published), stallReason(published)];
  return [
    isReady,
    progressing(published),
    degraded(published, stall),
    ...reconciling(isReady, stall),
    ...stopped(published),
    ...memberLeft(published),
    ...enforced(published),
  ].map((verdict) => {
    const same = known.find((one) => fieldAt(one, ['type']) === verdict.type && fieldAt(one, ['status']) === verdict.status);
    const since = fieldAt(same, ['lastTransitionTime']);
    return {
      ...verdict,
      lastTransitionTime: typeof since === 'string' ? since : timeText(published.decidedMs),
      ...(generation === undefined ? {} : { observedGeneration: generation }),
    };
  });
}

/** Returns the condition Ready: every pod is available, and every pod that the waves include is up to date. */
function ready(published: PublishedDecision): Verdict {
  const type = 'Ready';
  const { outcome, zones, waits, goal } = published;
  const [first] = waits;
  const missing = missingSetsText(published);
  if (missing !== undefined) return { type, status: 'False', reason: missingReason, message: missing };
  if (isRolledBack(published)) return { type, status: 'False', ...rollbackReason(published) };
  if (first?.outcome === 'unknown') return { type, status: 'Unknown', reason: reasonOf(first.rule), message: waitText(first) };
  const unready = zones.filter((zone) => !zone.isReady);
  if (outcome === 'done' && unready.length === 0) return { type, status: 'True', ...completeReason(published) };
  if (first !== undefined) return { type, status: 'False', reason: reasonOf(first.rule), message: waitText(first) };
  if (outcome !== 'done') return { type, status: 'False', reason: 'InProgress', message: goal };
  const names = unready.map((zone) => `${zone.zone} has ${zone.available} of ${zone.replicas} pods available`);
  return { type, status: 'False', reason: 'PodsUnavailable', message: `zone ${names.join(', zone ')}` };
}

/** Returns the reason and the message of a group whose waves are done. Like a StatefulSet with a partition, it is ready with outdated pods. */
function completeReason({ zones }: PublishedDecision): Pick<Condition, 'reason' | 'message'> {
  const texts = noWaveTexts(zones);
  if (texts.length === 0) return { reason: 'Complete', message: 'every zone is up to date and available' };
  const message = ['every wave is done, and every pod is available', ...texts].join('; ').slice(0, longestMessage);
  return { reason: 'WavesComplete', message };
}

/** Returns a text for each zone with outdated pods that no wave includes. */
export function noWaveTexts(zones: readonly { readonly zone: string; readonly podsInNoWave?: number | undefined }[]): readonly string[] {
  return zones.flatMap(({ zone, podsInNoWave = 0 }) => (podsInNoWave === 0 ? [] : [noWaveText(zone, podsInNoWave)]));
}

const missingReason = 'StatefulSetMissing';

/** Returns a sentence about the StatefulSets of the group that do not exist; undefined if all exist or could not be read. */
export function missingSetsText({ zones }: Pick<PublishedDecision, 'zones'>): string | undefined {
  const missing = zones.filter(isMissing).map(({ zone, statefulSet }) => `StatefulSet ${statefulSet} of zone ${zone}`);
  if (missing.length === 0) return undefined;
  return `${listed(missing, 'and')} ${missing.length === 1 ? 'does' : 'do'} not exist`;
}

function isMissing({ unread }: PublishedDecision['zones'][number]): boolean {
  return unread === 'missing';
}

/** Returns the reason and the message of the conditions of a group whose requested revision was rolled back, with what ends this state. */
function rollbackReason({ stops = [], goal }: PublishedDecision): Pick<Condition, 'reason' | 'message'> {
  const stop = stops.find(({ rule }) => rule === rolledBackRule);
  return { reason: reasonOf(rolledBackRule), message: (stop === undefined ? goal : stopText(stop)).slice(0, longestMessage) };
}

/** Returns the condition Stopped only while a stop is in force, also if no step is due. */
function stopped({ stops = [] }: PublishedDecision): readonly Verdict[] {
  const [first] = stops;
  if (first === undefined) return [];
  const message = stops.map(stopText).join('; ').slice(0, longestMessage);
  return [{ type: 'Stopped', status: 'True', reason: reasonOf(stopTitle(first)), message }];
}

/** Returns the condition MemberLeft only while a StatefulSet that left the group keeps the partition of the agent. */
function memberLeft({ left = [] }: PublishedDecision): readonly Verdict[] {
  if (left.length === 0) return [];
  const message = left.map(leftMemberText).join('; ').slice(0, longestMessage);
  return [{ type: 'MemberLeft', status: 'True', reason: 'PartitionKept', message }];
}

/** Returns the consequence of a former member with a partition, and what ends it. */
export function leftMemberText(left: LeftMember): string {
  return `${left.fact}. To end it: ${endsText(left)}`;
}

/** The maximum length of a message in characters. Kubernetes allows 32768. */
const longestMessage = 1024;

/** Returns who or which rule stops the group, why and until when, and the commands or edits that end the stop. */
function stopText(stop: Stop): string {
  const { limit } = stop;
  return `${stopFact(stop)}${limit === undefined ? '' : ` (limit: ${limit})`}${stopEndText(stop, timeText)}. To end it: ${endsText(stop)}`;
}

/** Returns the rule of a stop; `rejected` for the rejection of a wave or of a policy rule. */
export function stopTitle(stop: Pick<Stop, 'rule' | 'source'>): string {
  return stop.rule === 'approval' || (stop.rule.includes('/') && requestOf(stop) !== undefined) ? 'rejected' : stop.rule;
}

/** Returns a clause with the end of the stop, or for a window with the time when all windows allow the action; empty without a time. */
export function stopEndText({ rule, untilMs }: Pick<Stop, 'rule' | 'untilMs'>, textOf: (atMs: number) => string): string {
  if (untilMs === undefined) return '';
  return rule === 'window' ? `; windows allow the action from ${textOf(untilMs)}` : `, until ${textOf(untilMs)}`;
}

/** Returns the fact of the stop. If a policy rule stops the group, its name comes first: `safety/freeze: the rule always applies`. */
export function stopFact({ rule, fact }: Pick<Stop, 'rule' | 'fact'>): string {
  return rule.includes('/') ? `${rule}: ${fact}` : fact;
}

/** Returns the commands or edits that end the stop, starting with the usual way. */
export function endsText({ endsWith, alternatives = [] }: Pick<Stop, 'endsWith' | 'alternatives'>): string {
  return [endsWith, ...alternatives].join(', or ');
}

/** Returns the condition Enforced only if there is a problem: a decision does not know whether webhooks should enforce the group. */
function enforced({ unenforced }: PublishedDecision): readonly Verdict[] {
  return unenforced === undefined ? [] : [{ type: 'Enforced', status: 'False', reason: 'RegistrationChanged', message: unenforced }];
}

/** Returns the condition Progressing: the group makes progress, or will do so without a person. */
function progressing({ phase, outcome, goal, zones, waits, stops = [], permitted = [] }: PublishedDecision): Verdict {
  const type = 'Progressing';
  const stop = phase === 'Waiting' ? stops.find(endsByPerson) : undefined;
  const [first] = waits;
  const exceptions = permitted.map(({ rule, fact }) => `${rule}: ${fact}`);
  const reason = first === undefined ? phase : reasonOf((stop ?? first).rule);
  const message = [stop ? stopText(stop) : first === undefined ? goal : waitText(first), ...exceptions].join('; ').slice(0, longestMessage);
  const isMoving =
    phase === 'Rolling' ||
    phase === 'Scaling' ||
    (phase === 'Waiting' && personNeeded({ phase, outcome, zones, waits, stops }) === undefined);
  return { type, status: isMoving ? 'True' : 'False', reason: isMoving || first ? reason : phase, message };
}

/** Returns the condition Degraded: the group is stalled, pods crash, or a node is not ready. */
function degraded(published: PublishedDecision, stall: Stall | undefined): Verdict {
  const type = 'Degraded';
  if (stall !== undefined) return { type, status: 'True', ...stall };
  const bad = published.pods.filter(isTroubled);
  const [first] = bad;
  if (first === undefined)
    return { type, status: 'False', reason: 'AsExpected', message: 'no run failed, no rule denies a step, and no pod crashes' };
  const others = bad.length === 1 ? '' : `; other affected pods: ${bad.length - 1}`;
  const isCrashing = first.state === 'crashing';
  const why = isCrashing ? (first.reason ?? 'crashing') : `on node ${first.node ?? ''}, which is not ready`;
  return { type, status: 'True', reason: isCrashing ? 'PodsCrashing' : 'NodesNotReady', message: `${first.pod} is ${why}${others}` };
}

/**
 * Returns why the group cannot reach the requested state without another request: the run failed or was rolled back, a StatefulSet does not
 * exist, a rule blocks with `no`, or a pin was not applied. Undefined for a group that continues, also if it waits for a person.
 */
function stallReason(published: PublishedDecision): Stall | undefined {
  const { phase, run, waits } = published;
  if (phase === 'Failed') return { reason: 'RunFailed', message: run?.failure ?? 'the run failed' };
  if (isRolledBack(published)) return rollbackReason(published);
  const missing = missingSetsText(published);
  if (missing !== undefined) return { reason: missingReason, message: missing };
  const refused = waits.find((wait) => wait.outcome === 'no');
  // A pause on top of a denied step ends nothing.
  const blocking = (phase === 'Blocked' || phase === 'Paused' ? refused : undefined) ?? waits.find(isMisplacedUntilRetry);
  return blocking && { reason: reasonOf(blocking.rule), message: waitText(blocking) };
}

/** Returns the condition by which kstatus, and so Flux, sees that a group is not Ready: Stalled, or Reconciling while the group can continue. */
function reconciling(isReady: Verdict, stall: Stall | undefined): readonly Verdict[] {
  if (stall !== undefined) return [{ type: 'Stalled', status: 'True', ...stall }];
  return isReady.status === 'True' ? [] : [{ ...isReady, type: 'Reconciling', status: 'True' }];
}

function waitText({ fact, limit }: PublishedWait): string {
  return limit === undefined ? fact : `${fact}; the limit is ${limit}`;
}

/** Returns an instant in whole seconds, as in Kubernetes. */
function timeText(ms: number): string {
  return instantText(Math.floor(ms / 1000) * 1000) ?? '1970-01-01T00:00:00Z';
}

/** The part of a decision that shows why a group waits. */
export type Held = Pick<PublishedDecision, 'phase' | 'outcome' | 'stops'> &
  Partial<Pick<PublishedDecision, 'zones' | 'steps'>> & { readonly waits: readonly RuleResult[] };

/** The reason why a group needs a person. `missing`: a StatefulSet does not exist. `misplaced`: pods came back at a wrong revision. */
export type PersonNeeded = 'failed' | 'rolledBack' | 'missing' | 'blocked' | 'misplaced' | 'approval' | 'undone' | 'stopped' | 'paused';

export const rolledBackRule = 'rolled-back';

/** Reports whether the pod does not become available by itself. */
export function isTroubled({ state }: Pick<PublishedPod, 'state'>): boolean {
  return state === 'crashing' || state === 'nodeDown';
}

/** Reports whether the group waits only for disruptions that were allowed and have not started. The wait then says more than a count of pods. */
export function waitsForAllowed({
  outcome,
  waits,
  pods = [],
}: Pick<GroupDecision, 'outcome' | 'waits'> & { readonly pods?: readonly PublishedPod[] }): boolean {
  return outcome !== 'act' && waits.length > 0 && pods.length > 0 && pods.every(({ state }) => state === 'announced');
}

/** Reports whether the run itself returns to the earlier revisions: a rollback, an undo, or manifests with the earlier templates. */
export function goesBack({ kind, returns = kind === 'rollback' }: Pick<PublishedRun, 'kind' | 'returns'>): boolean {
  return returns;
}

/** Returns why the published run cannot be rolled back. If the run names no revision, as in a large publication, it counts as a run that can. */
export function whyRunStays(
  run: Pick<PublishedRun, 'kind' | 'returns'> & Partial<Pick<PublishedRun, 'target' | 'previous'>>,
  strategy: PublishedDecision['strategy'],
): ReturnType<typeof whyNotRolledBack> {
  const { target = {}, previous = {} } = run;
  const isChange = Object.keys(target).length === 0 || Object.keys(newRevisions({ target, previous })).length > 0;
  return whyNotRolledBack({ strategy, isReturn: goesBack(run), isChange });
}

/** Reports whether a retry has an effect: the run failed, its revision was rolled back, or only a retry replaces pods at a wrong revision again. */
export function mayRetry(decision: Pick<PublishedDecision, 'run' | 'stops' | 'waits'>): boolean {
  const { run, waits } = decision;
  return run !== undefined && (run.outcome === 'failed' || isRolledBack(decision) || waits.some(isMisplacedUntilRetry));
}

/** Returns the published run as the engine reads it. The publication has no time of the last replacement, so no wave counts as started. */
export function runOfPublished(published: PublishedRun): RunState {
  const { returns: _returns, kind: recorded, outcome, failure = '', failedMs = 0, completedMs = 0, ...core } = published;
  const kind = goesBack(published) ? 'rollback' : 'rollout';
  const origin = recorded === 'rollback' && !isRollingBack({ ...core, kind }) ? ({ isUndo: true } as const) : undefined;
  const run = { ...core, kind, ...defined({ origin }), movableMs: 0, movableAsOfMs: core.startedMs, isMovable: false } as const;
  if (outcome === 'completed') return completeRun({ ...run, outcome: 'running' }, completedMs);
  return outcome === 'failed' ? { ...run, outcome, failure, failedMs } : { ...run, outcome };
}

/** Reports whether the pods keep an earlier revision because the requested revision failed. */
export function isRolledBack({ run, stops = [] }: Pick<PublishedDecision, 'run' | 'stops'>): boolean {
  return run?.outcome === 'completed' && stops.some(({ rule }) => rule === rolledBackRule);
}

const personOfPhase: Readonly<Partial<Record<Phase, PersonNeeded>>> = { Failed: 'failed', RolledBack: 'rolledBack', Blocked: 'blocked' };

/** Returns why the group needs a person; undefined if it continues without a person. A pause counts even if it has an end. */
export function personNeeded(held: Held): PersonNeeded | undefined {
  const { phase, outcome, waits, zones = [] } = held;
  const ofPhase = personOfPhase[phase];
  if (ofPhase !== undefined) return ofPhase;
  if (zones.some(isMissing)) return 'missing';
  if (outcome === 'wait' || repeatsInVain(held)) {
    if (waits.some((wait) => wait.outcome === 'no')) return 'blocked';
    if (waits.some(isMisplacedUntilRetry)) return 'misplaced';
    if (waits.some(lacksApproval)) return 'approval';
    if (waits.some(({ rule }) => rule === 'undone')) return 'undone';
    if (isStopped(held)) return 'stopped';
  }
  return phase === 'Paused' ? 'paused' : undefined;
}

/** Reports whether every step is denied although the agent acts: it repeats the calls of preparations that fail. */
export function repeatsInVain(decision: Pick<Held, 'outcome'> & { readonly steps?: readonly Pick<Step, 'outcome'>[] }): boolean {
  const { outcome, steps = [] } = decision;
  return outcome === 'act' && steps.length > 0 && steps.every((step) => step.outcome === 'blocked');
}

/** Reports whether only a person ends a wait or a stop. A stop counts even if the group waits first for a soak or a pod in flight. */
function isStopped({ phase, waits, stops = [] }: Held): boolean {
  return (phase === 'Waiting' && waits.some(isStoppedByPerson)) || (phase !== 'Paused' && stops.some(endsByPerson));
}

const endsByPerson = ({ endsBy }: Pick<Stop, 'endsBy'>): boolean => endsBy === 'person';

/** Reports whether a policy or a protection without an end blocks, so that only a person ends the wait. */
function isStoppedByPerson(wait: RuleResult): boolean {
  return endsByPerson(wait) || (wait.rule === 'protected' && wait.earliestMs === undefined);
}

/** Reports whether pods came back at another revision and only a retry continues: the last attempt to pin them failed. */
export function isMisplacedUntilRetry(result: RuleResult): boolean {
  return result.rule === 'pin-applied' && isUntilPerson(result);
}

/** Returns the gates that are read now, each with its latest reading. The rule `gate` names a gate that a step needs and that has no reading yet. */
export function gatesWithReading({ gates }: Pick<PublishedDecision, 'gates'>) {
  return gates.flatMap(({ latest, ...gate }) => (latest === undefined ? [] : [{ ...gate, latest }]));
}

/**
 * Returns the exceptions in use, then the unused ones that have not ended. The fact of an exception omits the fact of a stop that the same
 * rule still causes in other zones, because the outputs show the stop next to the exception.
 */
export function openExceptions(
  { permitted = [], unusedExceptions = [], stops = [] }: Pick<PublishedDecision, 'permitted' | 'unusedExceptions' | 'stops'>,
  nowMs: number,
): readonly RuleResult[] {
  const used = permitted.map((result): RuleResult => {
    const stop = stops.find(({ rule, fact }) => rule === result.rule && result.fact.startsWith(`${fact}; `));
    return stop === undefined ? result : { ...result, fact: result.fact.slice(stop.fact.length + 2) };
  });
  return [...used, ...unusedExceptions.filter(({ earliestMs = nowMs }) => earliestMs > nowMs)];
}
