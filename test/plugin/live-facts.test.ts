import { describe, expect, it } from 'vitest';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { type Listing, watchListing } from '../../plugin/cluster-snapshot/listing.ts';
import { imageChanges, rolesIn } from '../../plugin/live/facts.ts';
import { renderTree } from '../../plugin/output/get.ts';
import { changeText } from '../../plugin/output/image-text.ts';
import { renderStatus } from '../../plugin/output/status.ts';
import { adoptedGroup, newCluster } from '../kit/cluster.ts';
import { kitNowMs } from '../kit/objects.ts';
import { fakeApiServer } from './api-server.ts';
import { type Ended, runInProcess } from './in-process.ts';
import { definition, done, fromAgent, rolling } from './live-kit.ts';
import { adoptedObjects, publishedObject } from './live-objects.ts';
import { look } from './plan-kit.ts';
import type { FakeObject } from './served-objects.ts';

/** Every pod is old but one, if there is one, which was made as `made`; the templates ask for `wanted`, that of zone c for `wantedInC`. */
function rollingObjects({ hasNew = true, wanted = 'mimir:2', made = 'mimir:2', wantedInC = 'mimir:2' } = {}): readonly FakeObject[] {
  const containers = (image: string, proxy: string) => [
    { name: 'ingester', image },
    { name: 'proxy', image: proxy },
  ];
  return adoptedObjects({ updateRevision: 'rev-2' }).map((object): FakeObject => {
    const { metadata } = object;
    if (object.kind === 'StatefulSet') {
      const spec = Object(object['spec']);
      const template = {
        ...spec.template,
        spec: { containers: [{ name: 'ingester', image: metadata.name.endsWith('c') ? wantedInC : wanted }] },
      };
      return { ...object, spec: { ...spec, template } };
    }
    if (!hasNew || metadata.name !== 'ingester-zone-b-1') return { ...object, spec: { containers: containers('mimir:1', 'proxy:1') } };
    const labels = { ...Object(metadata['labels']), 'controller-revision-hash': 'rev-2' };
    return { ...object, metadata: { ...metadata, labels }, spec: { containers: containers(made, 'proxy:2') } };
  });
}

async function ask(objects: readonly FakeObject[], line: string): Promise<Ended> {
  const { url } = await fakeApiServer(objects);
  return runInProcess([...line.split(' '), '--server', url, '-n', 'mimir'], {});
}

/** As they are listed. */
function listingOf(objects: readonly FakeObject[]): Required<Pick<Listing, 'statefulSets' | 'pods'>> {
  const ofKind = (kind: string) => objects.filter((object) => object.kind === kind).map((object) => object as never);
  return { statefulSets: ofKind('StatefulSet'), pods: ofKind('Pod') };
}

describe('the image change of a rollout', () => {
  it('is in the headline of status and of the tree', async () => {
    const objects = rollingObjects();
    expect((await ask(objects, 'status ingester --watch=false')).stdout).toMatch(/^mimir\/ingester {3}[A-Z]+ .*mimir:1 (->|→) 2 {3}\+/);
    expect((await ask(objects, 'get ingester')).stdout).toMatch(/^mimir\/ingester {3}[A-Z]+ .* mimir:1 (->|→) 2 {3}/);
  });

  const onlyZoneB: PublishedDecision = { ...rolling, zones: rolling.zones.filter(({ zone }) => zone === 'b') };
  const one = [{ from: 'mimir:1', to: 'mimir:2' }];
  it.each([
    ['is seen in pods, without containers that others add', {}, one],
    ['is that of the template while no pod is new', { hasNew: false }, one],
    ['is that of pods where a webhook gave them another image', { wanted: 'x/mimir:2', made: 'mimir:2' }, one],
    ['is not known while a webhook may still give another registry', { hasNew: false, wanted: 'x/mimir:2' }, []],
    ['is nothing where images stay', { hasNew: false, wanted: 'mimir:1' }, []],
  ])('%s', (_, options, changes) => {
    expect(imageChanges(onlyZoneB, listingOf(rollingObjects(options)))).toEqual(changes);
  });

  it('is omitted after the rollout, if pods are unreadable, and for a template of another revision', () => {
    const objects = rollingObjects({ hasNew: false });
    const { statefulSets, pods } = listingOf(objects);
    const other: PublishedDecision = { ...rolling, zones: rolling.zones.map((zone) => ({ ...zone, desiredRevision: 'rev-3' })) };
    expect(imageChanges(done, { statefulSets, pods })).toEqual([]);
    expect(imageChanges(rolling, { statefulSets })).toEqual([]);
    expect(imageChanges(rolling, { statefulSets, pods: { unknown: 'forbidden' } })).toEqual([]);
    expect(imageChanges(other, { statefulSets, pods })).toEqual([]);
  });

  it('names the zones if one zone requests another image, also in the headline', async () => {
    const objects = rollingObjects({ hasNew: false, wantedInC: 'mimir:1' });
    const inBoth = { from: 'mimir:1', to: 'mimir:2', zones: ['a', 'b'] };
    expect(imageChanges(rolling, listingOf(objects))).toEqual([inBoth]);
    expect((await ask(objects, 'status ingester --watch=false')).stdout).toMatch(/mimir:1 (->|→) 2 in a and b/);
    expect((await ask(objects, 'get ingester')).stdout).toMatch(/mimir:1 (->|→) 2 in a and b/);
    const returning = { from: 'mimir:2', to: 'mimir:1', zones: ['c'] };
    expect(changeText([returning, inBoth], '->')).toBe('mimir:2 -> 1 in c; mimir:1 -> 2 in a and b');
  });

  it('is read from the template before the run starts', () => {
    const over = { ...runOf(rolling), target: { a: 'rev-1', b: 'rev-1', c: 'rev-1' }, outcome: 'completed' } as const;
    expect(imageChanges({ ...rolling, run: over }, listingOf(rollingObjects({ hasNew: false })))).toEqual(one);
  });

  it.each(['running', 'failed'] as const)('leads to the revision of the rollback while the rollback is %s', async (outcome) => {
    const zones = rolling.zones.map((zone) => ({ ...zone, desiredRevision: 'rev-1' }));
    const target = { a: 'rev-1', b: 'rev-1', c: 'rev-1' };
    const back: PublishedDecision = { ...rolling, zones, run: { ...runOf(rolling), kind: 'rollback', target, outcome } };
    expect(imageChanges(back, listingOf(rollingObjects()))).toEqual([{ from: 'mimir:2', to: 'mimir:1' }]);
    const { stdout } = await ask([...rollingObjects(), publishedObject(back)], 'get ingester');
    expect(stdout).toMatch(/^mimir\/ingester .* mimir:2 (->|→) 1 {3}/);
  });

  it('has a separate line if the headline is too narrow', () => {
    const lines = renderStatus(fromAgent(rolling), kitNowMs, look({ columns: 50 }), { changes: one });
    expect(lines[0]).not.toContain('mimir:1');
    expect(lines.filter((line) => line.startsWith('  change: '))).toEqual(['  change: mimir:1 → 2']);
  });

  it('has warnings about the group below it, as in the tree', () => {
    const fact = 'the zones request different images: container app has app:1 in a; app:2 in b';
    const live = fromAgent({ ...done, warnings: [{ rule: 'zone-images', outcome: 'wait', fact }] });
    expect(renderStatus(live, kitNowMs, look({ columns: 200 }))).toContain(`  warning: zone-images: ${fact}`);
    expect(renderTree(live, kitNowMs, look({ columns: 200 }))).toContain(`  zone-images: ${fact}`);
  });

  it.each([
    ['grafana/mimir:2.16.0', 'grafana/mimir:2.17.1', 'mimir:2.16.0 -> 2.17.1'],
    ['host:5000/mimir', 'host:5000/mimir:2', 'mimir:latest -> 2'],
    ['mimir:1', 'other/mimir:1', 'mimir:1 -> other/mimir:1'],
    ['mimir:1@sha256:0123456789abcdef', 'mimir:1@sha256:fedcba9876543210', 'mimir:0123456789ab -> fedcba987654'],
    ['mimir@sha256:0123456789abcdef', 'mimir:2', 'mimir:0123456789ab -> 2'],
  ])('%s to %s is %s', (from, to, text) => {
    expect(changeText([{ from, to }], '->')).toBe(text);
    expect(
      changeText(
        [
          { from, to },
          { from, to: 'proxy:2' },
        ],
        '->',
      ),
    ).toBe(`${text}, and 1 more`);
    expect(changeText([], '->')).toBeUndefined();
  });

  it('names every image that pods run', () => {
    const [from, other, to] = ['1.0', '1.1', '1.2'].map((tag) => `grafana/mimir:${tag}`) as [string, string, string];
    expect(
      changeText(
        [
          { from, to },
          { from: other, to },
        ],
        '->',
      ),
    ).toBe('mimir:1.0 and 1.1 -> 1.2');
    expect(
      changeText(
        [
          { from, to },
          { from: 'mimir:1', to },
        ],
        '->',
      ),
    ).toBe('grafana/mimir:1.0 and mimir:1 -> grafana/mimir:1.2');
  });
});

describe('the tree of a group', () => {
  it('names the leader and the followers', async () => {
    const { stdout } = await ask(adoptedObjects(), 'get ingester');
    expect(stdout.split('\n').flatMap((line) => /^([abc]) {2}(leader|follows .)/.exec(line)?.slice(1) ?? [])).toEqual([
      'a',
      'leader',
      'b',
      'follows a',
      'c',
      'follows b',
    ]);
    expect([...rolesIn(definition)]).toEqual([]);
  });

  it('has a row for every pod with --pods=all', async () => {
    const rows = async (line: string) => (await ask(rollingObjects(), line)).stdout.match(/^ {2}[abc]-\d.*$/gm) ?? [];
    expect(await rows('get ingester')).toEqual([]);
    expect((await rows('get ingester --pods=all')).map((row) => row.trim().split(/ +/))).toEqual([
      ['a-0', 'outdated', 'rev-1'],
      ['a-1', 'outdated', 'rev-1'],
      ['b-0', 'outdated', 'rev-1'],
      ['b-1', 'updated', 'rev-2'],
      ['c-0', 'outdated', 'rev-1'],
      ['c-1', 'outdated', 'rev-1'],
    ]);
  });

  it.each([
    ['get ingester --pods=some', 'Allowed choices are ranges, all'],
    ['get --pods=all', '--pods=all needs exactly one group, and -o table or wide'],
    ['get ingester --pods=all -o json', '--pods=all needs exactly one group, and -o table or wide'],
  ])('rejects %s', async (line, text) => {
    const { status, stderr } = await ask(adoptedObjects(), line);
    expect(status).toBe(3);
    expect(stderr).toContain(text);
  });
});

function runOf({ run }: PublishedDecision): NonNullable<PublishedDecision['run']> {
  if (run === undefined) throw new Error('the test expected a run');
  return run;
}

describe('a watch of StatefulSets', () => {
  it('has their managed fields, which show drift', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    const { serve } = cluster.api;
    const managedFields = [{ manager: 'kubectl-set' }];
    cluster.env.replaceServer(async (request) => {
      const answer = await serve(request);
      if (request.isStream || !('status' in answer)) return answer;
      return {
        ...answer,
        body: JSON.stringify(JSON.parse(String(answer.body)), (key, value) => (key === 'metadata' ? { ...value, managedFields } : value)),
      };
    });
    const connected = { env: cluster.env, namespace: 'mimir', server: '', contextName: '', timeoutMs: 2000, close: () => undefined };
    const { add, current, stop } = watchListing(connected, 'mimir', () => undefined);
    add(['statefulSets', 'pods']);
    await cluster.env.advance(5000);
    const { statefulSets, pods } = current();
    expect(statefulSets).toMatchObject(['a', 'b', 'c'].map(() => ({ metadata: { managedFields } })));
    expect(JSON.stringify(pods)).toContain('ingester-zone-a-0');
    expect(JSON.stringify(pods)).not.toContain('managedFields');
    stop();
  });
});
