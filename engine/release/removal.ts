// Reports on StatefulSets whose group was deleted or no longer contains them, and describes the effect of a release.

import { labelKeys } from '../../policies/adopt/keys.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { traitsOf } from '../../policies/strategies.ts';
import { counted } from '../../policies/wording.ts';
import { ordinalRanges } from '../amount.ts';
import { isBelowPartition } from '../rules/pod-state.ts';
import { recordedKind } from '../run/origin.ts';
import type { RunState } from '../run/run-state.ts';
import type { Ledger, PodView, ReleaseTerms, Snapshot, StatefulSetView } from '../snapshot.ts';
import { reachedPods } from './left.ts';
import { type Definitions, definitionStateOf, outdatedOf, sourceOf, termsOf, viewMember } from './terms.ts';

/** The time before a removal is reported, in milliseconds, because a tool may delete a definition and create it again. */
export const removalGraceMs = 5_000;

export interface FormerGroup {
  readonly group: GroupDefinition;
  readonly run?: RunState | undefined;
}

export interface RemovalQuestion extends FormerGroup {
  readonly snapshot: Pick<Snapshot, 'groups' | 'statefulSets' | 'pods' | 'unread'>;
  readonly sources: Definitions['sources'];
  /** The time since a definition last had, or could have, these members, in milliseconds of a monotonic clock. */
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

/** Decides the report about a removed group, or about members that left it. `none` for drop-in groups, and for groups to be released. */
export function decideRemoval({ group, run, snapshot, sources, goneForMs }: RemovalQuestion): GroupRemoval {
  const { namespace, name } = group;
  const current = snapshot.groups.find((one) => one.namespace === namespace && one.name === name);
  if (group.sources['']?.field === labelKeys.group || (current === undefined && termsOf(group) !== undefined)) return { kind: 'none' };
  const members = leftMembers(group, current?.zones);
  const definitions = { groups: snapshot.groups.filter((one) => one !== current), sources };
  const definition = definitionStateOf({ namespace, group: name }, { source: sourceOf(group), zones: members }, definitions);
  if (members.length === 0 || definition.kind === 'elsewhere') return { kind: 'none' };
  if (definition.kind === 'unsure') return definition;
  if (goneForMs < removalGraceMs) return { kind: 'wait', leftMs: removalGraceMs - goneForMs };
  const seen = members.map((member) => viewMember(snapshot, namespace, member));
  if (seen.some(({ unknown }) => unknown !== undefined)) return { kind: 'wait' };
  const reports = seen.flatMap((member) => {
    const { zone, statefulSet, set } = member;
    if (set === undefined) return [];
    const former = { group, isDefined: current !== undefined, isRunning: run?.outcome === 'running' };
    return [{ zone, statefulSet, ...noteOf(former, set, outdatedOf(member)) }];
  });
  return reports.length === 0 ? { kind: 'none' } : { kind: 'report', reports };
}

/** Returns the members of the group that its current zones do not contain. */
export function leftMembers({ zones }: Pick<GroupDefinition, 'zones'>, current: GroupDefinition['zones'] = []): ReleaseTerms['zones'] {
  const left = zones.filter(({ statefulSet }) => !current.some((one) => one.statefulSet === statefulSet));
  return left.map(({ name, statefulSet }) => ({ zone: name, statefulSet }));
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
  const state = isOpen ? `its ${recordedKind(run)} ${run.outcome === 'failed' ? 'had failed' : 'was running'}; ` : '';
  return `${state}${rest}${outdatedCount === 0 ? '' : `, and ${counted(outdatedCount, 'pod')} will be replaced`}`;
}

function noteOf(
  { group, isDefined, isRunning }: Pick<FormerGroup, 'group'> & { readonly isDefined: boolean; readonly isRunning: boolean },
  set: StatefulSetView,
  outdated: readonly PodView[],
): Pick<RemovalReport, 'isWarning' | 'note'> {
  const { updateStrategy, partition } = set;
  const cause = isDefined ? 'no longer contains this StatefulSet' : 'has no definition any more';
  const again = isDefined ? 'add the StatefulSet to the group again' : 'define the group again';
  const gone = `group ${group.name} ${cause}, so no rollout order applies to this StatefulSet${isRunning ? ' (its rollout was running)' : ''}: `;
  const old = outdated.length === 0 ? '' : ` (outdated now: ${ordinalRanges(outdated.map(({ ordinal }) => ordinal))})`;
  if (updateStrategy === 'OnDelete') {
    return { isWarning: isRunning, note: `${gone}outdated pods${old} stay until they are deleted; ${again} to continue` };
  }
  if (partition === 0) return { isWarning: isRunning, note: `${gone}the StatefulSet controller replaces outdated pods${old}` };
  const keepsOutdated = outdated.some((pod) => isBelowPartition(set, pod));
  const wouldRelease = traitsOf(group).holdsPartition && !isDefined ? '; onPolicyDeleted: release lowers it automatically' : '';
  const note =
    `${gone}the partition stays at ${partition}, so template changes reach ${reachedPods(set)}${old}; ` +
    `${again}${outdated.length === 0 ? ', or lower spec.updateStrategy.rollingUpdate.partition' : ' to continue'}` +
    wouldRelease;
  return { isWarning: keepsOutdated || isRunning, note };
}
