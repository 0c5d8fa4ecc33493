// What manifests state of the members of groups: their object, and how many pods they have.
import type { GroupDefinition, ZoneDefinition } from '../definition.ts';
import type { Manifest } from '../load.ts';
import { valueAt } from '../schema/schema-walk.ts';
import { autoscalersOf, scales } from './autoscalers.ts';
import type { LintContext } from './context.ts';

type Files = Pick<LintContext, 'load'>;

/** Every check asks for them, of each zone of each group. */
const setsOf: WeakMap<LintContext['load'], ReadonlyMap<string, readonly [Manifest, ...Manifest[]]>> = new WeakMap();

/**
 * By namespace and name. Several of one name are versions of one StatefulSet, such as a base of kustomize and the patches of its overlays: none of
 * them alone says what runs.
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

/** The StatefulSets among the manifests; of several versions of one the first. */
export function setManifests(context: Files): readonly Manifest[] {
  return [...setsByName(context).values()].map(([first]) => first);
}

/** The manifest of a zone's StatefulSet; of several versions the first. */
export function manifestOf(
  context: Files,
  { namespace }: Pick<GroupDefinition, 'namespace'>,
  { statefulSet }: Pick<ZoneDefinition, 'statefulSet'>,
): Manifest | undefined {
  return setsByName(context).get(`${namespace}/${statefulSet}`)?.[0];
}

/**
 * The pods of a zone, as far as files alone say: what forces them, the group's count, those of the leader, or the manifest of its StatefulSet.
 * undefined where the number is not the files' to say: of what an autoscaler scales, of a mirrored object, and where versions of the StatefulSet
 * among the files (base and overlay) do not agree.
 */
export function statedReplicas(context: Files, group: GroupDefinition, zone: ZoneDefinition): number | undefined {
  let current: ZoneDefinition | undefined = zone;
  for (let hops = 0; current !== undefined && hops <= group.zones.length; hops += 1) {
    const { forceReplicas, replicas, follows, statefulSet }: ZoneDefinition = current;
    if (forceReplicas !== undefined) return forceReplicas;
    if (follows === undefined) {
      if (replicas.kind === 'mirror' || isAutoscaled(context, group, statefulSet)) return undefined;
      return replicas.kind === 'count' ? replicas.count : writtenReplicas(context, group.namespace, statefulSet);
    }
    current = group.zones.find((one) => one.name === follows);
  }
  return undefined;
}

/** An autoscaler of the group writes its count. */
function isAutoscaled(context: Files, { namespace, name }: GroupDefinition, statefulSet: string): boolean {
  return autoscalersOf(context).some(
    (one) => scales(one, namespace, 'StatefulSet', statefulSet) || scales(one, namespace, 'RolloutGroup', name),
  );
}

/** `spec.replicas`, where every version of the StatefulSet names the same. */
function writtenReplicas(context: Files, namespace: string, name: string): number | undefined {
  const [first, ...others] = (setsByName(context).get(`${namespace}/${name}`) ?? []).map(({ value }) =>
    valueAt(value, ['spec', 'replicas']),
  );
  return typeof first === 'number' && others.every((one) => one === first) ? first : undefined;
}
