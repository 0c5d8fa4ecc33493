// Finds the field in which people request the replicas of each StatefulSet, and computes the replicas that follow from the policies.
import { boundedReplicas } from '../../engine/decide/replicas.ts';
import type { ZoneDefinition } from '../../policies/definition.ts';
import { resolveLive } from '../../policies/live/sources.ts';
import { groupResource, numberAt } from '../objects.ts';
import type { GroupObjects } from '../scenario.ts';
import { customKind, kubernetesKinds, projectKinds, resourceOf, type ServedKind } from '../server/kinds.ts';
import type { Json } from '../server/request.ts';
import { statefulSetResource } from './workload.ts';

/** The field in which people write a number of replicas. */
export interface ReplicaOrigin {
  readonly resource: string;
  readonly name: string;
  readonly path: readonly string[];
}

/** Returns a key that differs for each object with a number of replicas. */
export function keyOf({ resource, name }: ReplicaOrigin): string {
  return `${resource} ${name}`;
}

export interface ReplicaSource {
  readonly statefulSet: string;
  /** Undefined if policies set the number, because they do not change during a simulation. */
  readonly origin: ReplicaOrigin | undefined;
  readonly bounded: (replicas: number) => number;
}

/** Returns one source per StatefulSet, in order. The source of a StatefulSet without a valid group is its own field `replicas`. */
export function replicaSources(given: GroupObjects): readonly ReplicaSource[] {
  const live = resolveLive({
    directory: given.policies,
    objects: given.objects.filter(({ apiVersion }) => `${apiVersion}`.startsWith('rollout-group.dev/')),
    statefulSets: given.objects.filter(({ kind }) => kind === 'StatefulSet'),
    order: ['directory', 'objects', 'adopted'],
    agentNamespace: given.namespace,
  });
  const zones = live.groups.find(({ namespace, name }) => namespace === given.namespace && name === given.name)?.zones ?? [];
  const isObject = given.objects.some((object) => object['kind'] === 'RolloutGroup' && nameOf(object) === given.name);
  return given.statefulSets.map((statefulSet) => sourceOf(statefulSet, zones, isObject ? given.name : undefined));
}

function nameOf({ metadata }: Json): string {
  return (metadata as { readonly name: string }).name;
}

/** Returns the source of one StatefulSet. `group` is the name of the RolloutGroup object, if it exists. */
function sourceOf(statefulSet: string, zones: readonly ZoneDefinition[], group: string | undefined): ReplicaSource {
  const own: ReplicaOrigin = { resource: statefulSetResource, name: statefulSet, path: ['spec', 'replicas'] };
  const zone = zones.find((candidate) => candidate.statefulSet === statefulSet);
  if (zone === undefined) return { statefulSet, origin: own, bounded: (replicas) => replicas };
  if (zone.forceReplicas !== undefined) return { statefulSet, origin: undefined, bounded: () => zone.forceReplicas ?? 0 };
  const root = rootOf(zone, zones);
  const bounded = (replicas: number): number => boundedReplicas(replicas, root.bounds, {});
  switch (root.replicas.kind) {
    case 'leader':
      return { statefulSet, origin: { ...own, name: root.statefulSet }, bounded: (replicas) => replicas };
    case 'count': {
      const { count } = root.replicas;
      // Files do not change during a simulation.
      if (group === undefined) return { statefulSet, origin: undefined, bounded: () => bounded(count) };
      return { statefulSet, origin: { resource: groupResource, name: group, path: ['spec', 'replicas', 'count'] }, bounded };
    }
    case 'mirror': {
      const { apiVersion, resourceKind, name, read, fieldPath = [] } = root.replicas;
      const path = read === 'scale' ? ['spec', 'replicas'] : read === 'desiredReplicas' ? ['status', 'desiredReplicas'] : fieldPath;
      return { statefulSet, origin: { resource: resourceOfKind(apiVersion, resourceKind), name, path }, bounded };
    }
  }
}

/** Returns the objects. A StatefulSet whose manifest has no replicas gets those of its source. */
export function withReplicas({ namespace, objects }: GroupObjects, sources: readonly ReplicaSource[]): readonly Json[] {
  return objects.map((object) => {
    const { name, namespace: place = namespace } = object['metadata'] as { readonly name: string; readonly namespace?: string };
    const source = object['kind'] === 'StatefulSet' && place === namespace ? sources.find((one) => one.statefulSet === name) : undefined;
    if (source === undefined || numberAt(object, 'spec', 'replicas') !== undefined) return object;
    return { ...object, spec: { ...(object['spec'] as Json), replicas: source.bounded(numberOf(source.origin, objects) ?? 1) } };
  });
}

function numberOf(origin: ReplicaOrigin | undefined, objects: readonly Json[]): number | undefined {
  const found = objects.find(
    (object) => nameOf(object) === origin?.name && resourceOfKind(`${object['apiVersion']}`, `${object['kind']}`) === origin.resource,
  );
  return origin && numberAt(found, ...origin.path);
}

/** Returns the zone at the end of the chain of `follows`; the zone itself for a cycle. */
function rootOf(zone: ZoneDefinition, zones: readonly ZoneDefinition[]): ZoneDefinition {
  let root = zone;
  for (let count = 0; root.follows !== undefined && count < zones.length; count += 1) {
    const { follows } = root;
    root = zones.find(({ name }) => name === follows) ?? root;
  }
  return root.follows === undefined ? root : zone;
}

/** Returns the resource of a kind. The plural of an unknown kind is its lower-case name with an s. */
export function resourceOfKind(apiVersion: string, kind: string): string {
  const group = apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : '';
  const known = [...kubernetesKinds, ...projectKinds].find((served) => served.kind === kind && served.group === group);
  return resourceOf(known ?? { group, plural: `${kind.toLowerCase()}s` });
}

/** Returns the kinds that Kubernetes does not define: the kinds of the project, and unknown kinds among the objects. */
export function kindsOf(objects: readonly Json[]): readonly ServedKind[] {
  const kinds = new Map(projectKinds.map((kind) => [resourceOf(kind), kind]));
  const known = new Set([...kubernetesKinds, ...projectKinds].map(resourceOf));
  for (const object of objects) {
    const [apiVersion, kind] = [`${object['apiVersion']}`, `${object['kind']}`];
    const resource = resourceOfKind(apiVersion, kind);
    const [group = '', version = ''] = apiVersion.split('/');
    if (known.has(resource) || version === '') continue;
    const plural = resource.slice(0, resource.indexOf('.'));
    kinds.set(resource, customKind({ group, version, plural, kind, hasStatus: true }));
  }
  return [...kinds.values()];
}
