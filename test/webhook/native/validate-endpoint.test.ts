import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { lintPolicies } from '../../../policies/lint/lint.ts';
import { validateEndpoint } from '../../../webhook/native/validate-endpoint.ts';
import type { Answer, Review } from '../../../webhook/review/review.ts';
import { group as groupNamed } from '../../kit/groups.ts';
import { ObjectsServer } from '../../kit/objects-server.ts';
import { type Served, virtualEnv } from '../../kit/virtual-env.ts';
import { call, type Json, mallory, nowMs, reviewOf } from './our-reviews.ts';

const unread = () => ({ unknown: 'not read' });
const endpoint = validateEndpoint(virtualEnv({ startMs: nowMs }), { agentNamespace: 'rollout-group', groups: unread });

function validate(review: Review): Promise<Answer> {
  return endpoint.handle(review, call);
}

const zones = [
  { name: 'a', statefulSet: 'ingester-zone-a' },
  { name: 'b', statefulSet: 'ingester-zone-b', follows: 'a' },
];
const group = { members: { zones }, rollout: { strategy: 'onDelete' } };
const approval = { group: 'ingester', action: 'approve', wave: 'rest' };
const byAda = { user: 'ada', groups: ['system:authenticated', 'oncall'], at: '2026-11-20T10:00:00.000Z' };

describe('the validation of our kinds', () => {
  it('accepts the objects that lint accepts', async () => {
    expect(await validate(reviewOf('RolloutGroup', group))).toEqual({ allowed: true });
  });

  it('denies with a line for each error: code, location, cause', async () => {
    const [a] = zones;
    const { allowed, code, reason, message } = await validate(
      reviewOf('RolloutGroup', {
        ...group,
        members: { zones: [a, { ...a, statefulSet: 'other' }, { name: 'b', statefulSet: 'b', follows: 'x' }] },
      }),
    );
    expect({ allowed, code, reason }).toEqual({ allowed: false, code: 422, reason: 'Invalid' });
    expect(message).toMatchInlineSnapshot(`
      "RolloutGroup mimir/one has 2 errors:
      RG2103 spec.members.zones[1].name: the zone name a is used twice (rename one of the zones)
      RG2105 spec.members.zones[2].follows: zone b follows an unknown zone: x is not in the group (did you mean a)"
    `);
  });

  it('has the same text as lint for a file with the object', async () => {
    const specs: readonly (readonly [string, Json])[] = [
      ['RolloutGroup', { ...group, rollout: { strategy: 'magic', waves: [] } }],
      ['RolloutGroup', { ...group, members: { zones: [...zones, ...zones] } }],
      ['RolloutPolicy', { targets: { groups: ['a'] }, rules: [{ name: 'x', actions: ['rollout'], effect: 'deny', when: { nope: 1 } }] }],
      [
        'RolloutException',
        { rule: 'zone-gab', target: { group: 'a' }, allow: { anything: true }, reason: 'x', expires: '2027-01-01T00:00:00Z' },
      ],
    ];
    for (const [kind, spec] of specs) {
      const document = { apiVersion: 'rollout-group.dev/v1alpha1', kind, metadata: { name: 'one', namespace: 'mimir' }, spec };
      const engineRules = ['zone-gap'];
      const { findings } = lintPolicies([{ name: 'one.json', text: JSON.stringify(document) }], { engineRules });
      const codes = findings.filter(({ severity }) => severity === 'error').map((one) => one.code);
      const { message = '' } = await validate(reviewOf(kind, spec));
      expect(codes.length).toBeGreaterThan(0);
      expect([...message.matchAll(/^(RG\d{4})/gm)].map((match) => match[1]).sort()).toEqual([...codes].sort());
    }
  });

  it('accepts every policy of the examples', async () => {
    const files = readdirSync('examples', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.yaml'));
    const documents = files.flatMap((name) =>
      parseAllDocuments(readFileSync(`examples/${name}`, 'utf8')).map((one) => one.toJS() as Json | null),
    );
    const ours = documents.filter((one) => /^Rollout/.test(String(one?.['kind'])));
    const refused: unknown[] = [];
    for (const one of ours) {
      const { allowed, message } = await validate({ ...reviewOf(String(one?.['kind']), {}), object: one ?? {} });
      if (!allowed) refused.push(message);
    }
    expect(ours.length).toBeGreaterThan(3);
    expect(refused).toEqual([]);
  });

  it('bounds its text, and names the number of omitted lines', async () => {
    const many = Array.from({ length: 50 }, (_, index) => ({ name: 'a', statefulSet: `set-${index}` }));
    const { message = '' } = await validate(reviewOf('RolloutGroup', { ...group, members: { zones: many } }));
    expect(Buffer.byteLength(message)).toBeLessThanOrEqual(1000);
    expect(message.split('\n').at(-1)).toMatch(/^and \d+ more; run kubectl rollout-group lint to see all$/);
    expect(message.split('\n')[0]).toMatch(/^RolloutGroup mimir\/one has \d+ errors:$/);
  });

  it('returns warnings, and denies no request for them', async () => {
    const { allowed, warnings = [] } = await validate(reviewOf('RolloutPolicy', { targets: { all: true } }));
    expect(allowed).toBe(true);
    expect(warnings.every((one) => /^RG\d{4} /.test(one) && Buffer.byteLength(one) <= 250)).toBe(true);
    expect(warnings.length).toBeGreaterThan(0);
  });

  it('does not check whether a named object exists yet', async () => {
    const policy = { targets: { groups: ['not-there'] }, rules: [{ name: 'x', actions: ['rollout'], effect: 'deny' }] };
    expect(await validate(reviewOf('RolloutPolicy', policy))).toEqual({ allowed: true });
    expect(await validate(reviewOf('RolloutIntent', { ...approval, requestedBy: byAda }))).toEqual({ allowed: true });
  });

  it('accepts an object with a generated name', async () => {
    const review = reviewOf('RolloutIntent', { ...approval, requestedBy: byAda });
    expect(
      await validate({ ...review, name: '', object: { ...review.object, metadata: { generateName: 'approve-', namespace: 'mimir' } } }),
    ).toEqual({
      allowed: true,
    });
  });

  it.each([-90_000, 90_000])('accepts the stamp of another process whose clock differs by %d ms', async (byMs) => {
    const at = new Date(nowMs + byMs).toISOString();
    expect(await validate(reviewOf('RolloutIntent', { ...approval, requestedBy: { ...byAda, at } }))).toEqual({ allowed: true });
  });

  it('denies an identity other than that of the requester', async () => {
    const forged = reviewOf('RolloutIntent', { ...approval, requestedBy: byAda }, { user: mallory });
    expect(await validate(forged)).toMatchObject({ allowed: false, code: 403, reason: 'Forbidden' });
    const changed = reviewOf(
      'RolloutIntent',
      { ...approval, wave: 'all', requestedBy: byAda },
      { user: mallory, oldSpec: { ...approval, requestedBy: byAda } },
    );
    expect(await validate(changed)).toMatchObject({ allowed: false, code: 403 });
    const timeless = reviewOf('RolloutIntent', { ...approval, requestedBy: { ...byAda, at: 'noon' } });
    expect(await validate(timeless)).toMatchObject({ allowed: false, code: 403 });
    // Without the stamp nobody is believed to have asked.
    expect(await validate(reviewOf('RolloutIntent', approval, { user: mallory }))).toEqual({ allowed: true });
  });

  it.each<[string, Review]>([
    ['deletions', reviewOf('RolloutGroup', { broken: true }, { operation: 'DELETE' })],
    ['status', reviewOf('RolloutGroup', { broken: true }, { subresource: 'status' })],
    ['updates that leave the spec as it was', reviewOf('RolloutGroup', { broken: true }, { oldSpec: { broken: true } })],
    ['other groups', reviewOf('RolloutGroup', {}, { resource: { group: 'apps', version: 'v1', resource: 'statefulsets' } })],
  ])('allows %s', async (_what, review) => {
    expect(await validate(review)).toEqual({ allowed: true });
  });

  it('denies a create without an object', async () => {
    const { object: _object, ...review } = reviewOf('RolloutGroup', group);
    expect(await validate(review)).toMatchObject({ allowed: false, code: 400 });
  });

  it('fails closed only if a requester must be verified', () => {
    expect(endpoint.onFailure(reviewOf('RolloutGroup', group), 'it is late')).toEqual({
      allowed: true,
      warnings: ['the object was not checked: it is late'],
    });
    expect(endpoint.onFailure(reviewOf('RolloutIntent', { group: 'ingester', action: 'pause' }), 'it is late')).toMatchObject({
      allowed: true,
    });
    expect(endpoint.onFailure(reviewOf('RolloutIntent', approval), 'it is late')).toMatchObject({ allowed: false, code: 500 });
  });

  it.each([[null], [7], ['x'], [[]], [{ constructor: 1 }], [{ members: { zones: 'a' } }], [{ rollout: [] }]] as const)(
    'has an answer to the spec %j',
    async (spec) => {
      const { allowed, code } = await validate({
        ...reviewOf('RolloutGroup', {}),
        object: { apiVersion: 'rollout-group.dev/v1alpha1', kind: 'RolloutGroup', metadata: { name: 'one' }, spec },
      });
      expect([allowed, code]).toEqual([false, 422]);
    },
  );
});

const agentNamespace = 'rollout-group';
const usableFrom = { namespaces: ['mimir'] };
const key = (name: string, of = 'login') => ({ name: of, key: name });
const source = (prometheus: Json): Json => ({ prometheus: { url: 'https://prometheus', ...prometheus }, usableFrom });
const basic = source({ basicAuth: { username: key('user'), password: key('password') }, ca: key('ca.crt', 'authority') });
const channel: Json = { slack: { token: key('token', 'slack'), channel: 'C0123456789' }, usableFrom };

type Secrets = Readonly<Record<string, Readonly<Record<string, string>> | Served>>;

/** What the endpoint says of an object in the agent's namespace, and what it asked for that. */
async function validated(kind: 'MetricSource' | 'NotificationChannel', spec: Json, secrets: Secrets = {}, namespace = agentNamespace) {
  const env = virtualEnv({ startMs: nowMs });
  const server = new ObjectsServer(env, ['secrets']);
  const faults = new Map<string, Served>();
  for (const [name, found] of Object.entries(secrets)) {
    if ('status' in found || 'lost' in found) faults.set(name, found as Served);
    else {
      const data = Object.fromEntries(Object.entries(found).map(([one, text]) => [one, Buffer.from(text as string).toString('base64')]));
      server.put('secrets', { metadata: { name, namespace: agentNamespace }, data });
    }
  }
  server.fault = ({ pathname }) => faults.get(pathname.split('/').at(-1) ?? '');
  const review = reviewOf(kind, spec);
  const object = { ...review.object, metadata: { name: 'prod', namespace } };
  const endpoint = validateEndpoint(env, { agentNamespace, groups: unread });
  const call = { deadlineMs: env.clock.monotonicMs() + 4_000, signal: new AbortController().signal };
  const startMs = env.clock.monotonicMs();
  const answer: Answer = await env.finish(endpoint.handle({ ...review, namespace, object }, call));
  return { ...answer, asked: env.requests.map(({ pathname }) => pathname), tookMs: env.clock.monotonicMs() - startMs };
}

describe('a source or a channel', () => {
  it('is accepted with a warning for each missing Secret and key, within the permissions of API servers', async () => {
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

  it('has one warning for each Secret, which is read once', async () => {
    const { warnings, asked } = await validated(
      'MetricSource',
      source({ basicAuth: { username: key('user'), password: key('password') } }),
    );
    expect(warnings).toEqual(['Secret login does not exist in namespace rollout-group: gates wait for it']);
    expect(asked).toEqual(['/api/v1/namespaces/rollout-group/secrets/login']);
  });

  it('is accepted without a warning if all exist, and shows no content', async () => {
    const secrets = { login: { user: 'prometheus', password: 'hunter2' }, authority: { 'ca.crt': 'pem' } };
    expect(await validated('MetricSource', basic, secrets)).toMatchObject({ allowed: true });
    const half = await validated('MetricSource', basic, { login: { user: 'hunter2', password: '\n' }, authority: { 'ca.crt': 'pem' } });
    expect(half.warnings).toEqual(['Secret login in namespace rollout-group has an empty value for key password: gates wait for it']);
    expect(JSON.stringify(half)).not.toContain('hunter2');
  });

  it.each<[string, Served]>([
    ['may not be read', { status: 403, body: { kind: 'Status', reason: 'Forbidden' } }],
    ['cannot be read', { status: 500 }],
    ['is not answered', { lost: 'reply', forever: true }],
  ])('is accepted without a warning, and in time, if a Secret %s; the others have a warning', async (_, answer) => {
    const { allowed, warnings, tookMs } = await validated('MetricSource', basic, { login: answer });
    expect([allowed, warnings]).toEqual([true, ['Secret authority does not exist in namespace rollout-group: gates wait for it']]);
    expect(tookMs).toBeLessThanOrEqual(1_000);
  });

  it('is not checked where it is never used, names no Secret, or is denied', async () => {
    expect(await validated('MetricSource', basic, {}, 'mimir')).toMatchObject({ allowed: true, asked: [] });
    expect(await validated('MetricSource', source({}))).toMatchObject({ allowed: true, asked: [] });
    expect(await validated('MetricSource', source({ url: 'ftp://x', bearerToken: key('token') }))).toMatchObject({
      allowed: false,
      asked: [],
    });
  });
});

describe('a request', () => {
  const target = (more: Json): Json => ({
    target: { group: 'ingester', ...more },
    rule: 'zone-gap',
    allow: { anything: true },
    reason: 'x',
    expires: '2027-01-01T00:00:00Z',
  });
  const pause = (more: Json): Json => ({ group: 'ingester', action: 'pause', ...more });

  /** The answer while the agent knows the group `ingester`, and the API server has the RolloutGroup `new`. */
  async function requested(kind: string, spec: Json, fault?: Served): Promise<Answer> {
    const env = virtualEnv({ startMs: nowMs });
    const server = new ObjectsServer(env, ['rolloutgroups']);
    server.put('rolloutgroups.rollout-group.dev', { metadata: { name: 'new', namespace: 'mimir' } });
    if (fault !== undefined) server.fault = () => fault;
    const known = validateEndpoint(env, { agentNamespace, groups: () => [groupNamed()] });
    return env.finish(
      known.handle(reviewOf(kind, spec), { deadlineMs: env.clock.monotonicMs() + 4_000, signal: new AbortController().signal }),
    );
  }

  it.each<[string, Json, string]>([
    [
      'RolloutIntent',
      pause({ group: 'ingestre' }),
      'RG2301 spec.group: the group ingestre does not exist in the namespace mimir (did you mean ingester)',
    ],
    ['RolloutIntent', pause({ zone: 'd' }), 'RG2105 spec.zone: the zone d does not exist in the group ingester (did you mean a)'],
    ['RolloutIntent', pause({ action: 'promote', wave: 'rest' }), 'RG2308 spec.wave: the wave rest does not exist in the group ingester'],
    [
      'RolloutException',
      target({ zone: 'd' }),
      'RG2105 spec.target.zone: the zone d does not exist in the group ingester (did you mean a)',
    ],
  ])('for a group or a part of it that does not exist is denied: %s %j', async (kind, spec, problem) => {
    const { allowed, message } = await requested(kind, spec);
    expect([allowed, message?.split('\n')[1]]).toEqual([false, problem]);
  });

  it('an exception before its group passes with a warning', async () => {
    expect(await requested('RolloutException', target({ group: 'ingestre' }))).toEqual({
      allowed: true,
      warnings: ['RG2301 spec.target.group: the group ingestre does not exist in the namespace mimir (did you mean ingester)'],
    });
  });

  it.each<[string, Json, Served | undefined]>([
    ['for the group', pause({}), undefined],
    ['for a zone of the group', pause({ zone: 'b' }), undefined],
    ['for a group that the agent does not know yet', pause({ group: 'new', zone: 'd' }), undefined],
    ['while the group cannot be read', pause({ group: 'other' }), { status: 403, body: { kind: 'Status', reason: 'Forbidden' } }],
  ])('%s passes', async (_, spec, fault) => {
    expect(await requested('RolloutIntent', spec, fault)).toEqual({ allowed: true });
  });
});
