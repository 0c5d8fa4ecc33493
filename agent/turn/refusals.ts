// Puts growing pauses between retries of forbidden actions, because each attempt writes a claim to the ledger.
import type { Action } from '../../engine/decision.ts';
import type { LogFields } from '../env.ts';

/** An action with its own permission. */
type Verb = Exclude<Action['kind'], 'callPods'> | 'touchPod';

const firstPauseMs = 5_000;
/** The longest pause. It is short enough for a person who has granted the permission and waits. */
const longestPauseMs = 60_000;

interface Refusal {
  readonly message: string;
  readonly pauseMs: number;
  /** The end of the pause (monotonic). */
  readonly untilMs: number;
}

export interface RefusalPorts {
  /** Returns the current time (monotonic). */
  readonly nowMs: () => number;
  readonly warn: (message: string, fields: LogFields) => void;
}

/** The forbidden actions of one group. Each is logged when it is new and when its message changes. */
export class Refusals {
  readonly #refusals = new Map<Verb, Refusal>();

  isTooSoon(verb: Verb, nowMs: number): boolean {
    return (this.#refusals.get(verb)?.untilMs ?? nowMs) > nowMs;
  }

  refused(verb: Verb, message: string, { nowMs, warn }: RefusalPorts): void {
    const before = this.#refusals.get(verb);
    const pauseMs = before === undefined ? firstPauseMs : Math.min(longestPauseMs, before.pauseMs * 2);
    this.#refusals.set(verb, { message, pauseMs, untilMs: nowMs() + pauseMs });
    if (before?.message !== message) warn('API server forbids an action', { verb, problem: message });
  }

  /** Returns the last answer to the action; empty if it is not forbidden. */
  answerTo(verb: Verb): string {
    return this.#refusals.get(verb)?.message ?? '';
  }

  permitted(verb: Verb): void {
    this.#refusals.delete(verb);
  }

  /** Returns the milliseconds until the first of the verbs may be retried; undefined if no verb must wait. */
  nextInMs(verbs: readonly Verb[], nowMs: number): number | undefined {
    const pauses = verbs.flatMap((verb) => this.#refusals.get(verb)?.untilMs ?? []).map((untilMs) => untilMs - nowMs);
    const left = pauses.filter((pauseMs) => pauseMs > 0);
    return left.length === 0 ? undefined : Math.min(...left);
  }
}
