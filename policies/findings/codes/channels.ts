// Codes RG2511 to RG2519: notification channels and the groups that use them.
export const channelCodes = {
  RG2511: {
    title: 'The notification channel does not exist',
    severity: 'error',
    explanation:
      'A group names a NotificationChannel that these files do not define. The channel receives no messages about the group. Rollouts continue.',
  },
  RG2512: {
    title: 'The notification channel is not usable from this namespace',
    severity: 'error',
    explanation:
      'A NotificationChannel lists in `usableFrom` the namespaces that may use it, because it sends with its own credentials. It sends nothing about groups of other namespaces.',
    hint: 'add the namespace to usableFrom of the channel, or name another channel',
  },
  RG2513: {
    title: "The notification channel is not in the agent's namespace",
    severity: 'warning',
    explanation:
      'The agent reads notification channels only from its own namespace, because a channel contains an address and credentials. Authors in other namespaces must not decide where the agent connects to. Channels elsewhere are ignored.',
    hint: "move the channel to the agent's namespace, or omit the namespace in a file of the agent's policy directory",
  },
  RG2514: {
    title: 'The notification channel is not encrypted',
    severity: 'error',
    explanation:
      'The address begins with http and is not a loopback address. Messages and credentials could be read and changed on the network, so the agent does not use the channel.',
    hint: 'use https, with ca if the authority is private',
  },
  RG2515: {
    title: 'The callback is not signed',
    severity: 'warning',
    explanation: 'Without signingKey the receiver cannot tell a genuine callback from a forged or repeated one.',
    hint: 'add signingKey to the channel',
  },
  RG2516: {
    title: 'The channel is named twice',
    severity: 'error',
    explanation: 'A group names one channel in two entries of notify. One entry can list all events.',
    hint: 'put the events into one entry',
  },
} as const;
