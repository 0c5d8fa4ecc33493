import { describe, expect, it } from 'vitest';
import type { KubernetesHttp, KubernetesRequest } from '../../cluster/env.ts';
import { readOnly } from '../../cluster/request/read-only.ts';
import { ask } from './loopback.ts';

function server() {
  const reached: string[] = [];
  const open: KubernetesHttp = {
    request: async ({ method, path }) => {
      reached.push(`${method} ${path}`);
      return { status: 200, headers: {}, body: '' };
    },
    stream: async ({ method, path }) => {
      reached.push(`${method} ${path}`);
      return { status: 200, headers: {}, body: '', ended: Promise.resolve(''), close: () => undefined };
    },
  };
  return { reached, http: readOnly(open) };
}

const pod = '/api/v1/namespaces/a/pods/b';
const review = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';

describe('a read-only client', () => {
  it.each<readonly [KubernetesRequest['method'], string]>([
    ['GET', `${pod}?resourceVersion=0`],
    ['PATCH', `${pod}?fieldManager=x&dryRun=All`],
    ['DELETE', `${pod}?dryRun=All`],
    ['POST', review],
  ])('allows %s %s', async (method, path) => {
    const { reached, http } = server();
    await http.request(ask(path, { method }));
    expect(reached).toEqual([`${method} ${path}`]);
  });

  it('allows a watch', async () => {
    const { reached, http } = server();
    await http.stream(ask('/api/v1/pods?watch=1'), () => undefined);
    expect(reached).toEqual(['GET /api/v1/pods?watch=1']);
  });

  it.each<readonly [KubernetesRequest['method'], string]>([
    ['POST', '/api/v1/namespaces/a/pods'],
    ['PUT', pod],
    ['PATCH', `${pod}?dryRun=`],
    ['PATCH', `${pod}?dryRun=all`],
    ['PATCH', `${pod}?dryRun=All&dryRun=None`],
    ['PATCH', `${pod}?fieldManager=dryRun=All`],
    ['DELETE', `${pod}#dryRun=All`],
    ['DELETE', pod],
    ['POST', `${review}/x`],
    ['POST', `${pod}/eviction`],
    ['GET', `${pod}/proxy/prepare`],
    ['GET', `${pod}/exec?command=rm`],
  ])('rejects %s %s before it is sent', async (method, path) => {
    const { reached, http } = server();
    await expect(http.request(ask(path, { method }))).rejects.toMatchObject({
      name: 'TransportFailure',
      mayBeApplied: false,
      site: 'test.ask',
    });
    await expect(http.stream(ask(path, { method }), () => undefined)).rejects.toThrow('would change the cluster');
    expect(reached).toEqual([]);
  });
});
