// Codes RG6001 to RG6099: what doctor finds in an installation.
export const installationCodes = {
  RG6001: {
    title: 'No agent holds the Lease',
    severity: 'error',
    explanation:
      'Only the holder of the Lease acts. Without one nothing is rolled and nothing is scaled, however long a group waits; what is running stays as it is.',
    hint: 'install the agent, or name the namespace it lives in with --agent-namespace',
  },
  RG6002: {
    title: 'The agent does not renew its Lease',
    severity: 'error',
    explanation: 'The Lease has expired: the agent is gone, hangs, or cannot reach the API server, and no other one has taken over.',
    hint: 'look at the pods and the logs of the agent',
  },
  RG6003: {
    title: 'The agent says nothing about a group',
    severity: 'warning',
    explanation:
      'The agent publishes its decision about every group it looks after. A group without one is in a namespace that it does not watch, was defined a moment ago, or the agent may not write where it publishes.',
  },
  RG6004: {
    title: 'Several agents look after one group',
    severity: 'error',
    explanation:
      'Agents with different Leases know nothing of one another. Each keeps its own rules, and together they may take down two zones at once.',
    hint: 'give them the same Lease, or different namespaces',
  },
  RG6005: {
    title: 'A kind is not installed',
    severity: 'warning',
    explanation:
      'Without its CustomResourceDefinition a kind exists only in files. Adopted groups and policy directories work; pauses, approvals and everything else that writes an object do not.',
    hint: 'kubectl rollout-group schema KIND -o crd | kubectl apply -f -',
  },
  RG6006: {
    title: 'An installed kind is of another version',
    severity: 'warning',
    explanation:
      'The CustomResourceDefinition in the cluster is not the one that belongs to this program: fields that it does not know are dropped without a word when an object is written.',
    hint: 'kubectl rollout-group schema KIND -o crd | kubectl apply -f -',
  },
  RG6007: {
    title: 'The agent lacks a permission',
    severity: 'error',
    explanation: 'What the agent may not read is unknown to it, and what is unknown passes no rule; what it may not write does not happen.',
    hint: 'bind the Role that belongs to the agent',
  },
  RG6008: {
    title: 'The operator of grafana/rollout-operator is still running',
    severity: 'error',
    explanation:
      'Both would replace pods of the same groups, and neither knows what the other one has just deleted. Two zones may be down at once.',
    hint: 'scale the Deployment of grafana/rollout-operator to 0',
  },
  RG6009: {
    title: 'An autoscaler scales a member whose replicas are written by the agent',
    severity: 'error',
    explanation:
      'The zone takes its replicas from its leader, from a mirrored object or from the group. The autoscaler and the agent write in turn.',
    hint: 'let the autoscaler scale the group, the leader or the mirrored object',
  },
  RG6010: {
    title: 'Several autoscalers scale the members of one group',
    severity: 'error',
    explanation: 'Each decides by itself, so the zones drift apart, and one grows while another one shrinks.',
    hint: 'keep the one that scales the leader',
  },
  RG6011: {
    title: 'A GitOps tool names replicas that the agent writes',
    severity: 'error',
    explanation:
      'Each sync puts the number of replicas back to what Git says, and the agent changes it again. Pods come and go for nothing.',
    hint: 'leave spec.replicas out of the manifest, or tell the tool to ignore the field',
  },
  RG6012: {
    title: 'Several disruption budgets cover one pod',
    severity: 'error',
    explanation:
      'The eviction API refuses to evict a pod that more than one PodDisruptionBudget selects (it answers 500), so neither a drain nor a rollout by eviction ever gets past it.',
    hint: 'keep one budget over the pods of the group',
  },
  RG6013: {
    title: 'The update strategy does not fit the engine of the group',
    severity: 'error',
    explanation:
      'With the strategy onDelete nobody but the agent may replace pods: another strategy lets the StatefulSet controller replace them too, in all zones at once. The strategies partition and pinned need RollingUpdate.',
    hint: 'set spec.updateStrategy.type as the engine needs it',
  },
  RG6014: {
    title: 'Two StatefulSets share the label name',
    severity: 'error',
    explanation:
      'Pods of adopted members are found by the label `name` of the pod template. With one value in two StatefulSets, grafana/rollout-operator counts the pods of both for each; this agent asks for the owner too.',
    hint: 'give each StatefulSet a label name of its own',
  },
  RG6015: {
    title: 'A foreign pod looks like a member’s',
    severity: 'warning',
    explanation:
      'A pod that the StatefulSet does not own carries its label, or has the name of one of its pods. It counts neither as healthy nor as missing, and is never touched; other tools count it.',
  },
  RG6016: {
    title: 'A ledger belongs to no group',
    severity: 'warning',
    explanation:
      'The group was renamed or removed, and what was remembered of it stays: a delay that still runs is not kept under the new name. The ledger is not deleted by itself, unless the group had onPolicyDeleted: release: then its StatefulSets are handed back one by one, and deleting the ledger before it is gone stops that.',
    hint: 'when no disruption of it is open any more, and nothing is being released: delete the ConfigMap',
  },
  RG6017: {
    title: 'The version of Kubernetes has a trap',
    severity: 'warning',
    explanation: 'A behaviour of this version of Kubernetes changes what happens to groups. doctor says which.',
  },
  RG6018: {
    title: 'Clocks differ',
    severity: 'warning',
    explanation:
      'The clock of this machine and that of the API server are more than 5 s apart, so ages and ends that are shown here are wrong by as much. Stored times that lie more than 30 s ahead of the API server are not believed.',
    hint: 'set the clock, by NTP',
  },
  RG6019: {
    title: 'A member does not exist',
    severity: 'error',
    explanation: 'The group names a StatefulSet that the cluster does not have. Its zone counts as missing, and the group waits for it.',
    hint: 'create the StatefulSet, or take the zone out of the group',
  },
  RG6020: {
    title: 'A notification channel fails',
    severity: 'warning',
    explanation:
      'Nobody is told of the group by this channel, or not any more; the message says why. Rollouts go on all the same, and what could not be told is told when the channel works again, up to a day after the end of the run.',
    hint: 'mend the NotificationChannel, the Secret that it names, or the rights at the service',
  },
  RG6021: {
    title: 'An admission policy is not as it was installed',
    severity: 'error',
    explanation:
      'ValidatingAdmissionPolicies of an installation hold while no webhook answers or none is registered: who asked for an intent must be true, and pods that a partition holds are not let go. One that is missing, changed, unbound, or bound without Deny refuses nothing, and nothing that passes would tell. One that another version installed is a warning: it refuses what that version has it refuse.',
    hint: 'install again: kubectl rollout-group install --policies DIR --apply',
  },
  RG6022: {
    title: 'A Secret that is named is not there',
    severity: 'warning',
    explanation:
      'A MetricSource or a NotificationChannel names a Secret, or a key of one, that the namespace of the agent does not have. Gates that ask the source wait, and nobody is told by the channel, until it is there.',
    hint: 'create the Secret in the namespace of the agent, or mend its name and key in the object',
  },
  RG6023: {
    title: 'A partition holds all pods of a StatefulSet that belongs to no group',
    severity: 'warning',
    explanation:
      'The partition 1000000 is written for groups of the strategies partition and pinned, and is above any number of replicas: the StatefulSet controller replaces no pod, and makes every new one at the old revision. Without a group nobody lets them go. Changes of the image are ignored, and kubectl rollout status says that all is done.',
    hint: 'define the group, or take the partition away, which rolls the pods',
  },
  RG6024: {
    title: 'The agent does not look after a namespace',
    severity: 'error',
    explanation: 'The agent looks after the namespaces that -namespaces names and no other. Groups elsewhere wait for ever.',
    hint: 'install again with --groups-in for each namespace, or look at another namespace',
  },
  RG6025: {
    title: 'Nobody can answer a webhook of the installation',
    severity: 'error',
    explanation:
      'The API server asks only a Service with an endpoint that is ready, and trusts only the authority that caBundle names. The agent writes caBundle when it serves webhooks; cert-manager does where an annotation asks for it. Meanwhile pods of groups of the strategy pinned come back at the old revision, and what the webhooks guard is refused or passes unseen, as their failurePolicy says.',
    hint: 'start the pods of the agent, which serve the webhooks and write caBundle; their log says why they cannot',
  },
  RG6026: {
    title: 'Pinned pods do not come back at their revision',
    severity: 'error',
    explanation:
      'Pods that were to be pinned came back at another revision, more than once: the webhook on the creation of pods was not asked, or did not answer. The group stands still, since each further attempt would be a restart for nothing.',
    hint: 'mend the webhook that pins pods, then: kubectl rollout-group retry GROUP',
  },
} as const;
