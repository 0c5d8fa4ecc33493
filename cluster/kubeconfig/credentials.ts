// Keeps the credentials of a user fresh: reads files again every minute, and runs plugins again after expiry.
import { isDeepStrictEqual } from 'node:util';
import { messageOf } from '../../policies/error-message.ts';
import { type Authorization, configurationFailure, type TlsMaterial } from '../connection/connection.ts';
import type { Choice } from './choice.ts';
import type { UserEntry } from './file.ts';
import type { ConnectionProcess } from './kubeconfig.ts';

/** The credentials of a plugin or an auth provider. */
export interface Delegated {
  readonly token?: string;
  readonly cert?: Buffer;
  readonly key?: Buffer;
  /** The wall clock time of expiry; absent if the credentials are valid until the server rejects them. */
  readonly expiresAtMs?: number;
}

/** The age at which files are read again, as in client-go. The kubelet replaces token files long before they expire. */
const rereadAfterMs = 60_000;

type Part = 'ca' | 'cert' | 'key' | 'token';

export class Credentials {
  readonly #choice: Choice;
  readonly #process: ConnectionProcess;
  readonly #delegate: (() => Promise<Delegated>) | undefined;
  readonly #files: Readonly<Partial<Record<Part, string>>>;
  #contents = new Map<Part, Buffer>();
  #delegated: Delegated | undefined;
  #current: Authorization | undefined;
  #isForgotten = false;
  #readAtMs = 0;
  #pending: Promise<Authorization> | undefined;

  /** `delegate` calls the plugin or auth provider; absent if the credentials are in the kubeconfig or in files. */
  constructor(choice: Choice, process: ConnectionProcess, delegate?: () => Promise<Delegated>) {
    this.#choice = choice;
    this.#process = process;
    this.#delegate = delegate;
    this.#files = filesOf(choice);
  }

  async authorize(): Promise<Authorization> {
    if (this.#current !== undefined && this.#isFresh()) return this.#current;
    // Concurrent requests wait for one renewal.
    this.#pending ??= this.#renew().finally(() => {
      this.#pending = undefined;
    });
    return this.#pending;
  }

  forget(refused: Authorization): boolean {
    if (this.#delegate === undefined && Object.keys(this.#files).length === 0) return false;
    // If `refused` is not current, newer credentials exist and the caller only has to retry.
    if (this.#current === refused && this.#pending === undefined) {
      this.#isForgotten = true;
      this.#delegated = undefined;
      this.#contents = new Map();
    }
    return true;
  }

  #isFresh(): boolean {
    const { monotonicMs } = this.#process.clock;
    const hasFiles = Object.keys(this.#files).length > 0;
    return !this.#isForgotten && !this.#isExpired() && (!hasFiles || monotonicMs() - this.#readAtMs < rereadAfterMs);
  }

  #isExpired(): boolean {
    const expiresAtMs = this.#delegated?.expiresAtMs;
    return expiresAtMs !== undefined && this.#process.clock.nowMs() >= expiresAtMs;
  }

  async #renew(): Promise<Authorization> {
    const readAtMs = this.#process.clock.monotonicMs();
    for (const part of ['ca', 'cert', 'key', 'token'] as const) await this.#read(part);
    if (this.#delegate !== undefined && (this.#delegated === undefined || this.#isExpired())) this.#delegated = await this.#delegate();
    const tls = this.#tls();
    const before = this.#current?.tls;
    this.#current = { headers: this.#headers(), tls: before !== undefined && isDeepStrictEqual(before, tls) ? before : tls };
    this.#readAtMs = readAtMs;
    this.#isForgotten = false;
    return this.#current;
  }

  /** Reads a file. If the file cannot be read, for example while it is replaced, its previous content stays. */
  async #read(part: Part): Promise<void> {
    const file = this.#files[part];
    if (file === undefined) return;
    try {
      this.#contents.set(part, await this.#process.readFile(file));
    } catch (error) {
      if (this.#contents.has(part)) return;
      const why = messageOf(error);
      throw configurationFailure(`${names[part]} ${file}, which ${this.#choice.origin} names, cannot be read: ${why}`);
    }
  }

  #tls(): TlsMaterial {
    const { cluster, user } = this.#choice;
    const contents = (part: Part, base64: string | undefined): Buffer | undefined =>
      base64 === undefined ? this.#contents.get(part) : Buffer.from(base64, 'base64');
    const ca = contents('ca', cluster.certificateAuthorityData);
    const cert = this.#delegated?.cert ?? contents('cert', user.clientCertificateData);
    const key = this.#delegated?.key ?? contents('key', user.clientKeyData);
    return {
      ...(ca && { ca }),
      ...(cert && key && { cert, key }),
      ...(cluster.tlsServerName !== undefined && { serverName: cluster.tlsServerName }),
      isVerified: cluster.insecureSkipTlsVerify !== true,
    };
  }

  #headers(): Authorization['headers'] {
    const { user, origin } = this.#choice;
    const token = this.#contents.get('token')?.toString('utf8').trim() || user.token || this.#delegated?.token;
    const headers = { ...authorizationOf(token, user), ...impersonationOf(user) };
    // The error of Node.js would quote the value, which is secret.
    for (const [name, value] of Object.entries(headers))
      if ([value].flat().some((each) => !/^[\t\x20-\x7e\x80-\xff]*$/.test(each)))
        throw configurationFailure(`the value of header ${name} from ${origin} has characters that are not allowed in a header`);
    return headers;
  }
}

const names: Readonly<Record<Part, string>> = {
  ca: 'the certificate authority',
  cert: 'the client certificate',
  key: 'the client key',
  token: 'the token file',
};

/** Returns the files to read. A `Data` field of the kubeconfig has precedence over a file. */
function filesOf({ cluster, user }: Choice): Partial<Record<Part, string>> {
  return {
    ...(cluster.certificateAuthority !== undefined &&
      cluster.certificateAuthorityData === undefined && { ca: cluster.certificateAuthority }),
    ...(user.clientCertificate !== undefined && user.clientCertificateData === undefined && { cert: user.clientCertificate }),
    ...(user.clientKey !== undefined && user.clientKeyData === undefined && { key: user.clientKey }),
    ...(user.tokenFile !== undefined && { token: user.tokenFile }),
  };
}

function authorizationOf(token: string | undefined, { username, password }: UserEntry): Readonly<Record<string, string>> {
  if (token !== undefined) return { Authorization: `Bearer ${token}` };
  if (username === undefined) return {};
  return { Authorization: `Basic ${Buffer.from(`${username}:${password ?? ''}`).toString('base64')}` };
}

function impersonationOf({ as, asUid, asGroups, asUserExtra }: UserEntry): Readonly<Record<string, string | readonly string[]>> {
  if (as === undefined) return {};
  const extra = Object.entries(asUserExtra ?? {}).map(([key, values]) => [`Impersonate-Extra-${headerPart(key)}`, values] as const);
  return {
    'Impersonate-User': as,
    ...(asUid !== undefined && { 'Impersonate-Uid': asUid }),
    ...(asGroups !== undefined && asGroups.length > 0 && { 'Impersonate-Group': asGroups }),
    ...Object.fromEntries(extra),
  };
}

/** Escapes a key for a header name; the API server unescapes it. */
function headerPart(key: string): string {
  return encodeURIComponent(key).replace(/[()]/g, (character) => (character === '(' ? '%28' : '%29'));
}
