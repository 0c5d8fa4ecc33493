// The rollout that a case of a PolicyTest is in the middle of, told from how many pods of each zone are updated.
import type { GroupDefinition } from '../../policies/definition.ts';
import { durationMs } from '../../policies/duration.ts';
import type { GivenState } from '../../policies/schema/policy-test.ts';
import { waveTarget } from '../amount.ts';
import { contextOf, type GroupContext } from '../context.ts';
import { addsNothing, goneUnder } from '../rules/wave.ts';
import { type WaveProgress, waveProgress } from '../run/progress.ts';
import type { RunState, Snapshot } from '../snapshot.ts';
import { previousRevision } from './state.ts';

/**
 * The run as the ledger would hold it; undefined when no pod has been replaced yet. The wave under way is the first that lacks updated pods
 * and has begun; before it begins, the wave ahead of it still soaks, since `waveAvailableFor` or since this instant.
 */
export function runGiven(snapshot: Snapshot, group: GroupDefinition, given: GivenState): RunState | undefined {
  const context = contextOf(snapshot, group);
  const waves = group.rollout.waves.map((wave) => waveProgress(context, wave));
  const lastMs = lastReplacementMs(context, given);
  if (lastMs === undefined) return undefined;
  const open = waves.findIndex((wave) => !wave.isFilled);
  const openZone = open < 0 ? undefined : begunZone(given, waves[open], waves.slice(0, open));
  const hasBegun = openZone !== undefined;
  const ahead = open < 0 ? waves.length - 1 : hasBegun ? open : open - 1;
  // A wave that adds no pod is skipped, so the wave before it soaks.
  const isOwn = (index: number): boolean => waves[index] === undefined || !addsNothing(context, waves[index].wave);
  const wave = hasBegun ? ahead : (Array.from({ length: ahead + 1 }, (_, back) => ahead - back).find(isOwn) ?? ahead);
  if (wave < 0) return undefined;
  const isSoaking = !hasBegun && given.waveAvailableFor !== undefined;
  return {
    id: 'policy-test',
    kind: 'rollout',
    ...revisions(context),
    startedMs: lastMs,
    wave,
    waveStartedMs: lastMs,
    ...(isSoaking ? { waveAvailableMs: snapshot.nowMs - durationMs(given.waveAvailableFor ?? '0') } : {}),
    ...(openZone === undefined ? {} : { openZone }),
    lastDisruptionMs: lastMs,
    ...goneUnder(group),
    // Pods that are down in a case are in flight since the last replacement; without such pods the field is absent.
    inFlightSinceMs: lastMs,
    movableMs: 0,
    movableAsOfMs: snapshot.nowMs,
    isMovable: true,
    outcome: 'running',
  };
}

/** A pod was replaced no later than it became ready, or unready, at the new revision. */
function lastReplacementMs({ view }: GroupContext, given: GivenState): number | undefined {
  const instants = view.zones
    .filter(({ zone }) => given.zones?.[zone.name]?.updated !== undefined)
    .flatMap(({ pods, set }) => pods.filter((pod) => pod.revision === set?.status.updateRevision).map((pod) => pod.readyChangedMs));
  return instants.length === 0 ? undefined : instants.reduce((a, b) => Math.max(a, b));
}

/** The first zone of the wave with more updated pods than the waves before it asked for; one that lacks some comes before one that is done. */
function begunZone(given: GivenState, wave: WaveProgress | undefined, before: readonly WaveProgress[]): string | undefined {
  const begun = (wave?.zones ?? []).filter(({ view }) => {
    const earlier = before.filter((one) => one.wave.zones.includes(view.zone.name));
    const asked = Math.max(0, ...earlier.map((one) => waveTarget(one.wave.amount, view.replicas)));
    return (given.zones?.[view.zone.name]?.updated ?? 0) > asked;
  });
  return (begun.find((zone) => zone.remaining > 0) ?? begun[0])?.view.zone.name;
}

function revisions({ view }: GroupContext): Pick<RunState, 'target' | 'previous'> {
  const entries = view.zones.flatMap(({ zone, set }): [string, string][] =>
    set === undefined ? [] : [[zone.name, set.status.updateRevision]],
  );
  const target = Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
  const previous = Object.fromEntries(Object.entries(target).map(([name, revision]) => [name, previousRevision(revision)]));
  return { target, previous };
}
