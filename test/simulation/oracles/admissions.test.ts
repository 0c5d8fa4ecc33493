import { describe, expect, it } from 'vitest';
import type { Json, ModelObject } from '../../../simulation/server/request.ts';
import { History } from './history.ts';

const budgeted = (): History => new History({ disruption: 1 });

describe('S30', () => {
  it('finds an admitted eviction while an agent replaces a pod of another zone', () => {
    const history = budgeted();
    history.announceAndTake('ing-b-0', 'b1');
    history.advance(100).evict('ing-a-2');
    expect(history.found('S30')).toEqual(['a1 lets kubernetes-admin disrupt ing-a-2 while ing-b has unavailable pods: ing-b-0']);
  });

  it('finds a second admitted eviction in a zone with a budget of one pod', () => {
    const history = budgeted();
    history.evict('ing-a-1', { by: 'b1' });
    history.advance(100).evict('ing-a-2');
    expect(history.found('S30')).toEqual([
      'a1 lets kubernetes-admin disrupt ing-a-2 while ing-a-1 are unavailable, and no more than 1 may be',
    ]);
  });

  it('counts the pods of a scale-up by an agent from 10 s on', () => {
    const history = budgeted();
    history.scale('ing-a', 4, history.agent('a1'));
    history.advance(9_000).evict('ing-b-2');
    expect(history.found('S30')).toEqual([]);
    history.advance(2_000).evict('ing-a-1');
    expect(history.found('S30')).toContain(
      'a1 lets kubernetes-admin disrupt ing-a-1 while ing-a-3 are unavailable, and no more than 1 may be',
    );
  });

  it('counts an admitted eviction at once against an agent', () => {
    const history = budgeted();
    history.evict('ing-b-0');
    history.advance(100).announceAndTake('ing-a-2', 'b1');
    expect(history.found('S1')).toEqual(['b1 disrupts ing-a-2 while ing-b has unavailable pods: ing-b-0']);
  });

  it('finds an admitted eviction without a claim, also if its answer names no group of a member', () => {
    for (const group of ['mimir/ing', undefined]) {
      const history = budgeted();
      history.evict('ing-a-1', { claimAgeMs: Number.POSITIVE_INFINITY, group });
      expect(history.found('S30')).toEqual([
        `a1 lets kubernetes-admin disrupt ing-a-1 without a claim, and its answer names ${group ?? 'no group'}`,
      ]);
    }
  });

  it('asks for no claim on a pod of a drop-in group that was down already', () => {
    const history = new History({ kind: 'adopted', zoneBudget: 1 });
    const evict = (pod: string): void => void history.evict(pod, { claimAgeMs: Number.POSITIVE_INFINITY, group: undefined });
    history.ready('ing-a-2', false);
    history.advance(20_000);
    evict('ing-a-2');
    expect(history.said).toEqual([]);
    history.advance(100);
    evict('ing-a-1');
    expect(history.found('S30')).toContain('a1 lets kubernetes-admin disrupt ing-a-1 without a claim, and its answer names no group');
  });

  it('permits an answer that names no group while the group is new, but no answer without a claim that names the group', () => {
    const history = budgeted();
    const zonesOf = ({ spec }: ModelObject) => (spec as { readonly members: { readonly zones: readonly Json[] } }).members.zones;
    const define = (zones: readonly Json[]): void =>
      void history.change('rolloutgroups.rollout-group.dev', 'ing', ({ spec }) => ({ spec: { ...(spec as Json), members: { zones } } }));
    const zones = zonesOf(history.get('rolloutgroups.rollout-group.dev', 'ing'));
    define(zones.slice(1));
    history.advance(60_000);
    define(zones);
    const evict = (pod: string, group?: string): void =>
      void history.evict(pod, { claimAgeMs: Number.POSITIVE_INFINITY, group, isJudged: true });
    history.advance(9000);
    evict('ing-a-0');
    expect(history.said).toEqual([]);
    evict('ing-a-1', 'mimir/ing');
    expect(history.found('S30')).toEqual(['a1 lets kubernetes-admin disrupt ing-a-1 without a claim, and its answer names mimir/ing']);
    history.advance(2000);
    evict('ing-a-2');
    expect(history.found('S30').at(-1)).toContain('names no group');
  });

  it('permits an eviction of a pod that is down, and one while a pod of another zone has just failed', () => {
    const history = budgeted();
    history.ready('ing-a-2', false);
    history.advance(20_000).evict('ing-a-2');
    history.advance(20_000).replace('ing-a-2');
    history.advance(20_000).ready('ing-b-0', false);
    history.advance(5000).evict('ing-c-0');
    expect(history.said).toEqual([]);
  });
});

describe('a claim of a webhook', () => {
  it("breaks 'S30' if its request comes long after it was allowed", () => {
    const history = budgeted();
    history.evict('ing-a-1', { claimAgeMs: 40_000 });
    expect(history.found('S30')).toEqual([]);
    history.advance(20_000).replace('ing-a-1');
    history.advance(20_000).evict('ing-a-0', { claimAgeMs: 45_000 });
    expect(history.found('S30')).toEqual(['a1 lets kubernetes-admin disrupt ing-a-0, which was allowed 45000 ms ago']);
  });

  it('accepts a deletion soon after it was allowed, although an eviction of the pod was allowed long ago', () => {
    const history = budgeted();
    history.admit(['ing-a-0'], 80_000, ['ing-a-0']);
    history.evict('ing-a-0', { claimAgeMs: Number.POSITIVE_INFINITY });
    expect(history.found('S30')).toEqual([]);
  });

  it('accepts a request whose review began before a jump of the wall clock', () => {
    const found = (agoMs: number): number => {
      const history = budgeted();
      history.clocks.set('a1', { rate: 1, wallErrorMs: 300_000, jumpedAtMs: history.nowMs - agoMs });
      history.evict('ing-a-0');
      return history.found('S30').length;
    };
    expect(found(0)).toBe(0);
    expect(found(500)).toBe(1);
  });

  it("breaks 'S30' next to another one in a zone with a budget of one pod", () => {
    const history = budgeted();
    history.admit(['ing-a-0', 'ing-b-0']);
    expect(history.found('S30')).toEqual([]);
    history.advance(20_000).admit(['ing-a-0', 'ing-a-1']);
    expect(history.found('S30')).toEqual([
      `a webhook claims ${history.uidOf('ing-a-1')} next to ${history.uidOf('ing-a-0')}, and no more than 1 may be`,
    ]);
  });
});

describe('S31', () => {
  it('lets an eviction pass that a webhook saw before the StatefulSet was created again', () => {
    const recreated = (agoMs: number): readonly string[] => {
      const history = budgeted();
      const { metadata, spec, status } = history.set('ing-a');
      history.remove('statefulsets.apps', 'ing-a');
      history.advance(1_000).write('statefulsets.apps', { metadata: { ...metadata, uid: 'again' }, spec, status });
      history.change('pods', 'ing-a-1', () => ({ metadata: { ownerReferences: [{ uid: 'again', controller: true }] } }));
      history.advance(agoMs).evict('ing-a-1', { isJudged: false });
      return history.found('S31');
    };
    expect(recreated(2_000)).toEqual([]);
    expect(recreated(15_000)).toEqual(['a1 lets kubernetes-admin disrupt ing-a-1 without a judgement']);
  });

  it('finds an eviction that passed without a judgement, but no deletion', () => {
    const history = budgeted();
    history.evict('ing-a-1', { isJudged: false, failurePolicy: 'Ignore' });
    history.advance(100).evict('ing-b-1', { isJudged: false });
    expect(history.said).toEqual([{ invariant: 'S31', message: 'a1 lets kubernetes-admin disrupt ing-b-1 without a judgement' }]);
  });
});
