// Defines the codes RG4xxx to RG7xxx: adopted settings, plans, installations, and objects of other rollout operators.
export const clusterCodes = {
  RG4001: {
    title: 'The value of rollout-max-unavailable is not valid',
    severity: 'warning',
    explanation:
      'The annotation takes a whole number above 0, or 1% to 100%. Any other value counts as 1, so the zone rolls one pod at a time. grafana/rollout-operator does the same.',
    hint: 'write a number such as 2 or a percentage such as 10%',
  },
  RG4002: {
    title: 'The downscale leader is not in the group',
    explanation:
      'The annotation names a StatefulSet that is not a member of the group. An empty value counts as a name. The agent then does not scale this member. grafana/rollout-operator scales no member of the group.',
    hint: 'name a StatefulSet with the same rollout-group label, or remove the annotation',
  },
  RG4003: {
    title: 'A member has both a leader and a mirrored source',
    explanation:
      'The agent follows the leader and ignores the source. grafana/rollout-operator alternates between the replicas of both, in an endless loop.',
    hint: 'remove the leader or the mirrored source',
  },
  RG4004: {
    title: 'The minimum time between zones is not valid',
    explanation:
      'The label takes a Go duration such as 12h or 90m. Go durations have no unit for days. If the value is not a duration, downscales that depend on this time are denied. A negative time has no effect.',
    hint: 'write hours, such as 24h',
  },
  RG4005: {
    title: 'The delayed downscale is not valid',
    explanation:
      'The annotation takes a Prometheus duration such as 1d or 1h30m. It must not be negative. The StatefulSet needs a serviceName. Otherwise the StatefulSet is not scaled.',
  },
  RG4006: {
    title: 'The URL for delayed downscales is not valid',
    explanation:
      'The annotation takes an absolute URL. The agent replaces its host by the host of each pod. If the URL cannot be parsed, the StatefulSet is not scaled. If the URL does not start with http:// or https://, or has no host, the StatefulSet does not shrink.',
    hint: 'write a URL such as http://pod:8080/ingester/prepare-delayed-downscale',
  },
  RG4007: {
    title: 'The preparation of downscales is incomplete',
    explanation:
      'A StatefulSet with prepare-downscale needs the annotations for port and path, and a serviceName. If one of them is missing or not valid, every downscale is denied.',
  },
  RG4008: {
    title: 'The API version of the mirrored source is not valid',
    explanation:
      'An API version is `group/version`, or `version` alone for the core group. With more than one slash the source is not found, and grafana/rollout-operator stops mirroring for the rest of the group.',
  },
  RG4009: {
    title: 'The write-back setting is not a boolean',
    severity: 'warning',
    explanation:
      'The annotation takes a boolean such as true or false; the default is true. A value that is not a boolean counts as false, so the agent writes nothing back.',
    hint: 'write true or false',
  },
  RG4010: {
    title: 'The forced replicas have no effect',
    severity: 'warning',
    explanation:
      'The annotation takes a whole number from 0 to 2147483647. It works only on a StatefulSet with a leader or a mirrored source, and is ignored elsewhere.',
  },
  RG4011: {
    title: 'A setting is an annotation but must be a label',
    severity: 'warning',
    explanation:
      'The settings prepare-downscale, no-downscale and min-time-between-zones-downscale are labels. As annotations they protect nothing.',
    hint: 'move it to metadata.labels',
  },
  RG4012: {
    title: 'The update strategy is not OnDelete',
    explanation:
      'Only the agent may replace the pods of an adopted group. With another update strategy the StatefulSet controller replaces the pods of the StatefulSet. The agent and grafana/rollout-operator then replace no pod of the group.',
    hint: 'set spec.updateStrategy.type to OnDelete',
  },
  RG4013: {
    title: 'The pod template has no label "name"',
    explanation:
      'The agent finds the pods of an adopted member by the label `name` of the pod template. Without this label the zone has no pods.',
    hint: 'add the label "name" to spec.template.metadata.labels',
  },
  RG4014: {
    title: 'The group has a single member',
    severity: 'notice',
    explanation: 'The group has no other zone, so the agent replaces pods without waiting for other zones.',
  },
  RG4015: {
    title: 'The value of a switch is not exactly true',
    severity: 'warning',
    explanation:
      'The switch is on only if its value is exactly `true`, in lower case. Any other value means off, including True, yes and 1.',
    hint: 'write "true", or remove the switch',
  },
  RG4016: {
    title: 'User information in a URL is dropped',
    severity: 'warning',
    explanation:
      'The URL contains a user name or a password. Every reader of the object can read credentials in an annotation, so the agent does not use them: it calls the URL without them.',
    hint: 'remove the user information',
  },
  RG4017: {
    title: 'A label or annotation is not text',
    explanation: 'The API server denies labels and annotations that are not text. In YAML, true and 1 without quotes are not text.',
    hint: 'quote the value',
  },
  RG4018: {
    title: 'Leaders follow each other in a cycle',
    explanation:
      'Each member of the cycle takes its replicas from the next one, so no member defines the number. grafana/rollout-operator passes each change around the cycle in an endless loop.',
    hint: 'remove the leader annotation from one member',
  },
  RG4019: {
    title: 'The group cannot be adopted',
    explanation: 'The settings of the members give a RolloutGroup that is not valid. The agent does not manage the group.',
  },
  RG4020: {
    title: 'The delayed downscale has no effect',
    severity: 'warning',
    explanation:
      'A delayed downscale needs both of its annotations, on a StatefulSet that mirrors the replicas of another object. Otherwise pods are removed without delay.',
  },
  RG4021: {
    title: 'The mirrored source has no effect',
    severity: 'warning',
    explanation: 'A mirrored source needs both a name and a kind. With only one of them the replicas are not mirrored.',
  },
  RG5001: {
    title: 'The disruption budget makes replacement serial',
    severity: 'warning',
    explanation:
      'The agent could replace several pods at once, but a PodDisruptionBudget over the pods of the group allows only one disruption. Evictions wait for each other, so the rollout replaces one pod at a time.',
  },
  RG5002: {
    title: 'OrderedReady gains nothing from parallel replacement',
    severity: 'notice',
    explanation:
      'With podManagementPolicy OrderedReady the StatefulSet controller creates one pod at a time, and waits until every lower ordinal is available. In native groups the agent therefore replaces one pod at a time, and no pod above an unavailable pod. In drop-in groups it replaces as many pods as maxUnavailable allows, which makes the rollout no faster and lowers availability.',
    hint: 'use podManagementPolicy: Parallel, or maxUnavailable: 1',
  },
  RG5003: {
    title: 'The pods have no readiness probe',
    severity: 'warning',
    explanation:
      'Without a readiness probe a pod is ready when its containers run. The rollout can then continue before the pod serves requests, and a version that never serves can reach every zone.',
  },
  RG5005: {
    title: 'Git sets replicas that the agent also writes',
    severity: 'warning',
    explanation:
      'The manifest sets spec.replicas of a zone that follows a leader or a mirrored object, or whose replicas the group sets. Every sync overwrites the value of the agent. If the field belongs to `apply` or kubectl, its removal resets the replicas to 1, which the webhook denies. So change the replicas of the group or of its leader once: then the field belongs to the agent.',
    hint: 'scale the group or its leader once, then remove spec.replicas from the manifest',
  },
  RG5006: {
    title: 'An image has no fixed version',
    severity: 'warning',
    explanation:
      'The image has the tag latest or no tag. A pod that restarts can get another version than the other pods, without any rollout.',
    hint: 'name a version or a digest',
  },
  RG5007: {
    title: 'The images of the zones differ',
    severity: 'notice',
    explanation:
      'Zones of one group run the same software. The containers of these zones have different images, so the result of one zone says less about the next zone.',
  },
  RG5008: {
    title: 'The rollout never ends',
    severity: 'warning',
    explanation:
      'A limit of zero blocks the rollout: `maxUnavailable: 0` of the group, of a zone or of a policy, or a PodDisruptionBudget with `maxUnavailable: 0` or `minAvailable: 100%`. Neither time nor progress ends this block. The plan is blocked and ends with exit code 5; the agent waits indefinitely.',
    hint: 'change the limit that the risk names; to stop the group on purpose, set paused: true in its zones or run: kubectl rollout-group pause',
  },
  RG5009: {
    title: 'The canary has no pods',
    severity: 'warning',
    explanation:
      'The zones of the first wave have no pods, so there is no canary. The pods of a later wave are the first ones on the update revision. RG2217 reports the same for files.',
    hint: 'start with a zone that has pods',
  },
  RG5010: {
    title: 'A deadline is shorter than the durations of the plan',
    severity: 'warning',
    explanation:
      'A run fails if a pod is in flight and no pod becomes available within `rollout.deadlines.progress`, or if the run takes longer than `rollout.deadlines.run`. The durations of the plan exceed one of these deadlines. The durations are only assumed, so a plan is never blocked for this. `--assumptions` replaces the default durations. If a rollout in progress waits, for example for a pod that crashes, the plan names the time at which a deadline fails the run.',
    hint: 'raise the deadline, or measure how long the pods take and pass these durations with --assumptions',
  },
  RG5011: {
    title: 'An exception ends before the rollout',
    severity: 'warning',
    explanation:
      'A step passes only because of an exception, and with the durations of the plan the exception ends before the last pod that it permits is replaced. After that, the rule blocks the remaining pods; the rule `window` blocks them until the window opens. The plan is never `blocked` for this reason, because its durations are assumed. If the exception is long enough for the p50 durations but not for the p90 durations, the plan completes. It then shows a p90 duration only if time alone ends the block.',
    hint: 'extend the exception',
  },
  RG5012: {
    title: 'The StatefulSet controller replaces pods at once',
    severity: 'warning',
    explanation:
      'A partition blocks only the pods with ordinals below it. The StatefulSet controller applies a new template at once to the other pods, such as the updated pods of a group with `strategy: partition` during a run. The controller replaces these pods one after the other in each StatefulSet, without waves, gates, pauses and protections. The plan shows them in the wave `at once`. The controller also deletes pods at once if a change lowers the replicas of a StatefulSet; if the agent then restores the number, these pods come back.',
    hint: 'apply the template after the run has ended, or use strategy: pinned; if the change lowers replicas, keep their number',
  },
  RG5013: {
    title: 'The rollout skips soaks, gates and approvals',
    severity: 'notice',
    explanation:
      'The change returns to the pod template before the last run, in every zone with outdated pods. Such a run skips the soaks, gates and approvals of the waves, because pods already ran this template, and a gate may measure the failure that the return repairs. Windows and the other rules still apply.',
    hint: 'to keep soaks, gates and approvals, set spec.rollout.skipOnRollback: false',
  },
  RG5014: {
    title: 'A StatefulSet leaves its group',
    severity: 'warning',
    explanation:
      'The change removes a member from the group, but its StatefulSet stays in the cluster. As soon as the change is applied, the agent replaces none of its pods, and the rules of the group, such as `noDelete` and `noDownscale`, no longer protect it. With the strategies `pinned` and `partition`, the StatefulSet keeps the partition that the agent set. `get` then shows how to remove the partition.',
    hint: 'delete the StatefulSet while the rules of the group still apply to it, or keep it in the group',
  },
  RG5015: {
    title: 'A StatefulSet has more pods than a plan can model',
    severity: 'warning',
    explanation:
      'A plan models up to 5,000 pods of each StatefulSet, because Kubernetes supports clusters of up to 5,000 nodes. The plan has no pods of a larger StatefulSet, so it never ends. A policy test and `simulate` refuse such a StatefulSet. The agent and the webhooks accept any number of replicas.',
    hint: 'reduce spec.replicas of the StatefulSet, or replicas.count or forceReplicas of its group',
  },
  RG5016: {
    title: 'A restart changes the revision of a pod',
    severity: 'warning',
    explanation:
      'A pod that restarts now, for any reason, comes back at another revision than the one that it runs. In a rolled-back zone of a `pinned` group, this is the case while no webhook answers, and new pods start at this revision too. The message names the pods or the zone, and the revision.',
  },
  RG5017: {
    title: 'Pods stay outdated because no wave includes them',
    severity: 'warning',
    explanation:
      'The run is completed when every wave is done. The waves leave out a zone, or update less than 100 percent of it, so its other pods keep their revision. They are replaced when a later wave includes them, or when the template returns to an earlier one.',
    hint: 'to update these pods too, add a last wave with the zone and percent: 100',
  },
  RG5018: {
    title: 'The update strategy of a member does not fit the strategy of the group',
    severity: 'warning',
    explanation:
      'After the change, a StatefulSet of the group has another update strategy than `spec.rollout.strategy` needs. The rule `update-strategy` then blocks the next rollout. The message names the steps that make the StatefulSet fit. The write of the update strategy replaces no pod.',
    hint: 'follow the steps in the message, or keep the strategy of the group',
  },
  RG5019: {
    title: 'New pods start at a template that the rollout stopped at',
    severity: 'warning',
    explanation:
      'Under `onDelete` and `partition`, the StatefulSet controller creates new ordinals at the update revision. So a scale-up starts pods at this revision also if its run failed, a person stopped it, no wave has reached these pods, or their wave waits for an approval, a gate, a window or a policy rule. Under `pinned`, this happens in a zone that the run has updated completely; after a rollback of such a zone, only while the webhook on pod creation is missing.',
    hint: 'end the run first: undo or retry a failed run, or scale up after the rollout. If the message names the webhook on pod creation, repair it first: run `kubectl rollout-group doctor`',
  },
  RG5020: {
    title: 'The rollout differs from its approved plan',
    severity: 'warning',
    explanation:
      'The annotation `rollout-group.dev/approved-plan` of the StatefulSets belongs to another change: the templates, the replicas, the group, a policy or an exception changed after the review that wrote it. The agent reports the same differences. A rule with the effect `requireApprovedPlan` then waits for approvals.',
    hint: 'write the plan of this change with review --out, and commit it with the change',
  },
  RG6001: {
    title: 'No agent holds the Lease',
    explanation:
      'Only the agent that holds the Lease acts. Without such an agent no group is rolled or scaled; running pods are not affected.',
    hint: 'install the agent, or name its namespace with --agent-namespace',
  },
  RG6002: {
    title: 'The agent does not renew its Lease',
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
      'The CustomResourceDefinition in the cluster belongs to another version of this program. The API server drops fields that the installed version does not have.',
    hint: 'kubectl rollout-group schema KIND -o crd | kubectl apply -f -',
  },
  RG6007: {
    title: 'The agent lacks a permission',
    explanation:
      'The message names the missing right and its effect. If the agent needs a right for one object only, a role may name this object in `resourceNames`, as the roles of `install` do.',
    hint: 'create the Roles and bind them: install again with the flags of the installation, such as --image and --replicas: kubectl rollout-group install --policies DIR --apply',
  },
  RG6008: {
    title: 'The operator grafana/rollout-operator is still running',
    explanation:
      'The agent and grafana/rollout-operator would both replace pods of the same groups, without coordination. Two zones can become unavailable at once.',
    hint: 'scale the Deployment of grafana/rollout-operator to 0',
  },
  RG6009: {
    title: 'An autoscaler in the cluster scales a member whose replicas the agent writes',
    explanation:
      'The zone takes its replicas from its leader, from a mirrored object or from the group. The autoscaler and the agent overwrite each other.',
    hint: 'let the autoscaler scale the group, the leader or the mirrored object',
  },
  RG6010: {
    title: 'Several autoscalers scale the members of one group',
    explanation: 'Each autoscaler decides alone, so the zones can get different replica counts.',
    hint: 'keep only the autoscaler of the leader',
  },
  RG6011: {
    title: 'A GitOps tool sets replicas that the agent writes',
    explanation: 'Each sync sets the replicas from Git, and the agent changes them again. Pods are created and deleted without need.',
    hint: 'remove spec.replicas from the manifest, or configure the tool to ignore the field',
  },
  RG6012: {
    title: 'Several disruption budgets cover one pod',
    explanation:
      'The eviction API refuses to evict a pod that more than one PodDisruptionBudget selects (status 500). Node drains and rollouts by eviction cannot proceed.',
    hint: 'keep one budget over the pods of the group',
  },
  RG6013: {
    title: 'The update strategy does not fit the strategy of the group',
    explanation:
      'With the strategy onDelete only the agent may replace pods. With another update strategy the StatefulSet controller replaces them without waiting for other zones, and the agent replaces no pod of the zone. The strategies partition and pinned need RollingUpdate.',
    hint: 'follow the steps that kubectl rollout-group explain shows for the group',
  },
  RG6014: {
    title: 'Two StatefulSets share the label name',
    explanation:
      'The label `name` of the pod template selects the pods of an adopted member. If two StatefulSets share the value, grafana/rollout-operator counts the pods of both for each StatefulSet. The agent counts only pods that the StatefulSet owns.',
    hint: 'give each StatefulSet a unique label name',
  },
  RG6015: {
    title: 'A foreign pod looks like a pod of a member',
    severity: 'warning',
    explanation:
      'A pod has the label or the name of a pod of the StatefulSet, but the StatefulSet does not own it. The agent ignores this pod and never deletes it; other tools count it.',
  },
  RG6016: {
    title: 'A ledger belongs to no group',
    severity: 'warning',
    explanation:
      'The group was renamed or deleted, but its ledger remains. A delay of a scale-down that has begun does not apply to the new name. If the group had onPolicyDeleted: release, the agent releases the StatefulSets one by one, and a deleted ledger stops this release. The agent never deletes a ledger.',
    hint: 'if the ledger has no claim and no release is in progress, delete the ConfigMap',
  },
  RG6017: {
    title: 'This version of Kubernetes has a known problem',
    severity: 'warning',
    explanation:
      'A behavior of this version of Kubernetes affects groups. The message of doctor describes it. doctor reads the feature gate MaxUnavailableStatefulSet from the metrics of the API server. Without the right to get `/metrics`, doctor assumes the default of the version.',
  },
  RG6018: {
    title: 'Clocks differ',
    severity: 'warning',
    explanation:
      "The clocks of this machine and of the API server are more than 5 s apart. Displayed ages and end times can be wrong by this difference. The agent ignores stored times that are more than 30 s ahead of the agent's clock.",
    hint: 'synchronize the clock by NTP',
  },
  RG6019: {
    title: 'A member does not exist',
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
    title: 'An admission policy is missing or changed',
    explanation:
      'The ValidatingAdmissionPolicies of an installation protect groups even if no webhook answers or is registered. They verify the requester of a RolloutIntent or RolloutException, and protect pods that a partition blocks. A policy that is missing, unbound, or bound without Deny denies nothing. A changed policy may deny less. A missing policy, and a policy that another version installed, are only warnings.',
    hint: 'install again with the flags of the installation, such as --image and --replicas: kubectl rollout-group install --policies DIR --apply',
  },
  RG6022: {
    title: 'A referenced Secret does not exist',
    severity: 'warning',
    explanation:
      "A MetricSource or a NotificationChannel names a Secret, or a key of a Secret, that the agent's namespace does not have. The gates of the source answer `unknown`, which blocks, and the channel sends nothing.",
    hint: "create the Secret in the agent's namespace, or correct its name and key in the object",
  },
  RG6023: {
    title: 'A partition blocks all pods of a StatefulSet that is in no group',
    severity: 'warning',
    explanation:
      'The partition 1000000 belongs to groups of the strategies partition and pinned. It is above any replica count, so the StatefulSet controller replaces no pod and creates new pods outdated. Without a group, image changes have no effect, and kubectl rollout status reports success.',
    hint: 'define the group. To release its zones one by one, set onPolicyDeleted: release in the group, and delete the group while the agent runs. If all pods are at the update revision, the partition can also be removed by hand',
  },
  RG6024: {
    title: 'The agent does not manage a namespace',
    explanation: 'The agent manages only the namespaces in -namespaces. Groups in other namespaces are never rolled.',
    hint: 'install again with --groups-in for each namespace, or choose another namespace with -n',
  },
  RG6025: {
    title: 'No pod can answer a webhook of the installation',
    explanation:
      'To call a webhook, the API server needs a Service with a ready endpoint, and a caBundle that matches the certificate of the webhook. The agent writes caBundle when it serves webhooks; cert-manager writes it if an annotation requests it. While no webhook answers, pods of groups with the strategy pinned are created outdated. The failurePolicy decides all other requests that the webhooks check.',
    hint: 'start the pods of the agent, which serve the webhooks and write caBundle; check their logs if they do not start',
  },
  RG6026: {
    title: 'Pinned pods are created at another revision',
    explanation:
      'Pods that should be pinned were created at another revision, more than once. The API server did not call the webhook for pod creation, or the webhook did not answer. The group stops, because another attempt would only restart pods.',
    hint: 'fix the webhook that pins pods, then run: kubectl rollout-group retry GROUP',
  },
  RG6027: {
    title: 'Policies need a webhook that is not registered or not enforced',
    explanation:
      'The agent itself obeys noDownscale, and deletes no StatefulSet. Its rollouts replace pods also with noEviction. Only the webhook denies the requests of other clients, in namespaces with the label rollout-group.dev/enforce=true. Only the webhook records who approved, so without it no approval counts and the wave waits.',
    hint: 'register the webhooks and enforce the namespace: kubectl rollout-group install --policies DIR --enforce --apply',
  },
  RG6028: {
    title: 'A webhook configuration is missing or changed',
    explanation:
      'The webhook configurations of an installation decide which requests the API server sends to the webhooks. If one is missing or changed, for example by a tool that deletes unknown objects, requests may pass unchecked. The agent does not create a deleted configuration again.',
    hint: 'install again with the flags of the installation, such as --image and --replicas: kubectl rollout-group install --policies DIR --apply',
  },
  RG6029: {
    title: 'Fields of a StatefulSet are not as in its manifest',
    severity: 'warning',
    explanation:
      'A tool or a person applies the manifest of the StatefulSet, and another field manager wrote the fields, for example kubectl edit, kubectl set image or a script. The next apply overwrites the fields that the manifest contains, and their pods are replaced again. An apply keeps the fields that the manifest does not contain.',
    hint: 'write the values into the manifest, or apply the manifest again; delete a field that the manifest does not contain with kubectl edit',
  },
  RG6030: {
    title: 'The zones of a group request different images',
    severity: 'warning',
    explanation:
      'The group has no pod to replace, and the pod templates of its zones name different images for one container. This is the case after undo --zone, or if the manifest of one zone was not changed. The zones keep their images until an apply or an undo changes them.',
    hint: 'apply manifests with one image for all zones, or run undo for the other zones too',
  },
  RG7001: {
    title: 'The object cannot be converted',
    explanation:
      'If the group lacked a setting of the object, for example a gate, the agent could replace pods that the object blocked. So init writes no group for the object, and the other operator continues to manage it. Other objects are converted.',
    hint: 'fix the cause and run init again, or write the group by hand',
  },
  RG7002: {
    title: 'A setting is omitted',
    severity: 'warning',
    explanation: 'The object has a setting that is unknown or that a group cannot express. The group is written without it.',
    hint: 'check whether you need the setting before you change over',
  },
  RG7003: {
    title: 'A setting is written in another form',
    severity: 'notice',
    explanation: 'The group expresses the setting differently, with the same or the nearest meaning. The finding describes the difference.',
  },
  RG7004: {
    title: "A Secret must be in the agent's namespace",
    severity: 'warning',
    explanation:
      "MetricSources and NotificationChannels name Secrets of the agent's namespace. init never copies Secrets or writes their values. Until you create the Secret, the gate does not pass and the channel sends nothing.",
  },
  RG7005: {
    title: 'A value must be added by hand',
    severity: 'warning',
    explanation: 'The object does not contain the value, or has it in a form that a group cannot use.',
  },
  RG7006: {
    title: 'The gate passes for every result',
    severity: 'warning',
    explanation:
      'The object counts every answer with a series as a success, and so does the gate. A query without a comparison always returns a series while there is data. A query with `bool` returns 0 instead of no series.',
    hint: 'write the measured expression as query and the comparison as pass',
  },
  RG7007: {
    title: 'A rollout is in progress',
    severity: 'warning',
    explanation: 'The agent does not know the progress that the other operator counted. Gates start again, and updated pods stay updated.',
    hint: 'let the rollout complete before you change over',
  },
} as const;
