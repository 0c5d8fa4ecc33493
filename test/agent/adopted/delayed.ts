// Downscales for which pods are prepared: whom the agent calls, and how far it shrinks.
import { type Scenario, type SetState, zones } from './scenario.ts';

const path = '/ingester/prepare-delayed-downscale';
const hour = 3600;

/** A zone of a mirrored object that shrinks only when its pods were prepared for an hour. */
const delayed = (change: Partial<SetState> = {}): Partial<SetState> => ({
  replicas: 4,
  ...change,
  annotations: {
    'rollout-mirror-replicas-from-resource-name': 'ingester',
    'rollout-mirror-replicas-from-resource-kind': 'ReplicaTemplate',
    'rollout-mirror-replicas-from-resource-api-version': 'rollout-operator.grafana.com/v1',
    'rollout-delayed-downscale': '1h',
    'rollout-prepare-delayed-downscale-url': `http://pod${path}`,
    ...change.annotations,
  },
});
const call = (method: string, ...ordinals: readonly number[]): readonly string[] =>
  ordinals.map((ordinal) => `${method} ingester-zone-a-${ordinal} ${path}`);
const shrinkTo = (count: number): string => `PATCH statefulsets/ingester-zone-a {"spec":{"replicas":${count}}}`;
const writeBack = (count: number): string => `PATCH replicatemplates/ingester/status {"status":{"replicas":${count}}}`;
const two = { ingester: { spec: 2, status: 4 } };

export const delayedDownscale: readonly Scenario[] = [
  {
    name: 'pods that are to leave are told, and nothing shrinks before the delay',
    sets: zones(delayed()),
    templates: two,
    answers: [{ pods: /./, method: 'POST', status: 200, preparedSecondsAgo: 10 }],
    calls: call('POST', 2, 3),
    writes: [],
  },
  {
    name: 'the tail that was prepared long enough ago leaves, the rest waits',
    sets: zones(delayed()),
    templates: two,
    answers: [
      { pods: /-3$/, method: 'POST', status: 200, preparedSecondsAgo: 2 * hour },
      { pods: /-2$/, method: 'POST', status: 200, preparedSecondsAgo: 10 },
    ],
    calls: call('POST', 2, 3),
    writes: [shrinkTo(3), writeBack(3)],
  },
  {
    name: 'a pod that was prepared long ago waits for a higher one that was not',
    sets: zones(delayed()),
    templates: two,
    answers: [
      { pods: /-2$/, method: 'POST', status: 200, preparedSecondsAgo: 2 * hour },
      { pods: /-3$/, method: 'POST', status: 200, preparedSecondsAgo: 10 },
    ],
    calls: call('POST', 2, 3),
    writes: [],
  },
  {
    name: 'one pod that refuses holds the downscale',
    sets: zones(delayed()),
    templates: two,
    answers: [
      { pods: /-3$/, method: 'POST', status: 500 },
      { pods: /-2$/, method: 'POST', status: 200, preparedSecondsAgo: 2 * hour },
    ],
    writes: [],
  },
  {
    name: 'an answer without a timestamp is no preparation',
    sets: zones(delayed()),
    templates: two,
    answers: [{ pods: /./, method: 'POST', status: 200, body: '{}' }],
    writes: [],
  },
  {
    name: 'a delay of zero is no delay',
    sets: zones(delayed({ annotations: { 'rollout-delayed-downscale': '0' } })),
    templates: two,
    calls: [],
    writes: [shrinkTo(2), writeBack(2)],
  },
  {
    name: 'a delay that is no duration stops scaling',
    sets: zones(delayed({ annotations: { 'rollout-delayed-downscale': '1 hour' } })),
    templates: two,
    calls: [],
    writes: [],
  },
  {
    name: 'pods are not told to stay again and again while nothing is to leave',
    sets: zones(delayed()),
    templates: { ingester: { spec: 4, status: 4 } },
    answers: [{ pods: /./, method: 'DELETE', status: 200 }],
    calls: [],
    writes: [],
    difference: 'Pods are told to stay once',
  },
];
