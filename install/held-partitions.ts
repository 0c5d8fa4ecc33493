// StatefulSets that a partition still blocks after the agent is uninstalled, and the commands that release them.

export interface HeldSet {
  readonly namespace: string;
  readonly name: string;
}

/** Returns the command that removes the partition; the StatefulSet controller then replaces every outdated pod. */
export function releaseCommand({ namespace, name }: HeldSet): string {
  const patch = JSON.stringify({ spec: { updateStrategy: { rollingUpdate: { partition: 0 } } } });
  return `kubectl patch statefulset ${name} -n ${namespace} --type merge -p '${patch}'`;
}

/** Returns the warning before the agent is uninstalled. */
export function heldWarning(sets: readonly HeldSet[]): string {
  const names = sets.map(({ namespace, name }) => `${namespace}/${name}`).join(', ');
  return `warning: a partition blocks ${sets.length === 1 ? 'the StatefulSet' : `${sets.length} StatefulSets`} ${names}. Without the agent, template changes have no effect, \`kubectl rollout status\` reports success, and a deleted pinned pod returns at the old revision. To release the StatefulSets first: finish all rollouts, set \`spec.rollout.onPolicyDeleted: release\` in their groups, and delete the groups while the agent runs.\n`;
}

/** Returns one leftover per StatefulSet, with its command. */
export function heldLeftovers(sets: readonly HeldSet[]): readonly { readonly what: string; readonly command: string }[] {
  return sets.map((set) => ({
    what: `the partition of StatefulSet ${set.namespace}/${set.name}; removing it replaces every outdated pod. Patch one StatefulSet after another`,
    command: releaseCommand(set),
  }));
}
