import { describe, expect, it } from 'vitest';
import { runOf as storedRun } from '../kit/questions.ts';
import { rolling } from './live-kit.ts';
import { adoptedObjects, ledgerObject, statefulSetObject } from './live-objects.ts';
import { act, apiVersion, asked, failed as failedDecision, groupObject, history, over, runOf, zones } from './live-requests-kit.ts';
import type { FakeObject } from './served-objects.ts';

const labels = { 'rollout-group': 'ingester' };
type Zone = (typeof zones)[number];
const revision = (zone: Zone, number: number, image: string, more: object = {}, others: readonly object[] = []): FakeObject => ({
  apiVersion: 'apps/v1',
  kind: 'ControllerRevision',
  metadata: {
    name: `ingester-zone-${zone}-${image.replace(/\W/g, '')}`,
    namespace: 'mimir',
    ownerReferences: [{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: `ingester-zone-${zone}`, uid: `uid-ingester-zone-${zone}` }],
  },
  revision: number,
  data: {
    spec: {
      template: { $patch: 'replace', metadata: { labels }, spec: { containers: [{ name: 'ingester', image, ...more }, ...others] } },
    },
  },
});

const nameOf = (zone: Zone, image: string): string => `ingester-zone-${zone}-${image.replace(/\W/g, '')}`;
const recordOf = (id: string, image: string, imageOfA = image): FakeObject => ({
  apiVersion,
  kind: 'RolloutRun',
  metadata: { name: `ingester-${id}`, namespace: 'mimir' },
  spec: {
    group: 'ingester',
    id,
    kind: 'rollout',
    outcome: 'completed',
    startedAt: imageOfA === image ? '2026-01-01T00:00:00Z' : '2026-01-02T00:00:00Z',
    waited: 0,
    zones: zones.map((zone) => ({ zone, toRevision: nameOf(zone, zone === 'a' ? imageOfA : image) })),
    steps: [],
    waits: [],
  },
});

function withContainer(object: FakeObject, fields: object, others: readonly object[] = []): FakeObject {
  const spec = Object(object['spec']);
  const containers = [{ name: 'ingester', image: 'mimir:2', ...fields }, ...others];
  // The server counts the replaced spec as the second generation.
  const status = { ...Object(object['status']), observedGeneration: 2 };
  return { ...object, spec: { ...spec, template: { ...spec.template, spec: { ...spec.template?.spec, containers } } }, status };
}

/** Zone a returned alone once, so its revisions have other numbers than those of the other zones. */
const diverged = [
  revision('a', 2, 'mimir:1'),
  revision('a', 3, 'mimir:7'),
  ...(['b', 'c'] as const).flatMap((zone) => [revision(zone, 2, 'mimir:7'), revision(zone, 3, 'mimir:1')]),
  recordOf('run1', 'mimir:1'),
  recordOf('run7', 'mimir:7'),
  // The run of zone a alone has no common template, so no command names it.
  recordOf('alone', 'mimir:1', 'mimir:7'),
];

it.each([
  ['--to-revision 3 --to-run run7', '--to-revision and --to-run'],
  ['--to-run run7 --to-commit abc', '--to-run and --to-commit'],
  ['--to-revision 3 --to-run run7 --to-commit abc', '--to-revision, --to-run and --to-commit'],
])('undo %s is denied', async (flags, named) => {
  const acted = await act(`undo ingester ${flags} --yes`, { decision: rolling, extra: diverged });
  expect([acted.status, acted.kept]).toEqual([3, []]);
  expect(acted.stderr).toContain(`${named} exclude each other`);
});

describe('undo --to-revision if the numbers of the StatefulSets differ', () => {
  const undo = (flags: string, extra: readonly FakeObject[] = diverged) => act(`undo ingester ${flags}`, { decision: rolling, extra });

  it.each(['--yes', '--dry-run=client', '--dry-run=server'])('is denied with the revision of each zone, also with %s', async (flag) => {
    const acted = await undo(`--to-revision 3 ${flag}`);
    expect([acted.status, acted.stdout, acted.kept]).toEqual([5, '', []]);
    expect(acted.stderr).toBe(`error: revision 3 is not the same template in all zones of mimir/ingester
  why: each StatefulSet counts its own revisions; they differ in spec.template.spec.containers[ingester].image
       ZONE  REVISION    IMAGES   ROLLED OUT BY
       a     3 (mimir7)  mimir:7  run alone, 2026-01-02 00:00 UTC
       b     3 (mimir1)  mimir:1  run alone, 2026-01-02 00:00 UTC
       c     3 (mimir1)  mimir:1  run alone, 2026-01-02 00:00 UTC
  do:  name one template by its run, or return zone by zone
       kubectl rollout-group undo mimir/ingester --to-run run7 --yes
       kubectl rollout-group undo mimir/ingester --to-run run1 --yes
       kubectl rollout-group undo mimir/ingester --zone a --to-revision 3 --yes
       kubectl rollout-group undo mimir/ingester --zone b --to-revision 3 --yes
       kubectl rollout-group undo mimir/ingester --zone c --to-revision 3 --yes
`);
  });

  it('names valid commands', async () => {
    const ofRun = await undo('--to-run run1 --yes');
    expect(ofRun.status, ofRun.stderr).toBe(0);
    const undone = zones.map((zone) => ({ zone, revision: 'rev-2', to: nameOf(zone, 'mimir:1') }));
    expect(asked(ofRun)).toEqual([{ group: 'ingester', action: 'undo', undone }]);
    const ofZone = await undo('--zone a --to-revision 3 --yes');
    expect(ofZone.status, ofZone.stderr).toBe(0);
    expect(asked(ofZone)).toMatchObject([{ undone: [{ zone: 'a', to: nameOf('a', 'mimir:7') }] }]);
  });

  it('reports that the named run failed, unless a later run to its revisions did not', async () => {
    const failed = (startedAt: string): FakeObject => {
      const record = recordOf('run9', 'mimir:1');
      return { ...record, spec: { ...Object(record['spec']), outcome: 'failed', failure: 'a-2 is not available', startedAt } };
    };
    const text = 'run run9 to this revision failed: a-2 is not available';
    const shown = async (startedAt: string) =>
      (await act('undo ingester --to-run run9 --yes', { extra: [...diverged, failed(startedAt)] })).stdout.split(text).length - 1;
    expect([await shown('2026-01-03T00:00:00Z'), await shown('2025-01-01T00:00:00Z')]).toEqual([1, 0]);
  });

  it('is denied for the previous revisions too, if no run names them', async () => {
    const { run: _run, ...decision } = rolling;
    const acted = await act('undo ingester', { decision, extra: diverged });
    expect([acted.status, acted.kept]).toEqual([5, []]);
    expect(acted.stderr).toContain('each StatefulSet counts its own revisions');
  });

  it('names no run whose zones have other images, also if the zones have these images now', async () => {
    const images = { a: 'mimir:7', b: 'mimir:1', c: 'mimir:1' };
    const members = adoptedObjects({ updateRevision: 'rev-2' }).map((object) => {
      const zone = zones.find((one) => object.metadata.name === `ingester-zone-${one}`);
      return object.kind === 'StatefulSet' && zone !== undefined ? withContainer(object, { image: images[zone] }) : object;
    });
    const acted = await undo('--to-revision 3 --yes', [...members, ...diverged]);
    expect([acted.status, acted.kept]).toEqual([5, []]);
    expect(acted.stderr).not.toContain('--to-run alone');
  });

  it('is denied without a run if no run recorded the templates', async () => {
    const acted = await undo(
      '--to-revision 3 --yes',
      diverged.filter(({ kind }) => kind !== 'RolloutRun'),
    );
    expect([acted.status, acted.kept]).toEqual([5, []]);
    expect(acted.stderr).toContain('mimir:7  no recorded run\n');
    expect(acted.stderr).not.toContain('--to-run');
  });

  it('passes differences that zones have now, names of zones, and equal numbers', async () => {
    const args = (zone: Zone) => ({ args: [`-ring=ingester-zone-${zone}`, ...(zone === 'a' ? ['-canary'] : [])] });
    const members = adoptedObjects({ updateRevision: 'rev-2' }).map((object) => {
      const zone = zones.find((one) => object.metadata.name === `ingester-zone-${one}`);
      if (object.kind !== 'StatefulSet' || zone === undefined) return object;
      return withContainer(object, args(zone));
    });
    const acted = await undo('--to-revision 2 --yes', [...members, ...zones.map((zone) => revision(zone, 2, 'mimir:1', args(zone)))]);
    expect(acted.status, acted.stderr).toBe(0);
  });

  it('passes images that differ only in the registries of the zones, also of other containers', async () => {
    const image = (zone: Zone, tag: number): string => `${zone}.example.com/m/mimir:${tag}`;
    const sidecar = (zone: Zone) => ({ name: 'sidecar', image: `${zone}.example.com/proxy:1` });
    const members = adoptedObjects({ updateRevision: 'rev-2' }).map((object) => {
      const zone = zones.find((one) => object.metadata.name === `ingester-zone-${one}`);
      if (object.kind !== 'StatefulSet' || zone === undefined) return object;
      return withContainer(object, { image: image(zone, 2) }, [sidecar(zone)]);
    });
    const earlier = zones.map((zone) => revision(zone, 2, image(zone, 1), {}, [sidecar(zone)]));
    const acted = await undo('--to-revision 2 --yes', [...members, ...earlier]);
    expect(acted.status, acted.stderr).toBe(0);
    const mixed = zones.map((zone) => revision(zone, 2, image(zone, zone === 'a' ? 7 : 1), {}, [sidecar(zone)]));
    expect((await undo('--to-revision 2 --yes', [...members, ...mixed])).status).toBe(5);
  });

  it.each([
    ['--to-run nothing --yes', 10],
    ['--to-run run --yes', 10],
    ['--to-run run1', 3],
  ])('undo %s exits with %i', async (flags, status) => {
    const acted = await undo(flags);
    expect([acted.status, acted.kept]).toEqual([status, []]);
  });
});

describe('undo after a request that restored the present revision', () => {
  const requestedMs = Date.now() - 3_600_000;
  const at = (name: string) => ({ a: name, b: name, c: name });
  const request: FakeObject = {
    apiVersion,
    kind: 'RolloutIntent',
    metadata: { name: 'undo.ingester.1', namespace: 'mimir' },
    spec: {
      group: 'ingester',
      action: 'undo',
      undone: zones.map((zone) => ({ zone, revision: 'rev-0', to: 'rev-2' })),
      requestedBy: { user: 'anna', groups: [], at: new Date(requestedMs).toISOString() },
    },
  };
  const times = (offsetMs: number) => ({ startedMs: requestedMs + offsetMs, completedMs: requestedMs + offsetMs + 1000 });
  // The present templates are rev-2, from a run that replaced rev-1.
  const change = { target: at('rev-2'), previous: at('rev-1') };
  const publishedAs = (kind: 'rollout' | 'rollback', offsetMs = 60_000) => ({
    ...over,
    run: { ...runOf(over), ...change, kind, returns: true, ...times(offsetMs) },
  });
  const stored = (more: object) =>
    ledgerObject({ run: storedRun({ ...change, kind: 'rollback', outcome: 'completed', ...times(60_000), ...more }) });

  it.each([
    ['of the ledger', [stored({ from: at('rev-1') })]],
    ['as published', []],
  ])('returns to the revision before, if a later rollout made the present run %s', async (_name, ledger) => {
    const acted = await act('undo ingester', { decision: publishedAs('rollout'), extra: [...history, request, ...ledger] });
    expect(asked(acted), acted.stdout).toMatchObject([{ undone: zones.map((zone) => ({ zone, revision: 'rev-2', to: 'rev-1' })) }]);
  });

  it('returns to the revision before, if the present run rolls out the restored template and failed', async () => {
    const failed = { kind: 'rollout', outcome: 'failed', failure: 'broken', failedMs: requestedMs + 90_000, from: at('rev-0') } as const;
    const run = storedRun({ ...change, startedMs: requestedMs + 60_000, ...failed });
    const extra = [...history, request, ledgerObject({ run })];
    const acted = await act('undo ingester', { decision: publishedAs('rollout'), extra });
    expect(asked(acted), acted.stdout).toMatchObject([{ undone: zones.map((zone) => ({ zone, revision: 'rev-2', to: 'rev-1' })) }]);
  });

  it('has no effect if the present run returns from an unfinished run of the template that the undo restored', async () => {
    const undone = zones.map((zone) => ({ zone, revision: 'rev-2', to: 'rev-0' }));
    const earlier = { ...request, spec: { ...Object(request['spec']), undone } };
    const run = { target: at('rev-2'), previous: at('rev-2'), from: at('rev-0'), restores: at('rev-2'), outcome: 'running' } as const;
    const ledger = stored({ ...run, completedMs: undefined });
    const acted = await act('undo ingester', { decision: publishedAs('rollback'), extra: [...history, earlier, ledger] });
    expect([acted.kept, acted.stdout]).toEqual([[], expect.stringContaining('nothing was undone\n')]);
  });

  it.each([
    ['is the undo, in the ledger', publishedAs('rollback'), [stored({ origin: { isUndo: true } })]],
    ['is the undo, as published', publishedAs('rollback'), []],
    ['changed from the undone revision, together with other changes', publishedAs('rollout'), [stored({ from: at('rev-0') })]],
    ['began before the request', publishedAs('rollout', -60_000), []],
  ])('has no effect if the present run %s', async (_name, decision, ledger) => {
    const acted = await act('undo ingester', { decision, extra: [...history, request, ...ledger] });
    expect([acted.kept, acted.stdout]).toEqual([[], expect.stringContaining('nothing was undone\n')]);
  });
});

it('restores the template of the ledger if its revision was deleted with the StatefulSet', async () => {
  const at = (revision: string) => ({ a: revision, b: revision, c: revision });
  const rolledBack = { revisions: at('rev-2'), because: 'aborted by anna' };
  const run = storedRun({
    kind: 'rollback',
    target: at('rev-1'),
    previous: at('rev-2'),
    restores: at('rev-1'),
    rolledBack,
    outcome: 'completed',
    completedMs: Date.now() - 60_000,
  });
  const template = {
    metadata: { labels: { 'rollout-group': 'ingester' } },
    spec: { containers: [{ name: 'ingester', image: 'mimir:1' }] },
  };
  const ledger = ledgerObject({ run, templates: zones.map((zone) => ({ zone, revision: 'rev-1', template })) });
  const extra = [...history.filter(({ metadata }) => metadata.name !== 'rev-1'), ledger];
  const acted = await act('undo ingester', { decision: over, extra });
  expect(asked(acted), acted.stderr).toEqual([
    { group: 'ingester', action: 'undo', undone: zones.map((zone) => ({ zone, revision: 'rev-2', to: 'rev-1' })) },
  ]);
  expect(acted.stdout).toContain('  a: rev-2 -> rev-1, 0 pods\n');
  // The pods already run this template.
  expect(acted.stdout).not.toContain('approval');
  expect((await act('undo ingester --to-revision 0 --yes', { decision: over, extra })).status).toBe(10);
});

/** The pod of zone a that runs the new template. */
function canaryPods(): readonly FakeObject[] {
  const canary = adoptedObjects().filter(({ kind, metadata }) => kind === 'Pod' && metadata.name === 'ingester-zone-a-1');
  for (const { metadata } of canary) Object.assign(metadata['labels'] ?? {}, { 'controller-revision-hash': 'rev-2' });
  return canary;
}

it('retry after an undo of one zone names the pods that return, and the run that follows', async () => {
  const at = (a: string, b = a, c = a) => ({ a, b, c });
  const { id, target, previous } = { id: '4f1c9a02', target: at('rev-2'), previous: at('rev-1') };
  const ledger = ledgerObject({
    run: storedRun({ id, target, previous, outcome: 'failed', failure: 'broken', failedMs: Date.now() - 60_000 }),
  });
  const canary = canaryPods();
  const extra = [...history, ledger, ...canary, statefulSetObject('a', { updateRevision: 'rev-1' })];
  const lines = [
    'first 1 pod returns to an earlier revision: a: rev-2 -> rev-1, 1 pod',
    'zones b and c roll to the new template afterwards, with soaks and new approvals',
  ];
  const what = 'mimir/ingester: a new run starts, because templates changed after the failure of run 4f1c9a02';
  const acted = await act('retry ingester', { decision: failedDecision, extra });
  expect(acted.stdout).toBe(`${what}, requested by anna\n${lines.map((line) => `  ${line}\n`).join('')}`);
  const dry = await act('retry ingester --dry-run=server', { decision: failedDecision, extra });
  expect(dry.stderr).toContain(`${what}; ${lines.join('; ')}\n`);
});

it('reports that the agent replaces no pod while the run is failed, if the StatefulSet controller does', async () => {
  const at = (revision: string) => ({ a: revision, b: revision, c: revision });
  const failed = { outcome: 'failed', failure: 'no pod became available', failedMs: Date.now() - 60_000 } as const;
  const run = storedRun({ target: at('rev-2'), previous: at('rev-1'), ...failed });
  const canary = canaryPods();
  const strategy = { type: 'RollingUpdate', rollingUpdate: { partition: 0 } };
  const { rollout, ...members } = Object(groupObject['spec']);
  const partitioned = { ...groupObject, spec: { ...members, rollout: { ...rollout, strategy: 'partition' } } };
  const exposed = await act('undo ingester --zone a --yes', {
    decision: rolling,
    extra: [
      ...history,
      partitioned,
      ledgerObject({ run }),
      ...adoptedObjects({ strategy, updateRevision: 'rev-2', observedGeneration: 2 }),
      ...canary,
    ],
  });
  expect(exposed.stdout).toContain(
    'the agent replaces no pod:\n  a: rev-2 -> rev-1 (revision 2), 0 pods\n  the StatefulSet controller replaces',
  );
});

it('of one zone during a rollback names the revision to which the pods of other zones return, in the order of the group', async () => {
  const at = (a: string, b = a, c = a) => ({ a, b, c });
  const rolledBack = { revisions: { b: 'rev-2', c: 'rev-2' }, because: 'no pod became available' };
  const run = storedRun({
    kind: 'rollback',
    target: at('rev-1'),
    previous: at('rev-1', 'rev-2', 'rev-2'),
    rolledBack,
    restores: at('rev-1'),
  });
  const strategy = { type: 'RollingUpdate', rollingUpdate: { partition: 1_000_000 } };
  const { rollout: _rollout, ...members } = Object(groupObject['spec']);
  const pinned = { ...groupObject, spec: { ...members, rollout: { strategy: 'pinned' } } };
  const objects = zones.flatMap((zone) => {
    const failed = adoptedObjects().filter(({ kind, metadata }) => kind === 'Pod' && metadata.name === `ingester-zone-${zone}-0`);
    for (const { metadata } of failed) Object.assign(metadata['labels'] ?? {}, { 'controller-revision-hash': 'rev-2' });
    const updateRevision = zone === 'a' ? 'rev-1' : 'rev-2';
    return [statefulSetObject(zone, { strategy, updateRevision, observedGeneration: 2 }), ...(zone === 'a' ? [] : failed)];
  });
  const extra = [...history, pinned, ledgerObject({ run }), ...objects];
  const { stdout } = await act('undo ingester --zone c --yes', { decision: rolling, extra });
  expect(stdout).toContain(
    '2 pods are replaced in the order of the group:\n  b: rev-2 -> rev-1, 1 pod\n  c: rev-2 -> rev-1 (revision 2), 1 pod\n',
  );
  expect(stdout).not.toContain('approval');
});

it('names the approval for which a rollback waits after its last pod has returned', async () => {
  const at = (revision: string) => ({ a: revision, b: revision, c: revision });
  const sinceMs = Date.now() - 60_000;
  const run = storedRun({
    kind: 'rollback',
    target: at('rev-1'),
    previous: at('rev-2'),
    rolledBack: { revisions: at('rev-2'), because: 'no pod became available' },
    restores: at('rev-1'),
    startedMs: sinceMs,
    waveStartedMs: sinceMs,
    waveAvailableMs: sinceMs,
    lastDisruptionMs: sinceMs,
  });
  const strategy = { type: 'RollingUpdate', rollingUpdate: { partition: 1_000_000 } };
  const { rollout: _rollout, ...members } = Object(groupObject['spec']);
  const waves = [{ name: 'all', zones, percent: 100, after: { soak: '1h', approval: { count: 1, from: ['oncall'] } } }];
  const pinned = { ...groupObject, spec: { ...members, rollout: { strategy: 'pinned', waves, skipOnRollback: false } } };
  const sets = zones.map((zone) => statefulSetObject(zone, { strategy, updateRevision: 'rev-2', observedGeneration: 2 }));
  const node = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'node-1' },
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  };
  const { stdout, stderr } = await act('undo ingester --yes', {
    decision: rolling,
    extra: [...history, pinned, ledgerObject({ run }), ...sets, node],
  });
  expect(stdout, stderr).toContain('no pod is replaced');
  expect(stdout).toMatch(/ {2}waits for the soak of wave all.*\n {2}waits for the approval of wave all \(1 from oncall\)\n/);
});
