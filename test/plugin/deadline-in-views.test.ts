import { expect, it } from 'vitest';
import { decideGroup } from '../../engine/decide/decide.ts';
import { publishedDecision } from '../../engine/publish/decision.ts';
import { group } from '../kit/groups.ts';
import { newRevision } from '../kit/objects.ts';
import { ago, hourMs, minuteMs } from '../kit/questions.ts';
import { type SnapshotOverrides, snapshotOf } from '../kit/snapshots.ts';
import { fakeApiServer } from './api-server.ts';
import { runInProcess } from './in-process.ts';
import { leaseObject, publishedObject } from './live-objects.ts';
import type { FakeObject } from './served-objects.ts';
import { afterRun, outdated, run, zones } from './stop-rows.ts';

const podChanges = { 'ingester-zone-a': { 2: { revision: newRevision, isReady: false, readyChangedMs: ago(5 * minuteMs) } } };
const deadlines = { progressMs: 20 * minuteMs, runMs: 3 * hourMs };

function decided(overrides: SnapshotOverrides, rollout: object = { deadlines }) {
  const definition = group({ zones, rollout });
  const state = { ...run, outcome: 'running', lastDisruptionMs: ago(5 * minuteMs) } as const;
  const snapshot = snapshotOf({ groups: [definition], ...afterRun(state), statefulSets: outdated, ...overrides });
  return { definition, snapshot, decision: decideGroup(snapshot, definition) };
}

async function shownBy(line: string, { definition, snapshot, decision }: ReturnType<typeof decided>, ...others: readonly FakeObject[]) {
  const published = publishedDecision({ group: definition, decision, snapshot, atMs: snapshot.nowMs, leader: 'agent-0' });
  const { url } = await fakeApiServer([publishedObject(published), ...others], {
    missing: ['rolloutgroups', 'rolloutpolicies', 'rolloutexceptions', 'rolloutruns', 'rolloutintents', 'zoneawarepoddisruptionbudgets'],
  });
  return (await runInProcess([...line.split(' '), '--server', url, '-n', 'mimir'], {})).stdout.replace(/\s+/g, ' ');
}

it.each(['get ingester', 'status ingester --watch=false', 'explain ingester'])(
  '%s shows when the run fails by its deadline',
  async (line) => {
    expect(await shownBy(line, decided({ podChanges }))).toMatch(
      /deadline:? the run fails at 2026-03-02 12:20 UTC .*by progress-deadline: the last progress was .* ago \(limit: 20m\)/,
    );
  },
);

it.each(['get ingester', 'status ingester --watch=false', 'explain ingester'])('%s reports that no agent fails the run', async (line) => {
  const shown = await shownBy(line, decided({ podChanges }), leaseObject('agent-0', 1000));
  expect(shown).toMatch(/deadline:? no agent fails the run; its deadline ends at 2026-03-02 12:20 UTC /);
  expect(shown).not.toContain('the run fails at');
});

it('no deadline is shown while no deadline runs', async () => {
  expect(await shownBy('explain ingester', decided({}, { deadlines: { progressMs: hourMs } }))).not.toContain('the run fails at');
  expect(decided({ podChanges, hasAssumedTimes: true }).decision.deadline).toBeUndefined();
});

it('the earliest deadline is shown', () => {
  expect(decided({}).decision.deadline?.rule).toBe('run-deadline');
  expect(decided({ podChanges }).decision.deadline?.rule).toBe('progress-deadline');
});
