// Codes RG2501 to RG2599: metric sources, and who names them.
export const sourceCodes = {
  RG2501: {
    title: 'The metric source does not exist',
    severity: 'error',
    explanation:
      'A gate or a policy names a MetricSource that is not among those of these files. A gate whose source does not exist is never read, so it holds; a metric input is unknown.',
  },
  RG2502: {
    title: 'The metric source is not there for this namespace',
    severity: 'error',
    explanation:
      'A MetricSource says in `usableFrom` for which namespaces it is there, since it is asked with credentials that are not theirs. A gate or a policy of another namespace is not read from it: the gate holds, and the input of the policy is unknown.',
    hint: 'add the namespace to usableFrom of the source, or name another one',
  },
  RG2503: {
    title: 'The metric source is of another kind',
    severity: 'error',
    explanation:
      'A gate asks Prometheus and names a source that is a Consul, or the other way round. Such a gate is never read, so it holds.',
  },
  RG2504: {
    title: 'The metric source is not where the agent lives',
    severity: 'warning',
    explanation:
      'The agent reads metric sources of its own namespace only, because a source has an address and credentials, and whoever may write objects elsewhere must not decide where the agent connects to. A source of another namespace is ignored.',
    hint: "write it into the agent's namespace, or leave the namespace out in a file of the agent's directory",
  },
  RG2505: {
    title: 'Credentials go over the network without encryption',
    severity: 'warning',
    explanation:
      'The source has credentials and an address that begins with http. Whoever sees the traffic sees the credentials, and may answer in the place of the server.',
    hint: 'use https, with ca when the authority is your own',
  },
  RG2506: {
    title: 'The metric source is asked more often than it allows',
    severity: 'error',
    explanation:
      'A MetricSource has the shortest time between two readings in `limits.minInterval`. A gate whose `every` is shorter is not read at all, so it holds; a metric input of a policy, which is asked four times in its `maxAge`, is unknown then.',
    hint: 'make every of the gate as long as that, or maxAge of the input four times as long; or lower minInterval of the source',
  },
  RG2507: {
    title: 'The query is not PromQL',
    severity: 'error',
    explanation:
      'Brackets, texts, operators or operands are not where they belong, so that no server understands the query: the gate would never have a reading, and the metric would be unknown. Names of functions and metrics are not looked at.',
  },
} as const;
