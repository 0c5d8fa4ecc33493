// One step of the model in progress: the StatefulSets that it touches and their pods. Everything else keeps its identity.
import { controllerLabels } from '../observe/manifests.ts';
import type { Ledger, PodView, ReplicaSourceView, Snapshot, StatefulSetView } from '../snapshot.ts';
import { mayPin, placedRevision } from '../strategies/pinned/placement.ts';
import { reconcile, type SetState, settle, summarize } from './controller.ts';
import type { ModelPod, PodDurations, World } from './model.ts';

/** A step under way. It belongs to the one call that made it. */
export interface StepDraft extends Clock {
  readonly world: World;
  readonly changed: Map<string, SetState>;
  readonly serial: { value: number };
  ledgers: readonly Ledger[];
  replicaSources: readonly ReplicaSourceView[];
  reported: ReadonlyMap<string, number>;
}

/** The key of a StatefulSet in the maps of a world. */
export function setKey(namespace: string, statefulSet: string): string {
  return `${namespace}/${statefulSet}`;
}

export function beginStep(world: World, nowMs: number): StepDraft {
  const serial = { value: world.serial };
  const nextSerial = (): number => {
    serial.value += 1;
    return serial.value;
  };
  const { ledgers, replicaSources } = world.snapshot;
  return { world, nowMs, serial, nextSerial, changed: new Map(), ledgers, replicaSources, reported: world.reported };
}

/** The StatefulSet as the step has it so far; undefined when it does not exist or its pods are unknown. */
export function stateOf({ changed, world }: StepDraft, key: string): SetState | undefined {
  const set = world.snapshot.statefulSets[world.places.get(key)?.set ?? -1];
  const pods = world.pods.get(key);
  const durations = world.durations.get(key);
  return changed.get(key) ?? (pods && durations && set && { set, pods, durations, placed: placedBy(world.snapshot, set) });
}

/** Returns the revision that the ledger of the group gives to new pods of a StatefulSet. */
function placedBy({ ledgers, groups }: Snapshot, { namespace, name }: StatefulSetView): SetState['placed'] {
  for (const ledger of ledgers) {
    if (ledger.namespace !== namespace || (ledger.pins === undefined && ledger.run?.rolledBack === undefined)) continue;
    const group = groups.find((one) => one.namespace === namespace && one.name === ledger.group);
    const zone = group?.zones.find(({ statefulSet }) => statefulSet === name)?.name;
    if (group === undefined || zone === undefined || !mayPin(group)) continue;
    return (ordinal, revision) => placedRevision(ledger, zone, { ordinal, revision });
  }
  return undefined;
}

/** Changes a StatefulSet or its pods; then time does what is due and the controller has its turn. */
export function changeSet(draft: StepDraft, key: string, change: (state: SetState) => SetState): void {
  const state = stateOf(draft, key);
  if (state === undefined) return;
  const changed = change(state);
  draft.changed.set(key, reconcile(mayBeDue(draft, key, changed) ? settle(changed, draft) : changed, draft));
}

/** Reports whether a pod may be due. The check of every pod is expensive in large groups, and the world mostly knows that none is. */
function mayBeDue({ world, nowMs }: StepDraft, key: string, { durations }: SetState): boolean {
  return durations.drainMs <= 0 || durations.startMs <= 0 || (world.pending.get(key) ?? Number.POSITIVE_INFINITY) <= nowMs;
}

/** Changes one pod by name; undefined removes it. */
export function changePod(
  draft: StepDraft,
  target: { readonly namespace: string; readonly pod: string },
  change: (pod: ModelPod) => ModelPod | undefined,
): void {
  const dash = target.pod.lastIndexOf('-');
  const key = setKey(target.namespace, target.pod.slice(0, dash));
  const ordinal = Number(target.pod.slice(dash + 1));
  const state = stateOf(draft, key);
  const index = state?.pods.findIndex(({ view }) => view.ordinal === ordinal) ?? -1;
  const found = state?.pods[index];
  if (found === undefined) return;
  const next = change(found);
  if (next === found) return;
  changeSet(draft, key, (current) => ({ ...current, pods: current.pods.toSpliced(index, 1, ...(next === undefined ? [] : [next])) }));
}

/** The world after the step. */
export function finishStep(draft: StepDraft): World {
  const { world, ledgers, replicaSources, nowMs } = draft;
  const pods = new Map(world.pods);
  const pending = new Map(world.pending);
  const statefulSets = [...world.snapshot.statefulSets];
  const podViews = [...world.snapshot.pods];
  for (const [key, state] of draft.changed) {
    const place = world.places.get(key);
    const { set, nextMs } = summarize(state, nowMs);
    if (nextMs === undefined) pending.delete(key);
    else pending.set(key, nextMs);
    if (place === undefined) continue;
    statefulSets[place.set] = set;
    if (state.pods === world.pods.get(key)) continue;
    pods.set(key, state.pods);
    podViews[place.pods] = { namespace: set.namespace, statefulSet: set.name, pods: state.pods.map((pod) => pod.view) };
  }
  const lists = {
    statefulSets: sameOr(world.snapshot.statefulSets, statefulSets),
    pods: sameOr(world.snapshot.pods, podViews),
  };
  const snapshot: Snapshot = { ...world.snapshot, ...lists, nowMs, ledgers, replicaSources };
  return { ...world, snapshot, pods, pending, reported: draft.reported, serial: draft.serial.value };
}

/** Returns the old list if no item changed, so that callers can remember results by list. */
function sameOr<Item>(before: readonly Item[], after: readonly Item[]): readonly Item[] {
  return after.every((item, index) => item === before[index]) ? before : after;
}

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
