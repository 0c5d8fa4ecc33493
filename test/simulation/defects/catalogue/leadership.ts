// Mistakes about who may act, and until when.
import type { Defect, Edit } from '../defect.ts';

const leadership = 'agent/leadership.ts';
const lease = 'cluster/lease/lease.ts';
const clock = 'cluster/lease/lease-clock.ts';

/** The time of a request is no part of what is left of the Lease. */
const noMargin: Edit = {
  file: clock,
  find: 'return requestTimeoutMs < this.leftMs();',
  replace: 'return requestTimeoutMs >= 0 && this.leftMs() > 0;',
};

const alwaysMayAct: readonly Edit[] = [
  {
    file: leadership,
    find: 'return !this.#isOver && (this.#isAlone || this.#lease?.mayAct(timeoutMs) === true);',
    replace: 'return !this.#isOver && timeoutMs >= 0;',
  },
  {
    file: leadership,
    find: 'return this.#isOver ? 0 : this.#isAlone ? Number.POSITIVE_INFINITY : (this.#lease?.leftMs() ?? 0);',
    replace: 'return this.#isOver ? 0 : Number.POSITIVE_INFINITY;',
  },
];

export const leadershipDefects: readonly Defect[] = [
  {
    id: 'lease-not-asked',
    title: 'nobody asks before a request whether the Lease still holds',
    edits: alwaysMayAct,
    breaks: ['S17'],
  },
  {
    id: 'ledger-written-without-lease',
    title: 'the ledger is written whether or not the Lease still holds',
    edits: [
      {
        file: 'agent/agent.ts',
        find: 'mayWrite: () => this.#leadership.mayAct(this.#actTimeoutMs),',
        replace: 'mayWrite: () => this.#actTimeoutMs > 0,',
      },
      {
        file: 'agent/turn/turn.ts',
        find: 'if (this.#parts.leadership.leftMs() <= 0) throw new Error(',
        replace: 'if (this.#startedMs < 0) throw new Error(',
      },
    ],
    alsoWithout: 'the question after everything was read, whether another process may lead by now',
    breaks: ['S17'],
  },
  {
    id: 'lease-from-the-reply',
    title: 'the Lease is counted from the answer to its renewal instead of from the question',
    edits: [{ file: clock, find: 'this.#renewal = sent;', replace: 'this.#renewal = { ...sent, sentMs: this.#nowMs() };' }, noMargin],
    alsoWithout: 'the time of a request, which is subtracted from what is left of the Lease',
    breaks: ['S17'],
  },
  {
    id: 'lease-taken-before-its-end',
    title: 'a Lease is taken before its holder has had its time',
    edits: [
      {
        file: lease,
        find: 'if (this.#isEnded || (this.#isForeign() && nowMs < this.#expiresMs())) return;',
        replace: 'if (this.#isEnded || (this.#isForeign() && nowMs < 0)) return;',
      },
    ],
    breaks: ['L2', 'S17', 'S18', 'unfinished'],
  },
];
