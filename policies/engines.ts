// Which engines replace pods in this version, and the partition that holds every pod back.

/** A group that names another engine waits with the rule engine-unavailable, and lint says so. */
export const availableEngines: readonly string[] = ['onDelete', 'partition'];

/**
 * `spec.updateStrategy.rollingUpdate.partition` while nothing may roll. It is far above any number of replicas, so that neither a new template nor
 * a scale-up lets the StatefulSet controller replace or make a pod of the update revision.
 */
export const holdingPartition = 1_000_000;
