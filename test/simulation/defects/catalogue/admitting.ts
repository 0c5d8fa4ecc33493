// Mistakes in admission: requests of others pass although the agent, or another webhook, disrupts pods already.
import type { Defect } from '../defect.ts';

const queue = 'webhook/native/group-queue.ts';
const enforce = 'webhook/native/enforce.ts';
const checks = 'engine/judge/checks.ts';
const disruption = 'engine/disruption/disruption.ts';

export const admittingDefects: readonly Defect[] = [
  {
    id: 'broken-template-stays',
    title: 'the webhook denies the template that repairs a zone whose pods are all updated',
    edits: [
      {
        file: 'engine/rules/strategy.ts',
        find: '  return members.some((pod) => !pod.isTerminating && !pod.isReady && !surplus.includes(pod));',
        replace: '  return members.some((pod) => surplus.includes(pod) && available.has(-1));',
      },
    ],
    breaks: ['unfinished'],
  },
  {
    id: 'admission-misses-a-new-group',
    title: 'the webhook trusts a silent watch for two minutes',
    edits: [{ file: 'agent/admission/guard.ts', find: 'const longestSilenceMs = 10_000;', replace: 'const longestSilenceMs = 120_000;' }],
    breaks: ['S30'],
  },
  {
    id: 'admitted-claim-not-stored',
    title: 'the webhook answers without the claim of the admitted request in the ledger',
    edits: [{ file: queue, find: 'const next = reserve(ledger, claims);', replace: 'const next = reserve(ledger, claims.slice(0, 0));' }],
    breaks: ['S19', 'S30', 'S1', 'S2', 'S3', 'S9'],
  },
  {
    id: 'admission-ignores-claims',
    title: 'the webhook does not count announced disruptions that are not visible yet',
    edits: [
      {
        file: checks,
        find: 'const claims = group === undefined ? [] : announcedPods(snapshot, group);',
        replace: 'const claims = group === undefined ? [] : announcedPods(snapshot, group).slice(0, 0);',
      },
    ],
    breaks: ['S30'],
  },
  {
    id: 'one-more-pod-may-be-evicted',
    title: 'the budget of a zone allows one more pod than its limit',
    edits: [
      {
        file: disruption,
        find: 'if (unavailable >= limit) return denied(count, span);',
        replace: 'if (unavailable > limit) return denied(count, span);',
      },
    ],
    breaks: ['S30'],
  },
  {
    id: 'other-zones-may-be-unready',
    title: 'the budget of a zone does not count the unready pods of other zones',
    edits: [
      {
        file: disruption,
        find: 'if (count.notReady + count.unknown > 0) return denied(count, member.name);',
        replace: 'if (count.notReady + count.unknown > 1_000) return denied(count, member.name);',
      },
    ],
    breaks: ['S30'],
  },
  {
    id: 'missing-pods-may-be-more',
    title: 'the budget counts only the pods that exist',
    edits: [
      {
        file: disruption,
        find: 'const unknown = Math.max(0, Math.max(set.replicas, set.status.replicas) - pods.length);',
        replace: 'const unknown = Math.min(0, Math.max(set.replicas, set.status.replicas) - pods.length);',
      },
    ],
    breaks: ['S30'],
  },
  {
    id: 'unread-pod-passes',
    title: 'the eviction of a pod that cannot be read passes',
    edits: [
      {
        file: enforce,
        find: 'return await this.#whenUnread(target, { statefulSet: statefulSetInName(name), problem: live.unknown }, call);',
        replace: "return 'passes';",
      },
    ],
    breaks: ['S31'],
  },
  {
    id: 'failed-eviction-passes',
    title: 'an eviction that cannot be judged passes like a deletion',
    edits: [
      {
        file: 'engine/judge/judge.ts',
        find: "return verb === 'deletePod' || onlyGrows",
        replace: "return verb === 'deletePod' || verb === 'evictPod' || onlyGrows",
      },
    ],
    breaks: ['S31'],
  },
];
