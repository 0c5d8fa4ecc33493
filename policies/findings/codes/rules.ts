// Codes RG2301 to RG2499: policies, windows, exceptions and intents that fit the schema but contradict other objects.
export const ruleCodes = {
  RG2301: {
    title: 'The group does not exist in these files',
    severity: 'warning',
    explanation:
      'The files define other groups in this namespace, but not this one. Unless the cluster has the group, the document has no effect.',
  },
  RG2302: {
    title: 'A policy may not name other namespaces',
    severity: 'error',
    explanation:
      "A policy applies to the groups of its namespace. Only a policy in the agent's namespace may name other namespaces. Otherwise one team could block the rollouts of another team.",
    hint: "remove namespaces, or move the policy to the agent's namespace",
  },
  RG2303: {
    title: 'The limit has no effect',
    severity: 'warning',
    explanation: 'Every group that the policy applies to already has a stricter limit.',
    hint: 'tighten the limit, or remove it',
  },
  RG2304: {
    title: 'The required approval names no approvers',
    severity: 'notice',
    explanation: 'The rule requires an approval without `approval.from`. Any one user other than the requester may approve.',
    hint: 'add approval.from',
  },
  RG2305: {
    title: 'The rule does not exist',
    severity: 'error',
    explanation:
      'The exception names a rule that neither the engine nor a policy of this namespace has. The exception has no effect, and the request stays denied.',
  },
  RG2306: {
    title: 'Two exceptions cover the same rule and target',
    severity: 'error',
    explanation:
      'Exceptions do not combine. If two exceptions cover one rule and target, neither is used, because the laxer one would win by accident.',
    hint: 'remove one of them',
  },
  RG2307: {
    title: 'The exception ends before it begins',
    severity: 'error',
    explanation: 'The end is not after the beginning, so the exception is never in force.',
  },
  RG2308: {
    title: 'The wave does not exist',
    severity: 'error',
    explanation: 'The group has no wave of this name, so the approval has no effect.',
  },
  RG2309: {
    title: 'The policy does nothing',
    severity: 'warning',
    explanation: 'The policy has no rules, no windows and no limits, so it denies and blocks nothing.',
  },
  RG2310: {
    title: 'The rule cannot be overridden',
    severity: 'error',
    explanation:
      'No exception can override this rule. It depends on what the agent can observe and claim, or another command ends its block, such as resume for a pause. The exception has no effect.',
    hint: 'name the rule that blocks, as explain shows it',
  },
  RG2401: {
    title: 'The schedule is not valid',
    severity: 'error',
    explanation:
      'A schedule has five fields: minute, hour, day of month, month, day of week. Names such as @daily and a field for seconds are not supported.',
  },
  RG2402: {
    title: 'Day of month and day of week are both restricted',
    severity: 'error',
    explanation: 'Cron joins the two fields by OR: `0 0 13 * 5` means every Friday and every 13th. Restrict only one of them.',
    hint: 'use * in one of the two fields',
  },
  RG2403: {
    title: 'The time zone does not exist',
    severity: 'error',
    explanation:
      'The name is not an IANA time zone. Abbreviations such as CET are not supported, because they do not define when clocks change.',
    hint: 'use a name such as Europe/Amsterdam',
  },
  RG2404: {
    title: 'The window lasts longer than its period',
    severity: 'error',
    explanation: 'The window opens again before it closes, so it is always open.',
    hint: 'shorten the duration',
  },
  RG2405: {
    title: 'The window never opens',
    severity: 'error',
    explanation:
      'No calendar day matches the schedule, for example 30 February. An allow window that never opens blocks everything; a deny window that never opens blocks nothing.',
  },
  RG2406: {
    title: 'The range ends before it begins',
    severity: 'error',
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
    severity: 'error',
    explanation: 'A window of length zero is never open.',
  },
} as const;
