// Recorded evictions about what counts: the limit, zones, partitions, the delay between zones, and evictions that were granted before.
import { budgetObject, podObject, zonesObjects } from '../eviction-objects.ts';
import type { EvictionScenario } from './eviction-scenario.ts';

const name = 'ingester-zone-a-0';
const down = { areContainersReady: false };
const allowed = { answer: { allowed: true, code: 200 }, reason: 'allowed' };
const refused = (message: string) => ({ answer: { allowed: false, code: 429, message }, reason: 'denied' });
const inPartitions = (spec: Readonly<Record<string, unknown>> = {}) =>
  budgetObject({ maxUnavailable: 1, podNamePartitionRegex: 'ingester-zone-[a-z]-([0-9]+)', ...spec });
const delayed = inPartitions({ crossZoneEvictionDelay: '5m' });
/** The world begins at 12:00:00. */
const readyAt = (readyTime: string) => ({ readyTime });

const percentages: readonly EvictionScenario[] = [
  [100, 3, 3, 3],
  [1, 3, 3, 1],
  [75, 3, 3, 2],
  [50, 10, 6, 3],
  [50, 10, 20, 5],
].map(([percent = 0, replicas = 0, statusReplicas = 0, limit = 0]): EvictionScenario => {
  // One pod less than the limit is down, then as many: the limit is what tells them apart.
  const others = Array.from({ length: limit - 1 }, (_, index) => [`ingester-zone-a-${index + 1}`, down] as const);
  const missing = Math.max(replicas, statusReplicas) - replicas;
  const message = [`${limit - 1} pod${limit === 2 ? '' : 's'} not ready`, ...(missing > 0 ? [`${missing} pods unknown`] : [])].join(', ');
  return {
    title: `${percent}% of ${replicas} wanted and ${statusReplicas} present replicas is ${limit}`,
    state: {
      objects: [
        budgetObject({ maxUnavailablePercentage: percent }),
        ...zonesObjects({ replicas, sets: { 'ingester-zone-a': { statusReplicas } }, pods: Object.fromEntries(others) }),
      ],
    },
    request: { name },
    ...(missing === 0 ? allowed : refused(`${message} in ingester-zone-a`)),
  };
});

const limits: readonly EvictionScenario[] = [
  ...percentages,
  {
    title: '75% of 3 replicas is 2, and no more',
    state: {
      objects: [
        budgetObject({ maxUnavailablePercentage: 75 }),
        ...zonesObjects({ pods: { 'ingester-zone-a-1': down, 'ingester-zone-a-2': down } }),
      ],
    },
    request: { name },
    ...refused('2 pods not ready in ingester-zone-a'),
  },
  {
    title: '50% of no present replicas is 0',
    state: {
      objects: [
        budgetObject({ maxUnavailablePercentage: 50 }),
        ...zonesObjects({ replicas: 10, sets: { 'ingester-zone-a': { statusReplicas: 0 } } }),
      ],
    },
    request: { name },
    answer: { allowed: false, code: 403, message: 'max unavailable = 0' },
    reason: 'max-unavailable-0',
  },
  {
    title: 'a budget without a limit lets one pod go',
    state: { objects: [budgetObject({}), ...zonesObjects({ pods: { 'ingester-zone-a-1': down } })] },
    request: { name },
    ...refused('1 pod not ready in ingester-zone-a'),
  },
];

const zones: readonly EvictionScenario[] = [
  {
    title: 'the own zone may lack fewer than the limit',
    state: { objects: [budgetObject({ maxUnavailable: 2 }), ...zonesObjects({ pods: { 'ingester-zone-a-1': down } })] },
    request: { name },
    ...allowed,
  },
  {
    title: 'another zone must be whole, whatever the limit',
    state: { objects: [budgetObject({ maxUnavailable: 3 }), ...zonesObjects({ pods: { 'ingester-zone-c-2': 'missing' } })] },
    request: { name },
    ...refused('1 pod unknown in ingester-zone-c'),
  },
  {
    title: 'pods that are missing and pods that are not ready are told apart',
    state: {
      objects: [
        budgetObject(),
        ...zonesObjects({ pods: { 'ingester-zone-b-0': down, 'ingester-zone-b-1': 'missing', 'ingester-zone-b-2': 'missing' } }),
      ],
    },
    request: { name },
    ...refused('1 pod not ready, 2 pods unknown in ingester-zone-b'),
  },
  {
    title: 'a pod that terminates elsewhere is not ready',
    state: { objects: [budgetObject(), ...zonesObjects({ pods: { 'ingester-zone-b-0': { isTerminating: true } } })] },
    request: { name },
    ...refused('1 pod not ready in ingester-zone-b'),
  },
  {
    title: 'the pod itself costs nothing, ready or not',
    state: { objects: [budgetObject(), ...zonesObjects({ pods: { [name]: down } })] },
    request: { name },
    ...allowed,
  },
  {
    title: 'a pod of something else that carries the label does not stand for one that is missing',
    state: {
      objects: [
        budgetObject(),
        ...zonesObjects({ pods: { 'ingester-zone-b-1': 'missing' } }),
        podObject('ingester-zone-b', 'debug', { owner: null }),
      ],
    },
    request: { name },
    ...refused('1 pod unknown in ingester-zone-b'),
  },
];

const partitions: readonly EvictionScenario[] = [
  {
    title: 'other partitions do not matter, and nor does the own zone',
    state: {
      objects: [
        inPartitions(),
        ...zonesObjects({ pods: { 'ingester-zone-b-1': down, 'ingester-zone-a-1': 'missing', 'ingester-zone-a-2': down } }),
      ],
    },
    request: { name },
    ...allowed,
    calls: [
      'GET /api/v1/namespaces/mimir/pods/ingester-zone-a-0',
      'GET /apis/apps/v1/namespaces/mimir/statefulsets/ingester-zone-a',
      'GET /apis/apps/v1/namespaces/mimir/statefulsets?labelSelector=rollout-group%3Dingester',
      'GET /api/v1/namespaces/mimir/pods?labelSelector=name%3Dingester-zone-b',
      'GET /api/v1/namespaces/mimir/pods?labelSelector=name%3Dingester-zone-c',
    ],
  },
  {
    title: 'the partition is added up over the other zones',
    state: { objects: [inPartitions(), ...zonesObjects({ pods: { 'ingester-zone-b-0': down, 'ingester-zone-c-0': down } })] },
    request: { name },
    ...refused('2 pods not ready in partition 0'),
  },
  {
    title: 'a pod that is missing elsewhere may be of this partition',
    state: { objects: [inPartitions(), ...zonesObjects({ pods: { 'ingester-zone-b-2': down, 'ingester-zone-c-1': 'missing' } })] },
    request: { name: 'ingester-zone-a-2' },
    ...refused('1 pod not ready, 1 pod unknown in partition 2'),
  },
  {
    title: 'a zone that shows nothing of the partition counts one',
    state: { objects: [inPartitions(), ...zonesObjects({ sets: { 'ingester-zone-c': { replicas: 1, statusReplicas: 1 } } })] },
    request: { name: 'ingester-zone-a-2' },
    ...refused('1 pod unknown in partition 2'),
  },
  {
    title: 'as many as the limit may be down',
    state: { objects: [inPartitions({ maxUnavailable: 2 }), ...zonesObjects({ pods: { 'ingester-zone-b-0': down } })] },
    request: { name },
    ...allowed,
  },
  {
    title: 'the named group of the pattern is the partition',
    state: {
      objects: [
        inPartitions({ podNamePartitionRegex: '(ingester)-zone-[a-z]-([0-9]+)', podNameRegexGroup: 2 }),
        ...zonesObjects({ pods: { 'ingester-zone-b-0': down, 'ingester-zone-c-1': down } }),
      ],
    },
    request: { name },
    ...refused('1 pod not ready in partition 0'),
  },
  {
    title: 'an empty partition is none',
    state: { objects: [inPartitions({ podNamePartitionRegex: 'ingester-zone-b-([0-9]+)|ingester-zone-a-.*' }), ...zonesObjects()] },
    request: { name },
    answer: { allowed: false, code: 400, message: 'pod name ingester-zone-a-0 does not match the pattern of partitions' },
    reason: 'partition-not-identified',
  },
];

const delays: readonly EvictionScenario[] = [
  {
    title: 'pods that have been ready for longer than the delay are ready',
    state: { objects: [delayed, ...zonesObjects(readyAt('2026-01-15T11:54:59Z'))] },
    request: { name },
    ...allowed,
  },
  {
    title: 'pods that have been ready for exactly the delay are not',
    state: { objects: [delayed, ...zonesObjects(readyAt('2026-01-15T11:55:00Z'))] },
    request: { name },
    ...refused('2 pods not ready in partition 0'),
  },
  {
    title: 'a pod whose ready time nobody has written became ready just now',
    state: { objects: [delayed, ...zonesObjects()] },
    request: { name },
    ...refused('2 pods not ready in partition 0'),
  },
  ...['', 'yesterday'].map(
    (readyTime): EvictionScenario => ({
      title: `so did one whose ready time is "${readyTime}"`,
      state: { objects: [delayed, ...zonesObjects({ ...readyAt('2026-01-15T10:00:00Z'), pods: { 'ingester-zone-b-0': { readyTime } } })] },
      request: { name },
      ...refused('1 pod not ready in partition 0'),
    }),
  ),
];

const granted: readonly EvictionScenario[] = [
  {
    title: 'an eviction that was granted counts before it is seen',
    state: { objects: [budgetObject(), ...zonesObjects()] },
    before: [{ pod: 'ingester-zone-b-0' }],
    request: { name },
    ...refused('1 pod not ready in ingester-zone-b'),
  },
  {
    title: 'and so does one in the own zone',
    state: { objects: [budgetObject(), ...zonesObjects()] },
    before: [{ pod: 'ingester-zone-a-1' }],
    request: { name },
    ...refused('1 pod not ready in ingester-zone-a'),
  },
  {
    title: 'the same pod may be asked for again',
    state: { objects: [budgetObject(), ...zonesObjects()] },
    before: [{ pod: name }],
    request: { name },
    ...allowed,
  },
  {
    title: 'after two minutes it counts no more',
    state: { objects: [budgetObject(), ...zonesObjects()] },
    before: [{ pod: 'ingester-zone-b-0', agoMs: 120_000 }],
    request: { name },
    ...allowed,
  },
  {
    title: 'until then it does',
    state: { objects: [budgetObject(), ...zonesObjects()] },
    before: [{ pod: 'ingester-zone-b-0', agoMs: 119_000 }],
    request: { name },
    ...refused('1 pod not ready in ingester-zone-b'),
  },
  {
    title: 'asking again begins the two minutes anew',
    state: { objects: [budgetObject(), ...zonesObjects()] },
    before: [
      { pod: 'ingester-zone-b-0', agoMs: 150_000 },
      { pod: 'ingester-zone-b-0', agoMs: 50_000 },
    ],
    request: { name },
    ...refused('1 pod not ready in ingester-zone-b'),
  },
  {
    title: 'a dry run eats no budget',
    state: { objects: [budgetObject(), ...zonesObjects()] },
    before: [{ pod: 'ingester-zone-b-0', dryRun: true }],
    request: { name },
    ...allowed,
  },
  {
    title: 'a dry run is told what a real request would be told',
    state: { objects: [budgetObject(), ...zonesObjects()] },
    before: [{ pod: 'ingester-zone-b-0' }],
    request: { name, dryRun: true },
    ...refused('1 pod not ready in ingester-zone-b'),
  },
  {
    title: 'in another partition it does not count',
    state: { objects: [inPartitions(), ...zonesObjects()] },
    before: [{ pod: 'ingester-zone-b-1' }],
    request: { name },
    ...allowed,
  },
  {
    title: 'in the same partition it does',
    state: { objects: [inPartitions(), ...zonesObjects()] },
    before: [{ pod: 'ingester-zone-b-0' }],
    request: { name },
    ...refused('1 pod not ready in partition 0'),
  },
];

export const evictionCounting: readonly EvictionScenario[] = [...limits, ...zones, ...partitions, ...delays, ...granted];
