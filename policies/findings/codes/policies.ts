// Defines the codes RG21xx to RG25xx: problems of documents that fit the schema, such as unknown names and contradictions.
export const policyCodes = {
  RG2101: {
    title: 'An object is defined twice',
    explanation: 'Two documents define an object of the same kind, namespace and name. The first one is used; the second one is ignored.',
    hint: 'remove one of them',
  },
  RG2102: {
    title: 'A StatefulSet is in two groups',
    explanation:
      'Two groups contain the same StatefulSet. Each would scale and roll it by its own rules. Both groups are blocked until only one contains it.',
    hint: 'remove it from one of the groups',
  },
  RG2103: {
    title: 'A zone name is used twice',
    explanation: 'Waves, commands and exceptions refer to zones by name, so the names must be unique in a group.',
    hint: 'rename one of the zones',
  },
  RG2104: {
    title: 'Two zones name the same StatefulSet',
    explanation: 'A zone is one StatefulSet. If two zones share one, a rollout zone by zone protects nothing.',
  },
  RG2105: {
    title: 'The zone does not exist',
    explanation: 'The group has no zone of this name, so the setting has no effect. A zone that follows an unknown zone is not scaled.',
  },
  RG2106: {
    title: 'Zones follow each other in a cycle',
    explanation: 'A follower takes its replicas from its leader. In a cycle no zone defines the replica count.',
    hint: 'remove follows from one zone',
  },
  RG2107: {
    title: 'The gate does not exist',
    explanation: 'A wave or a RolloutIntent names a gate that the group does not define.',
  },
  RG2108: {
    title: 'A name is used twice in a list',
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
    explanation:
      'The files contain other StatefulSets of the group, or one with a similar name. If the name is misspelled, the zone is neither scaled nor protected.',
  },
  RG2111: {
    title: 'The files contain no StatefulSet of the group',
    severity: 'notice',
    explanation:
      'Names, replicas and templates of the members are not checked. This is not an error: policies and manifests may be in different repositories, and lint fails only with `--strict`. To check the members, give lint the policies and the manifests. For a running cluster use `kubectl rollout-group doctor` or `plan`.',
    hint: 'give the manifests together with the policies: kubectl rollout-group lint policies/ manifests/',
  },
  RG2112: {
    title: 'The selector does not match the expected members',
    explanation:
      'The StatefulSets that the selector matches differ from `expect`, or no StatefulSet matches. The group is not used, because a missing member would not be protected.',
  },
  RG2113: {
    title: 'The selector has no expectation',
    severity: 'warning',
    explanation: 'A selector without `expect` silently loses a member if its label changes. With `expect` the agent reports the loss.',
    hint: 'add expect with a count or names',
  },
  RG2114: {
    title: 'The selector is empty',
    explanation: 'An empty selector matches every object of the namespace, including objects that are created later.',
    hint: 'name the objects, or write all: true if the kind has this field',
  },
  RG2115: {
    title: 'The selector can never match',
    explanation:
      'A requirement of the selector is incomplete or contradicts another requirement. In and NotIn need values; Exists and DoesNotExist take no values.',
  },
  RG2116: {
    title: 'Selectors of two groups overlap',
    explanation:
      'Every StatefulSet that one selector matches is matched by the other selector too. The StatefulSet would be in both groups, and both would be blocked.',
    hint: 'change one selector so that it matches no StatefulSet of the other group',
  },
  RG2117: {
    title: 'The update strategy does not fit the rollout strategy',
    explanation:
      'With the strategy onDelete the agent replaces pods. A StatefulSet with RollingUpdate would also replace them when its template changes, without regard to other zones. The strategies pinned and partition need RollingUpdate. With pinned, the agent sets the partition to 1000000, which blocks every pod; a manifest may name this partition or omit it. With partition, the agent writes the partition during the rollout. A manifest with a partition would overwrite it at each apply, and the StatefulSet controller could replace pods of several zones at once. The output of `kubectl get -o yaml` always contains a partition: remove this line before you keep the output in Git or plan with it. If a manifest has no partition, a plan assumes 1000000.',
    hint: 'change spec.updateStrategy of the StatefulSet, or the strategy of the group',
  },
  RG2118: {
    title: 'An autoscaler scales a member whose replicas the agent writes',
    severity: 'warning',
    explanation:
      'Only the agent writes the replicas of zones that follow another zone, and of all zones of a group with count or mirror. The autoscaler and the agent would overwrite each other, and the webhook denies scale-downs by the autoscaler.',
    hint: 'let the autoscaler scale the RolloutGroup or the mirrored object',
  },
  RG2119: {
    title: 'The StatefulSets are in another namespace than the group',
    severity: 'warning',
    explanation:
      'A group contains only StatefulSets of its namespace. The files have StatefulSets with the expected names or labels in another namespace, and no group protects them. The finding is a warning if the namespaces differ by a few letters (`mimr` and `mimir`), both are written in the files, the group names its zones, and nothing else is in its namespace. Otherwise it is a notice, and lint fails only with `--strict`. Two namespaces can be two environments, and `kubectl -n`, kustomize, Helm or Argo CD can set the namespace later. To check the final namespaces, run `kustomize build . | kubectl rollout-group lint -`.',
    hint: 'write the same metadata.namespace into the group and the StatefulSets',
  },
  RG2120: {
    title: 'StatefulSets are in no group',
    severity: 'notice',
    explanation:
      'The files define groups, and these StatefulSets are in no group. Kubernetes rolls them independently of each other, without waves and protection, and plans do not contain their restarts. This is right for a standalone StatefulSet such as a cache, but not for a forgotten or renamed zone.',
    hint: 'if a StatefulSet belongs to a group, add it to the group; otherwise change nothing',
  },
  RG2201: {
    title: 'A later wave updates fewer pods than an earlier one',
    explanation:
      'The amounts of waves are cumulative for each zone: a wave is done when this many pods are updated. A wave with a smaller amount than an earlier wave updates nothing.',
    hint: 'increase the amounts of a zone from wave to wave',
  },
  RG2202: {
    title: 'An approval after the last wave blocks no pod',
    explanation:
      'An approval blocks the waves after it. After the last wave every pod is already updated. The approval would only delay the end of the run.',
    hint: 'move the approval before the last wave',
  },
  RG2203: {
    title: 'The waves never finish a zone',
    severity: 'warning',
    explanation:
      'No wave updates 100 percent of the zone. A run is completed when every wave is done, and the other pods of the zone stay outdated. `plan`, `get` and `status` name them.',
    hint: 'add a last wave with percent: 100',
  },
  RG2204: {
    title: 'Rollback is not possible with this strategy',
    explanation:
      'The agent can return pods to an earlier template only with the strategy pinned. So onFailure: rollback cannot work with onDelete and partition.',
    hint: 'set onFailure: pause',
  },
  RG2205: {
    title: 'The field has no effect here',
    severity: 'notice',
    explanation:
      'The strategy already implies the setting, or cannot apply it. Example: with onDelete no partition blocks pods, so onPolicyDeleted: release has no effect. Outdated pods keep running until they are deleted.',
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
      'The field forceReplicas replaces the number of the source of replicas. It ignores bounds, the readiness of pods and all delays. It is meant for emergencies.',
    hint: 'remove the field when the emergency is over',
  },
  RG2208: {
    title: 'The minimum is above the maximum',
    explanation: 'No number of replicas satisfies both bounds.',
  },
  RG2209: {
    title: 'The count is outside its own bounds',
    explanation: 'The bounds do not allow this number of replicas, so the agent would change it at once.',
  },
  RG2210: {
    title: 'The bounds allow no number at all',
    explanation:
      'Minimum, maximum, multiple and parity together allow no number. Example: no multiple of 2 is odd. The agent would apply only the minimum and the maximum.',
  },
  RG2211: {
    title: 'The time between zones has no effect',
    severity: 'warning',
    explanation: 'The group has a single zone. A time between the scale-downs of two zones needs two zones.',
    hint: 'remove the field',
  },
  RG2212: {
    title: 'The pattern that reads the data partition of a pod is not valid',
    explanation:
      'The pattern is not an RE2 pattern, or it is too large or nested too deeply. RE2 is the pattern language of grafana/rollout-operator and has no look-around and no back-references. Use plain groups, classes and repetitions.',
  },
  RG2213: {
    title: 'The capture group does not exist',
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
      'No pod of a zone may be unavailable, or a PodDisruptionBudget allows no eviction. The rollout never ends, because neither time nor progress ends this block. Pods that are stuck on an outdated revision are still replaced. A PodDisruptionBudget such as `minAvailable: 3` allows no eviction only if it covers 3 pods or fewer. Such a budget is reported only if the files show the number of pods, and no autoscaler or overlay sets the replicas. A `maxUnavailable` of 0 is not reported for zones with a RolloutException for `zone-budget`. To stop a group on purpose, use `paused: true` in its zones, a rule or window of a policy, or `kubectl rollout-group pause`. The plan then waits and is not blocked.',
    hint: 'write 1 or more, or paused: true to stop the group on purpose',
  },
  RG2217: {
    title: 'The first wave replaces no pod',
    severity: 'warning',
    explanation:
      'The zones of the first wave have 0 replicas, so there is no canary. A later wave updates the first pods, often many at once. The soak and the gates of the first wave check nothing. Replicas that an autoscaler writes, or that differ between base and overlay, are not reported.',
    hint: 'start with a zone that has pods, or give the zone replicas',
  },
  RG2218: {
    title: 'The delay applies to no scale-down',
    severity: 'warning',
    explanation:
      'Only the agent can apply a delay. With `leader: true`, or without `replicas`, other clients write the replicas of a zone that follows no zone. With the profile `native`, the webhook denies each of their scale-downs with the rule `delayed-downscale`. With the profile `rolloutOperator`, the zone has no delay, as with grafana/rollout-operator.',
    hint: 'set replicas.count or replicas.mirror, or remove delayed',
  },
  RG2301: {
    title: 'The group does not exist',
    severity: 'warning',
    explanation:
      'The files define other groups in this namespace, but not this one. Unless the cluster has the group, the document has no effect. The webhook denies a request for a group that the cluster does not have, and warns about such an exception.',
  },
  RG2302: {
    title: 'A policy may not name other namespaces',
    explanation:
      "A policy applies to the groups of its namespace. Only a policy in the agent's namespace may name other namespaces. Otherwise one team could block the rollouts of another team.",
    hint: "remove namespaces, or move the policy to the agent's namespace",
  },
  RG2303: {
    title: 'The limit has no effect',
    severity: 'warning',
    explanation: 'Every group of the policy already has a setting that is at least as strict.',
    hint: 'tighten the limit, or remove it',
  },
  RG2304: {
    title: 'The required approval names no approvers',
    severity: 'notice',
    explanation: 'The rule requires an approval, but has no `approval.from`. So an approval by any user counts.',
    hint: 'add approval.from',
  },
  RG2305: {
    title: 'The rule does not exist',
    explanation:
      'The exception names a rule that neither the engine nor a policy for this namespace has. So the exception permits nothing.',
  },
  RG2306: {
    title: 'Two exceptions cover the same rule and target',
    explanation:
      'Exceptions do not combine. If two exceptions cover one rule and target at the same time, neither is used. Otherwise the exception that allows more would apply by accident.',
    hint: 'remove one of them',
  },
  RG2307: {
    title: 'The exception ends before it begins',
    explanation: 'The end is not after the beginning, so the exception is never in force.',
  },
  RG2308: {
    title: 'The wave does not exist',
    explanation: 'The group has no wave of this name, so the request has no effect.',
  },
  RG2309: {
    title: 'The policy does nothing',
    severity: 'warning',
    explanation: 'The policy has no rules, no windows and no limits, so it denies and blocks nothing.',
  },
  RG2310: {
    title: 'The rule cannot be overridden',
    explanation:
      'No exception can override this rule, so the exception has no effect. Exceptions apply neither to rules about what the agent can observe and claim, nor to rules that the API server also enforces. If a request such as approve, promote or resume can end the block of a rule, then only this request can permit the action. A policy rule that requires an approval needs the approval.',
    hint: 'name the rule that blocks, as explain shows it',
  },
  RG2401: {
    title: 'The schedule is not valid',
    explanation:
      'A schedule has five fields: minute, hour, day of month, month, day of week. Names such as @daily and a field for seconds are not supported.',
  },
  RG2402: {
    title: 'Day of month and day of week are both restricted',
    explanation: 'Cron joins the two fields by OR: `0 0 13 * 5` means every Friday and every 13th. Restrict only one of them.',
    hint: 'use * in one of the two fields',
  },
  RG2403: {
    title: 'The time zone does not exist',
    explanation:
      'The name is not an IANA time zone. Abbreviations such as CET are not supported, because they do not define when clocks change.',
    hint: 'use a name such as Europe/Amsterdam',
  },
  RG2404: {
    title: 'The window lasts longer than its period',
    explanation: 'The window opens again before it closes, so it would stay open for longer than the duration, or always.',
    hint: 'shorten the duration',
  },
  RG2405: {
    title: 'The window never opens',
    explanation: 'No calendar day matches the schedule, for example 30 February. The agent blocks all groups of the policy.',
  },
  RG2406: {
    title: 'The range ends before it begins',
    explanation: 'A range includes its beginning and excludes its end. The end must be later than the beginning.',
  },
  RG2407: {
    title: 'Windows of two policies are never open together',
    severity: 'warning',
    explanation:
      'If two policies have allow windows, an action needs an open window of each policy. These windows are never open at the same time, so the action is always blocked.',
  },
  RG2408: {
    title: 'The duration of the window is zero',
    explanation: 'A window of length zero is never open.',
  },
  RG2501: {
    title: 'The metric source does not exist',
    explanation:
      'A gate or a policy names a MetricSource that these files do not define. The gate is never read, so it blocks. The input of a policy is unknown.',
  },
  RG2502: {
    title: 'The metric source is not usable from this namespace',
    explanation:
      'A MetricSource lists in `usableFrom` the namespaces that may use it, because the agent queries it with its credentials. For other namespaces the gate blocks, and the input of a policy is unknown.',
    hint: 'add the namespace to usableFrom of the source, or name another source',
  },
  RG2503: {
    title: 'The metric source is of another kind',
    explanation:
      'A gate queries Prometheus but its source is Consul, or it queries Consul but its source is Prometheus. Such a gate is never read, so it blocks. A policy input needs a Prometheus source; with a Consul source the input is unknown.',
  },
  RG2504: {
    title: "The metric source is not in the agent's namespace",
    severity: 'warning',
    explanation:
      'The agent reads metric sources only from its own namespace, because a source contains an address and credentials. Authors in other namespaces must not decide where the agent connects to. Sources elsewhere are ignored.',
    hint: "move the source to the agent's namespace, or omit the namespace in a file of the agent's policy directory",
  },
  RG2505: {
    title: 'Credentials are sent without encryption',
    severity: 'warning',
    explanation:
      'The source has credentials and an address that begins with `http://`. An attacker on the network can read the credentials and forge the answers.',
    hint: 'use https, with ca if the server has a private CA',
  },
  RG2506: {
    title: 'The metric source is queried more often than it allows',
    explanation:
      '`limits.minInterval` of a MetricSource is the shortest time between two queries. A gate with a shorter `every` is never read, so it blocks. The agent reads a metric input at an interval of a quarter of its `maxAge`, at most one minute. If `maxAge` is below one minute, the interval is 15 s, or half of `maxAge` if that is shorter. If the interval is shorter than `limits.minInterval`, the input is unknown.',
    hint: 'increase every of the gate or maxAge of the input, or lower minInterval',
  },
  RG2507: {
    title: 'The query is not PromQL',
    explanation:
      'The syntax of the query is wrong, so Prometheus cannot evaluate it. The gate never has a reading, and the input of a policy is unknown. Names of functions and metrics are not checked.',
  },
  RG2511: {
    title: 'The notification channel does not exist',
    explanation:
      'A group names a NotificationChannel that these files do not define. The channel receives no messages about the group. Rollouts continue.',
  },
  RG2512: {
    title: 'The notification channel is not usable from this namespace',
    explanation:
      'A NotificationChannel lists in `usableFrom` the namespaces that may use it, because it sends with its own credentials. It sends nothing about groups of other namespaces.',
    hint: 'add the namespace to usableFrom of the channel, or name another channel',
  },
  RG2513: {
    title: "The notification channel is not in the agent's namespace",
    severity: 'warning',
    explanation:
      'The agent reads notification channels only from its own namespace, because a channel contains an address and credentials. Authors in other namespaces must not decide where the agent connects to. Channels elsewhere are ignored.',
    hint: "move the channel to the agent's namespace, or omit the namespace in a file of the agent's policy directory",
  },
  RG2514: {
    title: 'The notification channel is not encrypted',
    explanation:
      'The address begins with `http://` and is not a loopback address. Messages and credentials could be read and changed on the network, so the agent does not use the channel.',
    hint: 'use https, with ca if the server has a private CA',
  },
  RG2515: {
    title: 'The callback is not signed',
    severity: 'warning',
    explanation: 'Without signingKey the receiver cannot tell a genuine callback from a forged or repeated one.',
    hint: 'add signingKey to the channel',
  },
  RG2516: {
    title: 'The channel is named twice',
    explanation: 'A group names one channel in two entries of notify. One entry can list all events.',
    hint: 'put the events into one entry',
  },
} as const;
