// Applies each action to the model: preconditions of the API server, the eviction API, notes of our webhook and answers of pods.

import { noteAnswers, type PodAnswer } from '../decide/preparations.ts';
import type { Action } from '../decision.ts';
import { mayEvict } from '../disruption/pod-budget.ts';
import type { Ledger, PodView, Snapshot } from '../snapshot.ts';
import type { SetState } from './controller.ts';
import { changePod, changeSet, type StepDraft, setKey, stateOf } from './draft.ts';
import type { ModelPod } from './model.ts';
import { terminatePod } from './pod.ts';

type ActionOf<Kind extends Action['kind']> = Extract<Action, { kind: Kind }>;

/** Applies an action. It changes nothing if its object is missing, was replaced or is protected by a budget. */
export function applyAction(draft: StepDraft, action: Action): void {
  switch (action.kind) {
    case 'deletePod':
      deletePod(draft, action);
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

/**
 * Sets the replicas of a StatefulSet for any requester. A decrease is dated in the ledger of its group, and on a labelled StatefulSet, as
 * the webhook of grafana/rollout-operator does.
 */
export function scaleTo(draft: StepDraft, namespace: string, statefulSet: string, replicas: number): void {
  const key = setKey(namespace, statefulSet);
  const before = stateOf(draft, key)?.set;
  if (before === undefined || before.replicas === replicas) return;
  const isDecrease = replicas < before.replicas;
  if (isDecrease) noteDownscale(draft, { namespace, statefulSet, from: before.replicas, to: replicas });
  const isPrepared = isDecrease && before.labels['grafana.com/prepare-downscale'] === 'true';
  changeSet(draft, key, (state) => ({ ...state, set: resized(state, replicas, isPrepared, draft) }));
}

function resized({ set }: SetState, replicas: number, isPrepared: boolean, draft: StepDraft): SetState['set'] {
  const generation = set.generation + 1;
  return {
    ...set,
    replicas,
    generation,
    resourceVersion: `${draft.nextSerial()}`,
    ...(isPrepared ? { annotations: { ...set.annotations, 'grafana.com/last-downscale': secondsText(draft.nowMs) } } : {}),
    status: { ...set.status, observedGeneration: generation },
  };
}

/** Writes a partition. The controller replaces pods in its next turn. */
function setPartition(draft: StepDraft, { namespace, statefulSet, uid, to }: ActionOf<'setPartition'>): void {
  changeSet(draft, setKey(namespace, statefulSet), (state) => {
    const { set } = state;
    if (set.uid !== uid || set.partition === to) return state;
    const generation = set.generation + 1;
    const status = { ...set.status, observedGeneration: generation };
    return { ...state, set: { ...set, partition: to, generation, resourceVersion: `${draft.nextSerial()}`, status } };
  });
}

function deletePod(draft: StepDraft, action: ActionOf<'deletePod'>): void {
  changePod(draft, action, (pod) => {
    const isSame = pod.view.uid === action.uid && pod.view.resourceVersion === action.resourceVersion;
    return isSame ? terminatePod(pod, drainOf(draft, action), draft) : pod;
  });
}

/** An eviction carries the UID alone: a conflict on the resource version would still use up the budget for two minutes. */
function evictPod(draft: StepDraft, action: ActionOf<'evictPod'>): void {
  changePod(draft, action, (pod) => {
    if (pod.view.uid !== action.uid || !mayEvict(draft.world.snapshot, action.namespace, pod.view)) return pod;
    return terminatePod(pod, drainOf(draft, action), draft);
  });
}

function drainOf(draft: StepDraft, action: { readonly namespace: string; readonly statefulSet: string }): SetState['durations'] {
  return draft.world.durations.get(setKey(action.namespace, action.statefulSet)) ?? { drainMs: 0, startMs: 0 };
}

/**
 * The pods' answers. A pod that is asked again keeps its first timestamp until it is told to stay, also over a restart, since databases store
 * it; a pod that is not there does not answer.
 */
function callPods(draft: StepDraft, action: ActionOf<'callPods'>): void {
  const asked = new Set(action.ordinals);
  const there = (stateOf(draft, setKey(action.namespace, action.statefulSet))?.pods ?? []).filter(({ view }) => asked.has(view.ordinal));
  if (action.call === 'delayed') draft.reported = reportedAfter(draft, action, there);
  changeLedger(draft, action, (ledger) => {
    // Entries of ordinals without a pod are withdrawn too: no pod is left that could be prepared.
    const known = action.method === 'DELETE' ? ledger.preparations.filter(({ ordinal }) => asked.has(ordinal)) : [];
    const absent = known.filter(({ ordinal }) => there.every(({ view }) => view.ordinal !== ordinal));
    const answers = [
      ...there.map(({ view }) => answer(draft, action, view)),
      ...absent.map(({ ordinal, podUid }): PodAnswer => ({ ordinal, podUid, result: 'done' })),
    ];
    return noteAnswers(ledger, action, answers, draft.nowMs);
  });
}

function reportedAfter(draft: StepDraft, action: ActionOf<'callPods'>, pods: readonly ModelPod[]): StepDraft['reported'] {
  const reported = new Map(draft.reported);
  for (const { view } of pods) {
    const key = `${action.namespace}/${view.name}`;
    if (action.method === 'DELETE') reported.delete(key);
    else if (!reported.has(key) && draft.world.assumptions.preparations === 'succeed') reported.set(key, draft.nowMs);
  }
  return reported;
}

function answer(draft: StepDraft, action: ActionOf<'callPods'>, pod: PodView): PodAnswer {
  const identity = { ordinal: pod.ordinal, podUid: pod.uid };
  if (action.method === 'DELETE') return { ...identity, result: 'done' };
  if (draft.world.assumptions.preparations === 'fail') {
    return { ...identity, result: 'failed', message: 'preparations are assumed to fail' };
  }
  const reportedMs = action.call === 'delayed' ? draft.reported.get(`${action.namespace}/${pod.name}`) : undefined;
  return { ...identity, result: 'done', ...(reportedMs === undefined ? {} : { reportedMs }) };
}

function noteDownscale(
  draft: StepDraft,
  { namespace, statefulSet, from, to }: { namespace: string; statefulSet: string; from: number; to: number },
): void {
  const zone = zoneOf(draft.world.snapshot, namespace, statefulSet);
  if (zone === undefined) return;
  const downscale = { zone, atMs: draft.nowMs, from, to };
  changeLedger(draft, { namespace, statefulSet }, (ledger) => ({ ...ledger, downscales: [...ledger.downscales, downscale] }));
}

function zoneOf(snapshot: Snapshot, namespace: string, statefulSet: string): string | undefined {
  for (const group of snapshot.groups) {
    if (group.namespace !== namespace) continue;
    const zone = group.zones.find((candidate) => candidate.statefulSet === statefulSet);
    if (zone !== undefined) return zone.name;
  }
  return undefined;
}

/** Changes the ledger of the group that a StatefulSet is a member of; a group without one gets it. */
function changeLedger(
  draft: StepDraft,
  { namespace, statefulSet }: { readonly namespace: string; readonly statefulSet: string },
  change: (ledger: Ledger) => Ledger,
): void {
  const isMember = ({ zones }: Snapshot['groups'][number]): boolean => zones.some((zone) => zone.statefulSet === statefulSet);
  const group = draft.world.snapshot.groups.find((candidate) => candidate.namespace === namespace && isMember(candidate))?.name;
  if (group === undefined) return;
  const isLedger = (ledger: Ledger): boolean => ledger.namespace === namespace && ledger.group === group;
  const empty: Ledger = { namespace, group, claims: [], downscales: [], preparations: [] };
  draft.ledgers = draft.ledgers.some(isLedger)
    ? draft.ledgers.map((ledger) => (isLedger(ledger) ? change(ledger) : ledger))
    : [...draft.ledgers, change(empty)];
}

/** An instant as the webhook writes it: UTC, whole seconds. */
function secondsText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
