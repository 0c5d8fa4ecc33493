// Codes RG4001 to RG4099: settings of grafana/rollout-operator that are read differently from what they look like.
export const adoptionCodes = {
  RG4001: {
    title: 'The value of rollout-max-unavailable is not valid',
    severity: 'warning',
    explanation:
      'The annotation takes a whole number above 0, or 1% to 100%. Any other value means 1, in the original as here, so the zone rolls one pod at a time.',
    hint: 'write a number such as 2 or a percentage such as 10%',
  },
  RG4002: {
    title: 'The downscale leader is not in the group',
    severity: 'error',
    explanation:
      'The annotation names a StatefulSet that is no member of the group; an empty value counts as a name. The original then stops scaling the whole group, and so do we.',
    hint: 'name a StatefulSet with the same rollout-group label, or remove the annotation',
  },
  RG4003: {
    title: 'A member has both a leader and a mirrored source',
    severity: 'error',
    explanation:
      'The original would set the replicas of the leader on one pass and those of the source on the next, for ever. One of the two must go.',
    hint: 'remove one of the two',
  },
  RG4004: {
    title: 'The minimum time between zones is not a duration',
    severity: 'error',
    explanation:
      'The label takes a duration as Go writes it, such as 12h or 90m; days are not a unit there. With a value that cannot be read downscales are refused.',
    hint: 'write hours, such as 24h',
  },
  RG4005: {
    title: 'The delay of downscales is not a duration',
    severity: 'error',
    explanation:
      'The annotation takes a duration as Prometheus writes it, such as 1d or 1h30m, and no negative one. With a value that cannot be read the StatefulSet is not scaled at all.',
  },
  RG4006: {
    title: 'The URL that prepares delayed downscales is not valid',
    severity: 'error',
    explanation:
      'The annotation takes an absolute URL; its host is replaced by that of each pod. With a value that cannot be read the StatefulSet is not scaled at all.',
    hint: 'write a URL such as http://pod:8080/ingester/prepare-delayed-downscale',
  },
  RG4007: {
    title: 'The preparation of downscales is incomplete',
    severity: 'error',
    explanation:
      'A StatefulSet whose downscales are prepared needs the annotations with port and path, and a serviceName. Without one of them every downscale is refused.',
  },
  RG4008: {
    title: 'The API version of the mirrored source is not valid',
    severity: 'error',
    explanation:
      'An API version is `group/version`, or a version alone for the core group. With more than one slash the source cannot be found, and the original stops mirroring for the rest of the group.',
  },
  RG4009: {
    title: 'The write-back setting is not a boolean',
    severity: 'warning',
    explanation:
      'The annotation takes true or false. Any other value means false, although the default is true, so nothing is written back.',
    hint: 'write true or false',
  },
  RG4010: {
    title: 'The forced replicas act on nothing',
    severity: 'warning',
    explanation:
      'The annotation takes a whole number from 0 to 2147483647, and only on a StatefulSet with a leader or a mirrored source. Otherwise it is silently ignored.',
  },
  RG4011: {
    title: 'A setting is an annotation but must be a label',
    severity: 'warning',
    explanation:
      'The settings prepare-downscale, no-downscale and min-time-between-zones-downscale are read from labels. As an annotation they look like protection and have no effect.',
    hint: 'move it to metadata.labels',
  },
  RG4012: {
    title: 'The update strategy is not OnDelete',
    severity: 'error',
    explanation:
      'Members of an adopted group must leave the replacement of pods to the operator. With another strategy the StatefulSet controller replaces them too, and the original refuses to touch the group.',
    hint: 'set spec.updateStrategy.type to OnDelete',
  },
  RG4013: {
    title: 'The pod template has no label name',
    severity: 'error',
    explanation:
      'Pods of an adopted member are found by the label `name` of its template. Without it no pod is found, and the zone looks empty.',
    hint: 'add the label name to spec.template.metadata.labels',
  },
  RG4014: {
    title: 'The group has a single member',
    severity: 'notice',
    explanation: 'A group of one member has no other zone to protect. It is rolled pod by pod, but nothing is coordinated.',
  },
  RG4015: {
    title: 'The value of a switch is not exactly true',
    severity: 'warning',
    explanation: 'The switch is on only when its value is exactly `true`, in lower case. Any other value means off, also True, yes and 1.',
    hint: 'write "true", or remove it',
  },
  RG4016: {
    title: 'User information in a URL is dropped',
    severity: 'warning',
    explanation:
      'The URL holds a user name or a password. Credentials do not belong into annotations, which everybody who may read the object can see; the call is made without them.',
    hint: 'remove the user information',
  },
  RG4017: {
    title: 'A label or annotation is not text',
    severity: 'error',
    explanation:
      'Values of labels and annotations are text; the API server refuses anything else. In YAML true, 1 and 1h30 without quotes are not all text.',
    hint: 'quote the value',
  },
  RG4018: {
    title: 'Leaders follow each other in a circle',
    severity: 'error',
    explanation:
      'Each member of the circle takes its replicas from the next one, so that nobody says how many there are. The original does not notice; a change of one of them runs around the circle for ever.',
    hint: 'remove the leader annotation of one of them',
  },
  RG4019: {
    title: 'The group cannot be adopted',
    severity: 'error',
    explanation: 'The settings of the members together do not make a group that can be written down. The group is left out and left alone.',
  },
  RG4020: {
    title: 'The delayed downscale acts on nothing',
    severity: 'warning',
    explanation:
      'Delayed downscale works only on StatefulSets that mirror the replicas of another object, and only with both of its annotations. Otherwise it is silently ignored.',
  },
  RG4021: {
    title: 'The mirrored source acts on nothing',
    severity: 'warning',
    explanation: 'A mirrored source needs both a name and a kind. With one of them alone the replicas are not mirrored.',
  },
} as const;
