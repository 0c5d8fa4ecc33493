// The name of the ConfigMap with the published decision of a group without a RolloutGroup object.

/** Differs from the prefix of ledgers, `rollout-group-`. */
const prefix = 'rollout-status-';

/** Name of the ConfigMap that holds the published decision of the group. */
export function statusMapName(group: string): string {
  return `${prefix}${group}`;
}

/** Reports whether a ConfigMap of that name may have a published decision. */
export function isStatusMapName(name: string): boolean {
  return name.startsWith(prefix);
}
