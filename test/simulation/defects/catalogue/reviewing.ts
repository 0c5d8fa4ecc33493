// Mistakes in what the API server sends to webhooks, and in what they answer about StatefulSets and requests of people.
import type { Defect } from '../defect.ts';

const conditions = 'install/conditions.ts';
const enforce = 'webhook/native/enforce.ts';
const scale = 'engine/rules/scale.ts';
const eviction = 'webhook/compat/eviction/pod-eviction.ts';
const checks = 'engine/judge/judge.ts';

export const reviewingDefects: readonly Defect[] = [
  {
    id: 'agent-asks-its-own-webhook',
    title: 'the API server sends the requests of the agent to its own webhook',
    edits: [
      {
        file: conditions,
        find: "expression: `request.userInfo.username != 'system:serviceaccount:${namespace}:${agentName}'`,",
        replace: "expression: `request.userInfo.username != 'system:serviceaccount:${namespace}:agent'`,",
      },
    ],
    breaks: ['S32'],
  },
  {
    id: 'controllers-ask-the-webhook',
    title: 'the API server sends the deletions of the StatefulSet controller to the webhook',
    edits: [
      {
        file: conditions,
        find: "!request.userInfo.username.startsWith('system:serviceaccount:kube-system:') && !(",
        replace: "!request.userInfo.username.startsWith('system:serviceaccounts:kube-system:') && !(",
      },
    ],
    breaks: ['S32'],
  },
  {
    id: 'stamp-changes-its-own-stamp',
    title: 'a second call for the same request replaces the time of the stamp',
    edits: [
      {
        file: 'webhook/native/stamp-endpoint.ts',
        find: 'return !isStoredStamp && isStampOf(spec[stampField], review.user, nowMs) ? spec[stampField] : now;',
        replace: 'return !isStoredStamp && isStampOf(spec[stampField], review.user, nowMs + 60_000) ? spec[stampField] : now;',
      },
    ],
    breaks: ['S33', 'unfinished'],
  },
  {
    id: 'stamp-tests-nothing',
    title: 'the patch of a new stamp does not test the object first',
    edits: [
      {
        file: 'webhook/native/stamp-endpoint.ts',
        find: "      { op: 'test', path: '/kind', value: object['kind'] },\n",
        replace: '',
      },
    ],
    breaks: ['S33'],
  },
  {
    id: 'others-shrink-despite-unready-zones',
    title: 'a decrease by others may begin while pods of another zone are not ready',
    edits: [
      {
        file: scale,
        find: "{ id: 'other-zones-ready', evaluate: otherZonesReady }",
        replace: "{ id: 'other-zones-ready', evaluate: (question) => (question.asker === 'admission' ? [] : otherZonesReady(question)) }",
      },
      {
        file: scale,
        find: "{ id: 'rollout-in-progress', evaluate: rolloutOver }",
        replace: "{ id: 'rollout-in-progress', evaluate: (question) => (question.asker === 'admission' ? [] : rolloutOver(question)) }",
      },
    ],
    alsoWithout: 'a rollout blocks a decrease, and unready pods are mostly pods of a rollout',
    breaks: ['S30'],
  },
  {
    id: 'failed-decrease-passes',
    title: 'a decrease that cannot be judged passes like an increase',
    edits: [
      {
        file: checks,
        find: "return verb === 'deletePod' || onlyGrows",
        replace: "return verb === 'deletePod' || verb === 'scale' || onlyGrows",
      },
    ],
    breaks: ['S31'],
  },
  {
    id: 'unread-statefulset-passes',
    title: 'a change of a StatefulSet that cannot be read passes',
    edits: [
      {
        file: enforce,
        find: 'return await this.#whenUnread(target, { statefulSet: name, problem: live.unknown }, call);',
        replace: "return 'passes';",
      },
    ],
    breaks: ['S31'],
  },
  {
    id: 'outage-lets-decreases-pass',
    title: 'the webhook for decreases has the failure policy Ignore',
    edits: [
      {
        file: 'install/webhooks.ts',
        find: "enforced('statefulset-scale', 'Fail',",
        replace: "enforced('statefulset-scale', 'Ignore',",
      },
    ],
    breaks: ['S31'],
  },
  {
    id: 'label-forbids-only-whole-objects',
    title: 'the label against a downscale has no effect on /scale',
    edits: [
      {
        file: 'webhook/compat/no-downscale.ts',
        find: "return judged(review, change, reader(parent.found).texts('metadata.labels'));",
        replace: "return judged(review, change, reader(parent.found).texts('spec.selector'));",
      },
    ],
    breaks: ['S31'],
  },
  {
    id: 'webhook-prepares-no-pod',
    title: 'the webhook allows a downscale without a call to the pods that leave',
    edits: [
      {
        file: 'webhook/compat/prepare/step.ts',
        find: 'const failure = await askToPrepare(env, pods, { timeoutMs: podTimeoutMs, leftMs });',
        replace: 'const failure = await askToPrepare(env, pods.slice(1), { timeoutMs: podTimeoutMs, leftMs });',
      },
    ],
    breaks: ['S11'],
  },
  {
    id: 'zone-budget-eviction-not-recorded',
    title: 'the webhook allows an eviction under a ZoneAwarePodDisruptionBudget without its claim',
    edits: [
      {
        file: eviction,
        find: 'return (await open.record({ pod, statefulSet: set.name, user, seen: { nowMs, statefulSets: sets, pods } })) ? verdict : undefined;',
        replace:
          'return user.length > 10_000 && !(await open.record({ pod, statefulSet: set.name, user, seen: { nowMs, statefulSets: sets, pods } })) ? undefined : verdict;',
      },
    ],
    breaks: ['S30', 'S1', 'S2', 'S3'],
  },
  {
    id: 'zone-budget-selects-nothing',
    title: 'no ZoneAwarePodDisruptionBudget selects the pod of an eviction',
    edits: [
      {
        file: eviction,
        find: 'const usable = isUnknown(inForce) ? [] : inForce.usable;',
        replace: 'const usable = isUnknown(inForce) ? [] : inForce.usable.slice(1);',
      },
    ],
    breaks: ['S30', 'S1', 'S2', 'S3'],
  },
];
