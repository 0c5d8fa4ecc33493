import { describe, expect, it } from 'vitest';
import type { AdmissionRequest, Judgement } from '../../../engine/decision.ts';
import { failsOpen, isExempt, judge } from '../../../engine/judge/judge.ts';
import type { GroupDefinition, MirrorDefinition, ZoneDefinition } from '../../../policies/definition.ts';
import { adopted, group } from '../../kit/groups.ts';
import { kitNowMs, statefulSet } from '../../kit/objects.ts';
import {
  ago,
  exception,
  freeze,
  hourMs,
  intent,
  ledgerOf,
  line,
  minuteMs,
  policy,
  policyRule,
  preparation,
  runOf,
} from '../../kit/questions.ts';
import { type SnapshotOverrides, snapshotOf } from '../../kit/snapshots.ts';

type Scale = Extract<AdmissionRequest, { kind: 'scale' }>;

const native = group({ sources: { 'zones.a.protect': line(1), 'zones.a.replicas': line(2), 'zones.a.prepare': line(3) } });

function scale(definition: GroupDefinition, request: Partial<Scale> = {}, overrides: SnapshotOverrides = {}): Judgement {
  const asked: Scale = {
    kind: 'scale',
    namespace: 'mimir',
    statefulSet: 'ingester-zone-a',
    from: 3,
    to: 2,
    via: 'scale',
    dryRun: false,
    ...request,
  };
  return judge(snapshotOf({ groups: [definition], ...overrides }), asked);
}

const short = ({ outcome, code, effect, message }: Judgement) => ({ outcome, code, effect, message });
const allowed = (message: string) => ({ outcome: 'allow', code: 200, effect: 'allow', message });
const refused = 'scale of statefulset/ingester-zone-a from 3 to 2 in namespace mimir is denied by';
const endpoint = { scheme: 'http', port: 8080, path: '/prepare', timeout: '5s' } as const;
const prepare = { endpoint, onFailure: 'deny' } as const;
const onDown = (rule: object) => policy({ rules: [policyRule({ actions: ['scaleDown'], ...rule })] });

describe('a scale-down', () => {
  it('is allowed when no rule blocks it, with every evaluated rule', () => {
    const judgement = scale(native);
    expect(short(judgement)).toEqual(allowed('scale of statefulset/ingester-zone-a from 3 to 2 is allowed'));
    expect(judgement.results.map(({ rule, outcome }) => `${rule} ${outcome}`)).toEqual([
      'view-complete ok',
      'scaling-hold ok',
      'paused skip',
      'replicas-owned ok',
      'no-downscale ok',
      'scale-floor ok',
      'leader-floor skip',
      'rollout-in-progress ok',
      'other-zones-ready ok',
      'zone-gap ok',
      'window skip',
      'prepare-downscale skip',
    ]);
    expect([judgement.warnings, judgement.actions]).toEqual([[], []]);
  });

  it('is denied with rule, fact, limit and retry time', () => {
    const gap = group({ zones: [{ name: 'a', betweenZonesMs: hourMs }, 'b'] });
    const ledgers = [ledgerOf({ downscales: [{ zone: 'b', atMs: ago(minuteMs), from: 4, to: 3 }] })];
    expect(short(scale(gap, {}, { ledgers }))).toEqual({
      outcome: 'deny',
      code: 403,
      effect: 'hold',
      message: `${refused} zone-gap: zone b shrank 1m ago (limit: 1h); retry after 2026-03-02T12:59:00.000Z`,
    });
  });

  it.each<[string, GroupDefinition, SnapshotOverrides, string, string]>([
    [
      'a protected zone',
      group({ zones: [{ name: 'a', noDownscale: true }] }),
      {},
      'deny',
      'no-downscale: zone a must not shrink (limit: noDownscale)',
    ],
    [
      'a follower',
      group({ zones: [{ name: 'a', follows: 'b' }, 'b'] }),
      {},
      'deny',
      'replicas-owned: zone a follows zone b; scale zone b instead',
    ],
    ['a running rollout', native, { ledgers: [ledgerOf({ run: runOf() })] }, 'hold', 'rollout-in-progress: a rollout runs'],
    [
      'a zone that could not be read',
      native,
      { pods: [{ namespace: 'mimir', statefulSet: 'ingester-zone-b', pods: { unknown: 'forbidden' } }] },
      'deny',
      'view-complete: the pods of ingester-zone-b could not be read: forbidden',
    ],
    [
      'a window',
      native,
      { policies: [policy({ windows: [freeze({ actions: ['scaleDown'] })] })] },
      'hold',
      'window: a deny window blocks scaleDown (limit: freeze); retry after 2026-03-02T13:00:00.000Z',
    ],
    ['a policy that denies', native, { policies: [onDown({})] }, 'deny', 'safety/rule: the rule always applies'],
    ['a policy that holds', native, { policies: [onDown({ effect: 'hold' })] }, 'hold', 'safety/rule: the rule always applies'],
    [
      'a policy that asks for approval',
      native,
      { policies: [onDown({ effect: 'requireApproval' })] },
      'requireApproval',
      'safety/rule: the rule always applies; 0 of 1 approvals (limit: 1)',
    ],
  ])('is denied by %s', (_name, definition, overrides, effect, message) => {
    expect(short(scale(definition, {}, overrides))).toEqual({ outcome: 'deny', code: 403, effect, message: `${refused} ${message}` });
  });

  it('names permanent blocks before waits', () => {
    const both = { policies: [onDown({ effect: 'hold' }), { ...onDown({}), name: 'z' }] };
    expect(scale(native, {}, both).message).toBe(`${refused} z/rule: the rule always applies`);
    expect(scale(native, {}, both).effect).toBe('deny');
  });

  it('is not denied by a pause, which applies to the agent only', () => {
    expect(scale(native, {}, { intents: [intent({ action: 'pause' })] }).outcome).toBe('allow');
  });

  it('is permitted by an exception', () => {
    const permitted = { policies: [onDown({})], exceptions: [exception('safety/rule', { allow: { replicasAtLeast: 2 } })] };
    expect(scale(native, {}, permitted).outcome).toBe('allow');
    expect(scale(native, { to: 1 }, permitted).outcome).toBe('deny');
  });

  it('names the command that overrides windows and policy rules, if no other rule blocks', () => {
    const command = (rule: string): string =>
      `kubectl rollout-group override mimir/ingester --rule ${rule} --zone a --duration 1h --reason REASON --yes`;
    const window = { policies: [policy({ windows: [freeze({ actions: ['scaleDown'] })] })] };
    expect(scale(native, {}, { policies: [onDown({})] }).override).toBe(command('safety/rule'));
    expect(scale(native, {}, { policies: [onDown({}), ...window.policies] }).override).toBe(
      `${command('window')} && ${command('safety/rule')}`,
    );
    expect(scale(native, {}, { policies: [onDown({ effect: 'requireApproval' })] }).override).toBeUndefined();
    expect(scale(native, {}, { ...window, ledgers: [ledgerOf({ run: runOf() })] }).override).toBeUndefined();
    const short = { policies: [onDown({})], exceptions: [exception('safety/rule', { allow: { replicasAtLeast: 2 } })] };
    expect(scale(native, { to: 1 }, short).override).toMatch(
      /^kubectl rollout-group cancel mimir\/ingester \S+ && kubectl rollout-group override/,
    );
  });

  it('that has the forced number does not wait', () => {
    const forced = group({ zones: [{ name: 'a', forceReplicas: 2, bounds: { min: 3, multipleOf: 1, parity: 'any' } }] });
    expect(scale(forced, {}, { ledgers: [ledgerOf({ run: runOf() })] }).outcome).toBe('allow');
    expect(scale(forced, { to: 1 }).outcome).toBe('deny');
  });

  it('warns of the replicas that the agent sets instead, unless a user cancelled that downscale', () => {
    const counted = group({ zones: [{ name: 'a', replicas: { kind: 'count', count: 4 } }] });
    const grown = (overrides: SnapshotOverrides = {}) => scale(counted, { from: 3, to: 5 }, overrides).warnings;
    expect(grown()).toEqual(['the agent sets zone a to 4 replicas, because the group asks for 4 replicas']);
    expect(scale(counted, { from: 3, to: 4 }).warnings).toEqual([]);
    expect(scale(native, { from: 3, to: 5 }).warnings).toEqual([]);
    expect(grown({ intents: [intent({ action: 'cancel', zone: 'a', replicas: 4 })] })).toEqual([]);
  });

  it('contains the warnings of policies', () => {
    const judgement = scale(native, {}, { policies: [onDown({ effect: 'warn', message: 'mind the queue' })] });
    expect([judgement.outcome, judgement.effect, judgement.warnings]).toEqual(['allow', 'warn', ['safety/rule: mind the queue']]);
  });

  it('includes the requester', () => {
    const onlyKim = { policies: [onDown({ when: { '!=': [{ var: 'user.name' }, 'kim'] } })] };
    expect(scale(native, { user: 'kim' }, onlyKim).outcome).toBe('allow');
    expect(scale(native, { user: 'zoe' }, onlyKim).outcome).toBe('deny');
    expect(scale(native, {}, onlyKim)).toMatchObject({ outcome: 'deny', effect: 'deny' });
    const onlyOncall = { policies: [onDown({ when: { '!': [{ in: ['oncall', { var: 'user.groups' }] }] } })] };
    expect(scale(native, { user: 'kim', groups: ['oncall'] }, onlyOncall).outcome).toBe('allow');
    expect(scale(native, { user: 'zoe', groups: [] }, onlyOncall).outcome).toBe('deny');
  });
});

describe('a scale-down with preparation', () => {
  const native = group({ zones: [{ name: 'a', prepare }], sources: { 'zones.a.prepare': line(3) } });
  const preparing = { ...native, profile: 'rolloutOperator' } as const;
  const call = (method: 'POST' | 'DELETE') => ({
    kind: 'callPods',
    namespace: 'mimir',
    zone: 'a',
    statefulSet: 'ingester-zone-a',
    call: 'prepare',
    method,
    ordinals: [2],
  });
  const entry = (more: object) => ({ ledgers: [ledgerOf({ preparations: [preparation(2, { call: 'prepare', ...more })] })] });

  it('requires the calls first', () => {
    const judgement = scale(preparing);
    expect(short(judgement)).toEqual({
      outcome: 'prepare',
      code: 200,
      effect: 'hold',
      message: `${refused} prepare-downscale: 1 pod must prepare`,
    });
    expect(judgement.actions).toEqual([call('POST')]);
  });

  it('is allowed after the calls', () => {
    expect(scale(preparing, {}, entry({}))).toMatchObject({ outcome: 'allow', actions: [] });
  });

  it('is denied if the calls failed, with the calls that cancel them', () => {
    const judgement = scale(preparing, {}, entry({ state: 'failed', seenMs: kitNowMs, message: 'HTTP 500' }));
    expect(short(judgement)).toEqual({
      outcome: 'deny',
      code: 403,
      effect: 'deny',
      message: `${refused} prepare-downscale: ingester-zone-a-2 failed to prepare: HTTP 500; retry after 2026-03-02T12:00:30.000Z`,
    });
    expect(judgement.actions).toEqual([call('DELETE')]);
  });

  it('requires no calls while another rule blocks', () => {
    expect(scale(preparing, {}, { policies: [onDown({})] })).toMatchObject({ outcome: 'deny', actions: [] });
  });

  it.each([false, true])('is denied in a native group, because only the agent prepares its pods, also in a dry run: %s', (dryRun) => {
    const judgement = scale(native, { dryRun });
    const fact = '1 pod must prepare, and only the agent prepares pods: set replicas.count or replicas.mirror';
    expect(short(judgement)).toEqual({ outcome: 'deny', code: 403, effect: 'deny', message: `${refused} prepare-downscale: ${fact}` });
    expect([judgement.actions, scale(native, { dryRun }, entry({})).outcome]).toEqual([[], 'allow']);
  });

  it.each<[string, SnapshotOverrides, string]>([
    ['a pod is absent', { podChanges: { 'ingester-zone-a': { 2: 'missing' } } }, '1 pod must prepare; ingester-zone-a-2 does not exist'],
    [
      'a preparation of the agent failed',
      entry({ state: 'failed', seenMs: kitNowMs, message: 'HTTP 500' }),
      'ingester-zone-a-2 failed to prepare: HTTP 500',
    ],
  ])('is denied at once in a native group, also if %s', (_state, overrides, fact) => {
    const holding = group({ zones: [{ name: 'a', prepare: { ...prepare, onFailure: 'hold' } }] });
    const judgement = scale(holding, {}, overrides);
    const text = `${fact}, and only the agent prepares pods: set replicas.count or replicas.mirror`;
    expect(short(judgement)).toEqual({ outcome: 'deny', code: 403, effect: 'deny', message: `${refused} prepare-downscale: ${text}` });
    expect([judgement.actions, judgement.results.map(({ earliestMs }) => earliestMs)]).toEqual([
      [],
      judgement.results.map(() => undefined),
    ]);
  });

  const mirror: MirrorDefinition = {
    kind: 'mirror',
    apiVersion: 'rollout-group.dev/v1alpha1',
    resourceKind: 'ReplicaTemplate',
    name: 'ingester',
    read: 'scale',
    writeBack: 'none',
    onMissing: 'hold',
  };
  it.each<[string, Partial<ZoneDefinition>, string]>([
    ['sets the replicas', { replicas: { kind: 'count', count: 3 } }, 'RolloutGroup ingester'],
    ['mirrors them', { replicas: mirror }, 'ReplicaTemplate ingester'],
    ['follows a zone', { follows: 'b', replicas: { kind: 'count', count: 3 } }, 'zone b'],
  ])('names the object to scale in a native group that %s, also under an exception', (_source, more, object) => {
    const owned = group({ zones: [{ name: 'a', prepare, ...more }, 'b'] });
    const { message } = scale(owned, {}, { exceptions: [exception('replicas-owned')] });
    expect(message).toContain(`1 pod must prepare, and only the agent prepares pods: scale ${object} instead`);
  });

  it('is denied at once in a native group, also while another rule blocks it', () => {
    const held = { policies: [onDown({ effect: 'hold' })] };
    expect([native, preparing].map((one) => short(scale(one, {}, held)).effect)).toEqual(['deny', 'hold']);
  });

  it('calls no pod in a dry run, and reports it', () => {
    expect(scale(preparing, { dryRun: true })).toMatchObject({
      outcome: 'allow',
      actions: [],
      warnings: ['the pods would be called to prepare'],
    });
    expect(scale(preparing, { dryRun: true }, entry({})).warnings).toEqual([]);
  });

  it('is permitted without calls by an exception', () => {
    expect(scale(preparing, {}, { exceptions: [exception('prepare-downscale')] })).toMatchObject({ outcome: 'allow', actions: [] });
  });
});

describe('a scale-up', () => {
  const up = { from: 3, to: 5 };
  it('evaluates only the ceiling, windows and policies', () => {
    const judgement = scale(native, up);
    expect(short(judgement)).toEqual(allowed('scale of statefulset/ingester-zone-a from 3 to 5 is allowed'));
    expect(judgement.results.map(({ rule }) => rule)).toEqual(['scale-ceiling', 'window']);
    const denied = { policies: [policy({ rules: [policyRule({ actions: ['scaleUp'] })], windows: [freeze({ actions: ['scaleUp'] })] })] };
    expect(scale(native, up, denied).results.map(({ rule, outcome }) => `${rule} ${outcome}`)).toEqual([
      'scale-ceiling skip',
      'window wait',
      'safety/rule no',
    ]);
  });

  it('is denied above the bounds, unless an exception allows it', () => {
    const bounded = group({ zones: [{ name: 'a', bounds: { max: 4, multipleOf: 1, parity: 'any' } }] });
    expect(scale(bounded, up)).toMatchObject({ outcome: 'deny', effect: 'deny' });
    expect(scale(bounded, up, { exceptions: [exception('scale-ceiling')] }).outcome).toBe('allow');
  });

  it('to the same number evaluates no rule', () => {
    expect(scale(native, { from: 3, to: 3 })).toMatchObject({
      outcome: 'allow',
      results: [],
      message: 'update of statefulset/ingester-zone-a is allowed',
    });
  });
});

describe('null replicas', () => {
  it('count as 1 in native groups', () => {
    const floored = group({ zones: [{ name: 'a', bounds: { min: 2, multipleOf: 1, parity: 'any' } }] });
    expect(scale(floored, { to: undefined })).toMatchObject({
      outcome: 'deny',
      results: expect.arrayContaining([expect.objectContaining({ rule: 'scale-floor', fact: 'zone a would have 1 replica' })]),
    });
    expect(scale(native, { from: undefined, to: 2 }).results.map(({ rule }) => rule)).toEqual(['scale-ceiling', 'window']);
    expect(scale(native, { to: undefined }).message).toBe('scale of statefulset/ingester-zone-a from 3 to null is allowed');
  });

  it('are allowed in adopted groups, with a warning', () => {
    const guarded = adopted({ zones: [{ name: 'a', noDownscale: true }] });
    expect(scale(guarded, { to: undefined })).toMatchObject({ outcome: 'allow', warnings: ['old or new replicas are null'] });
    expect(scale(guarded, { from: undefined })).toMatchObject({ outcome: 'allow', warnings: ['old or new replicas are null'] });
    expect(scale(guarded, { from: undefined, to: undefined })).toMatchObject({ outcome: 'allow', warnings: [] });
    expect(scale(guarded).outcome).toBe('deny');
  });
});

describe('a StatefulSet without a group', () => {
  const labelled = (value: string) => ({ statefulSets: [statefulSet({ name: 'other', labels: { 'grafana.com/no-downscale': value } })] });
  const other = (request: Partial<Scale>, value = 'true') => scale(native, { statefulSet: 'other', ...request }, labelled(value));

  it('is protected only by its label', () => {
    expect(other({}).results).toEqual([
      {
        rule: 'no-downscale',
        outcome: 'no',
        fact: 'other must not shrink',
        limit: 'grafana.com/no-downscale=true',
        source: { object: 'StatefulSet mimir/other', field: 'metadata.labels[grafana.com/no-downscale]' },
      },
    ]);
    expect(other({}).outcome).toBe('deny');
  });

  it('cannot be deleted either', () => {
    const target = { namespace: 'mimir', statefulSet: 'other', dryRun: false } as const;
    const ask = (value: string) => judge(snapshotOf({ groups: [native], ...labelled(value) }), { kind: 'deleteStatefulSet', ...target });
    expect(ask('true')).toMatchObject({
      outcome: 'deny',
      code: 403,
      results: [{ rule: 'no-delete', limit: 'grafana.com/no-downscale=true' }],
    });
    expect(ask('yes')).toMatchObject({ outcome: 'allow', results: [] });
  });

  it.each<[string, Partial<Scale>, string]>([
    ['grows', { to: 4 }, 'true'],
    ['stays', { to: 3 }, 'true'],
    ['has another value', {}, 'yes'],
    ['names no number', { to: undefined }, 'true'],
    ['named no number', { from: undefined }, 'true'],
  ])('is allowed when it %s', (_name, request, value) => {
    expect(other(request, value)).toMatchObject({ outcome: 'allow', results: [] });
  });
});

describe('the id of a decision', () => {
  it('is the same for every requester, and for a dry run', () => {
    const id = scale(native).decisionId;
    expect(id).toMatch(/^[0-9a-f]{12}$/);
    expect(scale(native, { user: 'kim' }).decisionId).toBe(id);
    expect(scale(native, { dryRun: true }).decisionId).toBe(id);
    expect(scale(native, {}, { nowMs: kitNowMs + minuteMs }).decisionId).toBe(id);
  });

  it('differs for another object, number, path, policy or answer', () => {
    const ids = [
      scale(native),
      scale(native, { to: 1 }),
      scale(native, { from: 4 }),
      scale(native, { via: 'patch' }),
      scale(native, { statefulSet: 'ingester-zone-b' }),
      scale(native, { namespace: 'loki' }),
      scale(native, {}, { policyDigest: 'other' }),
      scale(native, {}, { policies: [onDown({})] }),
    ].map(({ decisionId }) => decisionId);
    expect(new Set(ids).size).toBe(ids.length);
  });
});

describe('the group of a request', () => {
  it('is the first by name that has the StatefulSet as a member', () => {
    const strict = group({ name: 'a-group', zones: [{ name: 'a', statefulSet: 'ingester-zone-a', noDownscale: true }] });
    const asked: Scale = { kind: 'scale', namespace: 'mimir', statefulSet: 'ingester-zone-a', from: 3, to: 2, via: 'scale', dryRun: false };
    expect(judge(snapshotOf({ groups: [native, strict] }), asked).outcome).toBe('deny');
    expect(judge(snapshotOf({ groups: [strict, native] }), asked).outcome).toBe('deny');
  });
});

const own = { namespace: 'mimir', names: ['rollout-group-agent'] };

describe('workloads of this project', () => {
  const isOwn = (kind: 'statefulSet' | 'pod', name: string, namespace = 'mimir') => isExempt({ kind, namespace, name }, { own });

  it('are identified by name and not judged', () => {
    expect(isOwn('statefulSet', 'rollout-group-agent')).toBe(true);
    expect(isOwn('pod', 'rollout-group-agent-5d4f8c7b9-x7k2p')).toBe(true);
  });

  it('are not objects with a similar name or in another namespace', () => {
    expect(isOwn('statefulSet', 'rollout-group-agent-2')).toBe(false);
    expect(isOwn('pod', 'rollout-group-agent-0')).toBe(false);
    expect(isOwn('pod', 'rollout-group-agent-x-5d4f8c7b9-x7k2p')).toBe(false);
    expect(isOwn('statefulSet', 'rollout-group-agent', 'loki')).toBe(false);
    expect(isExempt({ kind: 'statefulSet', namespace: 'mimir', name: 'rollout-group-agent' }, {})).toBe(false);
  });
});

it('requests in namespaces without an agent are not judged', () => {
  const object = { kind: 'statefulSet', namespace: 'mimir', name: 'db' } as const;
  expect(isExempt(object, { namespaces: ['loki'] })).toBe(true);
  expect(isExempt(object, { namespaces: ['loki', 'mimir'] })).toBe(false);
});

it('requests that cannot be judged are allowed if a denial would do more harm', () => {
  const unjudged = { onlyGrows: false, isNamespaceEnding: false };
  for (const verb of ['update', 'scale', 'delete', 'evictPod'] as const) {
    expect(failsOpen({ ...unjudged, verb })).toBe(false);
    expect(failsOpen({ ...unjudged, verb, isNamespaceEnding: true })).toBe(true);
  }
  expect(failsOpen({ ...unjudged, verb: 'deletePod' })).toBe(true);
  expect(failsOpen({ ...unjudged, verb: 'scale', onlyGrows: true })).toBe(true);
});

it('a namespace during its deletion allows all requests, and no other namespace does', () => {
  const guarded = group({ zones: [{ name: 'a', noDownscale: true, noDelete: true }, 'b'] });
  const target = { namespace: 'mimir', statefulSet: 'ingester-zone-a', dryRun: false } as const;
  const requests: readonly AdmissionRequest[] = [
    { kind: 'scale', ...target, from: 3, to: 2, via: 'scale' },
    { kind: 'deleteStatefulSet', ...target, pods: 3 },
  ];
  for (const request of requests) {
    const ask = (endingNamespaces: readonly string[]) => judge({ ...snapshotOf({ groups: [guarded] }), endingNamespaces }, request);
    expect(ask(['mimir'])).toMatchObject({ outcome: 'allow', results: [{ rule: 'namespace-ends', outcome: 'ok' }] });
    expect(ask(['loki']).outcome).toBe('deny');
  }
});
