// Defines the reports that the agent sends to its listeners: turns, releases, deleted groups and degradations.
import type { GroupDecision } from '../engine/decision.ts';
import type { TakenAction } from '../engine/publish/published.ts';
import type { ReleaseDecision } from '../engine/release/release.ts';
import type { RemovalReport } from '../engine/release/removal.ts';
import type { Ledger, Snapshot } from '../engine/snapshot.ts';
import type { GroupDefinition } from '../policies/definition.ts';
import type { Finding } from '../policies/findings/finding.ts';

export interface TurnReport {
  readonly group: GroupDefinition;
  readonly snapshot: Snapshot;
  /** Absent if the turn failed before the decision, or did not store the end of a wave or run that it decided. */
  readonly decision?: GroupDecision;
  /** The ledger after the turn; absent if it could not be read. */
  readonly ledger?: Ledger;
  readonly performed: readonly TakenAction[];
  /** The start of the turn (wall clock). */
  readonly startedMs: number;
  /** The duration of the turn by the monotonic clock. */
  readonly durationMs: number;
  /** The time from the event that caused this turn until its first action was sent; absent without an action. */
  readonly reactionMs?: number;
  /** The number of writes of the ledger that failed because another process had written it; absent if 0. */
  readonly ledgerConflicts?: number;
  readonly error?: string;
}

/** Returns false if the run of the decision is perhaps not in the ledger. The next turn may then start another run. */
export function isRunRemembered({ decision, ledger, error }: TurnReport): boolean {
  if (decision?.run === undefined) return true;
  return ledger === undefined ? error === undefined : ledger.run?.id === decision.run.id;
}

/** The report about a finished turn of a group without a definition. */
export interface ReleaseReport {
  readonly group: Pick<GroupDefinition, 'namespace' | 'name'>;
  readonly snapshot: Snapshot;
  readonly decision: ReleaseDecision;
  /** Absent if the turn sent no action. */
  readonly performed?: TakenAction;
  /** True if the release has waited for at least 10 s for something without a known end, such as other zones. */
  readonly isLasting: boolean;
}

/** The report about a group whose definition was deleted and whose StatefulSets are not released. Sent once for each deletion. */
export interface GroupRemovalReport {
  readonly group: Pick<GroupDefinition, 'namespace' | 'name'>;
  readonly snapshot: Snapshot;
  readonly reports: readonly RemovalReport[];
}

/** A resource that the agent cannot use: for example a missing CRD or permission, or an unreachable server. */
export interface Degradation {
  /** A stable id such as `watch/rolloutgroups` or `lease`. */
  readonly id: string;
  readonly reason: 'forbidden' | 'missing' | 'unreachable' | 'invalid';
  readonly message: string;
}

/** The listener to turns. It must return at once and must not throw, so a listener that writes needs a queue. */
export interface TurnListener {
  readonly turnEnded: (report: TurnReport) => void;
  readonly releaseEnded?: (report: ReleaseReport) => void;
  readonly groupGone?: (report: GroupRemovalReport) => void;
  /** Called with all groups and the findings in their sources after a change. */
  readonly groupsChanged?: (groups: readonly GroupDefinition[], findings: readonly Finding[]) => void;
  readonly degraded?: (degradations: readonly Degradation[]) => void;
  readonly leadershipChanged?: (state: { readonly isLeader: boolean; readonly epoch?: number; readonly holder?: string }) => void;
}

export type Degradations = ReturnType<typeof degradationsOf>;

/** Collects the degradations of all parts in one list with one entry for each id. Calls the listeners at each change. */
export function degradationsOf(given: readonly Pick<TurnListener, 'degraded'>[]) {
  const listeners = [...given];
  const parts = new Map<string, readonly Degradation[]>();
  let reported = '[]';
  return {
    /** Adds a listener that is called from the next change on. */
    listen: (listener: (typeof given)[number]) => void listeners.push(listener),
    /** Returns the function with which a part of the process reports its complete list. */
    of: (part: string) => (missing: readonly Degradation[]) => {
      parts.set(part, missing);
      const byId = new Map(
        [...parts.values()]
          .flat()
          .toReversed()
          .map((one) => [one.id, one]),
      );
      const all = [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
      const text = JSON.stringify(all);
      if (text === reported) return;
      reported = text;
      for (const listener of listeners) listener.degraded?.(all);
    },
  };
}
