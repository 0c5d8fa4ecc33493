// Every flag of the agent as data: those of grafana/rollout-operator under their own names and defaults, and ours. Parser, help and docs read it.

/** How the text of a flag is read: as Go's flag package reads it, or as Prometheus does. `list`: separated by commas. */
export type FlagKind = 'text' | 'list' | 'boolean' | 'integer' | 'number' | 'duration' | 'prometheusDuration';

export interface FlagSpec {
  /** Without dashes. */
  readonly name: string;
  readonly kind: FlagKind;
  /** As it would be typed; empty when nothing is said. */
  readonly default: string;
  readonly description: string;
  /** What a value stands for, in the help. */
  readonly value?: string;
  /** Names that earlier releases of grafana/rollout-operator had for it. */
  readonly aliases?: readonly string[];
  readonly section: 'original' | 'webhook' | 'agent';
}

/** In the order in which they are shown. */
export const flags = [
  {
    name: 'kubernetes.namespace',
    kind: 'text',
    default: '',
    description: 'Namespace in which the agent lives, and which it watches unless -namespaces says otherwise. Required.',
    section: 'original',
  },
  {
    name: 'kubernetes.api-url',
    kind: 'text',
    default: '',
    description: 'Address of the API server. Together with -kubernetes.config-file, or neither: then the credentials of the pod are used.',
    section: 'original',
  },
  {
    name: 'kubernetes.config-file',
    kind: 'text',
    default: '',
    description: 'A kubeconfig with the credentials. Together with -kubernetes.api-url, or neither.',
    section: 'original',
  },
  {
    name: 'kubernetes.client-timeout',
    kind: 'duration',
    default: '5m',
    description: 'Time-out of requests to the API server that disturb nothing. 0 is an hour.',
    section: 'original',
  },
  {
    name: 'kubernetes.client-qps',
    kind: 'number',
    default: '5',
    description: 'Requests per second to each API group; 0 or less is no limit.',
    section: 'original',
  },
  {
    name: 'kubernetes.client-burst',
    kind: 'integer',
    default: '10',
    description: 'Requests to each API group that may go out at once. At least 1 when -kubernetes.client-qps is above 0.',
    section: 'original',
  },
  {
    name: 'kubernetes.cluster-domain',
    kind: 'text',
    default: 'cluster.local.',
    description: 'Ends the host names of pods; with a trailing dot it is fully qualified. Not empty.',
    section: 'original',
  },
  {
    name: 'pods.client-timeout',
    kind: 'duration',
    default: '5s',
    description: 'Time-out of each HTTP request to a pod; none lasts longer than the Lease is certain. 0 is an hour.',
    section: 'original',
  },
  {
    name: 'reconcile.interval',
    kind: 'duration',
    default: '5s',
    description:
      'The shortest pause before a group whose turn failed is tried again. Nothing else waits for it: the agent acts when something changes.',
    section: 'original',
  },
  {
    name: 'server.port',
    kind: 'integer',
    default: '8001',
    description: 'Port of /ready, /healthz and /metrics; 0 takes a free one.',
    section: 'original',
  },
  {
    name: 'log.format',
    kind: 'text',
    default: 'logfmt',
    description: 'Format of the log on standard error: logfmt or json.',
    section: 'original',
  },
  {
    name: 'log.level',
    kind: 'text',
    default: 'debug',
    description: 'The least that is logged: debug, info, warn or error.',
    section: 'original',
  },
  {
    name: 'server.cluster-validation.http.enabled',
    kind: 'boolean',
    default: 'false',
    description: 'Refuse HTTP requests whose header X-Cluster is not the namespace.',
    section: 'original',
  },
  {
    name: 'server.cluster-validation.http.soft-validation',
    kind: 'boolean',
    default: 'false',
    description: 'Log and count such requests instead. Only with -server.cluster-validation.http.enabled.',
    section: 'original',
  },
  {
    name: 'server.cluster-validation.http.excluded-paths',
    kind: 'list',
    default: '',
    description: 'Path fragments that are exempt; empty stands for admission/no-downscale,admission/prepare-downscale.',
    aliases: ['server.cluster-validation.http.exclude-paths'],
    section: 'original',
  },
  {
    name: 'server.cluster-validation.http.excluded-user-agents',
    kind: 'list',
    default: '',
    description: 'Regular expressions of user agents that are exempt.',
    section: 'original',
  },
  {
    name: 'server-tls.enabled',
    kind: 'boolean',
    default: 'false',
    description: 'Serve the webhooks over HTTPS.',
    section: 'webhook',
  },
  { name: 'server-tls.port', kind: 'integer', default: '8443', description: 'Port of the webhooks.', section: 'webhook' },
  { name: 'server-tls.cert-file', kind: 'text', default: '', description: 'Certificate, when it is not self-signed.', section: 'webhook' },
  {
    name: 'server-tls.key-file',
    kind: 'text',
    default: '',
    description: 'Key of the certificate, when it is not self-signed.',
    section: 'webhook',
  },
  {
    name: 'server-tls.request-timeout',
    kind: 'duration',
    default: '10s',
    description: 'Time-out of a webhook request. More than 0.',
    section: 'webhook',
  },
  {
    name: 'server-tls.self-signed-cert.enabled',
    kind: 'boolean',
    default: 'true',
    description: 'Sign the certificate ourselves and keep it in a Secret.',
    section: 'webhook',
  },
  {
    name: 'server-tls.self-signed-cert.secret-name',
    kind: 'text',
    default: 'rollout-operator-self-signed-certificate',
    description: 'Name of that Secret.',
    section: 'webhook',
  },
  {
    name: 'server-tls.self-signed-cert.dns-name',
    kind: 'text',
    default: '',
    description: 'The name the certificate is for; empty stands for rollout-operator.NAMESPACE.svc.',
    section: 'webhook',
  },
  {
    name: 'server-tls.self-signed-cert.org',
    kind: 'text',
    default: 'Grafana Labs',
    description: 'Organization in the certificate.',
    section: 'webhook',
  },
  {
    name: 'server-tls.self-signed-cert.expiration',
    kind: 'prometheusDuration',
    default: '1y',
    description: 'For how long the certificate is valid.',
    section: 'webhook',
  },
  {
    name: 'webhooks.update-ca-bundle',
    kind: 'boolean',
    default: 'true',
    description: 'Write the CA into the webhook configurations of the namespace.',
    section: 'webhook',
  },
  {
    name: 'use-zone-tracker',
    kind: 'boolean',
    default: 'false',
    description: 'Where the prepare-downscale webhook keeps the instants of downscales. The agent keeps them in its ledgers either way.',
    section: 'webhook',
  },
  {
    name: 'zone-tracker.config-map-name',
    kind: 'text',
    default: 'rollout-operator-zone-tracker',
    description: 'ConfigMap of the zone tracker. Not empty with -use-zone-tracker.',
    section: 'webhook',
  },
  {
    name: 'zpdb.pod-ready-annotation-patch-timeout',
    kind: 'duration',
    default: '5s',
    description: 'Time-out of writing the instant at which a pod became ready. More than 0.',
    section: 'webhook',
  },
  {
    name: 'server-tls.ca-file',
    kind: 'text',
    default: '',
    description: 'The authority that issued the certificate, when it is not self-signed.',
    section: 'agent',
  },
  {
    name: 'server-tls.client-ca-file',
    kind: 'text',
    default: '',
    description: 'Clients must show a certificate of this authority. API servers have one when their admission configuration names it.',
    section: 'agent',
  },
  {
    name: 'server-tls.drain',
    kind: 'duration',
    default: '10s',
    description: 'For how long requests are still answered after the process was told to end and is ready no more.',
    section: 'agent',
  },
  {
    name: 'run',
    kind: 'text',
    default: 'all',
    description: 'agent: no webhooks. webhook: nothing but webhooks. all: the agent, and with -server-tls.enabled the webhooks.',
    section: 'agent',
  },
  {
    name: 'namespaces',
    kind: 'list',
    default: '',
    description: 'Namespaces whose groups are moved, separated by commas; * is the whole cluster. Empty stands for -kubernetes.namespace.',
    section: 'agent',
  },
  {
    name: 'policies',
    kind: 'text',
    default: '',
    value: 'directory',
    description: 'Directory with policy files, read again when it changes.',
    section: 'agent',
  },
  {
    name: 'policies.reread',
    kind: 'duration',
    default: '30s',
    description: 'How often the directory is read even though nothing said that it changed. More than 0.',
    section: 'agent',
  },
  {
    name: 'policy-sources',
    kind: 'list',
    default: 'directory,objects,adopted',
    description:
      'Where groups may be defined, the first definition of a group counts: directory, objects (of our kinds), adopted (labels and annotations).',
    section: 'agent',
  },
  {
    name: 'intents.stamped',
    kind: 'boolean',
    default: 'false',
    description:
      'Whether the webhook /admission/stamp is registered, so that the identity in RolloutIntents is true. Without it no approval counts.',
    section: 'agent',
  },
  {
    name: 'prepare-downscale.registered',
    kind: 'boolean',
    default: 'false',
    description:
      'Whether the webhook /admission/prepare-downscale is registered, so that /admission/enforce leaves the pods of adopted groups to it. Otherwise it refuses what needs them prepared.',
    section: 'agent',
  },
  {
    name: 'leader-election',
    kind: 'text',
    default: 'auto',
    description:
      'required: nothing is done without the Lease. auto: without permission for Leases the agent works alone, and says so. off: alone.',
    section: 'agent',
  },
  {
    name: 'lease.name',
    kind: 'text',
    default: 'rollout-group-agent',
    description: 'Name of the Lease in -kubernetes.namespace.',
    section: 'agent',
  },
  {
    name: 'lease.duration',
    kind: 'duration',
    default: '15s',
    description: 'For how long others leave the Lease to a holder that they do not hear of.',
    section: 'agent',
  },
  {
    name: 'lease.renew-deadline',
    kind: 'duration',
    default: '10s',
    description: 'After how long without a renewal the holder stops acting. Less than -lease.duration.',
    section: 'agent',
  },
  {
    name: 'lease.retry-period',
    kind: 'duration',
    default: '2s',
    description: 'Between two tries to take or renew the Lease. Less than -lease.renew-deadline.',
    section: 'agent',
  },
  {
    name: 'identity',
    kind: 'text',
    default: '',
    description: 'Who holds the Lease, unique for each process. Empty stands for the name of the host and something random.',
    section: 'agent',
  },
  {
    name: 'publish.every',
    kind: 'duration',
    default: '5s',
    description: 'The shortest time between two published decisions of one group.',
    section: 'agent',
  },
  {
    name: 'server.address',
    kind: 'text',
    default: '',
    description: 'Address that the HTTP server binds, such as 127.0.0.1. Empty stands for all.',
    section: 'agent',
  },
] as const satisfies readonly FlagSpec[];

type Flag = (typeof flags)[number];

/** The value that a flag of a kind has once it is read: durations are milliseconds. */
type ValueOf<Kind extends FlagKind> = Kind extends 'text'
  ? string
  : Kind extends 'list'
    ? readonly string[]
    : Kind extends 'boolean'
      ? boolean
      : number;

/** The value of every flag, given or not. */
export type FlagValues = { readonly [One in Flag as One['name']]: ValueOf<One['kind']> };

/** The flag with this name, or that had it in an earlier release. */
export function flagNamed(name: string): FlagSpec | undefined {
  return flags.find((flag: FlagSpec) => flag.name === name || flag.aliases?.includes(name));
}
