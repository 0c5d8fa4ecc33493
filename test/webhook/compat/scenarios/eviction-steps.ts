// Recorded evictions, one for each step of the decision.
import { budgetObject, podObject, statefulSetObject, zonesObjects } from '../eviction-objects.ts';
import type { EvictionScenario } from './eviction-scenario.ts';

const pod = 'GET /api/v1/namespaces/mimir/pods/ingester-zone-a-0';
const owner = 'GET /apis/apps/v1/namespaces/mimir/statefulsets/ingester-zone-a';
const members = 'GET /apis/apps/v1/namespaces/mimir/statefulsets?labelSelector=rollout-group%3Dingester';
const podsOf = (name: string): string => `GET /api/v1/namespaces/mimir/pods?labelSelector=name%3D${name}`;
const everyZone = ['ingester-zone-a', 'ingester-zone-b', 'ingester-zone-c'].map(podsOf);

const forbidden = (verb: string, plural: string, group = ''): string =>
  `forbidden: User "webhook" cannot ${verb} resource "${plural}" in API group "${group}" in the namespace "mimir"`;

const healthy = [budgetObject(), ...zonesObjects()];
const name = 'ingester-zone-a-0';

export const evictionSteps: readonly EvictionScenario[] = [
  {
    title: 'row 1: another operation',
    state: { objects: healthy },
    request: { name, operation: 'UPDATE' },
    answer: { allowed: false, code: 400, message: 'the operation is UPDATE; only CREATE is an eviction' },
    reason: 'invalid-request',
    calls: [],
  },
  {
    title: 'row 2: another subresource',
    state: { objects: healthy },
    request: { name, subResource: 'binding' },
    answer: { allowed: false, code: 400, message: 'the subresource is binding; only eviction is handled' },
    reason: 'invalid-request',
    calls: [],
  },
  {
    title: 'row 2: no subresource',
    state: { objects: healthy },
    request: { name, subResource: '' },
    answer: { allowed: false, code: 400, message: 'the subresource is missing; only eviction is handled' },
    reason: 'invalid-request',
    calls: [],
  },
  {
    title: 'row 3: no namespace',
    state: { objects: healthy },
    request: { name, namespace: '' },
    answer: { allowed: false, code: 400, message: 'an eviction needs both the namespace and the name of a pod' },
    reason: 'invalid-request',
    calls: [],
  },
  {
    title: 'row 3: no name',
    state: { objects: healthy },
    request: { name: '' },
    answer: { allowed: false, code: 400, message: 'an eviction needs both the namespace and the name of a pod' },
    reason: 'invalid-request',
    calls: [],
  },
  {
    title: 'row 4: no such pod',
    state: { objects: healthy },
    request: { name: 'ingester-zone-a-9' },
    answer: { allowed: false, code: 400, message: 'pods "ingester-zone-a-9" not found' },
    reason: 'pod-not-found',
    calls: ['GET /api/v1/namespaces/mimir/pods/ingester-zone-a-9'],
  },
  {
    title: 'row 4: the pod may not be read',
    state: { objects: healthy, forbidden: ['get pods'] },
    request: { name },
    answer: { allowed: false, code: 400, message: `pods "ingester-zone-a-0" is ${forbidden('get', 'pods')}` },
    reason: 'pod-not-found',
    calls: [pod],
  },
  ...['Succeeded', 'Failed', 'Pending'].map(
    (phase): EvictionScenario => ({
      title: `row 5: a pod in phase ${phase} costs nothing`,
      state: { objects: [budgetObject({ maxUnavailable: 0 }), ...zonesObjects({ pods: { [name]: { phase } } })] },
      request: { name },
      answer: { allowed: true, code: 200, warnings: ['pod is not ready'] },
      reason: 'pod-not-ready',
      calls: [pod],
    }),
  ),
  {
    title: 'row 5: a pod that terminates costs nothing',
    state: { objects: [budgetObject({ maxUnavailable: 0 }), ...zonesObjects({ pods: { [name]: { isTerminating: true } } })] },
    request: { name },
    answer: { allowed: true, code: 200, warnings: ['pod is not ready'] },
    reason: 'pod-not-ready',
    calls: [pod],
  },
  {
    title: 'row 5: phase Unknown is not exempt',
    state: { objects: [budgetObject({ maxUnavailable: 0 }), ...zonesObjects({ pods: { [name]: { phase: 'Unknown' } } })] },
    request: { name },
    answer: { allowed: false, code: 403, message: 'max unavailable = 0' },
    reason: 'max-unavailable-0',
    calls: [pod, owner],
  },
  {
    title: 'row 6: several budgets',
    state: { objects: [...healthy, budgetObject({ maxUnavailable: 2 }, 'another')] },
    request: { name },
    answer: { allowed: false, code: 400, message: 'multiple disruption budgets match the pod: another, ingester-rollout' },
    reason: 'cfg-not-found',
    calls: [pod],
  },
  {
    title: 'row 7: no budget matches',
    state: { objects: [budgetObject({ selector: { matchLabels: { 'rollout-group': 'store-gateway' } } }), ...zonesObjects()] },
    request: { name },
    answer: { allowed: true, code: 200 },
    reason: 'pod-not-in-scope',
    calls: [pod],
  },
  {
    title: 'row 7: a pod of anything else is let go without a look at its owner',
    state: {
      objects: [budgetObject(), podObject('web', 'x1', { labels: { app: 'web' }, owner: { kind: 'ReplicaSet', name: 'web', uid: 'u' } })],
    },
    request: { name: 'web-x1' },
    answer: { allowed: true, code: 200 },
    reason: 'pod-not-in-scope',
    calls: ['GET /api/v1/namespaces/mimir/pods/web-x1'],
  },
  {
    title: 'row 8: nobody controls the pod',
    state: { objects: [budgetObject(), ...zonesObjects({ pods: { [name]: { owner: null } } })] },
    request: { name },
    answer: { allowed: false, code: 500, message: 'pod ingester-zone-a-0 has no controller' },
    reason: 'sts-no-found',
    calls: [pod],
  },
  {
    title: 'row 8: another kind controls it',
    state: { objects: [budgetObject(), ...zonesObjects({ pods: { [name]: { owner: { kind: 'ReplicaSet', name: 'rs', uid: 'u' } } } })] },
    request: { name },
    answer: { allowed: false, code: 500, message: 'pod ingester-zone-a-0 is controlled by ReplicaSet rs, not by a StatefulSet' },
    reason: 'sts-no-found',
    calls: [pod],
  },
  {
    title: 'row 8: its StatefulSet is gone',
    state: { objects: [budgetObject(), podObject('ingester-zone-a', 0)] },
    request: { name },
    answer: { allowed: false, code: 500, message: 'statefulsets.apps "ingester-zone-a" not found' },
    reason: 'sts-no-found',
    calls: [pod, owner],
  },
  {
    title: 'row 8: its StatefulSet may not be read',
    state: { objects: healthy, forbidden: ['get statefulsets.apps'] },
    request: { name },
    answer: { allowed: false, code: 500, message: `statefulsets.apps "ingester-zone-a" is ${forbidden('get', 'statefulsets', 'apps')}` },
    reason: 'sts-no-found',
    calls: [pod, owner],
  },
  {
    title: 'row 9: the limit is 0',
    state: { objects: [budgetObject({ maxUnavailable: 0 }), ...zonesObjects()] },
    request: { name },
    answer: { allowed: false, code: 403, message: 'max unavailable = 0' },
    reason: 'max-unavailable-0',
    calls: [pod, owner],
  },
  {
    title: 'row 10: a single StatefulSet',
    state: { objects: [budgetObject(), ...zonesObjects({ zones: ['ingester-zone-a'] })] },
    request: { name },
    answer: { allowed: false, code: 400, message: 'minimum number of StatefulSets not found' },
    reason: 'min-sts-not-found',
    calls: [pod, owner, members],
  },
  {
    title: 'row 10: StatefulSets may not be listed',
    state: { objects: healthy, forbidden: ['list statefulsets.apps'] },
    request: { name },
    answer: {
      allowed: false,
      code: 400,
      message: `minimum number of StatefulSets not found: statefulsets.apps is ${forbidden('list', 'statefulsets', 'apps')}`,
    },
    reason: 'min-sts-not-found',
    calls: [pod, owner, members],
  },
  {
    title: 'row 11: the pattern does not match the name',
    state: { objects: [budgetObject({ maxUnavailable: 1, podNamePartitionRegex: 'store-([0-9]+)' }), ...zonesObjects()] },
    request: { name },
    answer: { allowed: false, code: 400, message: 'pod name ingester-zone-a-0 does not match the pattern of partitions' },
    reason: 'partition-not-identified',
    calls: [pod, owner, members],
  },
  {
    title: 'row 12: pods may not be listed',
    state: { objects: healthy, forbidden: ['list pods'] },
    request: { name },
    answer: { allowed: false, code: 500, message: `the pods of ingester-zone-b could not be read: pods is ${forbidden('list', 'pods')}` },
    reason: 'err: sts-pod-status-not-determined',
    calls: [pod, owner, members, ...everyZone],
  },
  {
    title: 'row 12: the pods of one zone cannot be listed',
    state: { objects: healthy, broken: ['pods?labelSelector=name%3Dingester-zone-c'] },
    request: { name },
    answer: { allowed: false, code: 500, message: 'the pods of ingester-zone-c could not be read: the connection was reset' },
    reason: 'err: sts-pod-status-not-determined',
    calls: [pod, owner, members, ...everyZone],
  },
  {
    title: 'row 13: another zone is not whole',
    state: { objects: [budgetObject(), ...zonesObjects({ pods: { 'ingester-zone-b-1': { areContainersReady: false } } })] },
    request: { name },
    answer: { allowed: false, code: 429, message: '1 pod not ready in ingester-zone-b' },
    reason: 'denied',
    calls: [pod, owner, members, ...everyZone],
  },
  {
    title: 'row 14: all is well',
    state: { objects: healthy },
    request: { name },
    answer: { allowed: true, code: 200 },
    reason: 'allowed',
    calls: [pod, owner, members, ...everyZone],
  },
  {
    title: 'rows 9 to 14 hold for a StatefulSet that its budget does not select: it is counted as one more',
    state: {
      objects: [
        budgetObject(),
        ...zonesObjects({ zones: ['ingester-zone-b', 'ingester-zone-c'] }),
        statefulSetObject({ name: 'ingester-zone-a', labels: { app: 'other' } }),
        ...[0, 1, 2].map((ordinal) => podObject('ingester-zone-a', ordinal, { areContainersReady: ordinal !== 1 })),
      ],
    },
    request: { name },
    answer: { allowed: false, code: 429, message: '1 pod not ready in ingester-zone-a' },
    reason: 'denied',
  },
];
