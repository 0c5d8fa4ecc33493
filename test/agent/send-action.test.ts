import { describe, expect, it } from 'vitest';
import { sendAction } from '../../agent/turn/perform.ts';
import { ModelApi } from '../kit/model-server.ts';
import { type ServedRequest, status, virtualEnv } from '../kit/virtual-env.ts';
import { statefulSetObject } from '../plugin/live-objects.ts';

/** A StatefulSet on the API server, and an action that writes its status. */
function setup(onRequest: (request: ServedRequest) => void = () => undefined) {
  const env = virtualEnv();
  const api = new ModelApi({ env });
  const strategy = { type: 'RollingUpdate', rollingUpdate: { partition: 1_000_000 } };
  const { metadata } = api.put('statefulsets.apps', {
    ...statefulSetObject('a', { strategy }),
    metadata: { name: 'ingester-zone-a', namespace: 'mimir' },
  });
  env.replaceServer((request) => {
    onRequest(request);
    return api.serve(request);
  });
  const { uid, resourceVersion } = metadata;
  const target = { zone: 'a', namespace: 'mimir', statefulSet: 'ingester-zone-a', uid, resourceVersion };
  return { env, api, target, action: { ...target, kind: 'advanceCurrentRevision', revision: 'ingester-zone-a-2' } as const };
}

describe('an action of two requests', () => {
  it('ends after the first request if the process may no longer act, and is known as incomplete', async () => {
    const methods: string[] = [];
    let isLeading = true;
    const { env, action } = setup(({ method }) => {
      methods.push(method);
      // The process stands still while it waits for the answer.
      isLeading = false;
    });
    const acted = await sendAction(env, action, { timeoutMs: 1000, mayAct: () => isLeading, references: [] });
    expect(methods).toEqual(['GET']);
    expect(acted).toEqual({ result: 'failed', message: 'this process no longer leads' });
  });

  it('continues while the process may act', async () => {
    const methods: string[] = [];
    const { env, action } = setup(({ method }) => methods.push(method));
    const acted = await sendAction(env, action, { timeoutMs: 1000, mayAct: () => true, references: [] });
    expect(methods).toEqual(['GET', 'PUT']);
    expect(acted.result).toBe('done');
  });
});

describe('a partition', () => {
  it('is the only field of the write, which names the observed version of the StatefulSet', async () => {
    const { env, api, target } = setup();
    const { uid, resourceVersion } = target;
    const partition = { ...target, kind: 'setPartition', from: 1_000_000, to: 4, because: 'outdated', pods: [] } as const;
    const acted = await sendAction(env, partition, { timeoutMs: 1000, mayAct: () => true, references: [] });
    expect(
      env.requests.map(({ method, path, contentType, body, site }) => ({ method, path, contentType, site, body: JSON.parse(body ?? '') })),
    ).toEqual([
      {
        method: 'PATCH',
        path: '/apis/apps/v1/namespaces/mimir/statefulsets/ingester-zone-a',
        contentType: 'application/merge-patch+json',
        site: 'act.setPartition',
        body: { spec: { updateStrategy: { rollingUpdate: { partition: 4 } } }, metadata: { uid, resourceVersion } },
      },
    ]);
    const written = api.get('statefulsets.apps', 'mimir', 'ingester-zone-a')?.metadata.resourceVersion;
    expect(written).not.toBe(resourceVersion);
    expect(acted).toEqual({
      result: 'done',
      changed: { kind: 'statefulSet', namespace: 'mimir', name: 'ingester-zone-a', uid, resourceVersion: written },
    });
  });
});

describe('the answer to a write', () => {
  const denied = 'admission webhook "deny.example.com" denied the request: not now';
  const uncalled = 'Internal error occurred: failed calling webhook "deny.example.com": context deadline exceeded';

  it.each([
    [400, denied, 'refused'],
    [403, 'exceeded quota', 'refused'],
    [404, denied, 'refused'],
    [404, 'statefulsets.apps "ingester-zone-a" not found', 'conflict'],
    [409, denied, 'refused'],
    [409, 'the object has been modified', 'conflict'],
    [422, 'is invalid', 'refused'],
    [429, 'too many requests', 'refused'],
    [500, denied, 'refused'],
    [500, uncalled, 'refused'],
    [500, 'etcdserver: request timed out', 'unknown'],
    [503, 'the server is shutting down', 'unknown'],
  ] as const)('%d "%s" is %s', async (code, message, result) => {
    const { env, target } = setup();
    env.replaceServer(() => status(code, '', message));
    const scale = { ...target, kind: 'scaleStatefulSet', from: 3, to: 2 } as const;
    expect(await sendAction(env, scale, { timeoutMs: 1000, mayAct: () => true, references: [] })).toMatchObject({ result, message });
  });
});
