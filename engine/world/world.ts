// The model around the agent: the StatefulSet controller, the kubelet and the answers of pods. Actions, writes and time advance it. Pure.
import type { GroupDefinition } from '../../policies/definition.ts';
import type { Assumptions, PodTimes } from '../plan/assumptions.ts';
import { isUnknown, type PodView, type Snapshot, type StatefulSetView } from '../snapshot.ts';
import { applyAction, scaleTo } from './action.ts';
import { beginStep, changePod, changeSet, finishStep, type StepDraft, setKey } from './draft.ts';
import type { ModelPod, Place, PodDurations, Quantile, World, WorldInput } from './model.ts';

import { adoptPod, breakPod } from './pod.ts';

export type { Quantile };

/**
 * A world that begins as the snapshot is. The controller has its first turn at once, so pods that are missing begin to start.
 * StatefulSets whose pods are unknown stay as they are.
 */
export function createWorld(snapshot: Snapshot, assumptions: Assumptions, quantile: Quantile): World {
  const pods = new Map<string, readonly ModelPod[]>();
  const durations = new Map<string, PodDurations>();
  const places = new Map<string, Place>();
  const sets = new Map(snapshot.statefulSets.map((set, index) => [setKey(set.namespace, set.name), index]));
  for (const [index, view] of snapshot.pods.entries()) {
    const key = setKey(view.namespace, view.statefulSet);
    const set = sets.get(key);
    if (isUnknown(view.pods) || set === undefined) continue;
    const times = durationsOf(groupOf(snapshot, view.namespace, view.statefulSet), assumptions, quantile);
    places.set(key, { set, pods: index });
    durations.set(key, times);
    pods.set(
      key,
      inOrder(view.pods).map((pod) => adoptPod(pod, times, snapshot.nowMs)),
    );
  }
  const settings = { assumptions, quantile, reported: reportedIn(snapshot), serial: firstSerial(snapshot) };
  return firstTurn({ ...settings, snapshot, pods, durations, places, pending: new Map() }, [...places.keys()]);
}

/**
 * The world after one input. Requests whose preconditions do not hold, or that a budget refuses, change nothing, and so does an instant that
 * has passed. What is not changed keeps its identity.
 */
export function step(world: World, input: WorldInput): World {
  if (input.kind === 'elapse') return elapse(world, input.toMs);
  if (input.kind === 'createStatefulSet') return createSet(world, input.set);
  const draft = beginStep(world, world.snapshot.nowMs);
  apply(draft, input);
  return finishStep(draft);
}

/** The next instant at which something happens by itself; undefined when nothing will. */
export function nextEventMs(world: World): number | undefined {
  let next: number | undefined;
  for (const instant of world.pending.values()) if (next === undefined || instant < next) next = instant;
  return next;
}

/** Everything that happens by itself happens at its instant, and what follows from it at the same one. */
function elapse(world: World, toMs: number): World {
  let current = world;
  for (let next = nextEventMs(current); next !== undefined && next <= toMs; next = nextEventMs(current)) {
    const draft = beginStep(current, Math.max(next, current.snapshot.nowMs));
    for (const [key, instant] of current.pending) if (instant <= next) changeSet(draft, key, (state) => state);
    current = finishStep(draft);
  }
  return toMs > current.snapshot.nowMs ? { ...current, snapshot: { ...current.snapshot, nowMs: toMs } } : current;
}

/** The new StatefulSet comes last in the lists. One of a name that is taken changes nothing. */
function createSet(world: World, created: StatefulSetView): World {
  const { snapshot } = world;
  const { namespace, name } = created;
  const key = setKey(namespace, name);
  if (snapshot.statefulSets.some((set) => setKey(set.namespace, set.name) === key)) return world;
  const durations = durationsOf(groupOf(snapshot, namespace, name), world.assumptions, world.quantile);
  const place = { set: snapshot.statefulSets.length, pods: snapshot.pods.length };
  const statefulSets = [...snapshot.statefulSets, created];
  const pods = [...snapshot.pods, { namespace, statefulSet: name, pods: [] }];
  const grown: World = {
    ...world,
    snapshot: { ...snapshot, statefulSets, pods },
    pods: new Map(world.pods).set(key, []),
    durations: new Map(world.durations).set(key, durations),
    places: new Map(world.places).set(key, place),
  };
  return firstTurn(grown, [key]);
}

function firstTurn(world: World, keys: readonly string[]): World {
  const draft = beginStep(world, world.snapshot.nowMs);
  for (const key of keys) changeSet(draft, key, (state) => state);
  return finishStep(draft);
}

function apply(draft: StepDraft, input: Exclude<WorldInput, { kind: 'elapse' | 'createStatefulSet' }>): void {
  switch (input.kind) {
    case 'action':
      applyAction(draft, input.action);
      break;
    case 'deletePods':
      for (const deletion of input.deletions) applyAction(draft, deletion);
      break;
    case 'setTemplate':
      changeSet(draft, setKey(input.namespace, input.statefulSet), (state) => {
        if (state.set.status.updateRevision === input.revision) return state;
        const generation = state.set.generation + 1;
        const status = { ...state.set.status, updateRevision: input.revision, observedGeneration: generation };
        return { ...state, set: { ...state.set, generation, resourceVersion: `${draft.nextSerial()}`, status } };
      });
      break;
    case 'setReplicas':
      scaleTo(draft, input.namespace, input.statefulSet, input.replicas);
      break;
    case 'podFails':
      changePod(draft, input, (pod) => breakPod(pod, input.reason, draft));
      break;
    case 'podDies':
      changePod(draft, input, () => undefined);
      break;
    default:
      input satisfies never;
  }
}

/** The timestamps that the ledger already knows of. */
function reportedIn(snapshot: Snapshot): ReadonlyMap<string, number> {
  const reported = new Map<string, number>();
  for (const { namespace, group, preparations } of snapshot.ledgers) {
    const zones = snapshot.groups.find((candidate) => candidate.namespace === namespace && candidate.name === group)?.zones ?? [];
    for (const { zone, ordinal, reportedMs } of preparations) {
      const statefulSet = zones.find((candidate) => candidate.name === zone)?.statefulSet;
      if (statefulSet !== undefined && reportedMs !== undefined) reported.set(`${namespace}/${statefulSet}-${ordinal}`, reportedMs);
    }
  }
  return reported;
}

function inOrder(pods: readonly PodView[]): readonly PodView[] {
  return [...pods].sort((a, b) => a.ordinal - b.ordinal);
}

/** The group that a StatefulSet is a member of. */
function groupOf(snapshot: Snapshot, namespace: string, statefulSet: string): GroupDefinition | undefined {
  return snapshot.groups.find((group) => group.namespace === namespace && group.zones.some((zone) => zone.statefulSet === statefulSet));
}

function durationsOf(group: GroupDefinition | undefined, assumptions: Assumptions, quantile: Quantile): PodDurations {
  const times: PodTimes = { ...assumptions.pods, ...(group === undefined ? undefined : assumptions.groups[group.name]) };
  const seconds = (value: PodTimes['drain']): number => (quantile === 'p50' ? value.p50Seconds : value.p90Seconds);
  return { drainMs: seconds(times.drain) * 1000, startMs: seconds(times.start) * 1000 };
}

/** Above every resource version of the snapshot, so that those of the model are newer. */
function firstSerial(snapshot: Snapshot): number {
  let highest = 0;
  const look = (resourceVersion: string): void => {
    const number = Number(resourceVersion);
    if (Number.isSafeInteger(number) && number > highest) highest = number;
  };
  for (const set of snapshot.statefulSets) look(set.resourceVersion);
  for (const { pods } of snapshot.pods) if (!isUnknown(pods)) for (const pod of pods) look(pod.resourceVersion);
  return highest + 1;
}
