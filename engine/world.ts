// The model of what surrounds us: the StatefulSet controller, the kubelet and the pods' answers, moved by actions, writes and time. Pure.
import type { GroupDefinition } from '../policies/definition.ts';
import type { Assumptions, PodTimes } from './assumptions.ts';
import { isUnknown, type Snapshot } from './snapshot.ts';
import { applyAction, scaleTo } from './world-action.ts';
import { beginStep, changePod, changeSet, finishStep, type StepDraft, setKey } from './world-draft.ts';
import type { ModelPod, PodDurations, World, WorldInput } from './world-model.ts';
import { adoptPod, breakPod } from './world-pod.ts';

/** Which of the assumed times holds in a world. */
export type Quantile = 'p50' | 'p90';

/**
 * A world that begins as the snapshot is. The controller has its first turn at once, so pods that are missing begin to start.
 * StatefulSets whose pods are unknown stay as they are.
 */
export function createWorld(snapshot: Snapshot, assumptions: Assumptions, quantile: Quantile): World {
  const pods = new Map<string, readonly ModelPod[]>();
  const durations = new Map<string, PodDurations>();
  for (const view of snapshot.pods) {
    if (isUnknown(view.pods)) continue;
    const key = setKey(view.namespace, view.statefulSet);
    const times = durationsOf(groupOf(snapshot, view.namespace, view.statefulSet), assumptions, quantile);
    durations.set(key, times);
    pods.set(
      key,
      [...view.pods].sort((a, b) => a.ordinal - b.ordinal).map((pod) => adoptPod(pod, times, snapshot.nowMs)),
    );
  }
  const world: World = {
    snapshot,
    pods,
    durations,
    pending: new Map(),
    reported: reportedIn(snapshot),
    assumptions,
    serial: firstSerial(snapshot),
  };
  const draft = beginStep(world, snapshot.nowMs);
  for (const set of snapshot.statefulSets) changeSet(draft, setKey(set.namespace, set.name), (state) => state);
  return finishStep(draft);
}

/**
 * The world after one input. Requests whose preconditions do not hold, or that a budget refuses, change nothing, and so does an instant that
 * has passed. What is not changed keeps its identity.
 */
export function step(world: World, input: WorldInput): World {
  if (input.kind === 'elapse') return elapse(world, input.toMs);
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

function apply(draft: StepDraft, input: Exclude<WorldInput, { kind: 'elapse' }>): void {
  switch (input.kind) {
    case 'action':
      applyAction(draft, input.action);
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
