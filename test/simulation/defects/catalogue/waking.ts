// Mistakes in waiting: what is not woken, what never sleeps, and what is left behind.
import type { Defect, Edit } from '../defect.ts';
import { noWaitingLook } from './sight.ts';

const loop = 'agent/loop.ts';

/** Nobody notices that the wall clock was set. */
const noClockLook: Edit = {
  file: loop,
  find: 'if (hasJumped) this.wakeAll();',
  replace: '',
};

export const wakingDefects: readonly Defect[] = [
  {
    id: 'wake-up-lost',
    title: 'an event that comes while the group has its turn is forgotten',
    edits: [
      noWaitingLook,
      {
        file: loop,
        find: 'group.askedMs ??= this.#options.clock.monotonicMs();\n    if (!group.isRunning) this.#request(key, group);',
        replace: 'if (group.isRunning) return;\n    group.askedMs ??= this.#options.clock.monotonicMs();\n    this.#request(key, group);',
      },
    ],
    alsoWithout: 'the turns of idle groups every five minutes',
    breaks: ['L10', 'L12', 'L2', 'unfinished'],
  },
  {
    id: 'long-timer-trusted',
    title: 'one long timer is trusted to end when the wall clock says so',
    edits: [
      noWaitingLook,
      noClockLook,
      {
        file: loop,
        find: 'group.cancelTimer = timers.after(Math.max(0, Math.min(dueInMs, longestSleepMs)), () => {',
        replace: 'group.cancelTimer = timers.after(Math.max(0, dueInMs + 0 * longestSleepMs), () => {',
      },
    ],
    alsoWithout: 'the looks at the clocks every minute, and past the caches every five minutes',
    breaks: ['L10', 'L12', 'L2', 'unfinished'],
  },
  {
    id: 'never-looks-again',
    title: 'the group is not looked at again at the instant that its decision names',
    edits: [
      noWaitingLook,
      { file: loop, find: 'group.wakeAtMs = wakeAtMs;', replace: 'group.wakeAtMs = never;' },
      { file: loop, find: 'group.wakeAtMs = Math.min(wakeAtMs,', replace: 'group.wakeAtMs = Math.max(wakeAtMs, never,' },
    ],
    alsoWithout: 'the look past the caches every five minutes at whoever waits',
    breaks: ['L10', 'L12', 'L2', 'unfinished'],
  },
  {
    id: 'waits-for-itself',
    title: 'the group waits for ever for its caches to show what it has written',
    edits: [
      {
        file: 'agent/turn/gather.ts',
        find: 'if (nowMs - memory.behindSinceMs < longestWaitMs) return true;',
        replace: 'if (nowMs >= memory.behindSinceMs) return true;',
      },
    ],
    breaks: ['L10', 'L12', 'L2', 'unfinished'],
  },
  {
    id: 'published-every-turn',
    title: 'the group has a turn every second and publishes each decision, also when it says the same',
    edits: [
      {
        file: loop,
        find: 'group.dueAtMs = Math.min(nowMs + nextTurnInMs,',
        replace: 'group.dueAtMs = Math.min(nowMs + Math.min(nextTurnInMs, 1000),',
      },
      {
        file: 'agent/published/publisher.ts',
        find: 'if (!isSame || known.lastFields !== fieldsText(report)) this.#queue.queueWrite(key);',
        replace: 'this.#queue.queueWrite(key);',
      },
      {
        file: 'agent/published/publisher.ts',
        find: 'if (stored.decision !== undefined && (isSame(stored.decision) || this.#isSuperseded(stored.decision))) {',
        replace: 'if (stored.decision !== undefined && this.#isSuperseded(stored.decision)) {',
      },
    ],
    breaks: ['L10', 'L12', 'L2', 'unfinished'],
  },
  {
    id: 'timer-left-behind',
    title: 'an agent that has stopped leaves a timer behind',
    edits: [{ file: 'cluster/env.ts', find: 'timeout.abort();', replace: '' }],
    breaks: ['unfinished'],
  },
  {
    id: 'watch-left-behind',
    title: 'an agent that has stopped leaves its watches open',
    edits: [{ file: 'agent/agent.ts', find: 'this.#pinWebhook, this.#caches]', replace: 'this.#pinWebhook]' }],
    breaks: ['unfinished'],
  },
  {
    id: 'waits-without-a-pause',
    title: 'a group that waits is looked at again twenty times a second',
    edits: [
      {
        file: 'agent/turn/next-turn.ts',
        find: 'directReadIntervalMs,\n    delayAfter(',
        replace: 'memory.isWaiting ? 50 : undefined,\n    delayAfter(',
      },
    ],
    breaks: ['L13'],
  },
  {
    id: 'no-pause-after-failure',
    title: 'a turn that failed is tried again at once, and again',
    edits: [
      {
        file: 'agent/loop.ts',
        find: 'const pauseMs = Math.max(retry.afterMs ?? 0, grownMs);',
        replace: 'const pauseMs = 0 * grownMs;',
      },
    ],
    breaks: ['L13'],
  },
];
