import { describe, expect, it } from 'vitest';
import type { ReleaseTerms } from '../../engine/snapshot.ts';
import { type FakeApiServer, fakeApiServer } from './api-server.ts';
import { type Ended, runInProcess } from './in-process.ts';
import { done, rolling } from './live-kit.ts';
import { ledgerObject, publishedObject, statefulSetObject } from './live-objects.ts';
import type { FakeObject } from './served-objects.ts';

function on({ url }: Pick<FakeApiServer, 'url'>, line: string): Promise<Ended> {
  return runInProcess([...line.split(' '), '--server', url, '-n', 'mimir'], {});
}

const terms: ReleaseTerms = {
  source: 'objects',
  zones: ['a', 'b', 'c'].map((zone) => ({ zone, statefulSet: `ingester-zone-${zone}` })),
};

const status = publishedObject({ ...rolling, decidedMs: Date.now() });
const statusPath = '/api/v1/namespaces/mimir/configmaps/rollout-status-ingester';

describe('a group that disappears while a user watches it', () => {
  it.each(['get ingester -w', 'get ingester -w -o jsonl', 'status ingester'])('ends the watch with a message: %s', async (line) => {
    const server = await fakeApiServer([status]);
    const watching = on(server, line);
    await server.watched('configmaps');
    await fetch(`${server.url}${statusPath}`, { method: 'DELETE' });
    expect(await watching).toMatchObject({ status: 10, stderr: expect.stringContaining('mimir/ingester was deleted') });
  });

  it('names the future of its StatefulSets', async () => {
    const server = await fakeApiServer([status, ledgerObject({ release: terms })]);
    const watching = on(server, 'get ingester -w');
    await server.watched('configmaps');
    await fetch(`${server.url}${statusPath}`, { method: 'DELETE' });
    const { status: code, stderr } = await watching;
    expect([code, stderr]).toEqual([10, expect.stringContaining(' to 0 a minute after it notices the deletion')]);
  });
});

describe('a group that is being released', () => {
  const goneMs = Date.UTC(2026, 7, 22, 12, 0, 0);
  const sets = (['a', 'b', 'c'] as const).map((zone) => {
    const { metadata, ...rest } = statefulSetObject(zone);
    return { ...rest, metadata: { ...metadata, labels: {} } };
  });

  it.each(['get ingester', 'explain ingester', 'status ingester'])(
    'is reported with time, order and the way to stop it: %s',
    async (line) => {
      const ended = await on(await fakeApiServer([...sets, ledgerObject({ release: { ...terms, goneMs } })]), line);
      expect(ended.status).toBe(10);
      expect(ended.stderr).toBe(
        [
          'error: mimir/ingester was deleted and is being released (onPolicyDeleted: release)',
          '  why: the agent sets the partitions of ingester-zone-a, ingester-zone-b, ingester-zone-c to 0 at 2026-08-22T12:01:00Z at the earliest, one zone after the other, each when all pods of the other zones are available',
          '  do:  to stop the release, define the group again: kubectl apply -f FILE',
          '',
        ].join('\n'),
      );
    },
  );

  it('is reported with the released StatefulSets', async () => {
    const { stderr } = await on(
      await fakeApiServer([ledgerObject({ release: { ...terms, goneMs, released: ['a', 'b'] } })]),
      'get ingester',
    );
    expect(stderr).toContain(
      'why: ingester-zone-a, ingester-zone-b are released; the agent next sets the partition of ingester-zone-c to 0, when all pods',
    );
  });

  it('is noted next to the last published decision, only after the agent has seen it', async () => {
    const published = publishedObject({ ...done, decidedMs: Date.now() });
    const notes = async (release: ReleaseTerms) =>
      (await on(await fakeApiServer([published, ledgerObject({ release })]), 'get ingester')).stderr;
    expect(await notes({ ...terms, goneMs })).toContain(
      'note: the definition of mimir/ingester was deleted, and the group is being released: the agent sets the partitions',
    );
    expect(await notes(terms)).toBe('');
    const back = { apiVersion: 'rollout-group.dev/v1alpha1', kind: 'RolloutGroup', metadata: { name: 'ingester', namespace: 'mimir' } };
    const { stderr } = await on(await fakeApiServer([published, back, ledgerObject({ release: { ...terms, goneMs } })]), 'get ingester');
    expect(stderr).not.toContain('released');
  });

  it('is distinguished from a group that never existed', async () => {
    expect((await on(await fakeApiServer([]), 'get ingester')).stderr).toContain('group ingester does not exist in namespace mimir');
  });
});

describe('the remains of a deleted group', () => {
  const runObject = (id: string, startedAt: string, more: object = {}): FakeObject => ({
    apiVersion: 'rollout-group.dev/v1alpha1',
    kind: 'RolloutRun',
    metadata: { name: `ingester-${id}`, namespace: 'mimir' },
    spec: {
      group: 'ingester',
      id,
      kind: 'rollout',
      outcome: 'running',
      startedAt,
      waited: 0,
      steps: [],
      waits: [],
      zones: [{ zone: 'a', statefulSet: 'ingester-zone-a', toRevision: 'ingester-zone-a-d2' }],
      ...more,
    },
  });
  const outcomes = async (objects: readonly FakeObject[]): Promise<unknown> =>
    JSON.parse((await on(await fakeApiServer(objects), 'history ingester -o json')).stdout).runs.map(
      ({ id, outcome }: { readonly id: string; readonly outcome: string }) => `${id} ${outcome}`,
    );
  const [older, newer] = [runObject('one', '2026-08-02T09:12:00Z'), runObject('two', '2026-08-03T09:12:00Z')];

  it('are a run that no agent continues', async () => {
    expect(await outcomes([older, newer])).toEqual(['two abandoned', 'one abandoned']);
    expect(await outcomes([older, newer, status])).toEqual(['two running', 'one abandoned']);
    expect(await outcomes([older, status, ledgerObject({ release: { ...terms, goneMs: 1 } })])).toEqual(['one abandoned']);
    const { stdout } = await on(await fakeApiServer([older]), 'history ingester');
    expect(stdout).toContain('abandoned');
    expect((await on(await fakeApiServer([older]), 'history ingester one')).stdout).toContain('ABANDONED');
  });

  it('is not a rollout during which replicas change', async () => {
    expect(await outcomes([older, runObject('scale-1', '2026-08-03T09:12:00Z', { kind: 'scale' }), status])).toEqual([
      'scale-1 running',
      'one running',
    ]);
  });

  it('are its events, by the StatefulSets that its runs name', async () => {
    const event = (name: string, about: string): FakeObject => ({
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name, namespace: 'mimir' },
      eventTime: '2026-08-22T12:31:04.000000Z',
      reportingController: 'rollout-group.dev/agent',
      type: 'Normal',
      reason: 'Released',
      action: 'Release',
      note: 'partition 0',
      regarding: { kind: 'StatefulSet', name: about, namespace: 'mimir' },
    });
    const events = [event('1', 'ingester-zone-a'), event('2', 'other')];
    const ended = await on(await fakeApiServer([older, ...events]), 'events ingester -o jsonl');
    expect([
      ended.status,
      ended.stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line).object),
    ]).toEqual([0, ['statefulset/ingester-zone-a']]);
    expect((await on(await fakeApiServer(events), 'events ingester')).status).toBe(10);
  });
});
