// What manifests state of the members of groups: their object, and how many pods they have.
import type { GroupDefinition, ZoneDefinition } from '../definition.ts';
import type { Manifest } from '../load.ts';
import { valueAt } from '../schema/schema-walk.ts';
import type { LintContext } from './context.ts';

/** The StatefulSets among the manifests. */
export function setManifests(context: Pick<LintContext, 'load'>): readonly Manifest[] {
  return [...setsByName(context).values()];
}

/** Every check asks for them, of each zone of each group. */
const setsOf: WeakMap<LintContext['load'], ReadonlyMap<string, Manifest>> = new WeakMap();

/** By namespace and name; of two that are called alike the first. */
function setsByName({ load }: Pick<LintContext, 'load'>): ReadonlyMap<string, Manifest> {
  const known = setsOf.get(load);
  if (known !== undefined) return known;
  const sets = new Map<string, Manifest>();
  for (const manifest of load.manifests) {
    const { kind, apiVersion, namespace, name } = manifest;
    const key = `${namespace}/${name}`;
    if (kind === 'StatefulSet' && apiVersion.startsWith('apps/') && !sets.has(key)) sets.set(key, manifest);
  }
  setsOf.set(load, sets);
  return sets;
}

/** The manifest of a zone's StatefulSet. */
export function manifestOf(
  context: Pick<LintContext, 'load'>,
  group: Pick<GroupDefinition, 'namespace'>,
  { statefulSet }: Pick<ZoneDefinition, 'statefulSet'>,
): Manifest | undefined {
  return setsByName(context).get(`${group.namespace}/${statefulSet}`);
}

/**
 * The pods of a zone, as far as files alone say: what forces them, the group's count, the manifest of its StatefulSet, or those of its leader.
 * undefined where none of them says, as of a StatefulSet that an autoscaler gives its number.
 */
export function statedReplicas(context: Pick<LintContext, 'load'>, group: GroupDefinition, zone: ZoneDefinition): number | undefined {
  let current: ZoneDefinition | undefined = zone;
  for (let hops = 0; current !== undefined && hops <= group.zones.length; hops += 1) {
    const stated = current.forceReplicas ?? countOf(current) ?? writtenReplicas(manifestOf(context, group, current));
    if (stated !== undefined) return stated;
    const leader: string | undefined = current.follows;
    current = leader === undefined ? undefined : group.zones.find((one) => one.name === leader);
  }
  return undefined;
}

/** `spec.replicas` of a manifest, where it names them. */
export function writtenReplicas(manifest: Manifest | undefined): number | undefined {
  const replicas = valueAt(manifest?.value, ['spec', 'replicas']);
  return typeof replicas === 'number' ? replicas : undefined;
}

function countOf({ replicas }: ZoneDefinition): number | undefined {
  return replicas.kind === 'count' ? replicas.count : undefined;
}
