// StatefulSet manifests of the members of groups, and their replicas.
import type { GroupDefinition, ZoneDefinition } from '../definition.ts';
import type { Manifest } from '../load.ts';
import { valueAt } from '../schema/schema-walk.ts';
import { autoscalersOf, scales } from './autoscalers.ts';
import type { LintContext } from './context.ts';

type Files = Pick<LintContext, 'load'>;

/** Cached, because checks read the StatefulSets for each zone of each group. */
const setsOf: WeakMap<LintContext['load'], ReadonlyMap<string, readonly [Manifest, ...Manifest[]]>> = new WeakMap();

/**
 * Returns the manifests of StatefulSets by namespace and name. Several manifests of one name are versions, such as a kustomize base and its
 * overlays; no single version is complete.
 */
function setsByName({ load }: Files): ReadonlyMap<string, readonly [Manifest, ...Manifest[]]> {
  const known = setsOf.get(load);
  if (known !== undefined) return known;
  const sets = new Map<string, [Manifest, ...Manifest[]]>();
  for (const manifest of load.manifests) {
    const { kind, apiVersion, namespace, name } = manifest;
    if (kind !== 'StatefulSet' || !apiVersion.startsWith('apps/')) continue;
    const versions = sets.get(`${namespace}/${name}`);
    if (versions === undefined) sets.set(`${namespace}/${name}`, [manifest]);
    else versions.push(manifest);
  }
  setsOf.set(load, sets);
  return sets;
}

/** Returns one manifest per StatefulSet: the first of several versions. */
export function setManifests(context: Files): readonly Manifest[] {
  return [...setsByName(context).values()].map(([first]) => first);
}

/** Returns the manifest of the StatefulSet of a zone: the first of several versions. */
export function manifestOf(
  context: Files,
  { namespace }: Pick<GroupDefinition, 'namespace'>,
  { statefulSet }: Pick<ZoneDefinition, 'statefulSet'>,
): Manifest | undefined {
  return setsByName(context).get(`${namespace}/${statefulSet}`)?.[0];
}

/**
 * Returns the replicas of a zone from the files: the forced number, the count of the group, the replicas of the leader, or the manifest of its
 * StatefulSet. Returns undefined if an autoscaler or a mirrored object sets the number, or if versions of the StatefulSet (base and overlay)
 * differ.
 */
export function replicasInFiles(context: Files, group: GroupDefinition, zone: ZoneDefinition): number | undefined {
  let current: ZoneDefinition | undefined = zone;
  for (let hops = 0; current !== undefined && hops <= group.zones.length; hops += 1) {
    const { forceReplicas, replicas, follows, statefulSet }: ZoneDefinition = current;
    if (forceReplicas !== undefined) return forceReplicas;
    if (follows === undefined) {
      if (replicas.kind === 'mirror' || isAutoscaled(context, group, statefulSet)) return undefined;
      return replicas.kind === 'count' ? replicas.count : manifestReplicas(context, group.namespace, statefulSet);
    }
    current = group.zones.find((one) => one.name === follows);
  }
  return undefined;
}

/** Reports whether an autoscaler scales the StatefulSet or its group. */
function isAutoscaled(context: Files, { namespace, name }: GroupDefinition, statefulSet: string): boolean {
  return autoscalersOf(context).some(
    (one) => scales(one, namespace, 'StatefulSet', statefulSet) || scales(one, namespace, 'RolloutGroup', name),
  );
}

/** Returns `spec.replicas` if every version of the StatefulSet has the same value. */
function manifestReplicas(context: Files, namespace: string, name: string): number | undefined {
  const [first, ...others] = (setsByName(context).get(`${namespace}/${name}`) ?? []).map(({ value }) =>
    valueAt(value, ['spec', 'replicas']),
  );
  return typeof first === 'number' && others.every((one) => one === first) ? first : undefined;
}
