import { expect, it } from 'vitest';
import { refuseBeforeRun } from '../../plugin/live/submit-request.ts';
import { statefulSet } from '../kit/objects.ts';
import { runOf as storedRun } from '../kit/questions.ts';
import { snapshotOf } from '../kit/snapshots.ts';
import { fakeApiServer } from './api-server.ts';
import { runInProcess } from './in-process.ts';
import { rolling, waiting, withoutNextRun } from './live-kit.ts';
import { adoptedObjects, leaseObject, ledgerObject, publishedObject } from './live-objects.ts';
import { failed, groupObject, inCanary, oncall, runOf } from './live-requests-kit.ts';
import type { FakeObject } from './served-objects.ts';

/** The decision before the change: the last run is completed, and every pod has the update revision of that time. */
const before = {
  ...rolling,
  phase: 'Done',
  outcome: 'done',
  waits: [],
  run: { ...runOf(rolling), id: 'before', outcome: 'completed', target: { a: 'rev-1', b: 'rev-1', c: 'rev-1' } },
  zones: rolling.zones.map((zone) => ({
    ...zone,
    updated: zone.replicas,
    desiredRevision: 'rev-1',
    revisions: [{ revision: 'rev-1', ordinals: '0-19' }],
  })),
} as const;

it.each([
  ['approve ingester', waiting],
  ['reject ingester', waiting],
  ['promote ingester --wave canary', inCanary],
  ['abort ingester', rolling],
  ['retry ingester', failed],
])('%s waits for the decision about a StatefulSet that changed', async (line, after) => {
  const objects = [groupObject, ...adoptedObjects({ updateRevision: 'rev-2' }), publishedObject({ ...before, decidedMs: Date.now() })];
  const decide = (path: string): void => {
    if (path.includes('/configmaps?')) server.put(publishedObject({ ...after, decidedMs: Date.now() }));
  };
  const server = await fakeApiServer(objects, { stamp: oncall, onRead: decide });
  const { status, stderr } = await runInProcess([...line.split(' '), '--server', server.url, '-n', 'mimir'], {});
  expect([status, stderr]).toEqual([0, expect.not.stringContaining('no run')]);
  const sent = server.writes.filter(({ path }) => path.includes('rolloutintents') && !path.includes('dryRun'));
  expect(sent.map(({ body }) => Object(body).spec.runId)).toEqual(['4f1c9a02']);
});

it.each([
  ['names the run that supersedes it', 'rev-2', '4f1c9a02'],
  ['names it as long as no other template follows', 'rev-1', 'before'],
])('an abort of a running run %s', async (_, updateRevision, expected) => {
  const revisions = (revision: string) => ({ a: revision, b: revision, c: revision });
  const stored = storedRun({ id: 'before', target: revisions('rev-1'), previous: revisions('rev-0') });
  const running = { ...before, run: { ...before.run, outcome: 'running' }, decidedMs: Date.now() } as const;
  const objects = [groupObject, ...adoptedObjects({ updateRevision }), ledgerObject({ run: stored }), publishedObject(running)];
  const decide = (path: string): void => {
    if (updateRevision === 'rev-2' && path.includes('/configmaps?')) server.put(publishedObject({ ...rolling, decidedMs: Date.now() }));
  };
  const server = await fakeApiServer(objects, { stamp: oncall, onRead: decide });
  const { stderr } = await runInProcess(['abort', 'ingester', '--server', server.url, '-n', 'mimir'], {});
  const sent = server.writes.filter(({ path }) => path.includes('rolloutintents') && !path.includes('dryRun'));
  expect(
    sent.map(({ body }) => Object(body).spec.runId),
    stderr,
  ).toEqual([expected]);
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

const requests = ['approve ingester', 'reject ingester', 'promote ingester --wave canary', 'abort ingester', 'retry ingester'];

it.each(requests)('%s names the wait that keeps the run from its start, and does not wait for the agent', async (line) => {
  const changed = adoptedObjects({ updateRevision: 'rev-2' }).filter(({ metadata }) => metadata.name !== 'ingester-zone-b');
  const { status, stderr, readCount } = await request(line, [...changed, publishedObject({ ...withoutNextRun, decidedMs: Date.now() })]);
  expect([status, readCount]).toEqual([5, 1]);
  expect(stderr).toContain('error: no request was sent to mimir/ingester: its run has not begun\n');
  expect(stderr).toContain(withoutNextRun.waits[0]?.fact);
  expect(stderr).toContain('kubectl rollout-group explain mimir/ingester\n');
});

it.each(requests)('%s does not wait for an agent that does not run', async (line) => {
  const stopped = leaseObject('agent-0', Date.now() - 300_000);
  const changed = adoptedObjects({ updateRevision: 'rev-2' });
  const { status, stderr, readCount } = await request(line, [...changed, stopped, publishedObject({ ...before, decidedMs: Date.now() })]);
  expect([status, readCount]).toEqual([5, 1]);
  expect(stderr).toContain('why: a StatefulSet of the group changed, and agent not running: Lease expired');
  expect(stderr).not.toContain('the agent has not decided since');
});

async function request(line: string, objects: readonly FakeObject[]) {
  let readCount = 0;
  const onRead = (path: string): void => {
    if (path.includes('/statefulsets?')) readCount += 1;
  };
  const server = await fakeApiServer([groupObject, ...objects], { stamp: oncall, onRead });
  return { ...(await runInProcess([...line.split(' '), '--server', server.url, '-n', 'mimir'], {})), readCount };
}
