// Composes everything around the agents that acts on the API server: controllers, kubelets, nodes, people and machines.

import { isByPeople } from '../event-class.ts';
import { draw } from '../random.ts';
import type { ClusterEvent, PeopleEvent, Scenario } from '../scenario.ts';
import { traitsOfShape } from '../scenario.ts';
import type { Scheduler } from '../scheduler.ts';
import { createAccidents } from './accidents.ts';
import type { ClusterApi } from './api.ts';
import { begin } from './beginning.ts';
import { startDisruptionController } from './budgets.ts';
import { type GroupObjects, groupObjects, zoneLetters } from './group-objects.ts';
import { startKubelets } from './kubelet.ts';
import { startNodes } from './nodes.ts';
import { createPeople } from './people.ts';
import { createPinWebhook, type PodAdmitted } from './pin-webhook.ts';
import { createPodEndpoints } from './pod-endpoints.ts';
import { replicaSources, withReplicas } from './replica-origins.ts';
import { startRetries } from './retries.ts';
import { startStatefulSetController } from './statefulset-controller.ts';
import { podFacts, replicasOf, specOf, statefulSetResource } from './workload.ts';

interface ClusterModelOptions {
  readonly server: ClusterApi;
  readonly scheduler: Scheduler;
  /** Wall clock of the cluster, in milliseconds since 1970. */
  readonly wallMs: () => number;
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
  const group: GroupObjects = given ?? groupObjects(shape);
  const { namespace, statefulSets } = group;
  const sources = replicaSources(group);
  const listeners: ((what: string) => void)[] = [];
  const told =
    (who: string) =>
    (what: string): void => {
      for (const listener of listeners) listener(`${who}: ${what}`);
    };
  const zones = statefulSets.map((_, index) => zoneLetters[index] ?? 'a');
  const zoneOf = (pod: string): string => zones[statefulSets.findIndex((name) => isPodOf(name, pod))] ?? 'a';
  const common = { server, scheduler, wallMs, seed };

  const nodes = startNodes({ ...common, zones: [...new Set(['a', ...zones])], zoneOf, isBack: (node) => kubelets.nodeIsBack(node) });
  const kubelets = startKubelets({
    ...common,
    startMs: shape.startMs,
    drainMs: shape.drainMs,
    isNodeLost: nodes.isLost,
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
  begin({
    server,
    wallMs,
    seed,
    namespace,
    objects: withReplicas(group, sources),
    adopt: kubelets.adopt,
    placeFor: (pod, taken) => nodes.placeFor(zoneOf(pod), taken),
  });
  const webhook = traitsOfShape(shape).pinsPods
    ? createPinWebhook({ server, namespace, group: group.name, admitted: (pod) => admitted?.(pod) })
    : undefined;
  const controller = startStatefulSetController({ ...common, ...(webhook === undefined ? {} : { admit: webhook.admit }) });
  const disruptions = startDisruptionController(common);
  server.observe({
    committed: (commit) => {
      kubelets.hear(commit);
      nodes.hear(commit);
      controller.hear(commit);
      disruptions.hear(commit);
    },
  });
  const people = createPeople({
    server,
    scheduler,
    seed,
    namespace,
    group: group.name,
    sources,
    clearsBrokenPods: given === undefined && scenario.group.kind === 'adopted',
    told: told('people'),
  });
  const accidents = createAccidents({
    scheduler,
    seed,
    namespace,
    statefulSets,
    kubelets,
    nodes,
    controller,
    disruptions,
    webhook,
    told: told('cluster'),
  });
  if (given !== undefined) people.apply(given.changes);

  return {
    namespace,
    group: group.name,
    statefulSets,
    policies: group.policies,
    happen: (event) => (isByPeople(event) ? people.happen(event) : accidents.happen(event)),
    heal: () => {
      accidents.heal();
      people.heal();
      if (webhook !== undefined) startRetries({ server, scheduler, wallMs, namespace, group: group.name, told: told('people') });
    },
    podAnswer: endpoints.answer,
    wanted: people.wanted,
    preparedPods: endpoints.prepared,
    observe: (listener) => void listeners.push(listener),
  };
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
