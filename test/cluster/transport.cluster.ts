// What the connection promises, on a real API server: identities, pages, watches, refusals, deadlines that the server hears of.
import { expect, it, onTestFinished, vi } from 'vitest';
import { connectionProcess } from '../../cluster/connection/process-env.ts';
import { KubernetesTransport, type TransportOptions } from '../../cluster/connection/transport.ts';
import type { KubernetesResponse } from '../../cluster/env.ts';
import { type ConnectionOptions, loadConnection } from '../../cluster/kubeconfig/kubeconfig.ts';
import { ApiFailure } from '../../cluster/request/failure.ts';
import { collectionPath, resources } from '../../cluster/request/resource.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { ask } from './loopback.ts';

interface Shown {
  readonly metadata: { readonly name?: string; readonly resourceVersion?: string; readonly continue?: string };
  readonly items?: readonly Shown[];
}

async function connect(options: ConnectionOptions, transport: Partial<TransportOptions> = {}): Promise<KubernetesTransport> {
  // Nothing of the developer's own clusters is to be found.
  const process = { ...connectionProcess(), env: {}, homeDir: '/nonexistent' };
  const http = new KubernetesTransport(await loadConnection(options, process), { userAgent: 'rollout-group-test/1', ...transport });
  onTestFinished(() => http.close());
  return http;
}

const parsed = ({ body }: KubernetesResponse): Shown => JSON.parse(body) as Shown;

/** A namespace with configuration maps, which an identity of the test may read and change. */
async function place({ client, identityOf }: ControlPlane, name: string, mapCount: number) {
  await client.create('/api/v1/namespaces', { metadata: { name } });
  const identity = identityOf({ user: `reader-of-${name}`, groups: [] });
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${name}`;
  const verbs = ['get', 'list', 'watch', 'create', 'delete'];
  await client.create(`${rbac}/roles`, { metadata: { name: 'maps' }, rules: [{ apiGroups: [''], resources: ['configmaps'], verbs }] });
  await client.create(`${rbac}/rolebindings`, {
    metadata: { name: 'maps' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'maps' },
    subjects: [{ kind: 'User', name: identity.user }],
  });
  const path = collectionPath(resources.configMaps, name);
  for (let index = 0; index < mapCount; index += 1) {
    await client.create(path, { metadata: { name: `map-${String(index).padStart(2, '0')}` }, data: { text: 'ü'.repeat(10_000) } });
  }
  const http = await connect({ kubeconfig: identity.kubeconfig });
  // The API server learns of new bindings by a watch of its own.
  await vi.waitFor(async () => expect((await http.request(ask(path))).status).toBe(200), 10_000);
  return { http, path, identity, client };
}

describeOnControlPlane('the connection', (controlPlane) => {
  it('reads what its identity may read, and gets an error for the rest', async () => {
    const { http, path, identity } = await place(controlPlane(), 'reading', 1);
    const map = parsed(await http.request(ask(`${path}/map-00`)));
    expect(map.metadata.name).toBe('map-00');
    const refused = await http.request(ask('/api/v1/nodes'));
    const failure = new ApiFailure(refused, 'test.ask');
    expect([refused.status, failure.reason, failure.message]).toEqual([
      403,
      'Forbidden',
      `nodes is forbidden: User "${identity.user}" cannot list resource "nodes" in API group "" at the cluster scope`,
    ]);
  });

  it('lists by pages, compressed or not, with the same result', async () => {
    const { http, path, identity } = await place(controlPlane(), 'pages', 25);
    const compressed = await connect({ kubeconfig: identity.kubeconfig }, { isCompressed: true });
    for (const each of [http, compressed]) {
      const names: (string | undefined)[] = [];
      let next: string | undefined = '';
      while (next !== undefined) {
        const page: Shown = parsed(await each.request(ask(`${path}?limit=10&continue=${encodeURIComponent(next)}`)));
        names.push(...(page.items ?? []).map(({ metadata }) => metadata.name));
        next = page.metadata.continue;
      }
      const maps = names.filter((name) => name?.startsWith('map-'));
      expect(maps).toEqual(Array.from({ length: 25 }, (_, index) => `map-${String(index).padStart(2, '0')}`));
    }
    // The server compresses from 128 KiB on.
    const [plain, zipped] = [await http.request(ask(path)), await compressed.request(ask(path))];
    expect([plain.headers['content-encoding'], zipped.headers['content-encoding']]).toEqual([undefined, 'gzip']);
    expect(zipped.body).toBe(plain.body);
  });

  it('watches, and ends with the server', async () => {
    const { http, path, client } = await place(controlPlane(), 'watching', 0);
    const { resourceVersion } = parsed(await http.request(ask(path))).metadata;
    const lines: string[] = [];
    const watch = await http.stream(ask(`${path}?watch=1&timeoutSeconds=3&resourceVersion=${resourceVersion}`), (line) => lines.push(line));
    await client.create(path, { metadata: { name: 'made' }, data: { text: 'zürich' } });
    await client.delete(`${path}/made`);
    expect(watch.status).toBe(200);
    expect(await watch.ended).toBe('the server ended the stream');
    const events = lines.map((line) => JSON.parse(line) as { type: string; object: Shown & { data: { text: string } } });
    expect(events.map(({ type, object }) => [type, object.metadata.name, object.data.text])).toEqual([
      ['ADDED', 'made', 'zürich'],
      ['DELETED', 'made', 'zürich'],
    ]);
  });

  it('gets the reason if there is no watch', async () => {
    const { http } = await place(controlPlane(), 'refused-watch', 0);
    const lines: string[] = [];
    const watch = await http.stream(ask('/api/v1/nodes?watch=1'), (line) => lines.push(line));
    expect([watch.status, await watch.ended, lines]).toEqual([403, 'the server answered 403', []]);
    expect(JSON.parse(watch.body)).toMatchObject({ kind: 'Status', reason: 'Forbidden' });
  });

  it('impersonates a user if configured and allowed', async () => {
    const { identities, client } = controlPlane();
    const self = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
    const body = JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' });
    const who = async (options: ConnectionOptions) => {
      const http = await connect({ kubeconfig: identities.admin.kubeconfig, ...options });
      const { status, userInfo } = JSON.parse((await http.request(ask(self, { method: 'POST', body }))).body);
      return status.userInfo ?? userInfo;
    };
    expect(await who({})).toMatchObject({ username: 'admin', groups: ['system:masters', 'system:authenticated'] });
    expect(await who({ as: 'jane', asGroups: ['a', 'b'], asUid: '7' })).toMatchObject({
      username: 'jane',
      uid: '7',
      groups: ['a', 'b', 'system:authenticated'],
    });
    expect((await client.ask('GET', '/version')).status).toBe(200);
  });

  it('is unauthenticated with a token of no issuer', async () => {
    const { url, authority } = controlPlane();
    const ca = Buffer.from(authority.certificate).toString('base64');
    const kubeconfig = {
      clusters: [{ name: 'c', cluster: { server: url, 'certificate-authority-data': ca } }],
      users: [{ name: 'u', user: { token: 'made-up' } }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'x',
    };
    const process = { ...connectionProcess(), readFile: async () => Buffer.from(JSON.stringify(kubeconfig)) };
    const http = new KubernetesTransport(await loadConnection({ kubeconfig: 'anything' }, process), { userAgent: 'test/1' });
    onTestFinished(() => http.close());
    expect((await http.request(ask('/api/v1/pods'))).status).toBe(401);
  });

  it('has a user agent that the server knows', async () => {
    const { http, path } = await place(controlPlane(), 'agent-name', 0);
    await http.request(ask(`${path}?labelSelector=seen`));
    const seen = (await controlPlane().auditLog()).find(({ requestURI }) => requestURI.endsWith('labelSelector=seen'));
    expect(seen).toMatchObject({ verb: 'list', userAgent: 'rollout-group-test/1', user: { username: 'reader-of-agent-name' } });
  });
});
