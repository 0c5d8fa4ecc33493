// Policy files for the tests of verbs: one that is right, and one with a finding of every severity that lint can give alone.

export const rightGroup = `apiVersion: rollout-group.dev/v1alpha1
kind: RolloutGroup
metadata:
  name: ingester
  namespace: mimir
spec:
  members:
    zones:
      - { name: a, statefulSet: ingester-zone-a }
      - { name: b, statefulSet: ingester-zone-b, follows: a }
  replicas: { leader: true }
  rollout:
    strategy: onDelete
`;

export const wrongGroup = `apiVersion: rollout-group.dev/v1alpha1
kind: RolloutGroup
metadata:
  name: ingester
  namespace: mimir
spec:
  members:
    zones:
      - { name: a, statefulSet: ingester-zone-a }
  replicas: { leader: true }
  rollout:
    strategy: onDelet
    maxUnavailabel: 10%
`;
