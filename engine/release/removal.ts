// Reports on the StatefulSets of a group whose definition was deleted, and describes the effect of a release.
import { labelKeys } from '../../policies/adopt/keys.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { traitsOf } from '../../policies/strategies.ts';
import { pods as countOfPods, ordinalRanges } from '../amount.ts';
import type { Ledger, PodView, ReleaseTerms, RunState, Snapshot, StatefulSetView } from '../snapshot.ts';
import { type Definitions, definitionStateOf, outdatedOf, sourceOf, termsOf, viewMember } from './terms.ts';

/** The time before a removal is reported, in milliseconds, because a tool may delete a definition and create it again. */
export const removalGraceMs = 5_000;

export interface FormerGroup {
  readonly group: GroupDefinition;
  /** The last run of the group, if known. */
  readonly run?: RunState | undefined;
}

export interface RemovalQuestion extends FormerGroup {
  readonly snapshot: Pick<Snapshot, 'groups' | 'statefulSets' | 'pods' | 'unread'>;
  readonly sources: Definitions['sources'];
  /** The time for which the caller has seen no definition, without interruption, in milliseconds of a monotonic clock. */
  readonly goneForMs: number;
}

export interface RemovalReport {
  readonly zone: string;
  readonly statefulSet: string;
  /** True if the rollout was running, or if a partition keeps outdated pods. */
  readonly isWarning: boolean;
  readonly note: string;
}

/**
 * The decision about a report. `none`: no report is due, now or later. `wait`: no report for `leftMs`, or until objects can be read.
 * `unsure`: the definition may still exist, and `goneForMs` starts again.
 */
export type GroupRemoval =
  | { readonly kind: 'none' }
  | { readonly kind: 'unsure'; readonly because: string }
  | { readonly kind: 'wait'; readonly leftMs?: number }
  | { readonly kind: 'report'; readonly reports: readonly RemovalReport[] };

/** Decides the report about a removed group. `none` for drop-in groups, for groups to be released, and if no StatefulSet exists. */
export function decideRemoval({ group, run, snapshot, sources, goneForMs }: RemovalQuestion): GroupRemoval {
  if (group.sources['']?.field === labelKeys.group || termsOf(group) !== undefined) return { kind: 'none' };
  const { namespace, name, zones } = group;
  const members = zones.map((zone) => ({ zone: zone.name, statefulSet: zone.statefulSet }));
  const definitions = { groups: snapshot.groups, sources };
  const definition = definitionStateOf({ namespace, group: name }, { source: sourceOf(group), zones: members }, definitions);
  if (definition.kind === 'defined' || definition.kind === 'elsewhere') return { kind: 'none' };
  if (definition.kind === 'unsure') return definition;
  if (goneForMs < removalGraceMs) return { kind: 'wait', leftMs: removalGraceMs - goneForMs };
  const seen = members.map((member) => viewMember(snapshot, namespace, member));
  if (seen.some(({ unknown }) => unknown !== undefined)) return { kind: 'wait' };
  const reports = seen.flatMap((member) => {
    const { zone, statefulSet, set } = member;
    return set === undefined ? [] : [{ zone, statefulSet, ...noteOf(group, set, outdatedOf(member), run?.outcome === 'running') }];
  });
  return reports.length === 0 ? { kind: 'none' } : { kind: 'report', reports };
}

/** Returns as a clause what a release ends: an unfinished run, and the protection of outdated pods. Undefined if it ends nothing. */
export function undoneBy(
  terms: Pick<ReleaseTerms, 'zones'>,
  { namespace, run }: Pick<Ledger, 'namespace' | 'run'>,
  snapshot: Pick<Snapshot, 'statefulSets' | 'pods' | 'unread'>,
): string | undefined {
  const outdatedCount = terms.zones.reduce((sum, zone) => sum + outdatedOf(viewMember(snapshot, namespace, zone)).length, 0);
  const isOpen = run !== undefined && run.outcome !== 'completed';
  if (!isOpen && outdatedCount === 0) return undefined;
  const rest = 'its waves, soaks, approvals and pauses no longer apply';
  const state = isOpen ? `its ${run.kind} ${run.outcome === 'failed' ? 'had failed' : 'was running'}; ` : '';
  return `${state}${rest}${outdatedCount === 0 ? '' : `, and ${countOfPods(outdatedCount)} will be replaced`}`;
}

function noteOf(
  group: GroupDefinition,
  set: StatefulSetView,
  outdated: readonly PodView[],
  isRunning: boolean,
): Pick<RemovalReport, 'isWarning' | 'note'> {
  const { updateStrategy, partition } = set;
  const gone = `group ${group.name} has no definition any more, so no rollout order applies to this StatefulSet${isRunning ? ' (its rollout was running)' : ''}: `;
  const old = outdated.length === 0 ? '' : ` (outdated now: ${ordinalRanges(outdated.map(({ ordinal }) => ordinal))})`;
  if (updateStrategy === 'OnDelete') {
    return { isWarning: isRunning, note: `${gone}outdated pods${old} stay until they are deleted; define the group again to continue` };
  }
  if (partition <= set.firstOrdinal)
    return { isWarning: isRunning, note: `${gone}the StatefulSet controller replaces outdated pods${old}` };
  const isForAllPods = partition >= set.firstOrdinal + set.replicas;
  const keepsOutdated = outdated.some(({ ordinal }) => ordinal < partition);
  const wouldRelease = traitsOf(group).holdsPartition ? '; onPolicyDeleted: release lowers it automatically' : '';
  const note =
    `${gone}the partition stays at ${partition}, so template changes reach no pod${isForAllPods ? '' : ` below ordinal ${partition}`}${old}; ` +
    'define the group again, or lower spec.updateStrategy.rollingUpdate.partition' +
    wouldRelease;
  return { isWarning: keepsOutdated || isRunning, note };
}
