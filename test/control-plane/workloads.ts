// The smallest StatefulSets that show something, and what suites read of the objects that come of them.
import type { KubernetesObject } from './client.ts';

export interface Pod extends KubernetesObject {
  readonly spec: { readonly nodeName?: string };
  readonly status: {
    readonly phase: string;
    readonly podIP?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string; readonly lastTransitionTime?: string }[];
    readonly containerStatuses?: readonly {
      readonly ready: boolean;
      readonly state?: { readonly waiting?: { readonly reason: string }; readonly running?: { readonly startedAt: string } };
    }[];
  };
}

export interface StatefulSet extends KubernetesObject {
  readonly spec: { readonly replicas: number };
  readonly status: {
    readonly observedGeneration?: number;
    readonly readyReplicas?: number;
    readonly currentRevision?: string;
    readonly updateRevision?: string;
  };
}

export function isReady(pod: Pod): boolean {
  return pod.status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
}

/** The name of the pod's ControllerRevision. */
export function revisionOf(pod: Pod): string | undefined {
  return pod.metadata.labels?.['controller-revision-hash'];
}

export interface StatefulSetOptions {
  readonly name: string;
  readonly replicas: number;
  readonly strategy?: 'OnDelete' | 'RollingUpdate';
  readonly podManagementPolicy?: 'OrderedReady' | 'Parallel';
  readonly image?: string;
  /** Of the pods: how a test steers them (`stages.yaml`). */
  readonly annotations?: Readonly<Record<string, string>>;
  /** The zone of nodes that the pods are kept in; any when absent. */
  readonly nodeZone?: string;
  /** Of the StatefulSet itself. */
  readonly setLabels?: Readonly<Record<string, string>>;
  readonly setAnnotations?: Readonly<Record<string, string>>;
}

/** All pods at once unless ordered, spread over the zones as the scheduler likes, selected by the label `name`. */
export function statefulSet({
  name,
  replicas,
  strategy = 'OnDelete',
  podManagementPolicy = 'Parallel',
  image = 'example.com/server:1',
  annotations = {},
  nodeZone,
  setLabels = {},
  setAnnotations = {},
}: StatefulSetOptions): object {
  const placement = nodeZone === undefined ? {} : { nodeSelector: { 'topology.kubernetes.io/zone': nodeZone } };
  return {
    metadata: { name, labels: setLabels, annotations: setAnnotations },
    spec: {
      replicas,
      serviceName: name,
      podManagementPolicy,
      updateStrategy: { type: strategy },
      selector: { matchLabels: { name } },
      template: { metadata: { labels: { name }, annotations }, spec: { ...placement, containers: [{ name: 'server', image }] } },
    },
  };
}
