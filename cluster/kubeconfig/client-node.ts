// Wraps client-node for credential plugins, auth providers and proxies. That package is large, so this file is loaded only when needed.
import { type ChildProcess, spawn } from 'node:child_process';
import type { Agent, OutgoingHttpHeaders } from 'node:http';
import type { AgentOptions, RequestOptions } from 'node:https';
import { Readable } from 'node:stream';
// The main file of the package would also load libraries for WebSockets and archives, which takes 20 ms.
import { KubeConfig } from '@kubernetes/client-node/dist/config.js';
import { messageOf } from '../../policies/error-message.ts';
import { ConnectionFailure, configurationFailure } from '../connection/connection.ts';
import type { Choice } from './choice.ts';
import type { Delegated } from './credentials.ts';
import type { ExecEntry, UserEntry } from './file.ts';
import type { ConnectionProcess } from './kubeconfig.ts';

/** Runs the credential plugin of the user and returns its credentials. Rejects with ConnectionFailure. */
export async function askPlugin(exec: ExecEntry, choice: Choice, process: ConnectionProcess): Promise<Delegated> {
  const plugin = new Plugin(exec, { choice, process, about: exec.provideClusterInfo ? await aboutCluster(choice, process) : undefined });
  const config = configOf(choice, { exec: { apiVersion: exec.apiVersion, command: exec.command, args: exec.args } });
  // client-node would run the plugin without standard input and hide its output, but a login often prints an address and waits.
  for (const authenticator of config['authenticators']) if ('execFn' in authenticator) authenticator.execFn = plugin.start;
  try {
    const found = await credentialsOf(config);
    if (found.token === undefined && found.cert === undefined) throw new Error('no token and no certificate');
    return { ...found, ...plugin.expiry() };
  } catch (error) {
    throw plugin.failure(error);
  }
}

/** The time until the auth provider is called again. The provider itself caches and renews its tokens. */
const askProviderAgainAfterMs = 10_000;

/** Returns a function that gets credentials from an `auth-provider`, such as oidc. */
export function authProvider(
  provider: NonNullable<UserEntry['authProvider']>,
  choice: Choice,
  process: ConnectionProcess,
): () => Promise<Delegated> {
  // client-node stores renewed tokens in this object.
  const config = configOf(choice, { authProvider: { name: provider.name, config: { ...provider.config } } });
  return async () => {
    try {
      const found = await credentialsOf(config);
      if (found.token === undefined) throw new Error('it gave no token');
      return { ...found, expiresAtMs: process.clock.nowMs() + askProviderAgainAfterMs };
    } catch (error) {
      const message = `the auth provider "${provider.name}" of ${choice.origin} gave no credentials: ${messageOf(error)}`;
      throw new ConnectionFailure('unauthenticated', message, { cause: error });
    }
  };
}

export function proxyAgent(server: string, proxyUrl: string, options: AgentOptions): Agent {
  return new KubeConfig()['createAgent']({ name: '', server, skipTLSVerify: server.startsWith('http:'), proxyUrl }, options);
}

function configOf({ server }: Choice, user: object): KubeConfig {
  const config = new KubeConfig();
  config.loadFromOptions({
    // client-node accepts http addresses, such as the address of kubectl proxy, only without a certificate check.
    clusters: [{ name: 'cluster', server, skipTLSVerify: server.startsWith('http:') }],
    users: [{ name: 'user', ...user }],
    contexts: [{ name: 'context', cluster: 'cluster', user: 'user' }],
    currentContext: 'context',
  });
  return config;
}

async function credentialsOf(config: KubeConfig): Promise<Delegated> {
  const headers: OutgoingHttpHeaders = {};
  const options: RequestOptions = { headers };
  await config.applyToHTTPSOptions(options);
  const header = headers['Authorization'];
  const token = typeof header === 'string' && header.startsWith('Bearer ') ? header.slice('Bearer '.length) : undefined;
  const { cert, key } = options;
  return {
    ...(token !== undefined && { token }),
    ...(typeof cert === 'string' && typeof key === 'string' && { cert: Buffer.from(cert), key: Buffer.from(key) }),
  };
}

class Plugin {
  readonly #exec: ExecEntry;
  readonly #choice: Choice;
  readonly #process: ConnectionProcess;
  readonly #about: object | undefined;
  #stdout = '';
  #ending = '';

  constructor(exec: ExecEntry, run: { readonly choice: Choice; readonly process: ConnectionProcess; readonly about: object | undefined }) {
    this.#exec = exec;
    this.#choice = run.choice;
    this.#process = run.process;
    this.#about = run.about;
    const isKnown = /^client\.authentication\.k8s\.io\/v1(?:beta1)?$/.test(exec.apiVersion);
    if (!isKnown)
      throw this.failure(
        new Error(
          `its apiVersion ${exec.apiVersion} is not v1 or v1beta1 of client.authentication.k8s.io; update the plugin and the kubeconfig`,
        ),
      );
    if (exec.interactiveMode === 'Always' && !run.process.isTerminal)
      throw this.failure(new Error('it needs a terminal on standard input'));
  }

  readonly start = (command: string, args: readonly string[]): ChildProcess => {
    const isInteractive = this.#exec.interactiveMode !== 'Never' && this.#process.isTerminal;
    const child = spawn(command, args, {
      env: { ...this.#process.env, ...this.#exec.env, KUBERNETES_EXEC_INFO: JSON.stringify(this.#info(isInteractive)) },
      stdio: [isInteractive ? 'inherit' : 'ignore', 'pipe', this.#process.pluginStderr],
    });
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text;
    });
    child.on('close', (code, signal) => {
      if (code !== 0) this.#ending = `it ended with ${signal ?? `exit code ${code}`}; its standard error is above`;
    });
    // client-node reads `stderr`, which is null here because it is not a pipe.
    return Object.assign(child, { stderr: Readable.from([]) });
  };

  /** Returns the expiry that the plugin gave. Credentials without expiry are valid until the server rejects them. */
  expiry(): { readonly expiresAtMs?: number } {
    const text: unknown = JSON.parse(this.#stdout)?.status?.expirationTimestamp;
    const expiresAtMs = typeof text === 'string' ? Date.parse(text) : Number.NaN;
    return Number.isNaN(expiresAtMs) ? {} : { expiresAtMs };
  }

  failure(error: unknown): ConnectionFailure {
    if (error instanceof ConnectionFailure) return error;
    const { command, installHint } = this.#exec;
    const hint = installHint === undefined ? '' : `. ${installHint}`;
    const message = `the credential plugin ${command} of ${this.#choice.origin}: ${this.#why(error)}${hint}`;
    // The JSON parser's error quotes the plugin's output, which contains credentials. Therefore it is not passed as the cause.
    return new ConnectionFailure('unauthenticated', message, { cause: error instanceof Error && 'code' in error ? error : undefined });
  }

  #why(error: unknown): string {
    if (error instanceof Error && 'code' in error)
      return error.code === 'ENOENT' ? 'the program does not exist' : `cannot be started: ${error.message}`;
    if (this.#ending !== '') return this.#ending;
    if (this.#stdout !== '' || !(error instanceof Error)) return 'its output is not an ExecCredential with a token or a certificate';
    return error.message || 'it gave no output';
  }

  #info(interactive: boolean): object {
    const spec = { interactive, ...(this.#about && { cluster: this.#about }) };
    return { kind: 'ExecCredential', apiVersion: this.#exec.apiVersion, spec };
  }
}

/** Returns the cluster in the format of KUBERNETES_EXEC_INFO. */
async function aboutCluster({ server, cluster, proxyUrl, origin }: Choice, process: ConnectionProcess): Promise<object> {
  const file = cluster.certificateAuthority;
  let ca = cluster.certificateAuthorityData;
  if (ca === undefined && file !== undefined) {
    try {
      ca = (await process.readFile(file)).toString('base64');
    } catch {
      throw configurationFailure(`the certificate authority ${file}, which ${origin} names, cannot be read`);
    }
  }
  return {
    server,
    ...(cluster.tlsServerName !== undefined && { 'tls-server-name': cluster.tlsServerName }),
    ...(cluster.insecureSkipTlsVerify === true && { 'insecure-skip-tls-verify': true }),
    ...(ca !== undefined && { 'certificate-authority-data': ca }),
    ...(proxyUrl !== undefined && { 'proxy-url': proxyUrl }),
    ...(cluster.execConfig !== undefined && { config: cluster.execConfig }),
  };
}
