// One step of the model under way: the StatefulSets that it touches, and how they are put back so that the rest keeps its identity.
import { isUnknown, type Ledger, type PodsView, type ReplicaSourceView, type Snapshot, type StatefulSetView } from './snapshot.ts';
import { reconcile, type SetState, settle, summarize } from './world-controller.ts';
import type { ModelPod, World } from './world-model.ts';
import type { Clock } from './world-pod.ts';

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
export function stateOf(draft: StepDraft, key: string): SetState | undefined {
  const changed = draft.changed.get(key);
  if (changed !== undefined) return changed;
  const pods = draft.world.pods.get(key);
  const durations = draft.world.durations.get(key);
  const set = draft.world.snapshot.statefulSets.find((candidate) => isSet(candidate, key));
  return pods === undefined || durations === undefined || set === undefined ? undefined : { set, pods, durations };
}

/** Changes a StatefulSet or its pods; then time does what is due and the controller has its turn. */
export function changeSet(draft: StepDraft, key: string, change: (state: SetState) => SetState): void {
  const state = stateOf(draft, key);
  if (state !== undefined) draft.changed.set(key, reconcile(settle(change(state), draft), draft));
}

/** Changes one pod by name; undefined removes it. */
export function changePod(
  draft: StepDraft,
  target: { readonly namespace: string; readonly pod: string },
  change: (pod: ModelPod) => ModelPod | undefined,
): void {
  const key = setKey(target.namespace, target.pod.replace(/-\d+$/, ''));
  const state = stateOf(draft, key);
  const index = state?.pods.findIndex(({ view }) => view.name === target.pod) ?? -1;
  const found = state?.pods[index];
  if (found === undefined) return;
  const next = change(found);
  if (next === found) return;
  changeSet(draft, key, (current) => ({ ...current, pods: current.pods.toSpliced(index, 1, ...(next === undefined ? [] : [next])) }));
}

/** The world after the step. */
export function finishStep(draft: StepDraft): World {
  const { world } = draft;
  const pods = new Map(world.pods);
  const pending = new Map(world.pending);
  const sets = new Map<string, StatefulSetView>();
  for (const [key, state] of draft.changed) {
    const { set, nextMs } = summarize(state, draft.nowMs);
    sets.set(key, set);
    pods.set(key, state.pods);
    if (nextMs === undefined) pending.delete(key);
    else pending.set(key, nextMs);
  }
  const snapshot: Snapshot = {
    ...world.snapshot,
    nowMs: draft.nowMs,
    ledgers: draft.ledgers,
    replicaSources: draft.replicaSources,
    statefulSets: replaceSets(world.snapshot.statefulSets, sets),
    pods: replacePods(world, draft.changed),
  };
  return { ...world, snapshot, pods, pending, reported: draft.reported, serial: draft.serial.value };
}

function replaceSets(before: readonly StatefulSetView[], sets: ReadonlyMap<string, StatefulSetView>): readonly StatefulSetView[] {
  if (sets.size === 0) return before;
  const after = before.map((set) => sets.get(setKey(set.namespace, set.name)) ?? set);
  return after.every((set, index) => set === before[index]) ? before : after;
}

function replacePods(world: World, changed: ReadonlyMap<string, SetState>): readonly PodsView[] {
  const before = world.snapshot.pods;
  const after = before.map((view) => {
    const state = changed.get(setKey(view.namespace, view.statefulSet));
    return state === undefined || isShown(view, state.pods) ? view : { ...view, pods: state.pods.map((pod) => pod.view) };
  });
  return after.every((view, index) => view === before[index]) ? before : after;
}

function isShown(view: PodsView, pods: readonly ModelPod[]): boolean {
  if (isUnknown(view.pods) || view.pods.length !== pods.length) return false;
  return view.pods.every((pod, index) => pod === pods[index]?.view);
}

function isSet(set: StatefulSetView, key: string): boolean {
  return key.length === set.namespace.length + set.name.length + 1 && key.startsWith(set.namespace) && key.endsWith(set.name);
}
