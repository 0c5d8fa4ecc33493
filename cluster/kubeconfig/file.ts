// Reads and merges kubeconfig files. The first entry of a name wins; paths are relative to the file that contains them.
import { dirname, isAbsolute, join } from 'node:path';
import { parse } from 'yaml';
import { messageOf } from '../../policies/error-message.ts';
import { defined } from '../../policies/values/defined.ts';
import { configurationFailure } from '../connection/connection.ts';
import { isJsonObject } from '../request/json.ts';

export interface ClusterEntry {
  readonly server?: string;
  readonly certificateAuthority?: string;
  /** Base64 of PEM, as in every field that ends with `Data`. */
  readonly certificateAuthorityData?: string;
  readonly insecureSkipTlsVerify?: boolean;
  readonly tlsServerName?: string;
  readonly proxyUrl?: string;
  /** The extension `client.authentication.k8s.io/exec` for credential plugins. */
  readonly execConfig?: unknown;
}

export interface ExecEntry {
  readonly apiVersion: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly provideClusterInfo: boolean;
  readonly interactiveMode: (typeof interactiveModes)[number];
  readonly installHint?: string;
}

export interface UserEntry {
  readonly token?: string;
  readonly tokenFile?: string;
  readonly clientCertificate?: string;
  readonly clientCertificateData?: string;
  readonly clientKey?: string;
  readonly clientKeyData?: string;
  readonly username?: string;
  readonly password?: string;
  readonly as?: string;
  readonly asUid?: string;
  readonly asGroups?: readonly string[];
  readonly asUserExtra?: Readonly<Record<string, readonly string[]>>;
  readonly exec?: ExecEntry;
  readonly authProvider?: { readonly name: string; readonly config: Readonly<Record<string, unknown>> };
}

export interface ContextEntry {
  readonly cluster?: string;
  readonly user?: string;
  readonly namespace?: string;
}

export interface Entry<Value> {
  readonly file: string;
  readonly value: Value;
}

export interface Kubeconfig {
  readonly files: readonly string[];
  readonly missing: readonly string[];
  readonly currentContext?: Entry<string>;
  readonly clusters: ReadonlyMap<string, Entry<ClusterEntry>>;
  readonly users: ReadonlyMap<string, Entry<UserEntry>>;
  readonly contexts: ReadonlyMap<string, Entry<ContextEntry>>;
}

/** Reads the existing files; the first entry of a name wins. With `isRequired`, every file must exist. Rejects with ConnectionFailure. */
export async function readKubeconfigs(
  files: readonly string[],
  { readFile, isRequired }: { readonly readFile: (path: string) => Promise<Buffer>; readonly isRequired: boolean },
): Promise<Kubeconfig> {
  const found: string[] = [];
  const missing: string[] = [];
  const clusters = new Map<string, Entry<ClusterEntry>>();
  const users = new Map<string, Entry<UserEntry>>();
  const contexts = new Map<string, Entry<ContextEntry>>();
  let currentContext: Entry<string> | undefined;
  for (const file of files) {
    const text = await textOf(file, readFile);
    if (text === undefined && isRequired) throw configurationFailure(`the kubeconfig ${file} does not exist`);
    if (text === undefined) {
      missing.push(file);
      continue;
    }
    found.push(file);
    const root = documentOf(text, file);
    addEntries(clusters, namedEntries(root, 'clusters', 'cluster'), clusterEntry);
    addEntries(users, namedEntries(root, 'users', 'user'), userEntry);
    addEntries(contexts, namedEntries(root, 'contexts', 'context'), contextEntry);
    const current = root.text('current-context');
    if (current !== undefined) currentContext ??= { file, value: current };
  }
  return { files: found, missing, ...(currentContext && { currentContext }), clusters, users, contexts };
}

async function textOf(file: string, readFile: (path: string) => Promise<Buffer>): Promise<string | undefined> {
  try {
    return (await readFile(file)).toString('utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    // ENOTDIR: a folder of the path is a file.
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw configurationFailure(`the kubeconfig ${file} cannot be read: ${messageOf(error)}`, error);
  }
}

function documentOf(text: string, file: string): Fields {
  let value: unknown;
  try {
    // The parser's message would quote the line, which may contain a token.
    value = parse(text, { prettyErrors: false, logLevel: 'error' });
  } catch (error) {
    const position = error instanceof Error && 'pos' in error && Array.isArray(error.pos) ? Number(error.pos[0]) : 0;
    const line = text.slice(0, position).split('\n').length;
    throw configurationFailure(`the kubeconfig ${file} is not YAML: see line ${line}`);
  }
  return new Fields(value ?? {}, '', file);
}

/** Reads one mapping of a file, with errors that name the file and the field. */
class Fields {
  readonly file: string;
  readonly #where: string;
  readonly #values: Readonly<Record<string, unknown>>;

  constructor(value: unknown, where: string, file: string) {
    if (!isJsonObject(value)) throw configurationFailure(`${where || 'the content'} of the kubeconfig ${file} must be a mapping`);
    this.file = file;
    this.#where = where;
    this.#values = value;
  }

  /** Returns undefined if absent or empty, as kubectl does. */
  text(key: string): string | undefined {
    const value = this.raw(key);
    if (value === undefined || value === '') return undefined;
    return typeof value === 'string' ? value : this.refuse(key, 'text');
  }

  flag(key: string): boolean | undefined {
    const value = this.raw(key);
    return value === undefined || typeof value === 'boolean' ? value : this.refuse(key, 'true or false');
  }

  texts(key: string): readonly string[] | undefined {
    const value = this.raw(key);
    if (value === undefined) return undefined;
    return isTexts(value) ? value : this.refuse(key, 'a list of texts');
  }

  list(key: string): readonly unknown[] {
    const value = this.raw(key) ?? [];
    return Array.isArray(value) ? value : this.refuse(key, 'a list');
  }

  fields(key: string): Fields | undefined {
    const value = this.raw(key);
    return value === undefined ? undefined : new Fields(value, this.place(key), this.file);
  }

  path(key: string): string | undefined {
    const path = this.text(key);
    return path === undefined || isAbsolute(path) ? path : join(dirname(this.file), path);
  }

  raw(key: string): unknown {
    return this.#values[key] ?? undefined;
  }

  entries(): readonly (readonly [string, unknown])[] {
    return Object.entries(this.#values);
  }

  place(key: string): string {
    return this.#where === '' ? key : `${this.#where}.${key}`;
  }

  refuse(key: string, wanted: string): never {
    throw configurationFailure(`${this.place(key)} of the kubeconfig ${this.file} must be ${wanted}`);
  }
}

interface Named {
  readonly name: string;
  readonly fields: Fields;
}

function namedEntries(root: Fields, list: string, key: string): readonly Named[] {
  return root.list(list).map((item, index) => {
    const entry = new Fields(item, `${list}[${index}]`, root.file);
    const name = entry.text('name') ?? entry.refuse('name', 'text');
    return { name, fields: entry.fields(key) ?? new Fields({}, entry.place(key), root.file) };
  });
}

function addEntries<Value>(to: Map<string, Entry<Value>>, entries: readonly Named[], read: (fields: Fields) => Value): void {
  for (const { name, fields } of entries) if (!to.has(name)) to.set(name, { file: fields.file, value: read(fields) });
}

function clusterEntry(fields: Fields): ClusterEntry {
  const extension = fields
    .list('extensions')
    .find((each) => isJsonObject(each) && each['name'] === 'client.authentication.k8s.io/exec' && 'extension' in each);
  return defined({
    server: fields.text('server'),
    certificateAuthority: fields.path('certificate-authority'),
    certificateAuthorityData: fields.text('certificate-authority-data'),
    insecureSkipTlsVerify: fields.flag('insecure-skip-tls-verify'),
    tlsServerName: fields.text('tls-server-name'),
    proxyUrl: fields.text('proxy-url'),
    execConfig: isJsonObject(extension) ? extension['extension'] : undefined,
  });
}

function userEntry(fields: Fields): UserEntry {
  const provider = fields.fields('auth-provider');
  const exec = fields.fields('exec');
  return defined({
    token: fields.text('token'),
    tokenFile: fields.path('tokenFile'),
    clientCertificate: fields.path('client-certificate'),
    clientCertificateData: fields.text('client-certificate-data'),
    clientKey: fields.path('client-key'),
    clientKeyData: fields.text('client-key-data'),
    username: fields.text('username'),
    password: fields.text('password'),
    as: fields.text('as'),
    asUid: fields.text('as-uid'),
    asGroups: fields.texts('as-groups'),
    asUserExtra: extraOf(fields.fields('as-user-extra')),
    exec: exec && execEntry(exec),
    authProvider: provider && {
      name: provider.text('name') ?? provider.refuse('name', 'text'),
      config: Object.fromEntries(provider.fields('config')?.entries() ?? []),
    },
  });
}

function extraOf(fields: Fields | undefined): UserEntry['asUserExtra'] {
  return fields && Object.fromEntries(fields.entries().map(([key]) => [key, fields.texts(key) ?? []]));
}

const interactiveModes = ['Never', 'IfAvailable', 'Always'] as const;

function execEntry(fields: Fields): ExecEntry {
  const command = fields.text('command') ?? fields.refuse('command', 'the name of a program');
  const written = fields.text('interactiveMode') ?? 'IfAvailable';
  const mode =
    interactiveModes.find((each) => each === written) ?? fields.refuse('interactiveMode', `one of ${interactiveModes.join(', ')}`);
  const env = fields.list('env').map((item, index) => {
    const variable = new Fields(item, fields.place(`env[${index}]`), fields.file);
    return [variable.text('name') ?? variable.refuse('name', 'text'), variable.text('value') ?? ''] as const;
  });
  return defined({
    apiVersion: fields.text('apiVersion') ?? fields.refuse('apiVersion', 'client.authentication.k8s.io/v1'),
    // A bare name is searched in PATH; a relative path is relative to the file.
    command: /[/\\]/.test(command) && !isAbsolute(command) ? join(dirname(fields.file), command) : command,
    args: fields.texts('args') ?? [],
    env: Object.fromEntries(env),
    provideClusterInfo: fields.flag('provideClusterInfo') ?? false,
    interactiveMode: mode,
    installHint: fields.text('installHint'),
  });
}

function contextEntry(fields: Fields): ContextEntry {
  return defined({ cluster: fields.text('cluster'), user: fields.text('user'), namespace: fields.text('namespace') });
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}
