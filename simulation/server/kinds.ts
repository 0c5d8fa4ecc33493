// Lists the kinds that the model of the API server serves, with their subresources and generations.
import type { Resource } from '../../cluster/request/resource.ts';

export interface ServedKind extends Resource {
  readonly singular: string;
  /** True for a kind of a CustomResourceDefinition. Its objects get no defaults, and PUT requires a resourceVersion. */
  readonly isCustom: boolean;
  /** True if the kind has `/status`. Then other requests ignore the status. */
  readonly hasStatus: boolean;
  /** True if the API server counts changes of the spec in `metadata.generation`. */
  readonly hasGeneration: boolean;
  /** The paths of `/scale`; absent without this subresource. */
  readonly scale?: ScalePaths;
  readonly shortNames?: readonly string[];
  /** The top-level fields besides metadata; by default `spec`, and `status` if the kind has this subresource. */
  readonly fields?: readonly string[];
}

export interface ScalePaths {
  /** A path such as `.spec.replicas`. */
  readonly specReplicas: string;
  readonly statusReplicas: string;
  /** The path of the selector text, for custom kinds. */
  readonly labelSelector?: string;
}

type Brief = Omit<ServedKind, 'singular' | 'isNamespaced' | 'isCustom' | 'hasStatus' | 'hasGeneration'> & Partial<ServedKind>;

function served(brief: Brief): ServedKind {
  const defaults = { singular: brief.kind.toLowerCase(), isNamespaced: true, isCustom: false, hasStatus: false, hasGeneration: false };
  return { ...defaults, ...brief };
}

/** Returns a kind of a CustomResourceDefinition. All of these kinds have generations. */
export function customKind(brief: Brief): ServedKind {
  return served({ isCustom: true, hasGeneration: true, ...brief });
}

const replicas: ScalePaths = { specReplicas: '.spec.replicas', statusReplicas: '.status.replicas' };

export const kubernetesKinds: readonly ServedKind[] = [
  served({ group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', shortNames: ['cm'] }),
  served({ group: '', version: 'v1', plural: 'events', kind: 'Event', shortNames: ['ev'] }),
  served({ group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', isNamespaced: false, hasStatus: true, shortNames: ['ns'] }),
  served({ group: '', version: 'v1', plural: 'nodes', kind: 'Node', isNamespaced: false, hasStatus: true, shortNames: ['no'] }),
  served({ group: '', version: 'v1', plural: 'pods', kind: 'Pod', hasStatus: true, hasGeneration: true, shortNames: ['po'] }),
  served({ group: '', version: 'v1', plural: 'services', kind: 'Service', hasStatus: true, shortNames: ['svc'] }),
  served({
    group: 'admissionregistration.k8s.io',
    version: 'v1',
    plural: 'mutatingwebhookconfigurations',
    kind: 'MutatingWebhookConfiguration',
    isNamespaced: false,
    hasGeneration: true,
    fields: ['webhooks'],
  }),
  served({ group: 'apps', version: 'v1', plural: 'controllerrevisions', kind: 'ControllerRevision' }),
  served({
    group: 'apps',
    version: 'v1',
    plural: 'statefulsets',
    kind: 'StatefulSet',
    hasStatus: true,
    hasGeneration: true,
    scale: replicas,
    shortNames: ['sts'],
  }),
  served({ group: 'events.k8s.io', version: 'v1', plural: 'events', kind: 'Event', shortNames: ['ev'] }),
  served({
    group: 'policy',
    version: 'v1',
    plural: 'poddisruptionbudgets',
    kind: 'PodDisruptionBudget',
    hasStatus: true,
    hasGeneration: true,
    shortNames: ['pdb'],
  }),
  served({ group: 'coordination.k8s.io', version: 'v1', plural: 'leases', kind: 'Lease' }),
];

const ours = { group: 'rollout-group.dev', version: 'v1alpha1' };
const grafana = { group: 'rollout-operator.grafana.com', version: 'v1' };

/** The kinds of this project (deploy/crds) and of grafana/rollout-operator. */
export const projectKinds: readonly ServedKind[] = [
  customKind({ ...ours, plural: 'metricsources', kind: 'MetricSource' }),
  customKind({ ...ours, plural: 'notificationchannels', kind: 'NotificationChannel' }),
  customKind({ ...ours, plural: 'rolloutexceptions', kind: 'RolloutException' }),
  customKind({
    ...ours,
    plural: 'rolloutgroups',
    kind: 'RolloutGroup',
    hasStatus: true,
    scale: { specReplicas: '.spec.replicas.count', statusReplicas: '.status.replicas' },
    shortNames: ['rg'],
  }),
  customKind({ ...ours, plural: 'rolloutintents', kind: 'RolloutIntent' }),
  customKind({ ...ours, plural: 'rolloutpolicies', kind: 'RolloutPolicy' }),
  customKind({ ...ours, plural: 'rolloutruns', kind: 'RolloutRun' }),
  customKind({
    ...grafana,
    plural: 'replicatemplates',
    kind: 'ReplicaTemplate',
    hasStatus: true,
    scale: { ...replicas, labelSelector: '.spec.labelSelector' },
  }),
  customKind({ ...grafana, plural: 'zoneawarepoddisruptionbudgets', kind: 'ZoneAwarePodDisruptionBudget' }),
];

/** Returns the name of a resource in the simulation: plural and group, such as `pods` or `statefulsets.apps`. */
export function resourceOf(kind: Pick<ServedKind, 'plural' | 'group'>): string {
  let name = resourceNames.get(kind);
  if (name === undefined) {
    name = kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`;
    resourceNames.set(kind, name);
  }
  return name;
}

/** The name of each kind. One string per kind can be compared faster than a new concatenation. */
const resourceNames = new WeakMap<object, string>();

/** Returns the `apiVersion` of the objects of the kind. */
export function apiVersionOf({ group, version }: Pick<ServedKind, 'group' | 'version'>): string {
  return group === '' ? version : `${group}/${version}`;
}

/** Returns whether the kind has the subresource. */
export function hasSubresource(kind: ServedKind, subresource: string): boolean {
  if (subresource === 'status') return kind.hasStatus;
  if (subresource === 'scale') return kind.scale !== undefined;
  return subresource === 'eviction' && kind.group === '' && kind.plural === 'pods';
}
