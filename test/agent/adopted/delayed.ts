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
/** Whoever is not to leave is told so once, when the agent begins. */
const stay = (...ordinals: readonly number[]): readonly string[] => call('DELETE', ...ordinals);
const shrinkTo = (count: number): string => `PATCH statefulsets/ingester-zone-a {"spec":{"replicas":${count}}}`;
const writeBack = (count: number): string => `PATCH replicatemplates/ingester/status {"status":{"replicas":${count}}}`;
const two = { ingester: { spec: 2, status: 4 } };

export const delayedDownscale: readonly Scenario[] = [
  {
    name: 'pods that are to leave are told, and nothing shrinks before the delay',
    sets: zones(delayed()),
    templates: two,
    answers: [{ pods: /./, method: 'POST', status: 200, preparedSecondsAgo: 10 }],
    calls: [...stay(0, 1), ...call('POST', 2, 3)],
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
    calls: [...stay(0, 1), ...call('POST', 2, 3)],
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
    calls: [...stay(0, 1), ...call('POST', 2, 3)],
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
    name: 'a delay may count in days',
    sets: zones(delayed({ annotations: { 'rollout-delayed-downscale': '1d' } })),
    templates: two,
    answers: [
      { pods: /-3$/, method: 'POST', status: 200, preparedSecondsAgo: 25 * hour },
      { pods: /-2$/, method: 'POST', status: 200, preparedSecondsAgo: 23 * hour },
    ],
    calls: [...stay(0, 1), ...call('POST', 2, 3)],
    writes: [shrinkTo(3), writeBack(3)],
  },
  {
    name: 'a delay may have several units',
    sets: zones(delayed({ annotations: { 'rollout-delayed-downscale': '1h30m' } })),
    templates: two,
    answers: [
      { pods: /-3$/, method: 'POST', status: 200, preparedSecondsAgo: 1.6 * hour },
      { pods: /-2$/, method: 'POST', status: 200, preparedSecondsAgo: 1.4 * hour },
    ],
    calls: [...stay(0, 1), ...call('POST', 2, 3)],
    writes: [shrinkTo(3), writeBack(3)],
  },
  {
    name: 'port, path and query of the URL are kept, its host is that of the pod',
    sets: zones(
      delayed({ annotations: { 'rollout-prepare-delayed-downscale-url': 'http://any.example:8080/prepare/down?unit=zone&x=1' } }),
    ),
    templates: two,
    answers: [{ pods: /./, method: 'POST', status: 200, preparedSecondsAgo: 10 }],
    calls: [0, 1, 2, 3].map((ordinal) => `${ordinal < 2 ? 'DELETE' : 'POST'} ingester-zone-a-${ordinal}:8080 /prepare/down?unit=zone&x=1`),
    writes: [],
  },
  {
    name: 'a user in the URL is left out',
    sets: zones(delayed({ annotations: { 'rollout-prepare-delayed-downscale-url': `http://jane:secret@pod${path}` } })),
    templates: two,
    answers: [{ pods: /./, method: 'POST', status: 200, preparedSecondsAgo: 10 }],
    calls: [...stay(0, 1), ...call('POST', 2, 3)],
    writes: [],
    difference: 'Credentials in a URL are not sent',
  },
  {
    name: 'a URL that is none stops scaling',
    sets: zones(delayed({ annotations: { 'rollout-prepare-delayed-downscale-url': 'http://[::1' } })),
    templates: two,
    calls: [],
    writes: [],
  },
  {
    name: 'while the downscale waits, the present replicas are written back',
    sets: zones(delayed()),
    templates: { ingester: { spec: 2, status: 1 } },
    answers: [{ pods: /./, method: 'POST', status: 200, preparedSecondsAgo: 10 }],
    calls: [...stay(0, 1), ...call('POST', 2, 3)],
    writes: [writeBack(4)],
  },
  {
    name: 'a zone whose downscale waits does not hold another that mirrors too',
    sets: zones(delayed(), delayed({ annotations: { 'rollout-delayed-downscale': '0' } })),
    templates: two,
    answers: [{ pods: /./, method: 'POST', status: 200, preparedSecondsAgo: 10 }],
    calls: [...stay(0, 1), ...call('POST', 2, 3)],
    writes: ['PATCH statefulsets/ingester-zone-b {"spec":{"replicas":2}}', writeBack(2)],
    difference: 'Zones that disagree do not overwrite each other',
  },
  {
    name: 'an upscale takes the preparation back, from the pods that were asked',
    sets: zones(delayed()),
    templates: two,
    later: { after: call('POST', 2, 3), templates: { ingester: 6 } },
    answers: [{ pods: /./, method: 'POST', status: 200, preparedSecondsAgo: 10 }],
    calls: [...stay(0, 1), ...call('POST', 2, 3), ...stay(2, 3)],
    writes: [shrinkTo(6), writeBack(6)],
    difference: 'Preparation is cancelled once',
  },
  {
    name: 'a downscale that is called off takes the preparation back, whatever the pods answer',
    sets: zones(delayed()),
    templates: two,
    later: { after: call('POST', 2, 3), templates: { ingester: 4 } },
    answers: [
      { pods: /./, method: 'POST', status: 200, preparedSecondsAgo: 10 },
      { pods: /./, method: 'DELETE', status: 409 },
    ],
    calls: [...stay(0, 1), ...call('POST', 2, 3), ...stay(2, 3)],
    writes: [],
    difference: 'Preparation is cancelled once',
  },
  {
    name: 'pods are not told to stay again and again while nothing is to leave',
    sets: zones(delayed()),
    templates: { ingester: { spec: 4, status: 4 } },
    answers: [{ pods: /./, method: 'DELETE', status: 200 }],
    calls: stay(0, 1, 2, 3),
    writes: [],
    difference: 'Preparation is cancelled once',
  },
];
