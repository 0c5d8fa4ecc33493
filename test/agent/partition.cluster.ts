// The strategy `partition` beside the StatefulSet controller itself: a partial rollout keeps every pod at its version, whatever happens to the pod.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { Moment } from '../control-plane/crash.ts';
import { type HistoryRecorder, recordHistory } from '../control-plane/history.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { isReady, type Pod, revisionOf } from '../control-plane/workloads.ts';
import { checkHistory } from '../kit/watcher.ts';
import { type Arena, type ArenaOptions, openArena } from './arena.ts';
import { expectKilledTwice, holding, type RollingSet, split, temptationMs, untilWave, versions } from './partial-rollout.ts';

const controller = 'system:serviceaccount:kube-system:statefulset-controller';
const longestMs = 240_000;

interface PolicyOptions {
  readonly zones: readonly string[];
  /** Waves as they stand in the file. */
  readonly waves?: readonly string[];
  readonly maxUnavailable?: number;
}

function policies(namespace: string, { zones, waves, maxUnavailable = 1 }: PolicyOptions): string {
  const members = zones.map((zone) => `{ name: ${zone}, statefulSet: ingester-zone-${zone} }`);
  return `
apiVersion: rollout-group.dev/v1alpha1
kind: RolloutGroup
metadata: { name: ingester, namespace: ${namespace} }
spec:
  members: { zones: [${members.join(', ')}] }
  replicas: { leader: true }
  rollout:
    strategy: partition
    maxUnavailable: ${maxUnavailable}
    replaceUnready: { when: any, after: 2s }
${waves === undefined ? '' : `    waves:\n${waves.map((wave) => `      - ${wave}\n`).join('')}`}`;
}

/** The waves of zone a up to four pods, of which the one of so many updated pods, when there is one, soaks for longer than the test lasts. */
function stoppedAt(count: number): readonly string[] {
  const one = [1, 2, 3, 4].map((pods) => `{ name: n${pods}, zones: [a], pods: ${pods}${pods === count ? ', after: { soak: 1h }' : ''} }`);
  return [...one, '{ name: rest, zones: [a, b], percent: 100 }'];
}

describeOnControlPlane('the strategy partition', (controlPlane) => {
  let recorder: HistoryRecorder;
  let arena: Arena;

  beforeAll(async () => {
    recorder = await recordHistory(controlPlane());
  });
  afterEach(() => arena.close());
  afterAll(() => recorder.stop());

  async function open(options: ArenaOptions): Promise<Arena> {
    arena = await openArena(controlPlane(), recorder, { strategy: 'RollingUpdate', ...options });
    return arena;
  }

  function partitionOf(set: RollingSet | undefined): number {
    return set?.spec.updateStrategy.rollingUpdate?.partition ?? 0;
  }

  async function untilPartition(zone: string, partition: number): Promise<void> {
    await controlPlane().client.until<RollingSet>(
      arena.group.setsPath,
      `partition ${partition} of zone ${zone}`,
      (items) => partitionOf(items.find(({ metadata }) => metadata.name === `ingester-zone-${zone}`)) === partition,
      60_000,
    );
  }

  const versionsNow = () => versions(controlPlane().client, arena.group.namespace);
  const expectEachKilledTwice = (expected: readonly string[]) => expectKilledTwice(controlPlane().client, arena.group.namespace, expected);

  function start(waves: readonly string[] | undefined, more: Partial<PolicyOptions> = {}, name = 'agent') {
    const { namespace } = arena.group;
    return arena.startInside({
      name,
      policies: policies(namespace, { zones: ['a', 'b'], ...(waves === undefined ? {} : { waves }), ...more }),
    });
  }

  /** What the StatefulSet controller did keeps the budgets too, though it asks nobody. */
  async function expectBudgetsKept(): Promise<void> {
    const { requests, events } = await arena.history();
    const found = checkHistory({ requests, events }, [controller, controlPlane().identities.agent.user], [arena.group.watched]);
    // Its deletes carry no preconditions, and it knows of a new template before the status does.
    expect(found.filter(({ invariant }) => ['S1', 'S2', 'S7', 'S8'].includes(invariant))).toEqual([]);
  }

  it('blocks an idle group, rolls from the highest ordinal within the budget, and blocks it again; a later template updates no pod by itself', async () => {
    await open({ namespace: 'whole', zones: ['a', 'b'], replicas: 3 });
    const agent = await start(undefined);
    await untilPartition('a', holding);
    await untilPartition('b', holding);
    await arena.group.setImage('example.com/server:2');
    await arena.group.untilRolled();
    await untilPartition('a', holding);
    await untilPartition('b', holding);
    await expectBudgetsKept();
    await agent.stop();
    await arena.group.setImage('example.com/server:3');
    await delay(temptationMs);
    expect(await versionsNow()).toEqual([...split('a', 3, 0), ...split('b', 3, 0)]);
    await expectEachKilledTwice([...split('a', 3, 0), ...split('b', 3, 0)]);
  });

  it('lowers a partition by what the budget has left, and no more pods are down than may be', async () => {
    await open({ namespace: 'several', zones: ['a', 'b'], replicas: 6, maxUnavailable: 3 });
    const agent = await start(undefined, { maxUnavailable: 3 });
    await untilPartition('a', holding);
    await untilPartition('b', holding);
    await arena.group.setImage('example.com/server:2');
    await arena.group.untilRolled();
    await untilPartition('b', holding);
    await expectBudgetsKept();
    const written = agent
      .turns()
      .flatMap(({ performed }) => performed.flatMap(({ action }) => (action.kind === 'setPartition' ? [action] : [])));
    expect(written.filter(({ zone }) => zone === 'a')[1]).toMatchObject({ from: holding, to: 3, because: 'outdated' });
    expect(written.every(({ pods }) => pods.length <= 3)).toBe(true);
  });

  it(
    'keeps every pod at its version when all are killed twice at every stage of a rollout, and when it is scaled up and down in the middle',
    async () => {
      await open({ namespace: 'leak', zones: ['a', 'b'], replicas: 4 });
      let agent = await start(stoppedAt(1));
      await untilPartition('a', holding);
      await untilPartition('b', holding);
      await expectEachKilledTwice([...split('a', 4, 0, ['', '1']), ...split('b', 4, 0, ['', '1'])]);
      await arena.group.setImage('example.com/server:2');
      for (const count of [1, 2, 3, 4]) {
        if (count > 1) agent = await start(stoppedAt(count), {}, `agent-${count}`);
        await untilWave(agent, count - 1);
        await untilPartition('a', count === 4 ? holding : 4 - count);
        await expectEachKilledTwice([...split('a', 4, 4 - count), ...split('b', 4, 4)]);
        if (count === 2) await scaleInTheMiddle();
        await agent.stop();
      }
      agent = await start(stoppedAt(0), {}, 'agent-rest');
      await arena.group.untilRolled();
      await untilPartition('b', holding);
      await expectEachKilledTwice([...split('a', 4, 0), ...split('b', 4, 0)]);
    },
    longestMs,
  );

  /**
   * Two pods are at the new version, as the wave asks. What a scale-up makes stands above the partition, so it is new; a scale-down takes new pods
   * away, so that the wave lets another one go.
   */
  async function scaleInTheMiddle(): Promise<void> {
    const b = split('b', 4, 4);
    await scale('ingester-zone-a', 6);
    await expectEachKilledTwice([...split('a', 6, 2), ...b]);
    await scale('ingester-zone-a', 3);
    await untilPartition('a', 1);
    await controlPlane().client.until<Pod>(
      arena.group.podsPath,
      'another pod at the new version',
      (pods) =>
        pods.filter((pod) => isReady(pod) && revisionOf(pod) !== revisionOf(pods[0] ?? pod) && pod.metadata.name.includes('-a-')).length ===
        2,
    );
    await expectEachKilledTwice([...split('a', 3, 1), ...b]);
    await scale('ingester-zone-a', 4);
    await expectEachKilledTwice([...split('a', 4, 1), ...b]);
  }

  async function scale(set: string, replicas: number): Promise<void> {
    await arena.group.scale(set, replicas);
    await arena.group.untilReady(replicas + 4);
  }

  it('goes on under OrderedReady from an image that never starts to one that does', async () => {
    await open({ namespace: 'ordered', zones: ['a', 'b'], replicas: 3, podManagementPolicy: 'OrderedReady' });
    await start(undefined);
    await untilPartition('a', holding);
    await untilPartition('b', holding);
    await arena.group.setImage('example.com/server:broken');
    await controlPlane().client.until<Pod>(arena.group.podsPath, 'a pod in CrashLoopBackOff', (pods) =>
      pods.some(({ status }) => status.containerStatuses?.some(({ state }) => state?.waiting?.reason === 'CrashLoopBackOff')),
    );
    await delay(temptationMs);
    const down = (await arena.group.pods()).filter((pod) => !isReady(pod)).map(({ metadata }) => metadata.name);
    expect(down).toEqual(['ingester-zone-a-2']);
    await arena.group.setImage('example.com/server:3');
    await arena.group.untilRolled();
    await untilPartition('a', holding);
    expect(await versionsNow()).toEqual([...split('a', 3, 0, ['', '3']), ...split('b', 3, 0, ['', '3'])]);
  });

  it('goes back when the template does, with no more than the pods that had moved', async () => {
    await open({ namespace: 'back', zones: ['a', 'b'], replicas: 4 });
    const agent = await start(stoppedAt(2));
    await untilPartition('a', holding);
    await arena.group.setImage('example.com/server:2');
    await untilWave(agent, 1);
    const before = new Map((await arena.group.pods()).map(({ metadata }) => [metadata.name, metadata.uid]));
    await arena.group.setImage('example.com/server:1');
    await arena.group.untilRolled();
    await untilPartition('a', holding);
    const after = await arena.group.pods();
    expect(
      after
        .filter(({ metadata }) => before.get(metadata.name) !== metadata.uid)
        .map(({ metadata }) => metadata.name)
        .sort(),
    ).toEqual(['ingester-zone-a-2', 'ingester-zone-a-3']);
    await expectBudgetsKept();
  });

  it('waits with the other zone, and says why, when a user lowers a partition by hand', async () => {
    await open({ namespace: 'by-hand', zones: ['a', 'b'], replicas: 4 });
    const agent = await start(stoppedAt(1));
    await untilPartition('a', holding);
    await arena.group.setImage('example.com/server:2');
    await untilWave(agent, 0);
    await controlPlane().client.patch(`${arena.group.setsPath}/ingester-zone-a`, 'merge', {
      spec: { updateStrategy: { rollingUpdate: { partition: 0 } } },
    });
    await untilPartition('a', holding);
    expect(await versionsNow()).toEqual([...split('a', 4, 0), ...split('b', 4, 4)]);
    const told = agent.turns().flatMap(({ decision }) => decision?.waits ?? []);
    expect(
      told.some(({ rule, fact }) => rule === 'partition-kept' && fact.startsWith('partition 0 lets the StatefulSet controller replace')),
    ).toBe(true);
  });

  it('reports that a zone without pods has completed, and keeps it at the new version', async () => {
    await open({ namespace: 'nothing', zones: ['a', 'b'], replicas: 2 });
    const agent = await start(['{ name: one, zones: [a], pods: 1, after: { soak: 1h } }', '{ name: rest, zones: [a, b], percent: 100 }']);
    await untilPartition('b', holding);
    await arena.group.setImage('example.com/server:2');
    await untilWave(agent, 0);
    await arena.group.scale('ingester-zone-b', 0);
    await expect
      .poll(() => agent.turns().flatMap(({ decision }) => decision?.warnings.map(({ fact }) => fact) ?? []), { timeout: 30_000 })
      .toContain('zone b has no pods, so Kubernetes counts its rollout as complete: new pods start at the update revision');
    await controlPlane().client.until<Pod>(arena.group.podsPath, 'no pods in zone b', (pods) => pods.length === 2);
    await untilPartition('b', holding);
    await arena.group.scale('ingester-zone-b', 2);
    await arena.group.untilReady(4);
    expect(await versionsNow()).toEqual([...split('a', 2, 1), ...split('b', 2, 0)]);
  });

  it.each(['before send', 'after reply'] satisfies readonly Moment[])(
    'is finished by another agent when one dies %s of the partition',
    async (moment) => {
      await open({ namespace: `dies-${moment.replace(' ', '-')}`, zones: ['a', 'b'], replicas: 2 });
      let isRolling = false;
      const policy = { policies: policies(arena.group.namespace, { zones: ['a', 'b'] }) };
      const first = await arena.startInside({
        name: 'first',
        ...policy,
        diesAt: (call) => isRolling && call.site === 'act.setPartition' && call.moment === moment,
      });
      await untilPartition('a', holding);
      await untilPartition('b', holding);
      isRolling = true;
      await arena.startInside({ name: 'second', ...policy });
      await arena.group.setImage('example.com/server:2');
      await arena.group.untilRolled(200_000);
      expect(first.mortal.isDead()).toBe(true);
      await expectBudgetsKept();
    },
    longestMs,
  );
});
