// Takes one turn of one group for the loop: gathers the inputs, decides, stores the claims in the ledger, acts, and reports the results.
import { askedPauseMs } from '../../cluster/request/failure.ts';
import { decideGroup } from '../../engine/decide/decide.ts';
import { noteAsked } from '../../engine/decide/preparations.ts';
import { type Action, type GroupDecision, replacedBy } from '../../engine/decision.ts';
import { violationsOf } from '../../engine/invariants/invariants.ts';
import { claimsOf, decidedLedger, ledgerOfEpoch, openClaims } from '../../engine/ledger/ledger.ts';
import { lastAvailableByTime, viewGroup } from '../../engine/observe/view.ts';
import { passesCheckpoint, revertProgress } from '../../engine/run/states.ts';
import { emptySnapshot, isUnknown, type Ledger, type Snapshot } from '../../engine/snapshot.ts';
import { withoutPinsOf } from '../../engine/strategies/pinned/pins.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { messageOf } from '../../policies/error-message.ts';
import { defined } from '../../policies/values/defined.ts';
import type { AgentConfig } from '../config.ts';
import type { Leadership } from '../leadership.ts';
import type { NextTurn } from '../loop.ts';
import type { TurnReport } from '../report.ts';
import type { ReplicaSources } from '../watched/replica-sources.ts';
import { areCachesCurrent } from './direct-reads.ts';
import { type Gathered, type GatherParts, type GroupMemory, gather, longestWaitMs, mustWait, observeAgain } from './gather.ts';
import { announcedIn, isWorthWriting, withoutClaimsOf } from './ledger-changes.ts';
import { LedgerChanged, type Ledgers } from './ledgers.ts';
import { isConflict, nextTurn } from './next-turn.ts';
import {
  calledPods,
  endsTurn,
  isDestructive,
  needsFreshSnapshot,
  type Outcome,
  openRevocations,
  perform,
  revoke,
  sendableLater,
  withAnswers,
} from './perform.ts';
import { isRefused, type Refusals } from './refusals.ts';
import { definitionIn, isSameDefinition, termsOf } from './snapshot.ts';

export interface TurnParts extends GatherParts {
  readonly config: AgentConfig;
  readonly sources: Pick<ReplicaSources, 'read' | 'isFollowed'>;
  readonly ledgers: Pick<Ledgers, 'read' | 'write'>;
  readonly leadership: Pick<Leadership, 'epoch' | 'mayAct' | 'leftMs'>;
  readonly actTimeoutMs: number;
  /** Returns whether the agent is stopping. Then the turn stores its results, but sends no further action. */
  readonly isStopping: () => boolean;
  readonly onReport: (report: TurnReport) => void;
}

/** The most attempts of a turn if other processes write the ledger. */
const maxAttempts = 3;
/** The pause before a stale watch cache is checked again. */
const staleCachePauseMs = 2_000;
/** The maximum age of the snapshot when pods are disrupted or replicas change: a decision misses pods that fail after its snapshot. */
const longestSnapshotAgeMs = 10_000;

/** Takes the group's turn. Never rejects: a failure is reported, and the turn is retried. */
export async function takeTurn(parts: TurnParts, group: GroupDefinition, memory: GroupMemory, askedMs: number): Promise<NextTurn> {
  const { clock } = parts.env;
  if (parts.isStopping() || parts.leadership.epoch() === undefined) return {};
  if (mustWait(memory, clock.monotonicMs())) return inconclusive(longestWaitMs);
  const turn = new Turn(parts, group, memory, askedMs);
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await turn.attempt();
    } catch (error) {
      memory.ledger = undefined;
      if (error instanceof LedgerChanged && attempt < maxAttempts) {
        // The next attempt does not have the objects that this attempt read directly, and the caches may not contain them yet.
        memory.needsDirectRead ||= memory.freshness.hasStaleCache();
        continue;
      }
      memory.needsDirectRead = true;
      turn.report(messageOf(error));
      return { retry: { afterMs: askedPauseMs(error) } };
    }
  }
}

/** Returns the next turn after a turn that ended before its actions. It proves nothing about a failed action. */
function inconclusive(nextTurnInMs: number): NextTurn {
  return { nextTurnInMs, isInconclusive: true };
}

/** Returns the actions to send. A late decision sends what an old snapshot permits; a decision with violations removes no pod. */
function permittedActions(
  { actions }: GroupDecision,
  { isLate, violations }: { readonly isLate: boolean; readonly violations: readonly string[] },
): readonly Action[] {
  const timely = isLate ? sendableLater(actions) : actions;
  return violations.length === 0 ? timely : timely.filter((action) => !isDestructive(action));
}

/** Returns whether the decision must know the stored policies and requests: an action disrupts pods, or the run ends a wave or continues. */
function needsTerms({ actions, run }: GroupDecision, ledger: Ledger): boolean {
  return actions.some(isDestructive) || passesCheckpoint(ledger.run, run);
}

class Turn {
  readonly #parts: TurnParts;
  readonly #group: GroupDefinition;
  readonly #memory: GroupMemory;
  readonly #askedMs: number;
  readonly #startedMs: number;
  readonly #startedMonotonicMs: number;
  #reactionMs: number | undefined;
  #snapshot: Snapshot;
  #decision: GroupDecision | undefined;
  #performed: readonly Outcome[] = [];
  /** True if the turn did not begin all permitted actions. */
  #isCut = false;
  /** True if the caches contradict the decision. */
  #isStale = false;
  /** The minimum pause that the API server requested when it rejected the write of the results, in milliseconds. */
  #storePauseMs: number | undefined;
  #ledgerConflicts = 0;

  constructor(parts: TurnParts, group: GroupDefinition, memory: GroupMemory, askedMs: number) {
    this.#parts = parts;
    this.#group = group;
    this.#memory = memory;
    this.#askedMs = askedMs;
    this.#startedMs = parts.env.clock.nowMs();
    this.#startedMonotonicMs = parts.env.clock.monotonicMs();
    this.#snapshot = emptySnapshot(this.#startedMs);
  }

  async attempt(): Promise<NextTurn> {
    // The decision of an earlier attempt is stale.
    this.#decision = undefined;
    const gathered = await gather(this.#parts, this.#group, this.#memory);
    const { ledger } = gathered;
    this.#snapshot = gathered.snapshot;
    const definition = definitionIn(gathered.snapshot, this.#group);
    if (definition === undefined) return {};
    if (!isSameDefinition(definition, this.#group)) {
      // The direct read used the former definition, so a new zone may not have been read. The next turn uses the new definition.
      this.#memory.needsDirectRead ||= gathered.fresh !== undefined;
      return inconclusive(0);
    }
    // If this process stalled, another process may lead. A report of this decision would hide the decision of that process.
    if (this.#parts.leadership.leftMs() <= 0) throw new Error('the Lease was not renewed in time; another process may lead');
    if (isUnknown(ledger)) return this.#withoutLedger(gathered, ledger.unknown);
    if (await this.#revoke(gathered, ledger)) return inconclusive(longestWaitMs);

    const decision = decideGroup(gathered.snapshot, this.#group);
    this.#decision = decision;
    if (decision.actions.some(needsFreshSnapshot) && gathered.fresh === undefined && !this.#provesAvailability(gathered)) {
      // A silent watch may have missed changes, so the objects are read directly.
      this.#memory.needsDirectRead = true;
      return await this.attempt();
    }
    if (needsTerms(decision, ledger) && !(await this.#knowsTerms(gathered))) return this.#awaitCaches(decision, ledger);
    // An action that needs a fresh snapshot would not be sent. Its claim would follow from a state before a pause, for example.
    const isLate = decision.actions.some(needsFreshSnapshot) && !this.#isRecent(gathered);
    const violations = this.#violations(gathered.snapshot, decision);
    const actions = permittedActions(decision, { isLate, violations });
    const announced = this.#announce(ledger, decision, actions, gathered.epoch);
    // Before any pod is disrupted, the write proves that no other process changed the ledger.
    await this.#store(announced, gathered.epoch, actions.some(isDestructive) ? 'always' : 'whenWorthIt');

    this.#performed = await this.#perform(decision, actions, gathered);
    this.#isCut = this.#performed.length < actions.length && !this.#performed.some(endsTurn);
    const unstored = await this.#remember(announced, { actions, before: ledger }, gathered);
    const problem = violations.length > 0 ? `the decision violates ${violations.join('; ')}` : unstored;
    if (isLate && problem === undefined) return this.#readAgain();
    this.report(problem);
    return this.#next(decision, problem !== undefined, gathered);
  }

  /** Reports that actions were withheld because the reads took too long. The next turn reads the objects directly. */
  #readAgain(): NextTurn {
    this.#memory.needsDirectRead = true;
    this.report(`the API server is slow: the objects were read more than ${longestSnapshotAgeMs / 1000} s ago`);
    return inconclusive(staleCachePauseMs);
  }

  /** Reports that the caches are too old, and no wave or run as ended: a `status --for` that waits for this end would succeed. */
  #awaitCaches(decision: GroupDecision, ledger: Ledger): NextTurn {
    if (passesCheckpoint(ledger.run, decision.run)) this.#decision = undefined;
    this.report('the watch cache is behind the API server; waiting for it to catch up');
    return inconclusive(staleCachePauseMs);
  }

  /**
   * Returns whether the decision knows the stored policies and requests. A silent watch may have missed some, and the caches may have received
   * them only after the decision, for example a pause.
   */
  async #knowsTerms(gathered: Gathered): Promise<boolean> {
    const limits = { longestAgeMs: longestSnapshotAgeMs, timeoutMs: this.#parts.config.kubernetesTimeoutMs };
    const areCurrent = await areCachesCurrent(this.#parts, this.#group.namespace, { fresh: gathered.fresh, ...limits });
    return areCurrent && this.#hasTermsOf(observeAgain(this.#parts, this.#group, this.#memory, gathered), gathered);
  }

  /** Returns whether the definition, policies, exceptions and requests of the group are those of the decision. */
  #hasTermsOf(seen: Snapshot, { snapshot }: Gathered): boolean {
    return termsOf(seen, this.#group) === termsOf(snapshot, this.#group);
  }

  /** Reports the turn without actions, because the claims are unknown. */
  #withoutLedger({ snapshot }: Gathered, reason: string): NextTurn {
    this.#decision = decideGroup(snapshot, this.#group);
    this.report(`the ledger cannot be read: ${reason}`);
    return { retry: {} };
  }

  /** Patches pods whose deletion has an unknown outcome. Returns true if a pod was patched, because the snapshot is then stale. */
  async #revoke({ snapshot, epoch }: Gathered, ledger: Ledger): Promise<boolean> {
    const { env, actTimeoutMs } = this.#parts;
    const { confirmed, refusals } = this.#memory;
    const revocations = openRevocations(ledger, snapshot, { epoch, confirmed });
    if (revocations.length === 0) return false;
    if (!refusals.mayTouch(env.clock.monotonicMs())) return false;
    const touched = await revoke(env, revocations, {
      timeoutMs: actTimeoutMs,
      mayAct: () => this.#mayAct(),
      onForbidden: (message) => refusals.noteTouch(message, this.#refusalPorts()),
    });
    if (touched.length > 0) refusals.noteTouch(undefined, this.#refusalPorts());
    this.#memory.freshness.expect(touched);
    return touched.length > 0;
  }

  /** Returns the safety invariants that a decision with destructive actions violates. Invariants about explanations block nothing. */
  #violations(snapshot: Snapshot, decision: GroupDecision): readonly string[] {
    if (!decision.actions.some(isDestructive)) return [];
    const violations = this.#unsafe(snapshot, decision);
    for (const violation of violations) {
      this.#parts.env.log.error('decision violates an invariant; destructive actions are blocked', { ...this.#name(), violation });
    }
    return violations;
  }

  #refusalPorts(): Parameters<Refusals['note']>[1] {
    const { clock, log } = this.#parts.env;
    return { clock, warn: (message, fields) => log.warn(message, { ...this.#name(), ...fields }) };
  }

  #unsafe(snapshot: Snapshot, decision: GroupDecision): readonly string[] {
    return violationsOf({ snapshot, group: this.#group, decision }).filter((violation) => violation.startsWith('S'));
  }

  /** Returns whether the remaining actions are still valid. `taken` are the actions that were already sent. */
  #mayDisrupt(decision: GroupDecision, remaining: readonly Action[], taken: readonly Action[], gathered: Gathered): boolean {
    const { env } = this.#parts;
    if (!this.#isRecent(gathered) || isUnknown(gathered.ledger)) return false;
    // A scale-up stays valid, because no change of a pod can make it unsafe.
    if (remaining[0] !== undefined && !isDestructive(remaining[0])) return true;
    const seen = observeAgain(this.#parts, this.#group, this.#memory, gathered);
    const ledger = openClaims(gathered.ledger, claimsOf(taken, seen.nowMs, gathered.epoch)) ?? gathered.ledger;
    const unsafe = this.#unsafe({ ...seen, ledgers: [ledger] }, { ...decision, actions: remaining });
    const violations = this.#hasTermsOf(seen, gathered) ? unsafe : ['the policies, exceptions or requests of the group changed', ...unsafe];
    if (violations.length === 0) return true;
    this.#isStale = true;
    env.log.info('decision is stale; the group is evaluated again', { ...this.#name(), because: violations.join('; ') });
    return false;
  }

  /** Returns the ledger to store before the actions. It contains the decided run and the claims and preparations of the actions. */
  #announce(ledger: Ledger, decision: GroupDecision, actions: readonly Action[], epoch: number): Ledger {
    const { nowMs } = this.#snapshot;
    // Pins are stored before any pod is deleted, because the webhook reads them when the pod is created again.
    const decided = decidedLedger(ledger, decision, { snapshot: this.#snapshot, group: this.#group, actions });
    const claimed = openClaims(decided, claimsOf(actions, nowMs, epoch));
    if (claimed === undefined) throw new Error('the ledger cannot hold more disruption claims');
    let announced = claimed;
    for (const action of actions) {
      if (action.kind === 'callPods') announced = noteAsked(announced, action, calledPods(action, this.#snapshot), nowMs);
    }
    return announced;
  }

  /** Stores the ledger; `whenWorthIt`: if readers would decide differently. Rejects with LedgerChanged if another process wrote it. */
  async #store(next: Ledger, epoch: number, when: 'always' | 'whenWorthIt'): Promise<void> {
    const { stored } = this.#known();
    if (when === 'whenWorthIt' && !isWorthWriting(stored, next)) {
      this.#memory.ledger = { stored, current: next };
      return;
    }
    const written = ledgerOfEpoch(next, epoch);
    if (written === undefined) {
      this.#ledgerConflicts += 1;
      throw new Error('a later leader wrote the ledger');
    }
    this.#memory.ledger = undefined;
    const before = this.#memory.announced;
    this.#memory.announced = announcedIn(written, stored, before);
    try {
      await this.#parts.ledgers.write(this.#group, stored, written);
    } catch (error) {
      if (error instanceof LedgerChanged) {
        this.#ledgerConflicts += 1;
        // The claims were not stored, so an equal stored claim belongs to another process.
        this.#memory.announced = before;
      }
      throw error;
    }
    this.#memory.ledger = { stored: written, current: written };
  }

  #known(): { readonly stored: Ledger } {
    const { ledger } = this.#memory;
    if (ledger === undefined) throw new Error('the ledger was not read');
    return ledger;
  }

  #isRecent({ asOfMs }: Gathered): boolean {
    return this.#parts.env.clock.monotonicMs() - asOfMs <= longestSnapshotAgeMs;
  }

  /** Returns whether the snapshot is recent, and no pod completed its `minReadySeconds` after `asOfMs`. */
  #provesAvailability(gathered: Gathered): boolean {
    const { snapshot, asOfMs } = gathered;
    const ageMs = this.#parts.env.clock.monotonicMs() - asOfMs;
    const lastMs = lastAvailableByTime(viewGroup(snapshot, this.#group), snapshot.nowMs);
    return this.#isRecent(gathered) && (lastMs === undefined || lastMs <= snapshot.nowMs - ageMs);
  }

  async #perform(decision: GroupDecision, actions: readonly Action[], gathered: Gathered): Promise<readonly Outcome[]> {
    const { snapshot, sources } = gathered;
    const { env, config, actTimeoutMs } = this.#parts;
    return await perform(actions, {
      env,
      config,
      group: this.#group,
      snapshot,
      references: sources.flatMap(({ reference }) => reference ?? []),
      timeoutMs: actTimeoutMs,
      mayAct: () => this.#mayAct(),
      leftMs: () => (this.#parts.isStopping() ? 0 : this.#parts.leadership.leftMs()),
      mayDisrupt: (remaining) => {
        const taken = actions.slice(0, actions.length - remaining.length);
        return this.#mayDisrupt(decision, remaining, taken, gathered);
      },
      onFirst: () => {
        this.#reactionMs = env.clock.monotonicMs() - this.#askedMs;
      },
    });
  }

  /** Stores the results in the ledger. Returns the reason if the write fails. The ledger then has too many claims until the next turn. */
  async #remember(
    announced: Ledger,
    { actions, before }: { readonly actions: readonly Action[]; readonly before: Ledger },
    { epoch }: Gathered,
  ): Promise<string | undefined> {
    const memory = this.#memory;
    const outcomes = this.#performed;
    for (const outcome of outcomes) memory.refusals.note(outcome, this.#refusalPorts());
    const begun = new Set(outcomes.map(({ action }) => action));
    const refused = outcomes.filter(({ result }) => result === 'conflict' || result === 'refused' || result === 'failed');
    const undone = [...actions.filter((action) => !begun.has(action)), ...refused.map(({ action }) => action)];
    memory.freshness.expect(outcomes.flatMap(({ changed }) => changed ?? []));
    // After a conflict, the caches may be behind for as long as a dead watch stays open.
    memory.needsDirectRead ||= outcomes.some((outcome) => outcome.result === 'unknown' || isConflict(outcome));
    const done = outcomes.flatMap(({ action, result }) => (result === 'done' && 'uid' in action ? [action.uid] : []));
    const sent = outcomes.flatMap(({ action }) => ('uid' in action ? [action.uid] : []));
    const { run } = announced;
    const hasReplaced = outcomes.some(({ action, result }) => replacedBy(action).length > 0 && (result === 'done' || result === 'unknown'));
    const isUnmoved = run !== undefined && !hasReplaced && actions.some((action) => replacedBy(action).length > 0);
    const known = isUnmoved ? { ...announced, run: revertProgress(run, before.run) } : announced;
    const settled = withoutPinsOf(withoutClaimsOf(known, undone, before), this.#decision?.pinned ?? {}, undone);
    const after = withAnswers(settled, outcomes, Math.floor(this.#parts.env.clock.nowMs()));
    const claimed = new Set(after.claims.map(({ uid }) => uid));
    memory.confirmed = new Set([...memory.confirmed, ...done].filter((uid) => claimed.has(uid)));
    memory.sent = new Set([...memory.sent, ...sent].filter((uid) => claimed.has(uid)));
    try {
      await this.#store(after, epoch, 'whenWorthIt');
      return undefined;
    } catch (error) {
      memory.needsDirectRead = true;
      this.#storePauseMs = askedPauseMs(error);
      return `the ledger could not be updated after the actions: ${messageOf(error)}`;
    }
  }

  #next(decision: GroupDecision, hasProblem: boolean, { sources }: Gathered): NextTurn {
    return nextTurn(this.#memory, {
      decision,
      performed: this.#performed,
      hasProblem,
      isCut: this.#isCut,
      isStale: this.#isStale,
      storePauseMs: this.#storePauseMs,
      // No watch reports when a source that failed can be read again.
      areSourcesKnown: this.#parts.sources.isFollowed(this.#group) && sources.every(({ reference }) => reference !== undefined),
      startedMs: this.#startedMonotonicMs,
      nowMs: this.#parts.env.clock.monotonicMs(),
    });
  }

  #mayAct(): boolean {
    const { leadership, actTimeoutMs, isStopping } = this.#parts;
    return !isStopping() && leadership.mayAct(actTimeoutMs);
  }

  #name(): { readonly namespace: string; readonly group: string } {
    return { namespace: this.#group.namespace, group: this.#group.name };
  }

  /** Returns the snapshot and the decision to report. They contain the writes that the API server rejected in this turn. */
  #reported(): { readonly snapshot: Snapshot; readonly decision: GroupDecision | undefined } {
    if (!this.#performed.some(isRefused)) return { snapshot: this.#snapshot, decision: this.#decision };
    const refusedWrites = this.#memory.refusals.writes(this.#parts.env.clock.monotonicMs());
    const snapshot = { ...this.#snapshot, refusedWrites };
    return { snapshot, decision: decideGroup(snapshot, this.#group) };
  }

  report(error: string | undefined): void {
    const { env, onReport } = this.#parts;
    const { snapshot, decision } = this.#reported();
    const ledger = this.#memory.ledger?.current;
    onReport({
      group: this.#group,
      snapshot,
      performed: this.#performed.map(({ action, result, message }) => ({ action, result, ...(message === undefined ? {} : { message }) })),
      startedMs: this.#startedMs,
      durationMs: env.clock.monotonicMs() - this.#startedMonotonicMs,
      ...defined({ decision, ledger }),
      ...(this.#reactionMs === undefined ? {} : { reactionMs: this.#reactionMs }),
      ...(this.#ledgerConflicts === 0 ? {} : { ledgerConflicts: this.#ledgerConflicts }),
      ...(error === undefined ? {} : { error }),
    });
  }
}
