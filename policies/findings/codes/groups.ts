// Codes RG2101 to RG2299: names and settings of groups that fit their schema but not each other.
export const groupCodes = {
  RG2101: {
    title: 'An object is defined twice',
    severity: 'error',
    explanation:
      'Two documents define an object of the same kind, namespace and name. The first one stands and the second is ignored, so whatever differs between them never acts.',
    hint: 'remove one of them',
  },
  RG2102: {
    title: 'A StatefulSet is in two groups',
    severity: 'error',
    explanation:
      'Two groups claim the same StatefulSet. Each would scale and roll it by its own rules without knowing of the other, so both are held until one lets go.',
    hint: 'leave it to one group',
  },
  RG2103: {
    title: 'A zone name is used twice',
    severity: 'error',
    explanation: 'Zones are addressed by name in waves, commands and exceptions. Two zones of one name cannot be told apart.',
    hint: 'rename one of the zones',
  },
  RG2104: {
    title: 'Two zones name the same StatefulSet',
    severity: 'error',
    explanation: 'A zone is one StatefulSet. If two zones share one, rolling zone after zone would roll it twice and protect nothing.',
  },
  RG2105: {
    title: 'The zone does not exist',
    severity: 'error',
    explanation: 'The name is not one of the zones of the group. A setting for a zone that does not exist never acts.',
  },
  RG2106: {
    title: 'Zones follow each other in a circle',
    severity: 'error',
    explanation:
      'A follower has the replicas of its leader. In a circle nobody says how many that are. At least one zone must follow nobody.',
    hint: 'remove follows from one of them',
  },
  RG2107: {
    title: 'The gate does not exist',
    severity: 'error',
    explanation: 'A wave or an intent names a gate that the group does not define. A gate that does not exist can neither pass nor fail.',
  },
  RG2108: {
    title: 'A name is used twice in a list',
    severity: 'error',
    explanation:
      'Waves, gates, rules and windows are addressed by name in approvals, exceptions and messages. Two of one name cannot be told apart.',
    hint: 'rename one of them',
  },
  RG2109: {
    title: 'The gate is never used',
    severity: 'warning',
    explanation: 'No wave names this gate, so it never holds anything. Most often the name in the wave was forgotten.',
    hint: 'name it in a wave, or remove it',
  },
  RG2110: {
    title: 'The StatefulSet of a zone is not in the files',
    severity: 'error',
    explanation:
      'The files hold other StatefulSets of the group, or one with nearly this name, but not the one that the zone names. Most often the name is misspelled; then the zone would be neither scaled nor protected.',
  },
  RG2111: {
    title: 'Only the cluster knows the StatefulSets',
    severity: 'notice',
    explanation:
      'The files hold no StatefulSet of the group, so names, replicas and templates of the members were not checked. Nothing is wrong for that, and lint does not fail: policies may lie in another repository than the manifests. To have them checked, give both at once; for what runs, `kubectl rollout-group doctor` and a `plan` of the cluster look there.',
    hint: 'give the manifests together with the policies: kubectl rollout-group lint policies/ manifests/',
  },
  RG2112: {
    title: 'The selector does not find what is expected',
    severity: 'error',
    explanation:
      'The StatefulSets that the selector matches differ from what `expect` says, or there are none. The group is not used, because a missing member would be left without protection.',
  },
  RG2113: {
    title: 'The selector has no expectation',
    severity: 'warning',
    explanation:
      'A selector silently follows the labels: a renamed label takes a member out of the group. With `expect` the loss is noticed.',
    hint: 'add expect with a count or names',
  },
  RG2114: {
    title: 'The selector is empty',
    severity: 'error',
    explanation: 'An empty selector matches every object of the namespace, also those that come later. It is most often a slip.',
    hint: 'name the objects, or write all: true where that exists',
  },
  RG2115: {
    title: 'The selector can never match',
    severity: 'error',
    explanation:
      'A requirement of the selector is incomplete or contradicts another one, so that no object can match. In and NotIn need values; Exists and DoesNotExist take none.',
  },
  RG2116: {
    title: 'Selectors of two groups overlap',
    severity: 'error',
    explanation:
      'Whatever one selector matches, the other one matches too. The StatefulSet would belong to both groups, and both would be held.',
    hint: 'add a label to one of the selectors that tells them apart',
  },
  RG2117: {
    title: 'The update strategy does not fit the engine',
    severity: 'error',
    explanation:
      'With the strategy onDelete the agent replaces pods, and a StatefulSet with RollingUpdate would replace them on its own as soon as its template changes, whatever the other zones do. The engines pinned and partition need RollingUpdate; pinned holds every pod back with the partition 1000000, which the agent sets and a manifest may name or leave out. Under the strategy partition the agent writes the partition all the time: a manifest that names one would take its place whenever it is applied, and pods would change their version by a restart or all at once. A dump (`kubectl get -o yaml`) names a partition always, since the API server writes 0 where a manifest names none: remove that line from what is kept in Git, and from what a plan is made of; a plan takes members that leave it out as held.',
    hint: 'change spec.updateStrategy of the StatefulSet, or the engine of the group',
  },
  RG2118: {
    title: 'An autoscaler scales a member whose number comes from elsewhere',
    severity: 'warning',
    explanation:
      'The agent alone writes the replicas of zones that follow another one, and of all zones of a group with count or mirror. An autoscaler on such a StatefulSet and the agent would undo each other, and its downscales are refused.',
    hint: 'let the autoscaler scale the RolloutGroup or the mirrored object',
  },
  RG2119: {
    title: 'The StatefulSets are in another namespace than the group',
    severity: 'warning',
    explanation:
      'A group has the StatefulSets of its own namespace alone. The files have those that it names in another one, where no group is about them: nothing orders their rollouts, and nothing protects them. It is a warning where the files show a slip: the group names its zones, both sides write a namespace, the two are the same word but for a few letters (`mimr` and `mimir`), and nothing else of the files is in the namespace of the group. Otherwise it is a notice, and lint does not fail: two namespaces that differ may be two environments of which the files have one, labels are the same in all of them, and objects that name no namespace, which count as those of the namespace default here, are put into another one by `kubectl -n`, kustomize, Helm or Argo CD later. Give lint what these make, such as `kustomize build . | kubectl rollout-group lint -`, and it sees the namespaces as they will be.',
    hint: 'write the same metadata.namespace into the group and the StatefulSets',
  },
  RG2120: {
    title: 'StatefulSets are in no group',
    severity: 'notice',
    explanation:
      'The files define groups, and these StatefulSets are members of none. They roll as Kubernetes rolls them, without order, waves or protection, and they are in no plan. That is right for what stands alone, such as a cache; it is not for a zone that was forgotten or renamed.',
    hint: 'add what belongs to a group to its zones, and leave the rest as it is',
  },
  RG2201: {
    title: 'A later wave updates fewer pods than an earlier one',
    severity: 'error',
    explanation:
      'The amounts of waves are cumulative for each zone: they say how many pods are updated when the wave is done. A smaller amount later has nothing left to do.',
    hint: 'let the amounts of a zone grow from wave to wave',
  },
  RG2202: {
    title: 'An approval after the last wave acts on nothing',
    severity: 'error',
    explanation:
      'An approval holds what comes after it. After the last wave nothing comes, so every pod is updated before anybody is asked.',
    hint: 'move it before the last wave',
  },
  RG2203: {
    title: 'The waves never finish a zone',
    severity: 'warning',
    explanation:
      'No wave brings the zone to 100 percent, so that its last pods stay on the old revision for ever. That is a rollout that never completes.',
    hint: 'add a last wave with percent: 100',
  },
  RG2204: {
    title: 'Rollback is not possible with this strategy',
    severity: 'error',
    explanation:
      'With the engines onDelete and partition pods are replaced one by one from the template in force, and the agent does not write a former template back. onFailure: rollback would promise what cannot be kept.',
    hint: 'set onFailure: pause',
  },
  RG2205: {
    title: 'This has no effect here',
    severity: 'notice',
    explanation:
      'What the field says follows from the engine already, or cannot be done under it. With the strategy onDelete no partition holds pods back, so that onPolicyDeleted: release has nothing to hand back: pods of the former revision wait until somebody deletes them, and come back at the new one.',
    hint: 'leave the field out, or take the strategy pinned or partition',
  },
  RG2206: {
    title: 'Only the agent knows this',
    severity: 'notice',
    explanation:
      'The name refers to something that may be defined where the agent runs: a metric source, a channel, a group of the authenticator, or a group or policy of which these files hold nothing. Files cannot tell whether it exists.',
  },
  RG2207: {
    title: 'Replicas are forced',
    severity: 'warning',
    explanation:
      'The field forceReplicas sets the replicas at once, whatever the source, the readiness of pods and the delays say. It is meant for emergencies and is easily forgotten.',
    hint: 'remove it when the emergency is over',
  },
  RG2208: {
    title: 'The minimum is above the maximum',
    severity: 'error',
    explanation: 'No number lies between the two bounds, so no replica count would ever be allowed.',
  },
  RG2209: {
    title: 'The count is outside its own bounds',
    severity: 'error',
    explanation:
      'The number of replicas is not one that the bounds beside it allow. It would be changed to another number as soon as it is used.',
  },
  RG2210: {
    title: 'The bounds allow no number at all',
    severity: 'error',
    explanation:
      'Minimum, maximum, multiple and parity together leave no number: for example no multiple of 2 is odd. Every replica count would be refused.',
  },
  RG2211: {
    title: 'The time between zones can never act',
    severity: 'warning',
    explanation: 'The group has a single zone. A time between the downscales of two zones needs two zones.',
    hint: 'remove it',
  },
  RG2212: {
    title: 'The pattern of partitions is not usable',
    severity: 'error',
    explanation:
      'The pattern does not compile as a pattern of RE2, the pattern language of the original, which has no look-around and no back-references; or it is nested or repeated beyond what any name of a pod needs. Use plain groups, classes and repetitions.',
  },
  RG2213: {
    title: 'The capture group does not exist',
    severity: 'error',
    explanation:
      'The partition of a pod is what a capture group of the pattern matches in its name. The pattern has no group of this number, so that no pod would have a partition.',
    hint: 'put the part that names the partition in parentheses',
  },
  RG2214: {
    title: 'The strategy partition does not ask for this',
    severity: 'warning',
    explanation:
      'With the strategy partition the agent only says how far down the StatefulSet controller may go. The controller goes from the highest ordinal down and deletes pods; it asks neither for another order nor for the eviction API.',
    hint: 'remove it, or use an engine with which the agent replaces pods',
  },
  RG2215: {
    title: 'Pods are replaced one after the other all the same',
    severity: 'notice',
    explanation:
      'The agent lowers the partition by as many pods as may be down. The StatefulSet controller of Kubernetes replaces them one after the other, unless its feature gate MaxUnavailableStatefulSet is on and the StatefulSet names rollingUpdate.maxUnavailable.',
  },
  RG2216: {
    title: 'A limit of zero lets no pod go',
    severity: 'warning',
    explanation:
      'No pod of a zone may be unavailable, or a PodDisruptionBudget lets none be evicted. A rollout of the group then never ends: it waits for what neither time nor progress changes. Pods that are stuck on an old version are replaced all the same. A PodDisruptionBudget that names a number of pods is one of zero only where the files say how many pods the group has, and hold no other workload that it covers. What is to stand still says so: `paused: true` of its zones, or a rule or window of a policy, which plans of files know too; in a cluster also `kubectl rollout-group pause`, with a reason and an end. Plans then say that it waits instead of that it is blocked. Nothing is said of a zone that a RolloutException for `zone-budget` among the files lets go on, and nothing of pods whose number an autoscaler or an overlay decides.',
    hint: 'write 1 or more, or paused: true where something is to stand still',
  },
  RG2217: {
    title: 'The first wave takes no pod',
    severity: 'warning',
    explanation:
      'The zones of the first wave have 0 replicas, so that it replaces nothing and there is no canary. The first pods that get the new version are those of a later wave, most often many at once, and the soak and the gates after the first wave have looked at nothing. A number that an autoscaler writes, or of which base and overlay among the files say different things, is not known, and nothing is said of it.',
    hint: 'begin with a zone that has pods, or give the zone replicas',
  },
} as const;
