// Provides the certificate of the webhook server, adds its CA certificate to webhook configurations, and reports problems.
import { X509Certificate } from 'node:crypto';
import type { WebhookEnv } from '../env.ts';
import { type IssueOptions, namesOf, type ServiceNames } from './authority.ts';
import { type CertificateFiles, openFileSource } from './file-source.ts';
import { Injection } from './inject-ca.ts';
import { certificatesIn, validityOf } from './pair.ts';
import { SecretKeeper } from './secret-keeper.ts';
import type { CertificateSource, TlsSource } from './source.ts';
import { type FailurePolicySample, failurePolicies, type WebhookConfigurations, watchConfigurations } from './webhook-configurations.ts';

/** A certificate that the agent issues with its own CA and stores in a Secret. */
export interface SelfSigned extends Omit<ServiceNames, 'namespace'>, Pick<IssueOptions, 'organization' | 'lifetimeMs'> {
  readonly kind: 'self-signed';
  readonly secretName: string;
  /** True if the agent adds its CA certificate to the webhook configurations with the injection label. */
  readonly injectsAuthority: boolean;
}

/** A certificate in files that another tool maintains. */
interface FromFiles {
  readonly kind: 'files';
  readonly certFile: string;
  readonly keyFile: string;
  readonly caFile?: string | undefined;
}

interface CertificatesOptions extends Pick<IssueOptions, 'randomBytes'> {
  readonly env: WebhookEnv;
  readonly namespace: string;
  readonly certificate: SelfSigned | FromFiles;
  readonly files: CertificateFiles;
}

export interface Certificates extends TlsSource {
  /** Series of the gauge `kube_validating_webhook_failure_policy`. */
  readonly failurePolicies: () => readonly FailurePolicySample[];
  /** Returns the expiry of the served certificate; undefined while no certificate is served. */
  readonly expiry: () => Expiry | undefined;
  /** The webhook configurations whose label `grafana.com/namespace` names our namespace. */
  readonly configurations: WebhookConfigurations;
  /** Returns one sentence per problem; empty without problems. */
  readonly degradations: () => readonly string[];
  readonly stop: () => void;
}

interface Started {
  readonly source: CertificateSource;
  readonly injection?: Injection | undefined;
  readonly stop: () => void;
}

/** Starts at once. Never throws; retries failures without limit. `current` returns undefined until a certificate is available. */
export function startCertificates(options: CertificatesOptions): Certificates {
  const { env, namespace, certificate } = options;
  const configurations = watchConfigurations(env, namespace);
  const { source, injection, stop } =
    certificate.kind === 'files' ? startFiles(options, certificate) : startSelfSigned(options, certificate, configurations);
  return {
    current: source.current,
    onChange: source.onChange,
    configurations,
    failurePolicies: () => failurePolicies(configurations.list()),
    expiry: () => expiryOf(source, env.clock.nowMs()),
    degradations: () => {
      const unread = configurations.problem();
      return [
        source.problem(),
        unread === undefined ? undefined : `webhook configurations cannot be read: ${unread}`,
        ...(injection?.problems() ?? []).map(({ kind, name, message }) => `${kind} configuration ${name}: ${message}`),
        expiryOf(source, env.clock.nowMs())?.degradation,
      ].filter((sentence) => sentence !== undefined);
    },
    stop: () => {
      stop();
      configurations.stop();
    },
  };
}

function startFiles({ env, files }: CertificatesOptions, certificate: FromFiles): Started {
  const source = openFileSource({ env, files, ...certificate });
  return { source, stop: source.stop };
}

function startSelfSigned(
  { env, namespace, randomBytes }: CertificatesOptions,
  certificate: SelfSigned,
  configurations: WebhookConfigurations,
): Started {
  let injection: Injection | undefined;
  const source = new SecretKeeper({
    env,
    namespace,
    randomBytes,
    name: certificate.secretName,
    organization: certificate.organization,
    lifetimeMs: certificate.lifetimeMs,
    names: namesOf({ ...certificate, namespace }),
    isTrusted: (authority) => injection?.isTrusted(authority),
  });
  const stopListening = configurations.onChange(() => source.reconsider());
  if (certificate.injectsAuthority) injection = new Injection({ env, configurations, source });
  const stop = (): void => {
    stopListening();
    injection?.stop();
    source.stop();
  };
  return { source, injection, stop };
}

/** The remaining lifetime at which `degradations` first reports the expiry. People then have two weeks to act. */
const warnBeforeMs = 14 * 86_400_000;
/** The limit for short lifetimes, as a share. The renewal is due when about a third remains, so it has failed if a quarter remains. */
const warnBeforeShare = 0.25;

interface Expiry {
  /** End of the server certificate, in milliseconds since 1970. */
  readonly notAfterMs: number;
  /** The instant from which `degradation` reports the expiry, because the renewal has then failed. */
  readonly warnFromMs: number;
  /** A sentence for people; absent without a problem. */
  readonly degradation?: string;
}

/** Returns the expiry of the current certificate; undefined without a certificate. `nowMs`: wall clock, in milliseconds since 1970. */
export function expiryOf(source: Pick<CertificateSource, 'current'>, nowMs: number): Expiry | undefined {
  const served = source.current();
  const leaf = served === undefined ? undefined : certificatesIn(served.cert)[0];
  if (served === undefined || leaf === undefined) return undefined;
  const { notBeforeMs, notAfterMs } = validityOf(new X509Certificate(leaf));
  const warnFromMs = notAfterMs - Math.min(warnBeforeMs, (notAfterMs - notBeforeMs) * warnBeforeShare);
  return { notAfterMs, warnFromMs, ...(nowMs < warnFromMs ? {} : { degradation: degradationOf(notAfterMs - nowMs) }) };
}

function degradationOf(remainingMs: number): string {
  if (remainingMs <= 0) return 'the certificate of the webhook has expired: API servers refuse to call it';
  const left = remainingMs < 172_800_000 ? `${Math.floor(remainingMs / 3_600_000)} hours` : `${Math.floor(remainingMs / 86_400_000)} days`;
  return `the certificate of the webhook expires in ${left} and has not been renewed; afterwards API servers refuse to call it`;
}
