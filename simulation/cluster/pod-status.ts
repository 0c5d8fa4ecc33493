// Writes the status of a pod as the kubelet does: phase, conditions and container states.
import { type Container, instantText, type PodStatus } from './workload.ts';

export interface PodCondition {
  readonly phase: 'Pending' | 'Running' | 'Succeeded' | 'Failed';
  readonly container: 'creating' | 'running' | 'backOff' | 'ended';
  readonly isReady: boolean;
  /** Wall-clock time of the last change of readiness. */
  readonly readyChangedMs: number;
  readonly scheduledMs: number;
  /** Start of the container. */
  readonly startedMs: number | undefined;
  readonly endedMs: number | undefined;
  readonly restartCount: number;
  readonly address: string | undefined;
  readonly containers: readonly Container[];
}

/** Returns the whole status; lists are written whole. */
export function podStatus(pod: PodCondition): PodStatus {
  const { phase, isReady, readyChangedMs, scheduledMs, address, containers } = pod;
  const scheduled = instantText(scheduledMs);
  const changed = instantText(readyChangedMs);
  const reason = phase === 'Succeeded' || phase === 'Failed' ? 'PodCompleted' : 'ContainersNotReady';
  const readiness = isReady
    ? { status: 'True', lastTransitionTime: changed }
    : { status: 'False', lastTransitionTime: changed, reason, message: `containers with unready status: [${names(containers)}]` };
  return {
    phase,
    startTime: scheduled,
    ...(address === undefined ? {} : { podIP: address, podIPs: [{ ip: address }] }),
    conditions: [
      { type: 'PodScheduled', status: 'True', lastTransitionTime: scheduled },
      { type: 'Initialized', status: 'True', lastTransitionTime: scheduled },
      { type: 'ContainersReady', ...readiness },
      { type: 'Ready', ...readiness },
    ],
    containerStatuses: containers.map(({ name, image = '' }) => ({
      name,
      image,
      ready: isReady,
      started: pod.container === 'running',
      restartCount: pod.restartCount,
      state: containerState(pod),
    })),
  };
}

function containerState({ container, startedMs, endedMs }: PodCondition) {
  const startedAt = instantText(startedMs ?? 0);
  switch (container) {
    case 'creating':
      return { waiting: { reason: 'ContainerCreating' } };
    case 'running':
      return { running: { startedAt } };
    case 'backOff':
      return { waiting: { reason: 'CrashLoopBackOff', message: 'back-off restarting failed container' } };
    case 'ended':
      return { terminated: { exitCode: 137, reason: 'Error', startedAt, finishedAt: instantText(endedMs ?? startedMs ?? 0) } };
  }
}

function names(containers: readonly Container[]): string {
  return containers.map(({ name }) => name).join(' ');
}
