// Describes the events of a simulation in one line each for the timeline, and classifies them.
import type { TurnReport } from '../agent/report.ts';
import type { FaultClass, PlacedFault } from './faults/fault.ts';
import type { ClusterEvent, PeopleEvent, ScenarioEvent } from './scenario.ts';
import type { Answered, Commit, Json, ModelObject } from './server/request.ts';

/** Describes a write of an agent; undefined for reads and for writes of the Lease. */
export function answeredText({ verb, resource, subresource, name, status, request }: Answered): string | undefined {
  if (verb === 'get' || verb === 'list' || resource === 'leases.coordination.k8s.io') return undefined;
  const what = subresource === '' ? resource : `${resource}/${subresource}`;
  return `${verb} ${what} ${name}: ${status} (${request.actor.site ?? 'no site'})`;
}

/** Describes a commit that concerns the group or the Lease; undefined for routine commits. */
export function committedText({ type, resource, before, after }: Commit): string | undefined {
  const { name } = after.metadata;
  if (resource === 'pods') return podText({ type, before, after });
  if (resource === 'leases.coordination.k8s.io') {
    const [was, is] = [before === undefined ? 'no holder' : holderOf(before), type === 'DELETED' ? 'no holder' : holderOf(after)];
    return was === is ? undefined : `the Lease passes from ${was} to ${is}`;
  }
  if (resource !== 'statefulsets.apps') return undefined;
  if (type !== 'MODIFIED') return `StatefulSet ${name} is ${type === 'ADDED' ? 'created' : 'deleted'}`;
  const [was, is] = [replicasOf(before), replicasOf(after)];
  return was === is ? undefined : `StatefulSet ${name} has ${is} replicas instead of ${was}`;
}

function podText({
  type,
  before,
  after,
}: Pick<Commit, 'type' | 'after'> & { readonly before: ModelObject | undefined }): string | undefined {
  const { name } = after.metadata;
  if (type === 'ADDED') return `pod ${name} is created at ${revisionOf(after)}`;
  if (type === 'DELETED') return `pod ${name} is deleted`;
  if (before?.metadata.deletionTimestamp === undefined && after.metadata.deletionTimestamp !== undefined) return `pod ${name} terminates`;
  const [was, is] = [before !== undefined && isReady(before), isReady(after)];
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

type Kind = ScenarioEvent['kind'];

/** The fault class of each kind of event; undefined for ordinary use. */
const classOfKind: Readonly<Record<Kind, FaultClass | undefined>> = {
  setImage: undefined,
  setReplicas: undefined,
  pause: undefined,
  resume: undefined,
  deletePod: 'F17',
  scaleByHand: 'F17',
  recreateStatefulSet: 'F18',
  leaveGroup: 'F18',
  setStrategy: 'F18',
  podFails: 'F17',
  podFlaps: 'F15',
  podDies: 'F17',
  slowKubelet: 'F15',
  stuckTerminating: 'F15',
  nodeLost: 'F15',
  nodeDrained: 'F17',
  controllerLags: 'F16',
  controllerIsStale: 'F16',
  webhookAway: 'F20',
  crash: 'F11',
  stop: undefined,
  pauseProcess: 'F12',
  jumpWallClock: 'F14',
  deleteLease: 'F13',
  editLease: 'F13',
  frontEndLags: 'F10',
  frontEndRestarts: 'F10',
};

/** Returns the class of an event; undefined if it is no fault. A new image or number of replicas is a fault only after an earlier one. */
export function classOfEvent(event: ScenarioEvent, before: readonly ScenarioEvent[]): FaultClass | undefined {
  if (event.kind === 'setImage') return before.some((other) => other.kind === 'setImage') ? 'F18' : undefined;
  if (event.kind === 'setReplicas') return before.some((other) => other.kind === 'setReplicas') ? 'F17' : undefined;
  return classOfKind[event.kind];
}

/** Returns one line: the kind and its parameters, for example `deletePod zone=a ordinal=2`. */
export function eventText(event: ScenarioEvent): string {
  const parameters = Object.entries(event)
    .filter(([name]) => name !== 'kind' && name !== 'atMs')
    .map(([name, value]) => `${name}=${typeof value === 'object' ? JSON.stringify(value) : value}`);
  return [event.kind, ...parameters].join(' ');
}

const peopleKinds: ReadonlySet<Kind> = new Set<PeopleEvent['kind']>([
  'setImage',
  'setReplicas',
  'pause',
  'resume',
  'deletePod',
  'scaleByHand',
  'recreateStatefulSet',
  'leaveGroup',
  'setStrategy',
]);

/** Returns whether people or their autoscalers cause the event. */
export function isByPeople(event: ScenarioEvent | PeopleEvent | ClusterEvent): event is PeopleEvent & typeof event {
  return peopleKinds.has(event.kind);
}

/** Returns the actor of an event for a timeline. */
export function eventAuthor(event: ScenarioEvent): string {
  return isByPeople(event) ? 'people' : 'fault';
}
