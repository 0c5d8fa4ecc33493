// The executable rollout-group-agent: reads flags, answers HTTP from the first moment, starts the agent, and hands over when it is told to end.
import { connectionProblem } from '../../cluster/connection/connection.ts';
import { loadConnection } from '../../cluster/connection/kubeconfig.ts';
import { connectionProcess, processClock } from '../../cluster/connection/process-env.ts';
import { type Agent, startAgent } from '../agent.ts';
import type { Log } from '../env.ts';
import { createMetrics } from '../metrics/metrics.ts';
import { createWriters, handOver } from '../published/writers.ts';
import { executableName, usageText } from './flags-help.ts';
import { parseFlags } from './flags-parse.ts';
import { type AgentSettings, settingsOf } from './flags-settings.ts';
import { startHttpServer } from './http-server.ts';
import { keepMemorySmall, processIdentity, processLog, realEnv } from './process-env.ts';
import { turnLog } from './turn-log.ts';

const version = process.env['ROLLOUT_GROUP_VERSION'] ?? '0.0.0-source';

/** The kubelet gives 30 s by default. */
const handOverMs = 25_000;

process.stderr.on('error', () => undefined);
process.stdout.on('error', () => undefined);
await run(process.argv.slice(2));

async function run(words: readonly string[]): Promise<void> {
  const parsed = parseFlags(words);
  switch (parsed.kind) {
    case 'help':
      process.stdout.write(usageText());
      return;
    case 'version':
      process.stdout.write(`${executableName} ${version}\n`);
      return;
    case 'wrong':
      process.stderr.write(`${parsed.message}\n${usageText()}`);
      process.exitCode = 2;
      return;
    case 'values': {
      const settings = settingsOf(parsed.values, { identity: processIdentity() });
      if ('refused' in settings) return refuse(settings.refused);
      try {
        await start(settings);
      } catch (error) {
        refuse(error instanceof Error ? error.message : String(error));
        // The HTTP server may be there already.
        process.exit();
      }
    }
  }
}

/** One line, and the end. */
function refuse(sentence: string): void {
  process.stderr.write(`${sentence.replace(/\s*\n\s*/g, ' ')}\n`);
  process.exitCode = 1;
}

async function start(settings: AgentSettings): Promise<void> {
  keepMemorySmall();
  const { agent: config, server } = settings;
  const log = processLog(settings.log);
  const metrics = createMetrics({ clock: processClock, version });
  let agent: Agent | undefined;
  const http = await startHttpServer({
    ...server,
    ...{ metrics: metrics.text, observer: metrics.httpServer, clock: processClock, log },
    isReady: () => agent?.isReady() === true,
    // A process that hangs does not answer at all.
    isAlive: () => true,
  });
  log.info('listening', { port: http.port, version, identity: config.identity });
  endOnDefects(log);

  const { apiUrl, configFile } = settings.kubernetes;
  const isGiven = apiUrl !== undefined && configFile !== undefined;
  const connection = await loadConnection(
    isGiven ? { source: 'kubeconfig', kubeconfig: configFile, server: apiUrl } : { source: 'in-cluster' },
    connectionProcess(),
  );
  const real = realEnv({ connection, settings, metrics, log, userAgent: `${executableName}/${version}` });
  const writers = createWriters({ env: real.writersEnv, config, onWrite: metrics.wrote });
  agent = startAgent(real.env, config, [metrics.listener, turnLog(log), ...writers.listeners]);
  log.info('the agent was started', { server: connection.server, namespaces: config.namespaces?.join(',') ?? '*' });

  const started = agent;
  endOnSignal(log, async () => {
    await handOver(real.env, started, writers);
    await http.close();
    real.close();
  });
}

/** Hands over at the first signal and exits with 0; the second one ends at once. */
function endOnSignal(log: Log, handOver: () => Promise<void>): void {
  let isEnding = false;
  const end = (signal: NodeJS.Signals): void => {
    if (isEnding) process.exit(1);
    isEnding = true;
    log.info('handing over', { signal });
    setTimeout(() => {
      // It ends as it was told to; what the API server did not take in that time expires, or is told by the next leader.
      log.error('the hand-over took too long', { ms: handOverMs });
      process.exit(0);
    }, handOverMs).unref();
    handOver().then(
      () => process.exit(0),
      (error: unknown) => fail(log, 'the hand-over failed', error),
    );
  };
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
}

/** What nobody has thought of must not go on acting. */
function endOnDefects(log: Log): void {
  process.on('unhandledRejection', (error) => fail(log, 'a defect: something failed unnoticed', error));
  process.on('uncaughtException', (error) => fail(log, 'a defect: something failed unnoticed', error));
}

function fail(log: Log, message: string, error: unknown): void {
  const { stack } = error instanceof Error ? error : { stack: String(error) };
  log.error(message, { problem: connectionProblem(error), err: stack });
  process.exit(1);
}
