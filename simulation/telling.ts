// Writes the timeline of a run for people: what happened, to what and by whom, one line each, without repetition.
import type { TurnReport } from '../agent/report.ts';
import type { PlacedFault } from './faults/fault.ts';
import type { Answered, Commit, Json, ModelObject } from './server/request.ts';

/** Describes an effective request of an agent; undefined for routine requests such as renewals of a Lease. */
export function answeredText({ verb, resource, subresource, name, status, request }: Answered): string | undefined {
  if (verb === 'get' || verb === 'list' || resource === 'leases.coordination.k8s.io') return undefined;
  const what = subresource === '' ? resource : `${resource}/${subresource}`;
  return `${verb} ${what} ${name}: ${status} (${request.actor.site ?? 'no site'})`;
}

/** Describes a commit of the world around the agents; undefined for routine ones. */
export function committedText({ type, resource, before, after }: Commit): string | undefined {
  const { name } = after.metadata;
  if (resource === 'pods') {
    if (type === 'ADDED') return `pod ${name} is created at ${revisionOf(after)}`;
    if (type === 'DELETED') return `pod ${name} is deleted`;
    if (before?.metadata.deletionTimestamp === undefined && after.metadata.deletionTimestamp !== undefined) return `pod ${name} terminates`;
    const [was, is] = [before !== undefined && isReady(before), isReady(after)];
    return was === is ? undefined : `pod ${name} is ${is ? 'ready' : 'not ready'}`;
  }
  if (resource === 'leases.coordination.k8s.io') {
    const [was, is] = [before === undefined ? 'no holder' : holderOf(before), type === 'DELETED' ? 'no holder' : holderOf(after)];
    return was === is ? undefined : `the Lease passes from ${was} to ${is}`;
  }
  if (resource !== 'statefulsets.apps') return undefined;
  if (type !== 'MODIFIED') return `StatefulSet ${name} is ${type === 'ADDED' ? 'created' : 'deleted'}`;
  const [was, is] = [replicasOf(before), replicasOf(after)];
  return was === is ? undefined : `StatefulSet ${name} has ${is} replicas instead of ${was}`;
}

/** Describes the result of a turn; undefined if it did nothing successfully. */
export function turnText({ performed, error }: TurnReport): string | undefined {
  const acts = performed.map(({ action, result, message }) => {
    const target = 'pod' in action ? podName(action.pod) : 'zone' in action ? String(action.zone) : '';
    return `${action.kind} ${target}: ${result}${message === undefined ? '' : ` (${message.slice(0, 120)})`}`;
  });
  if (error !== undefined) acts.push(`the turn failed: ${error.slice(0, 160)}`);
  return acts.length === 0 ? undefined : acts.join('; ');
}

/** Describes a fault and its place. */
export function faultText({ at, fault }: PlacedFault): string {
  const { class: name, kind, ...parameters } = fault;
  const rest = Object.entries(parameters).map(([key, value]) => `${key}=${value}`);
  return [name, kind, ...rest, 'at', at].join(' ');
}

function podName(pod: unknown): string {
  if (typeof pod === 'string') return pod;
  const name: unknown = typeof pod === 'object' && pod !== null ? Reflect.get(pod, 'name') : undefined;
  return typeof name === 'string' ? name : '';
}

function revisionOf(pod: ModelObject): string {
  return pod.metadata.labels?.['controller-revision-hash'] ?? 'no revision';
}

function isReady(pod: ModelObject): boolean {
  const status = (pod['status'] ?? {}) as { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
  return status.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') ?? false;
}

function holderOf(lease: ModelObject): string {
  const holder = ((lease['spec'] ?? {}) as Json)['holderIdentity'];
  return typeof holder === 'string' && holder !== '' ? holder : 'no holder';
}

function replicasOf(set: ModelObject | undefined): number | undefined {
  const replicas = ((set?.['spec'] ?? {}) as Json)['replicas'];
  return typeof replicas === 'number' ? replicas : undefined;
}
