import { describe, expect, it } from 'vitest';
import { namedSecretProblem, secretProblemText, secretReader } from '../../cluster/request/secret.ts';
import { ObjectsServer } from '../kit/objects-server.ts';
import { virtualEnv } from '../kit/virtual-env.ts';

function world(data: unknown) {
  const env = virtualEnv();
  const server = new ObjectsServer(env, ['secrets']);
  server.put('secrets', { metadata: { name: 'login', namespace: 'agent' }, data });
  return { env, read: secretReader(env, { namespace: 'agent', site: 'test.secret', timeoutMs: () => 500 }) };
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

describe('a key of a Secret', () => {
  it('is read as text, each Secret once', async () => {
    const { env, read } = world({ user: base64('prometheus'), password: base64('pässword\n') });
    const texts = await env.finish(Promise.all(['user', 'password'].map((key) => read({ name: 'login', key }))));
    expect(texts).toEqual([{ text: 'prometheus' }, { text: 'pässword\n' }]);
    expect(env.requests.map(({ method, pathname, site, timeoutMs }) => ({ method, pathname, site, timeoutMs }))).toEqual([
      { method: 'GET', pathname: '/api/v1/namespaces/agent/secrets/login', site: 'test.secret', timeoutMs: 500 },
    ]);
  });

  it.each<[string, unknown, { readonly name: string; readonly key: string }, string]>([
    ['of no Secret', {}, { name: 'other', key: 'k' }, 'absent'],
    ['that is not in it', { k: base64('x') }, { name: 'login', key: 'other' }, 'keyless'],
    ['that every object has', {}, { name: 'login', key: 'constructor' }, 'keyless'],
    ['of a Secret without data', undefined, { name: 'login', key: 'k' }, 'keyless'],
    ['with nothing under it', { k: '' }, { name: 'login', key: 'k' }, 'empty'],
    ['with blanks under it', { k: base64(' \n') }, { name: 'login', key: 'k' }, 'empty'],
  ])('%s has no text, with a message', async (_, data, key, problem) => {
    const { env, read } = world(data);
    expect(await env.finish(read(key))).toEqual({ problem });
  });

  it('is named only to the author of the names', () => {
    const key = { name: 'login', key: 'token' };
    expect((['absent', 'keyless', 'empty'] as const).map((problem) => namedSecretProblem(key, problem, 'agent'))).toEqual([
      'Secret login does not exist in namespace agent',
      'Secret login in namespace agent has no key token',
      'Secret login in namespace agent has an empty value for key token',
    ]);
    for (const problem of ['absent', 'keyless', 'empty'] as const)
      expect(secretProblemText(problem, 'the channel')).not.toMatch(/login|token/);
  });
});
