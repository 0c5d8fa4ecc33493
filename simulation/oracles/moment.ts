// Defines the moment by which a change of an agent is judged, and what its decision could know.
//
// A disruption is judged at two times: S, when its request left the sender, and T, when the storage applied it.
//
//        S - 10 s                S                       T
//   -------|---------------------|-----------------------|------> time
//   seen by every decision       decided by now          done
//
// - Changes by agents count at T, always: the ledger tells every agent about them, however long the request was under way. A place that an agent
//   emptied stays the agent's until a pod is available there again. So does a place whose pod was already down when an agent replaced it.
// - Changes by others (a failed pod, a drain, a person) count at T if they were visible in the storage since S - 10 s or longer: a decision may use
//   a view that is 10 s old (S5), by the agent's own clock. Later changes are unknown, and an outage that ended meanwhile may look over.
// - Settings (replicas, revisions, limits, membership) may be read at any time from S - 10 s on. Of the values since then the most lenient one counts.
//
// The request of a sender that died, was suspended or gave up is still the agent's. The ledger must have stopped other agents, or a touch of the
// pod must have made the request fail.
import type { Actor } from '../server/request.ts';
import type { MachineState, Scene } from './oracle.ts';

/** The times by which a change of an agent is judged. */
export interface Moment {
  /** T: time of the commit. */
  readonly atMs: number;
  /** S - 10 s: the decision knew what was visible then. */
  readonly fromMs: number;
  /** Lead of the agent's wall clock: it sees time-dependent states that much earlier. */
  readonly aheadMs: number;
}

/** A commit or an answer. */
export interface Asked {
  readonly actor: Actor;
  readonly atMs: number;
}

const snapshotAgeMs = 10_000;

/** By the requester's clock. */
export function momentOf(scene: Pick<Scene, 'clockOf'>, { actor, atMs }: Asked): Moment {
  const { rate, wallErrorMs } = machineOf(scene, actor.process);
  return { atMs, fromMs: (actor.sentAtMs ?? atMs) - snapshotAgeMs / Math.min(1, rate), aheadMs: Math.max(0, wallErrorMs) };
}

/** Returns the clock of the process's machine. */
export function machineOf(scene: Pick<Scene, 'clockOf'>, process: string | undefined): MachineState {
  return (process === undefined ? undefined : scene.clockOf?.(process)) ?? { rate: 1, wallErrorMs: 0 };
}
