// Starts the parts of the executable rollout-group-agent: HTTP, the agent and the webhooks. Stops them at SIGTERM or SIGINT.

import { type Connection, connectionProblem } from '../../cluster/connection/connection.ts';
import { connectionProcess, processClock } from '../../cluster/connection/process-env.ts';
import { loadConnection } from '../../cluster/kubeconfig/kubeconfig.ts';
import { agentName } from '../../policies/objects/agent-deployment.ts';
import { startAdmission } from '../admission/guard.ts';
import { Agent } from '../agent.ts';
import type { Log } from '../env.ts';
import { version } from '../flags/command-line.ts';
import type { AgentSettings } from '../flags/settings.ts';
import { Metrics } from '../metrics/metrics.ts';
import { countZoneBudgets } from '../metrics/zone-budget-counter.ts';
import { ReadyTimes, writerTurn } from '../published/ready-times.ts';
import { createWriters, handOver } from '../published/writers.ts';
import { type Degradations, degradationsOf, type TurnListener } from '../report.ts';
import { startHttpServer } from './http-server.ts';
import { processLog, type RealEnv, realEnv } from './process-env.ts';
import type { ServedWebhook } from './serve-webhook.ts';
import { turnLog } from './turn-log.ts';

/** The time limit of the shutdown, below the 30 s that the kubelet allows by default. A webhook drain of more than 10 s extends it. */
const handOverMs = 25_000;
/** The time after the drain in which open responses end and the other parts stop. */
const afterDrainMs = 15_000;

/** Starts the HTTP server, then connects to the API server and starts the other parts. The HTTP server stops after these parts. */
export async function start(settings: AgentSettings): Promise<void> {
  const log = processLog(settings.log);
  const metrics = new Metrics(processClock, version);
  let parts: Awaited<ReturnType<typeof startParts>> | undefined;
  let isEnding = false;
  const http = await startHttpServer({
    ...settings.server,
    metrics: () => metrics.text(),
    observer: metrics.httpServer,
    clock: processClock,
    log,
    isReady: () => parts !== undefined && !isEnding && parts.isReady(),
  });
  log.info('listening', { port: http.port, version, identity: settings.agent.identity });
  endOnDefects(log);
  const connection = await connect(settings);
  const real = realEnv({ connection, settings, metrics, log, userAgent: `${agentName}/${version}` });
  const { agent } = settings;
  parts = await startParts(real, { ...settings, agent: { ...agent, lease: { ...agent.lease, version } } }, metrics, turnLog(log));
  const { webhook, stop } = parts;
  const what = settings.runsAgent ? 'agent started' : 'webhooks started';
  const port = webhook === undefined ? {} : { webhookPort: webhook.port };
  log.info(what, { server: connection.server, namespaces: settings.agent.namespaces?.join(',') ?? '*', ...port });
  const withinMs = Math.max(handOverMs, webhook === undefined ? 0 : (settings.webhook?.drainMs ?? 0) + afterDrainMs);
  endOnSignal(log, withinMs, async () => {
    isEnding = true;
    await stop();
    await http.close();
    real.close();
  });
}

function connect({ kubernetes: { apiUrl, configFile } }: AgentSettings): Promise<Connection> {
  const isGiven = apiUrl !== undefined && configFile !== undefined;
  return loadConnection(
    isGiven ? { source: 'kubeconfig', kubeconfig: configFile, server: apiUrl } : { source: 'in-cluster' },
    connectionProcess(),
  );
}

/** Starts the agent, or only caches and policies for admission. Then starts the webhooks, if configured, and the writer of ready times. */
async function startParts(real: RealEnv, settings: AgentSettings, metrics: Metrics, turns: TurnListener) {
  const degradations = degradationsOf([metrics.listener, turns]);
  const leading = settings.runsAgent ? startLeading({ real, settings, metrics, turns, degradations }) : undefined;
  const admission = leading === undefined ? startAdmission(real.admissionEnv, settings.agent, degradations.of('admission')) : undefined;
  const watching = leading?.agent ?? admission;
  if (watching === undefined) throw new Error('neither the agent nor admission was started');
  const { guard, followed } = watching;
  let webhook: ServedWebhook | undefined;
  if (settings.webhook !== undefined) {
    // Loaded only if used: an agent without webhooks starts faster and needs less memory.
    const { serveWebhook } = await import('./serve-webhook.ts');
    const onDegraded = degradations.of('webhook');
    webhook = await serveWebhook({ settings, metrics, webhook: settings.webhook, env: real.admissionEnv, guard, followed, onDegraded });
  }
  const readyTimes = new ReadyTimes(real.admissionEnv, {
    followed,
    turn: () => writerTurn(leading?.isLeading()),
    patchTimeoutMs: settings.readyPatchTimeoutMs,
    onPatch: metrics.readyTimeWritten,
  });
  leading?.onChange(() => readyTimes.wake());
  const stopCounting = countZoneBudgets(real.admissionEnv, followed.zoneBudgets, metrics.zoneBudgetObserved);
  return {
    webhook,
    isReady: (): boolean => (leading?.agent.isReady() ?? true) && (webhook?.isReady() ?? true),
    stop: async (): Promise<void> => {
      // The webhook answers during its drain, because the API server still calls this process, even after another process became leader.
      const served = webhook?.close();
      readyTimes.stop();
      stopCounting();
      await Promise.all([leading?.handOver(served), served]);
      admission?.stop();
    },
  };
}

interface LeadingParts {
  readonly real: RealEnv;
  readonly settings: AgentSettings;
  readonly metrics: Metrics;
  readonly turns: TurnListener;
  readonly degradations: Degradations;
}

function startLeading({ real, settings: { agent: config }, metrics, turns, degradations }: LeadingParts) {
  let isLeading = false;
  const changed: (() => void)[] = [];
  const writers = createWriters({
    env: real.writersEnv,
    config,
    mayWrite: () => agent.mayWrite(),
    onWrite: (writer, result) => metrics.wrote(writer, result),
    onNotified: (channel, result) => metrics.notified(channel, result),
  });
  const leadership: TurnListener = {
    turnEnded: () => undefined,
    leadershipChanged: (state) => {
      isLeading = state.isLeader;
      for (const listener of changed) listener();
    },
  };
  for (const listener of writers.listeners) degradations.listen(listener);
  // Degradations of the agent reach these listeners together with those of the rest of the process.
  const listeners = [metrics.listener, turns, ...writers.listeners].map((listener) => ({ ...listener, degraded: () => undefined }));
  const reporting: TurnListener = { turnEnded: () => undefined, degraded: degradations.of('agent') };
  const agent = new Agent(real.env, config, [...listeners, reporting, leadership], real.admissionEnv);
  return {
    agent,
    isLeading: () => isLeading,
    onChange: (listener: () => void) => void changed.push(listener),
    /** Stops the agent and its writers. `served` resolves when the webhook answers no further review. */
    handOver: (served: Promise<void> | undefined) => handOver(real.env, agent, writers, served),
  };
}

/** Hands over at the first signal and exits with 0, or with 1 if the hand-over failed. A second signal ends the process at once. */
function endOnSignal(log: Log, withinMs: number, handOver: () => Promise<void>): void {
  let isEnding = false;
  const end = (signal: NodeJS.Signals): void => {
    if (isEnding) process.exit(1);
    isEnding = true;
    log.info('handing over', { signal });
    setTimeout(() => {
      // Exit code 0, because the stop was requested. Unfinished writes do no harm: claims expire, and the next leader publishes the state.
      log.error('hand-over timed out', { ms: withinMs });
      process.exit(0);
    }, withinMs).unref();
    handOver().then(
      () => process.exit(0),
      (error: unknown) => fail(log, 'hand-over failed', error),
    );
  };
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
}

function endOnDefects(log: Log): void {
  process.on('unhandledRejection', (error) => fail(log, 'unhandled error', error));
  process.on('uncaughtException', (error) => fail(log, 'unhandled error', error));
}

function fail(log: Log, message: string, error: unknown): void {
  const { stack } = error instanceof Error ? error : { stack: String(error) };
  log.error(message, { problem: connectionProblem(error), err: stack });
  process.exit(1);
}
