// Performs the actions of one decision in order for a turn, and revokes earlier deletions with an unknown outcome.

import type { ClusterEnv } from '../../cluster/env.ts';
import { podUrl } from '../../cluster/pods.ts';
import { ApiFailure, isStatus, TransportFailure } from '../../cluster/request/failure.ts';
import { getObject } from '../../cluster/request/read.ts';
import { resources } from '../../cluster/request/resource.ts';
import { deleteObject, evictPod, patchObject, replaceObject } from '../../cluster/request/write.ts';
import { noteAnswers, type PodAnswer } from '../../engine/decide/preparations.ts';
import { type Action, replacedBy } from '../../engine/decision.ts';
import { type ObservedObjects, type Revocation, revocationsOf } from '../../engine/ledger/ledger.ts';
import { profileOf } from '../../engine/profiles.ts';
import type { TakenAction } from '../../engine/publish/published.ts';
import { isUnknown, type Ledger, type PodView, type Snapshot } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { durationMs } from '../../policies/duration.ts';
import { messageOf } from '../../policies/error-message.ts';
import type { AgentConfig } from '../config.ts';
import type { AgentEnv } from '../env.ts';
import type { ChangedObject } from '../watched/freshness.ts';
import type { SourceReference } from '../watched/replica-sources.ts';
import { askToPrepare, type CalledPod, cancelPreparation } from './pod-calls.ts';

type CallPods = Extract<Action, { readonly kind: 'callPods' }>;

interface PerformOptions extends ActOptions {
  readonly env: AgentEnv;
  readonly config: Pick<AgentConfig, 'clusterDomain' | 'podTimeoutMs'>;
  readonly group: GroupDefinition;
  readonly snapshot: Snapshot;
  /** Returns how long a call to a pod may take, in milliseconds; 0 or less if no call may be sent. */
  readonly leftMs: () => number;
  /** Returns whether the remaining actions are still valid. Called before each request that removes pods or changes replicas. */
  readonly mayDisrupt: (remaining: readonly Action[]) => boolean;
  /** Called once, before the first request. */
  readonly onFirst: () => void;
}

export type Outcome = TakenAction &
  Pick<ActionOutcome, 'status' | 'retryAfterMs' | 'changed'> & { readonly answers?: readonly PodAnswer[] };

/**
 * Performs the actions in order. Stops if the remaining actions are stale or no longer permitted, and after an outcome for which
 * `endsTurn` is true. Continues after failed calls to pods. Returns only the outcomes of the actions that were started.
 */
export async function perform(actions: readonly Action[], options: PerformOptions): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const [index, action] of actions.entries()) {
    if (!options.mayAct() || (needsFreshSnapshot(action) && !options.mayDisrupt(actions.slice(index)))) break;
    if (outcomes.length === 0) options.onFirst();
    const outcome =
      action.kind === 'callPods' ? await callPods(action, options) : { action, ...(await sendAction(options.env, action, options)) };
    outcomes.push(outcome);
    if (endsTurn(outcome)) break;
  }
  return outcomes;
}

/** Returns whether no further action is sent after this outcome. The actions after a change of replicas need the new number. */
export function endsTurn({ action, result }: Outcome): boolean {
  if (action.kind === 'scaleStatefulSet') return result !== 'done';
  return action.kind !== 'callPods' && (result === 'unknown' || result === 'failed');
}

export function isDestructive(action: Action): boolean {
  return replacedBy(action).length > 0 || (action.kind === 'scaleStatefulSet' && action.to < action.from);
}

/**
 * Returns whether the action needs a fresh snapshot. A scale-up needs one, because the replicas of its source may have changed. A freeze
 * needs one, because the StatefulSet controller may have updated more pods.
 */
export function needsFreshSnapshot(action: Action): boolean {
  return isDestructive(action) || action.kind === 'scaleStatefulSet' || (action.kind === 'setPartition' && action.because === 'frozen');
}

/** Returns the actions that an old snapshot permits. Leaves out the actions after a change of replicas, because they need the new number. */
export function sendableLater(actions: readonly Action[]): readonly Action[] {
  const scaling = actions.findIndex(({ kind }) => kind === 'scaleStatefulSet');
  return actions.slice(0, scaling === -1 ? undefined : scaling).filter((action) => !needsFreshSnapshot(action));
}

/** Returns the pods of the ordinals, in the order of the ordinals. Leaves out missing pods, because they need no call. */
export function calledPods({ namespace, statefulSet, ordinals }: CallPods, snapshot: Snapshot): readonly PodView[] {
  const known = snapshot.pods.find((view) => view.namespace === namespace && view.statefulSet === statefulSet)?.pods;
  if (known === undefined || isUnknown(known)) return [];
  return ordinals.flatMap((ordinal) => known.find((pod) => pod.ordinal === ordinal) ?? []);
}

async function callPods(action: CallPods, { env, config, group, snapshot, leftMs }: PerformOptions): Promise<Outcome> {
  const zone = group.zones.find(({ name }) => name === action.zone);
  const endpoint = (action.call === 'delayed' ? zone?.delayed : zone?.prepare)?.endpoint;
  const existing = calledPods(action, snapshot);
  if (endpoint === undefined) {
    // The policy no longer defines an endpoint, so no pod can be called.
    env.log.error('pods cannot be called: no endpoint is defined', { group: group.name, zone: action.zone });
    const answers =
      action.method === 'POST' ? [] : existing.map(({ ordinal, uid }): PodAnswer => ({ ordinal, podUid: uid, result: 'done' }));
    return { action, result: 'refused', message: 'no endpoint is defined', answers };
  }
  const serviceName = snapshot.statefulSets.find(
    ({ namespace, name }) => namespace === action.namespace && name === action.statefulSet,
  )?.serviceName;
  const address = { namespace: action.namespace, serviceName: serviceName ?? '', clusterDomain: config.clusterDomain };
  const pods = existing.map(
    ({ ordinal, uid, name }): CalledPod => ({ ordinal, uid, name, url: () => podUrl({ ...address, pod: name }, endpoint) }),
  );
  const timeoutMs = profileOf(group).podCallTimeout === 'flag' ? config.podTimeoutMs : durationMs(endpoint.timeout);
  const ask = action.method === 'POST' ? askToPrepare : cancelPreparation;
  const answers = await ask(env, pods, { call: action.call, timeoutMs, leftMs });
  const failed = answers.find(({ result }) => result === 'failed');
  if (failed !== undefined) {
    const name = pods.find(({ ordinal }) => ordinal === failed.ordinal)?.name;
    return { action, result: 'failed', message: `${name}: ${failed.message ?? 'it did not answer'}`, answers };
  }
  return { action, result: answers.length === pods.length && pods.length > 0 ? 'done' : 'conflict', answers };
}

export function withAnswers(ledger: Ledger, outcomes: readonly Outcome[], nowMs: number): Ledger {
  let current = ledger;
  for (const { action, answers = [] } of outcomes) {
    if (action.kind === 'callPods' && answers.length > 0) current = noteAnswers(current, action, answers, nowMs);
  }
  return current;
}

/** The actions on objects. pod-calls.ts performs the calls to pods. */
type ObjectAction = Exclude<Action, CallPods>;

interface ActionOutcome {
  readonly result: TakenAction['result'];
  readonly message?: string;
  /** The HTTP status if the API server rejected the request. */
  readonly status?: number;
  /** The minimum pause that the server requests. */
  readonly retryAfterMs?: number;
  /** The state that the caches must contain before the next decision. */
  readonly changed?: ChangedObject;
}

interface ActOptions {
  readonly timeoutMs: number;
  /** Returns whether this process may still act. Also called between two requests of one action. */
  readonly mayAct: () => boolean;
  /** The mirrored objects that were read for this decision. */
  readonly references: readonly SourceReference[];
}

/** Sends the request of the action with its preconditions. Never rejects: an error of the API server or a missing answer is an outcome. */
export async function sendAction(env: Pick<ClusterEnv, 'kubernetes'>, action: ObjectAction, options: ActOptions): Promise<ActionOutcome> {
  try {
    const changed = await send(env, action, options);
    return { result: 'done', ...(changed === undefined ? {} : { changed }) };
  } catch (error) {
    return outcomeOf(error);
  }
}

async function send(env: Pick<ClusterEnv, 'kubernetes'>, action: ObjectAction, options: ActOptions): Promise<ChangedObject | undefined> {
  const { timeoutMs, references } = options;
  switch (action.kind) {
    case 'deletePod': {
      const { namespace, pod: name, uid, resourceVersion } = action;
      await deleteObject(env, resources.pods, { namespace, name, uid, resourceVersion }, { site: 'act.deletePod', timeoutMs });
      return { kind: 'pod', namespace, name, uid, deletion: 'begun' };
    }
    case 'evictPod': {
      const { namespace, pod: name, uid } = action;
      await evictPod(env, { namespace, name, uid }, { site: 'act.evictPod', timeoutMs });
      return { kind: 'pod', namespace, name, uid, deletion: 'begun' };
    }
    case 'scaleStatefulSet': {
      const patch = { spec: { replicas: action.to } };
      return await patchStatefulSet(env, action, { patch, site: 'act.scaleStatefulSet', timeoutMs });
    }
    case 'setPartition': {
      const patch = { spec: { updateStrategy: { rollingUpdate: { partition: action.to } } } };
      return await patchStatefulSet(env, action, { patch, site: 'act.setPartition', timeoutMs });
    }
    case 'advanceCurrentRevision':
      return await advanceCurrentRevision(env, action, options);
    case 'writeBackReplicas': {
      const source = references.find(({ namespace, name }) => namespace === action.namespace && name === action.name);
      if (source === undefined)
        throw new TransportFailure('the mirrored object was not read', { site: 'act.writeBackReplicas', mayBeApplied: false });
      const { namespace, name, uid, resourceVersion, resource } = source;
      const patch = { status: { replicas: action.replicas } };
      const target = { namespace, name, uid, resourceVersion };
      await patchObject(env, resource, target, { patch, subresource: 'status', site: 'act.writeBackReplicas', timeoutMs });
      return undefined;
    }
    default:
      return action satisfies never;
  }
}

type StatefulSetAction = Extract<ObjectAction, { readonly kind: 'scaleStatefulSet' | 'setPartition' }>;

async function patchStatefulSet(
  env: Pick<ClusterEnv, 'kubernetes'>,
  { namespace, statefulSet: name, uid, resourceVersion }: StatefulSetAction,
  options: Parameters<typeof patchObject>[3],
): Promise<ChangedObject> {
  const answer = await patchObject(env, resources.statefulSets, { namespace, name, uid, resourceVersion }, options);
  return { kind: 'statefulSet', namespace, name, uid, resourceVersion: answer.metadata.resourceVersion ?? resourceVersion };
}

/** Replaces the whole status, as grafana/rollout-operator does, because the Role of that operator permits `update` but not `patch`. */
async function advanceCurrentRevision(
  env: Pick<ClusterEnv, 'kubernetes'>,
  { namespace, statefulSet: name, uid, resourceVersion, revision }: Extract<ObjectAction, { readonly kind: 'advanceCurrentRevision' }>,
  { timeoutMs, mayAct }: ActOptions,
): Promise<ChangedObject | undefined> {
  const seen = await getObject(env, resources.statefulSets, { namespace, name }, { site: 'act.readStatefulSet', timeoutMs });
  const status = seen?.['status'];
  if (seen === undefined || typeof status !== 'object' || status === null) return undefined;
  // The answer may have come late, or the process may have stalled, so the leadership is checked again.
  if (!mayAct()) {
    throw new TransportFailure('this process no longer leads', { site: 'act.advanceCurrentRevision', mayBeApplied: false });
  }
  // The server compares the UID and the resource version, so the write fails if the object has changed since the snapshot.
  const object = { ...seen, metadata: { ...seen.metadata, uid, resourceVersion }, status: { ...status, currentRevision: revision } };
  const answer = await replaceObject(env, resources.statefulSets, object, {
    subresource: 'status',
    site: 'act.advanceCurrentRevision',
    timeoutMs,
  });
  return { kind: 'statefulSet', namespace, name, uid, resourceVersion: answer.metadata.resourceVersion ?? resourceVersion };
}

/**
 * Maps 404, 409, 410 and 412 to conflict, and other 4xx and denials of webhooks to refused. The result is unknown if the request may have
 * been applied.
 */
function outcomeOf(error: unknown): ActionOutcome {
  const message = messageOf(error);
  if (error instanceof ApiFailure) {
    const { status, retryAfterMs, isDenied } = error;
    const isChanged = !isDenied && (status === 404 || status === 409 || status === 410 || status === 412);
    const result = isChanged ? 'conflict' : isDenied || status < 500 ? 'refused' : 'unknown';
    return { result, message, status, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
  }
  return { result: error instanceof TransportFailure && error.mayBeApplied ? 'unknown' : 'failed', message };
}

/** The annotation of a pod with the time of the last revocation. */
const revokedAnnotation = 'rollout-group.dev/claim-revoked';

/** Returns the pods whose deletion must be revoked. `confirmed` has the UIDs whose deletion the API server confirmed to this process. */
export function openRevocations(
  ledger: Ledger,
  seen: ObservedObjects,
  { epoch, confirmed }: { readonly epoch: number; readonly confirmed: ReadonlySet<string> },
): readonly Revocation[] {
  const claims = ledger.claims.filter((claim) => !confirmed.has(claim.uid)).map(({ epoch: _epoch, ...claim }) => claim);
  return revocationsOf({ ...ledger, claims }, seen, epoch);
}

interface RevokeOptions {
  readonly timeoutMs: number;
  readonly mayAct: () => boolean;
  /** Called if pods may not be patched. Their claims then expire. */
  readonly onForbidden: (message: string) => void;
}

/**
 * Patches an annotation of the pods, so that a delayed DELETE with the old resourceVersion fails. Returns the states that the caches must
 * contain before the next decision. A pod that has changed is skipped, because a delayed DELETE fails anyway. If pods may not be patched,
 * their claims expire. Rejects with every other error.
 */
export async function revoke(
  env: AgentEnv,
  revocations: readonly Revocation[],
  { timeoutMs, mayAct, onForbidden }: RevokeOptions,
): Promise<readonly ChangedObject[]> {
  const changed: ChangedObject[] = [];
  for (const { namespace, pod: name, uid, resourceVersion } of revocations) {
    if (!mayAct()) break;
    const value = new Date(env.clock.nowMs()).toISOString();
    const patch = { metadata: { annotations: { [revokedAnnotation]: value } } };
    try {
      const options = { patch, site: 'revoke.touchPod', timeoutMs };
      const touched = await patchObject(env, resources.pods, { namespace, name, uid, resourceVersion }, options);
      changed.push({ kind: 'pod', namespace, name, uid, resourceVersion: touched.metadata.resourceVersion ?? resourceVersion });
      env.log.info('unanswered pod deletion revoked', { namespace, pod: name });
    } catch (error) {
      if (isStatus(error, 404, 409, 410)) continue;
      if (!isStatus(error, 403)) throw error;
      // The API server would also forbid the patch of the next pod.
      onForbidden(error.message);
      break;
    }
  }
  return changed;
}
