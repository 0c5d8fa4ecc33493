// Carries out one action of a decision against the API server, and says how it ended.
import type { ClusterEnv } from '../../cluster/env.ts';
import { ApiFailure, TransportFailure } from '../../cluster/request/failure.ts';
import { getObject } from '../../cluster/request/read.ts';
import { resources } from '../../cluster/request/resource.ts';
import { deleteObject, evictPod, patchObject, replaceObject } from '../../cluster/request/write.ts';
import type { Action } from '../../engine/decision.ts';
import { messageOf } from '../../policies/error-message.ts';
import type { ActionResult } from '../report.ts';
import type { ChangedObject } from '../watched/freshness.ts';
import type { SourceReference } from '../watched/replica-sources.ts';

/** Actions on objects; calls to pods are carried out by `pod-calls.ts`. */
type ObjectAction = Exclude<Action, { readonly kind: 'callPods' }>;

export interface Acted {
  readonly result: ActionResult;
  readonly message?: string;
  /** HTTP status of a refusal. */
  readonly status?: number;
  /** The least time before the server wants to be asked again. */
  readonly retryAfterMs?: number;
  /** The state that a cache must show before the next decision. */
  readonly changed?: ChangedObject;
}

interface ActOptions {
  /** Timeout of each request in milliseconds. */
  readonly timeoutMs: number;
  /** Asked again before a request that follows another one. */
  readonly mayAct: () => boolean;
  /** The mirrored object as it was read for this decision. */
  readonly sourceOf: (action: Extract<Action, { readonly kind: 'writeBackReplicas' }>) => SourceReference | undefined;
}

/** Sends the request of the action, with its preconditions. Never throws for what the server answers, or does not. */
export async function act(env: Pick<ClusterEnv, 'kubernetes'>, action: ObjectAction, options: ActOptions): Promise<Acted> {
  try {
    const changed = await send(env, action, options);
    return { result: 'done', ...(changed === undefined ? {} : { changed }) };
  } catch (error) {
    return outcomeOf(error);
  }
}

async function send(env: Pick<ClusterEnv, 'kubernetes'>, action: ObjectAction, options: ActOptions): Promise<ChangedObject | undefined> {
  const { timeoutMs, sourceOf } = options;
  switch (action.kind) {
    case 'deletePod': {
      const { namespace, pod: name, uid, resourceVersion } = action;
      await deleteObject(env, resources.pods, { namespace, name, uid, resourceVersion }, { site: 'act.deletePod', timeoutMs });
      return { kind: 'pod', namespace, name, uid, isGoing: true };
    }
    case 'evictPod': {
      const { namespace, pod: name, uid } = action;
      await evictPod(env, { namespace, name, uid }, { site: 'act.evictPod', timeoutMs });
      return { kind: 'pod', namespace, name, uid, isGoing: true };
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
      const source = sourceOf(action);
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

/** A whole status, as grafana/rollout-operator writes it: its Role permits `update` there, and no `patch`. */
async function advanceCurrentRevision(
  env: Pick<ClusterEnv, 'kubernetes'>,
  { namespace, statefulSet: name, uid, resourceVersion, revision }: Extract<ObjectAction, { readonly kind: 'advanceCurrentRevision' }>,
  { timeoutMs, mayAct }: Pick<ActOptions, 'timeoutMs' | 'mayAct'>,
): Promise<ChangedObject | undefined> {
  const seen = await getObject(env, resources.statefulSets, { namespace, name }, { site: 'act.readStatefulSet', timeoutMs });
  const status = seen?.['status'];
  if (seen === undefined || typeof status !== 'object' || status === null) return undefined;
  // The answer may have come late, or this process may have stood still since it asked.
  if (!mayAct()) {
    throw new TransportFailure('this process no longer leads', { site: 'act.advanceCurrentRevision', mayBeApplied: false });
  }
  // The server compares both preconditions, so the write succeeds only on the object of the decision.
  const object = { ...seen, metadata: { ...seen.metadata, uid, resourceVersion }, status: { ...status, currentRevision: revision } };
  const answer = await replaceObject(env, resources.statefulSets, object, {
    subresource: 'status',
    site: 'act.advanceCurrentRevision',
    timeoutMs,
  });
  return { kind: 'statefulSet', namespace, name, uid, resourceVersion: answer.metadata.resourceVersion ?? resourceVersion };
}

/** Maps 404, 409, 410 and 412 to conflict and other 4xx to refused. After 5xx or without an answer the result is unknown. */
function outcomeOf(error: unknown): Acted {
  const message = messageOf(error);
  if (error instanceof ApiFailure) {
    const { status, retryAfterMs } = error;
    const isChanged = status === 404 || status === 409 || status === 410 || status === 412;
    const result = isChanged ? 'conflict' : status >= 400 && status < 500 ? 'refused' : 'unknown';
    return { result, message, status, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
  }
  return { result: error instanceof TransportFailure && error.mayBeApplied ? 'unknown' : 'failed', message };
}
