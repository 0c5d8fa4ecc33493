// Codes RG5001 to RG5099: risks that a plan can see.
export const planCodes = {
  RG5001: {
    title: 'The disruption budget makes replacement serial',
    severity: 'warning',
    explanation:
      'A PodDisruptionBudget over the pods of the group allows fewer disruptions than maxUnavailable. Evictions wait for each other, so the rollout takes as long as one pod at a time.',
  },
  RG5002: {
    title: 'OrderedReady gains nothing from parallel replacement',
    severity: 'notice',
    explanation:
      'With podManagementPolicy OrderedReady the StatefulSet controller creates one pod at a time and waits until it is ready. Several deleted pods come back one after the other, so a maxUnavailable above 1 only lowers availability.',
    hint: 'use podManagementPolicy: Parallel, or maxUnavailable: 1',
  },
  RG5003: {
    title: 'The pods have no readiness probe',
    severity: 'warning',
    explanation:
      'Without a readiness probe a pod is ready as soon as its containers run. The rollout goes on before the pod serves, and a broken version passes unnoticed.',
  },
  RG5005: {
    title: 'Git sets the replicas of a zone that follows',
    severity: 'warning',
    explanation:
      'The manifest sets spec.replicas of a zone whose replicas come from a leader or a mirrored source. Every sync of the manifests undoes what the agent wrote.',
    hint: 'leave spec.replicas out of the manifest',
  },
  RG5006: {
    title: 'An image has no fixed version',
    severity: 'warning',
    explanation:
      'The image has the tag latest or no tag. Pods that restart on their own take another version than their neighbours, outside of any rollout.',
    hint: 'name a version or a digest',
  },
  RG5007: {
    title: 'The templates of the zones differ',
    severity: 'notice',
    explanation:
      'Zones of one group run the same software. Their templates differ in more than names, labels, affinity and zone settings, so that what one zone proves says less about the next.',
  },
  RG5008: {
    title: 'The rollout never ends',
    severity: 'warning',
    explanation:
      'A limit of zero holds the rollout: `maxUnavailable: 0` of the group, of a zone or of a policy, or a PodDisruptionBudget that never lets a pod go (`maxUnavailable: 0`, `minAvailable: 100%`). Neither time nor progress changes that, so the plan is blocked and ends with exit code 5. The agent would wait for ever.',
    hint: 'change the number that the risk names; if the group is to stand still, write paused: true into its zones, or in a cluster say kubectl rollout-group pause: then the plan waits, and is not blocked',
  },
  RG5009: {
    title: 'The canary has no pods',
    severity: 'warning',
    explanation:
      'The zones of the first wave have no pods, so that there is no canary: the first pods that get the new version are those of a later wave. What RG2217 says of files, the plan says of what runs.',
    hint: 'begin with a zone that has pods',
  },
} as const;
