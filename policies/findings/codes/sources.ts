// Codes RG2501 to RG2599: metric sources and the groups and policies that use them.
export const sourceCodes = {
  RG2501: {
    title: 'The metric source does not exist',
    severity: 'error',
    explanation:
      'A gate or a policy names a MetricSource that these files do not define. The gate is never read, so it blocks. A metric input is unknown.',
  },
  RG2502: {
    title: 'The metric source is not usable from this namespace',
    severity: 'error',
    explanation:
      'A MetricSource lists in `usableFrom` the namespaces that may use it, because the agent queries it with its credentials. For other namespaces the gate blocks, and the input of a policy is unknown.',
    hint: 'add the namespace to usableFrom of the source, or name another source',
  },
  RG2503: {
    title: 'The metric source is of another kind',
    severity: 'error',
    explanation: 'A gate queries Prometheus but its source is Consul, or the other way round. Such a gate is never read, so it blocks.',
  },
  RG2504: {
    title: "The metric source is not in the agent's namespace",
    severity: 'warning',
    explanation:
      'The agent reads metric sources only from its own namespace, because a source contains an address and credentials. Authors in other namespaces must not decide where the agent connects to. Sources elsewhere are ignored.',
    hint: "move the source to the agent's namespace, or omit the namespace in a file of the agent's policy directory",
  },
  RG2505: {
    title: 'Credentials are sent without encryption',
    severity: 'warning',
    explanation:
      'The source has credentials and an address that begins with http. An attacker on the network can read the credentials and forge the answers.',
    hint: 'use https, with ca if the authority is private',
  },
  RG2506: {
    title: 'The metric source is queried more often than it allows',
    severity: 'error',
    explanation:
      '`limits.minInterval` of a MetricSource is the shortest time between two queries. A gate with a shorter `every` is never read, so it blocks. A metric input is read four times in its `maxAge`; if that is too often, the input is unknown.',
    hint: 'set every of the gate to at least minInterval, or maxAge of the input to four times minInterval; or lower minInterval',
  },
  RG2507: {
    title: 'The query is not PromQL',
    severity: 'error',
    explanation:
      'The syntax of the query is wrong, so no server can evaluate it. The gate never has a reading, and a metric input is unknown. Names of functions and metrics are not checked.',
  },
} as const;
