// Codes RG7001 to RG7099: what init finds in objects of other rollout operators.
export const conversionCodes = {
  RG7001: {
    title: 'The object cannot be converted',
    severity: 'error',
    explanation:
      'A group that does less than the object did, such as one without its gate, would roll pods that the object kept. So nothing is written for it, and it stays with the operator that has it. Other objects are converted all the same.',
    hint: 'mend what the finding names and run init again, or write the group by hand',
  },
  RG7002: {
    title: 'A setting is left out',
    severity: 'warning',
    explanation: 'The object says something that has no place in a group, or that nobody here knows. The group is written without it.',
    hint: 'look whether you need it before you change over',
  },
  RG7003: {
    title: 'A setting is written in another form',
    severity: 'notice',
    explanation: 'The group means the same, or what comes next to it, in other words. The finding says which.',
  },
  RG7004: {
    title: 'A Secret has to be where the agent reads it',
    severity: 'warning',
    explanation:
      "MetricSources and NotificationChannels name Secrets of the agent's namespace. Values are never copied and never written into a file, so somebody has to put the Secret there. Until then the gate does not pass, and the channel is silent.",
  },
  RG7005: {
    title: 'Something has to be written in by hand',
    severity: 'warning',
    explanation: 'The object does not say it, or says it in a way that cannot be used here.',
  },
  RG7006: {
    title: 'The gate passes whatever it measures',
    severity: 'warning',
    explanation:
      'The object counts any answer with a series as a success, and so does the gate. A query without a comparison always has one while there is data, and one with `bool` answers 0 where it should answer nothing.',
    hint: 'write the number as query and the comparison as pass',
  },
  RG7007: {
    title: 'A rollout is under way',
    severity: 'warning',
    explanation:
      'What the other operator has counted so far is not known to the agent: gates begin anew, and pods that are at the new version stay there.',
    hint: 'let it end before you change over',
  },
} as const;
