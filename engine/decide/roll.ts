// Decides which pods of which zone to replace now, or which rules block every replacement.
import { defined, extended } from '../../policies/values/defined.ts';
import { groupBy } from '../../policies/values/group-by.ts';
import { counted, listed, zonesText } from '../../policies/wording.ts';
import { type GroupContext, zoneNamed } from '../context.ts';
import type { Action, GroupDecision, RuleResult, Step } from '../decision.ts';
import { driftText } from '../diff/field-writers.ts';
import { claimNote, describeReadiness, type ZoneView } from '../observe/view.ts';
import { profileOf } from '../profiles.ts';
import { blocks, type Check, isLimitOfZero, result, resultsOf, stepOutcome } from '../rule.ts';
import { agentAccess } from '../rules/agent-access.ts';
import { lacksApproval } from '../rules/approval.ts';
import { choosePods, type PodChoice } from '../rules/budget.ts';
import { tightestException, withException } from '../rules/exception.ts';
import { lowestUnavailable, mayRepairDespiteOthers, waitsForLower } from '../rules/pod-state.ts';
import { type PolicyAnswer, policyAnswer, windowResult } from '../rules/policy.ts';
import { protectedResult } from '../rules/protected.ts';
import { refusalOf } from '../rules/refused-write.ts';
import {
  deadlineFailure,
  ledgerHasRoom,
  minInterval,
  noReplicaWrite,
  notFailed,
  notPaused,
  oldStatusOf,
  otherZonesReady,
  progressDeadline,
  type RollQuestion,
  runDeadline,
  undoneResult,
  viewComplete,
} from '../rules/roll.ts';
import { unfitMembers, updateStrategy } from '../rules/strategy.ts';
import { beforeWave, underWay, type WaveAnswer, wavesDigestOf } from '../rules/wave.ts';
import { comparedPlan, needsNoPlan } from '../run/approved-plan.ts';
import { hasPodsLeft, noWaveWarnings, podsLeft } from '../run/included.ts';
import { advanceRun, rollbackWarnings, withEarlierRetries } from '../run/run.ts';
import type { RunState, UnfinishedRun } from '../run/run-state.ts';
import { countMovableTime, failRun, hasReplacedSince, recordReplacement } from '../run/states.ts';
import type { AdvancedRun, WaveProgress, ZoneProgress } from '../run/waves.ts';
import type { PodView } from '../snapshot.ts';
import { strategyOf } from '../strategies/strategy.ts';

export type RollDecision = Pick<GroupDecision, 'steps' | 'actions' | 'warnings' | 'wantedReadings' | 'run' | 'budgetAnswers'>;

/** Decides which pods to replace now. No pod is replaced while this turn changes replicas (`isScaling`). */
export function decideRoll(context: GroupContext, advanced: AdvancedRun | undefined, isScaling: boolean): RollDecision {
  const decision = rollOrWait(context, advanced, isScaling);
  const strategy = strategyOf(context.group);
  const settling = (isScaling ? [] : strategy.settlePartitions(context)).filter(
    ({ zone }) => !decision.actions.some((action) => 'zone' in action && action.zone === zone),
  );
  return {
    ...decision,
    ...defined({ run: decision.run && withEarlierRetries(context, decision.run) }),
    // `settling` is last: after its partition writes, the group replaces no pod until the status of the written StatefulSets is current.
    actions: [...advanceRevisions(context, isScaling), ...decision.actions, ...settling],
    warnings: [
      ...decision.warnings,
      ...strategyWarnings(context, decision.steps),
      ...strategy.warnOfRestarts(context, decision.run),
      ...rollbackWarnings(context, decision.run),
      ...noWaveWarnings(context, decision.run),
      ...planWarnings(context, decision.run),
      ...imageWarnings(context, decision.run),
    ],
  };
}

/** Returns a warning for each member with an unfit update strategy that no step shows. */
function strategyWarnings({ group, view }: GroupContext, steps: readonly Step[]): readonly RuleResult[] {
  const shown = new Set(steps.flatMap(({ results }) => results.map(({ fact }) => fact)));
  return unfitMembers(group, view.zones).filter(({ fact }) => !shown.has(fact));
}

/**
 * Returns a warning if a rollout differs from the approved plan that its StatefulSets name, or if fields differ from their manifests. A
 * field that differs from the plan usually also differs from its manifest, so both are one warning.
 */
function planWarnings(context: GroupContext, run: RunState | undefined): readonly RuleResult[] {
  const drift = driftText(context.view.zones.flatMap(({ set }) => set ?? []));
  const drifted = drift === undefined ? [] : [drift];
  const isCompared = run !== undefined && run.outcome !== 'completed' && !needsNoPlan(context, run);
  const { plan, deviations = [] } = (isCompared ? comparedPlan(context) : undefined) ?? {};
  if (deviations.length === 0) return drifted.map((fact) => result('drift', 'wait', fact));
  const named = plan === undefined ? '' : ` ${plan}`;
  const facts = [...deviations.map(({ fact }) => fact), ...drifted];
  return [result('approved-plan', 'wait', `the rollout differs from its approved plan${named}: ${facts.join('; ')}`)];
}

/** Returns the name of an image with its tag or digest: zones with equal results request the same image, as each zone can have a registry. */
export function imageOfZone(image: string): string {
  return image.replace(/^.*\//, '');
}

/**
 * Returns a warning if the zones request different images while no pod is left to replace. An apply writes one StatefulSet after the other.
 * Until the StatefulSet controller observes a write, the outdated pods of that zone do not count as outdated, so there is no warning.
 */
function imageWarnings({ group, view: { zones } }: GroupContext, run: RunState | undefined): readonly RuleResult[] {
  const isUnfinished = run !== undefined && run.outcome !== 'completed';
  const isChanging = (view: ZoneView): boolean =>
    podsLeft(group, run, view) > 0 || view.unknown !== undefined || oldStatusOf(view) !== undefined;
  if (isUnfinished || zones.some(isChanging)) return [];
  const images = zones.flatMap(({ zone, set }) =>
    Object.entries(set?.images ?? {}).map(([container, image]) => ({ container, image: imageOfZone(image), zone: zone.name })),
  );
  const different = [...groupBy(images, ({ container }) => container)].flatMap(([container, ofContainer]) => {
    const parts = [...groupBy(ofContainer, ({ image }) => image)].map(
      ([image, same]) =>
        `${image} in ${listed(
          same.map(({ zone }) => zone),
          'and',
        )}`,
    );
    return parts.length < 2 ? [] : [`container ${container} has ${parts.join('; ')}`];
  });
  return different.length === 0 ? [] : [result('zone-images', 'wait', `the zones request different images: ${different.join(', ')}`)];
}

function rollOrWait(context: GroupContext, advanced: AdvancedRun | undefined, isScaling: boolean): RollDecision {
  if (advanced === undefined) return { steps: [], actions: [], warnings: [], wantedReadings: [] };
  const { progress, run, observations: warnings, wantedReadings } = advanced;
  if (progress === undefined) return { warnings, wantedReadings, steps: stepsAfterReturn(context, run), actions: [], run };
  if (progress.isFilled) return { warnings, wantedReadings, actions: [], ...waitAfterWave(context, advanced) };
  return rollWave({ context, progress, run, isScaling }, warnings);
}

/** The time from a completed return to the rollout of the other pods in milliseconds: enough to publish the completed return. */
const returnDelayMs = 1_000;

/** Returns a waiting step if the run completes a return now, and the next decision starts another run with the pods that the return leaves. */
function stepsAfterReturn(context: GroupContext, run: RunState): readonly Step[] {
  const { group, view, nowMs } = context;
  if (view.ledger.run?.outcome === 'completed') return [];
  const following = advanceRun({ ...context, view: { ...view, ledger: { ...view.ledger, run } } })?.run;
  const next = following?.outcome === 'running' ? view.zones.find((zone) => podsLeft(group, following, zone) > 0) : undefined;
  if (next === undefined) return [];
  const fact =
    run.returning === undefined
      ? `the previous templates are restored; the pods of zone ${next.zone.name} with an earlier template start at the first wave`
      : `${zonesText(run.returning)} returned to the previous template; the other zones start at the first wave`;
  const results = [result('zones-returned', 'wait', fact, { earliestMs: nowMs + returnDelayMs })];
  return [{ id: 'after/return', kind: 'roll', zone: next.zone.name, pods: [], outcome: 'wait', results }];
}

type RunInWave = Extract<AdvancedRun, { readonly progress: WaveProgress }>;

/** Returns the step of a wave whose pods are all updated. First the pods must become available; then soak, gates and approval follow. */
function waitAfterWave(context: GroupContext, { run, progress, after }: RunInWave): Pick<RollDecision, 'steps' | 'run'> {
  const zone = progress.zones.find(({ view }) => !view.isReady)?.view ?? progress.zones.at(-1)?.view;
  const current = failIfLate(context, run);
  const failed = current.outcome === 'failed' ? [result('run-failed', 'no', current.failure)] : [];
  const undone = context.view.zones.map((view) => undoneResult(context, view)).find((answer) => answer !== undefined);
  const next = hasPodsLeft(context, run) ? 'roll' : 'wait';
  const ended = [...failed, agentAccess(context, next) ?? [], undone ?? [], pausedAhead(context, run)].flat();
  const results = progress.isAvailable
    ? [...ended, ...after]
    : [...ended, ...unavailableZones(context), progressDeadline(context, current)];
  const { name = '' } = zone?.zone ?? {};
  const step: Step = { id: `after/${progress.wave.name}`, kind: 'roll', zone: name, pods: [], outcome: stepOutcome(results), results };
  return { steps: [step], run: countMovableTime(current, !results.some(isPersonOrCalendar), context.nowMs) };
}

/** Returns a pause if every zone with a pod to replace is paused, so that the next wave cannot start. */
function pausedAhead(context: GroupContext, run: RunState): readonly RuleResult[] {
  const open = context.view.zones.filter((view) => podsLeft(context.group, run, view) > 0);
  const pauses = open.map(({ zone }) => notPaused(context, zone));
  return pauses.every(({ outcome }) => outcome === 'wait') ? pauses.slice(0, 1) : [];
}

function unavailableZones({ view: { zones } }: GroupContext): readonly RuleResult[] {
  return zones
    .filter((view) => !view.isReady)
    .map((view) =>
      result('wave-available', view.unknown === undefined ? 'wait' : 'unknown', describeReadiness(view), {
        earliestMs: view.availableAtMs,
      }),
    );
}

interface WaveTurn {
  readonly context: GroupContext;
  readonly progress: WaveProgress;
  readonly run: UnfinishedRun;
  readonly isScaling: boolean;
}

function rollWave(turn: WaveTurn, observations: readonly RuleResult[]): RollDecision {
  const { context, run } = turn;
  const steps: Step[] = [];
  for (const zone of orderZones(turn)) {
    if (zone.remaining === 0) continue;
    const attempt = rollZone(turn, zone);
    steps.push(attempt.step);
    // Zones roll one at a time, so the first zone decides for the group. A zone that its settings pause is skipped. A person's pause of the
    // zone stops the later zones too, because a stop must not start a zone.
    if (zone.view.zone.paused) continue;
    const { step: _, warnings, ...decided } = attempt;
    return extended(decided, { steps, warnings: [...observations, ...warnings] });
  }
  const inTime = countMovableTime(failIfLate(context, run), false, context.nowMs);
  return { steps, actions: [], warnings: observations, wantedReadings: [], run: inTime };
}

function returnsFirst(zone: string): RuleResult {
  return result('approval', 'skip', `zone ${zone} returns to its previous template, before the waves (skipOnRollback)`);
}

/** Returns the zones of the wave in rolling order: first the zone to repair, else the open zone, else the only unavailable zone. */
function orderZones({ context, progress, run }: WaveTurn): readonly ZoneProgress[] {
  const down = context.view.zones.filter((view) => !view.isReady);
  const open = profileOf(context.group).finishesStartedZone ? zoneNamed(context, run.openZone) : undefined;
  const first = zoneToRepairFirst(context, down, open) ?? open ?? (down.length === 1 ? down[0] : undefined);
  if (first === undefined || !progress.zones.some(({ view }) => view === first)) return progress.zones;
  return [...progress.zones].sort((a, b) => Number(b.view === first) - Number(a.view === first));
}

/** Returns the zone of `down` whose broken pods are replaced before the open zone continues. */
function zoneToRepairFirst(context: GroupContext, down: readonly ZoneView[], open: ZoneView | undefined): ZoneView | undefined {
  const [only] = down;
  if (only !== undefined && down.length === 1) {
    // A terminating pod, for example on a drained node, needs no repair: the StatefulSet controller creates its successor.
    const isBroken = only.outdated.some((pod) => !only.available.has(pod.ordinal) && !pod.isTerminating);
    return open?.isReady === true && isBroken ? only : undefined;
  }
  const repairable = down.filter((view) => mayRepairDespiteOthers(context, view));
  return repairable.find((view) => view === open) ?? repairable[0];
}

interface Attempt extends Omit<RollDecision, 'steps' | 'run'> {
  readonly step: Step;
  readonly run: RunState;
}

/** Decides for one zone: runs every check, and returns actions for the chosen pods if no result blocks. */
function rollZone(turn: WaveTurn, zone: ZoneProgress): Attempt {
  const { context, isScaling } = turn;
  const { view } = zone;
  const inTime = failIfLate(context, turn.run);
  const asked = runOfZone(inTime, view.zone.name);
  const wave = checkWave(turn, asked, view.zone.name);
  const run = wave.failure === undefined || inTime.outcome === 'failed' ? inTime : failRun(inTime, wave.failure, context.nowMs);
  const policies = policyAnswer({ context, action: 'rollout', zone: view, run: asked });
  const question: RollQuestion = { context, run, zone, isScaling };
  const { choice, results: checked } = checkRoll(extended(question, { wave, policies }));
  const actions = checked.some(blocks) ? [] : strategyOf(context.group).replacePods(context, view, choice.chosen);
  const refusals = actions.map((action) => refusalOf(context, action));
  const isRefused = actions.length > 0 && !refusals.includes(undefined);
  const results = isRefused ? [...checked, ...refusals.flatMap((refusal) => refusal ?? [])] : checked;
  const outcome = stepOutcome(results);
  const isActing = outcome === 'act' && actions.length > 0;
  const isIdle = outcome === 'act' && !isActing;
  const step: Step = {
    id: `roll/${view.zone.name}`,
    kind: 'roll',
    zone: view.zone.name,
    pods: choice.queue.map((pod) => pod.name),
    outcome: isIdle ? 'wait' : outcome,
    results: isIdle ? [...results, podsInFlight(view, choice.queue)] : results,
  };
  // As in grafana/rollout-operator, budgets are asked only if nothing else blocks.
  const isAsked = choice.answers.length > 0 && !checked.some((answer) => blocks(answer) && !choice.results.includes(answer));
  const isMovable = !results.some(isPersonOrCalendar) && !waitsForApproval(policies);
  const digest = wavesDigestOf(context.group);
  const replaced = isActing
    ? recordReplacement(run, { zone: view.zone.name, digest, nowMs: context.nowMs })
    : failIfLost(run, results, context);
  return {
    step,
    actions: isActing ? actions : [],
    warnings: [...wave.observations, ...policies.warnings],
    wantedReadings: wave.wantedReadings,
    ...(isAsked ? { budgetAnswers: choice.answers.map(({ reason, code }) => ({ reason, code })) } : {}),
    run: countMovableTime(replaced, isMovable, context.nowMs),
  };
}

interface StepQuestion extends RollQuestion {
  readonly wave: WaveAnswer;
  readonly policies: PolicyAnswer;
}

/** The checks before the choice of pods, in the order in which plans and explanations print the results. */
export const stepChecks: readonly Check<StepQuestion>[] = [
  { id: 'update-strategy', evaluate: updateStrategy }, // the StatefulSets have the update strategy that the rollout strategy needs
  { id: 'view-complete', evaluate: viewComplete }, // every zone was read and its status is current
  { id: 'run-failed', evaluate: notFailed }, // the run has not failed
  { id: 'paused', evaluate: ({ context, zone }) => notPaused(context, zone.view.zone) }, // no setting and no person paused the zone
  { id: 'replica-write-in-flight', evaluate: noReplicaWrite }, // this turn changes no replicas, and no zone is shrinking
  { id: 'other-zones-ready', evaluate: otherZonesReady }, // all pods of every other zone are available
  { id: 'min-interval', evaluate: minInterval }, // the last replacement was long enough ago
  { id: 'ledger-full', evaluate: ledgerHasRoom }, // the ledger has room for another claim
  { id: 'agent-access', evaluate: ({ context }) => agentAccess(context, 'roll') }, // the agent may replace pods
  { id: 'strategy', evaluate: (question) => strategyOf(question.context.group).checkStep(question) }, // partition, pins
  { id: 'undone', evaluate: ({ context, zone }) => undoneResult(context, zone.view) }, // no person undid the revision
  { id: 'protected', evaluate: ({ context, zone }) => protectedResult(context, zone.view) }, // no person protects the zone
  { id: 'wave', evaluate: ({ wave }) => wave.results }, // approval and gates before the wave
  { id: 'window', evaluate: (question) => windowResult(question.context, 'rollout', progressInWindow(question)) }, // the windows are open
  { id: 'policies', evaluate: ({ policies }) => policies.results }, // no rule of a RolloutPolicy blocks
  { id: 'progress-deadline', evaluate: ({ context, run }) => progressDeadline(context, run) }, // fails the run, blocks no step
  { id: 'run-deadline', evaluate: ({ context, run }) => runDeadline(context, run) }, // fails the run, blocks no step
];

/** Chooses the pods within the exceptions that the step needs, and returns the results of all checks with their exceptions. */
function checkRoll(question: StepQuestion): { readonly choice: PodChoice; readonly results: readonly RuleResult[] } {
  const { context, zone } = question;
  const { name } = zone.view.zone;
  const answers = stepChecks.flatMap((check) => resultsOf(check, question));
  const choice = choosePods(question, tightestException(context, answers, name));
  const permitted = answers.map((answer) => withException(context, answer, { zone: name, podCount: choice.chosen.length }));
  // The choice of pods has applied the exceptions to budgets already.
  return { choice, results: [...permitted, ...choice.results] };
}

/** Returns how much of the rollout is under way when a window closes. A run that has replaced no pod yet is not under way. */
function progressInWindow({ run, zone }: RollQuestion): 'nothing' | 'zone' | 'run' {
  if (!hasReplacedSince(run, run.startedMs)) return 'nothing';
  return run.openZone === zone.view.zone.name ? 'zone' : 'run';
}

function failIfLate(context: GroupContext, run: UnfinishedRun): UnfinishedRun {
  const failed = run.outcome === 'running' ? deadlineFailure(context, run) : undefined;
  if (run.outcome === 'failed' || failed === undefined) return run;
  const { failure, ...more } = failed;
  return failRun(run, failure, context.nowMs, more);
}

/** Fails the run if a revision to which its pods return no longer exists. */
function failIfLost(run: UnfinishedRun, results: readonly RuleResult[], { nowMs }: GroupContext): UnfinishedRun {
  const lost = results.find(({ rule, outcome }) => rule === 'revision-known' && outcome === 'no');
  return run.outcome === 'failed' || lost === undefined ? run : failRun(run, lost.fact, nowMs);
}

/**
 * Returns the run as the rules of a zone see it. While other zones return, only a stuck pod is replaced in this zone. The pod gets the new
 * template, so it needs the approvals and gates of its wave.
 */
function runOfZone(run: UnfinishedRun, zone: string): UnfinishedRun {
  return run.returning === undefined || run.returning.includes(zone) ? run : { ...run, kind: 'rollout' };
}

function checkWave({ context, progress }: WaveTurn, run: UnfinishedRun, zone: string): WaveAnswer {
  if (run.outcome === 'failed') return { results: [], observations: [], wantedReadings: [] };
  const { returning } = run;
  if (returning?.includes(zone)) return { results: [returnsFirst(zone)], observations: [], wantedReadings: [] };
  if (returning !== undefined) return beforeWave(context, progress.wave, run);
  return hasReplacedSince(run, run.waveStartedMs) ? underWay(context, progress.wave, run) : beforeWave(context, progress.wave, run);
}

/**
 * Returns why no pod is replaced although no rule blocks: the remaining pods are in flight, cannot terminate on an unready node, or have
 * successors that OrderedReady would not create.
 */
function podsInFlight(view: ZoneView, queue: readonly PodView[]): RuleResult {
  const inFlight = `${counted(view.inFlight, 'pod')} of zone ${view.zone.name} ${view.inFlight === 1 ? 'is' : 'are'} in flight${claimNote(view)}`;
  const fact = view.inFlight > 0 ? inFlight : (heldPod(view, queue) ?? inFlight);
  return result('pods-in-flight', 'wait', fact, { earliestMs: view.availableAtMs });
}

function heldPod(view: ZoneView, queue: readonly PodView[]): string | undefined {
  const waiting = queue.find((pod) => waitsForLower(view, pod));
  const lowest = `${view.zone.statefulSet}-${lowestUnavailable(view)}`;
  if (waiting !== undefined) return `a successor of ${waiting.name} would wait for ${lowest} (podManagementPolicy OrderedReady)`;
  const stranded = queue.find((pod) => !pod.nodeReady && !pod.isTerminating);
  return stranded && `${stranded.name} cannot terminate: node ${stranded.node} is not ready`;
}

const personOrCalendar: ReadonlySet<string> = new Set(['window', 'paused', 'undone', 'protected', 'pin-webhook', 'agent-access']);

/** Reports whether only a person or the calendar can end this result. The rule `run-deadline` does not count the time until then. */
function isPersonOrCalendar(answer: RuleResult): boolean {
  const isPersonal = personOrCalendar.has(answer.rule) || lacksApproval(answer) || answer.endsBy === 'person';
  return (blocks(answer) && isPersonal) || isLimitOfZero(answer) || isLiftedLater(answer);
}

/** Reports whether a limit of 0 waits for an instant, such as the start of an exception. */
function isLiftedLater({ rule, outcome, limit, earliestMs }: RuleResult): boolean {
  return rule === 'zone-budget' && outcome === 'wait' && limit === '0' && earliestMs !== undefined;
}

/** Reports whether a policy rule waits for an approval. `personOrCalendar` cannot list such rules, because users name them. */
function waitsForApproval({ effects, results }: PolicyAnswer): boolean {
  return effects.includes('requireApproval') && results.some(blocks);
}

/**
 * Returns the writes of status.currentRevision in adopted groups, because Kubernetes does not write it under OnDelete. Zones with unready
 * pods come first. Only complete zones before the first incomplete zone get a write.
 */
function advanceRevisions(context: GroupContext, isScaling: boolean): readonly Action[] {
  const { zones } = context.view;
  if (!profileOf(context.group).advancesCurrentRevision || isScaling) return [];
  if (zones.some((view) => view.set?.updateStrategy !== 'OnDelete') || zones.filter((view) => !view.isReady).length > 1) return [];
  const visited = [...zones].sort((a, b) => Number(a.isReady) - Number(b.isReady)).filter((view) => !view.zone.paused);
  const end = visited.findIndex((view) => !view.isReady || view.outdated.length > 0);
  return visited.slice(0, end === -1 ? undefined : end).flatMap(({ zone, set }): Action[] => {
    if (set === undefined || set.status.currentRevision === set.status.updateRevision) return [];
    const { namespace, name: statefulSet, uid, resourceVersion } = set;
    const revision = set.status.updateRevision;
    return [{ kind: 'advanceCurrentRevision', namespace, zone: zone.name, statefulSet, uid, resourceVersion, revision }];
  });
}
