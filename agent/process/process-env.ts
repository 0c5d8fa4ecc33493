// Creates the ports of the agent for the executable: clock, timers, API server, pods, policy directory and the log on standard error.
import type { Connection } from '../../cluster/connection/connection.ts';
import { createExchanges } from '../../cluster/connection/http-exchange.ts';
import { processClock, processEnv, processTimers } from '../../cluster/connection/process-env.ts';
import { KubernetesTransport } from '../../cluster/connection/transport.ts';
import type { Log } from '../env.ts';
import type { AgentSettings } from '../flags/settings.ts';
import { SourceHttp } from '../gates/source-http.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { openPolicyDirectory } from '../policies/policy-directory.ts';
import { createNotifyHttp, createPodHttp } from './http-clients.ts';
import { createLog } from './log.ts';

export function processLog({ format, level }: AgentSettings['log']): Log {
  return createLog({ format, level, clock: processClock, write: (line) => void process.stderr.write(line) });
}

export type RealEnv = ReturnType<typeof realEnv>;

interface RealEnvOptions {
  readonly connection: Connection;
  readonly settings: AgentSettings;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly userAgent: string;
}

/** The most connections to one notification service. Each channel sends one request at a time. */
const maxServiceSockets = 16;
/** The most connections to one metric source. A source that hangs has one open query for each gate. */
const maxSourceSockets = 64;

export function realEnv({ connection, settings, metrics, log, userAgent }: RealEnvOptions) {
  const cluster = settings.agent.agentNamespace;
  const transport = (isLimited = true): KubernetesTransport =>
    new KubernetesTransport(connection, {
      userAgent,
      extraHeaders: { 'X-Cluster': cluster },
      ...(settings.kubernetes.rateLimit === undefined || !isLimited ? {} : { rateLimit: settings.kubernetes.rateLimit }),
      onAnswer: (exchange) => metrics.kubernetesAnswered(exchange),
      onThrottled: (apiGroup) => metrics.kubernetesThrottled(apiGroup),
    });
  const pods = createPodHttp({
    env: process.env,
    userAgent,
    cluster,
    clock: processClock,
    onAnswer: (exchange) => metrics.podAnswered(exchange),
    onWrongCluster: (route) => {
      log.warn('pod answered 511: wrong X-Cluster', { route, cluster });
      metrics.wrongClusterAnswered({ route, cluster });
    },
  });
  const [acting, writing, admission] = [transport(), transport(), transport(false)];
  const sources = createExchanges({ env: process.env, maxSockets: maxSourceSockets });
  // MetricSources and their Secrets are read over the writing transport, so that gate queries never delay actions.
  const gates = new SourceHttp({
    kubernetes: writing,
    clock: processClock,
    log,
    userAgent,
    exchange: sources.exchange,
    agentNamespace: settings.agent.agentNamespace,
    policySources: settings.agent.policySources,
  });
  const services = createExchanges({ env: process.env, maxSockets: maxServiceSockets });
  const notify = createNotifyHttp(services, userAgent);
  const { policyDirectory: directory } = settings;
  const rest = {
    pods,
    log,
    ...(directory === undefined ? {} : { policyDirectory: openPolicyDirectory({ ...directory, timers: processTimers }) }),
  };
  return {
    env: { ...processEnv(acting), ...rest, gates },
    /** The same ports with separate connections and rate limit, so that publications never delay actions. */
    writersEnv: { ...processEnv(writing), ...rest, notify },
    /** The same ports without a rate limit: an admission request must be answered within seconds. */
    admissionEnv: { ...processEnv(admission), ...rest },
    close: (): void => {
      for (const one of [acting, writing, admission, pods, sources, services]) one.close();
    },
  };
}
