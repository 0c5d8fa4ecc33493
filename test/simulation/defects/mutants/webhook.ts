// Lists mutants of the webhooks: of their queue, guard, reads, judgements, and of the revision of a new pod.
import { anyOf, type Mutant, mutantsOf } from './mutant.ts';

const admitted = anyOf('budget for disruptions by others');
const pinned = anyOf('strategy pinned');

export const webhookMutants: readonly Mutant[] = [
  ...mutantsOf('webhook/native/group-queue.ts', [
    [
      'batch-forgets-claims',
      'requests that are decided together do not see the claims of each other',
      'decided.next === undefined) pending.resolve(decided.answer);\n      else {\n        ledger = decided.next;',
      'decided.next === undefined) pending.resolve(decided.answer);\n      else {',
      admitted,
    ],
    [
      'admitted-without-stored-claim',
      'a request passes although its claim could not be stored',
      '        if (hasClaims) pending.reject(error);\n        else pending.resolve(answer);',
      '        if (hasClaims) pending.resolve(answer);\n        else pending.resolve(answer);',
      admitted,
    ],
  ]),
  ...mutantsOf('agent/admission/guard.ts', [
    [
      'claims-judged-by-caches',
      'requests are judged by the caches although claims are open',
      'known.length > 0 && (hasClaims || caches.ageMs(namespace) > longestSilenceMs);',
      'known.length > 0 && caches.ageMs(namespace) > longestSilenceMs;',
      admitted,
    ],
    [
      'old-caches-judge',
      'requests are judged although the caches lack the latest policies and requests',
      'if (!(await this.#areCachesCurrent(namespace, fresh, timeoutMs))) return undefined;',
      'await this.#areCachesCurrent(namespace, fresh, timeoutMs);',
      admitted,
    ],
  ]),
  ...mutantsOf('engine/judge/admission-claims.ts', [
    [
      'claim-of-any-pod',
      'a claim on one pod counts as the claim on another pod',
      'return a.verb === b.verb && a.uid === b.uid && a.to === b.to;',
      'return a.verb === b.verb && a.to === b.to;',
      admitted,
    ],
    [
      'old-grant-counts',
      'a request that was allowed earlier is allowed again while its claim is open',
      'if (known === undefined || Math.abs(snapshot.nowMs - known.atMs) <= repeatMs) return [];',
      'if (known === undefined || Math.abs(snapshot.nowMs - known.atMs) >= repeatMs) return [];',
      admitted,
    ],
  ]),
  ...mutantsOf('engine/judge/checks.ts', [
    [
      'deletion-without-budget',
      'the disruption budget does not apply to the deletion of a pod',
      'if (!isEviction && group.disruption === undefined) return guard;',
      'if (!isEviction || group.disruption === undefined) return guard;',
      admitted,
    ],
  ]),
  ...mutantsOf('engine/disruption/disruption.ts', [
    [
      'missing-pods-outside-budget',
      'a missing pod does not count against the disruption budget',
      'const unknown = Math.max(0, Math.max(set.replicas, set.status.replicas) - pods.length);',
      'const unknown = 0;',
      admitted,
    ],
    [
      'claims-count-too-briefly',
      'an open claim counts against the budget for 12 s',
      'const claimMs = 120_000;',
      'const claimMs = 12_000;',
      admitted,
    ],
    [
      'own-zone-not-counted',
      'the budget of a zone counts only pods that terminate',
      'const sinceMs = readyFromMs(pod, set, test, snapshot.nowMs);',
      'const sinceMs = pod.isTerminating ? undefined : 0;',
      admitted,
    ],
  ]),
  ...mutantsOf('engine/strategies/pinned/placement.ts', [
    [
      'pin-of-other-zone',
      'a new pod gets the pin of the same ordinal in another zone',
      'pins.find((one) => one.zone === zone && one.ordinal === ordinal)?.revision;',
      'pins.find((one) => one.ordinal === ordinal)?.revision;',
      pinned,
    ],
    [
      'new-pod-at-failed-revision',
      'a new pod without a pin keeps the revision that was rolled back',
      'return restoredRevision(run, zone, updateRevision) ?? restoredRevision(run, zone, revision) ?? revision;',
      'return revision;',
      pinned,
    ],
    [
      'pinned-pod-keeps-label',
      'a pinned pod keeps the label of the revision from which it was made',
      'labels: { ...labels, [revisionLabel]: revision },',
      'labels: { [revisionLabel]: revision, ...labels },',
      pinned,
    ],
  ]),
  ...mutantsOf('webhook/native/group-queue.ts', [
    [
      'conflict-counts-as-stored',
      'a request passes although another writer changed the ledger first',
      '    if (!isStored) return reserved;\n',
      '',
      admitted,
    ],
    [
      'late-request-claims',
      'a request whose deadline has passed gets a claim',
      'const inTime = this.#inTime(batch);',
      'const inTime = batch;',
      admitted,
    ],
  ]),
  ...mutantsOf('engine/strategies/pinned/placement.ts', [
    [
      'pin-of-any-zone',
      'a new pod gets the pin of the same ordinal in another zone',
      'pins.find((one) => one.zone === zone && one.ordinal === ordinal)',
      'pins.find((one) => one.ordinal === ordinal)',
      pinned,
    ],
  ]),
];
