// The strategy `onDelete`: the agent evicts or deletes pods, and the StatefulSet controller creates each successor at the update revision.
import { choosePods, queuePods, replacePods } from './replace-pods.ts';
import type { Strategy } from './strategy.ts';

export const onDelete: Strategy = {
  queuePods: (question) => queuePods(question),
  choosePods,
  withoutDenied: (_chosen, allowed) => allowed,
  replacePods: (context, view, chosen) => replacePods(context, view, chosen),
  checkStep: () => [],
  settlePartitions: () => [],
  warnOfRestarts: () => [],
};
