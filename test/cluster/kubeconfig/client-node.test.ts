import { closeSync, openSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connectionProblem } from '../../../cluster/connection/connection.ts';
import { type ConnectionProcess, loadConnection } from '../../../cluster/kubeconfig/kubeconfig.ts';
import { ask, authority, serveHttp, serveHttps, serveTcp, transportTo } from '../loopback.ts';
import { type KubeconfigFolder, kubeconfig, kubeconfigFolder } from './folder.ts';

const v1 = 'client.authentication.k8s.io/v1';

/** A credential plugin: a script of the shell, which notes each run and what it was told. */
function plugin(folder: KubeconfigFolder, script: string, exec: object = {}): string {
  folder.write('bin/login', `#!/bin/sh\necho "$KUBERNETES_EXEC_INFO" >> "${folder.path('runs')}"\n${script}\n`, 0o700);
  const user = { token: undefined, exec: { apiVersion: v1, command: './bin/login', interactiveMode: 'Never', ...exec } };
  return folder.write('config', kubeconfig({ user }));
}

function runs(folder: KubeconfigFolder): readonly { readonly spec: { readonly interactive: boolean; readonly cluster?: unknown } }[] {
  return readFileSync(folder.path('runs'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

function credential(status: object): string {
  return `cat <<'END'\n${JSON.stringify({ apiVersion: v1, kind: 'ExecCredential', status })}\nEND`;
}

function expiring(atMs: number, token: string): string {
  return credential({ token, expirationTimestamp: new Date(atMs).toISOString() });
}

const noCredential = 'its output is not an ExecCredential with a token or a certificate';

describe('a credential plugin', () => {
  it('runs when credentials are needed, again after they expire or are rejected, and once for all waiting requests', async () => {
    const folder = kubeconfigFolder();
    const kubeconfigFile = plugin(folder, expiring(5000, 'one'));
    const connection = await loadConnection({ kubeconfig: kubeconfigFile }, folder.process({ PATH: '/usr/bin:/bin' }));
    const token = async () => (await connection.authorize()).headers['Authorization'];
    expect(await Promise.all([token(), token(), token()])).toEqual(Array(3).fill('Bearer one'));
    folder.time.nowMs = 4999;
    await token();
    expect(runs(folder)).toHaveLength(1);
    plugin(folder, credential({ token: 'two' }));
    folder.time.nowMs = 5000;
    expect(await token()).toBe('Bearer two');
    folder.time.nowMs = 24 * 3_600_000;
    const old = await connection.authorize();
    expect(runs(folder)).toHaveLength(2);
    plugin(folder, credential({ token: 'three' }));
    expect(connection.forget(old)).toBe(true);
    expect(await token()).toBe('Bearer three');
    // The same refusal, heard by another request that had used them too.
    expect(connection.forget(old)).toBe(true);
    expect(await token()).toBe('Bearer three');
    expect(runs(folder)).toHaveLength(3);
  });

  it('receives the cluster on request, its variables and arguments, and may return a certificate', async () => {
    const folder = kubeconfigFolder();
    folder.write('ca.crt', 'authority');
    const login = folder.write('login', `#!/bin/sh\necho "$KUBERNETES_EXEC_INFO" > "$RUNS"\ncat "$1"\n`, 0o700);
    const answer = { apiVersion: v1, kind: 'ExecCredential', status: { clientCertificateData: 'certificate', clientKeyData: 'key' } };
    const file = folder.write('answer', answer);
    const exec = {
      apiVersion: v1,
      command: login,
      args: [file],
      env: [{ name: 'RUNS', value: folder.path('runs') }],
      provideClusterInfo: true,
    };
    const extension = { name: 'client.authentication.k8s.io/exec', extension: { audience: 'x' } };
    const cluster = { 'certificate-authority': 'ca.crt', 'tls-server-name': 'api', extensions: [extension] };
    const kubeconfigFile = folder.write('config', kubeconfig({ cluster, user: { token: undefined, exec } }));
    const connection = await loadConnection({ kubeconfig: kubeconfigFile }, folder.process({ PATH: '/usr/bin:/bin' }));
    expect(await connection.authorize()).toEqual({
      headers: {},
      tls: { ca: Buffer.from('authority'), cert: Buffer.from('certificate'), key: Buffer.from('key'), serverName: 'api', isVerified: true },
    });
    expect(runs(folder)).toEqual([
      {
        kind: 'ExecCredential',
        apiVersion: v1,
        spec: {
          interactive: false,
          cluster: {
            server: 'https://main.example:6443',
            'tls-server-name': 'api',
            'certificate-authority-data': Buffer.from('authority').toString('base64'),
            config: { audience: 'x' },
          },
        },
      },
    ]);
  });

  it('uses standard error for its messages, and does not run if there is a token', async () => {
    const folder = kubeconfigFolder();
    const file = plugin(folder, `echo 'open https://login.example' >&2\n${credential({ token: 'one' })}`);
    const stderr = openSync(folder.path('stderr'), 'w');
    onTestFinished(() => closeSync(stderr));
    const process = folder.process({ PATH: '/usr/bin:/bin' }, { pluginStderr: stderr });
    const given = await loadConnection({ kubeconfig: file, token: 'given' }, process);
    expect((await given.authorize()).headers).toEqual({ Authorization: 'Bearer given' });
    const beside = folder.write(
      'beside',
      kubeconfig({ user: { token: 'beside', exec: { apiVersion: v1, command: folder.path('bin/login') } } }),
    );
    expect((await (await loadConnection({ kubeconfig: beside }, process)).authorize()).headers).toEqual({ Authorization: 'Bearer beside' });
    expect(readFileSync(folder.path('stderr'), 'utf8')).toBe('');
    await (await loadConnection({ kubeconfig: file }, process)).authorize();
    expect(readFileSync(folder.path('stderr'), 'utf8')).toBe('open https://login.example\n');
    expect(runs(folder)[0]?.spec).toEqual({ interactive: false });
  });

  it.each([
    { case: 'fails', script: 'exit 3', why: 'it ended with exit code 3; its standard error is above' },
    { case: 'writes no JSON', script: 'echo "s3cret is no JSON"', why: noCredential },
    { case: 'writes other JSON', script: 'echo "{}"', why: noCredential },
    { case: 'gives neither token nor certificate', script: credential({ user: 'x' }), why: noCredential },
    { case: 'does not exist', exec: { command: 'no-such-program' }, why: 'the program does not exist' },
    {
      case: 'wants a person where there is none',
      exec: { interactiveMode: 'Always' },
      why: 'it needs a terminal on standard input',
    },
    {
      case: 'is too old',
      exec: { apiVersion: 'client.authentication.k8s.io/v1alpha1' },
      why:
        'its apiVersion client.authentication.k8s.io/v1alpha1 is not v1 or v1beta1 of client.authentication.k8s.io; ' +
        'update the plugin and the kubeconfig',
    },
  ])('with $case is named in the failure', async ({ script = 'true', exec = {}, why }) => {
    const folder = kubeconfigFolder();
    const file = plugin(folder, script, { installHint: 'Install it.', ...exec });
    const stderr = openSync('/dev/null', 'w');
    onTestFinished(() => closeSync(stderr));
    const connection = await loadConnection({ kubeconfig: file }, folder.process({ PATH: '/usr/bin:/bin' }, { pluginStderr: stderr }));
    const error = await transportTo(connection)
      .request(ask('/'))
      .catch((rejected: unknown) => rejected);
    const command = exec.command ?? folder.path('bin/login');
    expect(error).toMatchObject({
      name: 'TransportFailure',
      mayBeApplied: false,
      message: `the credential plugin ${command} of context "main" of ${file}: ${why}. Install it.`,
    });
    expect(connectionProblem(error)).toBe('unauthenticated');
  });
});

describe('an auth provider', () => {
  it('returns its token, or reports that it is missing', async () => {
    const folder = kubeconfigFolder();
    const provider = (config: object) => kubeconfig({ user: { token: undefined, 'auth-provider': { name: 'azure', config } } });
    const valid = folder.write('valid', provider({ 'access-token': 'of-azure', 'expires-on': String(Date.now() / 1000 + 3600) }));
    const connection = await loadConnection({ kubeconfig: valid }, folder.process());
    expect((await connection.authorize()).headers).toEqual({ Authorization: 'Bearer of-azure' });
    const expired = folder.write('expired', provider({ 'access-token': 'x', expiry: '2020-01-01T00:00:00Z' }));
    await expect((await loadConnection({ kubeconfig: expired }, folder.process())).authorize()).rejects.toMatchObject({
      kind: 'unauthenticated',
      message: `the auth provider "azure" of context "main" of ${expired} gave no credentials: Token is expired!`,
    });
  });
});

describe('a proxy', () => {
  /** Tunnels by CONNECT, as corporate proxies do. */
  async function tunnel(status = '200 OK') {
    const asked: string[] = [];
    const { port } = await serveTcp((client) => {
      client.once('data', (head) => {
        const text = head.toString();
        asked.push(...text.split('\r\n').filter((line) => /^(?:connect |proxy-authorization:)/i.test(line)));
        client.write(`HTTP/1.1 ${status}\r\n\r\n`);
        const target = Number(/^CONNECT 127\.0\.0\.1:(\d+)/.exec(text)?.[1]);
        if (status.startsWith('200')) join(client, connect(target, '127.0.0.1'));
      });
    });
    return { asked, port };
  }

  function join(one: Socket, other: Socket): void {
    one.pipe(other).pipe(one);
    one.on('close', () => other.destroy());
    other.on('error', () => one.destroy());
  }

  async function transport(folder: KubeconfigFolder, cluster: object, process: ConnectionProcess = folder.process()) {
    const file = folder.write('config', kubeconfig({ cluster }));
    return transportTo(await loadConnection({ kubeconfig: file }, process));
  }

  it('of the kubeconfig is used, its connection is kept, and the server is verified behind it', async () => {
    const folder = kubeconfigFolder();
    const server = await serveHttps((_, response) => response.end('ok'));
    const { asked, port } = await tunnel();
    const ca = { 'certificate-authority-data': Buffer.from(authority().certificate).toString('base64') };
    const http = await transport(folder, { server: server.url, ...ca, 'proxy-url': `http://me:s3cret@127.0.0.1:${port}` });
    for (let index = 0; index < 3; index += 1) expect((await http.request(ask('/version'))).body).toBe('ok');
    expect(asked).toEqual([`CONNECT 127.0.0.1:${server.port} HTTP/1.1`, `proxy-authorization: Basic ${btoa('me:s3cret')}`]);
    expect(server.connectionCount()).toBe(1);

    const distrusting = await transport(folder, { server: server.url, 'proxy-url': `http://127.0.0.1:${port}` });
    await expect(distrusting.request(ask('/', { method: 'POST' }))).rejects.toMatchObject({
      mayBeApplied: false,
      message: expect.stringMatching('not trusted'),
    });
    expect(server.seen.every(({ method }) => method === 'GET')).toBe(true);
  });

  it('with an error is named, and no request was sent', async () => {
    const folder = kubeconfigFolder();
    const { port } = await tunnel('407 Proxy Authentication Required');
    const http = await transport(folder, { 'proxy-url': `http://me:s3cret@127.0.0.1:${port}` });
    await expect(http.request(ask('/', { method: 'POST' }))).rejects.toMatchObject({
      mayBeApplied: false,
      message: `the API server at https://main.example:6443 (context "main" of ${folder.path('config')}, through its proxy) could not be reached: Bad response: 407`,
    });
  });

  it('of the environment is used for remote servers', async () => {
    const folder = kubeconfigFolder();
    const { asked, port } = await tunnel('503 Down');
    const http = await transport(folder, {}, folder.process({ HTTPS_PROXY: `127.0.0.1:${port}` }));
    await expect(http.request(ask('/'))).rejects.toThrow('Bad response: 503');
    expect(asked).toEqual(['CONNECT main.example:6443 HTTP/1.1']);
  });

  it('for an http server is used too', async () => {
    const folder = kubeconfigFolder();
    const server = await serveHttp((_, response) => response.end('ok'));
    const { asked, port } = await tunnel();
    const http = await transport(folder, { server: server.url, 'proxy-url': `http://127.0.0.1:${port}` });
    expect((await http.request(ask('/'))).body).toBe('ok');
    expect(asked).toEqual([`CONNECT 127.0.0.1:${server.port} HTTP/1.1`]);
  });
});

describe('kubectl proxy', () => {
  it('is used over http, without credentials', async () => {
    const folder = kubeconfigFolder();
    const server = await serveHttp((_, response) => response.end('ok'));
    const connection = await loadConnection({ server: server.url }, folder.process());
    expect((await transportTo(connection).request(ask('/version'))).body).toBe('ok');
    expect(server.seen[0]?.headers.authorization).toBeUndefined();
  });
});
