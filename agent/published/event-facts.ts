// Derives the Kubernetes Events of turns, of releases and of deleted groups.

import { ordinalRanges } from '../../engine/amount.ts';
import { contextOf } from '../../engine/context.ts';
import { type Action, type GroupDecision, isMoving, type ReplacedPod, type RuleResult, replacedBy } from '../../engine/decision.ts';
import { isCrashing, viewGroup, type ZoneView } from '../../engine/observe/view.ts';
import { exposedActions } from '../../engine/publish/exposed.ts';
import type { TakenAction } from '../../engine/publish/published.ts';
import { isMisplacedUntilRetry } from '../../engine/publish/status.ts';
import type { ReleaseDecision } from '../../engine/release/release.ts';
import { undoneBy } from '../../engine/release/removal.ts';
import { storedResult } from '../../engine/rule.ts';
import { onlyWarns, reasonOf } from '../../engine/rules/catalog.ts';
import { permittedResults, unusedExceptions } from '../../engine/rules/exception.ts';
import { changeOf, recordedKind } from '../../engine/run/origin.ts';
import { objectOf, requesterText, requestPlace } from '../../engine/run/requests.ts';
import type { RunState } from '../../engine/run/run-state.ts';
import { type IntentView, isUnknown, type PodView } from '../../engine/snapshot.ts';
import { defined } from '../../policies/values/defined.ts';
import { groupBy } from '../../policies/values/group-by.ts';
import { type GroupRemovalReport, isRunRemembered, type ReleaseReport, type TurnReport } from '../report.ts';

export interface EventFact {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  /** The action of the agent, for example `Wait` or `Roll`. */
  readonly action: string;
  readonly note: string;
  readonly zone?: string;
  readonly pods?: readonly string[];
  /** The key by which a repeated fact is found; the note if absent. Needed if the note contains changing details. */
  readonly identity?: string;
  /** The key of a wait in `GroupPast`. A wait becomes an Event only if it lasts. */
  readonly wait?: string;
}

/** The part of a turn with which the next turn is compared. */
export interface GroupPast {
  readonly run?: RunState;
  /** The keys of the rules that blocked the group. */
  readonly waits: ReadonlySet<string>;
  readonly requests: readonly IntentView[];
  /** The rule results that passed only because of an exception, if the exception still exists. */
  readonly permitted: readonly RuleResult[];
  /** The keys of the exceptions that existed. */
  readonly exceptions: ReadonlySet<string>;
  /** The UIDs of the pods that the turn replaced, and of the outdated pods that a partition exposed. */
  readonly exposed?: ReadonlySet<string>;
  /** The facts of the warnings that have an Event. */
  readonly warned?: ReadonlySet<string>;
  /** The UIDs of the updated pods that crashed and were not available since. */
  readonly crashed?: ReadonlySet<string>;
}

/** Returns the facts of this turn in order, and the state with which the next turn is compared. */
export function factsOf(
  report: TurnReport,
  past: GroupPast | undefined,
): { readonly facts: readonly EventFact[]; readonly past: GroupPast } {
  const { decision, performed, error, snapshot } = report;
  const defects = error?.startsWith('the decision violates ') ? [warning('InvariantViolated', 'Hold', error)] : [];
  if (decision === undefined)
    return { facts: defects, past: past ?? { waits: new Set(), requests: [], permitted: [], exceptions: new Set() } };
  // While pods are replaced, budgets and readiness block the next pod most of the time. This is normal, so it causes no Event.
  const waits = new Map((isMoving(decision) ? [] : decision.waits).map((wait) => [identityOf(wait), wait]));
  const requests = requestsIn(report) ?? past?.requests ?? [];
  // A requested pause or protection already has the Event of its request, unless an earlier leader saw the request first.
  const isRequested = ({ rule, source }: RuleResult): boolean =>
    past !== undefined &&
    (rule === 'paused' || rule === 'protected') &&
    requests.some((request) => source?.object === objectOf(request).object);
  const news = [...waits].flatMap(([key, wait]) => (past?.waits.has(key) === true || isRequested(wait) ? [] : [waitFact(wait)]));
  const known = (past?.permitted ?? []).filter(({ exception }) => snapshot.exceptions.some(({ name }) => name === exception));
  const used = exceptionFacts(decision, known);
  const open = unusedExceptions(contextOf(snapshot, report.group), decision.permitted ?? []);
  const warnings = decision.warnings.filter(({ rule }) => onlyWarns(rule));
  const exposed = exposedActions(report).flatMap(({ action }) => replacedBy(action));
  const newlyExposed = exposed.filter(({ uid }) => past?.exposed?.has(uid) === false);
  const isRemembered = isRunRemembered(report);
  const { zones } = viewGroup(snapshot, report.group);
  const crashed = zones.map((zone) => ({ zone: zone.zone.name, pods: crashedPods(zone, past?.crashed) }));
  const replacing = [...performed.flatMap(({ action }) => replacedBy(action)), ...exposed];
  return {
    facts: [
      ...defects,
      ...requestFacts(requests, past?.requests),
      ...(isRemembered ? runFacts(report, decision, past) : []),
      ...openedFacts(open, past?.exceptions),
      ...used.facts,
      ...actionFacts(performed, newlyExposed),
      ...news,
      ...crashed.flatMap(({ zone, pods }) => crashFact(zone, pods, past?.crashed) ?? []),
      ...warnings.filter(({ fact }) => past?.warned?.has(fact) !== true).map(({ rule, fact }) => warning(reasonOf(rule), 'Roll', fact)),
    ],
    past: {
      requests,
      permitted: used.permitted,
      exceptions: new Set([...(decision.permitted ?? []), ...open].map(exceptionKeyOf)),
      waits: new Set(waits.keys()),
      exposed: new Set(replacing.map(({ uid }) => uid)),
      warned: new Set(warnings.map(({ fact }) => fact)),
      crashed: new Set(crashed.flatMap(({ pods }) => pods.map(({ uid }) => uid))),
      ...defined({ run: isRemembered ? decision.run : past?.run }),
    },
  };
}

/** Returns one fact for each new exception that permits nothing yet, because a step or a request may need it at any time. */
function openedFacts(open: readonly RuleResult[], before: ReadonlySet<string> | undefined): readonly EventFact[] {
  const opened = open.filter((result) => before !== undefined && !before.has(exceptionKeyOf(result)));
  return opened.map((result) =>
    warning('ExceptionOpened', 'Request', `${result.rule}: ${result.fact}`, { identity: exceptionKeyOf(result) }),
  );
}

function exceptionKeyOf({ rule, exception, earliestMs }: RuleResult): string {
  return `${rule} ${exception} ${earliestMs}`;
}

/** Returns one fact for each rule of the taken steps that passes for the first time because of an exception. */
function exceptionFacts(
  decision: GroupDecision,
  known: readonly RuleResult[],
): Pick<GroupPast, 'permitted'> & { readonly facts: readonly EventFact[] } {
  const permitted = new Map(known.map((result) => [exceptionKeyOf(result), result]));
  const facts: EventFact[] = [];
  for (const step of decision.steps.filter(({ outcome }) => outcome === 'act')) {
    const used = permittedResults(step.results).filter((result) => !permitted.has(exceptionKeyOf(result)));
    for (const result of used) {
      permitted.set(exceptionKeyOf(result), result);
      const note = `${result.rule}: ${storedResult(result).fact}`;
      facts.push(
        warning('ExceptionUsed', step.kind === 'roll' ? 'Roll' : 'Scale', note, { zone: step.zone, identity: exceptionKeyOf(result) }),
      );
    }
  }
  return { permitted: [...permitted.values()], facts };
}

/** Returns the updated pods that crash, or crashed before and are not available yet: a container that starts again runs for a moment. */
function crashedPods({ pods, desiredRevision, available }: ZoneView, before: ReadonlySet<string> | undefined): readonly PodView[] {
  return pods.filter(
    (pod) => pod.revision === desiredRevision && !available.has(pod.ordinal) && (isCrashing(pod) || before?.has(pod.uid) === true),
  );
}

/** Returns the fact that updated pods of the zone started to crash; undefined if each of them crashed already at the last turn. */
function crashFact(zone: string, crashed: readonly PodView[], before: ReadonlySet<string> | undefined): EventFact | undefined {
  const started = crashed.filter(({ uid }) => before?.has(uid) !== true);
  const [first, ...more] = started;
  if (first === undefined) return undefined;
  const others = more.length === 0 ? '' : `, and ${more.length} more`;
  const note = `${first.name} crashes at the update revision: ${first.waitingReasons.join(', ')}${others}`;
  return warning('PodsCrashing', 'Wait', note, { zone, identity: started.map(({ uid }) => uid).join(' ') });
}

const requestReasons: Partial<Record<IntentView['action'], readonly [reason: string, verb: string]>> = {
  approve: ['Approved', 'approved'],
  reject: ['Rejected', 'rejected'],
  promote: ['Promoted', 'promoted'],
  retry: ['Retried', 'is continued'],
  pause: ['Paused', 'is paused'],
  protect: ['Protected', 'is protected'],
  cancel: ['ScaleDownCancelled', 'is cancelled'],
};

/** The reason of the Event when a request ends, and the noun for the request in the note. */
const endReasons: Partial<Record<IntentView['action'], readonly [reason: string, noun: string]>> = {
  pause: ['Resumed', 'pause'],
  protect: ['ProtectionEnded', 'protection'],
  undo: ['UndoEnded', 'undo'],
  reject: ['RejectionEnded', 'rejection'],
  abort: ['Resumed', 'abort'],
  cancel: ['CancellationEnded', 'cancellation'],
};

/** Returns the requests about the group that cause Events; undefined if they could not be read. */
function requestsIn({ group, snapshot: { intents, nowMs } }: TurnReport): readonly IntentView[] | undefined {
  if (isUnknown(intents)) return undefined;
  return intents.filter(
    ({ namespace, group: name, action, requestedBy, expiresMs = Number.POSITIVE_INFINITY }) =>
      namespace === group.namespace &&
      name === group.name &&
      expiresMs > nowMs &&
      (action in requestReasons || action in endReasons) &&
      // An abort with a verified requester ends with its run. Without one, it only pauses the group.
      (action !== 'abort' || requestedBy === undefined),
  );
}

/** Returns the facts of new requests, and of ended requests that stopped the group. */
function requestFacts(now: readonly IntentView[], before: readonly IntentView[] | undefined): readonly EventFact[] {
  if (before === undefined) return [];
  const keyOf = ({ name, action, requestedBy }: IntentView): string => `${name} ${action} ${requestedBy?.atMs}`;
  const known = new Set(before.map(keyOf));
  const added = now.flatMap((request): readonly EventFact[] => {
    const [reason, verb] = requestReasons[request.action] ?? [];
    if (reason === undefined || known.has(keyOf(request))) return [];
    const make = request.action === 'reject' ? warning : normal;
    return [make(reason, 'Request', `${subjectOf(request)} ${verb} by ${requesterText(request)}`, { identity: keyOf(request) })];
  });
  const names = new Set(now.map(({ action, name }) => `${action} ${name}`));
  const ended = before.flatMap((request): readonly EventFact[] => {
    const { action, name } = request;
    const [reason, noun] = endReasons[action] ?? [];
    if (reason === undefined || names.has(`${action} ${name}`)) return [];
    const note = `the ${noun} of ${subjectOf(request)} by ${requesterText(request)} ended`;
    return [normal(reason, 'Request', note, { identity: keyOf(request) })];
  });
  return [...added, ...ended];
}

function subjectOf(request: IntentView): string {
  const { action, wave, rule, replicas } = request;
  if (action === 'cancel') return `the scale-down of ${requestPlace(request)}${replicas === undefined ? '' : ` to ${replicas}`}`;
  if (wave !== undefined) return `wave ${wave}`;
  return rule === undefined ? requestPlace(request) : `rule ${rule}`;
}

type FactDetails = Pick<EventFact, 'zone' | 'identity'>;

function normal(reason: string, action: string, note: string, details: FactDetails = {}): EventFact {
  return { type: 'Normal', reason, action, note, ...details };
}

export function warning(reason: string, action: string, note: string, details: FactDetails = {}): EventFact {
  return { type: 'Warning', reason, action, note, ...details };
}

/**
 * Returns a key of the wait without ages and counts: its rule, its outcome, whether only a person can end it, and the fact of a pause, because
 * a pause by another requester is another wait.
 */
function identityOf(wait: RuleResult): string {
  const ended = isMisplacedUntilRetry(wait) ? ' for good' : '';
  return `${wait.rule} ${wait.outcome}${ended}${wait.rule === 'paused' ? ` ${storedResult(wait).fact}` : ''}`;
}

function waitFact(wait: RuleResult): EventFact {
  const { rule, outcome, fact, limit, source } = storedResult(wait);
  const place = source?.object ?? (source?.file === undefined ? undefined : `${source.file}:${source.line ?? 1}`);
  const note = `${rule}: ${fact}${limit === undefined ? '' : ` (${limit}${place === undefined ? '' : `, ${place}`})`}`;
  const make = outcome === 'wait' && !isMisplacedUntilRetry(wait) ? normal : warning;
  const key = identityOf(wait);
  return { ...make(reasonOf(rule), outcome === 'no' ? 'Block' : 'Wait', note, { identity: `${key} ${note}` }), wait: key };
}

function runFacts({ snapshot }: TurnReport, { run }: GroupDecision, past: GroupPast | undefined): readonly EventFact[] {
  if (run === undefined) return [];
  const subject = recordedKind(run);
  const before = past?.run;
  const isRunning = run.outcome === 'running';
  const isNew = before?.id !== run.id;
  const wasRunning = before?.outcome === 'running';
  const isJoin = isNew && wasRunning && changeOf(run) === changeOf(before);
  // A run that was in progress when this process began to lead was reported by the earlier leader.
  const hasBegun = isNew && (past !== undefined || run.startedMs >= snapshot.nowMs);
  const isKnown = past !== undefined || hasBegun;
  const facts: EventFact[] = [];
  if (isNew && wasRunning && !isJoin) {
    const note = 'a newer update revision replaced the rollout in progress';
    facts.push(normal('RolloutSuperseded', 'Roll', note, { identity: before.id }));
  }
  if (hasBegun && !isJoin && isRunning) facts.push(startFact(run, subject));
  const zone = run.openZone;
  if (isRunning && isKnown && zone !== undefined && zone !== before?.openZone) {
    facts.push(normal('ZoneOpened', 'Roll', `the rollout now replaces pods of zone ${zone}`, { zone, identity: `${run.id} ${zone}` }));
  }
  const hasEnded = !isRunning && (isNew ? hasBegun : wasRunning);
  return hasEnded ? [...facts, ...endFacts(run, subject)] : facts;
}

function startFact({ id: identity, origin }: RunState, subject: string): EventFact {
  const cause = origin?.cause === undefined ? '' : `: ${origin.cause}`;
  return normal('RolloutStarted', 'Roll', `${subject} started${cause}`, { identity });
}

function endFacts(run: RunState, subject: string): readonly EventFact[] {
  const { id: identity } = run;
  if (run.outcome === 'completed') return [normal('RolloutFinished', 'Roll', `${subject} finished`, { identity })];
  if (run.outcome !== 'failed') return [];
  // After a retry, the same run can fail for another reason.
  return [warning('RolloutFailed', 'Stop', `${subject} failed: ${run.failure}`, { identity: `${identity} ${run.failure}` })];
}

/** Returns one fact for each action that failed or scaled, and one fact for all replaced and exposed pods of a zone. */
export function actionFacts(performed: readonly TakenAction[], exposed: readonly ReplacedPod[] = []): readonly EventFact[] {
  const done = performed.flatMap(({ action, result }) => (result === 'done' ? replacedBy(action) : []));
  const replaced = [...groupBy([...done, ...exposed], ({ zone }) => zone)].map(([zone, pods]) =>
    replacedFact(
      zone,
      pods.map(({ pod }) => pod),
    ),
  );
  return [...performed.flatMap((one) => actionFact(one) ?? []), ...replaced];
}

/** Longer lists of pods are written as ranges of ordinals. */
const maxNamed = 10;

function replacedFact(zone: string | undefined, pods: readonly string[]): EventFact {
  const names = [...new Set(pods)];
  const set = names[0]?.replace(/-\d+$/, '');
  const ordinals = ordinalRanges(names.map((name) => Number(name.slice(name.lastIndexOf('-') + 1))));
  const text = names.length > maxNamed ? `${names.length} pods of ${set}: ${ordinals}` : names.join(', ');
  return { ...normal('PodReplaced', 'Roll', `replaced ${text}`, zone === undefined ? {} : { zone }), pods: names };
}

/** Combines two facts of the same reason and zone. The note names the replaced pods of both facts, or is the note of the later fact. */
export function combinedFact(earlier: EventFact, later: EventFact): EventFact {
  if (earlier.pods !== undefined && later.pods !== undefined) return replacedFact(later.zone, [...earlier.pods, ...later.pods]);
  return { ...later, note: `(combined from similar events): ${later.note}` };
}

function actionFact({ action, result, message }: TakenAction): EventFact | undefined {
  const failure = message === undefined || message === '' ? result : message;
  if (action.kind === 'scaleStatefulSet' && result === 'done') {
    const { from, to, statefulSet, zone } = action;
    return normal(to > from ? 'ScaledUp' : 'ScaledDown', 'Scale', `${statefulSet} scaled from ${from} to ${to}`, { zone });
  }
  if (result === 'failed' || result === 'refused' || (result === 'unknown' && action.kind === 'callPods'))
    return failureFact(action, failure);
  const [first, ...more] = result === 'unknown' ? replacedBy(action) : [];
  if (first === undefined) return undefined;
  const names = [first, ...more].map(({ pod }) => pod).join(', ');
  return warning('PodReplaced', 'Roll', `the replacement of ${names} was requested, with unknown outcome: ${failure}`, {
    zone: first.zone,
  });
}

function failureFact(action: Action, failure: string): EventFact | undefined {
  switch (action.kind) {
    case 'deletePod':
    case 'evictPod':
      return warning('PodNotReplaced', 'Roll', `${action.pod} was not replaced: ${failure}`, { zone: action.zone });
    case 'setPartition': {
      const note = `the partition of ${action.statefulSet} was not set to ${action.to}: ${failure}`;
      return warning('PodNotReplaced', 'Roll', note, { zone: action.zone });
    }
    case 'scaleStatefulSet': {
      const { from, to, statefulSet, zone } = action;
      return warning('ScalingFailed', 'Scale', `${statefulSet} was not scaled from ${from} to ${to}: ${failure}`, { zone });
    }
    case 'callPods': {
      const { method, statefulSet, zone } = action;
      if (method !== 'POST') return undefined;
      return warning('PreparationFailed', 'Scale', `${statefulSet} does not scale down: its pods are not prepared: ${failure}`, { zone });
    }
    default:
      return undefined;
  }
}

export interface ReleaseFact {
  readonly fact: EventFact;
  readonly statefulSet: string;
}

type Waiting = Extract<ReleaseDecision, { readonly kind: 'wait' }>;

export function releaseFacts(report: ReleaseReport): readonly ReleaseFact[] {
  const { group, decision, performed } = report;
  const subject = `group ${group.name} has no definition any more (onPolicyDeleted: release)`;
  if (decision.kind === 'wait') return waitFacts(report, decision, subject);
  if (performed === undefined || performed.action.kind !== 'setPartition') return [];
  const { zone, statefulSet, from, pods } = performed.action;
  const moves = pods.length === 0 ? 'no pod is replaced' : `its StatefulSet controller replaces ${pods.map(({ pod }) => pod).join(', ')}`;
  const failure = `${subject}: partition ${from} was not set to 0: ${performed.message ?? performed.result}`;
  const fact =
    performed.result === 'done'
      ? normal('Released', 'Release', `${subject}: partition ${from} is now 0; ${moves}`, { zone })
      : warning('ReleaseFailed', 'Release', failure, { zone });
  return [{ statefulSet, fact }];
}

/** Returns the facts of a waiting release; empty while the group may still be defined, or while the release waits only briefly. */
function waitFacts(
  { snapshot, isLasting }: ReleaseReport,
  { because, earliestMs, ledger }: Waiting,
  subject: string,
): readonly ReleaseFact[] {
  const { release } = ledger;
  if (release?.goneMs === undefined || (earliestMs === undefined && !isLasting)) return [];
  const isAnnounced = earliestMs !== undefined;
  const undone = isAnnounced ? undoneBy(release, ledger, snapshot) : undefined;
  const news = isAnnounced
    ? `becomes 0 at ${new Date(earliestMs).toISOString()} or later, unless the group is defined again`
    : `is not 0 yet: ${because}`;
  const make = undone === undefined ? normal : warning;
  const note = `${subject}: the partition of this StatefulSet ${news}${undone === undefined ? '' : `; ${undone}`}`;
  const fact = make(isAnnounced ? 'ReleaseAnnounced' : 'ReleaseWaits', 'Wait', note, { identity: `${release.goneMs}` });
  // The ledger shows the state after the turn, so a zone that was released in this turn is not among the waiting zones.
  const waiting = release.zones.filter(({ zone }) => release.released?.includes(zone) !== true);
  return waiting.map(({ zone, statefulSet }) => ({ statefulSet, fact: { ...fact, zone } }));
}

/** Returns the facts about a deleted group that is not released, one for each StatefulSet. */
export function groupRemovalFacts({ snapshot, reports }: GroupRemovalReport): readonly ReleaseFact[] {
  return reports.map(({ zone, statefulSet, isWarning, note }) => ({
    statefulSet,
    fact: (isWarning ? warning : normal)('GroupGone', 'Leave', note, { zone, identity: `${snapshot.nowMs}` }),
  }));
}
