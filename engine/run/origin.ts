// Finds the origin of a change: the undo that made it, the annotations that were written with it, or the commit of a GitOps tool.
import type { RunPhase } from '../../policies/rollout/phases.ts';
import { isSameValue } from '../../policies/values/canonical-json.ts';
import { defined } from '../../policies/values/defined.ts';
import { hashText } from '../../policies/values/hash.ts';
import type { GroupContext } from '../context.ts';
import type { GroupView, ZoneView } from '../observe/view.ts';
import type { StatefulSetView } from '../snapshot.ts';
import { requesterText, undoOf } from './requests.ts';
import type { RunOrigin, RunState } from './run-state.ts';
import { hasReplacedSince } from './states.ts';

/** The annotations of a StatefulSet that name the origin of a change. */
export const changeAnnotations = {
  planDigest: 'rollout-group.dev/plan',
  commit: 'rollout-group.dev/commit',
  cause: 'kubernetes.io/change-cause',
} as const;

const longest: Readonly<Record<keyof typeof changeAnnotations, number>> = { planDigest: 64, commit: 253, cause: 512 };

/**
 * Returns the run with its origin. Annotations stay on a StatefulSet after their change, so a value counts only for the run with which it
 * appears. `earlier` is the stored run, and `known` is the origin that the run already has or inherits.
 */
export function withOrigin(context: GroupContext, run: RunState, earlier: RunState | undefined, known: RunOrigin | undefined): RunState {
  const { origin: _origin, seen: _seen, ...rest } = run;
  const values = valuesOf(context);
  // Until the controller has observed a spec, its annotations may belong to the next revision.
  const isCurrent = context.view.zones.every(({ set }) => set !== undefined && set.status.observedGeneration >= set.generation);
  const isAdded = ({ digest }: OriginValue): boolean => isCurrent && run.outcome === 'running' && earlier?.seen?.includes(digest) !== true;
  const added = values.filter(isAdded).map(({ key, value }) => [key, value] as const);
  const returned = returnOrigin(context, run);
  const commit = returned === undefined && isRecent(run, context.nowMs) ? originOfCommit(context.view) : {};
  const origin: RunOrigin = { ...commit, ...known, ...Object.fromEntries(added.toReversed()), ...returned };
  const seen = isCurrent ? [...new Set(values.map(({ digest }) => digest))].sort() : (earlier?.seen ?? []);
  return { ...rest, ...(Object.keys(origin).length === 0 ? {} : { origin }), ...(seen.length === 0 ? {} : { seen }) };
}

/** Returns the origin that a run continues: its own, or that of the run to which it adds zones, or of whose zones some return. */
export function originOf(stored: RunState | undefined, run: RunState): RunState['origin'] {
  if (stored === undefined) return undefined;
  if (stored.returning !== undefined && run.returning === undefined && isSameValue(stored.target, run.target)) return stored.interrupted;
  if (stored.id === run.id) return stored.origin;
  if (stored.outcome !== 'running' || run.kind !== stored.kind) return undefined;
  if (!addsZones(run, stored)) return leavesZones(run, stored) ? interruptedOf(stored) : undefined;
  // Another zone that gets a template is no part of the undo.
  const { isUndo, cause: _ofUndo, ...origin } = stored.origin ?? {};
  return isUndo ? origin : stored.origin;
}

/** Reports whether the rollout differs from the one before it only in zones that return. */
function leavesZones({ kind, target }: RunState, before: RunState): boolean {
  return kind === 'rollout' && Object.keys(target).every((zone) => [before.target[zone], before.previous[zone]].includes(target[zone]));
}

/** Returns the cause and the commit of the rollout that a return of some zones interrupts, also if several writes make this return. */
export function interruptedOf({ returning, interrupted, origin }: RunState): RunState['interrupted'] {
  if (returning !== undefined) return interrupted;
  const { isUndo, cause, commit } = origin ?? {};
  return isUndo || (cause === undefined && commit === undefined) ? undefined : defined({ cause, commit });
}

/** The time after the start of a run in which its commit may be read. A commit that is applied later belongs to a later change. */
const commitReadMs = 300_000;

function isRecent(run: RunState, nowMs: number): boolean {
  return run.outcome === 'running' && nowMs - run.startedMs < commitReadMs;
}

function originOfCommit({ zones }: GroupView): RunOrigin {
  const commit = zones.map(({ set }) => set?.commit).find((one) => one !== undefined);
  return commit === undefined ? {} : { commit };
}

/** Reports whether the agent should read the commit of the GitOps tool: a run is about to start, or it started recently without a commit. */
export function needsCommit({ zones }: GroupView, run: RunState | undefined, nowMs: number): boolean {
  if (run !== undefined && isRollingBack(run)) return false;
  if (run !== undefined && isRecent(run, nowMs) && run.origin?.commit === undefined) return true;
  return zones.some(({ zone, set, outdated }) => outdated.length > 0 && set?.status.updateRevision !== run?.target[zone.name]);
}

/** Returns the cause of a rollback or an undo. These changes write no annotation, because a later change would carry it too. */
function returnOrigin(context: GroupContext, run: RunState): RunOrigin | undefined {
  if (isRollingBack(run)) return causedBy(run.rolledBack?.because ?? '');
  const undo = run.outcome === 'running' ? undoOf(context, run) : undefined;
  if (undo === undefined) return undefined;
  return { isUndo: true, ...causedBy(`undo by ${requesterText(undo)}`) };
}

/** Returns an origin with this cause, cut to the maximum length of a cause. */
export function causedBy(cause: string): RunOrigin {
  return { cause: cause.slice(0, longest.cause) };
}

interface OriginValue {
  readonly key: keyof typeof changeAnnotations;
  readonly value: string;
  readonly digest: string;
}

function valuesOf({ view }: GroupContext): readonly OriginValue[] {
  const keys = Object.keys(changeAnnotations) as readonly (keyof typeof changeAnnotations)[];
  return view.zones.flatMap(({ set }) =>
    keys.flatMap((key): readonly OriginValue[] => {
      const value = set?.annotations[changeAnnotations[key]];
      if (value === undefined || value === '') return [];
      return [{ key, value: value.slice(0, longest[key]), digest: hashText(`${key} ${value}`).slice(0, 10) }];
    }),
  );
}

/** Returns the run as a part of the change that the running run `before` belongs to, if the run continues that change. */
export function joinChange(run: RunState, before: RunState | undefined): RunState {
  if (before?.outcome !== 'running' || run.id === before.id) return run;
  // Between the writes of one apply, the zones may return to the templates of an undo only in part.
  const isSameKind = recordedKind(run) === recordedKind(before);
  const joins = isSameKind ? continuesChange(run, before) : addsZones(run, before) && !hasReplaced(before);
  return joins ? { ...run, joined: before.joined ?? { id: before.id, startedMs: before.startedMs } } : run;
}

/**
 * Reports whether a run continues the change of the run before it: the run only adds zones, or that change has replaced no pod. One change
 * can cause several runs, because its StatefulSets are written one after another.
 */
export function continuesChange(run: RunState, before: RunState): boolean {
  return !hasReplaced(before) || addsZones(run, before);
}

/** Reports whether the change of the run has replaced a pod. */
function hasReplaced(run: RunState): boolean {
  return hasReplacedSince(run, (run.joined ?? run).startedMs);
}

/** Reports whether the run changes only zones that the templates of the run before it did not change. */
export function addsZones(run: RunState, { target, previous, from = previous, base = from }: RunState): boolean {
  return Object.keys(run.target).every((zone) => run.target[zone] === target[zone] || target[zone] === base[zone]);
}

/** Returns the id of the change that the run belongs to. Runs of one change share a record and notifications. */
export function changeOf({ id, joined }: RunState): string {
  return joined?.id ?? id;
}

/**
 * Returns the kind that history, Events and notifications show: `rollback` only for an undo and for the rollback of a failed run. Another
 * return to the earlier templates is a rollout.
 */
export function recordedKind(run: RunState): RunState['kind'] {
  return run.origin?.isUndo === true || isRollingBack(run) ? 'rollback' : 'rollout';
}

/** Returns the zones whose StatefulSet still has, as its update revision, the revision that failed and was or is being rolled back. */
export function rolledBackZones({ zones }: GroupView, { rolledBack }: RunState): readonly (ZoneView & { readonly set: StatefulSetView })[] {
  return zones.flatMap((view) => {
    const { zone, set } = view;
    return set !== undefined && rolledBack?.revisions[zone.name] === set.status.updateRevision ? [{ ...view, set }] : [];
  });
}

/** Returns the phase that the run alone determines. */
export function phaseOfRun(view: GroupView, run: RunState | undefined): RunPhase {
  if (run?.outcome === 'running') return 'Rolling';
  if (run?.outcome === 'failed') return 'Failed';
  return run === undefined || rolledBackZones(view, run).length === 0 ? 'Done' : 'RolledBack';
}

/**
 * Reports whether the run returns pods to an earlier revision while the StatefulSets still name the failed template. A run after this
 * rollback, such as the undo of another zone, also names the failed revisions, but it does not start from them.
 */
export function isRollingBack({ kind, previous, rolledBack }: Pick<RunState, 'kind' | 'previous' | 'rolledBack'>): boolean {
  return kind === 'rollback' && Object.entries(rolledBack?.revisions ?? {}).some(([zone, failed]) => previous[zone] === failed);
}
