import { expect, it } from 'vitest';
import type { ShownRun } from '../../engine/publish/run-record.ts';
import { renderRun, renderRuns } from '../../plugin/output/history.ts';
import { look } from './plan-kit.ts';

const zone = (name: string, to: string): ShownRun['zones'][number] => ({
  zone: name,
  statefulSet: `ingester-zone-${name}`,
  fromRevision: `ingester-zone-${name}-7c9`,
  toRevision: `ingester-zone-${name}-${to}`,
  pods: 3,
});

/** A run with one replaced pod. */
function runOf(zones: ShownRun['zones'], more: Partial<ShownRun> = {}): ShownRun {
  const at = { startedAt: '2026-08-02T09:12:01Z', endedAt: '2026-08-02T09:13:10Z' };
  const step = { action: 'replace', what: 'delete pods', count: 1, ...at } as const;
  return {
    group: 'ingester',
    id: '4f1c9a02',
    kind: 'rollout',
    outcome: 'completed',
    waited: 0,
    zones,
    steps: [step],
    waits: [],
    ...at,
    ...more,
  };
}

/** The columns TO and REPLACED of a run. */
function shown(zones: ShownRun['zones'], more: Partial<ShownRun> = {}): readonly (string | undefined)[] {
  const [, line = ''] = renderRuns([runOf(zones, more)], look()).split('\n');
  return line.split(/ {2,}/).slice(2, 4);
}

it('the history names and counts only the zones that a run changes', () => {
  expect(shown([zone('a', 'd2'), zone('b', '7c9'), zone('c', '7c9')])).toEqual(['d2 in a', '1/3']);
  expect(shown([zone('a', 'd2'), zone('b', 'd2')])).toEqual(['d2', '1/6']);
  expect(shown([zone('a', '7c9'), zone('b', '7c9')])).toEqual(['7c9', '1/6']);
});

it('the history names the zones of each image if the zones request different images', () => {
  const images = (from: string, to: string) => ({ fromImages: { app: `app:${from}` }, toImages: { app: `app:${to}` } });
  const [a, b, c] = [zone('a', 'd2'), zone('b', 'd3'), zone('c', 'd3')] as const;
  expect(
    shown([
      { ...a, ...images('1', '2') },
      { ...b, ...images('1', '2') },
    ])[0],
  ).toBe('app:2');
  const apart = [
    { ...a, ...images('2', '1') },
    { ...b, ...images('1', '2') },
    { ...c, ...images('1', '2') },
  ];
  expect(shown(apart)[0]).toBe('app:1 in a; app:2 in b and c');
  const onlyA = [apart[0], ...[b, c].map((one) => ({ ...one, toRevision: one.fromRevision, ...images('2', '2') }))] as ShownRun['zones'];
  expect(shown(onlyA)).toEqual(['app:1 in a', '1/3']);
  // A record of an earlier version does not say that the run also replaces the outdated pods of other zones.
  const at = { startedAt: '2026-08-02T09:12:01Z', endedAt: '2026-08-02T09:13:10Z' };
  const step = (name: string, pods: string, count: number) => ({ action: 'replace' as const, what: '', zone: name, pods, count, ...at });
  const steps = [step('a', '0-2', 3), step('b', '0-2', 3), step('c', '2', 1)];
  expect(shown(onlyA, { steps })).toEqual(['app:1 in a; app:2 in b and c', '7/9']);
});

it('the history names the numbers of the revisions, in the list only if they differ between zones', () => {
  const numbered = (...numbers: readonly number[]) =>
    runOf(['a', 'b', 'c'].map((name, index) => ({ ...zone(name, 'd2'), revisionNumber: numbers[index] ?? 0 })));
  expect(renderRuns([numbered(5, 3, 3)], look())).toContain('revision 5 in a, 3 in b and c');
  expect(renderRuns([numbered(3, 3, 3)], look())).not.toContain('3 in a');
  expect(renderRun(numbered(5, 3, 3), look())).toContain('a 7c9 -> d2, revision 5');
});

it('the history names the earlier ids of a run', () => {
  const run = runOf([zone('a', 'd2')], { earlierIds: ['one', 'two'] });
  expect(renderRuns([run], look())).toContain('continues two');
  expect(renderRun(run, look())).toMatch(/^ {2}earlier {2}the change began as one and two$/m);
});

it('the history counts the pods of a completed rollback without those that kept the earlier revision', () => {
  expect(shown([zone('a', 'd2')], { kind: 'rollback' })[1]).toBe('1');
  expect(shown([zone('a', 'd2')], { kind: 'rollback', outcome: 'failed' })[1]).toBe('1/3');
});

it('the history names the undo that cancelled a run', () => {
  const undo = (name: string, at: string) => ({ name, action: 'undo' as const, by: 'anna', at });
  const cancelled = (...people: ReturnType<typeof undo>[]) => runOf([zone('a', 'd2')], { outcome: 'cancelled', people });
  expect(renderRuns([cancelled(undo('late', '2099-01-01T00:00:00Z'))], look())).toContain('undo by anna');
  expect(renderRuns([cancelled(undo('earlier', '2020-01-01T00:00:00Z'))], look())).not.toContain('undo by anna');
});

it('the history names who cancelled a scale-down, and why', () => {
  const people = [
    { name: 'cancel', action: 'cancel' as const, by: 'bob', at: '2026-08-02T09:12:01Z', reason: 'traffic peak', about: 'zone a' },
  ];
  const scale = runOf([{ zone: 'a', fromReplicas: 5, toReplicas: 3 }], { kind: 'scale', outcome: 'cancelled', people });
  expect(renderRuns([scale], look())).toContain('cancelled by bob (traffic peak)');
  expect(renderRun(scale, look())).toContain('bob: cancel zone a (traffic peak)');
});

it('the history names changed fields as diff does', () => {
  const to = (...changedFields: readonly string[]) => shown([{ ...zone('a', 'd2'), changedFields }])[0];
  const container = 'spec.template.spec.containers[app]';
  expect(to(`${container}.env[A].value`, `${container}.env[B]`)).toBe('env A, B');
  expect(to(`${container}.env`)).toBe('containers[app].env');
  expect(to('spec.template.metadata.annotations.x', `${container}.args`)).toBe('metadata.annotations.x and 1 more');
  const restarted = 'spec.template.metadata.annotations[kubectl.kubernetes.io/restartedAt]';
  expect([to(restarted), to(restarted, `${container}.args`)]).toEqual(['restart', 'containers[app].args']);
  // The rollback removes the restart.
  const back = { ...zone('a', 'd2'), changedFields: [restarted] };
  expect(shown([back, zone('b', '7c9')], { kind: 'rollback' })[0]).toBe('d2 in a');
  expect(shown([{ ...back, revisionNumber: 3 }], { kind: 'rollback' })[0]).toBe('revision 3');
});

it('the history names a stopped agent, the undo of a run, and why a run waits', () => {
  const zones = [zone('a', 'd2')];
  const waiting = { rule: 'approval', fact: 'rejected by kim', since: '2026-08-02T09:12:01Z' };
  const undo = runOf(zones, { id: 'undo1', kind: 'rollback', outcome: 'running', cause: 'undo by kim (leak)', waiting });
  const text = renderRuns([undo, runOf(zones, { outcome: 'superseded' })], look(), 'agent not running');
  expect(text.replaceAll(/\s+/g, ' ')).toContain('running agent not running, approval: rejected by kim, undo by kim (leak)');
  expect(text.replaceAll(/\s+/g, ' ')).toContain('superseded by undo1 (undo by kim (leak))');
});
