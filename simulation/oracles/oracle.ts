// Defines a judge of a run: it sees every event at once and reports violations. Judges share no code with the judged parts.

import type { TurnReport } from '../../agent/report.ts';
import type { PodAdmitted } from '../cluster/pin-webhook.ts';
import type { Point } from '../faults/fault.ts';
import type { GroupShape } from '../scenario.ts';
import type { Actor, Answered, Commit, ModelObject } from '../server/request.ts';

export interface Violation {
  /** Id of the invariant in docs/simulation.md, such as `S1` or `L2`. */
  readonly invariant: string;
  readonly atMs: number;
  /** Names the object, and the process if there is one. */
  readonly message: string;
}

export interface MachineState {
  readonly rate: number;
  readonly wallErrorMs: number;
}

/** Read-only view for oracles; never the agents' memory. */
export interface Scene {
  readonly nowMs: () => number;
  readonly group: GroupShape;
  /** The group of a user, which may wait longer and for more than generated groups. */
  readonly isGiven?: boolean;
  readonly namespace: string;
  /** Names of the StatefulSets by zone. */
  readonly statefulSets: readonly string[];
  readonly agentUser: string;
  /** Newest state of the storage by name. */
  readonly list: (resource: string, namespace?: string) => readonly ModelObject[];
  readonly get: (resource: string, namespace: string, name: string) => ModelObject | undefined;
  readonly violated: (invariant: string, message: string) => void;
  /** Clock of the process's machine: its speed, and how far its wall clock is ahead. Correct if omitted. */
  readonly clockOf?: (process: string) => MachineState;
  /** Returns whether an open watch of an agent is dead: until the agent closes it, also after all faults. */
  readonly isWatchDead?: () => boolean;
}

/** A call of a pod by an agent, on arrival. */
export interface PodCalled {
  readonly process: string;
  readonly atMs: number;
  readonly sentAtMs: number;
  readonly namespace: string;
  readonly pod: string;
  /** UID of the pod that received it. */
  readonly uid: string;
  readonly method: 'POST' | 'DELETE';
  readonly path: string;
  /** The reported time, true or not, in milliseconds since the run began; absent without one. */
  readonly reportedMs?: number;
}

/** An answer of the metric server, when the question arrives. */
export interface GateAnswered {
  readonly process: string;
  readonly atMs: number;
  /** True if the answer passes the gate. */
  readonly isGood: boolean;
}

export type ProcessChange = 'started' | 'crashed' | 'paused' | 'resumed' | 'stopped';

export interface Oracle {
  /** A request or pod call before it is sent; `verb` as in Faults. */
  readonly sending?: (point: Point, verb: string) => void;
  readonly committed?: (commit: Commit) => void;
  readonly answered?: (answered: Answered) => void;
  readonly turnEnded?: (process: string, report: TurnReport) => void;
  readonly podCalled?: (call: PodCalled) => void;
  readonly gateAnswered?: (answer: GateAnswered) => void;
  /** A pod before it is stored; only for groups with pinned pods. */
  readonly podAdmitted?: (admitted: PodAdmitted) => void;
  readonly processChanged?: (process: string, change: ProcessChange) => void;
  /** Faults have ended, repairs are done and every agent runs. */
  readonly healingBegan?: () => void;
  /** The run has ended; the agents still run. */
  readonly ended?: () => void;
}

/** Creates the oracle of one run. */
export type OracleFactory = (scene: Scene) => Oracle;

/**
 * The times by which a change of an agent is judged: S, when its request left the sender, and T, when the storage applied it.
 *
 *        S - 10 s                S                       T
 *   -------|---------------------|-----------------------|------> time
 *   seen by every decision       decided by now          done
 *
 * - Changes by agents always count at T: the ledger tells every agent about them, however long the request was under way. A place that
 *   an agent emptied stays the agent's until a pod is available there again. So does a place whose pod was down when an agent replaced it.
 * - Changes by others (a failed pod, a drain, a person) count at T if they were visible in the storage at S - 10 s: a decision may use a
 *   view that is 10 s old (S5), by the agent's own clock. Later changes are unknown, and an outage that ended meanwhile may look over.
 * - Settings (replicas, revisions, limits, membership) may be read at any time from S - 10 s on. The most lenient value since then counts.
 *
 * The request of a sender that died, was suspended or gave up is still the agent's. The ledger must have stopped other agents, or a touch
 * of the pod must have made the request fail.
 */
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

/** Returns the time of the request by the requester's clock. */
export function momentOf(scene: Pick<Scene, 'clockOf'>, { actor, atMs }: Asked): Moment {
  const { rate, wallErrorMs } = machineOf(scene, actor.process);
  return { atMs, fromMs: (actor.sentAtMs ?? atMs) - snapshotAgeMs / Math.min(1, rate), aheadMs: Math.max(0, wallErrorMs) };
}

/** Returns the clock of the process's machine. */
export function machineOf(scene: Pick<Scene, 'clockOf'>, process: string | undefined): MachineState {
  return (process === undefined ? undefined : scene.clockOf?.(process)) ?? { rate: 1, wallErrorMs: 0 };
}
