import { describe, expect, it } from 'vitest';
import { sendAction } from '../../agent/turn/perform.ts';
import type { KubernetesRequest } from '../../cluster/env.ts';

const action = {
  kind: 'advanceCurrentRevision',
  zone: 'a',
  namespace: 'mimir',
  statefulSet: 'ingester-zone-a',
  uid: 'u1',
  resourceVersion: '7',
  revision: 'ingester-zone-a-2',
} as const;

/** A server that has the StatefulSet and hears of what is asked of it. */
function server(onRequest: (request: KubernetesRequest) => void) {
  const metadata = { name: action.statefulSet, namespace: action.namespace, uid: action.uid, resourceVersion: action.resourceVersion };
  const body = JSON.stringify({ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata, status: { currentRevision: 'ingester-zone-a-1' } });
  return {
    kubernetes: {
      request: async (request: KubernetesRequest) => {
        onRequest(request);
        return { status: 200, headers: {}, body };
      },
      stream: async () => {
        throw new Error('nothing is watched here');
      },
    },
  };
}

describe('an action of two requests', () => {
  it('ends after the first when the process may not act any more by then, and is known not to be done', async () => {
    const methods: string[] = [];
    let isLeading = true;
    const env = server(({ method }) => {
      methods.push(method);
      // The process stands still while it waits for the answer.
      isLeading = false;
    });
    const acted = await sendAction(env, action, { timeoutMs: 1000, mayAct: () => isLeading, references: [] });
    expect(methods).toEqual(['GET']);
    expect(acted).toEqual({ result: 'failed', message: 'this process no longer leads' });
  });

  it('goes on while the process may act', async () => {
    const methods: string[] = [];
    const env = server(({ method }) => methods.push(method));
    const acted = await sendAction(env, action, { timeoutMs: 1000, mayAct: () => true, references: [] });
    expect(methods).toEqual(['GET', 'PUT']);
    expect(acted.result).toBe('done');
  });
});

describe('a partition', () => {
  it('is written into the state of the StatefulSet that was seen, and nothing beside it', async () => {
    const { revision: _revision, kind: _kind, ...target } = action;
    const asked: KubernetesRequest[] = [];
    const env = server((request) => asked.push(request));
    const partition = { ...target, kind: 'setPartition', from: 1_000_000, to: 4, because: 'outdated', pods: [] } as const;
    const acted = await sendAction(env, partition, { timeoutMs: 1000, mayAct: () => true, references: [] });
    expect(
      asked.map(({ method, path, contentType, body, site }) => ({ method, path, contentType, site, body: JSON.parse(body ?? '') })),
    ).toEqual([
      {
        method: 'PATCH',
        path: '/apis/apps/v1/namespaces/mimir/statefulsets/ingester-zone-a',
        contentType: 'application/merge-patch+json',
        site: 'act.setPartition',
        body: { spec: { updateStrategy: { rollingUpdate: { partition: 4 } } }, metadata: { uid: 'u1', resourceVersion: '7' } },
      },
    ]);
    expect(acted).toEqual({
      result: 'done',
      changed: { kind: 'statefulSet', namespace: 'mimir', name: 'ingester-zone-a', uid: 'u1', resourceVersion: '7' },
    });
  });
});
