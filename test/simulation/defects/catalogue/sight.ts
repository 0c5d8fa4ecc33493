// Mistakes in what is seen: caches that go back in time, that never come back, or that are believed when they are old.
import type { Defect, Edit } from '../defect.ts';

const reflector = 'cluster/watch/reflector.ts';
const turn = 'agent/turn/turn.ts';

/** Whoever waits is not looked at past the caches every few minutes. */
export const noWaitingLook: Edit = {
  file: 'agent/turn/gather.ts',
  find: 'export const directReadIntervalMs = 300_000;',
  replace: 'export const directReadIntervalMs = 3_000_000_000;',
};

/** Caches are never behind the group's own writes. */
const noFreshness: Edit = {
  file: 'agent/watched/freshness.ts',
  find: 'return this.#expected.length > 0;',
  replace: 'return this.#expected.length > Number.MAX_SAFE_INTEGER;',
};

/** A snapshot is never too old. */
const noAge: Edit = {
  file: turn,
  find: 'return this.#parts.env.clock.monotonicMs() - asOfMs <= longestSnapshotAgeMs;',
  replace: 'return asOfMs > Number.NEGATIVE_INFINITY || longestSnapshotAgeMs > 0;',
};

/** Nobody looks again before a request. */
export const noLastLook: Edit = {
  file: turn,
  find: 'if (!this.#isRecent(gathered) || isUnknown(gathered.ledger)) return false;',
  replace: 'if (isUnknown(gathered.ledger)) return false;\n    if (this.#group.name !== undefined) return true;',
};

/** What the invariants would say of a view that is not known is not asked. */
const invariantWithoutView: Edit = {
  file: 'engine/invariants/invariants.ts',
  find: 'return [...unread, ...(rolled ? old.map((view) => `the status of ${view.zone.statefulSet} is older than its spec`) : [])];',
  replace: 'return rolled && old.length > 0 ? [] : unread;',
};

export const sightDefects: readonly Defect[] = [
  {
    id: 'stale-snapshot',
    title: 'the caches are believed however old they are, and nobody looks again before a request',
    edits: [noFreshness, noAge, noLastLook],
    breaks: ['S1', 'S2', 'S5', 'S6'],
  },
  {
    id: 'snapshot-of-any-age',
    title: 'a pod is deleted by a snapshot that is older than 10 s',
    edits: [noAge],
    breaks: ['S1', 'S2', 'S5'],
  },
  {
    id: 'no-last-look',
    title: 'what the caches have come to show since the decision does not stop its requests',
    edits: [noLastLook],
    breaks: ['S1', 'S2', 'S5', 'S28'],
  },
  {
    id: 'list-of-the-past',
    title: 'a list of the past is taken in, and what came into being since is lost',
    edits: [
      noWaitingLook,
      { file: reflector, find: 'if (this.#mark.isOlder(listed.resourceVersion)) {', replace: "if (listed.resourceVersion === '') {" },
    ],
    alsoWithout: 'the look past the caches every five minutes at whoever waits',
    breaks: ['S21', 'L8', 'L10', 'L12', 'unfinished'],
  },
  {
    id: 'gone-without-list',
    title: 'after 410 the watch is opened again at the same place instead of a list',
    edits: [
      noWaitingLook,
      {
        file: 'agent/watched/caches.ts',
        find: 'const fewObjectsRelistMs = 300_000;',
        replace: 'const fewObjectsRelistMs = 3_000_000_000;',
      },
      {
        file: reflector,
        find: 'await this.#wait(this.#soon.nextMs());\n      return true;',
        replace: 'await this.#wait(this.#soon.nextMs());\n      return false;',
      },
    ],
    alsoWithout: 'the look past the caches every five minutes at whoever waits',
    breaks: ['L8', 'L9', 'L10', 'L12', 'unfinished'],
  },
  {
    id: 'no-list-without-reason',
    title: 'the list is never compared with the store, so an event that the watch has swallowed is missing for ever',
    edits: [
      noWaitingLook,
      {
        file: reflector,
        find: 'if (env.clock.monotonicMs() - this.#listedMs >=',
        replace: 'if (Number.NEGATIVE_INFINITY - this.#listedMs >=',
      },
    ],
    alsoWithout: 'the look past the caches every five minutes at whoever waits',
    breaks: ['L8', 'L10', 'L12', 'unfinished'],
  },
  {
    id: 'old-status',
    title: 'a status that is older than its spec is believed',
    edits: [
      {
        file: 'engine/rules/roll.ts',
        find: 'set !== undefined && set.status.observedGeneration < set.generation',
        replace: 'set !== undefined && set.status.observedGeneration < 0',
      },
      invariantWithoutView,
    ],
    alsoWithout: 'the invariant S4, which the agent asks once more before each deletion',
    breaks: ['S4', 'S6'],
  },
  {
    id: 'unread-as-read',
    title: 'what cannot be read any more is decided upon as it was last seen',
    edits: [
      {
        file: 'agent/watched/watched.ts',
        find: "return state.reason === 'unreachable' && isUsable ? undefined",
        replace: "return state.reason === 'unreachable' || isUsable ? undefined",
      },
      noAge,
      noLastLook,
    ],
    alsoWithout: 'the limit of a snapshot’s age, and the look before each request',
    breaks: ['S1', 'S2', 'S4', 'S5', 'S6'],
  },
  {
    id: 'silent-watch-is-kept',
    title: 'a watch that says nothing any more is never given up',
    edits: [
      {
        file: 'cluster/watch/watch.ts',
        find: "if (silentMs >= options.idleMs) finish({ kind: 'stalled' });\n      else watchIdle(options.idleMs - silentMs);",
        replace: 'watchIdle(Math.max(1000, options.idleMs - silentMs));',
      },
    ],
    breaks: ['L8', 'L10', 'L12', 'unfinished'],
  },
];
