// StatefulSets that stay held back by a partition once the agent is gone, and the command that lets each of them roll.

export interface HeldSet {
  readonly namespace: string;
  readonly name: string;
}

/** Takes the partition away, upon which the StatefulSet controller rolls every pod that is not at the update revision. */
export function releaseCommand({ namespace, name }: HeldSet): string {
  const patch = JSON.stringify({ spec: { updateStrategy: { rollingUpdate: { partition: 0 } } } });
  return `kubectl patch statefulset ${name} -n ${namespace} --type merge -p '${patch}'`;
}

/** What is said before the agent goes. */
export function heldWarning(sets: readonly HeldSet[]): string {
  const names = sets.map(({ namespace, name }) => `${namespace}/${name}`).join(', ');
  return `warning: a partition holds back ${sets.length === 1 ? 'the StatefulSet' : `${sets.length} StatefulSets`} ${names}. Once the agent is gone, changes of their pods are ignored, \`kubectl rollout status\` says that all is done, and a pinned pod that is deleted comes back at the old revision. To have them handed back before: let rollouts end, set \`spec.rollout.onPolicyDeleted: release\` in their groups, and delete these while the agent runs.\n`;
}

/** What is said of them afterwards, one entry each. */
export function heldLeftovers(sets: readonly HeldSet[]): readonly { readonly what: string; readonly command: string }[] {
  return sets.map((set) => ({
    what: `the partition of StatefulSet ${set.namespace}/${set.name}; taking it away rolls every pod that is not at the new revision, one StatefulSet after the other is safer`,
    command: releaseCommand(set),
  }));
}
