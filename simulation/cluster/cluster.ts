// Everything around the agents that acts on the API server: controllers, kubelets, nodes, people and machines, put together.
import type { ClusterEvent, PeopleEvent, Scenario } from '../scenario.ts';
import type { Scheduler } from '../scheduler.ts';
import type { ClusterApi } from './api.ts';

export interface ClusterModelOptions {
  readonly server: ClusterApi;
  readonly scheduler: Scheduler;
  /** The wall clock of the cluster, in milliseconds since 1970. */
  readonly wallMs: () => number;
  readonly scenario: Scenario;
}

/** A call of a pod on its way. */
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
  /** Of the pod that has heard it. */
  readonly uid: string;
  readonly pod: string;
  readonly namespace: string;
}

export interface WantedStatefulSet {
  readonly statefulSet: string;
  /** Of every container. */
  readonly image: string;
  readonly replicas: number;
}

export interface ClusterModel {
  readonly namespace: string;
  readonly group: string;
  /** In the order of the zones. */
  readonly statefulSets: readonly string[];
  /** What the agents' policy directory holds. */
  readonly policies: readonly { readonly name: string; readonly text: string }[];
  /** Does at once what the event says, or begins it. */
  readonly happen: (event: PeopleEvent | ClusterEvent) => void;
  /**
   * Accidents end: nodes come back, stuck pods go, kubelets and controllers have their usual pace, the paused group is resumed, a broken image
   * is replaced by the last good one, members and strategies are back.
   */
  readonly heal: () => void;
  /** What the pod itself answers when the call arrives; undefined when nothing listens. */
  readonly podAnswer: (call: PodCall) => PodReply | undefined;
  /** The end state that people asked for, once everything has converged. */
  readonly wanted: () => readonly WantedStatefulSet[];
  /** UIDs of the pods that still believe that they are to leave. */
  readonly preparedPods: () => readonly string[];
  /** For the timeline, such as `people: roll to app:2` and `cluster: ingester-zone-a-1 fails for 40 s`. */
  readonly observe: (listener: (what: string) => void) => void;
}

/** Puts the group into the server as it stands, with its pods running for an hour, and starts everything around it. */
export function startCluster(_options: ClusterModelOptions): ClusterModel {
  throw new Error('the cluster is not built yet');
}
