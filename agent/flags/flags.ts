// Defines every flag of the agent: those of grafana/rollout-operator with their names and defaults, and the agent's own.

import { goDurationMs, prometheusDurationMs } from '../../policies/duration.ts';
import { agentName } from '../../policies/objects/agent-deployment.ts';

/**
 * The kinds of values. `read` parses a text as Go's flag package or Prometheus does, and returns undefined for a wrong text. `expected`
 * completes the message about a wrong text.
 */
export const flagKinds = {
  text: { read: (text: string) => text, expected: '' },
  list: { read: listOf, expected: '' },
  boolean: { read: booleanOf, expected: 'true or false is expected' },
  integer: { read: integerOf, expected: 'a whole number is expected' },
  number: { read: numberOf, expected: 'a number is expected' },
  duration: { read: goDurationMs, expected: 'a duration such as 90s or 5m is expected' },
  prometheusDuration: { read: prometheusDurationMs, expected: 'a duration such as 12h, 30d or 1y is expected' },
};

type FlagKind = keyof typeof flagKinds;

function listOf(text: string): readonly string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

/** Parses a boolean as Go's strconv.ParseBool does. */
function booleanOf(text: string): boolean | undefined {
  if (['1', 't', 'T', 'TRUE', 'true', 'True'].includes(text)) return true;
  return ['0', 'f', 'F', 'FALSE', 'false', 'False'].includes(text) ? false : undefined;
}

function integerOf(text: string): number | undefined {
  return /^[+-]?(?:\d+|0[xX][\da-fA-F]+)$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined;
}

function numberOf(text: string): number | undefined {
  if (/^\+?inf(?:inity)?$/i.test(text)) return Number.POSITIVE_INFINITY;
  return /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(text) ? Number(text) : undefined;
}

interface FlagOf<Kind extends FlagKind> {
  readonly kind: Kind;
  readonly description: string;
  /** The default as typed on the command line; absent if the default is empty. */
  readonly default?: string;
  readonly value?: string;
  /** The names of the flag in earlier releases of grafana/rollout-operator. */
  readonly aliases?: readonly string[];
}

export interface FlagSpec extends FlagOf<FlagKind> {
  /** The name without dashes. */
  readonly name: string;
}

type DefineFlag<Kind extends FlagKind> = (description: string, standard?: string) => FlagOf<Kind>;

function flagOf<Kind extends FlagKind>(kind: Kind): DefineFlag<Kind> {
  return (description, standard) => ({ kind, description, ...(standard === undefined ? {} : { default: standard }) });
}

const text = flagOf('text');
const list = flagOf('list');
const boolean = flagOf('boolean');
const integer = flagOf('integer');
const number = flagOf('number');
const duration = flagOf('duration');
const prometheusDuration = flagOf('prometheusDuration');

const originalFlags = {
  'kubernetes.namespace': text('Namespace of the agent. The agent watches this namespace unless -namespaces names others. Required.'),
  'kubernetes.api-url': text(
    'Address of the API server. Set it together with -kubernetes.config-file, or set neither to use the service account of the pod.',
  ),
  'kubernetes.config-file': text('Kubeconfig with the credentials. Set it together with -kubernetes.api-url, or set neither.'),
  'kubernetes.client-timeout': duration(
    'Timeout of a request to the API server. 0 means 1h. In a turn of a group a read takes at most 30s, and a write at most 5s.',
    '5m',
  ),
  'kubernetes.client-qps': number(
    'Limit of requests per second to each API group. 0 or less is no limit: the API server limits its clients itself.',
    '0',
  ),
  'kubernetes.client-burst': integer(
    'Requests to each API group that may exceed -kubernetes.client-qps in a burst. At least 1, and only used, if -kubernetes.client-qps is above 0.',
    '10',
  ),
  'kubernetes.cluster-domain': text(
    'Domain suffix of pod host names. A trailing dot makes them fully qualified. Must not be empty.',
    'cluster.local.',
  ),
  'pods.client-timeout': duration(
    'Timeout of an HTTP request that prepares a pod of an adopted group for a downscale or cancels the preparation. 0 means 1h.',
    '5s',
  ),
  'reconcile.interval': duration(
    'Longest first pause after a failed turn. The pause doubles with each further failure. After a success, each change starts a turn.',
    '5s',
  ),
  'server.port': integer('Port of /ready, /healthz and /metrics. 0 chooses a free port.', '8001'),
  'log.format': text('Format of the log on standard error: logfmt or json.', 'logfmt'),
  'log.level': text('Lowest level that is logged: debug, info, warn or error.', 'debug'),
  'server.cluster-validation.http.enabled': boolean(
    'Reject HTTP requests whose header X-Cluster differs from -kubernetes.namespace.',
    'false',
  ),
  'server.cluster-validation.http.soft-validation': boolean(
    'Log and count requests with a wrong X-Cluster instead of rejecting them. Requires -server.cluster-validation.http.enabled.',
    'false',
  ),
  'server.cluster-validation.http.excluded-paths': {
    ...list('Path fragments that are exempt. Empty means admission/, the paths of all webhooks: API servers do not send X-Cluster.'),
    aliases: ['server.cluster-validation.http.exclude-paths'],
  },
  'server.cluster-validation.http.excluded-user-agents': list('Regular expressions of user agents that are exempt.'),
};

const webhookFlags = {
  'server-tls.enabled': boolean('Serve the webhooks over HTTPS.', 'false'),
  'server-tls.port': integer('Port of the webhooks.', '8443'),
  'server-tls.cert-file': text('Certificate file. Used if -server-tls.self-signed-cert.enabled is false.'),
  'server-tls.key-file': text('Key file of the certificate. Used if -server-tls.self-signed-cert.enabled is false.'),
  'server-tls.request-timeout': duration('Timeout of a webhook request. Must be above 0.', '10s'),
  'server-tls.self-signed-cert.enabled': boolean('Create a self-signed certificate and keep it in a Secret.', 'true'),
  'server-tls.self-signed-cert.secret-name': text(
    'Name of the Secret with the self-signed certificate.',
    'rollout-operator-self-signed-certificate',
  ),
  'server-tls.self-signed-cert.dns-name': text('DNS name in the certificate. Empty means rollout-operator.NAMESPACE.svc.'),
  'server-tls.self-signed-cert.org': text('Organization in the certificate.', 'Grafana Labs'),
  'server-tls.self-signed-cert.expiration': prometheusDuration('Lifetime of the certificate.', '1y'),
  'webhooks.update-ca-bundle': boolean('Write the self-signed CA into the webhook configurations whose labels request it.', 'true'),
  'use-zone-tracker': boolean('The prepare-downscale webhook records downscale times in a ConfigMap instead of annotations.', 'false'),
  'zone-tracker.config-map-name': text(
    'ConfigMap of the zone tracker. Must not be empty with -use-zone-tracker.',
    'rollout-operator-zone-tracker',
  ),
  'zpdb.pod-ready-annotation-patch-timeout': duration('Timeout of the patch that records when a pod became ready. Must be above 0.', '5s'),
};

const agentFlags = {
  'server-tls.ca-file': text('CA that must have issued the certificate in -server-tls.cert-file. Empty means no check.'),
  'server-tls.client-ca-file': text(
    'Require client certificates from this CA. The API server presents a certificate only if its admission configuration names one.',
  ),
  'server-tls.drain': duration(
    'How long the webhooks answer requests after a stop signal. During this time the process is not ready.',
    '10s',
  ),
  run: text(
    'agent: the agent without webhooks. webhook: the webhooks alone. all: the agent, and the webhooks if -server-tls.enabled is set.',
    'all',
  ),
  namespaces: list(
    'Namespaces whose groups the agent rolls out, separated by commas. * means the whole cluster. Empty means -kubernetes.namespace.',
  ),
  policies: { ...text('Directory with policy files. The agent reads it again when it changes.'), value: 'directory' },
  'policies.reread': duration('How often the policy directory is read even without a change event. Must be above 0.', '30s'),
  'policy-sources': list(
    'Where groups may be defined: directory, objects (RolloutGroup objects), adopted (labels and annotations). The first definition of a group counts.',
    'directory,objects,adopted',
  ),
  'intents.stamped': boolean(
    'The webhook /admission/stamp is registered, so requesters in RolloutIntents and RolloutExceptions are verified. Without it no approval counts.',
    'false',
  ),
  'prepare-downscale.registered': boolean(
    'The webhook /admission/prepare-downscale is registered and prepares the pods of adopted groups. Without it /admission/enforce denies requests that require prepared pods.',
    'false',
  ),
  'commits.read': boolean(
    'Read the commit of a rollout from the Kustomization (Flux) or Application (Argo CD) that applied its StatefulSets. Needs the right to get these objects.',
    'false',
  ),
  'commits.argo-cd-namespace': text('Namespace of the Applications whose name in the tracking annotation has no namespace.', 'argocd'),
  'leader-election': text(
    'required: the agent acts only while it holds the Lease. auto: the agent acts without a Lease if Leases are forbidden or not served. off: the agent uses no Lease.',
    'auto',
  ),
  'lease.name': text('Name of the Lease in -kubernetes.namespace.', agentName),
  'lease.duration': duration('How long other processes wait for a renewal before they take the Lease.', '15s'),
  'lease.renew-deadline': duration('How long after its last renewal the holder still acts. Less than -lease.duration.', '10s'),
  'lease.retry-period': duration('Pause between two attempts to take or renew the Lease. Less than -lease.renew-deadline.', '2s'),
  identity: text('Holder name in the Lease, unique for each process. Empty means the host name and a random suffix.'),
  'publish.every': duration('Shortest time between two published decisions of one group.', '5s'),
  'server.address': text('Address for -server.port and -server-tls.port, such as 127.0.0.1. Empty means all addresses.'),
};

const flags = { ...originalFlags, ...webhookFlags, ...agentFlags };

export const flagSpecs: readonly FlagSpec[] = specsOf(flags);

export const flagSections: readonly (readonly [title: string, flags: readonly FlagSpec[]])[] = [
  ['Flags of grafana/rollout-operator', specsOf(originalFlags)],
  ['Flags of this agent', specsOf(agentFlags)],
  ['Flags of the webhooks', specsOf(webhookFlags)],
];

function specsOf(named: Readonly<Record<string, FlagOf<FlagKind>>>): readonly FlagSpec[] {
  return Object.entries(named).map(([name, flag]) => ({ name, ...flag }));
}

type Flags = typeof flags;
type ValueOf<Kind extends FlagKind> = NonNullable<ReturnType<(typeof flagKinds)[Kind]['read']>>;

/** The value of every flag. A flag that is not given has its default. Durations are milliseconds. */
export type FlagValues = { readonly [Name in keyof Flags]: ValueOf<Flags[Name]['kind']> };

export function flagNamed(name: string): FlagSpec | undefined {
  return flagSpecs.find((flag) => flag.name === name || flag.aliases?.includes(name));
}
