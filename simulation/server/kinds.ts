// The kinds of object that the model of the API server serves, and what each of them has: subresources, generations, whose rules.

export interface ServedKind {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly isNamespaced: boolean;
  /** By a CustomResourceDefinition: whole objects are kept as they come, and PUT must name a resourceVersion. */
  readonly isCustom: boolean;
  /** Whether `/status` is there; then the object itself ignores what a request says of the status. */
  readonly hasStatus: boolean;
  /** Whether the server counts changes of what is wanted in `metadata.generation`. */
  readonly hasGeneration: boolean;
  /** Where `/scale` finds its numbers; absent without the subresource. */
  readonly scale?: ScalePaths;
  readonly shortNames?: readonly string[];
}

export interface ScalePaths {
  /** Such as `.spec.replicas`. */
  readonly specReplicas: string;
  readonly statusReplicas: string;
  /** Of a selector as text, for custom kinds. */
  readonly labelSelector?: string;
}

type Brief = Omit<ServedKind, 'singular' | 'isNamespaced' | 'isCustom' | 'hasStatus' | 'hasGeneration'> & Partial<ServedKind>;

function served(brief: Brief): ServedKind {
  const defaults = { singular: brief.kind.toLowerCase(), isNamespaced: true, isCustom: false, hasStatus: false, hasGeneration: false };
  return { ...defaults, ...brief };
}

/** A kind served by a CustomResourceDefinition; it has generations, as all of them. */
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

/** The kinds of this project (deploy/crds) and those that grafana/rollout-operator brings. */
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

/** Plural and group, such as `pods` or `statefulsets.apps`: how resources are named everywhere in the simulation. */
export function resourceOf(kind: Pick<ServedKind, 'plural' | 'group'>): string {
  let name = resourceNames.get(kind);
  if (name === undefined) {
    name = kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`;
    resourceNames.set(kind, name);
  }
  return name;
}

/** One text for each kind: it is looked up and compared many times for each request, which takes longer for a text that was just put together. */
const resourceNames = new WeakMap<object, string>();

/** `apiVersion` of the kind's objects. */
export function apiVersionOf({ group, version }: Pick<ServedKind, 'group' | 'version'>): string {
  return group === '' ? version : `${group}/${version}`;
}
