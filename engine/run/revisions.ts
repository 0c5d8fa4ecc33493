// Finds the revision that the pods of a zone ran before a run.
import type { PodView } from '../snapshot.ts';
import type { RunState } from './run-state.ts';

/** The number of pods of each revision. */
export type RevisionCounts = ReadonlyMap<string, number>;

export function countRevisions(pods: readonly Pick<PodView, 'revision'>[]): RevisionCounts {
  const counts = new Map<string, number>();
  for (const { revision } of pods) counts.set(revision, (counts.get(revision) ?? 0) + 1);
  return counts;
}

/** Returns the revision of the most pods; of several, the first in the order of their names. */
export function mostFrequent(counts: RevisionCounts): string | undefined {
  return [...counts].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))[0]?.[0];
}

/**
 * Returns the revision of a zone before the run: that of most of its outdated pods, because the run replaces them. A template of a superseded
 * or failed run counts only if pods run it. Without outdated pods, returns the revision from before the run. A return of some zones replaces
 * no pod of the other zones.
 */
export function revisionBefore({ from, previous, target, returning }: RunState, zone: string, pods: RevisionCounts): string | undefined {
  const to = target[zone];
  if (returning?.includes(zone) === false) return to;
  const outdated = mostFrequent(new Map([...pods].filter(([revision]) => revision !== '' && revision !== to)));
  return outdated ?? ((from ?? previous)[zone] === to ? to : previous[zone]);
}
