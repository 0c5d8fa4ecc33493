// Takes one turn of a group without a definition: reads its ledger, decides, announces the release, and releases one StatefulSet.
import { askedPauseMs } from '../../cluster/request/failure.ts';
import { ledgerOfEpoch, writingEpoch } from '../../engine/ledger/ledger.ts';
import { decideRelease, type ReleaseDecision } from '../../engine/release/release.ts';
import type { Definitions } from '../../engine/release/terms.ts';
import type { Ledger, Snapshot } from '../../engine/snapshot.ts';
import { messageOf } from '../../policies/error-message.ts';
import type { NextTurn } from '../loop.ts';
import type { ActivePolicies } from '../policies/policies.ts';
import type { ReleaseReport } from '../report.ts';
import { areCachesCurrent, type FreshRead, readFresh } from '../turn/direct-reads.ts';
import { sendAction } from '../turn/perform.ts';
import { knownSnapshot } from '../turn/snapshot.ts';
import type { TurnParts } from '../turn/turn.ts';
import type { Orphan } from './orphans.ts';

export type ReleaseParts = Pick<
  TurnParts,
  'env' | 'config' | 'caches' | 'policies' | 'ledgers' | 'leadership' | 'actTimeoutMs' | 'isStopping'
> & {
  readonly sourceStates: (policies: ActivePolicies) => Definitions['sources'];
  readonly onReport: (report: ReleaseReport) => void;
};

/** The pause before the next turn. During the pause, pods may become available and sources readable. */
const checkMs = 5_000;
/** The time after which a wait for other zones, or another wait without a known end, is reported. */
const lastingMs = 2 * checkMs;
/** The longest silence after which a watch is still trusted. After a longer silence, definitions are read from the API server. */
const longestSilenceMs = 10_000;

/** Takes the turn. `isOver` means that the group needs no further turn. Never rejects: a failure is logged and retried. */
export async function takeReleaseTurn(parts: ReleaseParts, orphan: Orphan): Promise<NextTurn & { readonly isOver?: boolean }> {
  const leading = parts.leadership.epoch();
  if (parts.isStopping() || leading === undefined) return {};
  try {
    const stored = await parts.ledgers.read(orphan);
    orphan.epoch ??= writingEpoch(stored, leading);
    return await new ReleaseTurn(parts, orphan, stored, orphan.epoch).take();
  } catch (error) {
    const { namespace, name: group } = orphan;
    parts.env.log.warn('release failed', { namespace, group, problem: messageOf(error) });
    return { retry: { afterMs: askedPauseMs(error) } };
  }
}

class ReleaseTurn {
  readonly #parts: ReleaseParts;
  readonly #orphan: Orphan;
  readonly #stored: Ledger;
  readonly #epoch: number;

  constructor(parts: ReleaseParts, orphan: Orphan, stored: Ledger, epoch: number) {
    this.#parts = parts;
    this.#orphan = orphan;
    this.#stored = stored;
    this.#epoch = epoch;
  }

  async take(): Promise<NextTurn & { readonly isOver?: boolean }> {
    let { snapshot, decision } = this.#decide();
    if (decision.kind === 'release') {
      const fresh = await this.#readMembers();
      if (fresh === undefined) return { nextTurnInMs: checkMs };
      ({ snapshot, decision } = this.#decide(fresh));
    }
    this.#orphan.goneSinceMs = decision.ledger.release?.goneMs === undefined ? undefined : this.#goneSinceMs();
    await this.#store(decision.ledger);
    this.#logWait(decision);
    const isOver = decision.kind === 'none' || decision.kind === 'over';
    const performed = decision.kind === 'release' ? await this.#release(decision) : undefined;
    const isLasting = this.#isLasting(decision);
    this.#parts.onReport({ group: this.#orphan, snapshot, decision, isLasting, ...(performed && { performed }) });
    if (isOver) return { isOver };
    if (performed !== undefined && performed.result !== 'done') return { retry: {} };
    const wakeAtMs = decision.kind === 'wait' ? decision.earliestMs : undefined;
    return { nextTurnInMs: checkMs, ...(wakeAtMs === undefined ? {} : { wakeAtMs }) };
  }

  /** Decides from the current policies, caches and ledger, with `fresh` objects if they were read. */
  #decide(fresh?: FreshRead): { readonly snapshot: Snapshot; readonly decision: ReleaseDecision } {
    const { policies, sourceStates } = this.#parts;
    const active = policies();
    if (active === undefined) throw new Error('policies were not read yet');
    const snapshot = knownSnapshot(this.#parts, this.#orphan.namespace, { fresh, unread: [] });
    const question = { snapshot, ledger: this.#stored, sources: sourceStates(active), epoch: this.#epoch };
    return { snapshot, decision: decideRelease({ ...question, goneForMs: this.#parts.env.clock.monotonicMs() - this.#goneSinceMs() }) };
  }

  /** Returns the time since which the group has no definition (monotonic); the current time if no earlier turn noted that time. */
  #goneSinceMs(): number {
    return this.#orphan.goneSinceMs ?? this.#parts.env.clock.monotonicMs();
  }

  /** Reads the members with quorum reads. Returns undefined if the cached definitions are stale. */
  async #readMembers(): Promise<FreshRead | undefined> {
    const { env, config, caches } = this.#parts;
    const { namespace } = this.#orphan;
    const timeoutMs = config.kubernetesTimeoutMs;
    const members = { namespace, zones: this.#stored.release?.zones ?? [] };
    const fresh = await readFresh(env, members, { timeoutMs, nodes: caches.observe(namespace).nodes });
    const isCurrent = await areCachesCurrent(this.#parts, namespace, { fresh, longestAgeMs: longestSilenceMs, timeoutMs });
    return isCurrent ? fresh : undefined;
  }

  /** Logs each new cause of a wait, because some causes have no Event, for example an unknown definition. */
  #logWait(decision: ReleaseDecision): void {
    const { namespace, name: group, waitsFor } = this.#orphan;
    this.#orphan.waitsFor = decision.kind === 'wait' ? decision.because : undefined;
    const because = this.#orphan.waitsFor;
    if (because === undefined || because === waitsFor) return;
    this.#parts.env.log.info('release of a deleted group waits', { namespace, group, because });
  }

  #isLasting(decision: ReleaseDecision): boolean {
    const nowMs = this.#parts.env.clock.monotonicMs();
    const isBlocked = decision.kind === 'wait' && decision.earliestMs === undefined;
    this.#orphan.blockedSinceMs = isBlocked ? (this.#orphan.blockedSinceMs ?? nowMs) : undefined;
    return nowMs - (this.#orphan.blockedSinceMs ?? nowMs) >= lastingMs;
  }

  /** Stores the ledger if it changed. Rejects if another process wrote the ledger or leads. */
  async #store(next: Ledger): Promise<void> {
    if (next === this.#stored) return;
    const written = ledgerOfEpoch(next, this.#epoch);
    if (written === undefined) throw new Error('a later leader wrote the ledger');
    await this.#parts.ledgers.write(this.#orphan, this.#stored, written);
  }

  /** Sets the partition of one StatefulSet to 0. Decides again first, because the definition may have returned during the write. */
  async #release({ action }: Extract<ReleaseDecision, { readonly kind: 'release' }>): Promise<ReleaseReport['performed']> {
    const { env, leadership, actTimeoutMs, isStopping } = this.#parts;
    const mayAct = (): boolean => !isStopping() && leadership.mayAct(actTimeoutMs) && this.#decide().decision.kind === 'release';
    if (!mayAct()) return undefined;
    const { result, message } = await sendAction(env, action, { timeoutMs: actTimeoutMs, mayAct, references: [] });
    const { namespace, statefulSet, from } = action;
    env.log.info('releasing statefulset: partition set to 0', { namespace, statefulSet, from, result });
    return { action, result, ...(message === undefined ? {} : { message }) };
  }
}
