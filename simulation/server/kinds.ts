// Lists the kinds that the model of the API server serves, with their subresources and generations.
import { type Resource, resources } from '../../cluster/request/resource.ts';
import { zoneBudgetResource } from '../../policies/adopt/keys.ts';
import { keptByObject } from '../../policies/values/map.ts';

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
  /** The top-level fields besides metadata. By default `fieldsOf` (defaults.ts), or else `spec` and, if `hasStatus`, `status`. */
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
  served({ ...resources.configMaps, shortNames: ['cm'] }),
  served({ ...resources.namespaces, hasStatus: true, shortNames: ['ns'] }),
  served({ ...resources.nodes, hasStatus: true, shortNames: ['no'] }),
  served({ ...resources.pods, hasStatus: true, hasGeneration: true, shortNames: ['po'] }),
  served({ group: '', version: 'v1', plural: 'services', kind: 'Service', hasStatus: true, shortNames: ['svc'] }),
  served({ ...resources.mutatingWebhookConfigurations, hasGeneration: true, fields: ['webhooks'] }),
  served(resources.controllerRevisions),
  served({ ...resources.statefulSets, hasStatus: true, hasGeneration: true, scale: replicas, shortNames: ['sts'] }),
  served({ ...resources.events, shortNames: ['ev'] }),
  served({ ...resources.podDisruptionBudgets, hasStatus: true, hasGeneration: true, shortNames: ['pdb'] }),
  served(resources.leases),
];

const ours = { group: 'rollout-group.dev', version: 'v1alpha1' };

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
    ...zoneBudgetResource,
    plural: 'replicatemplates',
    kind: 'ReplicaTemplate',
    hasStatus: true,
    scale: { ...replicas, labelSelector: '.spec.labelSelector' },
  }),
  customKind(zoneBudgetResource),
];

/** Returns the name of a resource in the simulation: plural and group, such as `pods` or `statefulsets.apps`. */
// One string per kind can be compared faster than a new concatenation.
export const resourceOf = keptByObject(({ group, plural }: Pick<ServedKind, 'plural' | 'group'>): string =>
  group === '' ? plural : `${plural}.${group}`,
);

export function hasSubresource(kind: ServedKind, subresource: string): boolean {
  if (subresource === 'status') return kind.hasStatus;
  if (subresource === 'scale') return kind.scale !== undefined;
  return subresource === 'eviction' && kind.group === '' && kind.plural === 'pods';
}
