// Fewer replicas after a delay: which pods are asked, in which order, and what becomes of it when they or the agent do not play along.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { decodeLedger, ledgerKey } from '../../engine/ledger/ledger-document.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import { type HistoryRecorder, recordHistory } from '../control-plane/history.ts';
import { type PodBehaviour, type PodServer, startPodServer } from '../control-plane/pod-server.ts';
import { createTemplate, installReplicaTemplates, mirrors, templatesPath } from '../control-plane/replica-template.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import type { StatefulSet } from '../control-plane/workloads.ts';
import { type Arena, openArena } from './arena.ts';

const delayMs = 5000;
const path = '/ingester/prepare-delayed-downscale?unit=1';
const delayed = {
  ...mirrors('ingester'),
  'grafana.com/rollout-delayed-downscale': `${delayMs / 1000}s`,
  'grafana.com/rollout-prepare-delayed-downscale-url': `http://pod:8080${path}`,
};

describeOnControlPlane('a delayed downscale', (controlPlane) => {
  let recorder: HistoryRecorder;
  let arena: Arena;
  let pods: PodServer;

  beforeAll(async () => {
    recorder = await recordHistory(controlPlane());
    await installReplicaTemplates(controlPlane().client);
  });
  beforeEach(async () => {
    pods = await startPodServer();
  });
  afterEach(async () => {
    await arena.close();
    await pods.close();
  });
  afterAll(() => recorder.stop());

  const env = () => ({ HTTP_PROXY: pods.url });

  /** One zone of four pods, mirrored. */
  async function open(namespace: string): Promise<Arena> {
    arena = await openArena(controlPlane(), recorder, {
      namespace,
      zones: ['a'],
      replicas: 4,
      zoneMeta: () => ({ annotations: delayed }),
    });
    await createTemplate(controlPlane().client, namespace, 'ingester', 4);
    return arena;
  }

  const ask = (replicas: number) =>
    controlPlane().client.patch(`${templatesPath(arena.group.namespace)}/ingester/scale`, 'merge', { spec: { replicas } });

  async function untilReplicas(wanted: number): Promise<void> {
    const what = `${wanted} replicas`;
    await controlPlane().client.until<StatefulSet>(arena.group.setsPath, what, ([set]) => set?.spec.replicas === wanted, 30_000);
  }

  async function untilCalls(what: string, isSo: (calls: ReturnType<PodServer['calls']>) => boolean): Promise<void> {
    for (const endsAt = Date.now() + 30_000; !isSo(pods.calls()); await new Promise((settle) => setTimeout(settle, 25))) {
      if (Date.now() > endsAt) throw new Error(`${what} were not seen in 30 s, but ${JSON.stringify(pods.calls().slice(-20))}`);
    }
  }

  const asked = (method: string) => [...new Set(pods.calls().flatMap((call) => (call.method === method ? [call.pod] : [])))].sort();

  /** The time between the first preparation and the write of fewer replicas. */
  async function waitedMs(): Promise<number> {
    const { requests } = await arena.history();
    const scaled = requests.find(({ verb, objectRef }) => verb === 'patch' && objectRef?.resource === 'statefulsets');
    const first = pods.calls().find(({ method }) => method === 'POST');
    return Date.parse(scaled?.stageTimestamp ?? '') - Math.floor((first?.atMs ?? 0) / 1000) * 1000;
  }

  /** Ordinals, and since when each was known to be prepared, in every ledger that was ever stored: `2 1700000000000`. */
  async function preparedSince(): Promise<readonly string[]> {
    const { namespace, name: group } = arena.group;
    const { requests } = await arena.history();
    const texts = requests.flatMap(({ responseObject }) => {
      const { kind, data } = (responseObject ?? {}) as { readonly kind?: string; readonly data?: Readonly<Record<string, string>> };
      return kind === 'ConfigMap' ? (data?.[ledgerKey] ?? []) : [];
    });
    const ledgers = texts.map((text) => decodeLedger(text, { namespace, group }));
    const prepared = ledgers.flatMap((ledger) =>
      isUnknown(ledger) ? [] : ledger.preparations.filter(({ state }) => state === 'prepared'),
    );
    return [...new Set(prepared.map(({ ordinal, seenMs }) => `${ordinal} ${seenMs}`))].sort();
  }

  it('asks those who leave to prepare, waits, and scales', async () => {
    await open('plain');
    const agent = await arena.start({ env: env() });
    await agent.untilReady();
    // A former operator may have asked any of them.
    await untilCalls('four withdrawals', () => asked('DELETE').length === 4);
    await ask(2);
    await untilReplicas(2);
    expect(asked('POST')).toEqual(['ingester-zone-a-2', 'ingester-zone-a-3']);
    // Nobody was told so again.
    expect(pods.calls().filter(({ method }) => method === 'DELETE')).toHaveLength(4);
    const [call] = pods.calls().filter(({ method }) => method === 'POST');
    expect([call?.port, call?.path, call?.host]).toEqual([8080, path, `${call?.pod}.ingester-zone-a.plain.svc.cluster.local.`]);
    expect(await waitedMs()).toBeGreaterThanOrEqual(delayMs);
    await arena.group.untilReady(2);
    await arena.expectKept();
  });

  it('is cancelled when the replicas are wanted after all: who was asked to leave is told to stay', async () => {
    await open('cancelled');
    const agent = await arena.start({ env: env() });
    await agent.untilReady();
    await ask(2);
    await untilCalls('two preparations', () => Object.keys(pods.prepared()).length === 2);
    await ask(4);
    await untilCalls('withdrawals', () => Object.keys(pods.prepared()).length === 0);
    expect(await arena.group.replicas()).toEqual([4]);
  });

  it('continues with another agent after the first is killed, without a new delay', async () => {
    await open('killed');
    const first = await arena.start({ env: env(), flags: ['--identity=first'] });
    await first.untilReady();
    await ask(2);
    await untilCalls('two preparations', () => Object.keys(pods.prepared()).length === 2);
    const prepared = pods.prepared();
    await first.kill();
    const second = await arena.start({ env: env(), flags: ['--identity=second'] });
    await second.untilReady();
    await untilReplicas(2);
    expect(pods.prepared()).toEqual(prepared);
    expect(await waitedMs()).toBeGreaterThanOrEqual(delayMs);
    // The delay is counted from there, by whoever leads: each of the two pods was first seen prepared once.
    const since = await preparedSince();
    expect(since.map((line) => line.split(' ')[0])).toEqual(['2', '3']);
    await arena.expectKept();
  });

  it('begins again for a pod that a person told to stay in the middle', async () => {
    await open('stay');
    const agent = await arena.start({ env: env() });
    await agent.untilReady();
    await ask(3);
    await untilCalls('a preparation', () => Object.keys(pods.prepared()).length === 1);
    const first = pods.prepared()['ingester-zone-a-3'] ?? 0;
    // Nobody tells the agent.
    pods.forget('ingester-zone-a-3');
    await untilReplicas(3);
    const again = pods.prepared()['ingester-zone-a-3'] ?? 0;
    expect(again).toBeGreaterThanOrEqual(first + delayMs / 1000);
    expect(await waitedMs()).toBeGreaterThanOrEqual(2 * delayMs);
    await arena.expectKept();
  });

  it('is not done for a pod that names a new time whenever it is asked', async () => {
    await open('anew');
    pods.script(/-3$/, { kind: 'lying', secondsFromNow: 0 }, 'POST');
    const agent = await arena.start({ env: env() });
    await agent.untilReady();
    await ask(3);
    await untilCalls('three preparations', (calls) => calls.filter(({ method }) => method === 'POST').length >= 3);
    expect(await arena.group.replicas()).toEqual([4]);
  });

  describe('of pods that do not cooperate', () => {
    /** By the zone that behaves so. */
    const behaviours: Readonly<Record<string, PodBehaviour>> = {
      a: { kind: 'honest' },
      b: { kind: 'refuse' },
      c: { kind: 'hang' },
      d: { kind: 'status', status: 500 },
      e: { kind: 'status', status: 409 },
      f: { kind: 'body', body: 'prepared' },
      g: { kind: 'body', body: '{}' },
      h: { kind: 'body', body: '{"timestamp":0}' },
      i: { kind: 'lying', secondsFromNow: 86_400 },
    };

    it('is not done in their zones, and is when they do', async () => {
      const zones = Object.keys(behaviours);
      arena = await openArena(controlPlane(), recorder, {
        namespace: 'pods',
        zones,
        replicas: 2,
        zoneMeta: () => ({ annotations: delayed }),
      });
      await createTemplate(controlPlane().client, 'pods', 'ingester', 2);
      for (const [zone, behaviour] of Object.entries(behaviours)) pods.script(new RegExp(`zone-${zone}-1$`), behaviour, 'POST');
      const agent = await arena.start({ env: env(), flags: ['--pods.client-timeout=500ms'] });
      await agent.untilReady();
      await ask(1);
      const wanted = zones.map((zone) => `ingester-zone-${zone}-1`);
      await untilCalls('a call to each', () => asked('POST').length === wanted.length);
      expect(asked('POST')).toEqual(wanted);
      await controlPlane().client.until<StatefulSet>(arena.group.setsPath, 'the honest zone scaled', ([set]) => set?.spec.replicas === 1);
      await new Promise((settle) => setTimeout(settle, 3000));
      expect(await arena.group.replicas()).toEqual(zones.map((zone) => (zone === 'a' ? 1 : 2)));
      pods.script(/.*/, { kind: 'honest' });
      await controlPlane().client.until<StatefulSet>(
        arena.group.setsPath,
        'every zone scaled',
        (sets) => sets.every(({ spec }) => spec.replicas === 1),
        90_000,
      );
      await arena.expectKept();
    });

    it('is not hurried by one that names a time before it was asked', async () => {
      await open('pods-past');
      pods.script(/-3$/, { kind: 'lying', secondsFromNow: -86_400 }, 'POST');
      const agent = await arena.start({ env: env() });
      await agent.untilReady();
      await ask(3);
      await untilCalls('a call', (calls) => calls.some(({ method, pod }) => method === 'POST' && pod === 'ingester-zone-a-3'));
      // grafana/rollout-operator believes the pod, which may have been asked by a former agent: so do adopted groups.
      await untilReplicas(3);
      await arena.expectKept();
    });
  });
});
