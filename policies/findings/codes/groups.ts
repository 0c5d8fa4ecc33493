// Codes RG2101 to RG2299: names and settings of groups that fit the schema but contradict each other.
export const groupCodes = {
  RG2101: {
    title: 'An object is defined twice',
    severity: 'error',
    explanation: 'Two documents define an object of the same kind, namespace and name. The first one is used; the second one is ignored.',
    hint: 'remove one of them',
  },
  RG2102: {
    title: 'A StatefulSet is in two groups',
    severity: 'error',
    explanation:
      'Two groups contain the same StatefulSet. Each would scale and roll it by its own rules. Both groups are blocked until only one contains it.',
    hint: 'remove it from one of the groups',
  },
  RG2103: {
    title: 'A zone name is used twice',
    severity: 'error',
    explanation: 'Waves, commands and exceptions refer to zones by name, so the names must be unique in a group.',
    hint: 'rename one of the zones',
  },
  RG2104: {
    title: 'Two zones name the same StatefulSet',
    severity: 'error',
    explanation: 'A zone is one StatefulSet. If two zones share one, a rollout zone by zone protects nothing.',
  },
  RG2105: {
    title: 'The zone does not exist',
    severity: 'error',
    explanation: 'The group has no zone of this name, so the setting has no effect.',
  },
  RG2106: {
    title: 'Zones follow each other in a cycle',
    severity: 'error',
    explanation: 'A follower takes its replicas from its leader. In a cycle no zone defines the replica count.',
    hint: 'remove follows from one zone',
  },
  RG2107: {
    title: 'The gate does not exist',
    severity: 'error',
    explanation: 'A wave or a RolloutIntent names a gate that the group does not define.',
  },
  RG2108: {
    title: 'A name is used twice in a list',
    severity: 'error',
    explanation: 'Approvals, exceptions and messages refer to waves, gates, rules and windows by name, so the names must be unique.',
    hint: 'rename one of them',
  },
  RG2109: {
    title: 'The gate is never used',
    severity: 'warning',
    explanation: 'No wave names this gate, so it blocks nothing. Often the name is missing in the wave.',
    hint: 'name the gate in a wave, or remove it',
  },
  RG2110: {
    title: 'The StatefulSet of a zone is not in the files',
    severity: 'error',
    explanation:
      'The files contain other StatefulSets of the group, or one with a similar name. If the name is misspelled, the zone is neither scaled nor protected.',
  },
  RG2111: {
    title: 'The files contain no StatefulSet of the group',
    severity: 'notice',
    explanation:
      'Names, replicas and templates of the members are not checked. This is not an error: policies and manifests may be in different repositories, and lint does not fail. To check them, give both to lint. For a running cluster use `kubectl rollout-group doctor` or `plan`.',
    hint: 'give the manifests together with the policies: kubectl rollout-group lint policies/ manifests/',
  },
  RG2112: {
    title: 'The selector does not match the expected members',
    severity: 'error',
    explanation:
      'The StatefulSets that the selector matches differ from `expect` or no StatefulSet matches. The group is not used, because a missing member would not be protected.',
  },
  RG2113: {
    title: 'The selector has no expectation',
    severity: 'warning',
    explanation: 'A selector without `expect` silently loses a member if its label changes. With `expect` the agent reports the loss.',
    hint: 'add expect with a count or names',
  },
  RG2114: {
    title: 'The selector is empty',
    severity: 'error',
    explanation: 'An empty selector matches every object of the namespace, including objects that are created later.',
    hint: 'name the objects, or write all: true if the field exists',
  },
  RG2115: {
    title: 'The selector can never match',
    severity: 'error',
    explanation:
      'A requirement of the selector is incomplete or contradicts another requirement. In and NotIn need values; Exists and DoesNotExist take no values.',
  },
  RG2116: {
    title: 'Selectors of two groups overlap',
    severity: 'error',
    explanation:
      'Every StatefulSet that one selector matches is matched by the other selector too. The StatefulSet would be in both groups, and both would be blocked.',
    hint: 'add a label to one of the selectors that distinguishes them',
  },
  RG2117: {
    title: 'The update strategy does not fit the rollout strategy',
    severity: 'error',
    explanation:
      'With the strategy onDelete the agent replaces pods. A StatefulSet with RollingUpdate would also replace them when its template changes, without regard to other zones. The strategies pinned and partition need RollingUpdate. With pinned, the agent sets the partition to 1000000, which blocks every pod; a manifest may name this partition or omit it. With partition, the agent writes the partition during the rollout. A manifest with a partition would overwrite it at each apply, and pods would be updated all at once. The output of `kubectl get -o yaml` always contains a partition: remove this line before you keep the output in Git or plan with it. A plan treats members without a partition as blocked by it.',
    hint: 'change spec.updateStrategy of the StatefulSet, or the strategy of the group',
  },
  RG2118: {
    title: 'An autoscaler scales a member whose replicas the agent writes',
    severity: 'warning',
    explanation:
      'Only the agent writes the replicas of zones that follow another zone, and of all zones of a group with count or mirror. The autoscaler and the agent would overwrite each other, and downscales by the autoscaler are denied.',
    hint: 'let the autoscaler scale the RolloutGroup or the mirrored object',
  },
  RG2119: {
    title: 'The StatefulSets are in another namespace than the group',
    severity: 'warning',
    explanation:
      'A group contains only StatefulSets of its namespace. The files have StatefulSets with the expected names in another namespace, and no group protects them. The finding is a warning if the namespaces differ by a few letters (`mimr` and `mimir`), both are written in the files, the group names its zones, and nothing else is in its namespace. Otherwise it is a notice, and lint does not fail. Two namespaces can be two environments, and `kubectl -n`, kustomize, Helm or Argo CD can set the namespace later. To check the final namespaces, run `kustomize build . | kubectl rollout-group lint -`.',
    hint: 'write the same metadata.namespace into the group and the StatefulSets',
  },
  RG2120: {
    title: 'StatefulSets are in no group',
    severity: 'notice',
    explanation:
      'The files define groups, and these StatefulSets are in no group. Kubernetes rolls them without order, waves or protection, and plans do not contain them. This is right for a standalone StatefulSet such as a cache, but not for a forgotten or renamed zone.',
    hint: 'add zones that belong to a group; leave the others as they are',
  },
  RG2201: {
    title: 'A later wave updates fewer pods than an earlier one',
    severity: 'error',
    explanation:
      'The amounts of waves are cumulative for each zone: a wave is done when this many pods are updated. A wave with a smaller amount than an earlier wave updates nothing.',
    hint: 'increase the amounts of a zone from wave to wave',
  },
  RG2202: {
    title: 'An approval after the last wave has no effect',
    severity: 'error',
    explanation: 'An approval blocks the waves after it. After the last wave every pod is already updated.',
    hint: 'move the approval before the last wave',
  },
  RG2203: {
    title: 'The waves never finish a zone',
    severity: 'warning',
    explanation: 'No wave updates 100 percent of the zone. The last pods stay outdated, and the rollout never completes.',
    hint: 'add a last wave with percent: 100',
  },
  RG2204: {
    title: 'Rollback is not possible with this strategy',
    severity: 'error',
    explanation:
      'With the strategies onDelete and partition, new pods always get the current template, and the agent does not restore an earlier template. So onFailure: rollback cannot work.',
    hint: 'set onFailure: pause',
  },
  RG2205: {
    title: 'The field has no effect here',
    severity: 'notice',
    explanation:
      'The strategy already implies the setting, or cannot apply it. Example: with onDelete no partition blocks pods, so onPolicyDeleted: release has nothing to hand back. Outdated pods keep running until they are deleted.',
    hint: 'remove the field, or use the strategy pinned or partition',
  },
  RG2206: {
    title: 'Only the agent can check this name',
    severity: 'notice',
    explanation:
      'The name may be defined where the agent runs: a metric source, a channel, a user group of the cluster, or a group or policy outside these files. Files alone cannot show whether it exists.',
  },
  RG2207: {
    title: 'Replicas are forced',
    severity: 'warning',
    explanation:
      'The field forceReplicas sets the replicas at once. It ignores the source, the readiness of pods and all delays. It is meant for emergencies.',
    hint: 'remove the field when the emergency is over',
  },
  RG2208: {
    title: 'The minimum is above the maximum',
    severity: 'error',
    explanation: 'No number is between the two bounds, so every replica count is denied.',
  },
  RG2209: {
    title: 'The count is outside its own bounds',
    severity: 'error',
    explanation: 'The bounds do not allow this number of replicas, so the agent would change it at once.',
  },
  RG2210: {
    title: 'The bounds allow no number at all',
    severity: 'error',
    explanation:
      'Minimum, maximum, multiple and parity together allow no number. Example: no multiple of 2 is odd. Every replica count is denied.',
  },
  RG2211: {
    title: 'The time between zones has no effect',
    severity: 'warning',
    explanation: 'The group has a single zone. A time between the downscales of two zones needs two zones.',
    hint: 'remove the field',
  },
  RG2212: {
    title: 'The pattern of partitions is not valid',
    severity: 'error',
    explanation:
      'The pattern is not an RE2 pattern, or it is nested or repeated too deeply. RE2 is the pattern language of grafana/rollout-operator and has no look-around and no back-references. Use plain groups, classes and repetitions.',
  },
  RG2213: {
    title: 'The capture group does not exist',
    severity: 'error',
    explanation:
      'A capture group of the pattern reads the partition of a pod from its name. The pattern has no group of this number, so no pod would have a partition.',
    hint: 'put the part of the pattern that matches the partition in parentheses',
  },
  RG2214: {
    title: 'The strategy partition ignores this field',
    severity: 'warning',
    explanation:
      'With the strategy partition the agent only sets the partition. The StatefulSet controller deletes pods from the highest ordinal down. It supports no other order and does not use the eviction API.',
    hint: 'remove the field, or use the strategy onDelete or pinned',
  },
  RG2215: {
    title: 'The StatefulSet controller still replaces pods one by one',
    severity: 'notice',
    explanation:
      'The agent lowers the partition by as many pods as may be unavailable. The StatefulSet controller replaces them one by one, unless the feature gate MaxUnavailableStatefulSet is on and the StatefulSet sets rollingUpdate.maxUnavailable.',
  },
  RG2216: {
    title: 'A limit of zero blocks every pod',
    severity: 'warning',
    explanation:
      'No pod of a zone may be unavailable, or a PodDisruptionBudget allows no eviction. The rollout never ends, because neither time nor progress changes that. Pods that are stuck on an outdated revision are still replaced. A PodDisruptionBudget with a number of pods is reported only if the files contain all pods that it covers. To stop a group on purpose, use `paused: true` in its zones, a rule or window of a policy, or `kubectl rollout-group pause`. The plan then waits and is not blocked. Zones with a RolloutException for `zone-budget` and replicas that an autoscaler or overlay sets are not reported.',
    hint: 'write 1 or more, or paused: true to stop the group on purpose',
  },
  RG2217: {
    title: 'The first wave replaces no pod',
    severity: 'warning',
    explanation:
      'The zones of the first wave have 0 replicas, so there is no canary. A later wave updates the first pods, often many at once. The soak and the gates of the first wave check nothing. Replicas that an autoscaler writes, or that differ between base and overlay, are not reported.',
    hint: 'start with a zone that has pods, or give the zone replicas',
  },
} as const;
