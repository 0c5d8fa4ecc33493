// Decides what each group should do now, and which rules block further steps, for the agent, plans and explanations.

import type { GroupDefinition } from '../../policies/definition.ts';
import type { Phase } from '../../policies/rollout/phases.ts';
import { traitsOf } from '../../policies/strategies.ts';
import { defined } from '../../policies/values/defined.ts';
import { groupBy } from '../../policies/values/group-by.ts';
import { keptByObject } from '../../policies/values/map.ts';
import { counted } from '../../policies/wording.ts';
import { ordinalRanges } from '../amount.ts';
import { contextOf, type GroupContext } from '../context.ts';
import { type Decision, type GroupDecision, noGoal, type RuleResult, type Step, updatedWord, type ZoneDecision } from '../decision.ts';
import { isCrashing, type ZoneView } from '../observe/view.ts';
import { leftWithPartition, lookAgainMs } from '../release/left.ts';
import { blockingResults, blocks, earliest, earliestAfter, stepOutcome } from '../rule.ts';
import { permittedResults } from '../rules/exception.ts';
import { stuckInstants } from '../rules/pod-state.ts';
import { refusalOf } from '../rules/refused-write.ts';
import { nextDeadline, oldStatusOf, unreadResult } from '../rules/roll.ts';
import { podsInNoWave } from '../run/included.ts';
import { phaseOfRun } from '../run/origin.ts';
import { advanceRun, withRollback } from '../run/run.ts';
import type { RunState } from '../run/run-state.ts';
import type { Snapshot } from '../snapshot.ts';
import { partitionFrozen } from '../strategies/partition.ts';
import { observedPins } from '../strategies/pinned/pins.ts';
import { decideRoll } from './roll.ts';
import { decideScale, newPodWarnings } from './scale.ts';
import { stopsOf } from './stops.ts';

/** Decides for every group. The same snapshot gives the same bytes in any order of its lists. Unknown values block and never throw. */
export function decide(snapshot: Snapshot): Decision {
  const key = (group: GroupDefinition): string => `${group.namespace}/${group.name}`;
  const groups = [...snapshot.groups].sort((a, b) => (key(a) < key(b) ? -1 : 1));
  return { nowMs: snapshot.nowMs, policyDigest: snapshot.policyDigest, groups: groups.map((group) => decideGroup(snapshot, group)) };
}

/** Decides for one group: its replicas first, then its pods. */
export function decideGroup(snapshot: Snapshot, group: GroupDefinition): GroupDecision {
  const context = withRollback(contextOf(snapshot, group));
  const advanced = advanceRun(context);
  const scale = decideScale(context, advanced?.run);
  const roll = decideRoll(context, advanced, scale.isScaling);
  const planned = [...scale.steps, ...roll.steps];
  const steps = planned.length > 0 ? planned : zonesBeforeRun(context);
  const wanted = [...scale.actions, ...roll.actions];
  const actions = wanted.filter((action) => refusalOf(context, action) === undefined);
  const waits = distinctBlocking(steps.flatMap(({ results }) => results));
  const outcome =
    actions.length > 0 ? 'act' : steps.length === 0 ? 'done' : steps.every((step) => step.outcome === 'blocked') ? 'blocked' : 'wait';
  const wave = waveOf(group, roll.run);
  const stopping = stopsOf(context, steps, roll.run);
  const left = leftWithPartition(context);
  const permitted = permittedResults([...steps.flatMap(({ results }) => results), ...stopping.results]);
  const wakeAtMs = earliest([
    stopping.wakeAtMs,
    earliestAfter(
      snapshot.nowMs,
      steps.flatMap(({ results }) => results).map(({ earliestMs }) => earliestMs),
    ),
    unnamedChangeMs(context, { steps, warnings: roll.warnings }),
    left.length === 0 ? undefined : snapshot.nowMs + lookAgainMs,
  ]);
  return {
    namespace: group.namespace,
    group: group.name,
    goal: goalOf(context, planned, { stops: stopping.stops, run: roll.run }),
    phase: phaseOf(context, { steps, actions, outcome, run: roll.run }),
    outcome,
    ...(wave === undefined ? {} : { wave }),
    zones: context.view.zones.map((view) => withPodsInNoWave(context, roll.run, view)),
    steps,
    actions,
    waits,
    stops: stopping.stops,
    ...(permitted.length === 0 ? {} : { permitted }),
    ...defined({ deadline: nextDeadline(context, roll.run) }),
    // Rejected writes that no step shows.
    warnings: [
      ...scale.warnings,
      ...newPodWarnings(context, { run: roll.run, stops: stopping.stops, steps }),
      ...roll.warnings,
      ...wanted.flatMap((action) => refusalOf(context, action) ?? []),
    ],
    ...(left.length === 0 ? {} : { left }),
    wantedReadings: roll.wantedReadings,
    ...defined({ budgetAnswers: roll.budgetAnswers, wakeAtMs, run: roll.run }),
    ...(traitsOf(group).pinsPods || context.view.ledger.pins !== undefined ? { pinned: observedPins(context, roll.run) } : {}),
  };
}

/** Returns the earliest instant of a change that no step and no stop names: of a claim, a stuck pod or an automatic rollback. */
export function unnamedChangeMs(context: GroupContext, { steps, warnings }: Pick<GroupDecision, 'steps' | 'warnings'>): number | undefined {
  const isRolling = steps.some(({ kind }) => kind === 'roll');
  return earliestAfter(context.nowMs, [
    ...warnings.flatMap(({ rule, earliestMs }) => (rule === 'rolled-back' ? [earliestMs] : [])),
    ...claimInstants(context),
    ...(isRolling ? context.view.zones.flatMap((view) => stuckInstants(context, view)) : []),
  ]);
}

/** Returns the instants at which time alone could end a claim, because the successor pod has then been ready for long enough. */
function claimInstants({ view }: GroupContext): readonly (number | undefined)[] {
  const claimed = new Set(view.ledger.claims.map(({ zone }) => zone));
  return view.zones.filter(({ zone }) => claimed.has(zone.name)).map(({ availableAtMs }) => availableAtMs);
}

/**
 * Returns a waiting step for each zone that could not be read, whose status is stale or that is not frozen yet, so that the group does not
 * count as done.
 */
function zonesBeforeRun(context: GroupContext): readonly Step[] {
  return context.view.zones.flatMap((view): Step[] => {
    const waiting = unreadResult(view) ?? oldStatusOf(view) ?? partitionFrozen(context, view);
    if (waiting === undefined) return [];
    const zone = view.zone.name;
    return [{ id: `view/${zone}`, kind: 'roll', zone, pods: [], outcome: stepOutcome([waiting]), results: [waiting] }];
  });
}

function waveOf(group: GroupDefinition, run: RunState | undefined): GroupDecision['wave'] {
  const { waves } = group.rollout;
  const isInWave = run !== undefined && run.outcome !== 'completed' && run.returning === undefined;
  const wave = isInWave ? waves[run.wave] : undefined;
  return wave === undefined || run === undefined ? undefined : { name: wave.name, index: run.wave, count: waves.length };
}

function distinctBlocking(results: readonly RuleResult[]): readonly RuleResult[] {
  const seen = new Set<string>();
  return blockingResults(results).filter(({ rule, outcome, fact }) => {
    const key = `${rule} ${outcome} ${fact}`;
    return seen.has(key) ? false : seen.add(key);
  });
}

function goalOf(
  context: GroupContext,
  steps: readonly Step[],
  { stops, run }: Pick<GroupDecision, 'stops'> & { readonly run: RunState | undefined },
): string {
  const outdated = context.view.zones.reduce((sum, view) => sum + view.outdated.length, 0);
  const inNoWave = context.view.zones.reduce((sum, view) => sum + podsInNoWave(context.group, run, view), 0);
  const updated = context.view.zones.reduce((sum, view) => sum + view.updated, 0);
  const all = context.view.zones.reduce((sum, view) => sum + view.replicas, 0);
  const scaling = steps
    .filter((step) => step.kind !== 'roll' && step.to !== undefined)
    .map((step) => `zone ${step.zone} to ${counted(step.to ?? 0, 'replica')}`);
  const word = updatedWord(context.view.zones.map(zoneDecision));
  const progress = `${updated} of ${counted(all, 'pod')} ${word}${inNoWave === 0 ? '' : `, ${inNoWave} in no wave`}`;
  const parts = [...(outdated > 0 ? [progress] : []), ...scaling];
  if (parts.length > 0) return parts.join('; ');
  if (stops.some(({ rule }) => rule === 'rolled-back')) return 'keep the revision before the rollback';
  return steps.some(({ kind }) => kind === 'roll') ? progress : noGoal;
}

function phaseOf(
  context: GroupContext,
  { steps, actions, outcome, run }: Pick<GroupDecision, 'steps' | 'actions' | 'outcome'> & { readonly run: RunState | undefined },
): Phase {
  const ofRun = phaseOfRun(context.view, run);
  if (ofRun === 'Failed') return ofRun;
  // Actions without a step replace no pod and change no replicas: for example, they withdraw preparations.
  if (steps.length === 0) return ofRun === 'RolledBack' ? ofRun : 'Done';
  if (outcome !== 'act' && isPaused(steps)) return 'Paused';
  if (outcome === 'blocked') return 'Blocked';
  if (steps.some((step) => step.kind !== 'roll' && step.outcome === 'act')) return 'Scaling';
  const rolls = steps.some((step) => step.kind === 'roll' && step.outcome === 'act');
  if (rolls || (run?.openZone !== undefined && context.view.zones.some((view) => view.zone.name === run.openZone && view.inFlight > 0)))
    return 'Rolling';
  if (steps.some(({ kind, results }) => kind !== 'roll' && waitsForLeader(context, results))) return 'Scaling';
  return actions.every(({ kind }) => kind === 'setPartition') ? 'Waiting' : 'Scaling';
}

/** Reports whether pauses block every step that replaces pods; without such a step, every change of replicas. */
function isPaused(steps: readonly Step[]): boolean {
  const rolls = steps.filter(({ kind }) => kind === 'roll');
  const pausable = rolls.length > 0 ? rolls : steps;
  return pausable.every(({ results }) => results.some((answer) => answer.rule === 'paused' && blocks(answer)));
}

/** Reports whether a zone waits only for the starting pods of its leader, which has more replicas already. */
function waitsForLeader({ view: { zones } }: GroupContext, results: readonly RuleResult[]): boolean {
  const waits = results.filter(blocks);
  const isBroken = ({ pods: all, available }: ZoneView): boolean =>
    all.some((pod) => !available.has(pod.ordinal) && (isCrashing(pod) || !pod.nodeReady));
  return waits.length > 0 && waits.every(({ rule }) => rule === 'leader-ready') && !zones.some(isBroken);
}

function withPodsInNoWave({ group }: GroupContext, run: RunState | undefined, view: ZoneView): ZoneDecision {
  const count = podsInNoWave(group, run, view);
  return count === 0 ? zoneDecision(view) : { ...zoneDecision(view), podsInNoWave: count };
}

/** Returns the description of a zone. An unchanged zone without claims keeps its view object. */
const zoneDecision = keptByObject((view: ZoneView): ZoneDecision => {
  const { desiredRevision } = view;
  const revisions = [...groupBy(view.pods, ({ revision }) => revision)]
    .sort(([a], [b]) => Number(a === desiredRevision) - Number(b === desiredRevision) || (a < b ? -1 : 1))
    .map(([revision, pods]) => ({ revision, ordinals: ordinalRanges(pods.map(({ ordinal }) => ordinal)) }));
  return {
    zone: view.zone.name,
    statefulSet: view.zone.statefulSet,
    replicas: view.replicas,
    updated: view.updated,
    available: view.replicas - view.unavailable,
    isReady: view.isReady,
    revisions,
    ...(desiredRevision === '' ? {} : { desiredRevision }),
    ...(desiredRevision !== '' && desiredRevision !== view.set?.status.updateRevision ? { isReturned: true } : {}),
    ...(view.unknown === undefined ? {} : { unread: view.isMissing ? 'missing' : 'unreadable' }),
    ...defined({ drift: view.set?.drift }),
  };
});
