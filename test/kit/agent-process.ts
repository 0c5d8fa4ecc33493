// Runs one process of the agent in a test. Its requests can fail, and it can crash between any two requests. Collects its reports.
import { Agent } from '../../agent/agent.ts';
import type { AgentConfig } from '../../agent/config.ts';
import type { AgentEnv, GateAnswer, GateQuery, LogFields, NotifyHttp, PodRequest, PodResponse, PolicyDirectory } from '../../agent/env.ts';
import { Notifier } from '../../agent/notify/notifier.ts';
import type { Degradation, TurnListener, TurnReport } from '../../agent/report.ts';
import type { KubernetesRequest, KubernetesStream } from '../../cluster/env.ts';
import { TransportFailure } from '../../cluster/request/failure.ts';
import type { Finding } from '../../policies/findings/finding.ts';
import type { VirtualEnv } from './virtual-env.ts';

/** The moments of a fault: before a request is sent, or after its response has arrived. */
export type Moment = 'beforeSend' | 'afterReply';

export interface ProcessOptions {
  readonly env: VirtualEnv;
  readonly name?: string;
  readonly config?: Partial<AgentConfig>;
  readonly policyDirectory?: PolicyDirectory;
  readonly pods?: (request: PodRequest) => Promise<PodResponse>;
  /** Answers for the providers of gates. Absent: the process reads no gates. */
  readonly gates?: (query: GateQuery) => Promise<GateAnswer>;
  /** Answers for the notification services. Absent: the process notifies no service. */
  readonly notify?: NotifyHttp['call'];
  /** Further listeners of turns. */
  readonly listeners?: (env: AgentEnv, config: AgentConfig) => readonly TurnListener[];
  /** Called before each request and after its response. `crash` ends the process there. `lose` drops the request or the response. */
  readonly fault?: (site: string, moment: Moment) => 'crash' | 'lose' | undefined;
}

export const defaultConfig: AgentConfig = {
  namespaces: ['mimir'],
  agentNamespace: 'mimir',
  identity: 'agent-1',
  clusterDomain: 'cluster.local.',
  policySources: ['directory', 'objects', 'adopted'],
  podTimeoutMs: 5000,
  kubernetesTimeoutMs: 30_000,
  retryMs: 1000,
  lease: { mode: 'required', name: 'rollout-group', durationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2000 },
  publishEveryMs: 5000,
};

/** Starts an agent in a separate process environment. */
export function startProcess(options: ProcessOptions) {
  const { env, name = 'agent-1', config = {}, policyDirectory, pods, gates, notify, listeners, fault = () => undefined } = options;
  const reports: TurnReport[] = [];
  const logs: string[] = [];
  const sites = new Set<string>();
  const podCalls: PodRequest[] = [];
  const streams = new Set<KubernetesStream>();
  let degradations: readonly Degradation[] = [];
  let findings: readonly Finding[] = [];
  let groups: readonly string[] = [];
  let isAlive = true;
  const forever = new Promise<never>(() => undefined);

  const crash = (): void => {
    isAlive = false;
    for (const stream of streams) stream.close();
  };
  const pass = async (site: string, moment: Moment): Promise<void> => {
    if (!isAlive) return forever;
    sites.add(site);
    const what = fault(site, moment);
    if (what === 'crash') {
      crash();
      return forever;
    }
    if (what === 'lose') throw new TransportFailure('the connection was reset', { site, mayBeApplied: moment === 'afterReply' });
  };
  const around = async <Answer>(site: string, send: () => Promise<Answer>): Promise<Answer> => {
    await pass(site, 'beforeSend');
    let answer: Answer;
    try {
      answer = await send();
    } catch (error) {
      if (!isAlive) return forever;
      throw error;
    }
    await pass(site, 'afterReply');
    return answer;
  };
  const log =
    (level: string) =>
    (message: string, fields: LogFields = {}): void => {
      logs.push(`${level} ${message} ${JSON.stringify(fields)}`);
    };
  const agentEnv: AgentEnv = {
    clock: env.clock,
    random: env.random,
    timers: {
      after: (delayMs, callback) =>
        env.timers.after(delayMs, () => {
          if (isAlive) callback();
        }),
    },
    kubernetes: {
      request: (request: KubernetesRequest) => around(request.site, () => env.kubernetes.request(request)),
      stream: async (request, onLine) => {
        if (!isAlive) return forever;
        const stream = await env.kubernetes.stream(request, (line) => {
          if (isAlive) onLine(line);
        });
        streams.add(stream);
        return isAlive ? stream : forever;
      },
    },
    pods: {
      call: (request) =>
        around(request.site, async () => {
          podCalls.push(request);
          if (pods === undefined) throw new Error('no pod listens');
          return await pods(request);
        }),
    },
    log: { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
    ...(policyDirectory === undefined ? {} : { policyDirectory }),
    ...(gates === undefined
      ? {}
      : {
          gates: { query: (query) => around(query.site, () => gates(query)), health: () => Promise.reject(new Error('no Consul listens')) },
        }),
    ...(notify === undefined ? {} : { notify: { call: (request) => around(request.site, () => notify(request)) } }),
  };
  const settings = { ...defaultConfig, identity: name, ...config };
  const notifier = notify === undefined ? [] : [new Notifier({ env: agentEnv, config: settings }).listener];
  const agent = new Agent(agentEnv, settings, [
    ...notifier,
    ...(listeners?.(agentEnv, settings) ?? []),
    {
      turnEnded: (report) => {
        if (isAlive) reports.push(report);
      },
      degraded: (current) => {
        degradations = current;
      },
      groupsChanged: (current, found) => {
        groups = current.map((group) => `${group.namespace}/${group.name}`);
        findings = found;
      },
    },
  ]);
  return {
    agent,
    reports,
    logs,
    sites,
    podCalls,
    crash,
    isAlive: () => isAlive,
    degradations: () => degradations,
    groups: () => groups,
    findings: () => findings,
  };
}
