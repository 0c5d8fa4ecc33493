// Starts the webhooks of the executable: certificates, endpoints and server. No other file of the agent imports webhook/.
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { agentName } from '../../policies/objects/agent-deployment.ts';
import { defined } from '../../policies/values/defined.ts';
import { type Certificates, startCertificates } from '../../webhook/certificates/certificates.ts';
import { certificateFiles } from '../../webhook/certificates/file-source.ts';
import { evictionCache } from '../../webhook/compat/eviction/eviction-cache.ts';
import { podEviction } from '../../webhook/compat/eviction/pod-eviction.ts';
import { noDownscale } from '../../webhook/compat/no-downscale.ts';
import { prepareDownscale } from '../../webhook/compat/prepare/downscale.ts';
import { startZoneBudgets, type ZoneBudgets, zpdbValidation } from '../../webhook/compat/zpdb.ts';
import { defaultConfig } from '../../webhook/config.ts';
import { enforceEndpoint } from '../../webhook/native/enforce.ts';
import { pinEndpoint } from '../../webhook/native/pin-endpoint.ts';
import { stampEndpoint } from '../../webhook/native/stamp-endpoint.ts';
import { validateEndpoint } from '../../webhook/native/validate-endpoint.ts';
import { startNarrowing } from '../../webhook/registration/narrow.ts';
import { startRegistration } from '../../webhook/registration/registration.ts';
import type { ServedEndpoint } from '../../webhook/server/exchange.ts';
import { startWebhook } from '../../webhook/webhook.ts';
import type { AdmissionGuard } from '../admission/guard.ts';
import type { AgentEnv } from '../env.ts';
import type { AgentSettings, WebhookSettings } from '../flags/settings.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { Degradation } from '../report.ts';
import type { SharedWatches } from '../watched/caches.ts';

export interface ServeOptions {
  readonly settings: AgentSettings;
  readonly webhook: WebhookSettings;
  readonly env: AgentEnv;
  readonly guard: AdmissionGuard;
  readonly followed: SharedWatches;
  /** Receives the complete list of degradations at each check of the webhook configurations. */
  readonly onDegraded: (degradations: readonly Degradation[]) => void;
  readonly metrics: Metrics;
}

export type ServedWebhook = Awaited<ReturnType<typeof serveWebhook>>;

/** The deadline of the native endpoints in milliseconds. Their webhook configurations allow 5 s. */
const nativeLimitMs = 4_000;

/** Starts the webhooks. Resolves when the server listens. Rejects if it cannot listen, or if the CA of clients cannot be read. */
export async function serveWebhook(options: ServeOptions) {
  const { settings, webhook, env, metrics, followed } = options;
  const clientCa = webhook.clientCaFile === undefined ? undefined : readFileSync(webhook.clientCaFile, 'utf8');
  const certificates = certificatesOf(options);
  metrics.webhook.setCertificateSource(certificates);
  const budgets = startZoneBudgets({ log: env.log, followed: followed.zoneBudgets });
  const stopLogging = logProblems(env, certificates.degradations);
  const stopRegistration = registrationOf(options, certificates);
  const stop = (): void => {
    stopLogging();
    stopRegistration();
    budgets.stop();
    certificates.stop();
  };
  try {
    const server = await startWebhook({
      config: {
        ...defaultConfig,
        port: webhook.port,
        requestTimeoutMs: webhook.requestTimeoutMs,
        drainMs: webhook.drainMs,
        ...defined({ clientCa, address: webhook.address, clusterValidation: settings.server.clusterValidation }),
      },
      endpoints: endpointsOf(options, budgets),
      tls: certificates,
      observer: { ...metrics.httpServer, ...metrics.webhook },
      env,
    });
    return {
      port: server.port,
      /** Returns whether reviews can be answered: a certificate is served, and the caches, policies and budgets are known. */
      isReady: (): boolean => server.isReady() && options.guard.isSettled() && budgets.isSettled(),
      /** Stops after the drain, so that no request is lost. */
      close: async (): Promise<void> => {
        await server.close();
        stop();
      },
    };
  } catch (error) {
    stop();
    throw error;
  }
}

/** Narrows the webhook configurations to protected objects if this process may write them. Checks that they are as installed. */
function registrationOf({ settings, webhook, env, guard, onDegraded }: ServeOptions, { configurations }: Certificates): () => void {
  const { agentNamespace: namespace, namespaces } = settings.agent;
  const common = { env, namespace, configurations, members: () => guard.members(), pinned: () => guard.pinned() };
  const { certificate } = webhook;
  const isWriting = certificate.kind === 'files' || certificate.injectsAuthority;
  const narrowing = isWriting ? startNarrowing(common) : undefined;
  const stop = startRegistration({
    ...common,
    namespaces,
    others: () => {
      const message = narrowing?.problem();
      return message === undefined ? [] : [{ id: 'webhook/narrowing', reason: 'invalid', message }];
    },
    onCheck: onDegraded,
  });
  return () => {
    stop();
    narrowing?.stop();
  };
}

const checkMs = 60_000;

/** Logs each problem of certificates and configurations when it begins, and once when all are resolved. */
export function logProblems({ timers, log }: Pick<AgentEnv, 'timers' | 'log'>, problems: () => readonly string[]): () => void {
  let logged: readonly string[] = [];
  let cancel = (): void => undefined;
  const checkProblems = (): void => {
    const now = problems();
    for (const problem of now) if (!logged.includes(problem)) log.warn('webhook problem', { problem });
    if (now.length === 0 && logged.length > 0) log.info('webhook problems resolved');
    logged = now;
    cancel = timers.after(checkMs, checkProblems);
  };
  // The first check waits, because the certificates are still being read at the start.
  cancel = timers.after(checkMs, checkProblems);
  return () => cancel();
}

function certificatesOf({ settings, webhook: { certificate }, env }: ServeOptions): Certificates {
  const { agentNamespace, clusterDomain } = settings.agent;
  return startCertificates({
    env,
    namespace: agentNamespace,
    files: certificateFiles,
    randomBytes,
    certificate:
      certificate.kind === 'files'
        ? certificate
        : { ...certificate, clusterDomain, service: certificate.dnsName.split('.')[0] ?? certificate.dnsName },
  });
}

function endpointsOf({ settings, webhook, env, guard, metrics }: ServeOptions, budgets: ZoneBudgets): readonly ServedEndpoint[] {
  const { agentNamespace, namespaces, clusterDomain, podTimeoutMs, lease } = settings.agent;
  const cache = evictionCache(env, { guard, isAlone: () => lease.mode !== 'required' });
  const { isPreparedElsewhere } = webhook;
  const enforce = enforceEndpoint({ env, guard, own: { namespace: agentNamespace, names: ownNames }, namespaces, isPreparedElsewhere });
  const validate = validateEndpoint(env, { agentNamespace, groups: (namespace) => guard.everyGroup(namespace) });
  const native = [enforce, enforce.others, validate, stampEndpoint(env), pinEndpoint({ env, guard })];
  return [
    noDownscale(env),
    prepareDownscale(env, {
      clusterDomain,
      podTimeoutMs,
      native: enforce.preview,
      ...(webhook.zoneTracker === undefined ? {} : { zoneTracker: { configMapName: webhook.zoneTracker } }),
    }),
    podEviction(env, {
      budgets,
      cache,
      native: enforce.preview,
      observer: { onBegin: metrics.webhook.evictionBegan, onEnd: metrics.webhook.evictionEnded },
    }),
    zpdbValidation(),
    ...native.map((endpoint): ServedEndpoint => ({ ...endpoint, withinMs: nativeLimitMs })),
  ];
}

/** The workloads of this project. `/admission/enforce` allows every change of them and of their pods in the agent's namespace. */
const ownNames: readonly string[] = [agentName, 'rollout-group-webhook', 'rollout-operator'];
