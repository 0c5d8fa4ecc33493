import { describe, expect, it } from 'vitest';
import { validateEndpoint } from '../../../webhook/native/validate-endpoint.ts';
import type { Answer } from '../../../webhook/review/review.ts';
import { type Served, virtualEnv } from '../../kit/virtual-env.ts';
import { type Json, nowMs, reviewOf } from './our-reviews.ts';

const agentNamespace = 'rollout-group';
const usableFrom = { namespaces: ['mimir'] };
const key = (name: string, of = 'login') => ({ name: of, key: name });
const source = (prometheus: Json): Json => ({ prometheus: { url: 'https://prometheus', ...prometheus }, usableFrom });
const basic = source({ basicAuth: { username: key('user'), password: key('password') }, ca: key('ca.crt', 'authority') });
const channel: Json = { slack: { token: key('token', 'slack'), channel: 'C0123456789' }, usableFrom };

type Secrets = Readonly<Record<string, Readonly<Record<string, string>> | Served>>;

/** What the endpoint says of an object in the agent's namespace, and what it asked for that. */
async function validated(kind: 'MetricSource' | 'NotificationChannel', spec: Json, secrets: Secrets = {}, namespace = agentNamespace) {
  const env = virtualEnv({
    startMs: nowMs,
    serve: ({ pathname }): Served => {
      const [, name = ''] = /^\/api\/v1\/namespaces\/rollout-group\/secrets\/([^/]+)$/.exec(pathname) ?? [];
      const found = secrets[name];
      if (found === undefined) return { status: 404, body: { kind: 'Status', reason: 'NotFound', details: { name } } };
      if ('status' in found || 'lost' in found) return found as Served;
      const data = Object.fromEntries(Object.entries(found).map(([one, text]) => [one, Buffer.from(text as string).toString('base64')]));
      return { status: 200, body: { metadata: { name, namespace, uid: 'u', resourceVersion: '1' }, data } };
    },
  });
  const review = reviewOf(kind, spec);
  const object = { ...review.object, metadata: { name: 'prod', namespace } };
  const endpoint = validateEndpoint(env, { agentNamespace });
  const call = { deadlineMs: env.clock.monotonicMs() + 4_000, signal: new AbortController().signal };
  const startMs = env.clock.monotonicMs();
  const answer: Answer = await env.finish(endpoint.handle({ ...review, namespace, object }, call));
  return { ...answer, asked: env.requests.map(({ pathname }) => pathname), tookMs: env.clock.monotonicMs() - startMs };
}

describe('a source or a channel', () => {
  it('is taken with a warning for each Secret and key that is not there, within what API servers show', async () => {
    const { allowed, warnings = [] } = await validated('MetricSource', basic, { login: { user: 'x' } });
    expect(allowed).toBe(true);
    expect(warnings).toEqual([
      'Secret login in namespace rollout-group has no key password: gates wait for it',
      'Secret authority does not exist in namespace rollout-group: gates wait for it',
    ]);
    expect((await validated('NotificationChannel', channel)).warnings).toEqual([
      'Secret slack does not exist in namespace rollout-group: notifications are not sent',
    ]);
    const long = await validated('MetricSource', source({ bearerToken: key('k'.repeat(200), 's'.repeat(250)) }));
    expect(long.warnings?.map((one) => Buffer.byteLength(one))).toEqual([120]);
  });

  it('says it of a Secret once, and reads it once', async () => {
    const { warnings, asked } = await validated(
      'MetricSource',
      source({ basicAuth: { username: key('user'), password: key('password') } }),
    );
    expect(warnings).toEqual(['Secret login does not exist in namespace rollout-group: gates wait for it']);
    expect(asked).toEqual(['/api/v1/namespaces/rollout-group/secrets/login']);
  });

  it('is taken without a word when all are there, and nothing of them is told', async () => {
    const secrets = { login: { user: 'prometheus', password: 'hunter2' }, authority: { 'ca.crt': 'pem' } };
    expect(await validated('MetricSource', basic, secrets)).toMatchObject({ allowed: true });
    const half = await validated('MetricSource', basic, { login: { user: 'hunter2', password: '\n' }, authority: { 'ca.crt': 'pem' } });
    expect(half.warnings).toEqual(['Secret login in namespace rollout-group has an empty key password: gates wait for it']);
    expect(JSON.stringify(half)).not.toContain('hunter2');
  });

  it.each<[string, Served]>([
    ['may not be read', { status: 403, body: { kind: 'Status', reason: 'Forbidden' } }],
    ['cannot be read', { status: 500 }],
    ['is not answered', { lost: 'reply', forever: true }],
  ])('is taken without a word, and in time, where a Secret %s; of the others it is said', async (_, answer) => {
    const { allowed, warnings, tookMs } = await validated('MetricSource', basic, { login: answer });
    expect([allowed, warnings]).toEqual([true, ['Secret authority does not exist in namespace rollout-group: gates wait for it']]);
    expect(tookMs).toBeLessThanOrEqual(1_000);
  });

  it('is not asked about where it is never used, where it names nothing, or where it is refused', async () => {
    expect(await validated('MetricSource', basic, {}, 'mimir')).toMatchObject({ allowed: true, asked: [] });
    expect(await validated('MetricSource', source({}))).toMatchObject({ allowed: true, asked: [] });
    expect(await validated('MetricSource', source({ url: 'ftp://x', bearerToken: key('token') }))).toMatchObject({
      allowed: false,
      asked: [],
    });
  });
});
