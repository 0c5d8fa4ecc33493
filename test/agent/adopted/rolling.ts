// Which pods are deleted, and when none is.
import { fine, outdated, type Scenario, zones } from './scenario.ts';

const old = { revision: 'old' } as const;
const first = 'DELETE pods/ingester-zone-a-0';

export const rolling: readonly Scenario[] = [
  { name: 'a group with nothing to do is left alone', sets: zones(fine, fine, fine), writes: [] },
  { name: 'one pod at a time unless the annotation says more', sets: zones(outdated, outdated, outdated), writes: [first] },
  {
    name: 'as many pods at once as rollout-max-unavailable says, lowest ordinals first',
    sets: zones({ ...outdated, annotations: { 'rollout-max-unavailable': '2' } }, outdated),
    writes: [first, 'DELETE pods/ingester-zone-a-1'],
  },
  {
    name: 'a percentage is of the replicas, rounded down',
    sets: zones({ ...outdated, replicas: 5, annotations: { 'rollout-max-unavailable': '50%' } }, fine),
    writes: [first, 'DELETE pods/ingester-zone-a-1'],
  },
  {
    name: 'a small percentage is at least one pod',
    sets: zones({ ...outdated, annotations: { 'rollout-max-unavailable': '1%' } }, fine),
    writes: [first],
  },
  {
    name: 'a value that is no number counts as one',
    sets: zones({ ...outdated, annotations: { 'rollout-max-unavailable': '1.5' } }, fine),
    writes: [first],
  },
  {
    name: 'a number around which there are blanks is a number',
    sets: zones({ ...outdated, annotations: { 'rollout-max-unavailable': ' 2 ' } }, fine),
    writes: [first, 'DELETE pods/ingester-zone-a-1'],
  },
  {
    name: 'ordinals are numbers, so 2 comes before 10',
    sets: zones({ replicas: 12, currentRevision: 'old', pods: { 2: old, 10: old } }, fine),
    writes: ['DELETE pods/ingester-zone-a-2'],
  },
  {
    name: 'the second zone rolls when the first is done',
    sets: zones(fine, outdated, outdated),
    writes: ['DELETE pods/ingester-zone-b-0'],
  },
  {
    name: 'a zone that is not ready comes first, and holds the others until it is',
    sets: zones(outdated, { pods: { 1: { state: 'unready' } } }),
    writes: [],
  },
  {
    name: 'a pod that is down uses up the budget of its zone',
    sets: zones({ ...outdated, pods: { 2: { ...old, state: 'unready' } } }, fine),
    writes: [],
  },
  {
    name: 'what the budget has left is used, in the order of the ordinals',
    sets: zones(fine, { ...outdated, annotations: { 'rollout-max-unavailable': '2' }, pods: { 2: { ...old, state: 'unready' } } }),
    writes: ['DELETE pods/ingester-zone-b-0'],
  },
  {
    name: 'two zones that are not ready hold the group',
    sets: zones({ ...outdated, pods: { 0: { ...old, state: 'unready' } } }, { pods: { 1: { state: 'unready' } } }, fine),
    writes: [],
  },
  {
    name: 'a paused zone is passed over',
    sets: zones({ ...outdated, annotations: { 'rollout-paused': 'true' } }, outdated),
    writes: ['DELETE pods/ingester-zone-b-0'],
  },
  {
    name: 'a paused zone that is not whole holds nobody, when it is the only one',
    sets: zones({ annotations: { 'rollout-paused': 'true' }, pods: { 0: { state: 'unready' } } }, outdated),
    writes: ['DELETE pods/ingester-zone-b-0'],
  },
  {
    name: 'a zone is paused by exactly "true"',
    sets: zones({ ...outdated, annotations: { 'rollout-paused': 'True' } }, fine),
    writes: [first],
  },
  {
    name: 'one member that is not OnDelete stops the whole group',
    sets: zones(outdated, { strategy: 'RollingUpdate' }),
    writes: [],
    isFailure: true,
  },
  {
    name: 'an outdated pod that crashes is replaced though the budget is used up',
    sets: zones({ ...outdated, pods: { 1: { ...old, state: { waiting: 'CrashLoopBackOff' } } } }, fine),
    writes: ['DELETE pods/ingester-zone-a-1'],
  },
  {
    name: 'an outdated pod whose image cannot be pulled is replaced too',
    sets: zones({ ...outdated, pods: { 2: { ...old, state: { waiting: 'ImagePullBackOff' } } } }, fine),
    writes: ['DELETE pods/ingester-zone-a-2'],
  },
  {
    name: 'an up-to-date pod that crashes is not replaced',
    sets: zones({ pods: { 1: { state: { waiting: 'CrashLoopBackOff' } } } }, fine),
    writes: [],
  },
  {
    name: 'a pod that is leaving uses up the budget',
    sets: zones({ ...outdated, pods: { 0: { ...old, state: 'terminating' } } }, fine),
    writes: [],
  },
  {
    name: 'a pod without a revision is outdated',
    sets: zones({ pods: { 1: { revision: 'none' } } }, fine),
    writes: ['DELETE pods/ingester-zone-a-1'],
  },
  {
    name: 'a template that was put back rolls too, though both revisions are equal',
    sets: zones({ pods: { 1: old } }, fine),
    writes: ['DELETE pods/ingester-zone-a-1'],
  },
  {
    name: 'containers decide about readiness, conditions do not',
    sets: zones({ ...outdated, pods: { 2: { ...old, condition: 'False' } } }, fine),
    writes: [first],
  },
  {
    name: 'the current revision follows when every pod is up to date',
    sets: zones({ currentRevision: 'old' }, fine),
    writes: ['PUT statefulsets/ingester-zone-a/status {"currentRevision":"new"}'],
  },
  {
    name: 'a status without a current revision is an error',
    sets: zones({ ...outdated, currentRevision: 'empty' }, fine),
    writes: [],
    isFailure: true,
  },
  {
    name: 'a pod that is gone counts as down, whatever the status still says',
    sets: zones({ ...outdated, readyReplicas: 3, pods: { 0: { state: 'missing' } } }, fine),
    writes: [],
    difference: 'A missing pod counts as down',
  },
  {
    name: 'a pod of another workload with the label of a member is never deleted',
    sets: zones({ ...fine }, fine),
    foreignPods: [{ name: 'stranger-0', label: 'ingester-zone-a' }],
    writes: [],
    difference: 'Pods of other workloads are not members',
  },
  {
    name: 'a pod of another workload that is not ready holds nobody',
    sets: zones(fine, outdated),
    foreignPods: [{ name: 'stranger-0', label: 'ingester-zone-a', pod: { state: 'unready' } }],
    writes: ['DELETE pods/ingester-zone-b-0'],
    difference: 'A pod of another StatefulSet with the same label `name` is not counted',
  },
];
