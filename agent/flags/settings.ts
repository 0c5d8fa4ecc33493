// Checks the flags in a fixed order and turns them into the settings of the process.
import type { ClusterValidation } from '../../cluster/connection/http-server.ts';
import { listed } from '../../policies/wording.ts';
import type { AgentConfig, PolicySourceName } from '../config.ts';
import type { LogFormat, LogLevel } from '../process/log.ts';
import type { FlagValues } from './flags.ts';

export interface AgentSettings {
  readonly agent: AgentConfig;
  readonly log: { readonly format: LogFormat; readonly level: LogLevel };
  readonly server: { readonly port: number; readonly address?: string; readonly clusterValidation?: ClusterValidation };
  readonly kubernetes: {
    readonly apiUrl?: string;
    readonly configFile?: string;
    /** Absent if requests are not limited. */
    readonly rateLimit?: { readonly qps: number; readonly burst: number };
  };
  readonly policyDirectory?: { readonly path: string; readonly rereadMs: number };
  readonly readyPatchTimeoutMs: number;
  /** True if this process runs the agent, with or without webhooks. */
  readonly runsAgent: boolean;
  /** Absent if this process serves no webhooks. */
  readonly webhook?: WebhookSettings;
}

export interface WebhookSettings {
  readonly port: number;
  readonly address?: string;
  readonly requestTimeoutMs: number;
  readonly drainMs: number;
  /** The certificate is self-signed and kept in a Secret, or read from files. */
  readonly certificate:
    | {
        readonly kind: 'self-signed';
        readonly secretName: string;
        readonly dnsName: string;
        readonly organization: string;
        readonly lifetimeMs: number;
        readonly injectsAuthority: boolean;
      }
    | { readonly kind: 'files'; readonly certFile: string; readonly keyFile: string; readonly caFile?: string };
  readonly clientCaFile?: string;
  /** The ConfigMap of the zone tracker; absent if annotations record the times of downscales. */
  readonly zoneTracker?: string;
  /** True if the webhook /admission/prepare-downscale prepares the pods of adopted groups. */
  readonly isPreparedElsewhere: boolean;
}

/** The reason why the flags are invalid: one sentence without a full stop. The process prints it and exits with code 1. */
interface Refusal {
  readonly refused: string;
}

/** The longest timeout of a request. It also replaces 0, with which grafana/rollout-operator sets no timeout. */
const longestTimeoutMs = 3_600_000;

/** Returns the settings or the first error. The checks of grafana/rollout-operator come first. `identity` is the default of `-identity`. */
export function settingsOf(values: FlagValues, { identity }: { readonly identity: string }): AgentSettings | Refusal {
  const wrong = originalProblem(values);
  if (wrong !== undefined) return { refused: wrong };
  const userAgents = regularExpressions(values['server.cluster-validation.http.excluded-user-agents']);
  if ('refused' in userAgents) return userAgents;
  const format = logFormats.find((one) => one === values['log.format']);
  if (format === undefined) return { refused: `-log.format is ${JSON.stringify(values['log.format'])}: it must be ${listed(logFormats)}` };
  const level = logLevels.find((one) => one === values['log.level']);
  if (level === undefined) return { refused: `-log.level is ${JSON.stringify(values['log.level'])}: it must be ${listed(logLevels)}` };
  const sources = policySources(values['policy-sources']);
  if ('refused' in sources) return sources;
  const mode = leaseModes.find((one) => one === values['leader-election']);
  if (mode === undefined)
    return { refused: `-leader-election is ${JSON.stringify(values['leader-election'])}: it must be ${listed(leaseModes)}` };
  const ours = agentProblem(values) ?? webhookProblem(values);
  if (ours !== undefined) return { refused: ours };
  const given = <Name extends string>(name: Name, text: string) => (text === '' ? {} : ({ [name]: text } as Record<Name, string>));
  return {
    agent: agentConfig(values, { identity, sources: sources.names, mode }),
    log: { format, level },
    server: {
      port: values['server.port'],
      ...given('address', values['server.address']),
      ...(values['server.cluster-validation.http.enabled'] ? { clusterValidation: clusterValidation(values, userAgents.expressions) } : {}),
    },
    kubernetes: {
      ...given('apiUrl', values['kubernetes.api-url']),
      ...given('configFile', values['kubernetes.config-file']),
      ...rateLimit(values),
    },
    ...(values['policies'] === '' ? {} : { policyDirectory: { path: values['policies'], rereadMs: values['policies.reread'] } }),
    readyPatchTimeoutMs: values['zpdb.pod-ready-annotation-patch-timeout'],
    runsAgent: values['run'] !== 'webhook',
    ...(values['server-tls.enabled'] && values['run'] !== 'agent' ? { webhook: webhookSettings(values) } : {}),
  };
}

function webhookSettings(values: FlagValues): WebhookSettings {
  const [address, caFile, clientCaFile] = [values['server.address'], values['server-tls.ca-file'], values['server-tls.client-ca-file']];
  return {
    port: values['server-tls.port'],
    ...(address === '' ? {} : { address }),
    requestTimeoutMs: values['server-tls.request-timeout'],
    drainMs: values['server-tls.drain'],
    certificate: values['server-tls.self-signed-cert.enabled']
      ? {
          kind: 'self-signed',
          secretName: values['server-tls.self-signed-cert.secret-name'],
          dnsName: values['server-tls.self-signed-cert.dns-name'] || `rollout-operator.${values['kubernetes.namespace']}.svc`,
          organization: values['server-tls.self-signed-cert.org'],
          lifetimeMs: values['server-tls.self-signed-cert.expiration'],
          injectsAuthority: values['webhooks.update-ca-bundle'],
        }
      : {
          kind: 'files',
          certFile: values['server-tls.cert-file'],
          keyFile: values['server-tls.key-file'],
          ...(caFile === '' ? {} : { caFile }),
        },
    ...(clientCaFile === '' ? {} : { clientCaFile }),
    ...(values['use-zone-tracker'] ? { zoneTracker: values['zone-tracker.config-map-name'] } : {}),
    isPreparedElsewhere: values['prepare-downscale.registered'],
  };
}

const logFormats = ['logfmt', 'json'] as const satisfies readonly LogFormat[];
const logLevels = ['debug', 'info', 'warn', 'error'] as const satisfies readonly LogLevel[];
const sourceNames = ['directory', 'objects', 'adopted'] as const satisfies readonly PolicySourceName[];
const leaseModes = ['required', 'auto', 'off'] as const;
const runs = ['all', 'agent', 'webhook'] as const;
/** The shortest lifetime of a certificate, so that every replica reads the certificate before it expires. */
const shortestLifetimeMs = 60_000;

/** Returns the first problem that grafana/rollout-operator also reports. The order of the checks is the same. */
function originalProblem(values: FlagValues): string | undefined {
  if (values['kubernetes.cluster-domain'] === '') return '-kubernetes.cluster-domain must not be empty';
  if (values['kubernetes.namespace'] === '') return '-kubernetes.namespace must not be empty: it names the namespace of the agent';
  if ((values['kubernetes.api-url'] === '') !== (values['kubernetes.config-file'] === ''))
    return '-kubernetes.api-url and -kubernetes.config-file must be set together, or neither';
  if (values['use-zone-tracker'] && values['zone-tracker.config-map-name'] === '')
    return '-zone-tracker.config-map-name must not be empty with -use-zone-tracker';
  if (values['kubernetes.client-qps'] > 0 && values['kubernetes.client-burst'] < 1)
    return '-kubernetes.client-burst must be at least 1 when -kubernetes.client-qps is above 0';
  if (values['server-tls.request-timeout'] <= 0) return '-server-tls.request-timeout must be above 0';
  if (values['zpdb.pod-ready-annotation-patch-timeout'] <= 0) return '-zpdb.pod-ready-annotation-patch-timeout must be above 0';
  if (values['server.cluster-validation.http.soft-validation'] && !values['server.cluster-validation.http.enabled'])
    return '-server.cluster-validation.http.soft-validation needs -server.cluster-validation.http.enabled';
  return undefined;
}

function agentProblem(values: FlagValues): string | undefined {
  if (values['lease.retry-period'] <= 0 || values['lease.renew-deadline'] <= values['lease.retry-period'])
    return '-lease.renew-deadline must be longer than -lease.retry-period, which must be above 0';
  if (values['lease.duration'] <= values['lease.renew-deadline'] || values['lease.duration'] < 1000)
    return '-lease.duration must be longer than -lease.renew-deadline, and at least 1s';
  if (values['lease.name'] === '') return '-lease.name must not be empty';
  if (values['publish.every'] < 0) return '-publish.every must not be negative';
  if (values['policies.reread'] <= 0) return '-policies.reread must be above 0';
  const wrong = values['namespaces'].find((name) => name !== '*' && !/^[a-z\d](?:[-a-z\d]{0,61}[a-z\d])?$/.test(name));
  return wrong === undefined ? undefined : `-namespaces names ${JSON.stringify(wrong)}, which is not a valid namespace name`;
}

function webhookProblem(values: FlagValues): string | undefined {
  if (!runs.some((one) => one === values['run'])) return `-run is ${JSON.stringify(values['run'])}: it must be ${listed(runs)}`;
  const isServed = values['server-tls.enabled'];
  if (values['run'] === 'webhook' && !isServed) return '-run=webhook needs -server-tls.enabled=true';
  if (values['server-tls.drain'] < 0) return '-server-tls.drain must not be negative';
  if (!isServed) return undefined;
  if (values['server-tls.self-signed-cert.enabled']) {
    const isTooShort = values['server-tls.self-signed-cert.expiration'] < shortestLifetimeMs;
    return isTooShort ? '-server-tls.self-signed-cert.expiration must be at least 1m' : undefined;
  }
  const isMissing = values['server-tls.cert-file'] === '' || values['server-tls.key-file'] === '';
  return isMissing
    ? '-server-tls.cert-file and -server-tls.key-file are required if -server-tls.self-signed-cert.enabled is false'
    : undefined;
}

function agentConfig(
  values: FlagValues,
  { identity, sources, mode }: { identity: string; sources: readonly PolicySourceName[]; mode: AgentConfig['lease']['mode'] },
): AgentConfig {
  const agentNamespace = values['kubernetes.namespace'];
  const named = values['namespaces'];
  return {
    namespaces: named.includes('*') ? undefined : named.length === 0 ? [agentNamespace] : [...new Set(named)].sort(),
    agentNamespace,
    identity: values['identity'] === '' ? identity : values['identity'],
    clusterDomain: values['kubernetes.cluster-domain'],
    policySources: sources,
    ...(values['intents.stamped'] ? { areIntentsStamped: true } : {}),
    ...(values['commits.read'] ? { commitsFrom: { argoCdNamespace: values['commits.argo-cd-namespace'] } } : {}),
    podTimeoutMs: bounded(values['pods.client-timeout']),
    kubernetesTimeoutMs: bounded(values['kubernetes.client-timeout']),
    retryMs: Math.max(shortestRetryMs, values['reconcile.interval']),
    lease: {
      mode,
      name: values['lease.name'],
      durationMs: values['lease.duration'],
      renewDeadlineMs: values['lease.renew-deadline'],
      retryPeriodMs: values['lease.retry-period'],
    },
    publishEveryMs: values['publish.every'],
  };
}

/** The lowest value of `retryMs`, so that a failing turn does not run in a busy loop. */
const shortestRetryMs = 10;

function bounded(timeoutMs: number): number {
  return timeoutMs <= 0 ? longestTimeoutMs : Math.min(timeoutMs, longestTimeoutMs);
}

function rateLimit(values: FlagValues): Pick<AgentSettings['kubernetes'], 'rateLimit'> {
  const [qps, burst] = [values['kubernetes.client-qps'], values['kubernetes.client-burst']];
  return qps > 0 && Number.isFinite(qps) ? { rateLimit: { qps, burst } } : {};
}

function clusterValidation(values: FlagValues, excludedUserAgents: readonly RegExp[]): ClusterValidation {
  const paths = values['server.cluster-validation.http.excluded-paths'];
  return {
    label: values['kubernetes.namespace'],
    isSoft: values['server.cluster-validation.http.soft-validation'],
    // API servers never send the header X-Cluster. If these paths were checked, the agent would reject every call of a webhook.
    excludedPaths: paths.length === 0 ? ['admission/'] : paths,
    excludedUserAgents,
  };
}

function regularExpressions(texts: readonly string[]): { readonly expressions: readonly RegExp[] } | Refusal {
  const expressions: RegExp[] = [];
  for (const text of texts) {
    try {
      expressions.push(new RegExp(text));
    } catch {
      return {
        refused: `-server.cluster-validation.http.excluded-user-agents has ${JSON.stringify(text)}, which is not a valid regular expression`,
      };
    }
  }
  return { expressions };
}

function policySources(words: readonly string[]): { readonly names: readonly PolicySourceName[] } | Refusal {
  const names: PolicySourceName[] = [];
  for (const word of words) {
    const name = sourceNames.find((one) => one === word);
    if (name === undefined) return { refused: `-policy-sources names ${JSON.stringify(word)}: it must be ${listed(sourceNames)}` };
    if (!names.includes(name)) names.push(name);
  }
  return names.length === 0 ? { refused: '-policy-sources must name at least one source' } : { names };
}
