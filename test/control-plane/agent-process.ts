// Runs the executable of the agent as a process of a suite. It is bundled for the suite, and flags make its times short.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { build } from 'esbuild';
import type { Identity } from './identities.ts';

export interface AgentProcessOptions {
  /** Address of the API server, or of a proxy in front of it. */
  readonly url: string;
  readonly identity: Identity;
  /** The namespace that the agent watches, which also contains its Lease. */
  readonly namespace: string;
  /** Added after the flags of this file, so that a suite can override them. */
  readonly flags?: readonly string[];
  /** The built executable. Absent: the executable is bundled from its source. */
  readonly executable?: string;
  /** A command that starts the agent when the flags follow, instead of Node.js with an executable. */
  readonly command?: readonly [string, ...string[]];
  /** Environment variables, such as HTTP_PROXY. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface AgentProcess {
  readonly port: number;
  readonly pid: number;
  /** The whole output of the process. */
  readonly log: () => string;
  /** Sends a GET to the HTTP server of the agent. */
  readonly ask: (path: string) => Promise<{ readonly status: number; readonly body: string }>;
  /** Waits until /ready answers 200. */
  readonly untilReady: () => Promise<void>;
  /** Sends SIGTERM, as the kubelet does. Returns the exit code. */
  readonly stop: () => Promise<number | null>;
  /** Sends SIGKILL, as if the node died. */
  readonly kill: () => Promise<void>;
}

/** A Lease that expires in seconds. */
const scaledFlags = [
  '--reconcile.interval=500ms',
  '--lease.duration=3s',
  '--lease.renew-deadline=2s',
  '--lease.retry-period=250ms',
  '--publish.every=250ms',
];

let bundle: Promise<string> | undefined;

/** Returns the path of the bundled executable. Each process of the test runner bundles it once and removes it at the end. */
function agentBundle(): Promise<string> {
  bundle ??= bundleAgent();
  return bundle;
}

/** Bundles the agent of a source folder, by default of this version. The bundle is removed when the process ends. */
export async function bundleAgent(source = '.'): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'rollout-group-agent-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  const outfile = join(folder, 'agent.mjs');
  await build({
    absWorkingDir: resolve(source),
    entryPoints: ['agent/process/main.ts'],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    alias: { 'node-fetch': './scripts/node-fetch.mjs' },
    loader: { '.yaml': 'text', '.css': 'text', '.md': 'text' },
    banner: { js: "import { createRequire as ownRequire } from 'node:module'; const require = ownRequire(import.meta.url);" },
    logLevel: 'error',
  });
  return outfile;
}

const readyTimeoutMs = 90_000;

/** Starts the agent without waiting until it is ready. */
export async function startAgentProcess({
  url,
  identity,
  namespace,
  executable,
  command,
  flags = [],
  env = {},
}: AgentProcessOptions): Promise<AgentProcess> {
  const port = await freePort();
  const [program, ...programArgs] = command ?? [process.execPath, executable ?? (await agentBundle())];
  const args = [
    ...programArgs,
    `--kubernetes.api-url=${url}`,
    `--kubernetes.config-file=${identity.kubeconfig}`,
    `--kubernetes.namespace=${namespace}`,
    '--server.address=127.0.0.1',
    `--server.port=${port}`,
    ...scaledFlags,
    ...flags,
  ];
  // The environment of the machine does not reach the agent, except for the variables that Node.js needs.
  const child = spawn(program, args, { env: { PATH: process.env['PATH'], ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const reap = () => child.kill('SIGKILL');
  process.on('exit', reap);
  let said = '';
  const keep = (chunk: Buffer) => {
    said += chunk.toString();
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  const ended = new Promise<number | null>((settle) => {
    child.on('error', () => settle(null));
    child.on('close', settle);
  }).finally(() => process.removeListener('exit', reap));

  const ask = (path: string) => get(port, path);
  return {
    port,
    pid: child.pid ?? -1,
    log: () => said,
    ask,
    untilReady: async () => {
      for (const endsAt = Date.now() + readyTimeoutMs; Date.now() < endsAt; await delay(25)) {
        if (hasEnded(child)) throw new Error(`the agent ended with ${child.exitCode ?? child.signalCode}:\n${said.slice(-4000)}`);
        const reply = await ask('/ready').catch(() => undefined);
        if (reply?.status === 200) return;
      }
      throw new Error(`the agent was not ready in ${readyTimeoutMs / 1000} s:\n${said.slice(-4000)}`);
    },
    stop: () => {
      child.kill('SIGTERM');
      return ended;
    },
    kill: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

function get(port: number, path: string): Promise<{ readonly status: number; readonly body: string }> {
  return new Promise((settle, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, agent: false }, (reply) => {
      text(reply).then((body) => settle({ status: reply.statusCode ?? 0, body }), reject);
    });
    sent.on('error', reject);
    sent.setTimeout(5000, () => sent.destroy(new Error('timeout')));
    sent.end();
  });
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((settle) => server.listen(0, '127.0.0.1', settle));
  const address = server.address();
  await new Promise((settle) => server.close(settle));
  if (typeof address !== 'object' || address === null) throw new Error('there is no free port');
  return address.port;
}
