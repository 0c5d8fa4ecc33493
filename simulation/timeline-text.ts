// Describes the events of a simulation in one line each for the timeline.
import type { TurnReport } from '../agent/report.ts';
import type { PlacedFault } from './faults/fault.ts';
import {
  isTerminating,
  leaseResource,
  numberAt,
  podResource,
  readyCondition,
  revisionLabelOf,
  statefulSetResource,
  textAt,
} from './objects.ts';
import { isByPeople, type ScenarioEvent } from './scenario.ts';
import type { Answered, Commit, ModelObject } from './server/request.ts';

/** Describes a write of an agent; undefined for reads and for writes of the Lease. */
export function answeredText({ verb, resource, subresource, name, status, request }: Answered): string | undefined {
  if (verb === 'get' || verb === 'list' || resource === leaseResource) return undefined;
  const what = subresource === '' ? resource : `${resource}/${subresource}`;
  return `${verb} ${what} ${name}: ${status} (${request.actor.site ?? 'no site'})`;
}

/** Describes an important change of a pod, a StatefulSet or the Lease; undefined for other commits. */
export function committedText({ type, resource, before, after }: Commit): string | undefined {
  const { name } = after.metadata;
  if (resource === podResource) return podText({ type, before, after });
  if (resource === leaseResource) {
    const [was, is] = [before === undefined ? 'no holder' : holderOf(before), type === 'DELETED' ? 'no holder' : holderOf(after)];
    return was === is ? undefined : `the Lease passes from ${was} to ${is}`;
  }
  if (resource !== statefulSetResource) return undefined;
  if (type !== 'MODIFIED') return `StatefulSet ${name} is ${type === 'ADDED' ? 'created' : 'deleted'}`;
  const [was, is] = [numberAt(before, 'spec', 'replicas'), numberAt(after, 'spec', 'replicas')];
  return was === is ? undefined : `StatefulSet ${name} has ${is} replicas instead of ${was}`;
}

function podText({
  type,
  before,
  after,
}: Pick<Commit, 'type' | 'after'> & { readonly before: ModelObject | undefined }): string | undefined {
  const { name } = after.metadata;
  if (type === 'ADDED') return `pod ${name} is created at ${revisionLabelOf(after) || 'no revision'}`;
  if (type === 'DELETED') return `pod ${name} is deleted`;
  if ((before === undefined || !isTerminating(before)) && isTerminating(after)) return `pod ${name} terminates`;
  const [was, is] = [before !== undefined && readyCondition(before).isTrue, readyCondition(after).isTrue];
  return was === is ? undefined : `pod ${name} is ${is ? 'ready' : 'not ready'}`;
}

/** Describes the actions of a turn and its error; undefined if it has neither. */
export function turnText({ performed, error }: TurnReport): string | undefined {
  const acts = performed.map(({ action, result, message }) => {
    const target = 'pod' in action ? podName(action.pod) : 'zone' in action ? String(action.zone) : '';
    return `${action.kind} ${target}: ${result}${message === undefined ? '' : ` (${message.slice(0, 120)})`}`;
  });
  if (error !== undefined) acts.push(`the turn failed: ${error.slice(0, 160)}`);
  return acts.length === 0 ? undefined : acts.join('; ');
}

export function faultText({ at, fault }: PlacedFault): string {
  const { class: name, kind, ...parameters } = fault;
  const rest = Object.entries(parameters).map(([key, value]) => `${key}=${value}`);
  return [name, kind, ...rest, 'at', at].join(' ');
}

function podName(pod: unknown): string {
  if (typeof pod === 'string') return pod;
  return textAt(pod, 'name') ?? '';
}

function holderOf(lease: ModelObject): string {
  return textAt(lease, 'spec', 'holderIdentity') || 'no holder';
}

/** Returns one line: the kind and its parameters, for example `deletePod zone=a ordinal=2`. */
export function eventText(event: ScenarioEvent): string {
  const parameters = Object.entries(event)
    .filter(([name]) => name !== 'kind' && name !== 'atMs')
    .map(([name, value]) => `${name}=${typeof value === 'object' ? JSON.stringify(value) : value}`);
  return [event.kind, ...parameters].join(' ');
}

/** Returns the actor of an event for a timeline. */
export function eventAuthor(event: ScenarioEvent): string {
  return isByPeople(event) ? 'people' : 'fault';
}
