// An API server in memory with Secrets and webhook configurations, in virtual time, and replicas of the webhook that meet there.
import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { KubernetesHttp, LogFields } from '../../../cluster/env.ts';
import { TransportFailure } from '../../../cluster/request/failure.ts';
import type { Json, ModelObject } from '../../../simulation/server/request.ts';
import type { ModelServer } from '../../../simulation/server/server.ts';
import { type Certificates, type SelfSigned, startCertificates } from '../../../webhook/certificates/certificates.ts';
import { SecretKeeper, type SecretKeeperOptions } from '../../../webhook/certificates/secret-keeper.ts';
import type { WebhookEnv } from '../../../webhook/env.ts';
import { moreKinds } from '../../kit/kinds.ts';
import { ModelApi } from '../../kit/model-server.ts';
import { randomFrom } from '../../kit/random.ts';
import { type Served, type ServedRequest, type VirtualEnv, virtualEnv } from '../../kit/virtual-env.ts';
import { countingBytes, service } from './given.ts';

export const secretName = 'operator-certificate';
export const dayMs = 86_400_000;

export const validating = 'validatingwebhookconfigurations.admissionregistration.k8s.io';
export const mutating = 'mutatingwebhookconfigurations.admissionregistration.k8s.io';

const jane = { user: 'jane' };

interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly message: string;
  readonly fields: LogFields;
}

/** What a test may do to requests before they reach the server; undefined lets one pass. */
type Interference = (request: ServedRequest) => Served | Promise<Served | undefined> | undefined;

export interface World {
  readonly env: VirtualEnv;
  readonly server: ModelServer;
  readonly log: readonly LogLine[];
  /** Of each request to the server but watches and lists: `METHOD site`, in order. */
  readonly calls: () => readonly string[];
  /** Whether the process of that seed is without the API server. */
  readonly cut: (seed: number, isCut: boolean) => void;
  readonly interfere: (interference: Interference | undefined) => void;
  readonly secret: () => ModelObject | undefined;
  /** A key of the Secret as text. */
  readonly text: (key: string) => string;
  readonly putSecret: (data: Readonly<Record<string, string>> | undefined, type?: string) => void;
  /** Creates a configuration with both labels and one entry for each name, unless told otherwise. */
  readonly configure: (name: string, options?: ConfigurationOptions) => void;
  /** The `caBundle` of each entry as text. */
  readonly bundles: (name: string, resource?: string) => readonly string[];
  /** A process with its own keeper, randomness and bytes. */
  readonly keeper: (options?: Partial<SecretKeeperOptions> & { readonly seed?: number }) => SecretKeeper;
  readonly certificates: (options?: Partial<SelfSigned> & { readonly seed?: number }) => Certificates;
}

interface ConfigurationOptions {
  readonly resource?: string;
  readonly entries?: readonly Json[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

export const bothLabels = { 'grafana.com/inject-rollout-operator-ca': 'true', 'grafana.com/namespace': 'one' } as const;

export function newWorld(seed = 1, startMs = Date.UTC(2026, 0, 15, 12)): World {
  let interference: Interference | undefined;
  const env = virtualEnv({ seed, startMs });
  const { server, serve } = new ModelApi({ env, seed, kinds: moreKinds, user: 'operator' });
  env.replaceServer(async (request) => (await interference?.(request)) ?? serve(request));
  const log: LogLine[] = [];
  const written =
    (level: LogLine['level']) =>
    (message: string, fields: LogFields = {}) =>
      void log.push({ level, message, fields });
  const sink = { debug: written('debug'), info: written('info'), warn: written('warn'), error: written('error') };
  const cut = new Set<number>();
  const processEnv = (own: number): WebhookEnv => ({
    clock: env.clock,
    timers: env.timers,
    kubernetes: reachable(env.kubernetes, () => !cut.has(own)),
    log: sink,
    random: randomFrom(seed * 1000 + own).next,
    pods: { call: () => Promise.reject(new Error('no pod is called')) },
  });
  const secret = (): ModelObject | undefined => server.get('secrets', 'one', secretName);
  const configured = (name: string, resource = validating): readonly Json[] =>
    (server.get(resource, '', name)?.['webhooks'] ?? []) as Json[];
  return {
    env,
    server,
    log,
    secret,
    calls: () =>
      env.requests.filter(({ site, isStream }) => !isStream && !site.endsWith('.list')).map(({ method, site }) => `${method} ${site}`),
    cut: (own, isCut) => void (isCut ? cut.add(own) : cut.delete(own)),
    interfere: (next) => {
      interference = next;
    },
    text: (key) => decoded(((secret()?.['data'] ?? {}) as Readonly<Record<string, string>>)[key]),
    putSecret: (texts, type = 'Opaque') => {
      server.remove(jane, { resource: 'secrets', namespace: 'one', name: secretName });
      const data = texts === undefined ? undefined : Object.fromEntries(Object.entries(texts).map(([key, value]) => [key, encoded(value)]));
      server.create(jane, 'secrets', { metadata: { name: secretName, namespace: 'one' }, type, ...(data === undefined ? {} : { data }) });
    },
    configure: (
      name,
      { resource = validating, entries = [{ name: `${name}.grafana.com` }], labels = bothLabels, annotations = {} } = {},
    ) => {
      const clientConfig = { service: { name: 'operator', namespace: 'one', path: '/admission', port: 443 } };
      const webhooks = entries.map((entry) => ({ clientConfig, failurePolicy: 'Fail', ...entry }));
      server.create(jane, resource, { metadata: { name, labels, annotations }, webhooks });
    },
    bundles: (name, resource) =>
      configured(name, resource).map(({ clientConfig }) => decoded((clientConfig as { readonly caBundle?: string }).caBundle)),
    keeper: ({ seed: own = 1, ...options } = {}) =>
      new SecretKeeper({
        env: processEnv(own),
        namespace: 'one',
        name: secretName,
        organization: 'Example',
        lifetimeMs: 10 * dayMs,
        names: ['operator.one.svc', 'operator.one'],
        randomBytes: countingBytes(own * 16),
        ...options,
      }),
    certificates: ({ seed: own = 1, ...options } = {}) =>
      startCertificates({
        env: processEnv(own),
        namespace: 'one',
        randomBytes: countingBytes(own * 16),
        files: { read: () => Promise.reject(new Error('no files')), watch: () => () => undefined },
        certificate: {
          kind: 'self-signed',
          secretName,
          organization: 'Example',
          lifetimeMs: 10 * dayMs,
          injectsAuthority: true,
          ...service,
          ...options,
        },
      }),
  };
}

/** Lets days pass without each of their minutes: clocks are set, and half an hour goes by. */
export async function pass({ env }: Pick<World, 'env'>, durationMs: number): Promise<void> {
  const slowMs = Math.min(durationMs, 1_800_000);
  env.jumpWallClock(durationMs - slowMs);
  await env.advance(slowMs);
}

/** Requests fail and lines are lost while it is not so. */
function reachable({ request, stream }: KubernetesHttp, isSo: () => boolean): KubernetesHttp {
  const refused = (site: string) => Promise.reject(new TransportFailure('the network is gone', { site, mayBeApplied: false }));
  return {
    request: (asked) => (isSo() ? request(asked) : refused(asked.site)),
    stream: (asked, onLine) => (isSo() ? stream(asked, (line) => (isSo() ? onLine(line) : undefined)) : refused(asked.site)),
  };
}

/** Whether a client that trusts the bundle accepts the server under the name, without a word about dates. */
export function isAccepted(
  served: { readonly cert: string; readonly key: string } | undefined,
  bundle: string,
  name = 'operator.one.svc',
): boolean {
  if (served === undefined) return false;
  const leaf = new X509Certificate(served.cert);
  const authorities = bundle.match(/-----BEGIN[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
  const isIssued = authorities.map((text) => new X509Certificate(text)).some((ca) => leaf.checkIssued(ca) && leaf.verify(ca.publicKey));
  return isIssued && leaf.checkPrivateKey(createPrivateKey(served.key)) && leaf.checkHost(name) === name;
}

export function encoded(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64');
}

function decoded(text = ''): string {
  return Buffer.from(text, 'base64').toString('utf8');
}
