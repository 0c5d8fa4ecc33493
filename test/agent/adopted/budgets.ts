// What ZoneAwarePodDisruptionBudgets change of a rollout.
import { fine, outdated, type Scenario, type SetState, zones } from './scenario.ts';

const first = 'DELETE pods/ingester-zone-a-0';
const second = 'DELETE pods/ingester-zone-a-1';
const two: Partial<SetState> = { ...outdated, annotations: { 'rollout-max-unavailable': '2' } };
const everything = { selector: { matchLabels: {} } };
const pausedAndDown: Partial<SetState> = { annotations: { 'rollout-paused': 'true' }, pods: { 0: { state: 'unready' } } };
const byOrdinal = { podNamePartitionRegex: 'ingester-zone-[a-z]-([0-9]+)' };

export const budgets: readonly Scenario[] = [
  {
    name: 'a budget that is not 0 caps rollout-max-unavailable',
    sets: zones(two, fine),
    budgets: { ingester: { ...everything, maxUnavailable: 1 } },
    writes: [first],
  },
  {
    name: 'a budget without numbers allows one pod',
    sets: zones(two, fine),
    budgets: { ingester: everything },
    writes: [first],
  },
  {
    name: 'a percentage caps it too, rounded down and at least one pod',
    sets: zones(two, fine),
    budgets: { ingester: { ...everything, maxUnavailablePercentage: 50 } },
    writes: [first],
  },
  {
    name: 'a budget of 0 gives way to rollout-max-unavailable',
    sets: zones(two, fine),
    budgets: { ingester: { ...everything, maxUnavailable: 0 } },
    writes: [first, second],
  },
  {
    name: 'a budget denies while a pod of another zone is down, paused or not',
    sets: zones(pausedAndDown, two),
    budgets: { ingester: { ...everything, maxUnavailable: 2 } },
    writes: [],
  },
  {
    name: 'a budget of 0 that counts partitions gives way to one pod of each',
    sets: zones(pausedAndDown, two),
    budgets: { ingester: { ...everything, ...byOrdinal, maxUnavailable: 0 } },
    writes: ['DELETE pods/ingester-zone-b-1'],
  },
  {
    name: 'a pod whose name tells no partition stays',
    sets: zones(two, fine),
    budgets: { ingester: { ...everything, podNamePartitionRegex: 'other-([0-9]+)', maxUnavailable: 1 } },
    writes: [],
  },
  {
    name: 'a budget that no second StatefulSet has denies',
    sets: zones(two),
    budgets: { ingester: { ...everything, maxUnavailable: 2 } },
    writes: [],
  },
  {
    name: 'a budget that selects no pod of the group allows everything',
    sets: zones(two, fine),
    budgets: { other: { selector: { matchLabels: { name: 'querier' } }, maxUnavailable: 1 } },
    writes: [first, second],
  },
  {
    name: 'several budgets for one pod are an error',
    sets: zones(two, fine),
    budgets: { one: everything, two: everything },
    writes: [],
    isFailure: true,
  },
  {
    name: 'several budgets do not matter while nothing is outdated',
    sets: zones(fine, fine),
    budgets: { one: everything, two: everything },
    writes: [],
  },
  {
    name: 'a budget that names two limits holds the pods that it may mean',
    sets: zones(two, fine),
    budgets: { broken: { ...everything, maxUnavailable: 2, maxUnavailablePercentage: 50 } },
    writes: [],
    isFailure: true,
    difference: 'A budget that cannot be parsed blocks',
  },
];
