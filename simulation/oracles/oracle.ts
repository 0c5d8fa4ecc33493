// Defines the judges of a simulation, which report violations. They share no code with the agent; only the check of S27 runs the engine.

import type { TurnReport } from '../../agent/report.ts';
import type { InstalledWebhook, ReviewedRequest } from '../cluster/admitted.ts';
import type { PodAdmitted } from '../cluster/pin-webhook.ts';
import type { Point, RequestFault } from '../faults/fault.ts';
import type { GroupShape, PolicyState } from '../scenario.ts';
import type { Actor, Answered, Commit, ModelObject } from '../server/request.ts';
import type { Claimed } from './documents.ts';
import type { NamedGroup } from './groups.ts';

export interface Violation {
  /** The id of the invariant in docs/simulation.md, such as `S1` or `L2`. */
  readonly invariant: string;
  readonly atMs: number;
  /** A sentence that names the object, and the process if one is involved. */
  readonly message: string;
}

export interface MachineState {
  readonly rate: number;
  /** Returns the milliseconds that the clock has counted since `fromMs`. If absent, the rate has not changed since. */
  readonly elapsedSinceMs?: (fromMs: number) => number;
  /** Returns the true milliseconds before `untilMs` in which the clock counted `countedMs`. If absent, the rate has not changed since. */
  readonly trueMs?: (countedMs: number, untilMs: number) => number;
  readonly wallErrorMs: number;
  /** The time of the last jump of the wall clock, on the scheduler's clock. */
  readonly jumpedAtMs?: number;
  /** The last suspension of the process, on the scheduler's clock. */
  readonly pausedAtMs?: number;
  readonly pausedUntilMs?: number;
}

/** The view of a simulation for its judges. It contains no memory of agents. */
export interface Scene {
  readonly nowMs: () => number;
  readonly group: GroupShape;
  /** True for the group of a user. It may wait longer than a generated group, for example for a person. */
  readonly isGiven?: boolean;
  readonly namespace: string;
  /** The name of the group, and all groups of the simulation; absent in a simulation with one group. */
  readonly groupName?: string;
  readonly groups?: readonly NamedGroup[];
  readonly statefulSets: readonly string[];
  readonly agentUser: string;
  /** The webhooks that review all requests; absent for groups without `webhooks`. */
  readonly webhooks?: readonly InstalledWebhook[];
  /** Returns the newest state of the stored objects, sorted by name. With a namespace, leaves out the objects of other groups. */
  readonly list: (resource: string, namespace?: string) => readonly ModelObject[];
  readonly get: (resource: string, namespace: string, name: string) => ModelObject | undefined;
  readonly violated: (invariant: string, message: string) => void;
  /** Returns the rate of the clock of the process's machine, and the lead of its wall clock. If absent, all clocks are correct. */
  readonly clockOf?: (process: string) => MachineState;
  /** Returns whether an agent has a dead watch that is still open. A watch stays dead after all faults, until the agent closes it. */
  readonly isWatchDead?: () => boolean;
  /** Returns since when the holder of the Lease knows the claim, in virtual milliseconds. */
  readonly claimKnownMs?: (claim: Claimed) => number;
  /** Returns whether the holder of the Lease knows a claim that is no longer stored and has not ended for the holder. */
  readonly hasRemovedClaim?: () => boolean;
}

export interface PodCalled {
  readonly process: string;
  readonly atMs: number;
  readonly sentAtMs: number;
  readonly namespace: string;
  readonly pod: string;
  readonly uid: string;
  readonly method: 'POST' | 'DELETE';
  readonly path: string;
  /** True if a webhook called the pod. */
  readonly isWebhook?: boolean;
  /** The possibly wrong time that the pod reported, in milliseconds since the simulation began; absent if the pod reported no time. */
  readonly reportedMs?: number;
}

/** An answer of the metric server at the time when the query arrives. */
export interface GateAnswered {
  readonly process: string;
  readonly atMs: number;
  /** True if the answer passes the gate. */
  readonly isGood: boolean;
}

/** One call of a webhook about a request. */
export interface Reviewed {
  readonly request: ReviewedRequest;
  readonly webhook: Pick<InstalledWebhook, 'name' | 'path' | 'isMutating'>;
  /** The process that was asked; empty if no process was ready. */
  readonly by: string;
  readonly outcome: 'allowed' | 'denied' | 'failed';
  /** True if the webhook is asked again about its own result. */
  readonly isRepeat: boolean;
  readonly patch: readonly { readonly op: string; readonly path: string }[];
  /** True if the answer has a warning, for example because a drop-in endpoint could not read the workload of a Scale. */
  readonly hasWarning: boolean;
}

export type ProcessChange = 'started' | 'crashed' | 'paused' | 'resumed' | 'stopped';

export interface Oracle {
  /** Called before a request, a call to a pod or a query of a gate is sent. `verb` is the argument of `Faults.ofRequest`. */
  readonly sending?: (point: Point, verb: string) => void;
  /** Called after `sending` if the request meets a fault. */
  readonly faulted?: (point: Point, fault: RequestFault) => void;
  readonly committed?: (commit: Commit) => void;
  readonly answered?: (answered: Answered) => void;
  readonly turnEnded?: (process: string, report: TurnReport) => void;
  /** Called when a process begins or ceases to act as the leader. The holder in the stored Lease may stay the same. */
  readonly leadershipChanged?: (process: string, isLeader: boolean) => void;
  readonly podCalled?: (call: PodCalled) => void;
  readonly gateAnswered?: (answer: GateAnswered) => void;
  /** Called before a pod is stored, but only for groups with pinned pods. */
  readonly podAdmitted?: (admitted: PodAdmitted) => void;
  readonly reviewed?: (reviewed: Reviewed) => void;
  readonly processChanged?: (process: string, change: ProcessChange) => void;
  /** Called after each change of the policy directory of the agents, which only the first group has. */
  readonly directoryChanged?: (state: PolicyState) => void;
  /** Called when all faults have ended and the repairs are done. */
  readonly healingBegan?: () => void;
  /** Called at the end of the simulation, before the agents stop. */
  readonly ended?: () => void;
}

/** A function that creates a judge for one simulation. */
export type OracleFactory = (scene: Scene) => Oracle;

/**
 * The times by which a change of an agent is judged: S, when its request left the sender, and T, when the storage applied it.
 *
 *        S - 10 s                S                       T
 *   -------|---------------------|-----------------------|------> time
 *   seen by every decision       decided by now          done
 *
 * - Changes by agents always count at T: the ledger announces them to every agent, also while the request is in flight. If an agent
 *   deletes a pod, its place counts as disrupted by agents until a pod is available there again.
 * - Changes by others (a failed pod, a drain, a person) count at T if they were visible in the storage at S - 10 s. A decision may use a
 *   view that is 10 s old by the clock of the agent (S5). Later changes do not count. An outage that ended before T does not count.
 * - Settings (replicas, revisions, limits, membership) may be read at any time from S - 10 s on. The most lenient value since then counts.
 *
 * A request counts as a change by an agent also if its sender crashed, was suspended or gave up. The ledger must then have stopped other
 * agents, or a patch of the pod must have made the request fail.
 */
export interface Moment {
  /** T: the time of the commit. */
  readonly atMs: number;
  /** S - 10 s: the decision knew the changes that were visible at this time. */
  readonly fromMs: number;
  /** The lead of the agent's wall clock. For the agent, a pod becomes available and a pause expires earlier by this time. */
  readonly aheadMs: number;
  /** True for an answer of a webhook. It may know a scale-up by an agent only 10 s later, because no claim announces it. */
  readonly isOfWebhook?: boolean;
}

/** The sender and the time of a commit or an answer. */
export interface Sent {
  readonly actor: Actor;
  readonly atMs: number;
}

const snapshotAgeMs = 10_000;

/** Returns the times by which a request is judged. */
export function momentOf(scene: Pick<Scene, 'clockOf'>, { actor, atMs }: Sent): Moment {
  const { wallErrorMs } = machineOf(scene, actor.process);
  const sentMs = actor.sentAtMs ?? atMs;
  const ageMs = longestMs(scene, { process: actor.process, countedMs: snapshotAgeMs, untilMs: sentMs });
  return { atMs, fromMs: sentMs - ageMs, aheadMs: Math.max(0, wallErrorMs) };
}

/**
 * Returns S - 10 s of a write that changes no pod, such as a write of the ledger. A process that was suspended may send it after a
 * decision from before the suspension.
 */
export function knownSinceMs(scene: Pick<Scene, 'clockOf'>, { actor, atMs }: Sent): number {
  const { fromMs } = momentOf(scene, { actor, atMs });
  const { pausedAtMs = 0, pausedUntilMs = 0 } = machineOf(scene, actor.process);
  return pausedUntilMs < fromMs ? fromMs : Math.min(fromMs, pausedAtMs);
}

interface Counted {
  readonly process: string | undefined;
  /** A duration on the clock of the process. */
  readonly countedMs: number;
  /** The true end of the duration. */
  readonly untilMs: number;
}

/**
 * Returns the true milliseconds that the process counted as `countedMs`, by the rates of its clock in this time. Returns at least `countedMs`:
 * a fast clock makes no limit of a judge shorter.
 */
export function longestMs(scene: Pick<Scene, 'clockOf'>, { process, countedMs, untilMs }: Counted): number {
  const { rate, trueMs = (ms) => ms / rate } = machineOf(scene, process);
  return Math.max(countedMs, trueMs(countedMs, untilMs));
}

export function machineOf(scene: Pick<Scene, 'clockOf'>, process: string | undefined): MachineState {
  return (process === undefined ? undefined : scene.clockOf?.(process)) ?? { rate: 1, wallErrorMs: 0 };
}

/** The errors of the wall clocks of all agents so far. Two times that agents recorded may differ by both from the true times. */
export class WallErrors {
  readonly #scene: Pick<Scene, 'clockOf'>;
  /** The furthest that any clock was ahead. */
  aheadMs = 0;
  #behindMs = 0;

  constructor(scene: Pick<Scene, 'clockOf'>) {
    this.#scene = scene;
  }

  note(process: string | undefined): void {
    const { wallErrorMs } = machineOf(this.#scene, process);
    this.aheadMs = Math.max(this.aheadMs, wallErrorMs);
    this.#behindMs = Math.max(this.#behindMs, -wallErrorMs);
  }

  get spreadMs(): number {
    return this.aheadMs + this.#behindMs;
  }
}
