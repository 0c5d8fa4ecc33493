// Reads the waves of a stored RolloutGroup for the judges, because people change them during a run.
import { durationAt, field, groupResource, listAt, numberAt } from '../objects.ts';
import type { WaveShape } from '../scenario.ts';
import type { Commit, ModelObject } from '../server/request.ts';

/** Returns the new waves if the commit changes the waves of a RolloutGroup; else undefined. */
export function changedWaves({ resource, type, before, after }: Commit): readonly WaveShape[] | undefined {
  if (resource !== groupResource || type !== 'MODIFIED' || before === undefined) return undefined;
  const [was, is] = [before, after].map((group) => field(group, 'spec', 'rollout', 'waves'));
  return was === is || JSON.stringify(was) === JSON.stringify(is) ? undefined : wavesIn(after);
}

/** Returns the waves of a stored RolloutGroup, or an empty list. */
export function wavesIn(group: ModelObject): readonly WaveShape[] {
  return listAt(group, 'spec', 'rollout', 'waves').map(waveIn);
}

function waveIn(stored: unknown): WaveShape {
  const [pods, percent, soakMs] = [numberAt(stored, 'pods'), numberAt(stored, 'percent'), durationAt(stored, 'after', 'soak')];
  const sides = ['before', 'after'] as const;
  const gates = sides.filter((side) => listAt(stored, side, 'gates').length > 0);
  const approvals = sides.filter((side) => field(stored, side, 'approval') !== undefined);
  const approvers = Math.max(1, ...sides.map((side) => numberAt(stored, side, 'approval', 'count') ?? 1));
  return {
    zones: listAt(stored, 'zones').map(String),
    ...(pods === undefined ? {} : { pods }),
    ...(percent === undefined || percent === 100 ? {} : { percent }),
    ...(soakMs === undefined ? {} : { soakSeconds: soakMs / 1000 }),
    gates,
    approvals,
    approvers,
  };
}

/** Returns the updated pods of a zone at the end of the wave. Less than 100 percent leaves a pod of several pods outdated. */
export function targetOf({ pods, percent = 100 }: WaveShape, replicas: number): number {
  if (pods !== undefined) return Math.min(pods, replicas);
  return percent < 100 ? Math.min(Math.ceil((percent * replicas) / 100), Math.max(1, replicas - 1)) : replicas;
}
