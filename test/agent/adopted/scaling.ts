// Whose replicas are written, and when they are left alone.
import { fine, outdated, type Scenario, type SetState, zones } from './scenario.ts';

const replicas = (set: string, count: number): string => `PATCH statefulsets/ingester-zone-${set} {"spec":{"replicas":${count}}}`;
const follows = (leader: string): Readonly<Record<string, string>> => ({ 'rollout-downscale-leader': `ingester-zone-${leader}` });
const minTime = (value: string): Readonly<Record<string, string>> => ({ 'grafana.com/min-time-between-zones-downscale': value });
const hoursAgo = (hours: number): string => `now-${hours}h`;
const mirror = (more: Readonly<Record<string, string>> = {}): Partial<SetState> => ({
  annotations: {
    'rollout-mirror-replicas-from-resource-name': 'ingester',
    'rollout-mirror-replicas-from-resource-kind': 'ReplicaTemplate',
    'rollout-mirror-replicas-from-resource-api-version': 'rollout-operator.grafana.com/v1',
    ...more,
  },
});
const writeBack = (count: number): string => `PATCH replicatemplates/ingester/status {"status":{"replicas":${count}}}`;

export const scaling: readonly Scenario[] = [
  {
    name: 'a follower grows to its leader in one step',
    sets: zones({ replicas: 5 }, { annotations: follows('a') }),
    writes: [replicas('b', 5)],
  },
  {
    name: 'a follower waits for a leader that is not ready, when it is told to',
    sets: zones(
      { replicas: 5, pods: { 4: { state: 'unready' } } },
      { annotations: { ...follows('a'), 'rollout-upscale-only-when-leader-ready': 'true' } },
    ),
    writes: [],
  },
  {
    name: 'a follower grows when its leader is ready',
    sets: zones({ replicas: 5 }, { annotations: { ...follows('a'), 'rollout-upscale-only-when-leader-ready': 'true' } }),
    writes: [replicas('b', 5)],
  },
  {
    name: 'a follower shrinks to its leader when no zone has shrunk before',
    sets: zones({ replicas: 2 }, { annotations: follows('a'), labels: minTime('12h') }),
    writes: [replicas('b', 2)],
  },
  {
    name: 'a follower waits until the other zone shrank long enough ago',
    sets: zones({ replicas: 2, annotations: { 'last-downscale': hoursAgo(1) } }, { annotations: follows('a'), labels: minTime('12h') }),
    writes: [],
  },
  {
    name: 'a follower shrinks when the other zone shrank long enough ago',
    sets: zones({ replicas: 2, annotations: { 'last-downscale': hoursAgo(13) } }, { annotations: follows('a'), labels: minTime('12h') }),
    writes: [replicas('b', 2)],
  },
  {
    name: 'the downscale of the follower itself holds nobody',
    sets: zones({ replicas: 2 }, { annotations: { ...follows('a'), 'last-downscale': hoursAgo(1) }, labels: minTime('12h') }),
    writes: [replicas('b', 2)],
  },
  {
    name: 'a missing minimum time is an error once a zone has shrunk; pods roll all the same',
    sets: zones({ replicas: 2, ...outdated, annotations: { 'last-downscale': hoursAgo(13) } }, { annotations: follows('a') }),
    writes: ['DELETE pods/ingester-zone-a-0'],
  },
  {
    name: 'a leader that is not in the group stops the scaling of its follower; pods roll all the same',
    sets: zones({ ...outdated }, { replicas: 2, annotations: follows('x') }),
    writes: ['DELETE pods/ingester-zone-a-0'],
  },
  {
    name: 'a leader that is not in the group does not stop the other followers',
    sets: zones({ replicas: 4 }, { annotations: follows('x') }, { annotations: follows('a') }),
    writes: [replicas('c', 4)],
    difference: 'A mistake in one member does not stop the others',
  },
  {
    name: 'forced replicas are written at once, whatever the leader has',
    sets: zones({ replicas: 3 }, { annotations: { ...follows('a'), 'rollout-force-replicas': '5' } }),
    writes: [replicas('b', 5)],
  },
  {
    name: 'forced replicas without a leader or a mirror are ignored',
    sets: zones({ annotations: { 'rollout-force-replicas': '5' } }, fine),
    writes: [],
  },
  {
    name: 'in a chain each zone follows its own leader, one write per turn',
    sets: zones({ replicas: 5 }, { annotations: follows('a') }, { annotations: follows('b') }),
    writes: [replicas('b', 5), replicas('c', 5)],
  },
  {
    name: 'who names a leader and a mirror follows the leader',
    sets: zones({ replicas: 4 }, { annotations: { ...mirror().annotations, ...follows('a') } }),
    templates: { ingester: { spec: 6, status: 6 } },
    writes: [replicas('b', 4)],
    difference: 'Both a leader and a mirror',
  },
  { name: 'who follows itself is left alone', sets: zones({ annotations: follows('a') }, fine), writes: [] },
  {
    name: 'replicas come from a mirrored object, and its status is written back',
    sets: zones(mirror()),
    templates: { ingester: { spec: 5, status: 3 } },
    writes: [replicas('a', 5), writeBack(5)],
  },
  {
    name: 'only the status is written back when the replicas are right',
    sets: zones(mirror()),
    templates: { ingester: { spec: 3, status: 1 } },
    writes: [writeBack(3)],
  },
  {
    name: 'nothing is written back when that is turned off',
    sets: zones(mirror({ 'rollout-mirror-replicas-from-resource-write-back': 'false' })),
    templates: { ingester: { spec: 4, status: 1 } },
    writes: [replicas('a', 4)],
  },
  {
    name: 'a word that is neither true nor false turns writing back off',
    sets: zones(mirror({ 'rollout-mirror-replicas-from-resource-write-back': 'yes' })),
    templates: { ingester: { spec: 3, status: 1 } },
    writes: [],
  },
  {
    name: 'a mirrored object that does not exist stops scaling; pods roll all the same',
    sets: zones({ ...mirror(), ...outdated }),
    templates: {},
    writes: ['DELETE pods/ingester-zone-a-0'],
  },
  {
    name: 'several StatefulSets mirror one object, one after the other',
    sets: zones(mirror(), mirror()),
    templates: { ingester: { spec: 5, status: 3 } },
    writes: [replicas('a', 5), writeBack(5), replicas('b', 5)],
  },
  {
    name: 'a kind that is not served stops scaling; pods roll all the same',
    sets: zones({ ...mirror({ 'rollout-mirror-replicas-from-resource-kind': 'NoSuchKind' }), ...outdated }),
    templates: { ingester: { spec: 5, status: 3 } },
    writes: ['DELETE pods/ingester-zone-a-0'],
  },
  {
    name: 'a mirrored downscale without a delay happens at once',
    sets: zones(mirror()),
    templates: { ingester: { spec: 2, status: 3 } },
    writes: [replicas('a', 2), writeBack(2)],
  },
  {
    name: 'forced replicas stand in for those of the mirrored object',
    sets: zones(mirror({ 'rollout-force-replicas': '4' })),
    templates: { ingester: { spec: 9, status: 4 } },
    writes: [replicas('a', 4)],
  },
];
