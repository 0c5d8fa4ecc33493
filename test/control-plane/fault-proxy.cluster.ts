// Tests the fault proxy: each fault as the client sees it, and the effect on the server.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ApiClient, type KubernetesObject, type WatchEvent } from './client.ts';
import type { ControlPlane } from './control-plane.ts';
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts';
import { every, type FaultRule, type Injection } from './faults.ts';
import { describeOnControlPlane } from './suite.ts';

const configMaps = '/api/v1/namespaces/default/configmaps';

describeOnControlPlane('a fault proxy', (controlPlane) => {
  let proxy: FaultProxy;
  let client: ApiClient;
  const injected: Injection[] = [];
  const inject = (rule: Omit<FaultRule, 'name'>): Injection => {
    const injection = proxy.inject({ name: 'fault', ...rule });
    injected.push(injection);
    return injection;
  };

  beforeAll(async () => {
    const plane: ControlPlane = controlPlane();
    proxy = await startFaultProxy(plane);
    client = new ApiClient({ url: proxy.url, authority: plane.authority }, proxy.through(plane.identities.admin));
  });
  afterEach(() => {
    for (const injection of injected.splice(0)) injection.remove();
  });
  afterAll(async () => {
    client.close();
    await proxy.close();
  });

  async function names(): Promise<readonly string[]> {
    return (await controlPlane().client.list<KubernetesObject>(configMaps)).map(({ metadata }) => metadata.name);
  }

  async function firstEvents(collection: string, count: number): Promise<readonly WatchEvent<KubernetesObject>[]> {
    const ending = new AbortController();
    const seen: WatchEvent<KubernetesObject>[] = [];
    for await (const event of client.watch<KubernetesObject>(collection, '0', ending.signal)) {
      seen.push(event);
      if (seen.length === count) break;
    }
    ending.abort();
    return seen;
  }

  it('passes on requests without a rule, as the user who sent them', async () => {
    expect((await client.ask('POST', configMaps, { metadata: { name: 'passed' } })).status).toBe(201);
    const written = (await controlPlane().auditLog()).find(({ verb, objectRef }) => verb === 'create' && objectRef?.name === 'passed');
    expect(written?.user.username).toBe('admin');
    expect(proxy.requests().at(-1)).toMatchObject({ user: 'admin', method: 'POST', path: configMaps, status: 201, serverStatus: 201 });
    expect(JSON.parse(proxy.requests().at(-1)?.body ?? '')).toEqual({ metadata: { name: 'passed' } });
  });

  it('leads a kubeconfig to itself', async () => {
    const { kubeconfig } = proxy.through(controlPlane().identities.agent);
    const stranger = new ApiClient({ url: proxy.url, authority: controlPlane().authority }, controlPlane().identities.agent);
    expect(kubeconfig).not.toBe(controlPlane().identities.agent.kubeconfig);
    const { body } = await stranger.ask<{ readonly message: string }>('GET', configMaps);
    stranger.close();
    expect(body.message).toContain('"system:serviceaccount:rollout-group:rollout-group-agent" cannot list');
  });

  it('refuses who shows no certificate of the authority', async () => {
    const { createCertificateAuthority } = await import('./certificates.ts');
    const other = createCertificateAuthority('another authority').issueForClient({ user: 'admin', groups: ['system:masters'] });
    const stranger = new ApiClient(
      { url: proxy.url, authority: controlPlane().authority },
      { ...other, user: 'admin', groups: [], kubeconfig: '' },
    );
    await expect(stranger.ask('GET', configMaps)).rejects.toThrow();
    stranger.close();
  });

  it('drops a request before it is carried out', async () => {
    inject({ match: { method: 'POST' }, fault: { kind: 'dropRequest' } });
    await expect(client.ask('POST', configMaps, { metadata: { name: 'dropped' } })).rejects.toThrow();
    expect(await names()).not.toContain('dropped');
  });

  it('drops the reply of a request that was carried out', async () => {
    inject({ match: { method: 'POST' }, fault: { kind: 'dropReply' } });
    await expect(client.ask('POST', configMaps, { metadata: { name: 'applied' } })).rejects.toThrow();
    expect(await names()).toContain('applied');
    const entry = proxy.requests().at(-1);
    expect([entry?.serverStatus, entry?.status, entry?.rule]).toEqual([201, undefined, 'fault']);
  });

  it.each(['request', 'reply'] as const)('delays a %s', async (what) => {
    inject({ match: { method: 'POST' }, fault: { kind: 'delay', what, ms: 800 } });
    const asked = client.ask('POST', configMaps, { metadata: { name: `late-${what}` } });
    const early = Promise.race([asked.then(() => 'answered'), new Promise((settle) => setTimeout(() => settle('waiting'), 400))]);
    expect(await early).toBe('waiting');
    expect((await names()).includes(`late-${what}`)).toBe(what === 'reply');
    expect((await asked).status).toBe(201);
    expect(await names()).toContain(`late-${what}`);
  });

  it.each([409, 429, 500, 503, 410])('answers %i in the place of the server', async (status) => {
    inject({ match: { method: 'POST' }, fault: { kind: 'answer', status, retryAfterSeconds: 1 } });
    const reply = await client.ask<{ readonly code: number }>('POST', configMaps, { metadata: { name: `answered-${status}` } });
    expect([reply.status, reply.body.code]).toEqual([status, status]);
    expect(await names()).not.toContain(`answered-${status}`);
  });

  it('lets a client repeat a request that it refuses for a second', async () => {
    inject({ match: { method: 'POST' }, fault: { kind: 'answer', status: 429, retryAfterSeconds: 1 } });
    await client.create(configMaps, { metadata: { name: 'repeated' } });
    expect(await names()).toContain('repeated');
  });

  it('cuts a body short', async () => {
    inject({ match: { path: /configmaps$/ }, fault: { kind: 'truncate', bytes: 40 } });
    await expect(client.get(configMaps)).rejects.toThrow();
    await client.get(configMaps);
  });

  it('answers as it did before', async () => {
    const path = `${configMaps}?labelSelector=old`;
    await client.create(configMaps, { metadata: { name: 'first', labels: { old: '' } } });
    const before = await client.get(path);
    await client.create(configMaps, { metadata: { name: 'second', labels: { old: '' } } });
    inject({ match: { path: /labelSelector=old/ }, fault: { kind: 'oldAnswer' } });
    expect(await client.get(path)).toEqual(before);
    expect((await client.list<KubernetesObject>(path)).map(({ metadata }) => metadata.name)).toEqual(['first', 'second']);
  });

  describe('of watches', () => {
    const watched = `${configMaps}?labelSelector=watched`;

    beforeAll(async () => {
      await client.create(configMaps, { metadata: { name: 'one', labels: { watched: '' } } });
      await client.create(configMaps, { metadata: { name: 'two', labels: { watched: '' } } });
    });

    it('passes events on as they come', async () => {
      expect((await firstEvents(watched, 2)).map(({ type }) => type)).toEqual(['ADDED', 'ADDED']);
    });

    it('cuts', async () => {
      inject({ match: { isWatch: true }, fault: { kind: 'cutWatch', afterEvents: 1 } });
      const seen: string[] = [];
      const all = async () => {
        for await (const { type } of client.watch(watched, '0', new AbortController().signal)) seen.push(type);
      };
      await expect(all()).rejects.toThrow('aborted');
      expect(seen).toEqual(['ADDED']);
    });

    it('says that the revision is gone', async () => {
      inject({ match: { isWatch: true }, fault: { kind: 'expireWatch', afterEvents: 1 } });
      const events = await firstEvents(watched, 2);
      expect(events.map(({ type, object }) => [type, (object as { readonly code?: number }).code])).toEqual([
        ['ADDED', undefined],
        ['ERROR', 410],
      ]);
    });

    it('freezes: the connection stays and nothing comes', async () => {
      inject({ match: { isWatch: true }, fault: { kind: 'freezeWatch', afterEvents: 1 } });
      const ending = new AbortController();
      const seen: string[] = [];
      const all = (async () => {
        for await (const { type } of client.watch(watched, '0', ending.signal)) seen.push(type);
        return 'ended';
      })().catch(() => 'aborted');
      const early = await Promise.race([all, new Promise((settle) => setTimeout(() => settle('open'), 500))]);
      ending.abort();
      expect([early, seen, await all]).toEqual(['open', ['ADDED'], 'aborted']);
    });
  });

  it('counts the requests that match, and tells who asked', async () => {
    const injection = inject({ match: { user: 'admin', path: /marked/ }, which: every(2), fault: { kind: 'answer', status: 500 } });
    inject({ match: { user: 'somebody else' }, which: () => true, fault: { kind: 'answer', status: 400 } });
    const seen = [];
    for (let count = 0; count < 4; count++) seen.push((await client.ask('GET', `${configMaps}?marked`)).status);
    expect([seen, injection.hits()]).toEqual([[200, 500, 200, 500], 2]);
  });
});
