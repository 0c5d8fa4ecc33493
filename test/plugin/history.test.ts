import { expect, it } from 'vitest';
import type { ShownRun } from '../../engine/publish/run-record.ts';
import { renderRuns } from '../../plugin/output/history.ts';
import { look } from './plan-kit.ts';

const zone = (name: string, to: string): ShownRun['zones'][number] => ({
  zone: name,
  statefulSet: `ingester-zone-${name}`,
  fromRevision: `ingester-zone-${name}-7c9`,
  toRevision: `ingester-zone-${name}-${to}`,
  pods: 3,
});

/** The columns TO and PODS of a run with one replaced pod. */
function shown(zones: ShownRun['zones']): readonly (string | undefined)[] {
  const at = { startedAt: '2026-08-02T09:12:01Z', endedAt: '2026-08-02T09:13:10Z' };
  const step = { action: 'replace', what: 'delete pods', count: 1, ...at } as const;
  const run: ShownRun = {
    group: 'ingester',
    id: '4f1c9a02',
    kind: 'rollout',
    outcome: 'completed',
    waited: 0,
    zones,
    steps: [step],
    waits: [],
    ...at,
  };
  const [, line = ''] = renderRuns([run], look()).split('\n');
  return line.split(/ {2,}/).slice(2, 4);
}

it('the history names and counts only the zones that a run changes', () => {
  expect(shown([zone('a', 'd2'), zone('b', '7c9'), zone('c', '7c9')])).toEqual(['d2', '1/3']);
  expect(shown([zone('a', 'd2'), zone('b', 'd2')])).toEqual(['d2', '1/6']);
  expect(shown([zone('a', '7c9'), zone('b', '7c9')])).toEqual(['7c9', '1/6']);
});
