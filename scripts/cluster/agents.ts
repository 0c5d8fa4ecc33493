// Runs the agent: one process on this machine for each pod of its Deployment, with the arguments of the pod.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { podLabelsOf } from '../../install/object.ts';
import type { KubernetesObject } from '../../test/control-plane/client.ts';
import { type ControlPlane, freePort } from '../../test/control-plane/control-plane.ts';

interface AgentPod extends KubernetesObject {
  readonly spec: { readonly nodeName?: string; readonly containers: readonly { readonly args?: readonly string[] }[] };
}

export interface AgentsOptions {
  /** The built executable. */
  readonly executable: string;
  readonly log: string;
  /** The namespace of the installation. */
  readonly namespace: string;
  /** Variables of the processes. */
  readonly env: Readonly<Record<string, string>>;
  /** Receives a message for the user. */
  readonly say: (line: string) => void;
}

export interface AgentPorts {
  readonly pod: string;
  readonly webhookPort: number;
  /** The port of /ready and /metrics. */
  readonly serverPort: number;
}

interface Running extends Omit<AgentPorts, 'pod'> {
  readonly child: ChildProcess;
  /** The process ends because its pod was deleted, or with the cluster. */
  isStopping: boolean;
}

const shownLogLines = 5;
/** The annotation that makes a pod unready (stages.yaml). */
const unready = 'test.rollout-group.dev/unready';

/** Plays the kubelet for the pods of the agent. A process that ends by itself starts again only with `restart`. */
export class Agents {
  readonly #cluster: ControlPlane;
  readonly #options: AgentsOptions;
  readonly #running = new Map<string, Running>();
  /** Pods whose process ended by itself. */
  readonly #ended = new Set<string>();
  #isStopping = false;
  readonly #loop: Promise<void>;

  constructor(cluster: ControlPlane, options: AgentsOptions) {
    this.#cluster = cluster;
    this.#options = options;
    this.#loop = this.#follow();
  }

  /** Returns the ports of each process, with the name of its pod. */
  ports(): readonly AgentPorts[] {
    return [...this.#running]
      .filter(([, { isStopping }]) => !isStopping)
      .map(([pod, { webhookPort, serverPort }]) => ({ pod, webhookPort, serverPort }));
  }

  /** Starts the processes again that ended by themselves. */
  async restart(): Promise<void> {
    if (this.#ended.size === 0) this.#options.say('no agent ended, so there is nothing to start');
    for (const pod of [...this.#ended]) {
      await this.#mark(pod, null);
      this.#ended.delete(pod);
    }
  }

  /** Kills every process. No process needs a shutdown, because the cluster ends too. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#loop;
    await Promise.all([...this.#running.values()].map((one) => end(one, 'SIGKILL')));
  }

  async #follow(): Promise<void> {
    const { namespace } = this.#options;
    const selector = Object.entries(podLabelsOf(namespace)).map(([key, value]) => `${key}=${value}`);
    const path = `/api/v1/namespaces/${namespace}/pods?labelSelector=${encodeURIComponent(selector.join(','))}`;
    while (!this.#isStopping) {
      const pods = await this.#cluster.client.list<AgentPod>(path).catch(() => undefined);
      if (pods !== undefined) await this.#reconcile(pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined));
      await delay(250);
    }
  }

  async #reconcile(pods: readonly AgentPod[]): Promise<void> {
    const names = new Set(pods.map(({ metadata }) => metadata.name));
    for (const [name, running] of this.#running) if (!names.has(name) && !running.isStopping) void end(running, 'SIGTERM');
    for (const name of this.#ended) if (!names.has(name)) this.#ended.delete(name);
    for (const pod of pods) {
      const { name } = pod.metadata;
      if (pod.spec.nodeName === undefined || this.#running.has(name) || this.#ended.has(name)) continue;
      await this.#start(name, pod.spec.containers[0]?.args ?? []);
    }
  }

  async #start(pod: string, podArgs: readonly string[]): Promise<void> {
    const { executable, log, env, say } = this.#options;
    const [webhookPort, serverPort] = [await freePort(), await freePort()];
    const args = [
      executable,
      ...podArgs,
      `-identity=${pod}_${randomBytes(4).toString('hex')}`,
      `-kubernetes.api-url=${this.#cluster.url}`,
      `-kubernetes.config-file=${this.#cluster.identities.agent.kubeconfig}`,
      '-publish.every=1s',
      '-log.format=logfmt',
      '-server.address=127.0.0.1',
      `-server.port=${serverPort}`,
      `-server-tls.port=${webhookPort}`,
      // Nothing else answers while the process drains.
      '-server-tls.drain=1s',
    ];
    // Ctrl-C in the terminal reaches only the process that stops the cluster.
    const child = spawn(process.execPath, args, {
      env: { PATH: process.env['PATH'], ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    const running: Running = { child, webhookPort, serverPort, isStopping: false };
    this.#running.set(pod, running);
    const hasEnded = child.pid === undefined ? () => {} : this.#cluster.reap(child.pid);
    let tail: readonly string[] = [];
    const keep = (chunk: Buffer): void => {
      appendFileSync(log, chunk);
      tail = [...tail, ...chunk.toString().trimEnd().split('\n')].slice(-shownLogLines);
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    child.on('close', (code, signal) => {
      hasEnded();
      this.#running.delete(pod);
      if (running.isStopping || this.#isStopping) return;
      this.#ended.add(pod);
      const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
      const lines = tail.map((line) => `  ${line.slice(0, 300)}`);
      say(
        [
          `the agent ${pod} (pid ${child.pid}) ended with ${how}. The end of ${log}:`,
          ...lines,
          `Press r to start it again, or run: kill -USR2 ${process.pid}`,
        ].join('\n'),
      );
      void this.#mark(pod, 'CrashLoopBackOff');
    });
    say(`the agent ${pod} runs: pid ${child.pid}, log ${log}`);
  }

  /** Makes the pod unready, or ready again. */
  async #mark(pod: string, reason: string | null): Promise<void> {
    const path = `/api/v1/namespaces/${this.#options.namespace}/pods/${pod}`;
    // The pod or the cluster may be gone by now.
    await this.#cluster.client.patch(path, 'merge', { metadata: { annotations: { [unready]: reason } } }).catch(() => {});
  }
}

async function end(running: Running, signal: NodeJS.Signals): Promise<void> {
  running.isStopping = true;
  const { child } = running;
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((settle) => child.once('exit', settle));
  child.kill(signal);
  await ended;
}
