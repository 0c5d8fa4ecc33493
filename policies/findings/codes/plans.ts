// Codes RG5001 to RG5099: risks of a plan.
export const planCodes = {
  RG5001: {
    title: 'The disruption budget makes replacement serial',
    severity: 'warning',
    explanation:
      'A PodDisruptionBudget over the pods of the group allows fewer disruptions than maxUnavailable. Evictions wait for each other, so the rollout is as slow as one pod at a time.',
  },
  RG5002: {
    title: 'OrderedReady gains nothing from parallel replacement',
    severity: 'notice',
    explanation:
      'With podManagementPolicy OrderedReady the StatefulSet controller creates one pod at a time and waits until it is ready. A maxUnavailable above 1 only lowers availability.',
    hint: 'use podManagementPolicy: Parallel, or maxUnavailable: 1',
  },
  RG5003: {
    title: 'The pods have no readiness probe',
    severity: 'warning',
    explanation:
      'Without a readiness probe a pod is ready when its containers run. The rollout continues before the pod serves requests, and a broken version is not detected.',
  },
  RG5005: {
    title: 'Git sets the replicas of a zone that follows',
    severity: 'warning',
    explanation:
      'The manifest sets spec.replicas of a zone whose replicas come from a leader or a mirrored source. Every sync overwrites the value of the agent.',
    hint: 'remove spec.replicas from the manifest',
  },
  RG5006: {
    title: 'An image has no fixed version',
    severity: 'warning',
    explanation:
      'The image has the tag latest or no tag. A pod that restarts can get another version than the other pods, without any rollout.',
    hint: 'name a version or a digest',
  },
  RG5007: {
    title: 'The templates of the zones differ',
    severity: 'notice',
    explanation:
      'Zones of one group run the same software. These templates differ in more than names, labels, affinity and zone settings, so the result of one zone says less about the next.',
  },
  RG5008: {
    title: 'The rollout never ends',
    severity: 'warning',
    explanation:
      'A limit of zero blocks the rollout: `maxUnavailable: 0` of the group, of a zone or of a policy, or a PodDisruptionBudget with `maxUnavailable: 0` or `minAvailable: 100%`. Neither time nor progress changes that. The plan is blocked and ends with exit code 5; the agent waits indefinitely.',
    hint: 'change the limit that the risk names; to stop the group on purpose, set paused: true in its zones or run: kubectl rollout-group pause',
  },
  RG5009: {
    title: 'The canary has no pods',
    severity: 'warning',
    explanation:
      'The zones of the first wave have no pods, so there is no canary. The pods of a later wave are the first ones on the update revision. RG2217 reports the same for files.',
    hint: 'start with a zone that has pods',
  },
} as const;
