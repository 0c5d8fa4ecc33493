// The moment by which a change that an agent asked for is judged, and what its decision could know by then.
//
// What a decision could know. Whether a disruption was allowed is asked of the moment S at which its request left the sender, and of the
// moment T at which the storage took it, for both differ by as long as it was on the way:
//
//        S - 10 s                S                       T
//   -------|---------------------|-----------------------|------> time
//   seen by every decision       decided by now          done
//
// - What an agent did itself counts at T, always: the ledger is there so that agents know of it, whichever of them it was, and however long its
//   request was on the way. A place that an agent emptied is the agent's until a pod is available there again, whoever delays that; so is one
//   whose pod was down already when an agent replaced it.
// - What others did (a pod that failed, a drain, a person) counts at T when it was visible in the storage since S - 10 s or longer: a decision
//   may be made from what is up to 10 s old (S5), by the agent's own clock. What became visible later nobody could know, and what was over
//   for a moment since may have been seen as over.
// - What is asked for (replicas, revisions, limits, membership) may be read at any instant from S - 10 s on, and changes count likewise: of the
//   values since then the most lenient one is held against the agent.
//
// A request whose sender died, paused or gave up is still the agent's. The ledger must have kept others from acting, or a touch of the pod must
// have made the request fail.
import type { Actor } from '../server/request.ts';
import type { MachineState, Scene } from './oracle.ts';

/** The times by which a change of an agent is judged. */
export interface Moment {
  /** T: time of the commit. */
  readonly atMs: number;
  /** S - 10 s: the decision knew what was visible then. */
  readonly fromMs: number;
  /** How far the agent's wall clock is ahead: it sees time-dependent states that much earlier. */
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
