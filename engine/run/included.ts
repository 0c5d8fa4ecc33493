// Counts the pods of a zone that the waves of a run include, and the outdated pods that no wave includes.
import type { GroupDefinition, WaveDefinition } from '../../policies/definition.ts';
import { counted } from '../../policies/wording.ts';
import { waveTarget } from '../amount.ts';
import type { GroupContext } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import type { ZoneView } from '../observe/view.ts';
import { result } from '../rule.ts';
import type { PodView } from '../snapshot.ts';
import { isRollingBack } from './origin.ts';
import type { RunState } from './run-state.ts';

type Waves = Pick<GroupDefinition, 'rollout'>;
type Group = Pick<GroupDefinition, 'rollout' | 'zones'>;

/** The part of a run that decides which pods its waves include. Absent: a rollout. */
type IncludingRun = Pick<RunState, 'kind' | 'target' | 'kept' | 'restores' | 'returning'> | undefined;

/** Reports whether the run returns the zone to its revision from before the change. */
function returnsZone(run: IncludingRun, zone: string): boolean {
  if (run?.returning !== undefined) return run.returning.includes(zone);
  return run?.kind === 'rollback' && run.target[zone] !== undefined && run.target[zone] === run.restores?.[zone];
}

/** Reports whether a return leaves the outdated pod, because it ran an earlier revision before the change. */
export function keepsPod(run: IncludingRun, { zone }: ZoneView, { revision }: Pick<PodView, 'revision'>): boolean {
  return returnsZone(run, zone.name) && run?.kept?.[zone.name]?.includes(revision) === true;
}

/** Returns the outdated pods of the zone that a return replaces. */
function returningPods(run: IncludingRun, view: ZoneView): readonly PodView[] {
  return view.outdated.filter((pod) => !keepsPod(run, view, pod));
}

/** Reports whether a wave names the zone. */
export function isInWave({ rollout: { waves } }: Waves, zone: string): boolean {
  return waves.some(({ zones }) => zones.includes(zone));
}

/** Returns the zones of a wave, in their order. In a return, the last wave also includes the returning zones that no wave names. */
export function zonesOfWave(group: Group, run: IncludingRun, wave: WaveDefinition): readonly string[] {
  if (run?.returning !== undefined) return run.returning;
  if (run?.kind !== 'rollback' || group.rollout.waves.at(-1) !== wave) return wave.zones;
  return [...wave.zones, ...group.zones.map(({ name }) => name).filter((name) => returnsZone(run, name) && !isInWave(group, name))];
}

/**
 * Returns how many pods of a zone are updated at the end of the wave. A return leaves the pods for which `keepsPod` is true. In a return, the last
 * wave of a zone includes all other pods.
 */
export function podsOfWave({ rollout: { waves } }: Waves, run: IncludingRun, view: ZoneView, wave: WaveDefinition): number {
  const { zone, replicas, outdated } = view;
  const last = waves.findLast(({ zones }) => zones.includes(zone.name)) ?? waves.at(-1);
  const target = waveTarget(wave.amount, replicas);
  if (!returnsZone(run, zone.name)) return target;
  const most = replicas - (outdated.length - returningPods(run, view).length);
  return run?.returning !== undefined || last === wave ? most : Math.min(most, target);
}

/** Returns how many pods of a zone the waves up to the current wave include; all pods for a zone that returns before the waves. */
export function includedPods(group: Group, run: RunState, view: ZoneView): number {
  const { name } = view.zone;
  const reached = group.rollout.waves.slice(0, run.wave + 1);
  const wave = reached.findLast((one) => one.zones.includes(name) || zonesOfWave(group, run, one).includes(name));
  return wave === undefined ? 0 : podsOfWave(group, run, view, wave);
}

/** Returns how many outdated pods must be replaced until `target` pods are updated. A deleted pod counts as updated before its successor exists. */
export function podsUpTo(target: number, { updated, pendingPods, outdated }: ZoneView): number {
  return Math.max(0, Math.min(target - updated - pendingPods, outdated.length));
}

/** Returns the number of outdated pods of a zone that the waves of the run include, or that the partition exposes. */
export function podsLeft(group: Waves, run: IncludingRun, view: ZoneView): number {
  const { zone, replicas, outdated, exposedByPartition } = view;
  if (outdated.length === 0) return 0;
  if (returnsZone(run, zone.name)) return returningPods(run, view).length;
  let included = 0;
  // The last wave of a zone is the largest, unless lint reports the waves (RG2201).
  for (const { zones, amount } of group.rollout.waves.toReversed()) {
    if (zones.includes(zone.name)) included = Math.max(included, waveTarget(amount, replicas));
    if (included >= replicas) break;
  }
  return Math.max(isInWave(group, zone.name) ? exposedByPartition.length : 0, podsUpTo(included, view));
}

/** Returns the pods that `podsLeft` counts, the highest ordinal first. */
export function remainingPods(group: Waves, run: IncludingRun, view: ZoneView): readonly PodView[] {
  return returningPods(run, view)
    .toReversed()
    .slice(0, podsLeft(group, run, view));
}

/** Reports whether the waves of the run include an outdated pod, so that the run can replace a pod. */
export function hasPodsLeft({ group, view }: Pick<GroupContext, 'group' | 'view'>, run: IncludingRun): boolean {
  return view.zones.some((zone) => podsLeft(group, run, zone) > 0);
}

/**
 * Returns the zones with pods to replace that still have the template with which the run failed. A new template of another zone must not
 * continue the failed run there.
 */
export function zonesOfFailedRun({ group, view }: Pick<GroupContext, 'group' | 'view'>, run: RunState): readonly ZoneView[] {
  return view.zones.filter((one) => podsLeft(group, run, one) > 0 && hasTemplateOf(run, one));
}

/** Reports whether the zone has the template with which the run began. A rollback keeps its target if the zone gets the earlier template. */
function hasTemplateOf(run: RunState, { zone: { name }, set, desiredRevision }: ZoneView): boolean {
  const failed = isRollingBack(run) ? run.rolledBack?.revisions[name] : undefined;
  return desiredRevision === run.target[name] && (failed === undefined || failed === set?.status.updateRevision);
}

/** Returns the number of outdated pods of a zone that stay outdated, because no wave includes them. */
export function podsInNoWave(group: Waves, run: IncludingRun, view: ZoneView): number {
  return view.outdated.length - podsLeft(group, run, view);
}

/** Returns a warning for each zone with outdated pods that no wave includes, or that a return leaves. */
export function noWaveWarnings({ group, view }: Pick<GroupContext, 'group' | 'view'>, run: IncludingRun): readonly RuleResult[] {
  return view.zones.flatMap((zone) => {
    const count = podsInNoWave(group, run, zone);
    const textOf = returnsZone(run, zone.zone.name) ? leftText : noWaveText;
    return count === 0 ? [] : [result('in-no-wave', 'wait', textOf(zone.zone.name, count))];
  });
}

function leftText(zone: string, count: number): string {
  const [stay, they] = count === 1 ? ['stays', 'it'] : ['stay', 'they'];
  return `${counted(count, 'pod')} of zone ${zone} ${stay} at an earlier revision: ${they} ran it before the change that is reverted`;
}

/** Returns `3 pods of zone c stay outdated: no wave includes them`. */
export function noWaveText(zone: string, count: number): string {
  const [stay, them] = count === 1 ? ['stays', 'it'] : ['stay', 'them'];
  return `${counted(count, 'pod')} of zone ${zone} ${stay} outdated: no wave includes ${them}`;
}
