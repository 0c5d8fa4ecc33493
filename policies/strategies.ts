// Which engine replaces the pods of a group, and the partition that holds every pod back.
import type { GroupDefinition } from './definition.ts';

/**
 * `spec.updateStrategy.rollingUpdate.partition` while nothing may roll. It is far above any number of replicas, so that neither a new template nor
 * a scale-up lets the StatefulSet controller replace or make a pod of the update revision.
 */
export const holdingPartition = 1_000_000;

/** Whether the StatefulSet controller replaces the pods of the group, as far down as the partition lets it. */
export function isPartitioned({ rollout }: GroupDefinition): boolean {
  return rollout.strategy === 'partition';
}

/** Whether pods are pinned one by one, by the webhook on their creation. */
export function isPinned({ rollout }: GroupDefinition): boolean {
  return rollout.strategy === 'pinned';
}
