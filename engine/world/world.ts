// Models the cluster for plans: the StatefulSet controller, the kubelet and the answers of pods. Actions, writes and time advance the model.
import type { GroupDefinition } from '../../policies/definition.ts';
import { secondText } from '../../policies/instant.ts';
import { noteAnswers, type PodAnswer } from '../decide/preparations.ts';
import type { Action } from '../decision.ts';
import { mayEvict } from '../disruption/pod-budget.ts';
import { type Assumptions, type PodTimes, podTimesOf } from '../plan/document.ts';
import { emptyLedger, isUnknown, type Ledger, type PodView, type Preparation, type Snapshot, type StatefulSetView } from '../snapshot.ts';
import {
  beginStep,
  breakPod,
  changePod,
  changePods,
  changeSet,
  finishStep,
  type SetState,
  type StepDraft,
  setKey,
  stateOf,
  terminatePod,
  timerOf,
} from './draft.ts';
import type { ModelPod, ModelPods, Place, PodDurations, PodTimer, Quantile, World, WorldInput } from './model.ts';

export type { Quantile };

/** Returns a world in the state of the snapshot. The controller has its first turn at once. StatefulSets with unknown pods do not change. */
export function createWorld(snapshot: Snapshot, assumptions: Assumptions, quantile: Quantile): World {
  const pods = new Map<string, ModelPods>();
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
    pods.set(key, modelPods(view.pods, times, snapshot.nowMs));
  }
  const [reported, serial] = [reportedIn(snapshot), firstSerial(snapshot)];
  const world = { assumptions, quantile, reported, serial, snapshot, pods, durations, places, pending: new Map() };
  return firstTurn(world, [...places.keys()]);
}

function modelPods(views: readonly PodView[], times: PodDurations, nowMs: number): ModelPods {
  const sorted = views.toSorted((a, b) => a.ordinal - b.ordinal);
  const timers = sorted.map((pod) => [pod.ordinal, timerOf(pod, times, nowMs)] as const);
  return { pods: sorted, timers: new Map(timers.filter((entry): entry is [number, PodTimer] => entry[1] !== undefined)) };
}

/** Returns the world after one input. Actions that a precondition or budget denies have no effect. Unchanged parts stay the same objects. */
export function step(world: World, input: WorldInput): World {
  if (input.kind === 'elapse') return elapse(world, input.toMs);
  if (input.kind === 'createStatefulSet') return createSet(world, input.set);
  const draft = beginStep(world, world.snapshot.nowMs);
  apply(draft, input);
  return finishStep(draft);
}

/** Returns the next instant of a change by time alone; undefined without such a change. */
export function nextEventMs(world: World): number | undefined {
  let next: number | undefined;
  for (const instant of world.pending.values()) if (next === undefined || instant < next) next = instant;
  return next;
}

/** Advances the time to `toMs`. Each due change and its consequences happen at the instant of the change. */
function elapse(world: World, toMs: number): World {
  let current = world;
  for (let next = nextEventMs(current); next !== undefined && next <= toMs; next = nextEventMs(current)) {
    const draft = beginStep(current, Math.max(next, current.snapshot.nowMs));
    for (const [key, instant] of current.pending) if (instant <= next) changeSet(draft, key, (state) => state);
    current = finishStep(draft);
  }
  return toMs > current.snapshot.nowMs ? { ...current, snapshot: { ...current.snapshot, nowMs: toMs } } : current;
}

/**
 * Adds a StatefulSet at the end of the list. It adopts the pods that the snapshot has of it. A StatefulSet whose name exists already changes
 * nothing.
 */
function createSet(world: World, created: StatefulSetView): World {
  const { snapshot } = world;
  const { namespace, name } = created;
  const key = setKey(namespace, name);
  if (snapshot.statefulSets.some((set) => setKey(set.namespace, set.name) === key)) return world;
  const durations = durationsOf(groupOf(snapshot, namespace, name), world.assumptions, world.quantile);
  const orphans = snapshot.pods.findIndex((view) => setKey(view.namespace, view.statefulSet) === key);
  const known = snapshot.pods[orphans]?.pods ?? [];
  const pods = modelPods(isUnknown(known) ? [] : known, durations, snapshot.nowMs);
  const view = { namespace, statefulSet: name, pods: pods.pods };
  const grown: World = {
    ...world,
    snapshot: {
      ...snapshot,
      statefulSets: [...snapshot.statefulSets, created],
      pods: orphans < 0 ? [...snapshot.pods, view] : snapshot.pods.with(orphans, view),
    },
    pods: new Map(world.pods).set(key, pods),
    durations: new Map(world.durations).set(key, durations),
    places: new Map(world.places).set(key, { set: snapshot.statefulSets.length, pods: orphans < 0 ? snapshot.pods.length : orphans }),
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
      deletePods(draft, input.deletions);
      break;
    case 'setTemplate':
      changeSet(draft, setKey(input.namespace, input.statefulSet), (state) => {
        const { status } = state.set;
        if (status.updateRevision === input.revision) return state;
        return { ...state, set: withNewSpec({ ...state.set, status: { ...status, updateRevision: input.revision } }, draft) };
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

/** Returns the timestamps from the preparations in the ledgers, by `namespace/pod`. */
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

function groupOf(snapshot: Snapshot, namespace: string, statefulSet: string): GroupDefinition | undefined {
  return snapshot.groups.find((group) => group.namespace === namespace && group.zones.some((zone) => zone.statefulSet === statefulSet));
}

/** The multiple of the p90 start time after which a late pod counts as broken. */
const patience = 3;

function durationsOf(group: GroupDefinition | undefined, assumptions: Assumptions, quantile: Quantile): PodDurations {
  const times = group === undefined ? assumptions.pods : podTimesOf(assumptions, group);
  const seconds = (value: PodTimes['drain']): number => (quantile === 'p50' ? value.p50Seconds : value.p90Seconds);
  return {
    drainMs: seconds(times.drain) * 1000,
    startMs: seconds(times.start) * 1000,
    longestStartMs: patience * times.start.p90Seconds * 1000,
  };
}

/** Returns a number above every resource version of the snapshot, so that the versions of the model are newer. */
function firstSerial(snapshot: Snapshot): number {
  let highest = 0;
  const raise = (resourceVersion: string): void => {
    const number = Number(resourceVersion);
    if (Number.isSafeInteger(number) && number > highest) highest = number;
  };
  for (const set of snapshot.statefulSets) raise(set.resourceVersion);
  for (const { pods } of snapshot.pods) if (!isUnknown(pods)) for (const pod of pods) raise(pod.resourceVersion);
  return highest + 1;
}

type ActionOf<Kind extends Action['kind']> = Extract<Action, { kind: Kind }>;

/** Applies an action. The action changes nothing if its object is missing or was recreated, or if a budget protects the pod. */
function applyAction(draft: StepDraft, action: Action): void {
  switch (action.kind) {
    case 'deletePod':
      deletePods(draft, [action]);
      break;
    case 'evictPod':
      evictPod(draft, action);
      break;
    case 'scaleStatefulSet':
      if (stateOf(draft, setKey(action.namespace, action.statefulSet))?.set.uid === action.uid) {
        scaleTo(draft, action.namespace, action.statefulSet, action.to);
      }
      break;
    case 'setPartition':
      setPartition(draft, action);
      break;
    case 'callPods':
      callPods(draft, action);
      break;
    case 'writeBackReplicas':
      draft.replicaSources = draft.replicaSources.map((source) => {
        const isTarget = source.namespace === action.namespace && source.kind === action.resourceKind && source.name === action.name;
        return isTarget ? { ...source, statusReplicas: action.replicas } : source;
      });
      break;
    case 'advanceCurrentRevision':
      changeSet(draft, setKey(action.namespace, action.statefulSet), (state) => {
        if (state.set.uid !== action.uid) return state;
        const status = { ...state.set.status, currentRevision: action.revision };
        return { ...state, set: { ...state.set, resourceVersion: `${draft.nextSerial()}`, status } };
      });
      break;
    default:
      action satisfies never;
  }
}

/** Sets the replicas. The ledger records the time of a decrease; with the label prepare-downscale, so does the annotation last-downscale. */
function scaleTo(draft: StepDraft, namespace: string, statefulSet: string, replicas: number): void {
  const key = setKey(namespace, statefulSet);
  const before = stateOf(draft, key)?.set;
  if (before === undefined || before.replicas === replicas) return;
  const isDecrease = replicas < before.replicas;
  if (isDecrease)
    changeLedger(draft, { namespace, statefulSet }, (ledger, zone) => {
      const downscale = { zone, atMs: draft.nowMs, from: before.replicas, to: replicas };
      return { ...ledger, downscales: [...ledger.downscales, downscale] };
    });
  const isPrepared = isDecrease && before.labels['grafana.com/prepare-downscale'] === 'true';
  changeSet(draft, key, ({ set, ...state }) => {
    const written = withNewSpec({ ...set, replicas }, draft);
    const annotations = { ...set.annotations, 'grafana.com/last-downscale': secondText(draft.nowMs) };
    return { ...state, set: isPrepared ? { ...written, annotations } : written };
  });
}

/** Returns the StatefulSet after a write of its spec that the controller has observed. */
function withNewSpec(set: StatefulSetView, draft: StepDraft): StatefulSetView {
  const generation = set.generation + 1;
  return { ...set, generation, resourceVersion: `${draft.nextSerial()}`, status: { ...set.status, observedGeneration: generation } };
}

/** Writes a partition, so that the controller may replace the exposed pods. */
function setPartition(draft: StepDraft, { namespace, statefulSet, uid, to }: ActionOf<'setPartition'>): void {
  changeSet(draft, setKey(namespace, statefulSet), (state) => {
    const { set } = state;
    if (set.uid !== uid || set.partition === to) return state;
    return { ...state, set: withNewSpec({ ...set, partition: to }, draft) };
  });
}

function deletePods(draft: StepDraft, actions: readonly ActionOf<'deletePod'>[]): void {
  const keyOf = ({ namespace, statefulSet }: ActionOf<'deletePod'>): string => setKey(namespace, statefulSet);
  for (const key of new Set(actions.map(keyOf))) {
    const own = actions.filter((action) => keyOf(action) === key);
    changePods(
      draft,
      key,
      own.map((action) => [action.ordinal, (pod) => (isTarget(pod, action) ? terminatePod(pod, drainOf(draft, action), draft) : pod)]),
    );
  }
}

function isTarget({ view }: ModelPod, { uid, resourceVersion }: ActionOf<'deletePod'>): boolean {
  return view.uid === uid && view.resourceVersion === resourceVersion;
}

/** Evicts a pod if its budget allows that. Compares only the UID, as the agent does, not the resource version. */
function evictPod(draft: StepDraft, action: ActionOf<'evictPod'>): void {
  changePod(draft, action, (pod) => {
    if (pod.view.uid !== action.uid || !mayEvict(draft.world.snapshot, action.namespace, pod.view)) return pod;
    return terminatePod(pod, drainOf(draft, action), draft);
  });
}

function drainOf(draft: StepDraft, action: { readonly namespace: string; readonly statefulSet: string }): SetState['durations'] {
  return draft.world.durations.get(setKey(action.namespace, action.statefulSet)) ?? { drainMs: 0, startMs: 0, longestStartMs: 0 };
}

/** Records the answers of the called pods. A pod keeps its first timestamp, also after a restart, until its preparation is withdrawn. */
function callPods(draft: StepDraft, action: ActionOf<'callPods'>): void {
  const asked = new Set(action.ordinals);
  const present = (stateOf(draft, setKey(action.namespace, action.statefulSet))?.pods ?? []).filter(({ ordinal }) => asked.has(ordinal));
  if (action.call === 'delayed') draft.reported = reportedAfter(draft, action, present);
  changeLedger(draft, action, (ledger, zone) => {
    const answers = present.map((pod) => answer(draft, action, pod, messageOfFailure(ledger, action, { zone, ordinal: pod.ordinal })));
    return noteAnswers(ledger, action, answers, draft.nowMs);
  });
}

function reportedAfter(draft: StepDraft, action: ActionOf<'callPods'>, pods: readonly PodView[]): StepDraft['reported'] {
  const reported = new Map(draft.reported);
  for (const { name } of pods) {
    const key = `${action.namespace}/${name}`;
    if (action.method === 'DELETE') reported.delete(key);
    else if (!reported.has(key) && !failsToPrepare(draft.world, action.zone)) reported.set(key, draft.nowMs);
  }
  return reported;
}

/** Reports whether the endpoint of the zone fails in this world. */
export function failsToPrepare({ assumptions, failingZones }: World, zone: string | undefined): boolean {
  return assumptions.preparations === 'fail' || (zone !== undefined && failingZones?.has(zone) === true);
}

/** Returns the message of the last failure, which the next failure is assumed to repeat. */
function messageOfFailure(
  { preparations }: Ledger,
  { call }: ActionOf<'callPods'>,
  { zone, ordinal }: Pick<Preparation, 'zone' | 'ordinal'>,
): string {
  const before = preparations.find((entry) => entry.zone === zone && entry.ordinal === ordinal && entry.call === call);
  return before?.message ?? (before?.state === 'asked' ? 'the last call has no answer yet' : 'preparations are assumed to fail');
}

function answer(draft: StepDraft, action: ActionOf<'callPods'>, pod: PodView, message: string): PodAnswer {
  const identity = { ordinal: pod.ordinal, podUid: pod.uid };
  if (action.method === 'DELETE') return { ...identity, result: 'done' };
  if (failsToPrepare(draft.world, action.zone)) {
    return { ...identity, result: 'failed', message };
  }
  const reportedMs = action.call === 'delayed' ? draft.reported.get(`${action.namespace}/${pod.name}`) : undefined;
  return { ...identity, result: 'done', ...(reportedMs === undefined ? {} : { reportedMs }) };
}

/** Changes the ledger of the group of a StatefulSet. Creates the ledger if the group has no ledger yet. */
function changeLedger(
  draft: StepDraft,
  { namespace, statefulSet }: { readonly namespace: string; readonly statefulSet: string },
  change: (ledger: Ledger, zone: string) => Ledger,
): void {
  const group = groupOf(draft.world.snapshot, namespace, statefulSet);
  const zone = group?.zones.find((candidate) => candidate.statefulSet === statefulSet)?.name;
  if (group === undefined || zone === undefined) return;
  const isLedger = (ledger: Ledger): boolean => ledger.namespace === namespace && ledger.group === group.name;
  draft.ledgers = draft.ledgers.some(isLedger)
    ? draft.ledgers.map((ledger) => (isLedger(ledger) ? change(ledger, zone) : ledger))
    : [...draft.ledgers, change(emptyLedger(namespace, group.name), zone)];
}
