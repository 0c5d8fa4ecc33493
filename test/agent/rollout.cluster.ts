// A group of 3 zones gets a new image: alone, with a fault at every turn of the network, and with two agents.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type FaultProxy, startFaultProxy } from '../control-plane/fault-proxy.ts';
import { every, type FaultRule, nth, sometimes } from '../control-plane/faults.ts';
import { type HistoryRecorder, recordHistory } from '../control-plane/history.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { type Arena, onWorkloads, openArena } from './arena.ts';

const size = { replicas: 10, maxUnavailable: 5 };
/** Returns the writes of a rollout without faults: one delete for each pod, and the current revision of each StatefulSet. */
const faultFree = (pods = 30) => ({ 'delete pods': pods, 'update statefulsets/status': 3 });

describeOnControlPlane('a rollout of 3 zones', (controlPlane) => {
  let recorder: HistoryRecorder;
  let arena: Arena;

  beforeAll(async () => {
    recorder = await recordHistory(controlPlane());
  });
  afterEach(() => arena.close());
  afterAll(() => recorder.stop());

  it('respects every rule, with a minimum of writes', async () => {
    arena = await openArena(controlPlane(), recorder, { namespace: 'plain', replicas: 20, maxUnavailable: 10 });
    const agent = await arena.start();
    await agent.untilReady();
    const startedAt = Date.now();
    await arena.group.setImage('example.com/server:2');
    await arena.group.untilRolled();
    process.stderr.write(`rollout: 3 × 20 pods in ${Date.now() - startedAt} ms\n`);
    expect(onWorkloads(await arena.expectKept())).toEqual(faultFree(60));
  });

  it('is continued by a second agent when the first is killed during the rollout', async () => {
    arena = await openArena(controlPlane(), recorder, { namespace: 'killed', ...size });
    const first = await arena.start({ flags: ['--identity=first'] });
    await first.untilReady();
    const second = await arena.start({ flags: ['--identity=second'] });
    await second.untilReady();
    await arena.group.setImage('example.com/server:2');
    const before = new Set((await arena.group.pods()).map(({ metadata }) => metadata.uid));
    await controlPlane().client.until(arena.group.podsPath, 'fifteen new pods', (pods) => {
      return pods.filter(({ metadata }) => !before.has(metadata.uid)).length >= 15;
    });
    await first.kill();
    await arena.group.untilRolled();
    expect(onWorkloads(await arena.expectKept())).toMatchObject(faultFree());
  });

  it('is handed over at SIGTERM without waiting for the Lease to end', async () => {
    arena = await openArena(controlPlane(), recorder, { namespace: 'handed-over', ...size });
    // Far longer than the test: only a release lets the second one begin.
    const flags = ['--lease.duration=10m', '--lease.renew-deadline=9m', '--lease.retry-period=250ms'];
    const first = await arena.start({ flags: [...flags, '--identity=first'] });
    await first.untilReady();
    const second = await arena.start({ flags: [...flags, '--identity=second'] });
    await second.untilReady();
    await arena.group.setImage('example.com/server:2');
    const before = new Set((await arena.group.pods()).map(({ metadata }) => metadata.uid));
    await controlPlane().client.until(arena.group.podsPath, 'a new pod', (pods) => pods.some(({ metadata }) => !before.has(metadata.uid)));
    expect(await first.stop()).toBe(0);
    await arena.group.untilRolled();
    expect(onWorkloads(await arena.expectKept())).toEqual(faultFree());
  });

  describe('behind a proxy', () => {
    let proxy: FaultProxy;

    beforeAll(async () => {
      proxy = await startFaultProxy(controlPlane());
    });
    afterAll(() => proxy.close());

    const pods = /\/pods/;
    const answers = (status: number): FaultRule['fault'] => ({ kind: 'answer', status, retryAfterSeconds: 0 });
    const expires: FaultRule['fault'] = { kind: 'expireWatch', afterEvents: 5 };
    const lateness: FaultRule['fault'] = { kind: 'delay', what: 'request', ms: 400 };
    const losing: readonly FaultRule[] = [
      { name: 'reply of a delete is lost', match: { method: 'DELETE', path: pods }, which: every(9), fault: { kind: 'dropReply' } },
      { name: 'delete is lost', match: { method: 'DELETE', path: pods }, which: sometimes(7, 4), fault: { kind: 'dropRequest' } },
      { name: 'delete is late', match: { method: 'DELETE', path: pods }, which: sometimes(5, 4), fault: lateness },
      {
        name: 'write of the ledger is lost',
        match: { path: /configmaps/, method: 'PUT' },
        which: sometimes(3, 3),
        fault: { kind: 'dropReply' },
      },
      { name: 'conflict', match: { path: /configmaps/, method: 'PUT' }, which: sometimes(5, 2), fault: answers(409) },
      { name: 'renewal is lost', match: { path: /leases/, method: 'PUT' }, which: sometimes(3, 3), fault: { kind: 'dropReply' } },
      {
        name: 'status is lost',
        match: { path: /statefulsets\/.*\/status/, method: 'PUT' },
        which: sometimes(1, 2),
        fault: { kind: 'dropReply' },
      },
    ];
    const disturbing: readonly FaultRule[] = [
      // Of the list that a watch begins with again; a list that is asked for because it must be new comes from the quorum. The first rule,
      // because only one rule applies to a request.
      {
        name: 'old list',
        match: { method: 'GET', path: /pods\?limit/, isWatch: false },
        which: nth(2),
        fault: { kind: 'oldAnswer' },
      },
      { name: 'watch is cut', match: { isWatch: true, path: pods }, which: sometimes(1, 2), fault: { kind: 'cutWatch', afterEvents: 20 } },
      { name: 'watch of pods expires', match: { isWatch: true, path: pods }, which: nth(3), fault: expires },
      { name: 'watch of StatefulSets expires', match: { isWatch: true, path: /statefulsets\?/ }, which: sometimes(1, 2), fault: expires },
      {
        name: 'list breaks off',
        match: { method: 'GET', path: pods, isWatch: false },
        which: sometimes(2, 2),
        fault: { kind: 'truncate', bytes: 999 },
      },
      { name: 'too many requests', match: { method: 'GET', isWatch: false }, which: sometimes(5, 3), fault: answers(429) },
      { name: 'server error', match: { method: 'GET', isWatch: false }, which: sometimes(7, 3), fault: answers(500) },
    ];

    async function roll(namespace: string, rules: readonly FaultRule[]) {
      arena = await openArena(controlPlane(), recorder, { namespace, ...size });
      const injections = rules.map((rule) => ({ rule, injection: proxy.inject(rule) }));
      const agent = await arena.start({ url: proxy.url, identity: proxy.through(controlPlane().identities.agent) });
      await agent.untilReady();
      await arena.group.setImage('example.com/server:2');
      await arena.group.untilRolled();
      for (const { injection } of injections) injection.remove();
      const hits = Object.fromEntries(injections.map(({ rule, injection }) => [rule.name, injection.hits()]));
      process.stderr.write(`rollout: faults ${JSON.stringify(hits)}\n`);
      return { counts: onWorkloads(await arena.expectKept()), hits };
    }

    it('that delays reads, makes the same writes as without a proxy', async () => {
      const { counts, hits } = await roll('reads', disturbing);
      expect(counts).toEqual(faultFree());
      expect(Object.entries(hits).filter(([, count]) => count === 0)).toEqual([]);
    });

    it('that loses requests and answers, completes and deletes each pod once', async () => {
      const { hits } = await roll('writes', losing);
      expect(hits['reply of a delete is lost']).toBeGreaterThan(0);
      const deleted = (await arena.history()).requests.filter(({ verb, objectRef, responseStatus, user }) => {
        const isDone = (responseStatus?.code ?? 500) < 300;
        return verb === 'delete' && objectRef?.resource === 'pods' && isDone && user.username === controlPlane().identities.agent.user;
      });
      expect(deleted).toHaveLength(30);
    });
  });
});
