import { expect, it } from 'vitest';
import { refuseBeforeRun } from '../../plugin/live/submit-request.ts';
import { statefulSet } from '../kit/objects.ts';
import { snapshotOf } from '../kit/snapshots.ts';
import { fakeApiServer } from './api-server.ts';
import { runInProcess } from './in-process.ts';
import { rolling, waiting } from './live-kit.ts';
import { adoptedObjects, publishedObject } from './live-objects.ts';
import { failed, groupObject, oncall, runOf } from './live-requests-kit.ts';

/** The decision before the change: the last run is completed, and every pod has the update revision of that time. */
const before = {
  ...rolling,
  phase: 'Done',
  outcome: 'done',
  waits: [],
  run: { ...runOf(rolling), id: 'before', outcome: 'completed', target: { a: 'rev-1', b: 'rev-1', c: 'rev-1' } },
  zones: rolling.zones.map((zone) => ({ ...zone, updated: zone.replicas, revisions: [{ revision: 'rev-1', ordinals: '0-19' }] })),
} as const;

it.each([
  ['approve ingester', waiting],
  ['reject ingester', waiting],
  ['promote ingester --wave canary', { ...rolling, wave: { name: 'canary', index: 0, count: 3 } }],
  ['abort ingester', rolling],
  ['retry ingester', failed],
])('%s waits for the decision about a StatefulSet that changed', async (line, after) => {
  const objects = [groupObject, ...adoptedObjects({ updateRevision: 'rev-2' }), publishedObject({ ...before, decidedMs: Date.now() })];
  const server = await fakeApiServer(objects, { stamp: oncall });
  const deciding = setTimeout(() => server.put(publishedObject({ ...after, decidedMs: Date.now() })), 100);
  const { status, stderr } = await runInProcess([...line.split(' '), '--server', server.url, '-n', 'mimir'], {});
  clearTimeout(deciding);
  expect([status, stderr]).toEqual([0, expect.not.stringContaining('no run')]);
  const sent = server.writes.filter(({ path }) => path.includes('rolloutintents') && !path.includes('dryRun'));
  expect(sent.map(({ body }) => Object(body).spec.runId)).toEqual(['4f1c9a02']);
});

it('a request is refused if the agent has not decided about the change, and not because no run exists', () => {
  const live = { decision: before, from: 'agent', unread: [] } as const;
  const refuse = (updateRevision: string) => () => {
    const statefulSets = ['a', 'b', 'c'].map((zone) => statefulSet({ name: `ingester-zone-${zone}`, status: { updateRevision } }));
    refuseBeforeRun({ name: 'mimir/ingester', live, snapshot: snapshotOf({ statefulSets }) });
  };
  expect(refuse('rev-2')).toThrow('its run has not begun');
  expect(refuse('rev-1')).not.toThrow();
});
