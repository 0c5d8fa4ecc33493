// Somebody's own group as a scenario: which objects are there, what becomes a patch, and a run of it.
import { describe, expect, it } from 'vitest';
import { type GivenInput, givenGroup, shapeOf } from '../../simulation/given.ts';
import { runScenario } from '../../simulation/run.ts';
import { group } from '../kit/groups.ts';
import { quietScenario } from './scenarios.ts';

const definition = group({ namespace: 'mimir', name: 'ingester', zones: ['a', 'b'] });

function statefulSet(zone: string, image: string, spec: object = {}) {
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: `ingester-zone-${zone}`, namespace: 'mimir', uid: 'u', resourceVersion: '7', annotations: { team: 'storage' } },
    spec: {
      replicas: 2,
      serviceName: 'ingester',
      podManagementPolicy: 'Parallel',
      updateStrategy: { type: 'OnDelete' },
      selector: { matchLabels: { zone } },
      template: {
        metadata: { labels: { zone } },
        spec: {
          containers: [
            { name: 'ingester', image },
            { name: 'proxy', image: 'proxy:9' },
          ],
        },
      },
      ...spec,
    },
    status: { replicas: 2 },
  };
}

const document = {
  apiVersion: 'rollout-group.dev/v1alpha1',
  kind: 'RolloutGroup',
  metadata: { name: 'ingester', namespace: 'mimir' },
  spec: {
    members: {
      zones: [
        { name: 'a', statefulSet: 'ingester-zone-a' },
        { name: 'b', statefulSet: 'ingester-zone-b' },
      ],
    },
    gates: [{ name: 'errors', prometheus: { source: 'prod', query: 'up' }, pass: { '==': [{ var: 'value' }, 1] } }],
    rollout: {
      strategy: 'onDelete',
      rotateBy: 'delete',
      maxUnavailable: 1,
      waves: [
        {
          name: 'all',
          zones: ['a', 'b'],
          percent: 100,
          before: { approval: { count: 1, from: ['oncall'] } },
          after: { gates: ['errors'] },
        },
      ],
    },
  },
};

function input(rest: Partial<GivenInput> = {}): GivenInput {
  return {
    group: definition,
    running: ['a', 'b'].map((zone) => statefulSet(zone, 'ingester:1')),
    desired: ['a', 'b'].map((zone) => statefulSet(zone, 'ingester:2')),
    documents: [document],
    refused: new Set(),
    startMs: undefined,
    withoutGates: true,
    withoutApprovals: true,
    ...rest,
  };
}

describe('a group that is given', () => {
  it('has its given objects, and no others', () => {
    const other = { ...statefulSet('x', 'other:1'), metadata: { name: 'other', namespace: 'mimir' } };
    const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'ingester', namespace: 'mimir' } };
    const elsewhere = { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: 'ingester', namespace: 'loki' }, spec: {} };
    const { running, desired } = input();
    const { objects } = givenGroup(input({ running: [...running, other, service], desired: [...desired, elsewhere] }));
    expect(objects.map(({ kind, metadata }) => [kind, metadata])).toEqual([
      ['StatefulSet', { name: 'ingester-zone-a', namespace: 'mimir', annotations: { team: 'storage' } }],
      ['StatefulSet', { name: 'ingester-zone-b', namespace: 'mimir', annotations: { team: 'storage' } }],
      ['RolloutGroup', { name: 'ingester', namespace: 'mimir' }],
    ]);
  });

  it('is asked for differences alone, and only for what can be changed', () => {
    const desired = [
      statefulSet('a', 'ingester:1', { replicas: undefined, serviceName: 'other', minReadySeconds: 5 }),
      { ...statefulSet('b', 'ingester:1'), metadata: { name: 'ingester-zone-b', namespace: 'mimir', labels: { new: 'yes' } } },
    ];
    expect(givenGroup(input({ desired })).changes).toEqual([
      {
        apiVersion: 'apps/v1',
        kind: 'StatefulSet',
        metadata: { name: 'ingester-zone-a', labels: {}, annotations: {} },
        spec: { minReadySeconds: 5 },
      },
      {
        apiVersion: 'apps/v1',
        kind: 'StatefulSet',
        spec: {},
        metadata: { name: 'ingester-zone-b', labels: { new: 'yes' }, annotations: { team: null } },
      },
    ]);
  });

  it('is not asked for what is refused', () => {
    const { changes } = givenGroup(input({ refused: new Set(['ingester-zone-a']) }));
    expect(changes.map(({ metadata }) => metadata)).toEqual([{ name: 'ingester-zone-b', labels: {}, annotations: {} }]);
  });

  it('waits for gates and approvals only where they are not taken as passed', () => {
    const waits = (rest: Partial<GivenInput>): string => JSON.stringify(givenGroup(input(rest)).objects.at(-1));
    expect(waits({})).not.toMatch(/gates|approval/);
    expect(waits({ withoutGates: false })).toMatch(/"after":{"gates":\["errors"\]}/);
    expect(waits({ withoutApprovals: false })).toMatch(/"before":{"approval"/);
  });

  it('is rolled by the agents to what was asked for, each container to its own image', async () => {
    const given = givenGroup(input());
    const scenario = { ...quietScenario, given, group: shapeOf(definition, given, { drainMs: 2000, startMs: 3000 }) };
    const { violations, unfinished, convergedMs, endMs, endState } = await runScenario(scenario, {
      endsWhenConverged: true,
      quietMs: 90_000,
    });
    expect([violations, unfinished]).toEqual([[], undefined]);
    expect(endState['ingester-zone-b']).toBe('2 replicas of ingester:2 with proxy:9, 2 pods of ingester:2 with proxy:9');
    expect(convergedMs).toBeLessThan(scenario.safetyMs);
    expect(endMs).toBeLessThan((convergedMs ?? 0) + 130_000);
  });
});
