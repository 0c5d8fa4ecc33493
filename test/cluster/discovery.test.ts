import { describe, expect, it } from 'vitest';
import { discover } from '../../cluster/request/discovery.ts';
import { resources } from '../../cluster/request/resource.ts';
import { type Serve, status, virtualEnv } from '../kit/virtual-env.ts';

const typed = (resource: string, kind: string, more: Record<string, unknown> = {}) => ({
  resource,
  responseKind: { group: '', version: '', kind },
  scope: 'Namespaced',
  ...more,
});
const discoveryList = (items: readonly unknown[]) => ({
  status: 200,
  body: { kind: 'APIGroupDiscoveryList', apiVersion: 'apidiscovery.k8s.io/v2', items },
});

const aggregated: Serve = ({ pathname }) =>
  pathname === '/api'
    ? discoveryList([
        { metadata: {}, versions: [{ version: 'v1', resources: [typed('pods', 'Pod'), typed('nodes', 'Node', { scope: 'Cluster' })] }] },
      ])
    : discoveryList([
        {
          metadata: { name: 'apps' },
          versions: [
            {
              version: 'v1',
              resources: [typed('statefulsets', 'StatefulSet', { subresources: [{ subresource: 'scale' }, { subresource: 'status' }] })],
            },
          ],
        },
        {
          metadata: { name: 'example.com' },
          versions: [
            { version: 'v2', resources: [typed('templates', 'Template'), typed('templatecopies', 'Template')] },
            { version: 'v1', resources: [typed('templates', 'Template')] },
          ],
        },
        { metadata: { name: 'metrics.k8s.io' }, versions: [{ version: 'v1beta1', resources: [], freshness: 'Stale' }] },
      ]);

const resourceList = (resourcesOfIt: readonly unknown[]) => ({ status: 200, body: { kind: 'APIResourceList', resources: resourcesOfIt } });

const classic: Serve = ({ pathname }) => {
  switch (pathname) {
    case '/api':
      return { status: 200, body: { kind: 'APIVersions', versions: ['v1'] } };
    case '/apis':
      return {
        status: 200,
        body: {
          kind: 'APIGroupList',
          groups: [
            { name: 'apps', versions: [{ groupVersion: 'apps/v1', version: 'v1' }], preferredVersion: { version: 'v1' } },
            { name: 'example.com', versions: [{ version: 'v1' }, { version: 'v2' }], preferredVersion: { version: 'v2' } },
            { name: 'metrics.k8s.io', versions: [{ version: 'v1beta1' }], preferredVersion: { version: 'v1beta1' } },
          ],
        },
      };
    case '/api/v1':
      return resourceList([
        { name: 'pods', kind: 'Pod', namespaced: true },
        { name: 'pods/eviction', kind: 'Eviction', namespaced: true },
        { name: 'nodes', kind: 'Node', namespaced: false },
      ]);
    case '/apis/apps/v1':
      return resourceList([
        { name: 'statefulsets', kind: 'StatefulSet', namespaced: true },
        { name: 'statefulsets/scale', kind: 'Scale', namespaced: true },
      ]);
    case '/apis/example.com/v1':
      return resourceList([{ name: 'templates', kind: 'Template', namespaced: true }]);
    case '/apis/example.com/v2':
      return resourceList([
        { name: 'templates', kind: 'Template', namespaced: true },
        { name: 'templatecopies', kind: 'Template', namespaced: true },
      ]);
    default:
      return status(503, 'ServiceUnavailable', 'the server is currently unable to handle the request');
  }
};

describe.each([
  ['aggregated', aggregated, 2],
  ['classic', classic, 7],
] as const)('%s discovery', (_, serve, requestCount) => {
  const ask = async () => {
    const env = virtualEnv({ serve });
    return { env, discovery: await env.finish(discover(env)) };
  };

  it('finds every resource of a kind, the preferred version first', async () => {
    const { discovery, env } = await ask();
    const found = discovery.find({ group: 'example.com', kind: 'Template' });
    expect(found.map(({ version, plural }) => `${version}/${plural}`)).toEqual(['v2/templates', 'v2/templatecopies', 'v1/templates']);
    expect(discovery.find({ group: 'example.com', version: 'v1', kind: 'Template' })).toEqual([
      { group: 'example.com', version: 'v1', plural: 'templates', kind: 'Template', isNamespaced: true },
    ]);
    expect(discovery.find({ group: '', kind: 'Node' })).toEqual([resources.nodes]);
    expect(discovery.find({ group: 'example.com', kind: 'Other' })).toEqual([]);
    expect(env.requests.length).toBe(requestCount);
  });

  it('names the served resources', async () => {
    const { discovery } = await ask();
    expect([discovery.has(resources.statefulSets), discovery.has(resources.leases)]).toEqual([true, false]);
  });

  it('contains every group except the one with an unavailable server', async () => {
    const { discovery } = await ask();
    const groups = ['', 'apps', 'example.com', 'metrics.k8s.io', 'absent.example.com'];
    expect(groups.map((group) => discovery.knows({ group, version: 'v1beta1' }))).toEqual([true, true, true, false, true]);
    expect(discovery.knows({ group: 'metrics.k8s.io', version: 'v1' })).toBe(true);
  });
});

describe('discovery', () => {
  it('requests the aggregated document, and accepts the classic one', async () => {
    const env = virtualEnv({ serve: aggregated });
    await env.finish(discover(env));
    expect(env.requests[0]?.accept).toBe('application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json');
  });

  it.each([
    ['refused', status(403, 'Forbidden')],
    ['answered with something else', { status: 200, body: {} }],
    ['answered with half of it', { status: 200, body: '{"kind":"APIGroupList","groups":[' }],
    ['not answered', { lost: 'reply' as const }],
  ])('fails if it is %s', async (_, answer) => {
    const env = virtualEnv({ serve: () => answer });
    await expect(env.finish(discover(env))).rejects.toThrow();
  });
});
