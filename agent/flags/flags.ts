// Defines every flag of the agent: those of grafana/rollout-operator with their names and defaults, and the agent's own.

/** The syntax of a value: as in Go's flag package, or a Prometheus duration. Commas separate the items of a `list`. */
export type FlagKind = 'text' | 'list' | 'boolean' | 'integer' | 'number' | 'duration' | 'prometheusDuration';

export interface FlagSpec {
  /** The name without dashes. */
  readonly name: string;
  readonly kind: FlagKind;
  /** The default as typed on the command line; absent if the default is empty. */
  readonly default?: string;
  readonly description: string;
  /** The placeholder of the value in the help. */
  readonly value?: string;
  /** The names of the flag in earlier releases of grafana/rollout-operator. */
  readonly aliases?: readonly string[];
}

const originalFlags = [
  {
    name: 'kubernetes.namespace',
    kind: 'text',
    description: 'Namespace of the agent. The agent watches this namespace unless -namespaces names others. Required.',
  },
  {
    name: 'kubernetes.api-url',
    kind: 'text',
    description:
      'Address of the API server. Set it together with -kubernetes.config-file, or set neither to use the service account of the pod.',
  },
  {
    name: 'kubernetes.config-file',
    kind: 'text',
    description: 'Kubeconfig with the credentials. Set it together with -kubernetes.api-url, or set neither.',
  },
  {
    name: 'kubernetes.client-timeout',
    kind: 'duration',
    default: '5m',
    description:
      'Timeout of a request to the API server. 0 means 1h. In a turn of a group a read takes at most 30s, and a write at most 5s.',
  },
  {
    name: 'kubernetes.client-qps',
    kind: 'number',
    default: '5',
    description: 'Requests per second to each API group; 0 or less is no limit.',
  },
  {
    name: 'kubernetes.client-burst',
    kind: 'integer',
    default: '10',
    description:
      'Requests to each API group that may exceed -kubernetes.client-qps in a burst. At least 1 if -kubernetes.client-qps is above 0.',
  },
  {
    name: 'kubernetes.cluster-domain',
    kind: 'text',
    default: 'cluster.local.',
    description: 'Domain suffix of pod host names. A trailing dot makes them fully qualified. Must not be empty.',
  },
  {
    name: 'pods.client-timeout',
    kind: 'duration',
    default: '5s',
    description: 'Timeout of each HTTP request to a pod. A request never outlasts the Lease. 0 means 1h.',
  },
  {
    name: 'reconcile.interval',
    kind: 'duration',
    default: '5s',
    description: 'Shortest pause before a failed turn of a group is retried. The agent otherwise acts as soon as something changes.',
  },
  {
    name: 'server.port',
    kind: 'integer',
    default: '8001',
    description: 'Port of /ready, /healthz and /metrics. 0 chooses a free port.',
  },
  {
    name: 'log.format',
    kind: 'text',
    default: 'logfmt',
    description: 'Format of the log on standard error: logfmt or json.',
  },
  {
    name: 'log.level',
    kind: 'text',
    default: 'debug',
    description: 'Lowest level that is logged: debug, info, warn or error.',
  },
  {
    name: 'server.cluster-validation.http.enabled',
    kind: 'boolean',
    default: 'false',
    description: 'Reject HTTP requests whose header X-Cluster differs from the namespace.',
  },
  {
    name: 'server.cluster-validation.http.soft-validation',
    kind: 'boolean',
    default: 'false',
    description:
      'Log and count requests with another X-Cluster instead of rejecting them. Requires -server.cluster-validation.http.enabled.',
  },
  {
    name: 'server.cluster-validation.http.excluded-paths',
    kind: 'list',
    description: 'Path fragments that are exempt. Empty means admission/no-downscale,admission/prepare-downscale.',
    aliases: ['server.cluster-validation.http.exclude-paths'],
  },
  {
    name: 'server.cluster-validation.http.excluded-user-agents',
    kind: 'list',
    description: 'Regular expressions of user agents that are exempt.',
  },
] as const satisfies readonly FlagSpec[];

const webhookFlags = [
  {
    name: 'server-tls.enabled',
    kind: 'boolean',
    default: 'false',
    description: 'Serve the webhooks over HTTPS.',
  },
  { name: 'server-tls.port', kind: 'integer', default: '8443', description: 'Port of the webhooks.' },
  {
    name: 'server-tls.cert-file',
    kind: 'text',
    description: 'Certificate file. Used if the certificate is not self-signed.',
  },
  {
    name: 'server-tls.key-file',
    kind: 'text',
    description: 'Key file of the certificate. Used if the certificate is not self-signed.',
  },
  {
    name: 'server-tls.request-timeout',
    kind: 'duration',
    default: '10s',
    description: 'Timeout of a webhook request. Must be above 0.',
  },
  {
    name: 'server-tls.self-signed-cert.enabled',
    kind: 'boolean',
    default: 'true',
    description: 'Create a self-signed certificate and keep it in a Secret.',
  },
  {
    name: 'server-tls.self-signed-cert.secret-name',
    kind: 'text',
    default: 'rollout-operator-self-signed-certificate',
    description: 'Name of the Secret with the self-signed certificate.',
  },
  {
    name: 'server-tls.self-signed-cert.dns-name',
    kind: 'text',
    description: 'DNS name in the certificate. Empty means rollout-operator.NAMESPACE.svc.',
  },
  {
    name: 'server-tls.self-signed-cert.org',
    kind: 'text',
    default: 'Grafana Labs',
    description: 'Organization in the certificate.',
  },
  {
    name: 'server-tls.self-signed-cert.expiration',
    kind: 'prometheusDuration',
    default: '1y',
    description: 'Lifetime of the certificate.',
  },
  {
    name: 'webhooks.update-ca-bundle',
    kind: 'boolean',
    default: 'true',
    description: 'Write the CA into the webhook configurations of the namespace.',
  },
  {
    name: 'use-zone-tracker',
    kind: 'boolean',
    default: 'false',
    description:
      'The prepare-downscale webhook records downscale times in a ConfigMap instead of annotations. The agent always uses its ledgers.',
  },
  {
    name: 'zone-tracker.config-map-name',
    kind: 'text',
    default: 'rollout-operator-zone-tracker',
    description: 'ConfigMap of the zone tracker. Must not be empty with -use-zone-tracker.',
  },
  {
    name: 'zpdb.pod-ready-annotation-patch-timeout',
    kind: 'duration',
    default: '5s',
    description: 'Timeout of the patch that records when a pod became ready. Must be above 0.',
  },
] as const satisfies readonly FlagSpec[];

const agentFlags = [
  {
    name: 'server-tls.ca-file',
    kind: 'text',
    description: 'CA that issued the certificate. Used if the certificate is not self-signed.',
  },
  {
    name: 'server-tls.client-ca-file',
    kind: 'text',
    description:
      'Require client certificates from this CA. The API server presents a certificate only if its admission configuration names one.',
  },
  {
    name: 'server-tls.drain',
    kind: 'duration',
    default: '10s',
    description: 'How long the webhooks still answer requests after the process received a stop signal and is no longer ready.',
  },
  {
    name: 'run',
    kind: 'text',
    default: 'all',
    description:
      'agent: the agent without webhooks. webhook: the webhooks alone. all: the agent, and the webhooks if -server-tls.enabled is set.',
  },
  {
    name: 'namespaces',
    kind: 'list',
    description:
      'Namespaces whose groups the agent rolls out, separated by commas. * means the whole cluster. Empty means -kubernetes.namespace.',
  },
  {
    name: 'policies',
    kind: 'text',
    value: 'directory',
    description: 'Directory with policy files. The agent reads it again when it changes.',
  },
  {
    name: 'policies.reread',
    kind: 'duration',
    default: '30s',
    description: 'How often the policy directory is read even without a change event. Must be above 0.',
  },
  {
    name: 'policy-sources',
    kind: 'list',
    default: 'directory,objects,adopted',
    description:
      'Where groups may be defined: directory, objects (RolloutGroup objects), adopted (labels and annotations). The first definition of a group counts.',
  },
  {
    name: 'intents.stamped',
    kind: 'boolean',
    default: 'false',
    description: 'The webhook /admission/stamp is registered, so requesters in RolloutIntents are verified. Without it no approval counts.',
  },
  {
    name: 'prepare-downscale.registered',
    kind: 'boolean',
    default: 'false',
    description:
      'The webhook /admission/prepare-downscale is registered and prepares the pods of adopted groups. Without it /admission/enforce denies requests that require prepared pods.',
  },
  {
    name: 'leader-election',
    kind: 'text',
    default: 'auto',
    description:
      'required: the agent acts only while it holds the Lease. auto: the agent acts without a Lease if access to Leases is forbidden. off: the agent uses no Lease.',
  },
  {
    name: 'lease.name',
    kind: 'text',
    default: 'rollout-group-agent',
    description: 'Name of the Lease in -kubernetes.namespace.',
  },
  {
    name: 'lease.duration',
    kind: 'duration',
    default: '15s',
    description: 'How long other processes wait for a renewal before they take the Lease.',
  },
  {
    name: 'lease.renew-deadline',
    kind: 'duration',
    default: '10s',
    description: 'How long after its last renewal the holder still acts. Less than -lease.duration.',
  },
  {
    name: 'lease.retry-period',
    kind: 'duration',
    default: '2s',
    description: 'Pause between two attempts to take or renew the Lease. Less than -lease.renew-deadline.',
  },
  {
    name: 'identity',
    kind: 'text',
    description: 'Holder name in the Lease, unique for each process. Empty means the host name and a random suffix.',
  },
  {
    name: 'publish.every',
    kind: 'duration',
    default: '5s',
    description: 'Shortest time between two published decisions of one group.',
  },
  {
    name: 'server.address',
    kind: 'text',
    description: 'Address that the HTTP server binds, such as 127.0.0.1. Empty means all addresses.',
  },
] as const satisfies readonly FlagSpec[];

const flags = [...originalFlags, ...webhookFlags, ...agentFlags] as const;

export const flagSpecs: readonly FlagSpec[] = flags;

/** The sections of the help with their flags. */
export const flagSections: readonly (readonly [title: string, flags: readonly FlagSpec[]])[] = [
  ['Flags of grafana/rollout-operator', originalFlags],
  ['Flags of this agent', agentFlags],
  ['Flags of the webhooks', webhookFlags],
];

type Flag = (typeof flags)[number];

/** The type of the parsed value of a flag. Durations are milliseconds. */
type ValueOf<Kind extends FlagKind> = Kind extends 'text'
  ? string
  : Kind extends 'list'
    ? readonly string[]
    : Kind extends 'boolean'
      ? boolean
      : number;

/** The value of every flag. A flag that is not given has its default. */
export type FlagValues = { readonly [One in Flag as One['name']]: ValueOf<One['kind']> };

/** Returns the flag with this name or alias. */
export function flagNamed(name: string): FlagSpec | undefined {
  return flagSpecs.find((flag) => flag.name === name || flag.aliases?.includes(name));
}
