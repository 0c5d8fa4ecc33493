// Classifies events of a scenario by the fault catalogue, and describes them for a timeline.
import type { FaultClass } from './faults/fault.ts';
import type { ClusterEvent, PeopleEvent, ScenarioEvent } from './scenario.ts';

type Kind = ScenarioEvent['kind'];

/** Undefined for ordinary use of the tool. */
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

/**
 * Returns the class of an event; undefined if it is no fault. A rollout or replica count is a fault only after an earlier one: a change of
 * the template during a rollout is F18, a number rewritten by an autoscaler F17.
 */
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

/** Returns whether people or their autoscalers cause it. */
export function isByPeople(event: ScenarioEvent | PeopleEvent | ClusterEvent): event is PeopleEvent & typeof event {
  return peopleKinds.has(event.kind);
}

/** Returns the actor of an event for a timeline. */
export function eventAuthor(event: ScenarioEvent): string {
  return isByPeople(event) ? 'people' : 'fault';
}
