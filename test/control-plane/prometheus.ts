// Runs a real Prometheus for a suite, with TLS and a password. It scrapes one series that the test sets, and other targets.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Certificate } from './certificates.ts';

/** Finds the executable: in PROMETHEUS_BINARY, or on the PATH; undefined without one. */
export function findPrometheus(): string | undefined {
  const name = process.env['PROMETHEUS_BINARY'] ?? 'prometheus';
  return spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0 ? name : undefined;
}

/** Finds promtool of the same package: next to PROMETHEUS_BINARY, or on the PATH; undefined without one. */
export function findPromtool(): string | undefined {
  const binary = process.env['PROMETHEUS_BINARY'];
  const name = binary === undefined ? 'promtool' : join(dirname(binary), 'promtool');
  return spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0 ? name : undefined;
}

/** The permitted user, with the bcrypt hash of the password. */
export const login = { user: 'gates', password: 'test' } as const;
const hash = '$2b$12$hNf2lSsxfm0.i4a.1kVpSOVyBCfIB51VRjgBUyv6kdnyTlgWj81Ay';

export interface Prometheus {
  /** The address of the running server. Each start uses another port. */
  readonly url: () => string;
  /** Sets the scraped lines in the text format, such as `gate_value 0`. Prometheus reads them within a second. */
  readonly expose: (lines: readonly string[]) => void;
  /** Suspends the process: it accepts connections and does not answer. */
  readonly freeze: () => void;
  readonly kill: () => Promise<void>;
  /** Starts without the stored data of an earlier process. */
  readonly start: () => Promise<void>;
  /** Ends all processes and removes the folder. */
  readonly close: () => Promise<void>;
}

const startTimeoutMs = 60_000;

interface More {
  /** Further entries of `scrape_configs`. */
  readonly scrapes?: readonly object[];
  /** Paths of rule files, which are evaluated every second. */
  readonly rules?: readonly string[];
}

/** Prepares a Prometheus without starting it. */
export async function createPrometheus(executable: string, certificate: Certificate, more: More = {}): Promise<Prometheus> {
  const folder = mkdtempSync(join(tmpdir(), 'rollout-group-prometheus-'));
  const exporter = createServer((_request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/plain; version=0.0.4' });
    response.end(exposed.map((line) => `${line}\n`).join(''));
  });
  let exposed: readonly string[] = [];
  await new Promise<void>((settle) => exporter.listen(0, '127.0.0.1', settle));
  const { port } = exporter.address() as AddressInfo;
  writeFiles(folder, configurationOf(port, more), certificate);
  let running: Running | undefined;
  const kill = async (): Promise<void> => {
    running?.child.kill('SIGKILL');
    await running?.ended;
    running = undefined;
  };
  return {
    url: () => `https://${running?.address ?? '127.0.0.1:9'}`,
    expose: (lines) => {
      exposed = lines;
    },
    freeze: () => void running?.child.kill('SIGSTOP'),
    kill,
    start: async () => {
      // Prometheus would return a series for five minutes after the kill.
      rmSync(join(folder, 'data'), { recursive: true, force: true });
      running = await startIn(folder, executable);
    },
    close: async () => {
      await kill();
      exporter.closeAllConnections();
      await new Promise((settle) => exporter.close(settle));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function configurationOf(exporterPort: number, { scrapes = [], rules = [] }: More): object {
  const own = { job_name: 'gates', honor_labels: true, static_configs: [{ targets: [`127.0.0.1:${exporterPort}`] }] };
  const global = { scrape_interval: '1s', scrape_timeout: '900ms', evaluation_interval: '1s' };
  return { global, scrape_configs: [own, ...scrapes], rule_files: rules };
}

function writeFiles(folder: string, configuration: object, { certificate, privateKey }: Certificate): void {
  const files = {
    // JSON is valid YAML.
    'prometheus.yml': JSON.stringify(configuration),
    'web.yml': JSON.stringify({
      tls_server_config: { cert_file: 'server.crt', key_file: 'server.key' },
      basic_auth_users: { [login.user]: hash },
    }),
    'server.crt': certificate,
    'server.key': privateKey,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text, { mode: 0o600 });
}

interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<unknown>;
  /** The address as `127.0.0.1:port`. */
  readonly address: string;
}

async function startIn(folder: string, executable: string): Promise<Running> {
  const args = [
    `--config.file=${join(folder, 'prometheus.yml')}`,
    `--web.config.file=${join(folder, 'web.yml')}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    '--web.listen-address=127.0.0.1:0',
  ];
  const child = spawn(executable, args, { cwd: folder, env: { PATH: process.env['PATH'] }, stdio: ['ignore', 'ignore', 'pipe'] });
  const reap = (): void => void child.kill('SIGKILL');
  process.on('exit', reap);
  let said = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  const ended = new Promise((settle) => child.once('close', settle)).finally(() => process.removeListener('exit', reap));
  for (const endsAt = Date.now() + startTimeoutMs; Date.now() < endsAt; await delay(50)) {
    const [, address] = /msg="Listening on" address=(127\.0\.0\.1:\d+)/.exec(said) ?? [];
    if (address !== undefined && said.includes('Server is ready to receive web requests')) return { child, ended, address };
    if (child.exitCode !== null) break;
  }
  child.kill('SIGKILL');
  throw new Error(`Prometheus did not start:\n${said.slice(-2000)}\n${readFileSync(join(folder, 'prometheus.yml'), 'utf8')}`);
}
