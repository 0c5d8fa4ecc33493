// What the manifests of members say against the group: another update strategy than the engine needs, and autoscalers of their own.
import type { GroupDefinition } from '../definition.ts';
import { type Finding, finding, sourceOf } from '../findings/finding.ts';
import type { Manifest } from '../load.ts';
import { isRecord, valueAt } from '../schema/schema-walk.ts';
import { holdingPartition, type StrategyName, strategyTraits } from '../strategies.ts';
import type { Path } from '../yaml/document.ts';
import { autoscalersOf, scales } from './autoscalers.ts';
import type { LintCheck, LintContext } from './context.ts';

/** With another strategy the StatefulSet controller replaces pods on its own, in all zones at once, or nobody replaces them. */
export const updateStrategies: LintCheck = (context) =>
  context.groups.flatMap((group) => {
    const definition = context.bundle.groups.find((one) => one.namespace === group.namespace && one.name === group.name);
    if (!definition) return [];
    const related = [sourceOf(group.place(['spec', 'rollout', 'strategy']))];
    return memberManifests(context, definition).flatMap((manifest): readonly Finding[] => {
      const problem = strategyProblem(manifest, definition.rollout.strategy);
      if (problem === undefined) return [];
      const { path, message, hint } = problem;
      return [finding('RG2117', manifest.place(path), message, { related, hint })];
    });
  });

interface StrategyProblem {
  readonly path: Path;
  readonly message: string;
  readonly hint?: string;
}

function strategyProblem({ name, value }: Manifest, strategy: StrategyName): StrategyProblem | undefined {
  if (!isRecord(value['spec'])) return undefined;
  const type = valueAt(value, ['spec', 'updateStrategy', 'type']) ?? 'RollingUpdate';
  const { updateStrategy: wanted, holdsPartition, lowersPartition } = strategyTraits[strategy];
  if (type !== wanted) {
    const message = `the StatefulSet ${name} has the update strategy ${String(type)}; the strategy ${strategy} needs ${wanted}`;
    return { path: ['spec', 'updateStrategy', 'type'], message };
  }
  const path = ['spec', 'updateStrategy', 'rollingUpdate', 'partition'];
  const partition = valueAt(value, path);
  if (partition === undefined || partition === null || !holdsPartition) return undefined;
  const named = { path, hint: partitionHint(value, partition) };
  if (lowersPartition) {
    // Whatever number it is: applied in the middle of a rollout it takes the place of the agent's.
    return { ...named, message: `the StatefulSet ${name} has the partition ${String(partition)}, which the agent writes; leave it out` };
  }
  if (partition === holdingPartition) return undefined;
  return {
    ...named,
    message: `the StatefulSet ${name} has the partition ${String(partition)}; the strategy ${strategy} needs ${holdingPartition} or none`,
  };
}

/** What a server has stored names a partition always, so that whoever reads a dump back finds one that nobody wrote. */
function partitionHint(value: Manifest['value'], partition: unknown): string {
  const isDump = ['uid', 'resourceVersion', 'managedFields'].some((field) => valueAt(value, ['metadata', field]) !== undefined);
  const why = isDump || partition === 0 ? '; what was read from a cluster has one always, 0 where nobody wrote it' : '';
  return `remove the line spec.updateStrategy.rollingUpdate.partition, and keep type: RollingUpdate${why}`;
}

/** Followers, and all members of a group that counts or mirrors, are written by the agent alone. */
export const autoscaledMembers: LintCheck = (context) =>
  context.bundle.groups.flatMap((group) =>
    autoscalersOf(context).flatMap((autoscaler): readonly Finding[] => {
      const zone = group.zones.find((one) => scales(autoscaler, group.namespace, 'StatefulSet', one.statefulSet));
      if (zone === undefined || (zone.follows === undefined && zone.replicas.kind === 'leader')) return [];
      const place = autoscaler.place(['spec', 'scaleTargetRef', 'name']);
      const owner = zone.follows === undefined ? `the replicas of ${group.name} say` : `zone ${zone.follows}, which it follows, has`;
      return [finding('RG2118', place, `${autoscaler.kind} ${autoscaler.name} scales ${zone.statefulSet}, whose number is what ${owner}`)];
    }),
  );

function memberManifests({ load }: LintContext, group: GroupDefinition): readonly Manifest[] {
  const names = new Set(group.zones.map((zone) => zone.statefulSet));
  return load.manifests.filter(({ kind, namespace, name }) => kind === 'StatefulSet' && namespace === group.namespace && names.has(name));
}
