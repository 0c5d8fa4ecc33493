// Defines the reports to listeners: one per turn, and the degraded parts of the agent.
import type { Action, GroupDecision } from '../engine/decision.ts';
import type { ReleaseDecision } from '../engine/release/release.ts';
import type { RemovalReport } from '../engine/release/removal.ts';
import type { Ledger, Snapshot } from '../engine/snapshot.ts';
import type { GroupDefinition } from '../policies/definition.ts';
import type { Finding } from '../policies/findings/finding.ts';

/** Result of an action. `conflict`: its object had changed, so nothing happened. `unknown`: no answer; it may have happened. */
export type ActionResult = 'done' | 'conflict' | 'refused' | 'failed' | 'unknown';

export interface PerformedAction {
  readonly action: Action;
  readonly result: ActionResult;
  /** The message of the server or the pod; never a whole body. */
  readonly message?: string;
}

/** One turn of one group, after it ended. */
export interface TurnReport {
  readonly group: GroupDefinition;
  /** The snapshot behind the decision. */
  readonly snapshot: Snapshot;
  /** Absent when the turn failed before a decision. */
  readonly decision?: GroupDecision;
  /** The ledger as stored after the turn; absent when it could not be read. */
  readonly ledger?: Ledger;
  readonly performed: readonly PerformedAction[];
  /** Wall clock, milliseconds since 1970. */
  readonly startedMs: number;
  /** On the monotonic clock. */
  readonly durationMs: number;
  /** From the event that asked for this turn until its first action was sent; absent when no action was. */
  readonly reactionMs?: number;
  /** Why the turn could not be finished. */
  readonly error?: string;
}

/** Reports whether the run of the decision is stored. A run of a turn that ended before is not: the next turn starts another run. */
export function isRunRemembered({ decision, ledger, error }: TurnReport): boolean {
  if (decision?.run === undefined) return true;
  return ledger === undefined ? error === undefined : ledger.run?.id === decision.run.id;
}

/** One turn of a group that nothing defines any more, after it ended. */
export interface ReleaseReport {
  readonly group: Pick<GroupDefinition, 'namespace' | 'name'>;
  readonly snapshot: Snapshot;
  readonly decision: ReleaseDecision;
  /** Absent when nothing was asked for. */
  readonly performed?: PerformedAction;
  /** Reports whether it has waited for other zones for longer than from one look to the next. */
  readonly isLasting: boolean;
}

/** A group that nothing defines any more, and that is not released. Once for each time that its definition goes. */
export interface GroupRemovalReport {
  readonly group: Pick<GroupDefinition, 'namespace' | 'name'>;
  readonly snapshot: Snapshot;
  readonly reports: readonly RemovalReport[];
}

/** Something that the agent would use and cannot: an absent CRD, a missing permission, an unreachable server. */
export interface Degradation {
  /** Stable, such as `watch/rolloutgroups` or `lease`. */
  readonly id: string;
  readonly reason: 'forbidden' | 'missing' | 'unreachable' | 'invalid';
  /** One sentence: what is missing and what follows from it. */
  readonly message: string;
}

/** Hears of turns. Must return at once and not throw; a listener with writes needs a queue. */
export interface TurnListener {
  readonly turnEnded: (report: TurnReport) => void;
  readonly releaseEnded?: (report: ReleaseReport) => void;
  readonly groupGone?: (report: GroupRemovalReport) => void;
  /** The groups there are, after their number or definition changed, with what is wrong in their sources. */
  readonly groupsChanged?: (groups: readonly GroupDefinition[], findings: readonly Finding[]) => void;
  readonly degraded?: (degradations: readonly Degradation[]) => void;
  readonly leadershipChanged?: (state: { readonly isLeader: boolean; readonly epoch?: number; readonly holder?: string }) => void;
}

export interface Degradations {
  /** One more who hears of it, from the next change on. */
  readonly listen: (listener: Pick<TurnListener, 'degraded'>) => void;
  /** Returns the function with which a part reports its complete list. */
  readonly of: (part: string) => (missing: readonly Degradation[]) => void;
}

/** Collects the degradations of all parts in one list. Of equal ones only the first counts. Listeners are called at each change. */
export function degradationsOf(given: readonly Pick<TurnListener, 'degraded'>[]): Degradations {
  const listeners = [...given];
  const parts = new Map<string, readonly Degradation[]>();
  let told = '[]';
  return {
    listen: (listener) => void listeners.push(listener),
    of: (part) => (missing) => {
      parts.set(part, missing);
      const byId = new Map(
        [...parts.values()]
          .flat()
          .toReversed()
          .map((one) => [one.id, one]),
      );
      const all = [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
      const text = JSON.stringify(all);
      if (text === told) return;
      told = text;
      for (const listener of listeners) listener.degraded?.(all);
    },
  };
}
