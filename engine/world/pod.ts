// One pod of the model: it starts, becomes ready, breaks and drains, as the kubelet has it.
import { controllerLabels } from '../observe/manifests.ts';
import type { PodView, StatefulSetView } from '../snapshot.ts';
import type { ModelPod, PodDurations } from './model.ts';

/** The instant of a step, and the serial numbers that it may hand out. */
export interface Clock {
  readonly nowMs: number;
  readonly nextSerial: () => number;
}

/** A pod that the controller has just made: running, and ready when its start time is over. */
export function startPod(
  set: StatefulSetView,
  place: { readonly ordinal: number; readonly revision: string },
  durations: PodDurations,
  clock: Clock,
): ModelPod {
  const serial = clock.nextSerial();
  const { ordinal, revision } = place;
  const view: PodView = {
    name: `${set.name}-${ordinal}`,
    uid: `model-${serial}`,
    resourceVersion: `${serial}`,
    ordinal,
    revision,
    labels: controllerLabels(set, ordinal, revision),
    phase: 'Running',
    isReady: false,
    containersReady: false,
    readyChangedMs: clock.nowMs,
    isTerminating: false,
    waitingReasons: [],
    node: '',
    nodeReady: true,
  };
  return { view, goneAtMs: undefined, readyAtMs: clock.nowMs + durations.startMs };
}

/** The pod once its containers answer. The instant is kept as grafana/rollout-operator's pod observer keeps it. */
export function becomeReady(pod: ModelPod, clock: Clock): ModelPod {
  const view: PodView = {
    ...pod.view,
    resourceVersion: `${clock.nextSerial()}`,
    isReady: true,
    containersReady: true,
    readyChangedMs: clock.nowMs,
    waitingReasons: [],
    readyTimeMs: clock.nowMs,
  };
  return { view, goneAtMs: undefined, readyAtMs: undefined };
}

/** The pod after a request to delete it: unready at once, since draining is what it does with its readiness, and gone when it has drained. */
export function terminatePod(pod: ModelPod, durations: PodDurations, clock: Clock): ModelPod {
  if (pod.view.isTerminating) return pod;
  return { view: { ...unready(pod.view, clock), isTerminating: true }, goneAtMs: clock.nowMs + durations.drainMs, readyAtMs: undefined };
}

/** The pod when it breaks and stays broken, with the reason for which its container waits, if it does. */
export function breakPod(pod: ModelPod, reason: string | undefined, clock: Clock): ModelPod {
  const view = { ...unready(pod.view, clock), waitingReasons: reason === undefined ? [] : [reason] };
  return { view, goneAtMs: pod.goneAtMs, readyAtMs: undefined };
}

/**
 * Adopts an observed pod and predicts its future. A terminating pod has its whole drain time left, because its start is unknown. A pod that
 * has been unready for less than a start takes is starting; a pod that has been unready longer, or whose container waits, stays broken.
 */
export function adoptPod(view: PodView, durations: PodDurations, nowMs: number): ModelPod {
  if (view.isTerminating) return { view, goneAtMs: nowMs + durations.drainMs, readyAtMs: undefined };
  const readyAtMs = view.readyChangedMs + durations.startMs;
  const isStarting = !view.isReady && view.waitingReasons.length === 0 && view.phase !== 'Failed' && readyAtMs > nowMs;
  return { view, goneAtMs: undefined, readyAtMs: isStarting ? readyAtMs : undefined };
}

function unready(view: PodView, clock: Clock): PodView {
  const { readyTimeMs: _readyTimeMs, ...rest } = view;
  const readyChangedMs = view.isReady ? clock.nowMs : view.readyChangedMs;
  return { ...rest, resourceVersion: `${clock.nextSerial()}`, isReady: false, containersReady: false, readyChangedMs };
}
