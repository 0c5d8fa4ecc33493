// Codes RG4001 to RG4099: settings of grafana/rollout-operator that have no or a surprising effect.
export const adoptionCodes = {
  RG4001: {
    title: 'The value of rollout-max-unavailable is not valid',
    severity: 'warning',
    explanation:
      'The annotation takes a whole number above 0, or 1% to 100%. Any other value counts as 1, so the zone rolls one pod at a time. grafana/rollout-operator does the same.',
    hint: 'write a number such as 2 or a percentage such as 10%',
  },
  RG4002: {
    title: 'The downscale leader is not in the group',
    severity: 'error',
    explanation:
      'The annotation names a StatefulSet that is not a member of the group. An empty value counts as a name. The whole group is then not scaled, as with grafana/rollout-operator.',
    hint: 'name a StatefulSet with the same rollout-group label, or remove the annotation',
  },
  RG4003: {
    title: 'A member has both a leader and a mirrored source',
    severity: 'error',
    explanation:
      'The operator grafana/rollout-operator alternates between the replicas of the leader and those of the source, in an endless loop.',
    hint: 'remove the leader or the mirrored source',
  },
  RG4004: {
    title: 'The minimum time between zones is not a duration',
    severity: 'error',
    explanation:
      'The label takes a Go duration such as 12h or 90m. Go durations have no unit for days. If the value is not valid, downscales are denied.',
    hint: 'write hours, such as 24h',
  },
  RG4005: {
    title: 'The delay of downscales is not a duration',
    severity: 'error',
    explanation:
      'The annotation takes a Prometheus duration such as 1d or 1h30m. It must not be negative. If the value is not valid, the StatefulSet is not scaled.',
  },
  RG4006: {
    title: 'The URL for delayed downscales is not valid',
    severity: 'error',
    explanation:
      'The annotation takes an absolute URL. The agent replaces its host by the host of each pod. If the URL is not valid, the StatefulSet is not scaled.',
    hint: 'write a URL such as http://pod:8080/ingester/prepare-delayed-downscale',
  },
  RG4007: {
    title: 'The preparation of downscales is incomplete',
    severity: 'error',
    explanation:
      'A StatefulSet with prepare-downscale needs the annotations for port and path, and a serviceName. If one of them is missing, every downscale is denied.',
  },
  RG4008: {
    title: 'The API version of the mirrored source is not valid',
    severity: 'error',
    explanation:
      'An API version is `group/version`, or `version` alone for the core group. With more than one slash the source is not found, and grafana/rollout-operator stops mirroring for the rest of the group.',
  },
  RG4009: {
    title: 'The write-back setting is not a boolean',
    severity: 'warning',
    explanation:
      'The annotation takes true or false; the default is true. Any other value counts as false, so the agent writes nothing back.',
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
    severity: 'error',
    explanation:
      'The operator replaces the pods of an adopted group. With another update strategy the StatefulSet controller replaces them too, and grafana/rollout-operator ignores the group.',
    hint: 'set spec.updateStrategy.type to OnDelete',
  },
  RG4013: {
    title: 'The pod template has no label name',
    severity: 'error',
    explanation:
      'The pods of an adopted member are found by the label `name` of the pod template. Without this label the zone has no pods.',
    hint: 'add the label name to spec.template.metadata.labels',
  },
  RG4014: {
    title: 'The group has a single member',
    severity: 'notice',
    explanation: 'A group of one member has no other zone to protect. It is rolled pod by pod without coordination.',
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
      'The URL contains a user name or a password. Every reader of the object can see an annotation, so the agent calls the URL without the credentials.',
    hint: 'remove the user information',
  },
  RG4017: {
    title: 'A label or annotation is not text',
    severity: 'error',
    explanation: 'The API server denies labels and annotations that are not text. In YAML, true and 1 without quotes are not text.',
    hint: 'quote the value',
  },
  RG4018: {
    title: 'Leaders follow each other in a cycle',
    severity: 'error',
    explanation:
      'Each member of the cycle takes its replicas from the next one, so no member defines the number. grafana/rollout-operator passes each change around the cycle in an endless loop.',
    hint: 'remove the leader annotation from one member',
  },
  RG4019: {
    title: 'The group cannot be adopted',
    severity: 'error',
    explanation:
      'The settings of the members contradict each other, so no group can be written from them. The agent does not manage the group.',
  },
  RG4020: {
    title: 'The delayed downscale has no effect',
    severity: 'warning',
    explanation:
      'Delayed downscale works only on StatefulSets that mirror the replicas of another object. It needs both of its annotations. It is ignored elsewhere.',
  },
  RG4021: {
    title: 'The mirrored source has no effect',
    severity: 'warning',
    explanation: 'A mirrored source needs both a name and a kind. With only one of them the replicas are not mirrored.',
  },
} as const;
