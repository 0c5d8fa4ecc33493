// A group that nothing defines any more, beside the StatefulSet controller itself: what the agent hands back, the controller rolls.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, it, vi } from 'vitest';
import { customResourceDefinition } from '../../../policies/schema/json-schema.ts';
import type { KubernetesObject } from '../../control-plane/client.ts';
import { type HistoryRecorder, recordHistory } from '../../control-plane/history.ts';
import { describeOnControlPlane } from '../../control-plane/suite.ts';
import { revisionOf, type StatefulSet } from '../../control-plane/workloads.ts';
import { checkHistory } from '../../kit/watcher.ts';
import { openArena } from '../arena.ts';

const holding = 1_000_000;
const controller = 'system:serviceaccount:kube-system:statefulset-controller';
/** What the agent waits before anything is done, and some. */
const graceMs = 60_000;

vi.setConfig({ testTimeout: 240_000 });

type RollingSet = StatefulSet & {
  readonly spec: { readonly updateStrategy: { readonly rollingUpdate?: { readonly partition?: number } } };
};

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

interface Definition extends KubernetesObject {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

interface Event extends KubernetesObject {
  readonly reason: string;
  readonly note: string;
  readonly regarding: { readonly kind: string; readonly name: string };
}

interface Case {
  readonly strategy: 'partition' | 'pinned';
  /** The rule that holds the run in the middle of its first wave. */
  readonly heldBy: string;
  readonly wave: object;
  /** Of the zones then. */
  readonly partitions: readonly number[];
  /** Pods that are new already. */
  readonly updated: number;
}

const cases: readonly Case[] = [
  { strategy: 'partition', heldBy: 'soak', wave: { after: { soak: '1h' } }, partitions: [2, holding], updated: 1 },
  // No webhook has to place a pod before the first one may go.
  {
    strategy: 'pinned',
    heldBy: 'approval',
    wave: { before: { approval: { count: 1, from: ['oncall'] } } },
    partitions: [holding, holding],
    updated: 0,
  },
];

const groupOf = (namespace: string, { strategy, wave }: Case) => ({
  apiVersion: 'rollout-group.dev/v1alpha1',
  kind: 'RolloutGroup',
  metadata: { name: 'ingester', namespace },
  spec: {
    members: { zones: ['a', 'b'].map((name) => ({ name, statefulSet: `ingester-zone-${name}` })) },
    replicas: { leader: true },
    rollout: {
      strategy,
      onPolicyDeleted: 'release',
      waves: [
        { name: 'canary', zones: ['a'], pods: 1, ...wave },
        { name: 'rest', zones: ['a', 'b'], percent: 100 },
      ],
    },
  },
});

describeOnControlPlane('a group whose definition is deleted', (controlPlane) => {
  let recorder: HistoryRecorder;

  beforeAll(async () => {
    const { client } = controlPlane();
    await client.create(definitions, customResourceDefinition('RolloutGroup') ?? {});
    await client.until<Definition>(definitions, 'the kind served', (items) =>
      items.every((item) => item.status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True')),
    );
    recorder = await recordHistory(controlPlane());
  });
  afterAll(() => recorder.stop());

  const partitionsOf = (sets: readonly RollingSet[]): readonly number[] =>
    sets.map(({ spec }) => spec.updateStrategy.rollingUpdate?.partition ?? 0);

  // Side by side, since each waits out the grace period.
  it.concurrent.for(cases)(
    'is handed to the StatefulSet controller, one zone after the other, past the rules that blocked its run, with the strategy $strategy',
    async (one, { expect, onTestFinished }) => {
      const { client } = controlPlane();
      const namespace = `released-${one.strategy}`;
      const arena = await openArena(controlPlane(), recorder, { namespace, zones: ['a', 'b'], replicas: 3, strategy: 'RollingUpdate' });
      onTestFinished(() => arena.close());
      const { group } = arena;
      const groups = `/apis/rollout-group.dev/v1alpha1/namespaces/${namespace}/rolloutgroups`;
      const untilPartitions = (what: string, expected: readonly number[]) =>
        client.until<RollingSet>(group.setsPath, what, (sets) => `${partitionsOf(sets)}` === `${expected}`, graceMs + 60_000);
      await client.create(groups, groupOf(namespace, one));
      // The StatefulSets carry the labels of grafana/rollout-operator: an agent that follows those would adopt them.
      const config = { policySources: ['objects'] } as const;
      const first = await arena.startInside({ name: 'first', isTelling: true, config });
      await untilPartitions('partitions that hold', [holding, holding]);
      await group.setImage('example.com/server:2');
      await untilPartitions('the canary', one.partitions);
      const lastWaits = () => first.turns().at(-1)?.decision?.waits ?? [];
      await expect.poll(() => lastWaits().map(({ rule }) => rule), { timeout: 60_000 }).toContain(one.heldBy);

      await client.ask('DELETE', `${groups}/ingester`);
      await delay(graceMs / 4);
      // Whoever leads next knows of it from what is stored alone.
      await first.stop();
      await arena.startInside({ name: 'second', isTelling: true, config });
      expect(partitionsOf(await client.list<RollingSet>(group.setsPath))).toEqual(one.partitions);
      const before = await group.pods();
      await untilPartitions('both partitions at 0', [0, 0]);
      // The second zone was let go only when the first one was whole again at the new version.
      const pods = await group.pods();
      const ofB = (name: string): boolean => name.startsWith('ingester-zone-b');
      const updatedA = new Set(pods.filter(({ metadata }) => !ofB(metadata.name)).map(revisionOf));
      expect(updatedA.size).toBe(1);
      await group.untilRolled();
      const old = new Set(before.map(({ metadata }) => metadata.uid));
      expect((await group.pods()).filter(({ metadata }) => old.has(metadata.uid))).toHaveLength(one.updated);

      const events = await client.list<Event>(`/apis/events.k8s.io/v1/namespaces/${namespace}/events`);
      const told = new Set(
        events.filter(({ reason }) => reason.startsWith('Release')).map(({ reason, regarding }) => `${reason} ${regarding.name}`),
      );
      expect([...told].filter((fact) => fact.startsWith('Released ')).sort()).toEqual([
        'Released ingester-zone-a',
        'Released ingester-zone-b',
      ]);
      expect(told).toContain('ReleaseAnnounced ingester-zone-a');
      // The controller keeps the budgets too, though it asks nobody. Its deletes carry no preconditions.
      const { user } = controlPlane().identities.agent;
      const history = await arena.history();
      const found = checkHistory(history, [controller, user], [group.watched]);
      expect(found.filter(({ invariant }) => ['S1', 'S2', 'S8'].includes(invariant))).toEqual([]);
      // With a stale cache the StatefulSet controller deletes a terminating pod again; the agent never does.
      expect(checkHistory(history, [user], [group.watched]).filter(({ invariant }) => invariant === 'S7')).toEqual([]);
      const path = `/api/v1/namespaces/${namespace}/configmaps/rollout-group-ingester`;
      await expect
        .poll(async () => JSON.parse((await client.get<{ data: { ledger: string } }>(path)).data.ledger), { timeout: 30_000 })
        .not.toHaveProperty('release');
    },
  );
});
