// Tests that the verbs with long texts fit a terminal of 80 columns.
import { expect, it } from 'vitest';
import { fakeApiServer } from './api-server.ts';
import { runInProcess } from './in-process.ts';
import { rolling } from './live-kit.ts';
import { adoptedObjects, leaseObject, publishedObject } from './live-objects.ts';
import { folderWith } from './process.ts';

const long =
  'the pods of ingester-zone-b became available later than the progress deadline allows; see https://example.com/runbooks/ingester';
const times = { startedAt: '2026-08-02T09:12:01Z', endedAt: '2026-08-02T09:13:10Z' };
const step = { zone: 'a', wave: 'canary', action: 'replace', what: 'delete pods', pods: '19', count: 1, message: long, ...times };
const run = {
  apiVersion: 'rollout-group.dev/v1alpha1',
  kind: 'RolloutRun',
  metadata: { name: 'ingester-1', namespace: 'mimir' },
  spec: {
    group: 'ingester',
    id: '4f1c9a02',
    kind: 'rollout',
    outcome: 'failed',
    failure: long,
    took: 5460,
    waited: 720,
    ...times,
    zones: [
      { zone: 'a', statefulSet: 'ingester-zone-a', fromRevision: 'ingester-zone-a-7c9', toRevision: 'ingester-zone-a-d2', pods: 200 },
    ],
    steps: [step],
    waits: [],
  },
};
const event = {
  apiVersion: 'events.k8s.io/v1',
  kind: 'Event',
  metadata: { name: '1', namespace: 'mimir' },
  eventTime: '2026-08-22T12:31:04.000000Z',
  reportingController: 'rollout-group.dev/agent',
  type: 'Warning',
  reason: 'ZoneGapNotOver',
  action: 'Wait',
  note: long,
  regarding: { kind: 'StatefulSet', name: 'ingester-zone-b', namespace: 'mimir' },
};

function setWith(arg: string): string {
  const [set] = adoptedObjects();
  const containers = [{ name: 'ingester', image: 'mimir:1', args: [arg] }];
  const template = { metadata: { labels: { name: 'ingester-zone-a', 'rollout-group': 'ingester' } }, spec: { containers } };
  return JSON.stringify({ ...set, spec: { ...Object(set?.['spec']), template } });
}

it.each([
  ['history ingester', 'later than the progress'],
  ['history ingester 4f1c', 'later than the progress'],
  ['events', 'later than the progress'],
  ['doctor', 'checks:'],
  ['diff --current old.json --desired new.json', 'restarts 2 pods'],
])('%s fits 80 columns', async (line, text) => {
  const { url } = await fakeApiServer([...adoptedObjects(), publishedObject({ ...rolling, decidedMs: Date.now() }), run, event]);
  const cwd = folderWith({ 'old.json': setWith(`-flags=${'a,'.repeat(60)}`), 'new.json': setWith(`-flags=${'b,'.repeat(60)}`) });
  const connection = line.startsWith('diff') ? [] : ['--server', url, '-n', 'mimir'];
  const { stdout } = await runInProcess([...line.split(' '), '--width', '80', ...connection], { cwd });
  expect(stdout.replace(/\s+/g, ' ')).toContain(text);
  expect(stdout.split('\n').filter((shown) => shown.length > 80)).toEqual([]);
});

it.each([60, 80])('get, status and history of a group with problems fit %i columns', async (width) => {
  const objects = [...adoptedObjects(), publishedObject({ ...rolling, decidedMs: Date.now() }), leaseObject('agent-0', 1000)];
  const ids = ['9bca09e151', 'scale-mi3k2j1x'];
  const runs = ids.map((id) => ({ ...run, metadata: { name: id, namespace: 'mimir' }, spec: { ...run.spec, id } }));
  const { url } = await fakeApiServer([...objects, ...runs]);
  for (const line of ['get', 'get ingester', 'status ingester --watch=false', 'history ingester']) {
    const { stdout } = await runInProcess([...line.split(' '), '--width', `${width}`, '--server', url, '-n', 'mimir'], {});
    expect(stdout).not.toBe('');
    expect(stdout.split('\n').filter((shown) => shown.length > width)).toEqual([]);
    if (line === 'get ingester') expect(stdout.split('\n')).toContain('was 28 of 60 updated   was 58 available');
  }
});

it('get wraps the texts of the column INFO, and shortens only names in the middle', async () => {
  const zones = rolling.zones.map((zone) => ({ ...zone, partition: 1, pinned: '2' }));
  const { url } = await fakeApiServer([...adoptedObjects(), publishedObject({ ...rolling, zones, decidedMs: Date.now() })]);
  const { stdout } = await runInProcess(['get', 'ingester', '--width', '80', '--server', url, '-n', 'mimir'], {});
  const lines = stdout.split('\n');
  expect(lines.filter((shown) => shown.length > 80)).toEqual([]);
  const table = lines.slice(lines.findIndex((shown) => shown.includes('  INFO')));
  const start = table[0]?.indexOf('INFO') ?? 0;
  const info = table.slice(1, table.indexOf('')).map((shown) => shown.slice(start));
  expect(info.join(' ')).toContain('partition 1, pinned 2');
  expect(info.join(' ')).not.toContain('...');
});
