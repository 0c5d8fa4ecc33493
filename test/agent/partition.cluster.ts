// The strategy `partition` beside the StatefulSet controller itself: a partial rollout keeps every pod at its version, whatever happens to the pod.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, type TestContext, vi } from 'vitest';
import { factsOf, type GroupPast } from '../../agent/published/event-facts.ts';
import type { InProcessAgent } from '../control-plane/agent-in-process.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import type { Moment } from '../control-plane/crash.ts';
import type { TestGroup } from '../control-plane/group.ts';
import { type HistoryRecorder, recordHistory } from '../control-plane/history.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { isReady, type Pod, revisionOf } from '../control-plane/workloads.ts';
import { checkHistory } from '../kit/watcher.ts';
import { type Arena, type ArenaOptions, openArena } from './arena.ts';
import { expectKilledTwice, holding, type RollingSet, split, temptationMs, untilWave, versions } from './partial-rollout.ts';

const controller = 'system:serviceaccount:kube-system:statefulset-controller';
// Each test has a namespace and agents of its own, and most of its time it waits.
vi.setConfig({ maxConcurrency: 4, testTimeout: 240_000 });

interface PolicyOptions {
  readonly zones: readonly string[];
  /** Waves as they stand in the file. */
  readonly waves?: readonly string[];
  readonly maxUnavailable?: number;
  /** The time after which the agent replaces an unready pod. */
  readonly replaceAfter?: string;
}

function policies(namespace: string, { zones, waves, maxUnavailable = 1, replaceAfter = '2s' }: PolicyOptions): string {
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
    replaceUnready: { when: any, after: ${replaceAfter} }
${waves === undefined ? '' : `    waves:\n${waves.map((wave) => `      - ${wave}\n`).join('')}`}`;
}

/** The waves of zone a up to four pods, of which the one of so many updated pods, when there is one, soaks for longer than the test lasts. */
function stoppedAt(count: number): readonly string[] {
  const one = [1, 2, 3, 4].map((pods) => `{ name: n${pods}, zones: [a], pods: ${pods}${pods === count ? ', after: { soak: 1h }' : ''} }`);
  return [...one, '{ name: rest, zones: [a, b], percent: 100 }'];
}

/** A group of one test, and the agents that roll it. */
class Stage {
  readonly arena: Arena;
  readonly group: TestGroup;
  readonly #controlPlane: ControlPlane;

  constructor(controlPlane: ControlPlane, arena: Arena) {
    this.#controlPlane = controlPlane;
    this.arena = arena;
    this.group = arena.group;
  }

  async untilPartition(zone: string, partition: number): Promise<void> {
    await this.#controlPlane.client.until<RollingSet>(
      this.group.setsPath,
      `partition ${partition} of zone ${zone}`,
      (items) => partitionOf(items.find(({ metadata }) => metadata.name === `ingester-zone-${zone}`)) === partition,
      60_000,
    );
  }

  /** Waits until the StatefulSet controller may replace no pod of any zone. */
  async untilHolding(): Promise<void> {
    await this.#controlPlane.client.until<RollingSet>(
      this.group.setsPath,
      'the partition that holds every zone',
      (items) => items.every((set) => partitionOf(set) === holding),
      60_000,
    );
  }

  /** The partitions of the zones a and b. */
  async partitions(): Promise<readonly [number, number]> {
    const sets = await this.#controlPlane.client.list<RollingSet>(this.group.setsPath);
    const of = (zone: string): number => partitionOf(sets.find(({ metadata }) => metadata.name === `ingester-zone-${zone}`));
    return [of('a'), of('b')];
  }

  async setMinReadySeconds(zones: readonly string[], minReadySeconds: number): Promise<void> {
    for (const zone of zones) {
      await this.#controlPlane.client.patch(`${this.group.setsPath}/ingester-zone-${zone}`, 'merge', { spec: { minReadySeconds } });
    }
  }

  versions(): Promise<readonly string[]> {
    return versions(this.#controlPlane.client, this.group.namespace);
  }

  expectEachKilledTwice(expected: readonly string[]): Promise<void> {
    return expectKilledTwice(this.#controlPlane.client, this.group.namespace, expected);
  }

  start(waves: readonly string[] | undefined, more: Partial<PolicyOptions> = {}, name = 'agent'): Promise<InProcessAgent> {
    const options = { zones: ['a', 'b'], ...(waves === undefined ? {} : { waves }), ...more };
    return this.arena.startInside({ name, policies: policies(this.group.namespace, options) });
  }

  async scale(set: string, replicas: number): Promise<void> {
    await this.group.scale(set, replicas);
    await this.group.untilReady(replicas + 4);
  }

  /** What the StatefulSet controller did keeps the budgets too, though it asks nobody. */
  async expectBudgetsKept(): Promise<void> {
    const { requests, events } = await this.arena.history();
    const { user } = this.#controlPlane.identities.agent;
    const found = checkHistory({ requests, events }, [controller, user], [this.group.watched]);
    // Its deletes carry no preconditions, and it knows of a new template before the status does.
    expect(found.filter(({ invariant }) => ['S1', 'S2', 'S8'].includes(invariant))).toEqual([]);
    // With a stale cache the StatefulSet controller deletes a terminating pod again; the agent never does.
    const byAgent = checkHistory({ requests, events }, [user], [this.group.watched]);
    expect(byAgent.filter(({ invariant }) => invariant === 'S7')).toEqual([]);
  }
}

/** Returns the pods of zone a that Events report as replaced, once for each report. */
function replacedPods(agent: InProcessAgent): string[] {
  let past: GroupPast | undefined;
  return agent.turns().flatMap((report) => {
    const told = factsOf(report, past);
    past = told.past;
    return told.facts.flatMap(({ reason, note }) => (reason === 'PodReplaced' ? (note.match(/a-\d/g) ?? []) : []));
  });
}

function partitionOf(set: RollingSet | undefined): number {
  return set?.spec.updateStrategy.rollingUpdate?.partition ?? 0;
}

describeOnControlPlane('the strategy partition', (controlPlane) => {
  let recorder: HistoryRecorder;

  beforeAll(async () => {
    recorder = await recordHistory(controlPlane());
  });
  afterAll(() => recorder.stop());

  /** Opens the stage of one test, which closes with the test. */
  async function open({ onTestFinished }: Pick<TestContext, 'onTestFinished'>, options: ArenaOptions): Promise<Stage> {
    const arena = await openArena(controlPlane(), recorder, { strategy: 'RollingUpdate', ...options });
    onTestFinished(() => arena.close());
    return new Stage(controlPlane(), arena);
  }

  // First, since what the first agent announced and did not do is waited out for two minutes.
  it.concurrent.for(['before send', 'after reply'] satisfies readonly Moment[])(
    'is finished by another agent when one dies %s of the partition',
    async (moment, context) => {
      const stage = await open(context, { namespace: `dies-${moment.replace(' ', '-')}`, zones: ['a', 'b'], replicas: 2 });
      let isRolling = false;
      const policy = { policies: policies(stage.group.namespace, { zones: ['a', 'b'] }) };
      const first = await stage.arena.startInside({
        name: 'first',
        ...policy,
        diesAt: (call) => isRolling && call.site === 'act.setPartition' && call.moment === moment,
      });
      await stage.untilHolding();
      isRolling = true;
      await stage.arena.startInside({ name: 'second', ...policy });
      await stage.group.setImage('example.com/server:2');
      await stage.group.untilRolled(200_000);
      expect(first.mortal.isDead()).toBe(true);
      await stage.expectBudgetsKept();
    },
  );

  it.concurrent('blocks an idle group, rolls from the highest ordinal within the budget, and blocks it again; a later template updates no pod by itself', async (context) => {
    const stage = await open(context, { namespace: 'whole', zones: ['a', 'b'], replicas: 3 });
    const agent = await stage.start(undefined);
    await stage.untilHolding();
    await stage.group.setImage('example.com/server:2');
    await stage.group.untilRolled();
    await stage.untilHolding();
    await stage.expectBudgetsKept();
    await agent.stop();
    await stage.group.setImage('example.com/server:3');
    await delay(temptationMs);
    expect(await stage.versions()).toEqual([...split('a', 3, 0), ...split('b', 3, 0)]);
    await stage.expectEachKilledTwice([...split('a', 3, 0), ...split('b', 3, 0)]);
  });

  it.concurrent('lowers a partition within the budget, and no more pods than allowed are unavailable', async (context) => {
    const stage = await open(context, { namespace: 'several', zones: ['a', 'b'], replicas: 6, maxUnavailable: 3 });
    const agent = await stage.start(undefined, { maxUnavailable: 3 });
    await stage.untilHolding();
    await stage.group.setImage('example.com/server:2');
    await stage.group.untilRolled();
    await stage.untilPartition('b', holding);
    await stage.expectBudgetsKept();
    const written = agent
      .turns()
      .flatMap(({ performed }) => performed.flatMap(({ action }) => (action.kind === 'setPartition' ? [action] : [])));
    expect(written.filter(({ zone }) => zone === 'a')[1]).toMatchObject({ from: holding, to: 3, because: 'outdated' });
    expect(written.every(({ pods }) => pods.length <= 3)).toBe(true);
  });

  it.concurrent('keeps the revision of every pod if all pods are killed twice at every stage of a rollout, and during scaling', async (context) => {
    const stage = await open(context, { namespace: 'leak', zones: ['a', 'b'], replicas: 4 });
    let agent = await stage.start(stoppedAt(1));
    await stage.untilHolding();
    await stage.expectEachKilledTwice([...split('a', 4, 0, ['', '1']), ...split('b', 4, 0, ['', '1'])]);
    await stage.group.setImage('example.com/server:2');
    for (const count of [1, 2, 3, 4]) {
      if (count > 1) agent = await stage.start(stoppedAt(count), {}, `agent-${count}`);
      await untilWave(agent, count - 1);
      await stage.untilPartition('a', count === 4 ? holding : 4 - count);
      await stage.expectEachKilledTwice([...split('a', 4, 4 - count), ...split('b', 4, 4)]);
      if (count === 2) await scaleInTheMiddle(stage);
      await agent.stop();
    }
    agent = await stage.start(stoppedAt(0), {}, 'agent-rest');
    await stage.group.untilRolled();
    await stage.untilPartition('b', holding);
    await stage.expectEachKilledTwice([...split('a', 4, 0), ...split('b', 4, 0)]);
  });

  /**
   * Two pods are at the new version, as the wave asks. What a scale-up makes stands above the partition, so it is new; a scale-down takes new pods
   * away, so that the wave lets another one go.
   */
  async function scaleInTheMiddle(stage: Stage): Promise<void> {
    const b = split('b', 4, 4);
    await stage.scale('ingester-zone-a', 6);
    await stage.expectEachKilledTwice([...split('a', 6, 2), ...b]);
    await stage.scale('ingester-zone-a', 3);
    await stage.untilPartition('a', 1);
    await controlPlane().client.until<Pod>(
      stage.group.podsPath,
      'another pod at the new version',
      (pods) =>
        pods.filter((pod) => isReady(pod) && revisionOf(pod) !== revisionOf(pods[0] ?? pod) && pod.metadata.name.includes('-a-')).length ===
        2,
    );
    await stage.expectEachKilledTwice([...split('a', 3, 1), ...b]);
    await stage.scale('ingester-zone-a', 4);
    await stage.expectEachKilledTwice([...split('a', 4, 1), ...b]);
  }

  it.concurrent('continues under OrderedReady from an image that never starts to one that starts', async (context) => {
    const stage = await open(context, { namespace: 'ordered', zones: ['a', 'b'], replicas: 3, podManagementPolicy: 'OrderedReady' });
    await stage.start(undefined);
    await stage.untilHolding();
    await stage.group.setImage('example.com/server:broken');
    await controlPlane().client.until<Pod>(stage.group.podsPath, 'a pod in CrashLoopBackOff', (pods) =>
      pods.some(({ status }) => status.containerStatuses?.some(({ state }) => state?.waiting?.reason === 'CrashLoopBackOff')),
    );
    await delay(temptationMs);
    const down = (await stage.group.pods()).filter((pod) => !isReady(pod)).map(({ metadata }) => metadata.name);
    expect(down).toEqual(['ingester-zone-a-2']);
    await stage.group.setImage('example.com/server:3');
    await stage.group.untilRolled();
    await stage.untilHolding();
    expect(await stage.versions()).toEqual([...split('a', 3, 0, ['', '3']), ...split('b', 3, 0, ['', '3'])]);
  });

  it.concurrent('returns to the earlier template, and replaces only pods that were updated', async (context) => {
    const stage = await open(context, { namespace: 'back', zones: ['a', 'b'], replicas: 4 });
    const agent = await stage.start(stoppedAt(2));
    await stage.untilHolding();
    await stage.group.setImage('example.com/server:2');
    await untilWave(agent, 1);
    const before = new Map((await stage.group.pods()).map(({ metadata }) => [metadata.name, metadata.uid]));
    const moved = ['ingester-zone-a-2', 'ingester-zone-a-3'];
    const setFinalizers = async (finalizers: readonly string[]) => {
      for (const pod of moved) await controlPlane().client.patch(`${stage.group.podsPath}/${pod}`, 'merge', { metadata: { finalizers } });
    };
    // The agent reports the pods of the second run only if a turn sees them, so they do not leave before.
    await setFinalizers(['example.com/hold']);
    await stage.group.setImage('example.com/server:1');
    // Both runs report each pod, although the agent writes no partition for the second one.
    await vi.waitFor(() => expect(replacedPods(agent).sort()).toEqual(['a-2', 'a-2', 'a-3', 'a-3']), { timeout: 30_000 });
    await setFinalizers([]);
    await stage.group.untilRolled();
    await stage.untilHolding();
    const after = await stage.group.pods();
    expect(
      after
        .filter(({ metadata }) => before.get(metadata.name) !== metadata.uid)
        .map(({ metadata }) => metadata.name)
        .sort(),
    ).toEqual(moved);
    await stage.expectBudgetsKept();
    expect(replacedPods(agent)).toHaveLength(4);
  });

  it.concurrent('stops the rollout of a new group at the updated pods, and rolls out the remaining pods in waves', async (context) => {
    const stage = await open(context, { namespace: 'frozen', zones: ['a', 'b'], replicas: 6 });
    // The StatefulSet controller goes on only when the first updated pod is available, which is not before the agent has frozen the rest.
    await stage.setMinReadySeconds(['a', 'b'], 3600);
    await stage.group.setImage('example.com/server:2');
    const isUpdatedTop = (pods: readonly Pod[], zone: string): boolean => {
      const [lowest, top] = [0, 5].map((ordinal) => pods.find(({ metadata }) => metadata.name === `ingester-zone-${zone}-${ordinal}`));
      return lowest !== undefined && top !== undefined && isReady(top) && revisionOf(top) !== revisionOf(lowest);
    };
    await controlPlane().client.until<Pod>(
      stage.group.podsPath,
      'the first updated pod of each zone',
      (pods) => ['a', 'b'].every((zone) => isUpdatedTop(pods, zone)),
      60_000,
    );
    const agent = await stage.start(stoppedAt(1), { replaceAfter: '1m' });
    const frozen = (): readonly string[] =>
      agent
        .turns()
        .flatMap(({ performed }) =>
          performed.flatMap(({ action, result }) =>
            action.kind === 'setPartition' && action.because === 'frozen' && result === 'done' ? [`${action.zone} ${action.to}`] : [],
          ),
        );
    await vi.waitFor(() => expect([...frozen()].sort()).toEqual(['a 5', 'b 5']), { timeout: 60_000 });
    await stage.setMinReadySeconds(['a', 'b'], 0);
    await untilWave(agent, 0);
    await delay(temptationMs);
    expect(await stage.partitions()).toEqual([5, 5]);
    await stage.expectEachKilledTwice([...split('a', 6, 5), ...split('b', 6, 5)]);
    await agent.stop();
    await stage.start(stoppedAt(0), {}, 'agent-rest');
    await stage.group.untilRolled();
    await stage.untilHolding();
    await stage.expectEachKilledTwice([...split('a', 6, 0), ...split('b', 6, 0)]);
  });

  it.concurrent('blocks the other zone, with the reason, if a user lowers a partition by hand', async (context) => {
    const stage = await open(context, { namespace: 'by-hand', zones: ['a', 'b'], replicas: 4 });
    const agent = await stage.start(stoppedAt(1));
    await stage.untilHolding();
    await stage.group.setImage('example.com/server:2');
    await untilWave(agent, 0);
    await controlPlane().client.patch(`${stage.group.setsPath}/ingester-zone-a`, 'merge', {
      spec: { updateStrategy: { rollingUpdate: { partition: 0 } } },
    });
    await stage.untilPartition('a', holding);
    expect(await stage.versions()).toEqual([...split('a', 4, 0), ...split('b', 4, 4)]);
    // A turn is reported after its writes.
    await vi.waitFor(() => {
      const told = agent.turns().flatMap(({ decision }) => decision?.waits ?? []);
      expect(told.filter(({ rule }) => rule === 'partition-kept').map(({ fact }) => fact)).toContainEqual(
        expect.stringMatching(/^partition 0 lets the StatefulSet controller replace/),
      );
    });
  });

  it.concurrent('reports that a zone without pods is complete, and keeps it at the new revision', async (context) => {
    const stage = await open(context, { namespace: 'nothing', zones: ['a', 'b'], replicas: 2 });
    const agent = await stage.start([
      '{ name: one, zones: [a], pods: 1, after: { soak: 1h } }',
      '{ name: rest, zones: [a, b], percent: 100 }',
    ]);
    await stage.untilHolding();
    await stage.group.setImage('example.com/server:2');
    await untilWave(agent, 0);
    await stage.group.scale('ingester-zone-b', 0);
    const warnings = () => agent.turns().flatMap(({ decision }) => decision?.warnings.map(({ fact }) => fact) ?? []);
    await vi.waitFor(
      () =>
        expect(warnings()).toContain(
          'zone b has no pods, so Kubernetes counts its rollout as complete: new pods start at the update revision',
        ),
      { timeout: 30_000 },
    );
    await controlPlane().client.until<Pod>(stage.group.podsPath, 'no pods in zone b', (pods) => pods.length === 2);
    await stage.untilPartition('b', holding);
    await stage.group.scale('ingester-zone-b', 2);
    await stage.group.untilReady(4);
    expect(await stage.versions()).toEqual([...split('a', 2, 1), ...split('b', 2, 0)]);
  });
});
