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
  return `warning: a partition holds back ${sets.length === 1 ? 'the StatefulSet' : `${sets.length} StatefulSets`} ${names}. Once the agent is gone, changes of their pods are ignored, \`kubectl rollout status\` says that all is done, and a pinned pod that is deleted comes back at the old revision. To have them handed back before: let rollouts end, set \`spec.rollout.onPolicyDeleted: release\` in their groups, and delete these while the agent runs.\n`;
}

/** Returns one leftover per StatefulSet, with its command. */
export function heldLeftovers(sets: readonly HeldSet[]): readonly { readonly what: string; readonly command: string }[] {
  return sets.map((set) => ({
    what: `the partition of StatefulSet ${set.namespace}/${set.name}; taking it away rolls every pod that is not at the new revision, one StatefulSet after the other is safer`,
    command: releaseCommand(set),
  }));
}
