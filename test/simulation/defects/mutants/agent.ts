// Lists mutants of the agent: of turns, the loop, calls to pods, caches and published decisions.
import { anyEvent, type Mutant, mutantsOf, prepares } from './mutant.ts';

export const agentMutants: readonly Mutant[] = [
  ...mutantsOf('agent/turn/turn.ts', [
    [
      'unanswered-request-counts-as-unsent',
      'a request without an answer counts as not sent',
      "const sent = outcomes.flatMap(({ action }) => ('uid' in action ? [action.uid] : []));",
      'const sent = done;',
    ],
    [
      'available-by-time-unproven',
      'a pod that became available by time counts as available although its cache is older',
      'return this.#isRecent(gathered) && (lastMs === undefined || lastMs <= snapshot.nowMs - ageMs);',
      'return this.#isRecent(gathered);',
      ({ group }) => group.minReadySeconds > 0,
    ],
    [
      'conflict-without-direct-read',
      'after a conflict, the next turn decides by the same caches',
      "outcome.result === 'unknown' || isConflict(outcome));",
      "outcome.result === 'unknown');",
    ],
  ]),
  ...mutantsOf('agent/turn/gather.ts', [
    [
      'snapshot-dated-now',
      'a snapshot from the caches counts as of now',
      'fresh === undefined ? env.clock.monotonicMs() - caches.ageMs(group.namespace) : askedMs;',
      'fresh === undefined ? env.clock.monotonicMs() : askedMs;',
    ],
    ['direct-read-forgotten', 'after a direct read, an older cache is used again', '  memory.freshness.expect(fresh.read);\n', ''],
    [
      'waiting-group-never-read',
      'a waiting group is not read directly every five minutes',
      'const isFresh = memory.needsDirectRead || isDue;',
      'const isFresh = memory.needsDirectRead;',
    ],
  ]),
  ...mutantsOf('agent/turn/next-turn.ts', [
    [
      'answers-start-no-turn',
      'the answers of pods start no turn',
      "  if (outcomes.some(({ answers = [] }) => answers.some(({ result }) => result === 'done'))) return 0;\n  if (outcomes.some(({ action, answers = [] }) => asksToPrepare(action) && answers.length > 0)) return 0;\n",
      '',
      prepares,
    ],
  ]),
  ...mutantsOf('agent/turn/perform.ts', [
    [
      'deleted-object-counts-as-refusal',
      'the answer 404 counts as a refusal instead of a conflict',
      '!isDenied && (status === 404 || status === 409',
      '!isDenied && (status === 409',
    ],
    [
      'calls-at-other-endpoint',
      'a delayed scale-down calls the endpoint of the preparation',
      "(action.call === 'delayed' ? zone?.delayed : zone?.prepare)?.endpoint;",
      "(action.call === 'delayed' ? zone?.prepare : zone?.delayed)?.endpoint;",
      prepares,
    ],
    [
      'scale-down-not-destructive',
      'a scale-down does not count as destructive',
      "(action.kind === 'scaleStatefulSet' && action.to < action.from);",
      "(action.kind === 'scaleStatefulSet' && action.to > action.from);",
      anyEvent('setReplicas'),
    ],
  ]),
  ...mutantsOf('agent/turn/pod-calls.ts', [
    [
      'error-counts-as-prepared',
      'an error answer of a pod counts as its preparation',
      'if (status < 200 || status > 299) return failed(`it answered ${status}`);',
      'if (status < 200 || status > 599) return failed(`it answered ${status}`);',
      prepares,
    ],
  ]),
  ...mutantsOf('agent/loop.ts', [
    [
      'pause-not-shortened',
      'an event does not shorten the pause after failed turns',
      'Math.max(retry.afterMs ?? 0, Math.min(retryMs, pauseMs));',
      'Math.max(retry.afterMs ?? 0, Math.max(retryMs, pauseMs));',
    ],
  ]),
  ...mutantsOf('agent/watched/caches.ts', [
    [
      'age-of-younger-cache',
      'the age of a snapshot is that of its younger cache',
      'Math.max(statefulSets.ageMs(namespace), pods.ageMs(namespace))',
      'Math.min(statefulSets.ageMs(namespace), pods.ageMs(namespace))',
    ],
  ]),
  ...mutantsOf('agent/wake-index.ts', [
    [
      'requests-wake-no-group',
      'a request of a person wakes no group',
      'const policiesText = canonicalJson([digest, intents]);',
      'const policiesText = canonicalJson([digest]);',
    ],
  ]),
  ...mutantsOf('agent/published/publisher.ts', [
    [
      'published-state-believed-during-write',
      'a decision is compared with the last published one while a write is in flight',
      '    known.last = undefined;\n',
      '',
    ],
  ]),
  ...mutantsOf('agent/loop.ts', [
    [
      'wake-time-forgotten',
      'a turn without a result drops the time that the turn before named',
      'group.wakeAtMs = Math.min(wakeAtMs, isInconclusive ? ifAfter(clock.nowMs(), group.wakeAtMs) : never);',
      'group.wakeAtMs = wakeAtMs;',
    ],
    [
      'event-during-turn-lost',
      'an event during a turn causes no further turn',
      '    if (group.askedMs !== undefined) this.#request(key, group);\n',
      '',
    ],
  ]),
  ...mutantsOf('agent/turn/turn.ts', [
    [
      'acts-after-revocation',
      'a turn acts on pods that it has just patched',
      'if (await this.#revoke(gathered, ledger)) return inconclusive(longestWaitMs);',
      'await this.#revoke(gathered, ledger);',
    ],
    [
      'terms-not-compared',
      'a decision stays valid although policies or requests changed',
      'return termsOf(seen, this.#group) === termsOf(snapshot, this.#group);',
      'return true;',
    ],
  ]),
  ...mutantsOf('agent/turn/ledger-changes.ts', [
    [
      'earlier-claim-dropped',
      'the claim of an earlier request is dropped after a repeated request had no effect',
      'return undone.has(key) ? (earlier.get(key) ?? []) : [claim];',
      'return undone.has(key) ? [] : [claim];',
    ],
  ]),
  ...mutantsOf('agent/wake-index.ts', [
    [
      'budget-wakes-no-group',
      'a changed budget wakes no group',
      'return [...this.#groups].filter(([, group]) => group.namespace === change.namespace).map(([key]) => key);',
      'return [];',
      ({ group }) => group.rotateBy === 'evict' || group.zoneBudget !== undefined,
    ],
  ]),
  ...mutantsOf('agent/turn/pod-calls.ts', [
    [
      'refusal-counts-as-prepared',
      'a pod that denies a preparation counts as prepared',
      'if (status < 200 || status > 299) return failed',
      'if (status < 200 || status > 499) return failed',
      prepares,
    ],
  ]),
  ...mutantsOf('agent/watched/freshness.ts', [
    [
      'older-cache-is-fresh',
      'a cache with an older state of a written object counts as current',
      '(compareResourceVersions(cached.resourceVersion, resourceVersion) ?? 0) > 0;',
      '(compareResourceVersions(cached.resourceVersion, resourceVersion) ?? 0) !== 0;',
    ],
  ]),
];
