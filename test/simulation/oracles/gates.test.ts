import { describe, expect, it } from 'vitest';
import { judgeGates } from '../../../simulation/oracles/gates.ts';
import type { Scene } from '../../../simulation/oracles/oracle.ts';
import type { ModelObject } from '../../../simulation/server/request.ts';
import { quietScenario } from '../scenarios.ts';

const statefulSets = ['ingester-zone-a', 'ingester-zone-b'];

function object(kind: string, name: string, more: object): ModelObject {
  const metadata = { name, namespace: 'mimir', uid: name, resourceVersion: '1', creationTimestamp: '2026-01-15T12:00:00Z' };
  const { labels, deletionTimestamp, ...rest } = more as {
    readonly labels?: Readonly<Record<string, string>>;
    readonly deletionTimestamp?: string;
  };
  const marks = { ...(labels === undefined ? {} : { labels }), ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }) };
  return { apiVersion: 'v1', kind, metadata: { ...metadata, ...marks }, ...rest };
}

function world(gate: 'passing' | 'none' = 'passing', wasMember = () => true) {
  const found: string[] = [];
  let revision = 0;
  const scene: Scene = {
    nowMs: () => 0,
    namespace: 'mimir',
    statefulSets,
    agentUser: 'agent',
    list: () => [],
    group: { ...quietScenario.group, ...(gate === 'none' ? {} : { gate }) },
    get: (_resource, _namespace, name) => object('StatefulSet', name, { status: { updateRevision: 'new' } }),
    violated: (invariant, message) => found.push(`${invariant} ${message}`),
  };
  const judge = judgeGates({ scene, terms: { wasMember } });
  return {
    found,
    answers: (process: string, fromMs: number, ...areGood: readonly boolean[]): void => {
      for (const [index, isGood] of areGood.entries()) judge.gateAnswered?.({ process, atMs: fromMs + index * 1000, isGood });
    },
    takes: (atMs: number, name: string, { is = 'old', ready = 'True', process = 'a1' } = {}): void => {
      const pod = { labels: { 'controller-revision-hash': is }, status: { conditions: [{ type: 'Ready', status: ready }] } };
      const before = object('Pod', name, pod);
      const after = object('Pod', name, { ...pod, deletionTimestamp: '2026-01-15T12:01:00Z' });
      revision += 1;
      judge.committed?.({ revision, atMs, type: 'MODIFIED', resource: 'pods', before, after, actor: { user: 'agent', process } });
    },
  };
}

describe('the judge of gates', () => {
  it('lets a zone begin after three good answers in a row since the zone before it was done', () => {
    const { answers, found, takes } = world();
    takes(1_000, 'ingester-zone-a-0');
    answers('a1', 5_000, true, false, true, true, true);
    takes(20_000, 'ingester-zone-b-0');
    // Whoever goes on needs no other reading, and what has passed is stored for whoever leads next.
    takes(30_000, 'ingester-zone-b-1', { process: 'b1' });
    expect(found).toEqual([]);
  });

  it.each<[string, (given: ReturnType<typeof world>) => void]>([
    ['no answer', () => undefined],
    ['too few', ({ answers }) => answers('a1', 5_000, true, true)],
    ['a row that was broken', ({ answers }) => answers('a1', 5_000, true, true, false, true, true)],
    [
      'a row that two processes heard',
      ({ answers }) => {
        answers('a1', 5_000, true, true);
        answers('b1', 8_000, true);
      },
    ],
    ['a row that began before the zone was done', ({ answers }) => answers('a1', 500, true, true, true)],
  ])('tells when it begins after %s', (_what, hear) => {
    const given = world();
    given.takes(1_000, 'ingester-zone-a-0');
    hear(given);
    given.takes(20_000, 'ingester-zone-b-0');
    expect(given.found).toEqual([
      'S8 a1 begins ingester-zone-b with ingester-zone-b-0, and the gate after ingester-zone-a was not good 3 times in a row since the last disruption there',
    ]);
  });

  it('asks nothing of pods that are broken or up to date, of the first zone, after a zone that left, and of groups without a gate', () => {
    const { found, takes } = world();
    takes(1_000, 'ingester-zone-a-0');
    takes(2_000, 'ingester-zone-b-0', { ready: 'False' });
    takes(3_000, 'ingester-zone-b-1', { is: 'new' });
    expect(found).toEqual([]);
    for (const exempt of [world('none'), world('passing', () => false)]) {
      exempt.takes(1_000, 'ingester-zone-b-0');
      expect(exempt.found).toEqual([]);
    }
  });
});
