// The stuck pod: unready on an old revision for long enough, or for a reason that waiting does not cure.
import type { GroupContext } from '../context.ts';
import type { PodView } from '../snapshot.ts';
import { isAvailable, isCrashing, type ZoneView } from '../view.ts';

type Moment = Pick<GroupContext, 'group' | 'nowMs'>;

/** Whether an outdated pod may be replaced outside the budget. Never on a node that is not ready itself: the pod is not what is broken. */
export function isStuck({ group, nowMs }: Moment, view: ZoneView, pod: PodView): boolean {
  const { when, afterMs } = group.rollout.replaceUnready;
  if (when === 'none' || pod.isTerminating || !pod.nodeReady || isUp({ group, nowMs }, view, pod)) return false;
  return isCrashing(pod) || (when === 'any' && !pod.isReady && nowMs - pod.readyChangedMs >= afterMs);
}

/** The instants ahead at which pods become stuck if nothing happens to them. */
export function stuckInstants({ group, nowMs }: Moment, view: ZoneView, pods: readonly PodView[]): readonly number[] {
  const { when, afterMs } = group.rollout.replaceUnready;
  if (when !== 'any') return [];
  return pods
    .filter((pod) => !pod.isTerminating && pod.nodeReady && !isUp({ group, nowMs }, view, pod))
    .map((pod) => pod.readyChangedMs + afterMs)
    .filter((instant) => instant > nowMs);
}

function isUp({ group, nowMs }: Moment, view: ZoneView, pod: PodView): boolean {
  return isAvailable(pod, group, view.set?.minReadySeconds ?? 0, nowMs);
}
