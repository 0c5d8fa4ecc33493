// Changes by others between the reads of a verb and its writes.
import { describe, expect, it } from 'vitest';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { type RunFields, runOf as recordedRun } from '../kit/questions.ts';
import { type FakeOptions, fakeApiServer } from './api-server.ts';
import { type InProcess, runInProcess } from './in-process.ts';
import { rolling } from './live-kit.ts';
import { adoptedObjects, ledgerObject, publishedObject } from './live-objects.ts';
import { apiVersion, groupObject, history, inCanary, oncall, runOf } from './live-requests-kit.ts';
import type { FakeObject } from './served-objects.ts';

interface Race {
  /** Runs once, after a read of the path, when it returns objects to put. */
  readonly change: (path: string, present: readonly FakeObject[]) => readonly FakeObject[];
  readonly extra?: readonly FakeObject[];
  readonly options?: FakeOptions;
  readonly more?: InProcess;
  readonly decision?: PublishedDecision;
}

async function raced(line: string, { change, extra = [], options = {}, more = {}, decision = rolling }: Race) {
  let isChanged = false;
  const published = publishedObject({ ...decision, decidedMs: Date.now() });
  const objects = [groupObject, ...adoptedObjects({ updateRevision: 'rev-2' }), published, ...history, ...extra];
  const server = await fakeApiServer(objects, {
    stamp: oncall,
    ...options,
    onRead: (path) => {
      const changed = isChanged ? [] : change(path, server.objects());
      isChanged ||= changed.length > 0;
      for (const object of changed) server.put(object);
    },
  });
  const words = [...line.matchAll(/"([^"]*)"|\S+/g)].map(([word, quoted]) => quoted ?? word);
  const ended = await runInProcess([...words, '--server', server.url, '-n', 'mimir'], more);
  const kept = server.writes.filter(({ path }) => !path.includes('dryRun=All'));
  return { ...ended, isChanged, kept, objects: server.objects() };
}

const withSpec = (name: string, spec: object) => (object: FakeObject) =>
  object.kind === 'StatefulSet' && object.metadata.name === name ? [{ ...object, spec: { ...Object(object['spec']), ...spec } }] : [];

const isUndo = ({ kind, metadata }: FakeObject): boolean => kind === 'RolloutIntent' && metadata.name.startsWith('undo.');

describe('undo while another writer changes a StatefulSet', () => {
  const ofB = (present: readonly FakeObject[]) => present.flatMap(withSpec('ingester-zone-b', { minReadySeconds: 7 }));

  it('before the first write: writes nothing, and exits with 9', async () => {
    const change = (path: string, present: readonly FakeObject[]) => (path.includes('controllerrevisions') ? ofB(present) : []);
    const { status, isChanged, kept, stderr } = await raced('undo ingester', { change });
    expect([status, isChanged, kept, stderr]).toEqual([
      9,
      true,
      [],
      'error: StatefulSet mimir/ingester-zone-b got another spec in the meantime\n  do:  check the change: kubectl get statefulset ingester-zone-b -n mimir -o yaml\n',
    ]);
  });

  it.each([
    ['ingester-zone-a', 'the first', []],
    ['ingester-zone-b', 'the second', ['ingester-zone-a already has its new template']],
  ])('%s, after the request: names the request, its cancel, and the members with the new template', async (name, _, members) => {
    const change = (path: string, present: readonly FakeObject[]) =>
      path.includes('rolloutintents') && present.some(isUndo) ? present.flatMap(withSpec(name, { minReadySeconds: 7 })) : [];
    const { status, isChanged, objects, stderr } = await raced('undo ingester', { change });
    const request = objects.find(isUndo)?.metadata.name;
    expect([status, isChanged]).toEqual([9, true]);
    const begun = `the request ${request} is written and blocks the undone revision; to allow this revision again: kubectl rollout-group cancel mimir/ingester ${request}`;
    expect(stderr).toBe(
      `error: mimir/ingester was undone only in part: StatefulSet mimir/${name} got another spec in the meantime
  why: ${[begun, ...members].join('; ')}
  do:  check the change: kubectl get statefulset ${name} -n mimir -o yaml; then repeat the command. That is safe: the undone revision stays blocked meanwhile
`,
    );
  });
});

it('undo writes nothing if the user may not delete the earlier undo of the restored revision', async () => {
  const earlier: FakeObject = {
    apiVersion,
    kind: 'RolloutIntent',
    metadata: { name: 'undo.ingester.old', namespace: 'mimir' },
    spec: { group: 'ingester', action: 'undo', undone: [{ zone: 'a', revision: 'rev-1' }] },
  };
  const options = { forbiddenWrites: ['undo.ingester.old'] };
  const { status, kept } = await raced('undo ingester', { change: () => [], extra: [earlier], options });
  expect([status, kept]).toEqual([11, []]);
});

it('restart does not replace pods of a StatefulSet whose partition was lowered since the judgement', async () => {
  const updateStrategy = { type: 'RollingUpdate', rollingUpdate: { partition: 0 } };
  const change = (path: string, present: readonly FakeObject[]) =>
    path.includes('/leases') ? present.flatMap(withSpec('ingester-zone-a', { updateStrategy })) : [];
  const { status, isChanged, objects, stderr } = await raced('restart ingester --zone a', { change });
  expect([status, isChanged, JSON.stringify(objects)], stderr).toEqual([9, true, expect.not.stringContaining('restartedAt')]);
  expect(stderr).toContain('StatefulSet mimir/ingester-zone-a got another spec in the meantime');
});

describe.each(['promote ingester', 'approve ingester --wave rest', 'reject ingester --wave rest'])('%s', (line) => {
  const run = runOf(inCanary);
  const duringCommand = (fields: RunFields) => (path: string) =>
    path.includes('/mutatingwebhook') ? [ledgerObject({ run: recordedRun({ id: run.id, ...fields }) })] : [];
  const [action = ''] = line.split(' ');

  it('exits with 9 and names the request if the run fails during the command', async () => {
    const change = duringCommand({ outcome: 'failed', failure: 'gate errors failed' });
    const { status, stdout, stderr, objects } = await raced(line, { change, decision: inCanary });
    const request = objects.find(({ kind, metadata }) => kind === 'RolloutIntent' && metadata.name.startsWith(action))?.metadata.name;
    expect([status, stdout]).toEqual([9, '']);
    expect(stderr).toContain(
      `error: mimir/ingester: run ${run.id} failed during the command: gate errors failed\n  why: RolloutIntent ${request} (${action}) is written, but has an effect only after a retry of the run\n`,
    );
  });

  it('exits with 9 if another run supersedes the run during the command', async () => {
    const { status, stderr } = await raced(line, { change: duringCommand({ id: 'next' }), decision: inCanary });
    expect([status, stderr]).toEqual([9, expect.stringContaining(`run ${run.id} ended during the command; run next followed it\n`)]);
  });

  it('exits with 0 if the run cannot be read after the request is written', async () => {
    let isRead = false;
    const change = (path: string) => {
      isRead ||= path.includes('/mutatingwebhook');
      return [];
    };
    const isFailing = (path: string): boolean => isRead && path.includes('/configmaps');
    const { status, kept } = await raced(line, { change, options: { isFailing }, decision: inCanary });
    expect([status, kept.length]).toEqual([0, 1]);
  });

  it('exits with 0 if the run completes during the command', async () => {
    const change = duringCommand({ outcome: 'completed' });
    const { status, isChanged } = await raced(line, { change, decision: inCanary });
    expect([status, isChanged]).toEqual([0, true]);
  });
});

describe('override while another user creates an exception before the answer', () => {
  const line = 'override ingester --rule zone-gap --duration 30m --reason "cost event"';
  const exception = (name: string, reason: string): FakeObject => ({
    apiVersion,
    kind: 'RolloutException',
    metadata: { name, namespace: 'mimir' },
    spec: { rule: 'zone-gap', target: { group: 'ingester' }, allow: { anything: true }, reason, expires: '2099-01-01T00:00:00Z' },
  });

  it.each([
    ['inc-1', 5, 'RolloutException mimir/inc-1 already overrides zone-gap for this target'],
    ['override.ingester.zone-gap', 9, 'RolloutException override.ingester.zone-gap changed in the meantime; nothing was overridden'],
  ])('named %s: exits with %i and writes nothing', async (name, code, text) => {
    const objects = [groupObject, ...adoptedObjects({ updateRevision: 'rev-2' }), publishedObject({ ...rolling, decidedMs: Date.now() })];
    const fake = await fakeApiServer(objects, { stamp: oncall });
    const answer = async (): Promise<string> => {
      fake.put(exception(name, 'INC-1'));
      return 'y';
    };
    const words = [...line.matchAll(/"([^"]*)"|\S+/g)].map(([word, quoted]) => quoted ?? word);
    const { status, stdout, stderr } = await runInProcess([...words, '--server', fake.url, '-n', 'mimir'], { answer });
    expect([status, stdout, fake.writes], stderr).toEqual([code, '', []]);
    expect(stderr).toContain(text);
  });
});

it('pause does not shorten the pause that another user wrote after it was read', async () => {
  const pause = (expires: string): FakeObject => ({
    apiVersion,
    kind: 'RolloutIntent',
    metadata: { name: 'pause.ingester', namespace: 'mimir' },
    spec: { group: 'ingester', action: 'pause', expires, requestedBy: { user: 'kim', groups: [], at: '2026-01-01T00:00:00Z' } },
  });
  const change = (path: string) => (path.includes('rolloutintents') ? [pause('2099-01-01T00:00:00Z')] : []);
  const { status, objects, stderr } = await raced('pause ingester --duration 2h', { change, extra: [pause('2026-01-01T00:00:00Z')] });
  const stored = objects.find(({ metadata }) => metadata.name === 'pause.ingester');
  expect([status, Object(stored?.['spec']).expires], stderr).toEqual([9, '2099-01-01T00:00:00Z']);
});
