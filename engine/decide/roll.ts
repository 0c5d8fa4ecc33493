// The decision to replace pods: which zone, which pods, or why none.
import { pods } from '../amount.ts';
import { type GroupContext, zoneNamed } from '../context.ts';
import type { Action, RuleResult, Step } from '../decision.ts';
import { describeReadiness, type ZoneView } from '../observe/view.ts';
import { profileOf } from '../profiles.ts';
import { blocks, earliest, isLimitOfZero, result, stepOutcome } from '../rule.ts';
import { choosePods } from '../rules/budget.ts';
import { deadlineFailure, progressDeadline, runDeadline } from '../rules/deadline.ts';
import { withException } from '../rules/exception.ts';
import { type PolicyAnswer, policyAnswer } from '../rules/policy.ts';
import { protectedResult } from '../rules/protected.ts';
import { type RollQuestion, rollRules } from '../rules/roll.ts';
import { mayCureBeside, stuckInstants } from '../rules/stuck.ts';
import { undoneResult } from '../rules/undone.ts';
import { beforeWave, goneUnder, underWay } from '../rules/wave.ts';
import { windowResult } from '../rules/window.ts';
import { rollbackWarnings } from '../run/rollback.ts';
import { type AdvancedRun, fail, isUnbegun, type WaveProgress, type ZoneProgress } from '../run/run.ts';
import type { PodView, RunState } from '../snapshot.ts';
import { strategyOf } from '../strategies/strategy.ts';

export interface RollDecision {
  readonly steps: readonly Step[];
  readonly actions: readonly Action[];
  readonly warnings: readonly RuleResult[];
  readonly wantedReadings: readonly { readonly gate: string; readonly fromMs: number }[];
  readonly run?: RunState;
}

/** Decides what to replace now. `isScaling` says that this turn already changes replicas, so nothing rolls. */
export function decideRoll(context: GroupContext, advanced: AdvancedRun | undefined, isScaling: boolean): RollDecision {
  const decision = rollOrWait(context, advanced, isScaling);
  const strategy = strategyOf(context.group);
  const settling = (isScaling ? [] : strategy.settlePartitions(context)).filter(
    ({ zone }) => !decision.actions.some((action) => 'zone' in action && action.zone === zone),
  );
  return {
    ...decision,
    // Last: after a write of one StatefulSet nothing else may go until its status is new again.
    actions: [...advanceRevisions(context, isScaling), ...decision.actions, ...settling],
    warnings: [...decision.warnings, ...strategy.warnOfRestarts(context, decision.run), ...rollbackWarnings(context, decision.run)],
  };
}

function rollOrWait(context: GroupContext, advanced: AdvancedRun | undefined, isScaling: boolean): RollDecision {
  if (advanced === undefined) return { steps: [], actions: [], warnings: [], wantedReadings: [] };
  const { progress, run } = advanced;
  const base = { warnings: advanced.observations, wantedReadings: advanced.wantedReadings };
  if (progress === undefined) return { ...base, steps: [], actions: [], run };
  if (progress.isFilled) return { ...base, actions: [], ...waitAfterWave(context, progress, advanced) };
  return rollWave(context, progress, run, isScaling, base.warnings);
}

/** The wave has all its updated pods: they must become available, then soak, gates and approval follow. */
function waitAfterWave(context: GroupContext, progress: WaveProgress, { run, after }: AdvancedRun): Pick<RollDecision, 'steps' | 'run'> {
  const zone = progress.zones.find(({ view }) => !view.isReady)?.view ?? progress.zones.at(-1)?.view;
  const deadline = deadlineFailure(context, run);
  const current = run.outcome === 'running' && deadline !== undefined ? fail(run, deadline, context.nowMs) : run;
  const failed = current.outcome === 'failed' ? [result('run-failed', 'no', current.failure ?? 'the run failed')] : [];
  const undone = context.view.zones.map((view) => undoneResult(context, view)).find((answer) => answer !== undefined);
  const said = [...failed, ...(undone === undefined ? [] : [undone])];
  const results = progress.isAvailable
    ? [...said, ...after]
    : [...said, ...unavailableZones(context, current), progressDeadline(context, current)];
  const step: Step = {
    id: `after/${progress.wave.name}`,
    kind: 'roll',
    zone: zone?.zone.name ?? '',
    pods: [],
    outcome: stepOutcome(results),
    results,
  };
  return { steps: [step], run: measured(context, current, !results.some(isPersonOrCalendar)) };
}

function unavailableZones(context: GroupContext, run: RunState): readonly RuleResult[] {
  const mayOpen = ({ zone }: ZoneView): boolean => zone.name === run.openZone || (run.openZone === undefined && isUnbegun(run));
  const stuck = (view: ZoneView): readonly number[] => (mayOpen(view) ? stuckInstants(context, view, view.outdated) : []);
  return context.view.zones
    .filter((view) => !view.isReady)
    .map((view) =>
      result('wave-available', view.unknown === undefined ? 'wait' : 'unknown', describeReadiness(view), {
        earliestMs: earliest([view.availableAtMs, ...stuck(view)]),
      }),
    );
}

function rollWave(
  context: GroupContext,
  progress: WaveProgress,
  run: RunState,
  isScaling: boolean,
  observations: readonly RuleResult[],
): RollDecision {
  const steps: Step[] = [];
  for (const zone of zoneOrder(context, progress, run)) {
    if (zone.remaining === 0) continue;
    const attempt = rollZone(context, progress, run, zone, isScaling);
    steps.push(attempt.step);
    // A paused zone is passed over; every other answer decides for the group, since zones go one at a time.
    if (zone.view.zone.paused) continue;
    const warnings = [...observations, ...attempt.warnings];
    return { steps, actions: attempt.actions, warnings, wantedReadings: attempt.wantedReadings, run: attempt.run };
  }
  return { steps, actions: [], warnings: observations, wantedReadings: [], run: measured(context, run, false) };
}

/**
 * The started zone first; else the one zone that is not whole; else in listed order. Before all of them comes the zone whose pods are down for
 * being outdated, when nothing else could go before it is cured, and nothing else would cure it.
 */
function zoneOrder(context: GroupContext, progress: WaveProgress, run: RunState): readonly ZoneProgress[] {
  const down = context.view.zones.filter((view) => !view.isReady);
  const started = profileOf(context.group).finishesStartedZone ? zoneNamed(context, run.openZone) : undefined;
  const first = curedFirst(context, down, started) ?? started ?? (down.length === 1 ? down[0] : undefined);
  if (first === undefined || !progress.zones.some(({ view }) => view === first)) return progress.zones;
  return [...progress.zones].sort((a, b) => Number(b.view === first) - Number(a.view === first));
}

/** Of the zones that are `down`, the one to cure before the started zone goes on. */
function curedFirst(context: GroupContext, down: readonly ZoneView[], started: ZoneView | undefined): ZoneView | undefined {
  const [only] = down;
  if (only !== undefined && down.length === 1) {
    const isBroken = only.outdated.some((pod) => only.unavailable.has(pod.ordinal));
    return started?.isReady === true && isBroken ? only : undefined;
  }
  const curable = down.filter((view) => mayCureBeside(context, view));
  return curable.find((view) => view === started) ?? curable[0];
}

interface Attempt {
  readonly step: Step;
  readonly actions: readonly Action[];
  readonly warnings: readonly RuleResult[];
  readonly wantedReadings: readonly { readonly gate: string; readonly fromMs: number }[];
  readonly run: RunState;
}

function rollZone(context: GroupContext, progress: WaveProgress, run: RunState, zone: ZoneProgress, isScaling: boolean): Attempt {
  const deadline = run.outcome === 'running' ? deadlineFailure(context, run) : undefined;
  const current = deadline === undefined ? run : fail(run, deadline, context.nowMs);
  const question: RollQuestion = { context, run: current, zone, isScaling };
  const name = zone.view.zone.name;
  const hasBegun = (current.lastDisruptionMs ?? -1) >= current.waveStartedMs;
  const before =
    current.outcome === 'failed'
      ? { results: [], observations: [], wantedReadings: [] }
      : hasBegun
        ? underWay(context, progress.wave, current)
        : beforeWave(context, progress.wave, current);
  const gated = before.failure === undefined || current.outcome === 'failed' ? current : fail(current, before.failure, context.nowMs);
  const policies = policyAnswer({ context, action: 'rollout', zone: zone.view, run: current });
  // What an earlier run replaced is not this run under way: a new template begins when the windows let it, also in a zone that is open.
  const isUnderWay = (current.lastDisruptionMs ?? -1) >= current.startedMs;
  const covered = !isUnderWay ? 'nothing' : current.openZone === name ? 'zone' : 'run';
  const choice = choosePods(question);
  const results = [
    ...rollRules.map((rule) => rule.evaluate({ ...question, run: gated })),
    ...strategyOf(context.group).checkStep(question),
    ...[undoneResult(context, zone.view), protectedResult(context, zone.view, 'all')].filter((answer) => answer !== undefined),
    ...before.results,
    windowResult(context, 'rollout', covered),
    ...policies.results,
    progressDeadline(context, gated),
    runDeadline(context, gated),
  ].map((answer) => withException(context, answer, { zone: name, podCount: choice.chosen.length }));
  // The budgets have counted their exceptions in: what they let go is chosen, and nothing else may be called permitted.
  results.push(...choice.results);
  const outcome = stepOutcome(results);
  const isActing = outcome === 'act' && choice.chosen.length > 0;
  const step: Step = {
    id: `roll/${name}`,
    kind: 'roll',
    zone: name,
    pods: choice.queue.map((pod) => pod.name),
    outcome: isActing ? 'act' : outcome === 'act' ? 'wait' : outcome,
    results: isActing || outcome !== 'act' ? results : [...results, inFlightWait(zone.view, choice.queue)],
  };
  const next = measured(
    context,
    isActing
      ? {
          ...gated,
          ...goneUnder(context.group),
          openZone: name,
          lastDisruptionMs: context.nowMs,
          inFlightSinceMs: gated.inFlightSinceMs ?? context.nowMs,
        }
      : gated,
    !results.some(isPersonOrCalendar) && !waitsForApproval(policies),
  );
  return {
    step,
    actions: isActing ? strategyOf(context.group).replacePods(context, zone.view, choice.chosen) : [],
    warnings: [...before.observations, ...policies.warnings],
    wantedReadings: before.wantedReadings,
    run: next,
  };
}

/** No rule holds, yet no pod may go: those that remain are on their way out already, or on a node that would not let them go. */
function inFlightWait(view: ZoneView, queue: readonly PodView[]): RuleResult {
  const stranded = queue.find((pod) => !pod.nodeReady && !pod.isTerminating);
  const fact =
    view.inFlight === 0 && stranded !== undefined
      ? `${stranded.name} would not go away, since node ${stranded.node} is not ready`
      : `${pods(view.inFlight)} of zone ${view.zone.name} ${view.inFlight === 1 ? 'is on its' : 'are on their'} way`;
  return result('pods-in-flight', 'wait', fact, { earliestMs: view.availableAtMs });
}

const personOrCalendar: ReadonlySet<string> = new Set(['window', 'paused', 'approval', 'undone', 'protected']);

/** Time spent behind these rules, and behind a limit of nothing, which a person must change, is not the group's own. */
function isPersonOrCalendar(answer: RuleResult): boolean {
  return (blocks(answer) && personOrCalendar.has(answer.rule)) || isLimitOfZero(answer) || isLiftedLater(answer);
}

/** A limit of nothing that waits for an instant, such as the beginning of an exception. */
function isLiftedLater({ rule, outcome, limit, earliestMs }: RuleResult): boolean {
  return rule === 'zone-budget' && outcome === 'wait' && limit === '0' && earliestMs !== undefined;
}

/** A rule that asks for approval answers under its own name. */
function waitsForApproval({ effects, results }: PolicyAnswer): boolean {
  return effects.includes('requireApproval') && results.some(blocks);
}

/** Adds the time since the last decision to the time in which the group was free to move. */
function measured(context: GroupContext, run: RunState, isMovable: boolean): RunState {
  const passed = run.isMovable ? Math.max(0, context.nowMs - run.movableAsOfMs) : 0;
  return { ...run, movableMs: run.movableMs + passed, movableAsOfMs: context.nowMs, isMovable };
}

/**
 * Adopted groups advance status.currentRevision of a complete zone, which Kubernetes does not under OnDelete. Zones are visited as for
 * replacing pods, the one that is not whole first: the first zone that is not complete ends the visit, a paused one is passed over.
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
    return [
      {
        kind: 'advanceCurrentRevision',
        namespace,
        zone: zone.name,
        statefulSet,
        uid,
        resourceVersion,
        revision: set.status.updateRevision,
      },
    ];
  });
}
