// Replicas that follow one another: with time between zones, behind a leader that must be ready, and mirrored from a template.
import { afterAll, beforeAll, describe, expect, it, type TestContext, vi } from 'vitest';
import type { Moment } from '../control-plane/crash.ts';
import { type HistoryRecorder, recordHistory } from '../control-plane/history.ts';
import { startLastDownscaleHook } from '../control-plane/last-downscale-hook.ts';
import {
  createTemplate,
  installReplicaTemplates,
  mirrors,
  type ReplicaTemplate,
  setAutoscaler,
  templatesPath,
} from '../control-plane/replica-template.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import type { StatefulSet } from '../control-plane/workloads.ts';
import { type Arena, type ArenaOptions, openArena } from './arena.ts';

// Each test has a namespace and agents of its own, and most of its time it waits.
vi.setConfig({ maxConcurrency: 4 });

const zoneGapMs = 15_000;
const before: Readonly<Record<string, string>> = { b: 'a', c: 'b' };

/** b follows a, c follows b. */
function follower(zone: string, more: Readonly<Record<string, string>> = {}) {
  const leader = before[zone];
  return {
    labels: { 'grafana.com/min-time-between-zones-downscale': `${zoneGapMs / 1000}s` },
    annotations: leader === undefined ? {} : { 'grafana.com/rollout-downscale-leader': `ingester-zone-${leader}`, ...more },
  };
}

describeOnControlPlane('replicas that follow', (controlPlane) => {
  let recorder: HistoryRecorder;

  beforeAll(async () => {
    recorder = await recordHistory(controlPlane());
    await installReplicaTemplates(controlPlane().client);
  });
  afterAll(() => recorder.stop());

  /** Opens the arena of one test, which closes with the test. */
  async function open({ onTestFinished }: Pick<TestContext, 'onTestFinished'>, options: ArenaOptions): Promise<Arena> {
    const arena = await openArena(controlPlane(), recorder, options);
    onTestFinished(() => arena.close());
    return arena;
  }

  async function untilReplicas(arena: Arena, wanted: readonly number[], timeoutMs = 60_000): Promise<void> {
    await controlPlane().client.until<StatefulSet>(
      arena.group.setsPath,
      `replicas ${wanted.join(', ')}`,
      (sets) => arena.group.sets.every((set, index) => sets.find(({ metadata }) => metadata.name === set)?.spec.replicas === wanted[index]),
      timeoutMs,
    );
  }

  /** When each StatefulSet was scaled by the agent, in the order of time. */
  async function scalings(arena: Arena): Promise<readonly { readonly set: string; readonly to: unknown; readonly atMs: number }[]> {
    const { requests } = await arena.history();
    return requests
      .filter(({ verb, objectRef, user, responseStatus }) => {
        const isDone = (responseStatus?.code ?? 500) < 300 && user.username === controlPlane().identities.agent.user;
        return verb === 'patch' && objectRef?.resource === 'statefulsets' && isDone;
      })
      .map(({ objectRef, requestObject, stageTimestamp }) => ({
        set: objectRef?.name ?? '',
        to: (requestObject as { readonly spec?: { readonly replicas?: number } }).spec?.replicas,
        atMs: Date.parse(stageTimestamp),
      }));
  }

  it.concurrent('go down zone by zone with 15 s between them', async (context) => {
    const arena = await open(context, { namespace: 'down', replicas: 3, zoneMeta: (zone) => follower(zone) });
    const [a = '', b = '', c = ''] = arena.group.sets;
    const stopHook = await startLastDownscaleHook(controlPlane());
    try {
      const agent = await arena.start();
      await agent.untilReady();
      const startedMs = Date.now();
      await controlPlane().client.patch(`${arena.group.setsPath}/${a}`, 'merge', { spec: { replicas: 2 } });
      await untilReplicas(arena, [2, 2, 2]);
      const seen = await vi.waitFor(async () => {
        const logged = await scalings(arena);
        expect(logged.map(({ set, to }) => [set, to])).toEqual([
          [b, 2],
          [c, 2],
        ]);
        return logged;
      }, 10_000);
      const [first = 0, second = 0] = seen.map(({ atMs }) => atMs);
      // Annotations have no fractions of a second.
      expect(first - startedMs).toBeGreaterThanOrEqual(zoneGapMs - 1000);
      expect(second - first).toBeGreaterThanOrEqual(zoneGapMs - 1000);
      await arena.expectKept();
    } finally {
      await stopHook();
    }
  });

  it.concurrent('go up only when the leader is ready', async (context) => {
    const whenReady = { 'grafana.com/rollout-upscale-only-when-leader-ready': 'true' };
    const arena = await open(context, {
      namespace: 'up',
      replicas: 1,
      podAnnotations: { 'test.rollout-group.dev/ready-after': '3s' },
      zoneMeta: (zone) => follower(zone, whenReady),
    });
    const [a = '', b = '', c = ''] = arena.group.sets;
    const agent = await arena.start();
    await agent.untilReady();
    await arena.group.scale(a, 2);
    await untilReplicas(arena, [2, 2, 2]);
    const { events } = await arena.history();
    const setEvents = events.flatMap((event) => (event.kind === 'StatefulSet' ? [event.object as unknown as StatefulSet] : []));
    for (const [leader, own] of [
      [a, b],
      [b, c],
    ]) {
      const scaled = setEvents.findIndex(({ metadata, spec }) => metadata.name === own && spec.replicas === 2);
      const at = Number(setEvents[scaled]?.metadata.resourceVersion);
      const atThatTime = setEvents.findLast(
        ({ metadata }) => metadata.name === leader && Number(metadata.resourceVersion) < at && metadata.name === leader,
      );
      expect([leader, atThatTime?.status.readyReplicas]).toEqual([leader, 2]);
    }
    await arena.group.untilReady(6);
    await arena.expectKept();
  });

  describe.concurrent('a template', () => {
    const mirrored = (context: TestContext, namespace: string, more: Readonly<Record<string, string>> = {}) =>
      open(context, {
        namespace,
        replicas: 2,
        zoneMeta: () => ({ annotations: { ...mirrors('ingester'), ...more } }),
      });
    const untilTold = (namespace: string, replicas: number) =>
      controlPlane().client.until<ReplicaTemplate>(
        templatesPath(namespace),
        `status.replicas ${replicas}`,
        ([template]) => template?.status?.replicas === replicas,
      );

    it.concurrent('that an autoscaler scales follows its bounds up and down, and its status has the replicas', async (context) => {
      const arena = await mirrored(context, 'autoscaled');
      const { client } = controlPlane();
      await createTemplate(client, 'autoscaled', 'ingester', 2);
      const agent = await arena.start();
      await agent.untilReady();
      await untilTold('autoscaled', 2);
      await setAutoscaler(client, 'autoscaled', 'ingester', 3, 3);
      await untilReplicas(arena, [3, 3, 3]);
      await untilTold('autoscaled', 3);
      await setAutoscaler(client, 'autoscaled', 'ingester', 1, 1);
      await untilReplicas(arena, [1, 1, 1]);
      await untilTold('autoscaled', 1);
      expect((await scalings(arena)).length).toBe(6);
      await arena.expectKept();
    });

    it.concurrent('that is scaled through the subresource keeps its status if write-back is off', async (context) => {
      const arena = await mirrored(context, 'scaled', { 'grafana.com/rollout-mirror-replicas-from-resource-write-back': 'false' });
      const { client } = controlPlane();
      await createTemplate(client, 'scaled', 'ingester', 2);
      const agent = await arena.start();
      await agent.untilReady();
      await client.patch(`${templatesPath('scaled')}/ingester/scale`, 'merge', { spec: { replicas: 4 } });
      await untilReplicas(arena, [4, 4, 4]);
      const [template] = await client.list<ReplicaTemplate>(templatesPath('scaled'));
      expect(template?.status?.replicas).toBeUndefined();
      await arena.expectKept();
    });

    it.concurrent.for(
      ['act.scaleStatefulSet', 'act.writeBackReplicas'].flatMap((site) =>
        (['before send', 'after reply'] as const).map((moment) => ({ site, moment })),
      ),
    )(
      'with an agent that dies at $site $moment is completed by another agent',
      async ({ site, moment }: { site: string; moment: Moment }, context) => {
        const namespace = `dies-${site}-${moment}`.toLowerCase().replaceAll(/[. ]/g, '-');
        const arena = await mirrored(context, namespace);
        const { client } = controlPlane();
        await createTemplate(client, namespace, 'ingester', 3);
        const first = await arena.startInside({ name: 'first', diesAt: (call) => call.site === site && call.moment === moment });
        await vi.waitUntil(() => first.mortal.isDead(), { timeout: 60_000 });
        await arena.startInside({ name: 'second' });
        await untilReplicas(arena, [3, 3, 3]);
        await untilTold(namespace, 3);
        expect((await scalings(arena)).length).toBe(3);
        await arena.expectKept();
      },
    );
  });
});
