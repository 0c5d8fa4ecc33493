import { describe, expect, it } from 'vitest';
import { resources } from '../../cluster/request/resource.ts';
import { type JsonPatchOperation, patchByOperations } from '../../cluster/request/write.ts';
import { virtualEnv } from '../kit/virtual-env.ts';

const target = { namespace: 'one', name: 'x', uid: 'u1' };
const test: JsonPatchOperation = { op: 'test', path: '/data/list/0', value: 'a' };
const site = 'test.patch';

describe('a patch by operations', () => {
  it('is sent with a test of the UID before all other operations', async () => {
    const env = virtualEnv({ serve: () => ({ status: 200, body: { metadata: { name: 'x' } } }) });
    await patchByOperations(env, resources.configMaps, target, { site, operations: [test, { op: 'remove', path: '/data/list/0' }] });
    expect(env.requests).toHaveLength(1);
    expect(env.requests[0]).toMatchObject({
      method: 'PATCH',
      path: '/api/v1/namespaces/one/configmaps/x',
      contentType: 'application/json-patch+json',
      json: [{ op: 'test', path: '/metadata/uid', value: 'u1' }, test, { op: 'remove', path: '/data/list/0' }],
    });
  });

  it.each([
    ['tests nothing', target, [{ op: 'remove', path: '/data' }]],
    ['names no object or no uid', { ...target, uid: '' }, [test]],
    ['names no namespace', { name: 'x', uid: 'u1' }, [test]],
    ['finalizers are not written', target, [test, { op: 'remove', path: '/metadata/finalizers/0' }]],
  ] as const)('is not sent: it %s', async (said, where, operations) => {
    const env = virtualEnv();
    await expect(patchByOperations(env, resources.configMaps, where, { site, operations })).rejects.toThrow(said);
    expect(env.requests).toEqual([]);
  });
});
