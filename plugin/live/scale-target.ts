// Finds the object whose replicas scale a group: a leading StatefulSet, a replica source, or the group itself.
import { type Resource, resources } from '../../cluster/request/resource.ts';
import type { GroupDefinition, ZoneDefinition } from '../../policies/definition.ts';
import { resourcesOf, rolloutGroups } from '../cluster-snapshot/kinds.ts';
import { itemsOf } from '../cluster-snapshot/listing.ts';
import type { Cluster } from '../connection.ts';
import { exitCodes, Failure, usageFailure } from '../failure.ts';
import type { Members } from './members.ts';

export interface ScaleTarget {
  readonly resource: Resource;
  readonly namespace: string;
  readonly name: string;
  /** The leading zone; for the group or a replica source, the first zone that takes its number from it. */
  readonly zone: ZoneDefinition;
  /** The name in messages. */
  readonly shown: string;
}

/** Finds the object to scale. @throws Failure without such an object, with the replacement to change. */
export async function scaleTarget(
  cluster: Cluster,
  { live, definition, listing }: Members,
  zoneName: string | undefined,
): Promise<ScaleTarget> {
  const { namespace, group } = live.decision;
  if (definition === undefined) {
    throw new Failure({
      exitCode: exitCodes.notFound,
      what: `the replica source of ${namespace}/${group} cannot be read here`,
      why: 'the group is defined in files of the agent, not as an object',
      todo: 'install the kind, so that the agent writes the group as an object: kubectl rollout-group schema RolloutGroup -o crd | kubectl apply -f -',
    });
  }
  const zone = leaderOf(definition, zoneName);
  const { replicas } = zone;
  switch (replicas.kind) {
    case 'leader':
      return { resource: resources.statefulSets, namespace, name: zone.statefulSet, zone, shown: `statefulset/${zone.statefulSet}` };
    case 'count': {
      const object = itemsOf(listing.groups).find(({ metadata }) => metadata.namespace === namespace && metadata.name === group);
      if (object === undefined) throw writtenElsewhere(definition, zone, 'the count is in a policy file', 'change the policy file');
      return { resource: rolloutGroups, namespace, name: group, zone, shown: `rolloutgroup/${group}` };
    }
    case 'mirror': {
      const { apiVersion, read, resourceKind, name } = replicas;
      if (read !== 'scale') {
        const todo =
          read === 'desiredReplicas'
            ? `change minReplicas and maxReplicas: kubectl edit hpa ${name} -n ${namespace}`
            : `change ${resourceKind} ${name}`;
        throw writtenElsewhere(definition, zone, `${resourceKind} ${name} sets its replicas`, todo);
      }
      const resource = (await resourcesOf(cluster, [{ apiVersion, kind: resourceKind }]))(apiVersion, resourceKind);
      if (resource === undefined)
        throw writtenElsewhere(definition, zone, `the API server serves no ${resourceKind} of ${apiVersion}`, `install ${resourceKind}`);
      return { resource, namespace, name, zone, shown: `${resourceKind.toLowerCase()}/${name}` };
    }
  }
}

function leaderOf({ zones, namespace, name }: GroupDefinition, wanted: string | undefined): ZoneDefinition {
  const leaders = zones.filter(({ follows }) => follows === undefined);
  if (wanted !== undefined) {
    const zone = zones.find((candidate) => candidate.name === wanted || candidate.statefulSet === wanted);
    if (zone === undefined) throw usageFailure(`${namespace}/${name} has no zone ${wanted}`, `its leading zones: ${namesOf(leaders)}`);
    if (zone.follows !== undefined)
      throw usageFailure(`zone ${zone.name} follows ${zone.follows} and takes its replicas from there`, `scale ${zone.follows}`);
    return zone;
  }
  const [first, ...others] = leaders;
  if (first === undefined) throw usageFailure(`${namespace}/${name} has no leading zone`, 'lint its policy');
  // Zones that share one number have one target.
  const key = ({ replicas }: ZoneDefinition): string => JSON.stringify(replicas.kind === 'count' ? 'count' : replicas);
  if (others.length > 0 && (first.replicas.kind === 'leader' || others.some((other) => key(other) !== key(first)))) {
    throw usageFailure(`${namespace}/${name} has ${leaders.length} leading zones`, `name one with --zone: ${namesOf(leaders)}`);
  }
  return first;
}

function namesOf(zones: readonly ZoneDefinition[]): string {
  return zones.map(({ name }) => name).join(', ');
}

function writtenElsewhere({ namespace, name }: GroupDefinition, { name: zone }: ZoneDefinition, why: string, todo: string): Failure {
  return new Failure({ exitCode: exitCodes.refused, what: `zone ${zone} of ${namespace}/${name} cannot be scaled here`, why, todo });
}
