// Calls pods for prepare-downscale: POST asks a pod to prepare for its removal, DELETE asks a pod to stay.
import { inParallel, podUrl } from '../../../cluster/pods.ts';
import { getObject } from '../../../cluster/request/read.ts';
import { resources } from '../../../cluster/request/resource.ts';
import type { StatefulSetView } from '../../../engine/snapshot.ts';
import { annotationKeys } from '../../../policies/adopt/keys.ts';
import { encodedPath, urlParts } from '../../../policies/adopt/url.ts';
import type { WebhookEnv } from '../../env.ts';
import { problemText } from '../replicas.ts';

interface CalledPod {
  readonly namespace: string;
  readonly name: string;
  /** Returns the address. Throws if a setting is not a valid part of it. */
  readonly url: () => string;
}

interface CallOptions {
  readonly timeoutMs: number;
  /** Returns the remaining time for a call that begins now, in milliseconds. */
  readonly leftMs: () => number;
}

/** Limit of the body of an answer. Only the status counts. */
const maxBodyBytes = 65_536;

/** Returns a message about the first missing setting, in the order of grafana/rollout-operator; undefined if no setting is missing. */
export function missingSetting({ annotations, serviceName }: Pick<StatefulSetView, 'annotations' | 'serviceName'>): string | undefined {
  for (const key of [annotationKeys.preparePort, annotationKeys.preparePath]) {
    if ((annotations[key] ?? '') === '') return `the annotation ${key} is missing or empty, so pods cannot be asked to prepare`;
  }
  return serviceName === '' ? 'spec.serviceName is empty, so pods have no host name and cannot be asked to prepare' : undefined;
}

/** Returns the pods with these ordinals. As in grafana/rollout-operator, the URL adds a slash to the path: `/path` becomes `//path`. */
export function podsToCall(set: StatefulSetView, ordinals: readonly number[], clusterDomain: string): readonly CalledPod[] {
  const { namespace, serviceName } = set;
  return ordinals.map((ordinal) => {
    const name = `${set.name}-${ordinal}`;
    return { namespace, name, url: () => podUrl({ namespace, pod: name, serviceName, clusterDomain }, endpointOf(set)) };
  });
}

function endpointOf({ annotations }: StatefulSetView): Parameters<typeof podUrl>[1] {
  const portText = annotations[annotationKeys.preparePort] ?? '';
  const port = /^\d{1,8}$/.test(portText) ? Number(portText) : Number.NaN;
  const parts = urlParts(`http://pod/${annotations[annotationKeys.preparePath] ?? ''}`);
  if (!(port >= 1 && port <= 65_535)) throw new Error(`annotation ${annotationKeys.preparePort} is not a port`);
  if (parts === undefined) throw new Error(`annotation ${annotationKeys.preparePath} is not a URL path`);
  return { scheme: 'http', port, path: encodedPath(parts.pathAndQuery) };
}

/**
 * Asks the pods to prepare, in order and 32 at a time. Returns the first failure. After a failure no further call starts, and started
 * calls finish. A pod that neither answers nor exists counts as prepared.
 */
export async function askToPrepare(env: WebhookEnv, pods: readonly CalledPod[], options: CallOptions): Promise<string | undefined> {
  let failure: string | undefined;
  await inParallel(pods, async (pod) => {
    if (failure !== undefined) return undefined;
    const result = await ask(env, pod, 'POST', options);
    if (result === 'done' || (result.isSilent && (await isAbsent(env, pod, options)))) return undefined;
    failure ??= `${pod.name}: ${result.problem}`;
    return undefined;
  });
  return failure;
}

/** Asks all pods to stay. Logs failed calls and continues. */
export async function askToStay(env: WebhookEnv, pods: readonly CalledPod[], options: CallOptions): Promise<void> {
  await inParallel(pods, async (pod) => {
    const result = await ask(env, pod, 'DELETE', options);
    if (result !== 'done') env.log.error('a pod was not told to stay', { pod: pod.name, problem: result.problem });
    return undefined;
  });
}

type CallResult = 'done' | { readonly problem: string; readonly isSilent: boolean };

async function ask(env: WebhookEnv, pod: CalledPod, method: 'POST' | 'DELETE', { timeoutMs, leftMs }: CallOptions): Promise<CallResult> {
  const allowedMs = Math.min(timeoutMs, leftMs());
  const site = method === 'POST' ? 'prepareDownscale.preparePod' : 'prepareDownscale.withdrawPod';
  let isSilent = false;
  try {
    const url = pod.url();
    if (allowedMs <= 0) throw new Error('no time was left for the call');
    isSilent = true;
    const { status } = await env.pods.call({ method, url, timeoutMs: allowedMs, maxBodyBytes, site });
    return status >= 200 && status <= 299 ? 'done' : { problem: `it answered ${status}`, isSilent: false };
  } catch (error) {
    return { problem: problemText(error), isSilent };
  }
}

/** Returns whether the pod does not exist; false if it cannot be read. */
async function isAbsent(env: WebhookEnv, { namespace, name }: CalledPod, { leftMs }: CallOptions): Promise<boolean> {
  const timeoutMs = leftMs();
  if (timeoutMs <= 0) return false;
  try {
    const pod = await getObject(env, resources.pods, { namespace, name }, { site: 'prepareDownscale.readPod', timeoutMs });
    return pod === undefined;
  } catch (error) {
    env.log.error('could not check whether a silent pod exists', { pod: name, problem: problemText(error) });
    return false;
  }
}
