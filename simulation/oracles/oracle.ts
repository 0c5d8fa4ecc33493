// Who judges a run: each oracle hears of everything that happens, at once, and says what must not have been. None of them shares code with what it judges.
import type { TurnReport } from '../../agent/report.ts';
import type { PodAdmitted } from '../cluster/pin-webhook.ts';
import type { Point } from '../faults/fault.ts';
import type { GroupShape } from '../scenario.ts';
import type { Answered, Commit, ModelObject } from '../server/request.ts';

export interface Violation {
  /** Of the list of invariants in docs/simulation.md, such as `S1` or `L2`. */
  readonly invariant: string;
  readonly atMs: number;
  /** Names the object, and the process when there is one. */
  readonly message: string;
}

export interface MachineState {
  readonly rate: number;
  readonly wallErrorMs: number;
}

/** What oracles may look at. Reads only; never the agents' memory. */
export interface Scene {
  readonly nowMs: () => number;
  readonly group: GroupShape;
  /** It is somebody's own group, which may wait for longer, and for more, than any group that is made up. */
  readonly isGiven?: boolean;
  readonly namespace: string;
  /** Names of the StatefulSets, in the order of the zones. */
  readonly statefulSets: readonly string[];
  readonly agentUser: string;
  /** The newest state of the storage, by name. */
  readonly list: (resource: string, namespace?: string) => readonly ModelObject[];
  readonly get: (resource: string, namespace: string, name: string) => ModelObject | undefined;
  readonly violated: (invariant: string, message: string) => void;
  /**
   * The clock of the machine on which the process runs: how many of its milliseconds pass in a true one, and by how much its wall clock is
   * ahead of the true one. Right when left out.
   */
  readonly clockOf?: (process: string) => MachineState;
  /** Whether a watch of an agent is dead and still open. None dies after all faults; those that did before last until the agent gives them up. */
  readonly isWatchDead?: () => boolean;
}

/** A call of a pod by an agent, when it arrives there. */
export interface PodCalled {
  readonly process: string;
  readonly atMs: number;
  readonly sentAtMs: number;
  readonly namespace: string;
  readonly pod: string;
  /** Of the pod that has heard it. */
  readonly uid: string;
  readonly method: 'POST' | 'DELETE';
  readonly path: string;
  /** The time that its answer names, lie or not, in milliseconds since the run began; absent when it names none. */
  readonly reportedMs?: number;
}

/** An answer of the metric server to an agent, when the question arrives there. */
export interface GateAnswered {
  readonly process: string;
  readonly atMs: number;
  /** Whether it says that the gate's condition holds, in a way that counts. */
  readonly isGood: boolean;
}

export type ProcessChange = 'started' | 'crashed' | 'paused' | 'resumed' | 'stopped';

export interface Oracle {
  /** A request or a call of a pod is about to be sent; `verb` as in Faults. */
  readonly sending?: (point: Point, verb: string) => void;
  readonly committed?: (commit: Commit) => void;
  readonly answered?: (answered: Answered) => void;
  readonly turnEnded?: (process: string, report: TurnReport) => void;
  readonly podCalled?: (call: PodCalled) => void;
  readonly gateAnswered?: (answer: GateAnswered) => void;
  /** A pod is about to be stored; only of groups whose pods are pinned. */
  readonly podAdmitted?: (admitted: PodAdmitted) => void;
  readonly processChanged?: (process: string, change: ProcessChange) => void;
  /** Faults are over, everything broken is mended and every agent runs. */
  readonly healingBegan?: () => void;
  /** The run is over; the agents still run. */
  readonly ended?: () => void;
}

/** Makes the oracle for one run. */
export type OracleFactory = (scene: Scene) => Oracle;
