// Defines minimal StatefulSets for tests, and the fields that suites read of them and their pods.
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
    readonly replicas?: number;
    readonly readyReplicas?: number;
    readonly currentRevision?: string;
    readonly updateRevision?: string;
  };
}

export function isReady(pod: Pod): boolean {
  return pod.status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
}

/** Returns the name of the pod's ControllerRevision. */
export function revisionOf(pod: Pod): string | undefined {
  return pod.metadata.labels?.['controller-revision-hash'];
}

export interface StatefulSetOptions {
  readonly name: string;
  readonly replicas: number;
  readonly strategy?: 'OnDelete' | 'RollingUpdate';
  readonly podManagementPolicy?: 'OrderedReady' | 'Parallel';
  readonly image?: string;
  /** Annotations of the pods, by which a test controls them (`stages.yaml`). */
  readonly annotations?: Readonly<Record<string, string>>;
  /** The zone of the nodes for the pods; default: any. */
  readonly nodeZone?: string;
  /** Labels and annotations of the StatefulSet. */
  readonly setLabels?: Readonly<Record<string, string>>;
  readonly setAnnotations?: Readonly<Record<string, string>>;
}

/** Starts all pods at once unless ordered, spread over the zones by the scheduler, selected by the label `name`. */
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
