// Two executables, one of which is killed twice in a rollout, tell services on loopback: once each, with the rights that `install` gives.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { customResourceDefinition } from '../../policies/schema/json-schema.ts';
import { type HistoryRecorder, recordHistory } from '../control-plane/history.ts';
import { agentRules } from '../control-plane/roles.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { type Arena, openArena } from './arena.ts';
import { callbackKey, type FakeService, fakeCallback, fakeSlack, slackChannel, slackToken } from './notify/services.ts';

const ours = '/apis/rollout-group.dev/v1alpha1/namespaces';
const now = (): number => Date.now();

describeOnControlPlane('notifications of the executable', (controlPlane) => {
  let recorder: HistoryRecorder;
  let arena: Arena | undefined;
  const servers: Server[] = [];

  beforeAll(async () => {
    for (const kind of ['RolloutGroup', 'NotificationChannel', 'RolloutRun'] as const)
      await controlPlane().client.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', customResourceDefinition(kind) ?? {});
    recorder = await recordHistory(controlPlane());
  });
  afterEach(() => arena?.close());
  afterAll(async () => {
    for (const server of servers) server.closeAllConnections();
    await Promise.all(servers.map((server) => new Promise((resolve) => void server.close(resolve))));
    await recorder.stop();
  });

  async function serve(service: FakeService): Promise<string> {
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => void chunks.push(chunk));
      request.on('end', () => {
        const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, `${value}`]));
        const asked = { method: request.method ?? '', path: request.url ?? '', headers, body: Buffer.concat(chunks).toString() };
        const { status, body } = service.answer(asked);
        response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body ?? {}));
      });
    });
    servers.push(server);
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  it('tell each event once, though the leader is killed twice', { timeout: 600_000 }, async () => {
    const { client } = controlPlane();
    const [slack, callback] = [fakeSlack(now), fakeCallback(now)];
    const [slackUrl, callbackUrl] = [await serve(slack), await serve(callback)];
    const namespace = 'told';
    const own = [
      { apiGroups: ['rollout-group.dev'], resources: ['metricsources', 'notificationchannels'], verbs: ['get'] },
      { apiGroups: [''], resources: ['secrets'], verbs: ['get'], resourceNames: ['slack', 'hook'] },
    ];
    const size = { zones: ['a', 'b'], replicas: 10 };
    arena = await openArena(controlPlane(), recorder, { namespace, ...size, rules: [...agentRules(), ...own] });
    for (const [name, key] of [
      ['slack', slackToken],
      ['hook', callbackKey],
    ])
      await client.create(`/api/v1/namespaces/${namespace}/secrets`, { metadata: { name }, stringData: { key } });
    const specs = {
      sre: { slack: { url: `${slackUrl}/api`, token: { name: 'slack', key: 'key' }, channel: slackChannel } },
      ui: { callback: { url: callbackUrl, signingKey: { name: 'hook', key: 'key' } } },
    };
    const common = { apiVersion: 'rollout-group.dev/v1alpha1' };
    for (const [name, spec] of Object.entries(specs))
      await client.create(`${ours}/${namespace}/notificationchannels`, {
        ...common,
        kind: 'NotificationChannel',
        metadata: { name },
        spec: { ...spec, usableFrom: { namespaces: [namespace] } },
      });
    const events = ['started', 'waiting', 'failed', 'completed'];
    await client.create(`${ours}/${namespace}/rolloutgroups`, {
      ...common,
      kind: 'RolloutGroup',
      metadata: { name: 'ingester' },
      spec: {
        members: { zones: size.zones.map((zone) => ({ name: zone, statefulSet: `ingester-zone-${zone}` })) },
        replicas: { leader: true },
        rollout: { strategy: 'onDelete', rotateBy: 'delete' },
        notify: Object.keys(specs).map((channel) => ({ channel, events })),
      },
    });
    const start = async (identity: string) => {
      const agent = await arena?.start({ flags: [`--identity=${identity}`] });
      await agent?.untilReady();
      return agent;
    };
    let leader = await start('agent-1');
    const before = new Set((await arena.group.pods()).map(({ metadata }) => metadata.uid));
    await arena.group.setImage('example.com/server:2');
    for (const [replaced, next] of [
      [3, 'agent-2'],
      [12, 'agent-3'],
    ] as const) {
      await client.until(arena.group.podsPath, `${replaced} new pods`, (pods) => {
        return pods.filter(({ metadata }) => !before.has(metadata.uid)).length >= replaced;
      });
      await leader?.kill();
      leader = await start(next);
    }
    await arena.group.untilRolled(120_000, { isAdopted: false });
    const isTold = (): boolean =>
      ['is complete after', 'Pods 1 to'].every((part) => slack.messages.some(({ text }) => text.includes(part))) &&
      callback.taken.length >= 2;
    for (let waited = 0; !isTold() && waited < 180; waited += 1) await new Promise((resolve) => setTimeout(resolve, 1000));

    const mains = slack.messages.filter(({ thread_ts }) => thread_ts === undefined);
    const replies = slack.messages.filter(({ thread_ts }) => thread_ts !== undefined).map(({ text }) => text.split('\n')[0] ?? '');
    expect(mains).toHaveLength(1);
    expect(mains[0]?.editedMs.length).toBeGreaterThan(0);
    expect([...replies].sort()).toEqual([expect.stringMatching(/^:white_check_mark: \*told\/ingester\*/), 'Pods 1 to 20 of 20']);
    const ids = new Map(callback.taken.map(({ id, body }) => [id, JSON.parse(body).event]));
    expect([...ids.values()]).toEqual(['started', 'completed']);
    expect(await arena.expectKept()).toMatchObject({ 'delete pods': 20 });
    const metrics = (await leader?.ask('/metrics'))?.body ?? '';
    expect(metrics).toMatch(/rollout_group_notifications_total\{channel="ui",result="sent"\} \d/);
    expect(leader?.log()).not.toContain(slackToken);
  });
});
