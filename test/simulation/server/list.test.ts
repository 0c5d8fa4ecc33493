// Lists and watches on the model of the API server, as one front end without lag tells them.
import { describe, expect, it } from 'vitest';
import { actor, asking, configMap, paths, pod, type Reply, refusalOf } from './asking.ts';

const { configMaps, pods, intents } = paths;

function filled() {
  const world = asking();
  for (const [name, label] of [
    ['a', 'x'],
    ['b', 'y'],
    ['c', 'x'],
    ['d', 'y'],
  ] as const) {
    world.ask('POST', configMaps, configMap(name, { key: '1' }, { label }));
  }
  return world;
}

function names({ body }: Reply): readonly string[] {
  return (body.items ?? []).map(({ metadata }) => metadata.name);
}

describe('a list', () => {
  it('is sorted, and its items say their kind only for custom kinds', () => {
    const { ask, server } = asking();
    for (const name of ['b', 'a-1', 'a']) ask('POST', configMaps, configMap(name));
    server.create(actor, 'configmaps', { metadata: { name: 'z', namespace: 'another' } });
    const list = ask('GET', configMaps);
    expect([list.body.kind, list.body['apiVersion'], list.body.metadata, names(list)]).toEqual([
      'ConfigMapList',
      'v1',
      { resourceVersion: '1004' },
      ['a', 'a-1', 'b'],
    ]);
    expect(list.body.items?.[0]).not.toHaveProperty('kind');
    expect(names(ask('GET', '/api/v1/configmaps'))).toEqual(['z', 'a', 'a-1', 'b']);
    const apiVersion = 'rollout-group.dev/v1alpha1';
    ask('POST', intents, { apiVersion, kind: 'RolloutIntent', metadata: { name: 'i' }, spec: { action: 'pause' } });
    expect(ask('GET', intents).body.items).toMatchObject([{ apiVersion, kind: 'RolloutIntent' }]);
  });

  it('comes in pages of one moment', () => {
    const { ask, merge } = filled();
    const first = ask('GET', `${configMaps}?limit=2`);
    expect([names(first), first.body.metadata['remainingItemCount']]).toEqual([['a', 'b'], 2]);
    merge(`${configMaps}/c`, { data: { key: '2' } });
    ask('DELETE', `${configMaps}/d`);
    const second = ask('GET', `${configMaps}?limit=2&continue=${first.body.metadata['continue']}`);
    expect([names(second), second.body.items?.[0]?.['data'], second.body.metadata]).toEqual([
      ['c', 'd'],
      { key: '1' },
      { resourceVersion: first.body.metadata.resourceVersion },
    ]);
  });

  it('can be gone on with inconsistently when its moment is compacted away', () => {
    const { server, ask } = filled();
    const { continue: token } = ask('GET', `${configMaps}?limit=2`).body.metadata;
    ask('DELETE', `${configMaps}/c`);
    server.restartFrontEnd(0, { isCompacted: true });
    const gone = ask('GET', `${configMaps}?limit=2&continue=${token}`);
    expect(refusalOf(gone).slice(0, 2)).toEqual([410, 'Expired']);
    expect(names(ask('GET', `${configMaps}?limit=2&continue=${gone.body.metadata['continue']}`))).toEqual(['d']);
  });

  it('of any version is the whole list with every limit', async () => {
    const { ask, advance } = filled();
    await advance(100);
    expect(names(ask('GET', `${configMaps}?resourceVersion=0&limit=1`))).toHaveLength(4);
  });

  it('refuses what makes no sense', () => {
    const { ask } = filled();
    const { continue: token } = ask('GET', `${configMaps}?limit=2`).body.metadata;
    const queries = [
      'resourceVersion=abc',
      'continue=zzz',
      `continue=${token}&resourceVersion=5`,
      'labelSelector=a%3D%3D%3D',
      'fieldSelector=spec.x%3D1',
    ];
    expect(queries.map((query) => ask('GET', `${configMaps}?${query}`).status)).toEqual([400, 400, 400, 400, 400]);
  });

  it('selects by labels and fields', () => {
    const { ask } = filled();
    const select = (query: string) => names(ask('GET', `${configMaps}?${query}`)).join('');
    expect([
      select('labelSelector=label%3Dx'),
      select('labelSelector=label!%3Dx'),
      select('labelSelector=label+in+(x,q)'),
      select('labelSelector=label+notin+(x)'),
      select('labelSelector=label,!other'),
      select('labelSelector=other'),
      select('fieldSelector=metadata.name%3Db'),
    ]).toEqual(['ac', 'bd', 'ac', 'bd', 'abcd', '', 'b']);
    ask('POST', pods, pod('p-0'));
    ask('POST', pods, pod('p-1', { spec: { nodeName: 'node-2' } }));
    expect(names(ask('GET', `/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-2,status.phase%3DPending`))).toEqual(['p-1']);
  });
});

describe('paths', () => {
  it('that are not served are answered as a server does', () => {
    const { ask } = asking();
    expect(refusalOf(ask('GET', '/api/v1/nothings')).slice(0, 2)).toEqual([404, 'NotFound']);
    expect(ask('GET', '/apis/none/v1/x')).toMatchObject({ status: 404, body: { text: '404 page not found\n' } });
    expect(ask('POST', '/api/v1/configmaps', configMap('a')).status).toBe(405);
    expect(ask('PATCH', configMaps, {}, { contentType: 'application/merge-patch+json' }).status).toBe(405);
    expect(ask('POST', `${configMaps}/a`, configMap('a')).status).toBe(405);
    expect(ask('GET', `${configMaps}/a/status`).status).toBe(404);
  });

  it('that are forbidden are refused with who and what', () => {
    const { ask, server, watch } = asking();
    server.forbid('list nodes', '* leases.coordination.k8s.io', 'create pods/eviction');
    expect(refusalOf(ask('GET', '/api/v1/nodes'))).toEqual([
      403,
      'Forbidden',
      'nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster scope',
    ]);
    expect(refusalOf(ask('DELETE', `${paths.leases}/l`))[2]).toBe(
      'leases.coordination.k8s.io "l" is forbidden: User "jane" cannot delete resource "leases" in API group "coordination.k8s.io" in the namespace "one"',
    );
    expect(ask('POST', `${pods}/p-0/eviction`, { metadata: { name: 'p-0' } }).status).toBe(403);
    expect(watch(`${paths.leases}?watch=1`).refusal?.status).toBe(403);
    server.permit('list nodes');
    expect(ask('GET', '/api/v1/nodes').status).toBe(200);
  });
});

describe('discovery', () => {
  it('answers with everything at once to those who take it', () => {
    const { ask } = asking();
    const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json';
    const groups = ask('GET', '/apis', undefined, { accept }).body.items ?? [];
    expect(groups.map(({ metadata }) => metadata.name)).toContain('rollout-group.dev');
    const apps = groups.find(({ metadata }) => metadata.name === 'apps');
    expect(JSON.stringify(apps?.['versions'])).toContain(
      '{"subresource":"scale","responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"}',
    );
  });

  it('answers with no other document', () => {
    const { ask } = asking();
    expect(['/api', '/apis', '/apis/none/v1'].map((path) => ask('GET', path).status)).toEqual([404, 404, 404]);
  });
});

describe('observers', () => {
  it('hear of every answer, with what it changed', () => {
    const { ask, merge, answers } = asking();
    ask('POST', configMaps, configMap('a'));
    merge(`${configMaps}/a`, { data: { key: '2' } });
    ask('DELETE', `${configMaps}/b`);
    ask('GET', configMaps);
    expect(answers.map(({ verb, resource, name, status, revisions }) => [verb, resource, name, status, revisions])).toEqual([
      ['create', 'configmaps', 'a', 201, [1001]],
      ['patch', 'configmaps', 'a', 200, [1002]],
      ['delete', 'configmaps', 'b', 404, []],
      ['list', 'configmaps', '', 200, []],
    ]);
  });

  it('hear nothing after they have ended', () => {
    const { server, ask } = asking();
    const seen: number[] = [];
    const end = server.observe({ committed: ({ revision }) => seen.push(revision) });
    ask('POST', configMaps, configMap('a'));
    end();
    ask('POST', configMaps, configMap('b'));
    expect(seen).toEqual([1001]);
  });
});
