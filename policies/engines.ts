// What engines have in common: the partition that holds every pod back.

/**
 * `spec.updateStrategy.rollingUpdate.partition` while nothing may roll. It is far above any number of replicas, so that neither a new template nor
 * a scale-up lets the StatefulSet controller replace or make a pod of the update revision.
 */
export const holdingPartition = 1_000_000;
