// Defines resources and their paths, and compares resource versions of objects. Objects are raw JSON: every field of the server is kept.
import { asJsonObject } from './json.ts';

/** One kind of object as the API serves it. */
export interface Resource {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  /** The lower-case plural, as in paths. */
  readonly plural: string;
  readonly kind: string;
  readonly isNamespaced: boolean;
}

export interface ObjectMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly Readonly<Record<string, unknown>>[];
  readonly managedFields?: readonly unknown[];
  readonly [field: string]: unknown;
}

export interface KubernetesObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly [field: string]: unknown;
}

export function resourceOf(apiVersion: string, plural: string, kind: string, isNamespaced = true): Resource {
  const [version = '', group = ''] = apiVersion.split('/').reverse();
  return { group, version, plural, kind, isNamespaced };
}

/** Built-in resources that this project reads or writes. Files that use further resources define them. */
export const resources = {
  pods: resourceOf('v1', 'pods', 'Pod'),
  nodes: resourceOf('v1', 'nodes', 'Node', false),
  namespaces: resourceOf('v1', 'namespaces', 'Namespace', false),
  configMaps: resourceOf('v1', 'configmaps', 'ConfigMap'),
  secrets: resourceOf('v1', 'secrets', 'Secret'),
  statefulSets: resourceOf('apps/v1', 'statefulsets', 'StatefulSet'),
  controllerRevisions: resourceOf('apps/v1', 'controllerrevisions', 'ControllerRevision'),
  podDisruptionBudgets: resourceOf('policy/v1', 'poddisruptionbudgets', 'PodDisruptionBudget'),
  leases: resourceOf('coordination.k8s.io/v1', 'leases', 'Lease'),
  events: resourceOf('events.k8s.io/v1', 'events', 'Event'),
  horizontalPodAutoscalers: resourceOf('autoscaling/v2', 'horizontalpodautoscalers', 'HorizontalPodAutoscaler'),
  mutatingWebhookConfigurations: resourceOf(
    'admissionregistration.k8s.io/v1',
    'mutatingwebhookconfigurations',
    'MutatingWebhookConfiguration',
    false,
  ),
  customResourceDefinitions: resourceOf('apiextensions.k8s.io/v1', 'customresourcedefinitions', 'CustomResourceDefinition', false),
} as const satisfies Record<string, Resource>;

/** `kubectl apply` stores the whole manifest in this annotation. */
export const lastAppliedAnnotation = 'kubectl.kubernetes.io/last-applied-configuration';

export function apiVersionOf({ group, version }: Pick<Resource, 'group' | 'version'>): string {
  return group === '' ? version : `${group}/${version}`;
}

/** Returns the path of a collection in a namespace, or in all namespaces if `namespace` is absent. */
export function collectionPath(resource: Resource, namespace?: string): string {
  const root = resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
  const inside = resource.isNamespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  return `${root}${inside}/${resource.plural}`;
}

export function objectPath(
  resource: Resource,
  { namespace, name }: { namespace?: string | undefined; name: string },
  subresource?: string,
): string {
  const path = `${collectionPath(resource, namespace)}/${encodeURIComponent(name)}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}

const wellFormed = /^(?:0|[1-9][0-9]*)$/;

/**
 * Returns a number below 0 if `a` is older than `b`, 0 if they are equal, above 0 if `a` is newer. Returns undefined if `a` or `b` is
 * not a decimal number without leading zeros. Kubernetes guarantees ordered integers from 1.35 on (KEP-5504).
 */
export function compareResourceVersions(a: string, b: string): number | undefined {
  if (a === b) return 0;
  if (!wellFormed.test(a) || !wellFormed.test(b)) return undefined;
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : 1;
}

/** The newest resource version seen. A version that cannot be compared counts as newer. */
export class HighWaterMark {
  #value: string | undefined;

  constructor(value?: string) {
    this.#value = value;
  }

  get value(): string | undefined {
    return this.#value;
  }

  /** Reports whether the version is known to be older than the newest one seen. */
  isOlder(resourceVersion: string): boolean {
    return this.#value !== undefined && (compareResourceVersions(resourceVersion, this.#value) ?? 0) < 0;
  }

  /** Reports whether everything up to the version has been seen; false if unknown. */
  covers(resourceVersion: string): boolean {
    return this.#value !== undefined && (compareResourceVersions(this.#value, resourceVersion) ?? -1) >= 0;
  }

  raise(resourceVersion: string): void {
    if (!this.isOlder(resourceVersion)) this.#value = resourceVersion;
  }
}

/** Returns a value of `data` of a ConfigMap; undefined without the object or the value, and if the value is no text. */
export function dataText(object: KubernetesObject | undefined, key: string): string | undefined {
  const text = asJsonObject(object?.['data'])[key];
  return typeof text === 'string' ? text : undefined;
}
