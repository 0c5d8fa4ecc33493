// Codes RG6001 to RG6099: findings of doctor in an installation.
export const installationCodes = {
  RG6001: {
    title: 'No agent holds the Lease',
    severity: 'error',
    explanation: 'Only the agent that holds the Lease acts. Without it no group is rolled or scaled; running pods are not affected.',
    hint: 'install the agent, or name its namespace with --agent-namespace',
  },
  RG6002: {
    title: 'The agent does not renew its Lease',
    severity: 'error',
    explanation: 'The Lease has expired. The agent stopped, hangs or cannot reach the API server, and no other agent has taken over.',
    hint: 'check the pods and the logs of the agent',
  },
  RG6003: {
    title: 'The agent has published no decision about a group',
    severity: 'warning',
    explanation:
      'The agent publishes its decision about every group that it manages. Possible causes: the agent does not watch the namespace, the group is new, or the agent lacks the permission to write.',
  },
  RG6004: {
    title: 'Several agents manage one group',
    severity: 'error',
    explanation: 'Agents with different Leases do not coordinate. Together they can make two zones unavailable at once.',
    hint: 'give the agents the same Lease, or different namespaces',
  },
  RG6005: {
    title: 'A kind is not installed',
    severity: 'warning',
    explanation:
      'Without its CustomResourceDefinition a kind exists only in files. Adopted groups and policy directories work; pauses, approvals and other commands that write objects do not.',
    hint: 'kubectl rollout-group schema KIND -o crd | kubectl apply -f -',
  },
  RG6006: {
    title: 'An installed kind is of another version',
    severity: 'warning',
    explanation:
      'The CustomResourceDefinition in the cluster belongs to another version of this program. The API server silently drops fields that it does not know.',
    hint: 'kubectl rollout-group schema KIND -o crd | kubectl apply -f -',
  },
  RG6007: {
    title: 'The agent lacks a permission',
    severity: 'error',
    explanation: 'An object that the agent cannot read is unknown, and unknown blocks. A write without permission fails.',
    hint: 'bind the Role of the agent',
  },
  RG6008: {
    title: 'The operator grafana/rollout-operator is still running',
    severity: 'error',
    explanation: 'Both would replace pods of the same groups without coordination. Two zones can become unavailable at once.',
    hint: 'scale the Deployment of grafana/rollout-operator to 0',
  },
  RG6009: {
    title: 'An autoscaler in the cluster scales a member whose replicas the agent writes',
    severity: 'error',
    explanation:
      'The zone takes its replicas from its leader, from a mirrored object or from the group. The autoscaler and the agent overwrite each other.',
    hint: 'let the autoscaler scale the group, the leader or the mirrored object',
  },
  RG6010: {
    title: 'Several autoscalers scale the members of one group',
    severity: 'error',
    explanation: 'Each autoscaler decides alone, so the zones get different replica counts.',
    hint: 'keep only the autoscaler of the leader',
  },
  RG6011: {
    title: 'A GitOps tool sets replicas that the agent writes',
    severity: 'error',
    explanation: 'Each sync sets the replicas from Git, and the agent changes them again. Pods are created and deleted without need.',
    hint: 'remove spec.replicas from the manifest, or configure the tool to ignore the field',
  },
  RG6012: {
    title: 'Several disruption budgets cover one pod',
    severity: 'error',
    explanation:
      'The eviction API refuses to evict a pod that more than one PodDisruptionBudget selects (status 500). Node drains and rollouts by eviction cannot proceed.',
    hint: 'keep one budget over the pods of the group',
  },
  RG6013: {
    title: 'The update strategy does not fit the strategy of the group',
    severity: 'error',
    explanation:
      'With the strategy onDelete only the agent may replace pods. With another update strategy the StatefulSet controller replaces them too, in all zones at once. The strategies partition and pinned need RollingUpdate.',
    hint: 'set spec.updateStrategy.type as the strategy requires',
  },
  RG6014: {
    title: 'Two StatefulSets share the label name',
    severity: 'error',
    explanation:
      'The pods of adopted members are found by the label `name` of the pod template. If two StatefulSets share the value, grafana/rollout-operator counts the pods of both for each. This agent also checks the owner.',
    hint: 'give each StatefulSet a unique label name',
  },
  RG6015: {
    title: 'A foreign pod looks like a pod of a member',
    severity: 'warning',
    explanation:
      'A pod that the StatefulSet does not own has its label or the name of one of its pods. The agent ignores this pod and never deletes it; other tools count it.',
  },
  RG6016: {
    title: 'A ledger belongs to no group',
    severity: 'warning',
    explanation:
      'The group was renamed or deleted, but its ledger remains. A delay that still runs does not apply to the new name. The agent deletes the ledger only after a group with onPolicyDeleted: release. It first hands back the StatefulSets one by one, and a deleted ledger stops that.',
    hint: 'when it has no open disruption and no release is in progress: delete the ConfigMap',
  },
  RG6017: {
    title: 'This version of Kubernetes has a known problem',
    severity: 'warning',
    explanation: 'A behavior of this version of Kubernetes affects groups. The message of doctor describes it.',
  },
  RG6018: {
    title: 'Clocks differ',
    severity: 'warning',
    explanation:
      'The clocks of this machine and of the API server are more than 5 s apart, so displayed ages and ends are wrong by as much. The agent ignores stored times that are more than 30 s ahead of the API server.',
    hint: 'synchronize the clock by NTP',
  },
  RG6019: {
    title: 'A member does not exist',
    severity: 'error',
    explanation: 'The group names a StatefulSet that the cluster does not have. The zone counts as missing, and the group waits for it.',
    hint: 'create the StatefulSet, or remove the zone from the group',
  },
  RG6020: {
    title: 'A notification channel fails',
    severity: 'warning',
    explanation:
      'The channel does not deliver messages about the group; the message names the cause. Rollouts continue. The agent delivers pending messages when the channel works again, up to a day after the end of the run.',
    hint: 'fix the NotificationChannel, its Secret, or the permissions at the service',
  },
  RG6021: {
    title: 'An admission policy differs from the installed one',
    severity: 'error',
    explanation:
      'The ValidatingAdmissionPolicies of an installation protect groups while no webhook answers or is registered. They verify the requester of an intent and protect pods that a partition blocks. A policy that is missing, changed, unbound, or bound without Deny denies nothing. A policy that another version installed is only a warning: it enforces the rules of that version.',
    hint: 'install again: kubectl rollout-group install --policies DIR --apply',
  },
  RG6022: {
    title: 'A referenced Secret does not exist',
    severity: 'warning',
    explanation:
      "A MetricSource or a NotificationChannel names a Secret, or a key of a Secret, that the agent's namespace does not have. Gates of the source wait, and the channel sends nothing.",
    hint: "create the Secret in the agent's namespace, or correct its name and key in the object",
  },
  RG6023: {
    title: 'A partition blocks all pods of a StatefulSet that is in no group',
    severity: 'warning',
    explanation:
      'The partition 1000000 belongs to groups of the strategies partition and pinned. It is above any replica count, so the StatefulSet controller replaces no pod and creates new pods outdated. Without a group, image changes have no effect, and kubectl rollout status reports success.',
    hint: 'define the group, or remove the partition, which rolls the pods',
  },
  RG6024: {
    title: 'The agent does not manage a namespace',
    severity: 'error',
    explanation: 'The agent manages only the namespaces in -namespaces. Groups in other namespaces are never rolled.',
    hint: 'install again with --groups-in for each namespace, or check another namespace',
  },
  RG6025: {
    title: 'No pod can answer a webhook of the installation',
    severity: 'error',
    explanation:
      'The API server needs a Service with a ready endpoint and a caBundle that matches its certificate. The agent writes caBundle when it serves webhooks; cert-manager writes it if an annotation requests it. Until then, pods of groups of the strategy pinned are created outdated. Other guarded requests are denied or allowed as the failurePolicy says.',
    hint: 'start the pods of the agent, which serve the webhooks and write caBundle; check their logs if they do not start',
  },
  RG6026: {
    title: 'Pinned pods are created at another revision',
    severity: 'error',
    explanation:
      'Pods that should be pinned were created at another revision, more than once. The API server did not call the webhook for pod creation, or the webhook did not answer. The group stops, because another attempt would only restart pods.',
    hint: 'fix the webhook that pins pods, then run: kubectl rollout-group retry GROUP',
  },
} as const;
