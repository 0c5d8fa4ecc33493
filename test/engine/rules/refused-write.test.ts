import { describe, expect, it } from 'vitest';
import { decideGroup } from '../../../engine/decide/decide.ts';
import type { Action } from '../../../engine/decision.ts';
import type { RefusedWrite } from '../../../engine/snapshot.ts';
import type { GroupDefinition } from '../../../policies/definition.ts';
import { adopted, group } from '../../kit/groups.ts';
import { kitNowMs } from '../../kit/objects.ts';
import { contextWith, outdatedSets, secondMs, updatedPods } from '../../kit/questions.ts';
import type { SnapshotOverrides } from '../../kit/snapshots.ts';

const untilMs = kitNowMs + 10 * secondMs;

function refused(kind: RefusedWrite['kind'], target: string, more: Partial<RefusedWrite> = {}): RefusedWrite {
  return { kind, namespace: 'mimir', target, message: 'admission webhook "x" denied the request', untilMs, ...more };
}

function decide(definition: GroupDefinition, overrides: SnapshotOverrides) {
  return decideGroup(contextWith(definition, overrides).snapshot, definition);
}

function text(action: Action): string {
  if (action.kind === 'scaleStatefulSet') return `scale ${action.zone} to ${action.to}`;
  if (action.kind === 'setPartition') return `partition of ${action.zone} to ${action.to}`;
  return 'pod' in action ? `${action.kind} ${action.pod}` : action.kind;
}

describe('a rejected change of replicas', () => {
  const count = (number: number) => ({ replicas: { kind: 'count', count: number } as const, duringRollout: 'allow' as const });
  const growing = adopted({ zones: ['a', 'b', 'c'].map((name) => ({ name, ...count(4) })) });
  const refusal = refused('scaleStatefulSet', 'ingester-zone-a', { to: 4 });

  it('blocks its step until the next attempt, while another zone changes its replicas', () => {
    const { actions, steps, waits, wakeAtMs } = decide(growing, { refusedWrites: [refusal] });
    expect(actions.map(text)).toEqual(['scale b to 4']);
    expect(steps.map(({ id, outcome, from, to }) => [id, outcome, from, to])).toEqual([
      ['scale/a', 'wait', 3, 4],
      ['scale/b', 'act', 3, 4],
    ]);
    const fact = 'the change of ingester-zone-a to 4 replicas did not succeed: admission webhook "x" denied the request';
    expect(waits).toEqual([{ rule: 'write-accepted', outcome: 'wait', fact, earliestMs: untilMs }]);
    expect(wakeAtMs).toBe(untilMs);
  });

  it('does not block the rollout of the group', () => {
    const definition = adopted({ zones: [{ name: 'a', ...count(4) }, 'b', 'c'] });
    const { actions, phase } = decide(definition, { statefulSets: outdatedSets(), refusedWrites: [refusal] });
    expect(actions.map(text)).toEqual(['deletePod ingester-zone-a-0']);
    expect(phase).toBe('Rolling');
  });

  it.each([
    ['another number', { ...refusal, to: 5 }],
    ['another StatefulSet', { ...refusal, target: 'ingester-zone-d' }],
    ['another namespace', { ...refusal, namespace: 'loki' }],
    ['another kind of write', { ...refusal, kind: 'setPartition' } as const],
  ])('blocks nothing if it was of %s', (_, write) => {
    expect(decide(growing, { refusedWrites: [write] }).actions.map(text)).toEqual(['scale a to 4']);
  });

  it('names no time of the next attempt that has passed, because the clock may have jumped', () => {
    const { waits } = decide(growing, { refusedWrites: [{ ...refusal, untilMs: kitNowMs - 1 }] });
    expect(waits[0]).toMatchObject({ rule: 'write-accepted' });
    expect(waits[0]).not.toHaveProperty('earliestMs');
  });
});

describe('a rejected replacement', () => {
  const rolling = group({ zones: [{ name: 'a', maxUnavailable: 2 }, 'b'] });
  const statefulSets = outdatedSets(['a', 'b']);
  const decided = (...pods: readonly string[]) =>
    decide(rolling, { statefulSets, refusedWrites: pods.map((pod) => refused('deletePod', pod)) });

  it('blocks the step only if no other pod may be replaced', () => {
    const chosen = decided().actions.map(text);
    expect(chosen).toEqual(['deletePod ingester-zone-a-2', 'deletePod ingester-zone-a-1']);
    const partly = decided('ingester-zone-a-2');
    expect(partly.actions.map(text)).toEqual(['deletePod ingester-zone-a-1']);
    expect(partly.warnings).toMatchObject([{ rule: 'write-accepted', earliestMs: untilMs }]);
    const { actions, steps, waits, warnings, run } = decided('ingester-zone-a-2', 'ingester-zone-a-1');
    expect([actions, warnings]).toEqual([[], []]);
    expect(steps.map(({ id, outcome }) => [id, outcome])).toEqual([['roll/a', 'wait']]);
    expect(waits.map(({ fact }) => fact)).toEqual([
      'the deletion of ingester-zone-a-2 did not succeed: admission webhook "x" denied the request',
      'the deletion of ingester-zone-a-1 did not succeed: admission webhook "x" denied the request',
    ]);
    expect(run).not.toHaveProperty('lastDisruptionMs');
  });
});

describe('a rejected write without a step', () => {
  it('waits, and a warning shows it', () => {
    const statefulSets = outdatedSets(['a', 'b', 'c'], { status: { updatedReplicas: 3 } });
    const given = { statefulSets, podChanges: Object.fromEntries(statefulSets.map(({ name }) => [name, updatedPods()])) };
    expect(decide(adopted(), given).actions.map(text)).toEqual(Array(3).fill('advanceCurrentRevision'));
    const refusedWrites = [refused('advanceCurrentRevision', 'ingester-zone-b')];
    const { actions, warnings } = decide(adopted(), { ...given, refusedWrites });
    expect(actions).toHaveLength(2);
    expect(warnings.map(({ rule, fact }) => `${rule}: ${fact}`)).toEqual([
      'write-accepted: the write of the current revision of ingester-zone-b did not succeed: admission webhook "x" denied the request',
    ]);
  });
});
