// Runs the agent inside the process of the test, on a real API server, so that a test can end the agent at any call.

import { Agent } from '../../agent/agent.ts';
import type { AgentConfig } from '../../agent/config.ts';
import type { AgentEnv, PolicyDirectory } from '../../agent/env.ts';
import { SourceHttp } from '../../agent/gates/source-http.ts';
import { createNotifyHttp, createPodHttp } from '../../agent/process/http-clients.ts';
import { createLog } from '../../agent/process/log.ts';
import { createWriters, handOver } from '../../agent/published/writers.ts';
import type { Degradation, TurnListener, TurnReport } from '../../agent/report.ts';
import { createExchanges } from '../../cluster/connection/http-exchange.ts';
import { connectionProcess, processEnv } from '../../cluster/connection/process-env.ts';
import { KubernetesTransport } from '../../cluster/connection/transport.ts';
import { loadConnection } from '../../cluster/kubeconfig/kubeconfig.ts';
import { type Call, type MortalEnv, mortal } from './crash.ts';
import type { Identity } from './identities.ts';

export interface InProcessOptions {
  readonly url: string;
  readonly identity: Identity;
  readonly namespace: string;
  /** Unique for each agent. */
  readonly name: string;
  /** Called before each request is sent and after each response has arrived. If it returns true, the agent dies there. */
  readonly diesAt?: (call: Call) => boolean;
  /** HTTP_PROXY for calls to pods. */
  readonly podProxy?: string;
  /** Text of a policy file. */
  readonly policies?: string;
  readonly config?: Partial<AgentConfig>;
  /** True if the agent also publishes, as the executable does: decisions, Events, records of runs, notifications. */
  readonly isTelling?: boolean;
}

export interface InProcessAgent {
  readonly agent: Agent;
  readonly mortal: MortalEnv;
  readonly isLeader: () => boolean;
  /** Every turn so far. */
  readonly turns: () => readonly TurnReport[];
  /** The current degradations of the agent. */
  readonly degradations: () => readonly Degradation[];
  /** The log of the agent, with the level debug. */
  readonly log: () => string;
  /** Hands over as at SIGTERM. For an agent that died, only closes the rest. */
  readonly stop: () => Promise<void>;
}

/** The same timing as `scaledFlags`. */
export function scaledConfig(namespace: string, identity: string): AgentConfig {
  return {
    namespaces: [namespace],
    agentNamespace: namespace,
    identity,
    clusterDomain: 'cluster.local.',
    policySources: ['directory', 'objects', 'adopted'],
    podTimeoutMs: 1000,
    kubernetesTimeoutMs: 5000,
    retryMs: 200,
    lease: { mode: 'required', name: 'rollout-group-agent', durationMs: 3000, renewDeadlineMs: 2000, retryPeriodMs: 250 },
    publishEveryMs: 250,
  };
}

/** Starts the agent with the real clock and separate connections. */
export async function startInProcess(options: InProcessOptions): Promise<InProcessAgent> {
  const { url, identity, namespace, name, diesAt = () => false, podProxy, policies, config = {}, isTelling = false } = options;
  const connection = await loadConnection({ kubeconfig: identity.kubeconfig, server: url }, { ...connectionProcess(), env: {} });
  const http = new KubernetesTransport(connection, { userAgent: `rollout-group-agent/${name}` });
  const clockAndMore = processEnv(http);
  const pods = createPodHttp({
    env: podProxy === undefined ? {} : { HTTP_PROXY: podProxy },
    userAgent: 'rollout-group-agent',
    cluster: namespace,
    clock: clockAndMore.clock,
  });
  let said = '';
  const log = createLog({
    format: 'logfmt',
    level: 'debug',
    clock: clockAndMore.clock,
    write: (line) => {
      said += line;
    },
  });
  const exchanges = createExchanges({ env: {}, maxSockets: 8 });
  const close = () => {
    for (const one of [http, pods, exchanges]) one.close();
  };
  const directory = policies === undefined ? {} : { policyDirectory: directoryOf(policies) };
  const env = mortal({ ...clockAndMore, pods, log, ...directory }, diesAt, close);
  const gates = new SourceHttp({
    kubernetes: env.env.kubernetes,
    clock: clockAndMore.clock,
    log,
    userAgent: 'rollout-group-agent',
    exchange: exchanges.exchange,
    agentNamespace: namespace,
    policySources: ['directory', 'objects'],
  });
  const notify = createNotifyHttp(exchanges, 'rollout-group-agent');
  const whole: AgentEnv = {
    ...env.env,
    gates: {
      query: (question) => env.around(question.site, () => gates.query(question)),
      health: (question) => env.around(question.site, () => gates.health(question)),
    },
    notify: { call: (request) => env.around(request.site, () => notify.call(request)) },
  };
  const agentConfig = { ...scaledConfig(namespace, name), ...config };
  const writers = isTelling ? createWriters({ env: whole, config: agentConfig, mayWrite: () => agent.mayWrite() }) : undefined;
  const turns: TurnReport[] = [];
  let isLeader = false;
  let degradations: readonly Degradation[] = [];
  const listener: TurnListener = {
    turnEnded: (report) => turns.push(report),
    degraded: (current) => {
      degradations = current;
    },
    leadershipChanged: (state) => {
      isLeader = state.isLeader;
    },
  };
  const agent = new Agent(whole, agentConfig, [listener, ...(writers?.listeners ?? [])]);
  return {
    agent,
    mortal: env,
    isLeader: () => isLeader && !env.isDead(),
    turns: () => turns,
    degradations: () => degradations,
    log: () => said,
    stop: async () => {
      if (!env.isDead()) await (writers === undefined ? agent.stop() : handOver(whole, agent, writers));
      close();
    },
  };
}

function directoryOf(text: string): PolicyDirectory {
  return { read: async () => [{ name: 'group.yaml', text }], watch: () => () => undefined };
}
