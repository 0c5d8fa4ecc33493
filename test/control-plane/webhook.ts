// Installs the webhooks in a suite: the objects of an installation, processes of the executable, and one address for the API server.
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { installation } from '../../install/installation.ts';
import { certificateSecret, type InstallObject, type InstallOptions } from '../../install/object.ts';
import { optionsOf } from '../install/given.ts';
import { type AgentProcess, startAgentProcess } from './agent-process.ts';
import type { ApiClient, KubernetesObject } from './client.ts';
import type { ControlPlane } from './control-plane.ts';
import type { Identity } from './identities.ts';

export interface WebhookProcess {
  readonly agent: AgentProcess;
  /** Address of the webhooks. */
  readonly port: number;
}

export interface StartOptions {
  /** Address of the API server, or of a proxy in front of it, with a user that may connect there. */
  readonly url?: string;
  readonly identity?: Identity;
  readonly flags?: readonly string[];
  /** The built executable. Absent: the executable is bundled from its source. */
  readonly executable?: string;
  /** Environment variables, such as those of the image. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts the executable as a webhook and waits until it is ready. */
export async function startWebhookProcess(
  { url, identities }: Pick<ControlPlane, 'url' | 'identities'>,
  options: StartOptions = {},
): Promise<WebhookProcess> {
  const agent = await startAgentProcess({
    url: options.url ?? url,
    identity: options.identity ?? identities.agent,
    namespace: 'rollout-group',
    ...(options.executable === undefined ? {} : { executable: options.executable }),
    env: options.env ?? {},
    flags: [
      '-run=webhook',
      '-namespaces=*',
      '-server-tls.enabled=true',
      '-server-tls.port=0',
      '-server-tls.drain=1s',
      '-server-tls.self-signed-cert.dns-name=localhost',
      `-server-tls.self-signed-cert.secret-name=${certificateSecret}`,
      '-log.level=info',
      ...(options.flags ?? []),
    ],
  });
  await agent.untilReady();
  const port = /webhookPort[=":]+(\d+)/.exec(agent.log())?.[1];
  if (port === undefined) throw new Error(`the process does not say where its webhooks are:\n${agent.log().slice(-4000)}`);
  return { agent, port: Number(port) };
}

/** One address for several processes, like a Service: each connection goes to one process and stays there. */
export interface Front {
  readonly port: number;
  /** Sets the processes for new connections, by turns. Open connections stay. Without a process, connections are refused. */
  readonly leadTo: (...ports: readonly number[]) => void;
  /** Closes every open connection, so that the next request begins with a handshake. */
  readonly cut: () => void;
  readonly close: () => Promise<void>;
}

export async function startFront(): Promise<Front> {
  let targets: readonly number[] = [];
  let turn = 0;
  const sockets = new Set<Socket>();
  const server = createServer((incoming) => {
    const target = targets[turn++ % Math.max(1, targets.length)];
    if (target === undefined) {
      incoming.destroy();
      return;
    }
    const outgoing = connect({ host: '127.0.0.1', port: target });
    for (const [one, other] of [
      [incoming, outgoing],
      [outgoing, incoming],
    ] as const) {
      sockets.add(one);
      one.setNoDelay(true);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  await new Promise<void>((settle) => server.listen(0, '127.0.0.1', settle));
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    leadTo: (...ports) => {
      targets = ports;
    },
    cut,
    close: async () => {
      const closed = new Promise((settle) => server.close(settle));
      cut();
      await closed;
    },
  };
}

/** Returns the plural of an installed kind. */
function pluralOf(kind: string): string {
  return `${kind.toLowerCase().replace(/y$/, 'ie')}s`;
}

/** Applies the objects of an installation with its webhooks at an address of this machine. The process writes the CA later. */
export async function applyInstallation(
  client: ApiClient,
  front: Pick<Front, 'port'>,
  changes: Partial<InstallOptions>,
  isWanted: (object: InstallObject) => boolean = () => true,
): Promise<void> {
  for (const object of installation(optionsOf({ hasNamespace: true, ...changes })).filter(isWanted)) {
    const { apiVersion, kind, metadata } = object;
    const plural = pluralOf(kind);
    const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const place = metadata.namespace === undefined ? '' : `/namespaces/${metadata.namespace}`;
    const path = `${root}${place}/${plural}/${metadata.name}?fieldManager=install&force=true`;
    await client.patch(path, 'apply', { ...object, ...addressed(object, front) });
  }
  await client.until<Definition>('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', 'every kind served', (items) =>
    items.every(({ status }) => status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True')),
  );
}

interface Definition extends KubernetesObject {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

interface Entry {
  readonly clientConfig: { readonly service: { readonly path: string } };
}

/** Returns the webhooks of a configuration with an address of this machine; empty for an object without webhooks. */
export function addressed({ webhooks }: InstallObject, { port }: Pick<Front, 'port'>): object {
  if (webhooks === undefined) return {};
  return {
    webhooks: (webhooks as readonly Entry[]).map((one) => ({
      ...one,
      clientConfig: { url: `https://localhost:${port}${one.clientConfig.service.path}` },
    })),
  };
}

interface Configuration extends KubernetesObject {
  readonly webhooks: readonly { readonly clientConfig: { readonly caBundle?: string } }[];
}

/** Waits until the process has written its CA into every configuration. The API server may need a moment longer. */
export async function untilTrusted(client: ApiClient): Promise<void> {
  for (const kind of ['validating', 'mutating']) {
    await client.until<Configuration>(
      `/apis/admissionregistration.k8s.io/v1/${kind}webhookconfigurations`,
      'the authority in every configuration',
      (items) => items.every(({ webhooks }) => webhooks.every(({ clientConfig }) => clientConfig.caBundle !== undefined)),
    );
  }
}

/** Repeats the call until the condition is met. Rejects with the last result after 30 s. */
export async function eventually<T>(what: string, ask: () => Promise<T>, isSo: (answer: T) => boolean, timeoutMs = 30_000): Promise<T> {
  for (const endsAt = Date.now() + timeoutMs; ; await delay(100)) {
    const answer = await ask();
    if (isSo(answer)) return answer;
    if (Date.now() >= endsAt) throw new Error(`${what} was not so in ${timeoutMs / 1000} s: ${JSON.stringify(answer).slice(0, 3000)}`);
  }
}
