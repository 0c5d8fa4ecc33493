import { rmSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ConnectionFailure } from '../../../cluster/connection/connection.ts';
import {
  type ConnectionOptions,
  type ConnectionProcess,
  environmentProxy,
  loadConnection,
} from '../../../cluster/kubeconfig/kubeconfig.ts';
import { kubeconfig, kubeconfigFolder } from './folder.ts';

async function refusal(options: ConnectionOptions, process: ConnectionProcess): Promise<string> {
  const error = await loadConnection(options, process).then(
    ({ server }) => new Error(`connects to ${server}`),
    (rejected: unknown) => rejected,
  );
  if (!(error instanceof ConnectionFailure)) throw error;
  expect(error.kind).toBe('configuration');
  return error.message;
}

async function headers(options: ConnectionOptions, process: ConnectionProcess) {
  return (await (await loadConnection(options, process)).authorize()).headers;
}

describe('the kubeconfig', () => {
  it('is the file of the flag, else the files of KUBECONFIG, else the file in the home folder', async () => {
    const folder = kubeconfigFolder();
    folder.write('.kube/config', kubeconfig({ name: 'home' }));
    const one = folder.write('one', kubeconfig({ name: 'one' }));
    const two = folder.write('two', kubeconfig({ name: 'two' }));
    const server = async (options: ConnectionOptions, env = {}) => (await loadConnection(options, folder.process(env))).server;
    expect(await server({})).toBe('https://home.example:6443');
    expect(await server({}, { KUBECONFIG: '' })).toBe('https://home.example:6443');
    expect(await server({}, { KUBECONFIG: one })).toBe('https://one.example:6443');
    expect(await server({ kubeconfig: two }, { KUBECONFIG: one })).toBe('https://two.example:6443');
  });

  it('may have several files: the first one wins for each entry, and missing files are skipped', async () => {
    const folder = kubeconfigFolder();
    const first = folder.write('first', {
      ...kubeconfig({
        name: 'shared',
        current: false,
        cluster: { server: 'https://first.example' },
        user: { token: undefined, username: 'u' },
      }),
    });
    const second = folder.write('second', {
      ...kubeconfig({ name: 'shared', current: 'other', cluster: { 'tls-server-name': 'second.example' }, user: { token: 'second' } }),
    });
    const third = folder.write('third', kubeconfig({ name: 'other', current: 'shared', context: { namespace: 'mimir' } }));
    const process = folder.process({ KUBECONFIG: [folder.path('missing'), first, '', second, third].join(':') });
    const other = await loadConnection({}, process);
    expect([other.contextName, other.server, other.namespace]).toEqual(['other', 'https://other.example:6443', 'mimir']);
    const shared = await loadConnection({ context: 'shared' }, process);
    expect(shared.server).toBe('https://first.example');
    expect(await shared.authorize()).toEqual({ headers: { Authorization: 'Basic dTo=' }, tls: { isVerified: true } });
    expect(shared.origin).toBe(`context "shared" of ${first}`);
  });

  it('resolves relative paths next to their file', async () => {
    const folder = kubeconfigFolder();
    folder.write('a/ca.crt', 'authority');
    folder.write('b/keys/tls.crt', 'certificate');
    folder.write('b/keys/tls.key', 'key');
    folder.write('b/token', 'from-file\n');
    const a = folder.write('a/config', { clusters: [{ name: 'c', cluster: { server: 'https://c', 'certificate-authority': 'ca.crt' } }] });
    const files = { 'client-certificate': 'keys/tls.crt', 'client-key': './keys/tls.key', tokenFile: 'token' };
    const b = folder.write('b/config', {
      users: [{ name: 'u', user: files }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'x',
    });
    const connection = await loadConnection({}, folder.process({ KUBECONFIG: `${a}:${b}` }));
    expect(await connection.authorize()).toEqual({
      headers: { Authorization: 'Bearer from-file' },
      tls: { ca: Buffer.from('authority'), cert: Buffer.from('certificate'), key: Buffer.from('key'), isVerified: true },
    });
  });

  it('prefers data to files', async () => {
    const folder = kubeconfigFolder();
    const data = Buffer.from('data').toString('base64');
    const file = folder.write('config', {
      ...kubeconfig({
        cluster: { 'certificate-authority': '/nowhere', 'certificate-authority-data': data },
        user: { 'client-certificate': '/nowhere', 'client-certificate-data': data, 'client-key': '/nowhere', 'client-key-data': data },
      }),
    });
    const { tls } = await (await loadConnection({ kubeconfig: file }, folder.process())).authorize();
    expect([tls.ca, tls.cert, tls.key]).toEqual(Array(3).fill(Buffer.from('data')));
  });

  it('is rejected with the location of the error, and without a secret', async () => {
    const folder = kubeconfigFolder();
    const process = folder.process();
    const of = (content: string | object) => refusal({ kubeconfig: folder.write('config', content) }, process);
    const file = folder.path('config');
    expect(await refusal({ kubeconfig: folder.path('missing') }, process)).toBe(`the kubeconfig ${folder.path('missing')} does not exist`);
    expect(await of('a: b\nusers: [{token: "s3cret}')).toBe(`the kubeconfig ${file} is not YAML: see line 2`);
    expect(await of('- a list')).toBe(`the content of the kubeconfig ${file} must be a mapping`);
    expect(await of({ clusters: {} })).toBe(`clusters of the kubeconfig ${file} must be a list`);
    expect(await of({ clusters: [{ cluster: {} }] })).toBe(`clusters[0].name of the kubeconfig ${file} must be text`);
    expect(await of(kubeconfig({ user: { token: 12345 } }))).toBe(`users[0].user.token of the kubeconfig ${file} must be text`);
    expect(await of(kubeconfig({ user: { exec: { command: 'x', apiVersion: 'v1', interactiveMode: 'Often' } } }))).toBe(
      `users[0].user.exec.interactiveMode of the kubeconfig ${file} must be one of Never, IfAvailable, Always`,
    );
    expect(await of('')).toBe(
      `no cluster is chosen: ${file} has no current-context; choose one with --context, or by kubectl config use-context`,
    );
    expect(await of({ 'current-context': 'main', contexts: [{ name: 'main', context: {} }] })).toBe(
      `no cluster is chosen: the context "main" of ${file} names no cluster; name one with --cluster`,
    );
    expect(await of(kubeconfig({ current: 'gone' }))).toBe(
      `current-context "gone" of ${file} does not exist in ${file}: known contexts: "main"`,
    );
    expect(await of(kubeconfig({ context: { user: 'gone' } }))).toBe(
      `the context in ${file} names the user "gone", but ${file} only has "main"`,
    );
    expect(await of(kubeconfig({ context: { cluster: 'gone' } }))).toBe(
      `the context in ${file} names the cluster "gone", but ${file} only has "main"`,
    );
    expect(await of(kubeconfig({ cluster: { server: '' } }))).toBe(`the cluster "main" of ${file} has no server`);
    expect(await of(kubeconfig({ cluster: { server: 'ftp://x' } }))).toBe(
      'the server of the cluster "main" is not an http or https address',
    );
    expect(await of(kubeconfig({ cluster: { 'certificate-authority': 'x', 'insecure-skip-tls-verify': true } }))).toMatch(
      /Set only one of them$/,
    );
    expect(await of(kubeconfig({ user: { 'client-key': 'x' } }))).toMatch(/has a client key without a certificate. Both are required$/);
    expect(await of(kubeconfig({ cluster: { 'proxy-url': 'me:s3cret@proxy' } }))).toBe(
      `the proxy of context "main" of ${file} does not begin with http://, https:// or socks5://`,
    );
    expect(await refusal({}, folder.process({ KUBECONFIG: '/no/a:/no/b' }))).toBe(
      'no cluster is configured: /no/a and /no/b do not exist; set KUBECONFIG, or name a file with --kubeconfig, or a server with --server',
    );
  });

  it('names an unreadable file of credentials when they are needed', async () => {
    const folder = kubeconfigFolder();
    const file = folder.write('config', kubeconfig({ user: { 'client-certificate': 'tls.crt', 'client-key': 'tls.key' } }));
    const connection = await loadConnection({ kubeconfig: file }, folder.process());
    await expect(connection.authorize()).rejects.toThrow(
      `the client certificate ${folder.path('tls.crt')}, which context "main" of ${file} names, cannot be read: ENOENT`,
    );
  });
});

describe('the flags of kubectl', () => {
  it('choose context, cluster, user and namespace', async () => {
    const folder = kubeconfigFolder();
    const one = folder.write('one', kubeconfig({ name: 'one', context: { namespace: 'of-one' } }));
    const two = folder.write('two', kubeconfig({ name: 'two' }));
    const process = folder.process({ KUBECONFIG: `${one}:${two}` });
    const chosen = async (options: ConnectionOptions) => {
      const { contextName, clusterName, userName, namespace, server } = await loadConnection(options, process);
      return [contextName, clusterName, userName, namespace, server];
    };
    expect(await chosen({})).toEqual(['one', 'one', 'one', 'of-one', 'https://one.example:6443']);
    expect(await chosen({ context: '', cluster: '', user: '', server: '', namespace: '', token: '', kubeconfig: '' })).toEqual(
      await chosen({}),
    );
    expect(await chosen({ context: 'two' })).toEqual(['two', 'two', 'two', 'default', 'https://two.example:6443']);
    expect(await chosen({ cluster: 'two', namespace: 'mine' })).toEqual(['one', 'two', 'one', 'mine', 'https://two.example:6443']);
    expect(await chosen({ user: 'two', server: 'https://10.0.0.1/path/' })).toEqual([
      'one',
      'one',
      'two',
      'of-one',
      'https://10.0.0.1/path',
    ]);
    expect(await headers({ user: 'two' }, process)).toEqual({ Authorization: 'Bearer token-of-two' });
    expect(await headers({ token: 'given' }, process)).toEqual({ Authorization: 'Bearer given' });
    expect(await refusal({ context: 'three' }, process)).toBe(
      `the context "three" of --context does not exist in ${one} and ${two}: known contexts: "one", "two"`,
    );
    expect(await refusal({ user: 'three' }, process)).toBe(`--user names the user "three", but ${one} and ${two} only has "one", "two"`);
  });

  it('need no kubeconfig if they name a server', async () => {
    const folder = kubeconfigFolder();
    const connection = await loadConnection({ server: 'localhost:8001', token: 't' }, folder.process());
    expect([connection.server, connection.namespace, connection.origin]).toEqual(['http://localhost:8001', 'default', 'the flags']);
    const secure = await loadConnection({ server: '10.0.0.1:6443', insecureSkipTlsVerify: true }, folder.process());
    expect([secure.server, (await secure.authorize()).tls]).toEqual(['https://10.0.0.1:6443', { isVerified: false }]);
  });

  it('replace every trust setting of the file', async () => {
    const folder = kubeconfigFolder();
    const ca = folder.write('ca.crt', 'of the flag');
    const trust = { 'certificate-authority-data': 'QQ==', 'tls-server-name': 'of.file' };
    const file = folder.write('config', kubeconfig({ cluster: trust }));
    const tls = async (options: ConnectionOptions) => {
      return (await (await loadConnection({ kubeconfig: file, ...options }, folder.process())).authorize()).tls;
    };
    expect(await tls({})).toEqual({ ca: Buffer.from('A'), serverName: 'of.file', isVerified: true });
    expect(await tls({ insecureSkipTlsVerify: true })).toEqual({ serverName: 'of.file', isVerified: false });
    expect(await tls({ certificateAuthority: ca })).toEqual({ ca: Buffer.from('of the flag'), serverName: 'of.file', isVerified: true });
    expect(await tls({ tlsServerName: 'of.flag' })).toMatchObject({ serverName: 'of.flag' });
    expect(await tls({ server: 'https://moved' })).toEqual({ ca: Buffer.from('A'), isVerified: true });
  });

  it('replace the client certificate', async () => {
    const folder = kubeconfigFolder();
    const user = { 'client-certificate-data': 'QQ==', 'client-key-data': 'QQ==' };
    const file = folder.write('config', kubeconfig({ user }));
    const certificate = { clientCertificate: folder.write('c', 'certificate'), clientKey: folder.write('k', 'key') };
    const connection = await loadConnection({ kubeconfig: file, ...certificate }, folder.process());
    expect((await connection.authorize()).tls).toMatchObject({ cert: Buffer.from('certificate'), key: Buffer.from('key') });
  });

  it('impersonate a user, with groups, uid and extra', async () => {
    const folder = kubeconfigFolder();
    const user = { as: 'jane', 'as-uid': '7', 'as-groups': ['a', 'b'], 'as-user-extra': { 'example.com/(x)': ['1', '2'] } };
    const file = folder.write('config', kubeconfig({ user }));
    const process = folder.process();
    const token = { Authorization: 'Bearer token-of-main' };
    expect(await headers({ kubeconfig: file }, process)).toEqual({
      ...token,
      'Impersonate-User': 'jane',
      'Impersonate-Uid': '7',
      'Impersonate-Group': ['a', 'b'],
      'Impersonate-Extra-example.com%2F%28x%29': ['1', '2'],
    });
    expect(await headers({ kubeconfig: file, as: 'joe', asGroups: ['c'], asUid: '8' }, process)).toMatchObject({
      'Impersonate-User': 'joe',
      'Impersonate-Uid': '8',
      'Impersonate-Group': ['c'],
    });
    const plain = folder.write('plain', kubeconfig());
    expect(await refusal({ kubeconfig: plain, asGroups: ['system:masters'] }, process)).toMatch(/without a user/);
    expect(await refusal({ kubeconfig: plain, as: '' }, process)).toMatch(/without a user/);
    await expect(headers({ kubeconfig: plain, as: 'a\nb' }, process)).rejects.toThrow('has characters that are not allowed in a header');
  });

  it.each([
    ['30', 30_000],
    ['1m30s', 90_000],
    ['1.5h', 5_400_000],
    ['250ms', 250],
    ['0', undefined],
    ['0s', undefined],
  ])('read the request timeout %s as %s ms', async (requestTimeout, expected) => {
    const folder = kubeconfigFolder();
    expect((await loadConnection({ server: 'http://x', requestTimeout }, folder.process())).requestTimeoutMs).toBe(expected);
  });

  it.each(['', 'soon', '-1', '5 s', '1d', '5s!'])('reject the request timeout %s', async (requestTimeout) => {
    const folder = kubeconfigFolder();
    expect(await refusal({ server: 'http://x', requestTimeout }, folder.process())).toMatch(/^--request-timeout .* is neither a duration/);
  });
});

describe('a pod', () => {
  function pod() {
    const folder = kubeconfigFolder();
    folder.write('account/token', 'first\n');
    folder.write('account/ca.crt', 'authority');
    folder.write('account/namespace', 'mimir\n');
    const env = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '6443' };
    return { folder, env, process: folder.process(env) };
  }

  it('uses its service account without other configuration', async () => {
    const { folder, process } = pod();
    const connection = await loadConnection({}, process);
    expect([connection.server, connection.namespace, connection.origin]).toEqual([
      'https://10.0.0.1:6443',
      'mimir',
      `the service account in ${folder.path('account')}`,
    ]);
    expect(await connection.authorize()).toEqual({
      headers: { Authorization: 'Bearer first' },
      tls: { ca: Buffer.from('authority'), isVerified: true },
    });
    folder.write('.kube/config', kubeconfig({ name: 'home' }));
    expect((await loadConnection({}, process)).server).toBe('https://home.example:6443');
    expect((await loadConnection({ source: 'in-cluster' }, process)).server).toBe('https://10.0.0.1:6443');
  });

  it('reads its token again', async () => {
    const { folder, process } = pod();
    const connection = await loadConnection({ source: 'in-cluster' }, process);
    const token = async () => (await connection.authorize()).headers['Authorization'];
    const { tls } = await connection.authorize();
    folder.write('account/token', 'second');
    folder.time.nowMs = 59_999;
    expect(await token()).toBe('Bearer first');
    folder.time.nowMs = 60_000;
    expect(await token()).toBe('Bearer second');
    expect((await connection.authorize()).tls).toBe(tls);
    folder.write('account/token', 'third');
    expect(connection.forget(await connection.authorize())).toBe(true);
    expect(await token()).toBe('Bearer third');
  });

  it('keeps its token while the file is being replaced, until the server rejects it', async () => {
    const { folder, process } = pod();
    const connection = await loadConnection({ source: 'in-cluster' }, process);
    const before = await connection.authorize();
    rmSync(folder.path('account/token'));
    folder.time.nowMs = 60_000;
    const kept = await connection.authorize();
    expect(kept.headers).toEqual(before.headers);
    connection.forget(kept);
    await expect(connection.authorize()).rejects.toThrow(
      `the token file ${folder.path('account/token')}, which the service account in ${folder.path('account')} names, cannot be read: ENOENT`,
    );
  });

  it('uses the configured namespace, and IPv6 addresses', async () => {
    const { folder, env } = pod();
    const process = folder.process({ ...env, KUBERNETES_SERVICE_HOST: 'fd00::1', POD_NAMESPACE: 'told' });
    const connection = await loadConnection({ source: 'in-cluster' }, process);
    expect([connection.server, connection.namespace]).toEqual(['https://[fd00::1]:6443', 'told']);
    expect((await loadConnection({ source: 'in-cluster', namespace: 'flag' }, process)).namespace).toBe('flag');
  });

  it('gets an error that names the missing part', async () => {
    const { folder, env } = pod();
    expect(await refusal({ source: 'in-cluster' }, folder.process())).toBe(
      'KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set, so this process does not run in a pod. Name a kubeconfig with --kubeconfig',
    );
    folder.write('account/ca.crt', '');
    expect(await refusal({ source: 'in-cluster' }, folder.process(env))).toBe(
      `${folder.path('account')}/ca.crt is missing. The pod needs a service account with automountServiceAccountToken enabled`,
    );
    expect(await refusal({ source: 'kubeconfig' }, folder.process(env))).toMatch(/^no cluster is configured: /);
  });
});

const proxy = 'http://proxy:3128';

describe('the proxy of the environment', () => {
  it.each([
    ['https://api.example', { HTTPS_PROXY: proxy }, proxy],
    ['https://api.example', { https_proxy: 'proxy:3128' }, proxy],
    ['https://api.example', { HTTP_PROXY: proxy }, undefined],
    ['http://api.example', { HTTP_PROXY: proxy }, proxy],
    ['http://api.example', { HTTPS_PROXY: proxy }, undefined],
    ['https://api.example', { HTTPS_PROXY: '' }, undefined],
    ['https://localhost:6443', { HTTPS_PROXY: proxy }, undefined],
    ['https://127.0.0.5:6443', { HTTPS_PROXY: proxy }, undefined],
    ['https://[::1]:6443', { HTTPS_PROXY: proxy }, undefined],
  ])('of %s with %o is %s', (server, env, expected) => {
    expect(environmentProxy(server, env)).toBe(expected);
  });

  it.each([
    ['api.example', 'https://api.example', true],
    ['example', 'https://api.example', true],
    ['API.Example', 'https://api.example', true],
    ['.example', 'https://api.example', true],
    ['*.example', 'https://api.example', true],
    ['.api.example', 'https://api.example', false],
    ['*.api.example', 'https://api.example', false],
    ['pi.example', 'https://api.example', false],
    ['other, api.example', 'https://api.example', true],
    ['*', 'https://api.example', true],
    ['api.example:443', 'https://api.example', true],
    ['api.example:6443', 'https://api.example', false],
    ['api.example:6443', 'https://api.example:6443', true],
    ['10.0.0.1', 'https://10.0.0.1', true],
    ['10.0.0.0/8', 'https://10.1.2.3', true],
    ['10.0.0.0/8', 'https://11.1.2.3', false],
    ['10.0.0.0/99', 'https://10.1.2.3', false],
    ['10.0.0.0/8', 'https://api.example', false],
    ['fd00::/8', 'https://[fd00::1]:6443', true],
    ['[fd00::1]:6443', 'https://[fd00::1]:6443', true],
    ['fd00::1', 'https://[fd00::1]', true],
    ['fd00::2', 'https://[fd00::1]', false],
    ['', 'https://api.example', false],
    [' , ', 'https://api.example', false],
  ])('is not used with NO_PROXY %s for %s: %s', (noProxy, server, isExempt) => {
    expect(environmentProxy(server, { HTTPS_PROXY: proxy, NO_PROXY: noProxy })).toBe(isExempt ? undefined : proxy);
  });
});
