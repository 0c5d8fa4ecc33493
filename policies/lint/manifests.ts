// Lint checks of member manifests: wrong update strategies, and autoscalers that conflict with the agent.
import type { GroupDefinition } from '../definition.ts';
import { type Finding, finding, sourceOf } from '../findings/finding.ts';
import type { Manifest } from '../load.ts';
import { isRecord, valueAt } from '../schema/schema-walk.ts';
import { holdingPartition, type StrategyName, strategyTraits } from '../strategies.ts';
import type { Path } from '../yaml/document.ts';
import { autoscalersOf, scales } from './autoscalers.ts';
import type { LintCheck, LintContext } from './context.ts';

/** Reports members whose update strategy does not fit: pods would be replaced in all zones at once, or never. */
export const findWrongUpdateStrategies: LintCheck = (context) =>
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
    const message = `the StatefulSet ${name} has the wrong update strategy ${String(type)}: the strategy ${strategy} needs ${wanted}`;
    return { path: ['spec', 'updateStrategy', 'type'], message };
  }
  const path = ['spec', 'updateStrategy', 'rollingUpdate', 'partition'];
  const partition = valueAt(value, path);
  if (partition === undefined || partition === null || !holdsPartition) return undefined;
  const named = { path, hint: partitionHint(value, partition) };
  if (lowersPartition) {
    // Any number is wrong: applied during a rollout it overwrites the partition of the agent.
    return { ...named, message: `the StatefulSet ${name} sets the partition ${String(partition)}: the agent writes this field` };
  }
  if (partition === holdingPartition) return undefined;
  return {
    ...named,
    message: `the StatefulSet ${name} has the wrong partition ${String(partition)}: the strategy ${strategy} needs ${holdingPartition} or none`,
  };
}

/** Returns the hint to remove the partition. The API server always stores a partition, so a dump contains one that no manifest sets. */
function partitionHint(value: Manifest['value'], partition: unknown): string {
  const isDump = ['uid', 'resourceVersion', 'managedFields'].some((field) => valueAt(value, ['metadata', field]) !== undefined);
  const why = isDump || partition === 0 ? '; the API server always stores a partition, 0 by default' : '';
  return `remove the line spec.updateStrategy.rollingUpdate.partition, and keep type: RollingUpdate${why}`;
}

/** Reports autoscalers of followers, and of members of a group with count or mirror: only the agent writes their replicas. */
export const findAutoscaledMembers: LintCheck = (context) =>
  context.bundle.groups.flatMap((group) =>
    autoscalersOf(context).flatMap((autoscaler): readonly Finding[] => {
      const zone = group.zones.find((one) => scales(autoscaler, group.namespace, 'StatefulSet', one.statefulSet));
      if (zone === undefined || (zone.follows === undefined && zone.replicas.kind === 'leader')) return [];
      const place = autoscaler.place(['spec', 'scaleTargetRef', 'name']);
      const owner = zone.follows === undefined ? `by ${group.name}` : `by zone ${zone.follows}, which it follows`;
      return [
        finding(
          'RG2118',
          place,
          `${autoscaler.kind} ${autoscaler.name} conflicts with the agent: the replicas of ${zone.statefulSet} are set ${owner}`,
        ),
      ];
    }),
  );

function memberManifests({ load }: LintContext, group: GroupDefinition): readonly Manifest[] {
  const names = new Set(group.zones.map((zone) => zone.statefulSet));
  return load.manifests.filter(({ kind, namespace, name }) => kind === 'StatefulSet' && namespace === group.namespace && names.has(name));
}
