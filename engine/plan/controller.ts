// Forecasts the effects of new templates, of an undo and of a rollback: the pods to replace, with or without the agent, and the zones that
// keep rolling.
import type { GroupDefinition, ZoneDefinition } from '../../policies/definition.ts';
import { counted, listed } from '../../policies/wording.ts';
import { contextOf, zoneNamed } from '../context.ts';
import { decideGroup } from '../decide/decide.ts';
import { withoutUndo } from '../decide/stops.ts';
import { replacedBy, type Stop } from '../decision.ts';
import { viewGroup, type ZoneView } from '../observe/view.ts';
import { undoneResult } from '../rules/roll.ts';
import { podsInNoWave, podsLeft, remainingPods } from '../run/included.ts';
import { isRollingBack, recordedKind } from '../run/origin.ts';
import { countRevisions, mostFrequentOther, revisionsOfUndo } from '../run/revisions.ts';
import { rollbackDelayMs, withRollback } from '../run/run.ts';
import type { FailedRun, RunningRun, RunState } from '../run/run-state.ts';
import {
  type IntentView,
  isUnknown,
  type Ledger,
  ledgerOf,
  type PodView,
  podsNamed,
  type Snapshot,
  type StatefulSetView,
  setNamed,
} from '../snapshot.ts';
import { createWorld, step } from '../world/world.ts';
import { controllerWave, defaultAssumptions, type PlannedStep } from './document.ts';
import type { ForwardRun, Turn } from './forward.ts';
import type { TracedStep } from './steps.ts';

/** The first run after a change of templates. */
export interface NextRun {
  readonly run: RunState | undefined;
  /** The zones without a new revision that do not return, but whose pods the waves replace. */
  readonly others: readonly string[];
  /** The zones without a new revision whose pods also return, because an earlier write already set their template. */
  readonly returning: readonly string[];
}

/** Returns the run that begins if StatefulSets get these revisions. `revisions`: the new revision by name of the StatefulSet. */
export function runAfterRevisions(snapshot: Snapshot, group: GroupDefinition, revisions: ReadonlyMap<string, string>): NextRun {
  const { namespace } = group;
  let world = createWorld({ ...snapshot, hasAssumedTimes: true }, defaultAssumptions, 'p50');
  for (const [statefulSet, revision] of revisions) world = step(world, { kind: 'setTemplate', namespace, statefulSet, revision });
  const { run } = decideGroup(world.snapshot, group);
  const returns = ({ zone }: ZoneView): boolean => run?.returning?.includes(zone.name) ?? run?.kind === 'rollback';
  const isOther = (view: ZoneView): boolean => podsLeft(group, run, view) > 0 && !revisions.has(view.zone.statefulSet);
  const rolling = contextOf(world.snapshot, group).view.zones.filter(isOther);
  const namesOf = (isMeant: boolean) => rolling.filter((view) => returns(view) === isMeant).map(({ zone }) => zone.name);
  return { run, others: namesOf(false), returning: namesOf(true) };
}

/** Returns the run after a retry of this run: the same run, or another one if templates changed since the failure. */
export function runAfterRetry(snapshot: Snapshot, group: GroupDefinition, runId: string): NextRun {
  const { intents, nowMs } = snapshot;
  const { namespace, name } = group;
  const requestedBy = { user: '', groups: [], atMs: nowMs };
  const retry = { namespace, group: name, name: 'retry', action: 'retry', runId, requestedBy } as const;
  const after = isUnknown(intents) ? intents : [...intents, retry];
  return runAfterRevisions({ ...snapshot, intents: after }, group, new Map());
}

/** Returns the number of pods that run another revision, so that a change to `revision` replaces them; all replicas if the pods are unknown. */
export function podsToReplace(snapshot: Snapshot, { namespace, name, replicas, firstOrdinal }: StatefulSetView, revision: string): number {
  const known = podsNamed(snapshot, namespace, name);
  if (known === undefined || isUnknown(known)) return replicas;
  return known.filter((pod) => pod.revision !== revision && pod.ordinal >= firstOrdinal && pod.ordinal < firstOrdinal + replicas).length;
}

/** Returns the revision of most of the pods that do not run `revision`; undefined without such a pod, and if the pods are unknown. */
export function revisionBesides(snapshot: Snapshot, { namespace, name }: StatefulSetView, revision: string): string | undefined {
  const known = podsNamed(snapshot, namespace, name) ?? [];
  return isUnknown(known) ? undefined : mostFrequentOther(countRevisions(known), revision);
}

/** Returns the snapshot in which the unfinished run has failed and its rollback is due; undefined if the ledger has no such run. */
export function withRequestedRollback(
  snapshot: Snapshot,
  group: Pick<GroupDefinition, 'namespace' | 'name'>,
  runId: string | undefined,
): Snapshot | undefined {
  const isOf = (ledger: Ledger): boolean => ledger.namespace === group.namespace && ledger.group === group.name;
  const ledger = snapshot.ledgers.find(isOf);
  const current = ledger?.run;
  if (ledger === undefined || current === undefined || current.outcome === 'completed' || current.id !== runId) return undefined;
  const failedMs = snapshot.nowMs - rollbackDelayMs;
  const failed: FailedRun = { failure: 'aborted', ...current, outcome: 'failed', failedMs, onFailure: 'rollback' };
  return { ...snapshot, ledgers: [...snapshot.ledgers.filter((one) => !isOf(one)), { ...ledger, run: failed }] };
}

/** The revision to which a rollback returns pods of a zone, and the number of outdated pods that the rollback leaves. */
interface ZoneRollback {
  readonly to: string;
  readonly inNoWave: number;
}

/** Returns the revisions that a rollback of the unfinished run would restore now, by zone; empty if they are unknown. */
export function revisionsOfRollback(snapshot: Snapshot, group: GroupDefinition, runId: string): ReadonlyMap<string, ZoneRollback> {
  const requested = withRequestedRollback(snapshot, group, runId);
  const view = requested && withRollback(contextOf(requested, group)).view;
  const run = view?.ledger.run;
  if (view === undefined || run === undefined || !isRollingBack(run)) return new Map();
  return new Map(
    view.zones.flatMap((zone) => {
      const to = run.target[zone.zone.name];
      return to === undefined ? [] : [[zone.zone.name, { to, inNoWave: podsInNoWave(group, run, zone) }] as const];
    }),
  );
}

/** Returns the zones that roll to the undone revision again when this undo is cancelled. */
export function zonesRolledAgain(snapshot: Snapshot, group: GroupDefinition, undo: IntentView): readonly string[] {
  const { intents } = snapshot;
  if (undo.action !== 'undo' || isUnknown(intents)) return [];
  const rest = intents.filter(({ namespace, name }) => namespace !== undo.namespace || name !== undo.name);
  const context = contextOf({ ...snapshot, intents: rest }, group);
  const { run } = decideGroup(context.snapshot, group);
  if (run?.outcome !== 'running') return [];
  return (undo.undone ?? []).flatMap(({ zone: name, revision }) => {
    const view = zoneNamed(context, name);
    const isAllowed = view?.desiredRevision === revision && undoneResult(context, view) === undefined;
    return isAllowed && podsLeft(group, run, view) > 0 ? [name] : [];
  });
}

/** Reports whether the next decision begins another run instead of this one. Then requests about this run have no effect. */
export function isSuperseded(snapshot: Snapshot, group: GroupDefinition, runId: string): boolean {
  return ledgerOf(snapshot, group).run?.id === runId && decideGroup(snapshot, group).run?.id !== runId;
}

/** Returns the revision per zone that an undo of the present templates restores. `run`: the stored run of the group, or the published one. */
export function revisionsBeforeTemplates(
  snapshot: Snapshot,
  { namespace, zones }: { readonly namespace: string; readonly zones: readonly Pick<ZoneDefinition, 'name' | 'statefulSet'>[] },
  run: Parameters<typeof revisionsOfUndo>[0],
): ReturnType<typeof revisionsOfUndo> {
  const present = zones.flatMap(({ name: zone, statefulSet }) => {
    const set = setNamed(snapshot, namespace, statefulSet);
    const known = podsNamed(snapshot, namespace, statefulSet) ?? [];
    return set === undefined
      ? []
      : [{ zone, updateRevision: set.status.updateRevision, pods: countRevisions(isUnknown(known) ? [] : known) }];
  });
  return revisionsOfUndo(run, present);
}

export interface UndoFacts {
  /** By zone, the revision before the present template. */
  readonly before: ReturnType<typeof revisionsOfUndo>;
  readonly undos: readonly Pick<IntentView, 'undone' | 'requestedBy'>[];
  /** The present run, from the ledger or as published. */
  readonly run: RunState | undefined;
}

/**
 * Returns the revision of a zone that an undo restores if the user names none: that of an undo in force, or the one before the template
 * `current`. Returns `current` if the zone needs no undo; undefined if neither a request nor a run names the revision.
 */
export function revisionOfUndo(zone: string, current: string, { before, undos, run }: UndoFacts): string | undefined {
  const undoneIn = ({ undone = [] }: Pick<IntentView, 'undone'>) => undone.filter((one) => one.zone === zone);
  const begun = undos.flatMap(undoneIn).find(({ revision, to }) => revision === current && to !== undefined)?.to;
  // A return from an unfinished run does not go back to the template of that run, also if an undo restored it.
  const isReturn = run?.kind === 'rollback' && run.target[zone] === current && run.previous[zone] === current;
  if (begun !== undefined && !isReturn) return begun;
  // A repeated undo changes nothing, unless the restored template failed.
  const hasFailed = run?.outcome === 'failed' && run.kind === 'rollout' && run.target[zone] === current;
  const latest = hasFailed ? [] : undos.filter((undo) => isLatestChange(undo, zone, run));
  if (latest.flatMap(undoneIn).some(({ to }) => to === current)) return current;
  const last = before.get(zone);
  return last?.isOfRun === true ? last.to : undefined;
}

/** Reports whether no change of the templates follows the undo: the present run is an undo or a rollback, or began before the request. */
function isLatestChange({ undone, requestedBy }: UndoFacts['undos'][number], zone: string, run: RunState | undefined): boolean {
  if (run === undefined || requestedBy === undefined || requestedBy.atMs >= run.startedMs) return true;
  return recordedKind(run) === 'rollback' || undone?.some((one) => one.zone === zone && one.revision === run.from?.[zone]) === true;
}

/**
 * Returns the pods that are replaced after the wait at the end of a simulation. In a zone that was rolled back, these are the pods that a retry
 * replaces; while a rollback waits, the pods that still return.
 */
export function podsAfterWait(
  group: GroupDefinition,
  view: ZoneView,
  { world, end }: Pick<ForwardRun, 'world' | 'end'>,
): readonly PodView[] {
  const { pods: members, set, desiredRevision } = view;
  const requested = set?.status.updateRevision;
  const outdated = members.filter(({ revision }) => revision !== requested);
  const retried = { ...view, outdated, updated: members.length - outdated.length };
  const { run } = viewGroup(world.snapshot, group).ledger;
  if (!returnsAfterWait(run, end) && requested !== undefined && requested !== desiredRevision)
    return remainingPods(group, undefined, retried);
  return end === 'done' ? [] : remainingPods(group, run, view);
}

/** Reports whether the rollback, which did not end in the simulation, continues after the wait. */
export function returnsAfterWait(run: RunState | undefined, end: ForwardRun['end']): run is RunningRun {
  return end !== 'done' && run?.outcome === 'running' && run.kind === 'rollback';
}

/** Returns the stop at the end of a plan. If the plan begins during the rollback, then a retry has no effect before the rollback ends. */
export function afterRollback(stop: Stop, atStart: readonly Stop[]): Stop {
  const isUnderWay = atStart.some(({ rule, isBlocking }) => rule === 'rolled-back' && !isBlocking);
  if (stop.rule !== 'rolled-back' || !stop.isBlocking || !isUnderWay) return stop;
  return { ...stop, endsWith: `after the rollback: ${stop.endsWith}` };
}

/** Returns the stop of a plan. If no StatefulSet has the undone revision before the change, then an undo has no effect. */
export function beforeRequest(stop: Stop, group: GroupDefinition, before: Snapshot): Stop {
  if (stop.rule !== 'undone') return stop;
  const isInForce = decideGroup(before, group).stops.some(({ rule, isBlocking }) => rule === 'undone' && isBlocking);
  return isInForce ? stop : withoutUndo(stop, `${group.namespace}/${group.name}`);
}

/** Returns why the StatefulSet controller replaces the pods of a step at once. */
export function atOnceText(
  snapshot: Snapshot,
  { namespace, zones }: GroupDefinition,
  { zone, pods: names }: PlannedStep,
  steps: readonly PlannedStep[],
): string {
  const { statefulSet = '' } = zones.find(({ name }) => name === zone) ?? {};
  const which = names.length > 3 ? `${counted(names.length, 'pod')} of ${statefulSet}` : listed(names, 'and');
  const { firstOrdinal = 0, partition = 0 } = setNamed(snapshot, namespace, statefulSet) ?? {};
  const lowest = Math.min(...names.map((name) => Number(name.slice(statefulSet.length + 1))));
  const isRemoved = steps.some((step) => step.zone === zone && step.kind === 'scaleDown' && lowest >= firstOrdinal + (step.to ?? 0));
  const why = isRemoved
    ? `the change lowers the replicas of ${statefulSet}, and the agent raises them again`
    : `${names.length === 1 ? 'it is' : 'they are'} at or above the partition ${partition}`;
  return `the StatefulSet controller replaces ${which} at once: ${why}; no gate, pause or protection stops it`;
}

/**
 * Returns a function that receives every turn with its snapshot, and returns a step for each zone whose pods change without an action of
 * the agent: the StatefulSet controller replaces these pods, because the partition exposes them. `before` is the state before the change.
 */
export function controllerTrace(group: GroupDefinition, before: Snapshot): (turn: Turn, now: Snapshot) => readonly TracedStep[] {
  const podsIn = (snapshot: Snapshot, statefulSet: string): readonly PodView[] => {
    const pods = podsNamed(snapshot, group.namespace, statefulSet) ?? [];
    return isUnknown(pods) ? [] : pods;
  };
  const present = group.zones.flatMap(({ statefulSet }) => podsIn(before, statefulSet)).filter(({ isTerminating }) => !isTerminating);
  const untouched = new Map(present.map(({ name, uid }) => [name, uid]));
  const isUntouched = ({ name, uid, isTerminating }: PodView): boolean => !isTerminating && untouched.get(name) === uid;
  const seen = new Map<string, readonly PodView[]>();
  /** By zone, the pods that the StatefulSet controller removes at once, because the change lowers the replicas. */
  const removed = new Map<string, ReadonlySet<string>>();
  const removedOf = (zone: string, set: StatefulSetView | undefined): ReadonlySet<string> => {
    const known = removed.get(zone) ?? new Set<string>();
    if (set?.podManagementPolicy !== 'Parallel') return known;
    const isSurplus = ({ ordinal }: PodView): boolean => ordinal >= set.firstOrdinal + set.replicas;
    const all = new Set([
      ...known,
      ...podsIn(before, set.name)
        .filter(isSurplus)
        .map(({ name }) => name),
    ]);
    removed.set(zone, all);
    return all;
  };
  let steps: readonly (TracedStep & { readonly isOpen: boolean })[] = [];
  return ({ nowMs, decision }, now) => {
    steps = group.zones.flatMap(({ name: zone, statefulSet }) => {
      const last = steps.find((one) => one.zone === zone);
      const { pods: known = [], startMs = nowMs, endMs = nowMs, isOpen: wasOpen = true } = last ?? {};
      const times = { startMs, endMs: wasOpen ? nowMs : endMs };
      const members = podsIn(now, statefulSet);
      // The model never changes a list of pods in place, so unchanged pods need no search.
      const earlier = seen.get(zone);
      if (members === earlier) return last === undefined ? [] : [{ ...last, ...times }];
      seen.set(zone, members);
      const set = setNamed(now, group.namespace, statefulSet);
      const { firstOrdinal = 0, replicas = 0 } = set ?? {};
      const atSameTime = removedOf(zone, set);
      const wanted = members.filter(({ ordinal }) => ordinal < firstOrdinal + replicas);
      const changed = wanted.filter((pod, index) => pod !== earlier?.[index]);
      const replaced = changed.filter((pod) => !isUntouched(pod) && untouched.delete(pod.name));
      const names = [...known, ...replaced.map(({ name }) => name)];
      if (names.length === 0) return [];
      const isOpen = wanted.some(({ name, isReady }) => !isReady && names.includes(name));
      const key = `controller/${zone}`;
      const atOnce = Math.max(1, names.filter((name) => atSameTime.has(name)).length);
      return [{ key, wave: controllerWave, kind: 'roll', zone, pods: names, atOnce, gates: [], rules: [], ...times, isOpen }];
    });
    for (const { pod } of decision.actions.flatMap(replacedBy)) untouched.delete(pod);
    return steps;
  };
}
