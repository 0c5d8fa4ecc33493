// Codes RG7001 to RG7099: findings of init in objects of other rollout operators.
export const conversionCodes = {
  RG7001: {
    title: 'The object cannot be converted',
    severity: 'error',
    explanation:
      'A group that does less than the object, for example without its gate, would roll pods that the object blocked. So init writes no group for it, and the other operator keeps it. Other objects are converted.',
    hint: 'fix the cause and run init again, or write the group by hand',
  },
  RG7002: {
    title: 'A setting is left out',
    severity: 'warning',
    explanation: 'The object has a setting that is unknown or that a group cannot express. The group is written without it.',
    hint: 'check whether you need the setting before you change over',
  },
  RG7003: {
    title: 'A setting is written in another form',
    severity: 'notice',
    explanation: 'The group expresses the setting differently, with the same or the nearest meaning. The finding says how.',
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
    hint: 'use the number as query and the comparison as pass',
  },
  RG7007: {
    title: 'A rollout is in progress',
    severity: 'warning',
    explanation: 'The agent does not know the progress that the other operator counted. Gates start again, and updated pods stay updated.',
    hint: 'let the rollout complete before you change over',
  },
} as const;
