// Checks the manifests of StatefulSets and autoscalers for lint, and reads the replicas of a zone from them.
import type { GroupDefinition, Source, ZoneDefinition } from '../definition.ts';
import { type Finding, finding, sourceOf } from '../findings/finding.ts';
import type { Manifest } from '../load.ts';
import { valueAt } from '../schema/schema-walk.ts';
import { holdingPartition, type StrategyName, strategyTraits } from '../strategies.ts';
import { groupBy } from '../values/group-by.ts';
import { isRecord } from '../values/is-record.ts';
import { keptByObject } from '../values/map.ts';
import { definitionOf, eachGroup, type LintCheck, type LintContext } from './context.ts';

/** Reports members whose update strategy does not fit: pods would be replaced in all zones at once, or never. */
const findWrongUpdateStrategies: LintCheck = eachGroup((group, context) => {
  const definition = definitionOf(context, group);
  if (!definition) return [];
  const related = [sourceOf(group.place(['spec', 'rollout', 'strategy']))];
  return memberManifests(context, definition).flatMap((manifest) => strategyFindings(manifest, definition.rollout.strategy, related));
});

function strategyFindings(manifest: Manifest, strategy: StrategyName, related: readonly Source[]): readonly Finding[] {
  const { name, value } = manifest;
  if (!isRecord(value['spec'])) return [];
  const type = valueAt(value, ['spec', 'updateStrategy', 'type']) ?? 'RollingUpdate';
  const { updateStrategy: wanted, holdsPartition, lowersPartition } = strategyTraits[strategy];
  if (type !== wanted) {
    const message = `the StatefulSet ${name} has the wrong update strategy ${String(type)}: the strategy ${strategy} needs ${wanted}`;
    return [finding('RG2117', manifest.place(['spec', 'updateStrategy', 'type']), message, { related })];
  }
  const path = ['spec', 'updateStrategy', 'rollingUpdate', 'partition'];
  const partition = valueAt(value, path);
  const isAllowed = partition === holdingPartition && !lowersPartition;
  if (partition === undefined || partition === null || !holdsPartition || isAllowed) return [];
  const message = lowersPartition
    ? // Every number is wrong: a manifest that is applied during a rollout overwrites the partition of the agent.
      `the StatefulSet ${name} sets the partition ${String(partition)}: the agent writes this field`
    : `the StatefulSet ${name} has the wrong partition ${String(partition)}: the strategy ${strategy} needs ${holdingPartition} or none`;
  return [finding('RG2117', manifest.place(path), message, { related, hint: partitionHint(value, partition) })];
}

/** Returns the hint to remove the partition. With RollingUpdate, the API server stores partition 0 if no partition is set. */
function partitionHint(value: Manifest['value'], partition: unknown): string {
  const isDump = ['uid', 'resourceVersion', 'managedFields'].some((field) => valueAt(value, ['metadata', field]) !== undefined);
  const why = isDump || partition === 0 ? '; the API server always stores a partition, 0 by default' : '';
  return `remove the line spec.updateStrategy.rollingUpdate.partition, and keep type: RollingUpdate${why}`;
}

/** Reports autoscalers that scale a follower, or a zone with `count` or `mirror`: the agent writes the replicas of these zones. */
const findAutoscaledMembers: LintCheck = (context) =>
  context.bundle.groups.flatMap((group) =>
    autoscalersOf(context).flatMap((autoscaler): readonly Finding[] => {
      const zone = group.zones.find((one) => scales(autoscaler, group.namespace, 'StatefulSet', one.statefulSet));
      if (zone === undefined || (zone.follows === undefined && zone.replicas.kind === 'leader')) return [];
      const place = autoscaler.place(['spec', 'scaleTargetRef', 'name']);
      const owner = zone.follows === undefined ? `the group ${group.name}` : `zone ${zone.follows}, the leader of zone ${zone.name}`;
      const message = `${autoscaler.kind} ${autoscaler.name} conflicts with the agent: replicas of ${zone.statefulSet} come from ${owner}`;
      return [finding('RG2118', place, message)];
    }),
  );

function memberManifests({ load }: LintContext, group: GroupDefinition): readonly Manifest[] {
  const names = new Set(group.zones.map((zone) => zone.statefulSet));
  return load.manifests.filter(({ kind, namespace, name }) => kind === 'StatefulSet' && namespace === group.namespace && names.has(name));
}

type Files = Pick<LintContext, 'load'>;

/** Returns a function that remembers its answer for each load, because checks ask for each zone of each group. */
function oncePerLoad<T>(read: (manifests: readonly Manifest[]) => T): (files: Files) => T {
  const answerOf = keptByObject(({ manifests }: LintContext['load']) => read(manifests));
  return ({ load }) => answerOf(load);
}

/** Returns the manifests of StatefulSets by namespace and name. Several manifests of one name are versions, such as kustomize overlays. */
const setsByName = oncePerLoad((manifests) =>
  groupBy(manifests, ({ kind, apiVersion, namespace, name }) =>
    kind === 'StatefulSet' && apiVersion.startsWith('apps/') ? `${namespace}/${name}` : undefined,
  ),
);

/** Returns one manifest per StatefulSet: the first of several versions. */
export function setManifests(context: Files): readonly Manifest[] {
  return [...setsByName(context).values()].map(([first]) => first);
}

/** Returns the manifest of the StatefulSet of a zone: the first of several versions. */
export function manifestOf(context: Files, { namespace }: GroupDefinition, { statefulSet }: ZoneDefinition): Manifest | undefined {
  return setsByName(context).get(`${namespace}/${statefulSet}`)?.[0];
}

/** Returns the replicas of a zone; undefined if an autoscaler or a mirrored object sets them, or if the files do not give one number. */
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

/** Returns the HorizontalPodAutoscalers and KEDA ScaledObjects among the manifests. */
const autoscalersOf = oncePerLoad((manifests) =>
  manifests.filter(({ kind, apiVersion }) => {
    const isKeda = kind === 'ScaledObject' && apiVersion.startsWith('keda.sh/');
    return isKeda || (kind === 'HorizontalPodAutoscaler' && apiVersion.startsWith('autoscaling/'));
  }),
);

/** Reports whether the autoscaler scales this object. A ScaledObject without a kind scales a Deployment. */
function scales(autoscaler: Manifest, namespace: string, kind: 'StatefulSet' | 'RolloutGroup', name: string): boolean {
  const target = (field: string): unknown => valueAt(autoscaler.value, ['spec', 'scaleTargetRef', field]);
  return autoscaler.namespace === namespace && target('kind') === kind && target('name') === name;
}

export const manifestChecks: readonly LintCheck[] = [findWrongUpdateStrategies, findAutoscaledMembers];
