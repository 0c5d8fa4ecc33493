// Composes everything around the agents that acts on the API server: controllers, kubelets, nodes, people and machines.

import { isByPeople } from '../event-class.ts';
import { draw } from '../random.ts';
import { type ClusterEvent, type GroupShape, type PeopleEvent, type Scenario, traitsOfShape } from '../scenario.ts';
import { Accidents } from './accidents.ts';
import { begin } from './beginning.ts';
import { startDisruptionController } from './budgets.ts';
import { type GroupObjects, groupObjects, zoneLetters } from './group-objects.ts';
import { Kubelets } from './kubelet.ts';
import { Nodes } from './nodes.ts';
import { People } from './people.ts';
import { createPinWebhook, type PodAdmitted } from './pin-webhook.ts';
import { createPodEndpoints } from './pod-endpoints.ts';
import { replicaSources, withReplicas } from './replica-origins.ts';
import { startRetries } from './retries.ts';
import { StatefulSetController } from './statefulset-controller.ts';
import { podFacts, replicasOf, specOf, statefulSetResource } from './workload.ts';
import type { ClusterApi, World } from './world.ts';

interface ClusterModelOptions extends Pick<World, 'server' | 'scheduler' | 'wallMs'> {
  readonly scenario: Scenario;
  /** Receives each new pod before the webhook sees it. */
  readonly admitted?: (pod: PodAdmitted) => void;
}

/** A call of a pod under way. */
export interface PodCall {
  readonly method: 'POST' | 'DELETE';
  /** `POD.SERVICE.NAMESPACE.svc...`, with or without a port. */
  readonly host: string;
  /** With its query. */
  readonly path: string;
}

export interface PodReply {
  readonly status: number;
  readonly body: string;
  /** UID of the pod that received it. */
  readonly uid: string;
  readonly pod: string;
  readonly namespace: string;
}

export interface WantedStatefulSet {
  readonly statefulSet: string;
  /** Image of the first container. */
  readonly image: string;
  /** Images of the containers, in order. */
  readonly images: readonly string[];
  readonly replicas: number;
}

export interface ClusterModel {
  readonly namespace: string;
  readonly group: string;
  /** In the order of the zones. */
  readonly statefulSets: readonly string[];
  /** Files of the agents' policy directory. */
  readonly policies: readonly { readonly name: string; readonly text: string }[];
  /** Performs or begins the event. Returns whether it changes anything: the pod may be absent, or the image unchanged. */
  readonly happen: (event: PeopleEvent | ClusterEvent) => boolean;
  /**
   * Ends all accidents: nodes return, stuck pods leave, kubelets and controllers run at normal speed, the paused group resumes, the last
   * good image replaces a broken one, members and update strategies are restored.
   */
  readonly heal: () => void;
  /** Returns the answer of the pod when the call arrives; undefined if it does not listen. */
  readonly podAnswer: (call: PodCall) => PodReply | undefined;
  /** Returns the requested end state. */
  readonly wanted: () => readonly WantedStatefulSet[];
  /** UIDs of pods that still expect to leave. */
  readonly preparedPods: () => readonly string[];
  /** Lines for the timeline, for example `people: roll to app:2` and `cluster: ingester-zone-a-1 fails for 40 s`. */
  readonly observe: (listener: (what: string) => void) => void;
}

/** Creates the group with pods that have run for an hour, and starts everything around it. */
export function startCluster({ server, scheduler, wallMs, scenario, admitted }: ClusterModelOptions): ClusterModel {
  const { seed, group: shape, given } = scenario;
  const objects: GroupObjects = given ?? groupObjects(shape);
  const { namespace, name: group, statefulSets } = objects;
  const sources = replicaSources(objects);
  const listeners: ((what: string) => void)[] = [];
  const told =
    (who: string) =>
    (what: string): void => {
      for (const listener of listeners) listener(`${who}: ${what}`);
    };
  const world: World = { server, scheduler, wallMs, seed };
  const zones = statefulSets.map((_, index) => zoneLetters[index] ?? 'a');
  const zoneOf = (pod: string): string => zones[statefulSets.findIndex((name) => isPodOf(name, pod))] ?? 'a';
  const { nodes, kubelets, endpoints } = startMachines(world, shape, { zones, zoneOf });
  begin({
    ...world,
    namespace,
    objects: withReplicas(objects, sources),
    adopt: (pod, sinceMs) => kubelets.adopt(pod, sinceMs),
    placeFor: (pod, taken) => nodes.placeFor(zoneOf(pod), taken),
  });
  const webhook = traitsOfShape(shape).pinsPods
    ? createPinWebhook({ server, namespace, group, admitted: (pod) => admitted?.(pod) })
    : undefined;
  const controller = new StatefulSetController({ ...world, ...(webhook === undefined ? {} : { admit: webhook.admit }) });
  const disruptions = startDisruptionController(world);
  server.observe({
    committed: (commit) => {
      for (const model of [kubelets, nodes, controller, disruptions]) model.hear(commit);
    },
  });
  const clearsBrokenPods = given === undefined && shape.kind === 'adopted';
  const people = new People({ ...world, namespace, group, sources, clearsBrokenPods, told: told('people') });
  const models = { kubelets, nodes, controller, disruptions, webhook };
  const accidents = new Accidents({ ...world, ...models, namespace, statefulSets, told: told('cluster') });
  if (given !== undefined) people.apply(given.changes);

  return {
    namespace,
    group,
    statefulSets,
    policies: objects.policies,
    happen: (event) => (isByPeople(event) ? people.happen(event) : accidents.happen(event)),
    heal: () => {
      accidents.heal();
      people.heal();
      if (webhook !== undefined) startRetries({ server, scheduler, wallMs, namespace, group, told: told('people') });
    },
    podAnswer: endpoints.answer,
    wanted: () => people.wanted(),
    preparedPods: endpoints.prepared,
    observe: (listener) => void listeners.push(listener),
  };
}

interface Zones {
  readonly zones: readonly string[];
  /** Returns the zone of a pod by its name. */
  readonly zoneOf: (pod: string) => string;
}

/** Starts the nodes, their kubelets, and the prepare endpoints of the pods on them. */
function startMachines(world: World, { startMs, drainMs }: GroupShape, { zones, zoneOf }: Zones) {
  const { server, wallMs, seed } = world;
  const nodes = new Nodes({ ...world, zones: [...new Set(['a', ...zones])], zoneOf, isBack: (node) => kubelets.nodeIsBack(node) });
  const kubelets: Kubelets = new Kubelets({
    ...world,
    startMs,
    drainMs,
    isNodeLost: (node) => nodes.isLost(node),
    restarted: (place, pod) => endpoints.restarted(place, pod),
  });
  const areUnreadyFound = draw(seed, 'pods are found before they are ready') < 0.5;
  const endpoints = createPodEndpoints({
    wallMs,
    isKeptOnVolume: draw(seed, 'preparation is kept on the volume') < 0.5,
    listens: (place, pod) => {
      const uid = kubelets.listens(place, pod);
      return uid !== undefined && (areUnreadyFound || kubelets.isReady(uid)) ? uid : undefined;
    },
    hasLeft: (place, pod) => hasLeft(server, place, pod),
    pods: () => server.list('pods').map(podFacts),
  });
  return { nodes, kubelets, endpoints };
}

function isPodOf(statefulSet: string, pod: string): boolean {
  return pod.startsWith(`${statefulSet}-`) && /^\d+$/.test(pod.slice(statefulSet.length + 1));
}

/** Returns whether the StatefulSet has no ordinal for a pod of this name. */
function hasLeft(server: ClusterApi, namespace: string, pod: string): boolean {
  const set = server.get(statefulSetResource, namespace, pod.replace(/-\d+$/, ''));
  if (set === undefined) return false;
  const first = specOf(set).ordinals?.start ?? 0;
  const ordinal = Number(/-(\d+)$/.exec(pod)?.[1] ?? -1);
  return ordinal < first || ordinal >= first + replicasOf(set);
}
