// Remembers the writes that the API server rejected, with a growing pause before each is repeated: each attempt writes a claim to the ledger.
import { writeOf } from '../../engine/rules/refused-write.ts';
import type { RefusedWrite } from '../../engine/snapshot.ts';
import type { AgentEnv, LogFields } from '../env.ts';
import type { Outcome } from './perform.ts';

const firstPauseMs = 5_000;
/** The pause after the second conflict in a row: another client changed the object twice, and the API server rejects nothing. */
const conflictPauseMs = 250;
/** The longest pause. It is short enough for a person who has removed the cause and waits. */
const longestPauseMs = 60_000;

interface Refusal {
  readonly message: string;
  readonly pauseMs: number;
  /** The end of the pause (monotonic). */
  readonly untilMs: number;
  /** Absent for the patch that revokes the deletion of a pod, because no decision contains it. */
  readonly write?: RefusedWrite;
}

interface RefusalPorts {
  readonly clock: AgentEnv['clock'];
  readonly warn: (message: string, fields: LogFields) => void;
}

/**
 * Returns whether the write waits until it is repeated: the API server rejected it, or a change of replicas did not succeed. The decision
 * itself knows when calls to pods and evictions that a budget denied are repeated.
 */
export function isRefused({ action, result, status }: Outcome): boolean {
  if (action.kind === 'callPods' || (action.kind === 'evictPod' && status === 429)) return false;
  if (action.kind === 'scaleStatefulSet') return result !== 'done';
  return result === 'refused' || result === 'conflict';
}

/** The rejected writes of one group. Each is logged when it is new and when its message changes. */
export class Refusals {
  readonly #refusals = new Map<string, Refusal>();

  /** Notes the outcome of an action. The first conflict in a row causes no pause, because the object is read again. */
  note(outcome: Outcome, ports: RefusalPorts): void {
    const write = writeOf(outcome.action);
    if (write === undefined) return;
    const key = `${write.kind} ${write.namespace}/${write.target}`;
    if (outcome.result === 'done') this.#refusals.delete(key);
    if (!isRefused(outcome)) return;
    const { message = '', retryAfterMs = 0 } = outcome;
    const isFirst = !this.#refusals.has(key);
    const firstMs = outcome.result === 'conflict' ? (isFirst ? 0 : conflictPauseMs) : firstPauseMs;
    const refusal = this.#next(key, message, firstMs, ports);
    const pauseMs = Math.max(refusal.pauseMs, retryAfterMs);
    const untilMs = Math.floor(ports.clock.nowMs()) + pauseMs;
    this.#refusals.set(key, { ...refusal, untilMs: ports.clock.monotonicMs() + pauseMs, write: { ...write, message, untilMs } });
  }

  /** Notes whether pods may be patched to revoke their deletion. `message` is the answer if they may not. */
  noteTouch(message: string | undefined, ports: RefusalPorts): void {
    if (message === undefined) this.#refusals.delete('touchPod');
    else this.#refusals.set('touchPod', this.#next('touchPod', message, firstPauseMs, ports));
  }

  mayTouch(nowMs: number): boolean {
    return (this.#refusals.get('touchPod')?.untilMs ?? nowMs) <= nowMs;
  }

  /** Returns the writes that must not be repeated yet. */
  writes(nowMs: number): readonly RefusedWrite[] {
    // A rejection that is not repeated soon after its pause does not make the pause of a later one longer.
    for (const [key, { untilMs }] of this.#refusals) if (nowMs - untilMs > longestPauseMs) this.#refusals.delete(key);
    return [...this.#refusals.values()].flatMap(({ write, untilMs }) => (write !== undefined && untilMs > nowMs ? [write] : []));
  }

  /** Returns when each pause ends (monotonic). */
  endsMs(): readonly number[] {
    return [...this.#refusals.values()].flatMap(({ pauseMs, untilMs }) => (pauseMs > 0 ? [untilMs] : []));
  }

  #next(key: string, message: string, firstMs: number, { clock, warn }: RefusalPorts): Refusal {
    const before = this.#refusals.get(key);
    if (before?.message !== message) warn('API server rejects a write', { write: key, problem: message });
    const pauseMs = before === undefined ? firstMs : Math.min(longestPauseMs, Math.max(firstMs, before.pauseMs * 2));
    return { message, pauseMs, untilMs: clock.monotonicMs() + pauseMs };
  }
}
