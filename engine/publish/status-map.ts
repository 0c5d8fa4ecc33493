// Where the decision of a group is published that has no RolloutGroup object: the name of its ConfigMap.

/** No ledger is named like this, whatever its group is called: ledgers begin with `rollout-group-`. */
const prefix = 'rollout-status-';

/** Name of the ConfigMap that holds the published decision of the group. */
export function statusMapName(group: string): string {
  return `${prefix}${group}`;
}

/** Whether a ConfigMap of that name may hold a published decision. */
export function isStatusMapName(name: string): boolean {
  return name.startsWith(prefix);
}
