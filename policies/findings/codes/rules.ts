// Codes RG2301 to RG2499: policies, windows, exceptions and intents that fit their schema but not the rest.
export const ruleCodes = {
  RG2301: {
    title: 'The group does not exist in these files',
    severity: 'warning',
    explanation:
      'The files define groups in this namespace, and the name is not one of them. Unless the agent knows the group from elsewhere, the document acts on nothing.',
  },
  RG2302: {
    title: 'A policy may not name other namespaces',
    severity: 'error',
    explanation:
      "A policy binds the groups of its own namespace. Only policies in the agent's own namespace may name others; otherwise a team could hold the rollouts of another.",
    hint: "remove namespaces, or move the policy to the agent's namespace",
  },
  RG2303: {
    title: 'The limit can never act',
    severity: 'warning',
    explanation:
      'The limit is looser than what every group it binds already says about itself. It looks like protection and is none as long as the groups stay as they are.',
    hint: 'tighten the limit, or remove it',
  },
  RG2304: {
    title: 'An approval is required of nobody in particular',
    severity: 'notice',
    explanation:
      'The rule requires an approval and does not say from whom. One person of any group, other than who asked, may then approve.',
    hint: 'add approval.from',
  },
  RG2305: {
    title: 'The rule does not exist',
    severity: 'error',
    explanation:
      'The exception names a rule that neither the engine nor a policy of this namespace has. It excepts nothing, and the request that it was written for is refused.',
  },
  RG2306: {
    title: 'Two exceptions cover the same rule and target',
    severity: 'error',
    explanation:
      'Exceptions never combine. With two of them for one rule and target the laxer one would win without anybody having decided that, so neither is used.',
    hint: 'remove one of them',
  },
  RG2307: {
    title: 'The exception ends before it begins',
    severity: 'error',
    explanation: 'The end is not after the beginning, so that there is no moment at which the exception holds.',
  },
  RG2308: {
    title: 'The wave does not exist',
    severity: 'error',
    explanation: 'The name is not one of the waves of the group. An approval for a wave that does not exist approves nothing.',
  },
  RG2309: {
    title: 'The policy does nothing',
    severity: 'warning',
    explanation: 'The policy has no rules, no windows and no limits, so that it neither refuses nor holds anything.',
  },
  RG2310: {
    title: 'The rule cannot be overridden',
    severity: 'error',
    explanation:
      'The exception names a rule that no exception lets pass: it rests on what can be seen and announced, or people end what it holds in another way, such as resume for a pause. The exception excepts nothing.',
    hint: 'name the rule that really holds it, as explain shows it',
  },
  RG2401: {
    title: 'The schedule is not valid',
    severity: 'error',
    explanation:
      'A schedule has five fields: minute, hour, day of month, month, day of week. Names such as @daily and a field for seconds are not used.',
  },
  RG2402: {
    title: 'Day of month and day of week are both restricted',
    severity: 'error',
    explanation:
      'Cron joins the two fields by OR: `0 0 13 * 5` means every Friday and every 13th, which is hardly ever what was meant. Restrict one of them.',
    hint: 'use * in one of the two fields',
  },
  RG2403: {
    title: 'The time zone does not exist',
    severity: 'error',
    explanation:
      'The name is not one of the IANA time zones. Abbreviations such as CET are not used, because they do not say when clocks change.',
    hint: 'use a name such as Europe/Amsterdam',
  },
  RG2404: {
    title: 'The window lasts longer than its period',
    severity: 'error',
    explanation: 'The window opens again before it has closed, so that it never closes. A window that is always open says nothing.',
    hint: 'shorten the duration',
  },
  RG2405: {
    title: 'The window never opens',
    severity: 'error',
    explanation:
      'No calendar day matches the schedule, as with 30 February. An allow window that never opens blocks everything; a deny window that never opens blocks nothing.',
  },
  RG2406: {
    title: 'The range ends before it begins',
    severity: 'error',
    explanation:
      'Ranges are half-open: they include their beginning and end just before their end. The end must be later than the beginning.',
  },
  RG2407: {
    title: 'Windows of two policies are never open together',
    severity: 'warning',
    explanation:
      'Policies join restrictively: with allow windows in two policies an action needs an open one in each. These are never open at the same time, so the action is blocked for ever.',
  },
  RG2408: {
    title: 'The duration of the window is zero',
    severity: 'error',
    explanation: 'A window of no length is never open.',
  },
} as const;
