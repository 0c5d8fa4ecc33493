// Finds the revision that the pods of a zone ran before a run, and before the present template.
import type { PodView } from '../snapshot.ts';
import { isRollingBack } from './origin.ts';
import type { RunCore, RunState } from './run-state.ts';
import { restoredRevision } from './states.ts';

/** The number of pods of each revision. */
export type RevisionCounts = ReadonlyMap<string, number>;

export function countRevisions(pods: readonly Pick<PodView, 'revision'>[]): RevisionCounts {
  const counts = new Map<string, number>();
  for (const { revision } of pods) counts.set(revision, (counts.get(revision) ?? 0) + 1);
  return counts;
}

/** Returns the revision that most pods run. If several have equally many pods, returns the first in the order of their names. */
export function mostFrequent(counts: RevisionCounts): string | undefined {
  return [...counts].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))[0]?.[0];
}

/** Returns the revision that most of the pods run, except for the revision `than`. */
export function mostFrequentOther(pods: RevisionCounts, than: string | undefined): string | undefined {
  return mostFrequent(new Map([...pods].filter(([revision]) => revision !== '' && revision !== than)));
}

/**
 * Returns the revision of a zone before the run: the revision of most of the pods that the run replaces. If no pod runs another revision,
 * returns the revision from before the run. So a template of a superseded or failed run counts only if pods run it. A return of some zones
 * replaces no pod of the other zones.
 */
export function revisionBefore(run: RunState, zone: string, pods: RevisionCounts): string | undefined {
  const { from, previous, target, returning } = run;
  const to = target[zone];
  if (returning?.includes(zone) === false) return to;
  const replaced = new Map([...pods].filter(([revision]) => !isLeft(run, zone, revision)));
  return mostFrequentOther(replaced, to) ?? ((from ?? previous)[zone] === to ? to : previous[zone]);
}

/** Reports whether the run is a return that leaves the pods of the zone at this revision, because they ran it before the change. */
function isLeft({ kind, kept }: RunState, zone: string, revision: string): boolean {
  return kind === 'rollback' && kept?.[zone]?.includes(revision) === true;
}

/** Reports whether the rollback of a failed run replaces no pod of the zone: its pods never ran the failed revision. */
export function leavesZone(run: RunState, zone: string, pods: RevisionCounts): boolean {
  return isRollingBack(run) && [...pods.keys()].every((revision) => revision === run.target[zone] || isLeft(run, zone, revision));
}

/** The part of a stored or published run that shows which revisions it replaced and reached. */
type PastRun = Pick<RunState, 'kind' | 'outcome' | 'target' | 'previous' | 'kept' | 'returning' | 'restores' | 'rolledBack'>;

/**
 * Returns the revisions to which the run after this one can return. After a rollback, these are the targets of the run. After a completed run
 * too, except for zones that roll out after the return of others, and zones that no wave included. The target of another run may have failed,
 * so its `previous` stays, unless pods ran this target before the run. `changed`: the zones that get another template, or whose pods the next
 * run replaces. A return does not change the other zones.
 */
export function revisionsAfter(run: PastRun, changed: readonly PresentZone[]): RunCore['previous'] {
  const { target, previous, kept } = run;
  const isWhole = isReached(run);
  if (isWhole && run.outcome !== 'completed') return target;
  const reached = Object.entries(target).filter(([zone, revision]) => isWhole || kept?.[zone]?.includes(revision));
  // Pods of a zone that the run completed or does not change may run an older revision than its template.
  const mayBeOlder = (zone: string): boolean => target[zone] !== undefined && (isWhole || previous[zone] === target[zone]);
  const older = changed.flatMap(({ zone, updateRevision, pods }) => {
    const most = pods.has(target[zone] ?? '') ? undefined : mostFrequentOther(pods, updateRevision);
    return most !== undefined && mayBeOlder(zone) ? [[zone, most] as const] : [];
  });
  return { ...(isWhole ? {} : revisionsBefore(run)), ...Object.fromEntries([...reached, ...older]) };
}

/** Reports whether the run is completed, or returns all zones by the rollback of a failed run or by an undo. */
function isReached({ kind, outcome, returning }: PastRun): boolean {
  return returning === undefined && (outcome === 'completed' || kind === 'rollback');
}

/**
 * Returns the revisions that pods keep if the run after this one is rolled back, because they ran these revisions before. After a completed
 * run and without a run, these are the revisions of all present pods.
 */
export function revisionsKept(
  run: PastRun | undefined,
  next: Pick<RunCore, 'target' | 'previous'>,
  zones: readonly PresentZone[],
): RunCore['kept'] {
  const before = ({ zone, pods }: PresentZone): readonly (string | undefined)[] => {
    if (run === undefined || (run.outcome === 'completed' && isReached(run))) return [...pods.keys()];
    const kept = run.kept?.[zone] ?? [];
    return kept.includes(next.previous[zone] ?? '') ? [run.previous[zone], ...kept] : kept;
  };
  return keptOf(
    zones.map((one) => {
      const { zone } = one;
      const replaced = [next.previous[zone], run !== undefined && run.target[zone] === next.target[zone] ? undefined : next.target[zone]];
      return [zone, before(one).filter((revision) => !replaced.includes(revision))] as const;
    }),
  );
}

/** Returns the revisions that pods keep when the run is reverted: the revisions from before the run. Zones that do not return have `others`. */
export function keptInReturn(
  { target, kept = {} }: Pick<RunCore, 'target' | 'kept'>,
  returning: readonly string[] = Object.keys(target),
  others: RunCore['kept'] = {},
): RunCore['kept'] {
  const ofZone = (zone: string) => (returning.includes(zone) ? kept[zone]?.filter((revision) => revision !== target[zone]) : others[zone]);
  return keptOf(Object.keys(target).map((zone) => [zone, ofZone(zone) ?? []] as const));
}

function keptOf(zones: readonly (readonly [string, readonly (string | undefined)[]])[]): RunCore['kept'] {
  const kept = zones.flatMap(([zone, revisions]) => {
    const known = [...new Set(revisions.filter((revision): revision is string => revision !== undefined && revision !== ''))].sort();
    return known.length === 0 ? [] : [[zone, known] as const];
  });
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

/** Returns the revisions from before the change of the run. For a zone that returned, returns the revision to which it returned. */
export function revisionsBefore({ target, previous, returning = [] }: PastRun): RunCore['previous'] {
  return { ...previous, ...Object.fromEntries(Object.entries(target).filter(([zone]) => returning.includes(zone))) };
}

/** Reports whether the run changes the revision of the zone. In a return from an unfinished run, only `from` has the replaced revision. */
export function changesZone({ target, previous, from = previous }: Pick<RunCore, 'target' | 'previous' | 'from'>, zone: string): boolean {
  return [previous[zone], from[zone]].some((revision) => revision !== target[zone]);
}

/** Returns the revisions that a rollback of the run would replace. A run that began after most pods were updated may have none. */
export function newRevisions({ target, previous }: Pick<RunCore, 'target' | 'previous'>): RunCore['target'] {
  return Object.fromEntries(Object.entries(target).filter(([zone, revision]) => (previous[zone] ?? revision) !== revision));
}

export interface PresentZone {
  readonly zone: string;
  readonly updateRevision: string;
  readonly pods: RevisionCounts;
}

/** Returns the revisions that zones get when the run is reverted. A zone of a rollback stays at the revision that the rollback restores. */
export function revisionsToReturn({ kind, previous, returning, restores }: PastRun): RunCore['previous'] {
  return { ...(kind === 'rollout' || returning !== undefined ? previous : {}), ...restores };
}

/**
 * Returns the revision per zone that an undo of the present templates restores. `zones`: all zones of the group. If `run` does not know one of
 * their templates, then `run` is older than the present templates. `isOfRun` is false if no run names the revision: then it is the revision of
 * most of the outdated pods.
 */
export function revisionsOfUndo(
  run: PastRun | undefined,
  zones: readonly PresentZone[],
): ReadonlyMap<string, { readonly to: string; readonly isOfRun: boolean }> {
  const restored = ({ zone, updateRevision }: PresentZone) => restoredRevision(run, zone, updateRevision);
  const before = beforeTemplates(run, zones);
  // The template before the restored one failed.
  const isRestored = ({ zone, updateRevision }: PresentZone): boolean =>
    run?.kind === 'rollback' && run.rolledBack !== undefined && run.restores?.[zone] === updateRevision;
  return new Map(
    zones.flatMap((one) => {
      const { zone, updateRevision, pods } = one;
      if (isRestored(one)) return [[zone, { to: updateRevision, isOfRun: true }] as const];
      const ofRun = (run?.outcome === 'failed' ? undefined : restored(one)) ?? before(one);
      const to = ofRun ?? mostFrequentOther(pods, updateRevision);
      return to === undefined ? [] : [[zone, { to, isOfRun: ofRun !== undefined }] as const];
    }),
  );
}

/**
 * Returns the revision of a zone before the last change of the templates. If that change returned only other zones, returns the revision to
 * which this zone would also return.
 */
function beforeTemplates(run: PastRun | undefined, zones: readonly PresentZone[]): (one: PresentZone) => string | undefined {
  if (run === undefined) return () => undefined;
  const back = revisionsToReturn(run);
  const isKnown = ({ zone, updateRevision }: PresentZone): boolean =>
    [undefined, restoredRevision(run, zone, updateRevision) ?? updateRevision].includes(run.target[zone]);
  const isEarlier = !zones.every(isKnown);
  const isReturn = isEarlier ? zones.every((one) => isKnown(one) || one.updateRevision === back[one.zone]) : run.kind === 'rollback';
  const before = isEarlier
    ? revisionsAfter(
        run,
        zones.filter((one) => !isKnown(one)),
      )
    : run.previous;
  return ({ zone, updateRevision }) => (isReturn && before[zone] === updateRevision ? back[zone] : undefined) ?? before[zone];
}
