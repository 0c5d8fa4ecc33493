// Lists mutants of the cluster layer: of watches, shared objects, the Lease and requests.
import { anyEvent, type Mutant, mutantsOf } from './mutant.ts';

export const clusterMutants: readonly Mutant[] = [
  ...mutantsOf('cluster/watch/store.ts', [
    [
      'list-removes-nothing',
      'objects that a new list lacks stay in the cache',
      '[...gone.flatMap(({ namespace, name }) => this.remove(namespace, name)), ...entries.flatMap(',
      '[...gone.flatMap(() => []), ...entries.flatMap(',
      anyEvent('frontEndRestarts'),
    ],
  ]),
  ...mutantsOf('cluster/watch/reflector.ts', [
    [
      'list-version-not-recorded',
      'the version of a list is not recorded, so the watch starts at an older version',
      '    const changes = this.#entries.replace(items);\n    this.#mark.raise(resourceVersion);\n',
      '    const changes = this.#entries.replace(items);\n',
      anyEvent('frontEndRestarts'),
    ],
    [
      'certain-as-of-newest-event',
      'a cache counts as complete up to its newest event, although earlier events may be late',
      'this.#certainMs = Math.max(this.#certainMs, this.#newestMs);',
      'this.#certainMs = nowMs;',
    ],
    [
      'list-dated-at-answer',
      'a list counts as of its answer instead of its request',
      'this.#contact.recordList(askedMs);',
      'this.#contact.recordList(this.#options.env.clock.monotonicMs());',
    ],
    [
      'requested-list-not-made',
      'a requested list is never made',
      'if (this.#stopped.signal.aborted || this.#needsList) return;',
      'if (this.#stopped.signal.aborted) return;',
    ],
    [
      'slow-retry-after-network-failure',
      'a watch waits up to five minutes after a network failure',
      "reason === 'unreachable' ? this.#soon.nextMs() : this.#slow.nextMs();",
      "reason !== 'unreachable' ? this.#soon.nextMs() : this.#slow.nextMs();",
      anyEvent('cutOff'),
    ],
    ['silent-watch-kept', 'a silent watch stays open for 15 minutes', 'const idleMs = 90_000;', 'const idleMs = 900_000;'],
    [
      'deletions-wake-nothing',
      'the deletion of an object is not reported',
      "line.kind === 'gone' ? this.#entries.remove(namespace, name) : this.#entries.put(this.#entryOf(line.object));\n    for (const change of changes) this.#notify(change);",
      "line.kind === 'gone' ? this.#entries.remove(namespace, name) : this.#entries.put(this.#entryOf(line.object));\n    for (const change of changes) if (change.kind !== 'deleted') this.#notify(change);",
      anyEvent('resume'),
    ],
  ]),
  ...mutantsOf('cluster/request/failure.ts', [
    [
      'retry-after-in-milliseconds',
      'Retry-After is read as milliseconds',
      'Math.min(seconds * 1000, 120_000)',
      'Math.min(seconds, 120_000)',
    ],
  ]),
  ...mutantsOf('cluster/shared/shared-object.ts', [
    [
      'conflict-retried-with-old-object',
      'a write is retried with the same object after a conflict',
      '        plan = undefined;\n        if (',
      '        if (',
    ],
  ]),
  ...mutantsOf('cluster/lease/lease.ts', [
    [
      'renewal-not-dated',
      'a renewal of the Lease keeps the time of the renewal before',
      '    renewTime: now,\n',
      "    renewTime: isRenewal ? (spec['renewTime'] ?? now) : now,\n",
    ],
    [
      'lease-taken-early',
      'a process takes the Lease of another process half its duration after the last renewal',
      'return this.#observedMs + Math.max(this.#options.durationMs, this.#record?.durationMs ?? 0);',
      'return this.#observedMs + Math.max(this.#options.durationMs, this.#record?.durationMs ?? 0) / 2;',
    ],
  ]),
  ...mutantsOf('cluster/lease/lease-clock.ts', [
    [
      'doubt-forgotten',
      'a renewal of the Lease ends a doubt that arose after the renewal was sent',
      'this.#isInDoubt = this.#doubts !== sent.doubts;',
      'this.#isInDoubt = false;',
    ],
  ]),
  ...mutantsOf('cluster/lease/lease.ts', [
    [
      'epoch-of-new-holder-unchanged',
      'a new holder of the Lease keeps the epoch of the holder before',
      '      : known + 1;',
      '      : Math.max(1, known);',
    ],
  ]),
  ...mutantsOf('cluster/watch/store.ts', [
    [
      'relist-keeps-deleted-objects',
      'objects that a new list does not contain stay in the cache',
      'listed.has(`${namespace}/${name}`));',
      'listed.has(`${namespace}/${name}`) && name === namespace);',
    ],
  ]),
];
