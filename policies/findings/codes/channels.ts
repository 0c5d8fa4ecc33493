// Codes RG2511 to RG2519: notification channels, and who names them.
export const channelCodes = {
  RG2511: {
    title: 'The notification channel does not exist',
    severity: 'error',
    explanation:
      'A group names a NotificationChannel that is not among those of these files. Nobody is told of its runs by that channel; rollouts go on all the same.',
  },
  RG2512: {
    title: 'The notification channel is not there for this namespace',
    severity: 'error',
    explanation:
      'A NotificationChannel says in `usableFrom` for which namespaces it is there, since it writes with credentials that are not theirs. Nothing is told of groups of another namespace.',
    hint: 'add the namespace to usableFrom of the channel, or name another one',
  },
  RG2513: {
    title: 'The notification channel is not where the agent lives',
    severity: 'warning',
    explanation:
      'The agent reads notification channels of its own namespace only, because a channel has an address and credentials, and whoever may write objects elsewhere must not decide where the agent connects to. A channel of another namespace is ignored.',
    hint: "write it into the agent's namespace, or leave the namespace out in a file of the agent's directory",
  },
  RG2514: {
    title: 'The notification channel has no encryption',
    severity: 'error',
    explanation:
      'The address begins with http and is not one of the machine itself. What is told, and the credentials, could be read and changed on their way, so the agent does not use such a channel.',
    hint: 'use https, with ca when the authority is your own',
  },
  RG2515: {
    title: 'The callback is not signed',
    severity: 'warning',
    explanation:
      'Without signingKey the receiver of a callback cannot tell it from one that somebody else has sent, and a repeated one from a new one.',
    hint: 'give the channel a signingKey',
  },
  RG2516: {
    title: 'The channel is named twice',
    severity: 'error',
    explanation:
      'A group names one channel in two entries of notify. Each entry would be about the same messages; one entry can list every event.',
    hint: 'put the events into one entry',
  },
} as const;
