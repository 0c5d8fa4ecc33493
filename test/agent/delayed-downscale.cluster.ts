// Fewer replicas after a delay: which pods are asked, in which order, and what becomes of it when they or the agent do not play along.
import { afterAll, beforeAll, describe, expect, it, type TestContext, vi } from 'vitest';
import { decodeLedger, ledgerKey } from '../../engine/ledger/ledger-document.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import type { AgentProcess, AgentProcessOptions } from '../control-plane/agent-process.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
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
// Each test has a namespace, an agent and pods of its own, and most of its time it waits.
vi.setConfig({ maxConcurrency: 4 });

/** A group of one test, the server that answers for its pods, and the agent that asks them. */
class Stage {
  readonly arena: Arena;
  readonly pods: PodServer;
  readonly #controlPlane: ControlPlane;

  constructor(controlPlane: ControlPlane, arena: Arena, pods: PodServer) {
    this.#controlPlane = controlPlane;
    this.arena = arena;
    this.pods = pods;
  }

  /** Starts an agent that reaches pods by the server, and waits until it is ready. */
  async start(options: Partial<AgentProcessOptions> = {}): Promise<AgentProcess> {
    const agent = await this.arena.start({ env: { HTTP_PROXY: this.pods.url }, ...options });
    await agent.untilReady();
    return agent;
  }

  ask(replicas: number): Promise<unknown> {
    return this.#controlPlane.client.patch(`${templatesPath(this.arena.group.namespace)}/ingester/scale`, 'merge', { spec: { replicas } });
  }

  async untilReplicas(wanted: number): Promise<void> {
    const { client } = this.#controlPlane;
    const what = `${wanted} replicas`;
    await client.until<StatefulSet>(this.arena.group.setsPath, what, ([set]) => set?.spec.replicas === wanted, 30_000);
  }

  async untilCalls(what: string, isSo: (calls: ReturnType<PodServer['calls']>) => boolean): Promise<void> {
    for (const endsAt = Date.now() + 30_000; !isSo(this.pods.calls()); await new Promise((settle) => setTimeout(settle, 25))) {
      if (Date.now() > endsAt) throw new Error(`${what} were not seen in 30 s, but ${JSON.stringify(this.pods.calls().slice(-20))}`);
    }
  }

  /** Creates a quota that is used up, so that the API server rejects every new pod, and waits until it does. */
  async forbidPods(): Promise<void> {
    const { client } = this.#controlPlane;
    const { namespace } = this.arena.group;
    const path = `/api/v1/namespaces/${namespace}/resourcequotas`;
    await client.create(path, { metadata: { name: 'full' }, spec: { hard: { pods: '1' } } });
    await client.patch(`${path}/full/status`, 'merge', { status: { hard: { pods: '1' }, used: { pods: '1' } } });
    const pod = { metadata: { name: 'probe' }, spec: { containers: [{ name: 'app', image: 'app' }] } };
    await expect
      .poll(async () => (await client.ask('POST', `/api/v1/namespaces/${namespace}/pods?dryRun=All`, pod)).status, { timeout: 30_000 })
      .toBe(403);
  }

  /** Deletes the quota. The annotation lets the StatefulSet controller try again at once. */
  async allowPods(): Promise<void> {
    const { namespace } = this.arena.group;
    await this.#controlPlane.client.delete(`/api/v1/namespaces/${namespace}/resourcequotas/full`);
    await this.arena.group.annotate('ingester-zone-a', { 'example.com/again': 'yes' });
  }

  /** Deletes a pod at once, and waits until the StatefulSet no longer counts it. */
  async losePod(name: string, counted: number): Promise<void> {
    const { client } = this.#controlPlane;
    const { namespace, setsPath } = this.arena.group;
    await client.delete(`/api/v1/namespaces/${namespace}/pods/${name}`, { gracePeriodSeconds: 0 });
    await client.until<StatefulSet>(setsPath, `${counted} counted pods`, ([set]) => set?.status.replicas === counted, 30_000);
  }

  asked(method: string): readonly string[] {
    return [...new Set(this.pods.calls().flatMap((call) => (call.method === method ? [call.pod] : [])))].sort();
  }

  /** The time between the first preparation and the write of fewer replicas. */
  async waitedMs(): Promise<number> {
    const { requests } = await this.arena.history();
    const scaled = requests.find(({ verb, objectRef }) => verb === 'patch' && objectRef?.resource === 'statefulsets');
    const first = this.pods.calls().find(({ method }) => method === 'POST');
    return Date.parse(scaled?.stageTimestamp ?? '') - Math.floor((first?.atMs ?? 0) / 1000) * 1000;
  }

  /** Ordinals, and since when each was known to be prepared, in every ledger that was ever stored: `2 1700000000000`. */
  async preparedSince(): Promise<readonly string[]> {
    const { namespace, name: group } = this.arena.group;
    const { requests } = await this.arena.history();
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
}

describeOnControlPlane('a delayed downscale', (controlPlane) => {
  let recorder: HistoryRecorder;

  beforeAll(async () => {
    recorder = await recordHistory(controlPlane());
    await installReplicaTemplates(controlPlane().client);
  });
  afterAll(() => recorder.stop());

  /** Opens the stage of one test: the zones, one of four pods unless told otherwise, mirrored. */
  async function open(
    { onTestFinished }: Pick<TestContext, 'onTestFinished'>,
    namespace: string,
    { zones = ['a'], replicas = 4 }: { readonly zones?: readonly string[]; readonly replicas?: number } = {},
  ): Promise<Stage> {
    const pods = await startPodServer();
    onTestFinished(() => pods.close());
    const arena = await openArena(controlPlane(), recorder, { namespace, zones, replicas, zoneMeta: () => ({ annotations: delayed }) });
    // Hooks run last first: the agent ends before what answers it.
    onTestFinished(() => arena.close());
    await createTemplate(controlPlane().client, namespace, 'ingester', replicas);
    return new Stage(controlPlane(), arena, pods);
  }

  it.concurrent('calls the leaving pods to prepare, waits for the delay, and scales', async (context) => {
    const stage = await open(context, 'plain');
    await stage.start();
    // A former operator may have asked any of them.
    await stage.untilCalls('four withdrawals', () => stage.asked('DELETE').length === 4);
    await stage.ask(2);
    await stage.untilReplicas(2);
    expect(stage.asked('POST')).toEqual(['ingester-zone-a-2', 'ingester-zone-a-3']);
    // Nobody was told so again.
    expect(stage.pods.calls().filter(({ method }) => method === 'DELETE')).toHaveLength(4);
    const [call] = stage.pods.calls().filter(({ method }) => method === 'POST');
    expect([call?.port, call?.path, call?.host]).toEqual([8080, path, `${call?.pod}.ingester-zone-a.plain.svc.cluster.local.`]);
    expect(await stage.waitedMs()).toBeGreaterThanOrEqual(delayMs);
    await stage.arena.group.untilReady(2);
    await stage.arena.expectKept();
  });

  it.concurrent('is cancelled if the replicas rise again: the called pods get a DELETE', async (context) => {
    const stage = await open(context, 'cancelled');
    await stage.start();
    await stage.ask(2);
    await stage.untilCalls('two preparations', () => Object.keys(stage.pods.prepared()).length === 2);
    await stage.ask(4);
    await stage.untilCalls('withdrawals', () => Object.keys(stage.pods.prepared()).length === 0);
    expect(await stage.arena.group.replicas()).toEqual([4]);
  });

  it.concurrent('continues with another agent after the first is killed, without a new delay', async (context) => {
    const stage = await open(context, 'killed');
    const first = await stage.start({ flags: ['--identity=first'] });
    await stage.ask(2);
    await stage.untilCalls('two preparations', () => Object.keys(stage.pods.prepared()).length === 2);
    const prepared = stage.pods.prepared();
    await first.kill();
    await stage.start({ flags: ['--identity=second'] });
    await stage.untilReplicas(2);
    expect(stage.pods.prepared()).toEqual(prepared);
    expect(await stage.waitedMs()).toBeGreaterThanOrEqual(delayMs);
    // The delay is counted from there, by whoever leads: each of the two pods was first seen prepared once.
    const since = await stage.preparedSince();
    expect(since.map((line) => line.split(' ')[0])).toEqual(['2', '3']);
    await stage.arena.expectKept();
  });

  it.concurrent('starts again for a pod whose preparation a user cancelled during the delay', async (context) => {
    const stage = await open(context, 'stay');
    await stage.start();
    await stage.ask(3);
    await stage.untilCalls('a preparation', () => Object.keys(stage.pods.prepared()).length === 1);
    const first = stage.pods.prepared()['ingester-zone-a-3'] ?? 0;
    // Nobody tells the agent.
    stage.pods.forget('ingester-zone-a-3');
    await stage.untilReplicas(3);
    const again = stage.pods.prepared()['ingester-zone-a-3'] ?? 0;
    expect(again).toBeGreaterThanOrEqual(first + delayMs / 1000);
    expect(await stage.waitedMs()).toBeGreaterThanOrEqual(2 * delayMs);
    await stage.arena.expectKept();
  });

  it.concurrent('waits for a leaving pod that is lost, even if the StatefulSet no longer counts it', async (context) => {
    const stage = await open(context, 'lost', { replicas: 5 });
    await stage.start();
    await stage.untilCalls('five withdrawals', () => stage.asked('DELETE').length === 5);
    await stage.ask(4);
    await stage.untilCalls('a preparation', () => Object.keys(stage.pods.prepared()).length === 1);
    await stage.forbidPods();
    await stage.losePod('ingester-zone-a-4', 4);
    await new Promise((settle) => setTimeout(settle, 2 * delayMs));
    expect(await stage.arena.group.replicas()).toEqual([5]);
    const callsBefore = stage.pods.calls().length;
    await stage.allowPods();
    await stage.untilReplicas(4);
    // Its successor was asked, and confirmed the time of its predecessor.
    expect(
      stage.pods
        .calls()
        .slice(callsBefore)
        .map(({ method, pod }) => `${method} ${pod}`),
    ).toContain('POST ingester-zone-a-4');
    expect(await stage.waitedMs()).toBeGreaterThanOrEqual(2 * delayMs);
    await stage.arena.expectKept();
  });

  it.concurrent('does not wait for pods that were never created', async (context) => {
    const stage = await open(context, 'never', { replicas: 3 });
    await stage.start();
    await stage.untilCalls('three withdrawals', () => stage.asked('DELETE').length === 3);
    await stage.forbidPods();
    await stage.ask(5);
    await stage.untilReplicas(5);
    await stage.ask(3);
    await stage.untilReplicas(3);
    expect(stage.asked('POST')).toEqual([]);
    await stage.arena.expectKept();
  });

  it.concurrent('does not remove a pod that reports a new time on every call', async (context) => {
    const stage = await open(context, 'anew');
    stage.pods.script(/-3$/, { kind: 'lying', secondsFromNow: 0 }, 'POST');
    await stage.start();
    await stage.ask(3);
    await stage.untilCalls('three preparations', (calls) => calls.filter(({ method }) => method === 'POST').length >= 3);
    expect(await stage.arena.group.replicas()).toEqual([4]);
  });

  describe.concurrent('of pods that do not cooperate', () => {
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

    it.concurrent('is blocked in their zones, and completes when they cooperate', async (context) => {
      const zones = Object.keys(behaviours);
      const stage = await open(context, 'pods', { zones, replicas: 2 });
      for (const [zone, behaviour] of Object.entries(behaviours)) stage.pods.script(new RegExp(`zone-${zone}-1$`), behaviour, 'POST');
      await stage.start({ flags: ['--pods.client-timeout=500ms'] });
      await stage.ask(1);
      const wanted = zones.map((zone) => `ingester-zone-${zone}-1`);
      await stage.untilCalls('a call to each', () => stage.asked('POST').length === wanted.length);
      expect(stage.asked('POST')).toEqual(wanted);
      await controlPlane().client.until<StatefulSet>(
        stage.arena.group.setsPath,
        'the honest zone scaled',
        ([set]) => set?.spec.replicas === 1,
      );
      await new Promise((settle) => setTimeout(settle, 3000));
      expect(await stage.arena.group.replicas()).toEqual(zones.map((zone) => (zone === 'a' ? 1 : 2)));
      stage.pods.script(/.*/, { kind: 'honest' });
      await controlPlane().client.until<StatefulSet>(
        stage.arena.group.setsPath,
        'every zone scaled',
        (sets) => sets.every(({ spec }) => spec.replicas === 1),
        90_000,
      );
      await stage.arena.expectKept();
    });

    it.concurrent('is not shortened by a pod that reports a time before its first call', async (context) => {
      const stage = await open(context, 'pods-past');
      stage.pods.script(/-3$/, { kind: 'lying', secondsFromNow: -86_400 }, 'POST');
      await stage.start();
      await stage.ask(3);
      await stage.untilCalls('a call', (calls) => calls.some(({ method, pod }) => method === 'POST' && pod === 'ingester-zone-a-3'));
      // grafana/rollout-operator believes the pod, which may have been asked by a former agent: so do adopted groups.
      await stage.untilReplicas(3);
      await stage.arena.expectKept();
    });
  });
});
