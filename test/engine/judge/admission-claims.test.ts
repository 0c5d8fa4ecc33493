import { describe, expect, it } from 'vitest';
import type { AdmissionRequest } from '../../../engine/decision.ts';
import { announcedByAgent, claimsFor, repeatMs, reserve } from '../../../engine/judge/admission-claims.ts';
import { judge } from '../../../engine/judge/judge.ts';
import { decodeRequest, encodeRequest } from '../../../engine/judge/request-text.ts';
import { openClaimLimit } from '../../../engine/ledger/ledger.ts';
import { type Claim, unappliedClaimMs } from '../../../engine/snapshot.ts';
import { group } from '../../kit/groups.ts';
import { kitNowMs, statefulSet } from '../../kit/objects.ts';
import { ago, ledgerOf, minuteMs, secondMs } from '../../kit/questions.ts';
import { type SnapshotOverrides, snapshotOf } from '../../kit/snapshots.ts';

const native = group({ disruption: { maxUnavailable: 1, crossZoneDelayMs: 0 } });
const set = { namespace: 'mimir', statefulSet: 'ingester-zone-a', dryRun: false } as const;
const shrink: AdmissionRequest = { kind: 'scale', ...set, from: 3, to: 1, via: 'scale' };
const eviction: AdmissionRequest = { kind: 'evictPod', namespace: 'mimir', pod: 'ingester-zone-a-1', dryRun: false };
const seen = (overrides: SnapshotOverrides = {}) => snapshotOf({ groups: [native], ...overrides });
const withClaim = (claim: Partial<Claim>) =>
  seen({
    ledgers: [
      ledgerOf({ claims: [{ verb: 'scaleDown', zone: 'a', uid: 'uid-ingester-zone-a', from: 3, to: 1, atMs: kitNowMs, ...claim }] }),
    ],
  });

describe('the claims of an admitted request', () => {
  it('is a claim without resource version and leadership', () => {
    expect(claimsFor(seen(), shrink)).toEqual([
      { verb: 'scaleDown', zone: 'a', uid: 'uid-ingester-zone-a', from: 3, to: 1, atMs: kitNowMs },
    ]);
    const pod = { zone: 'a', uid: 'uid-ingester-zone-a-1', ordinal: 1, atMs: kitNowMs };
    expect(claimsFor(seen(), eviction)).toEqual([{ verb: 'evictPod', ...pod }]);
    expect(claimsFor(seen(), { ...eviction, user: 'kim' })).toEqual([{ verb: 'evictPod', ...pod, user: 'kim' }]);
    expect(claimsFor(seen(), { ...eviction, user: '\u{1F600}'.repeat(500) })[0]?.user).toBe('\u{1F600}'.repeat(128));
    expect(claimsFor(seen(), { ...eviction, kind: 'deletePod' })).toEqual([{ verb: 'deletePod', ...pod }]);
    expect(claimsFor(seen(), { kind: 'deleteStatefulSet', ...set, pods: 4 })).toMatchObject([{ verb: 'scaleDown', from: 4, to: 0 }]);
  });

  it('is empty for requests that disrupt no pod, for a dry run, and for objects of no group', () => {
    expect(claimsFor(seen(), { ...shrink, to: 3 })).toEqual([]);
    expect(claimsFor(seen(), { ...shrink, to: 5 })).toEqual([]);
    expect(claimsFor(seen(), { ...shrink, dryRun: true })).toEqual([]);
    expect(claimsFor(seen(), { kind: 'restart', ...set })).toEqual([]);
    expect(claimsFor(seen({ groups: [], statefulSets: [statefulSet()] }), shrink)).toEqual([]);
    expect(claimsFor(seen({ podChanges: { 'ingester-zone-a': { 1: { isTerminating: true } } } }), eviction)).toEqual([]);
    expect(claimsFor(seen(), { kind: 'deleteStatefulSet', ...set, statefulSet: 'other', pods: 3 })).toEqual([]);
  });
});

describe('a reservation', () => {
  const [claim] = claimsFor(seen(), shrink) as readonly [Claim];

  it('keeps its time when the request repeats, so it ends although a client retries without end', () => {
    const ledger = ledgerOf({ claims: [{ ...claim, atMs: ago(10 * secondMs) }] });
    expect(reserve(ledger, [claim])).toBe(ledger);
    expect(reserve(ledger, [{ ...claim, to: 2 }])?.claims).toHaveLength(2);
    expect(reserve(ledger, [])).toBe(ledger);
  });

  it('replaces the claim of the agent, which may end earlier', () => {
    for (const ofAgent of [{ resourceVersion: '7' }, { epoch: 2 }]) {
      const ledger = ledgerOf({ claims: [{ ...claim, atMs: ago(10 * secondMs), ...ofAgent }] });
      expect(reserve(ledger, [claim])?.claims).toEqual([claim]);
    }
  });

  it('is denied above the limit of open claims', () => {
    const open = Array.from({ length: openClaimLimit }, (_, index): Claim => ({ verb: 'evictPod', zone: 'a', uid: `u${index}`, atMs: 0 }));
    expect(reserve(ledgerOf({ claims: open }), [claim])).toBeUndefined();
    expect(reserve(ledgerOf({ claims: [...open.slice(1), claim] }), [claim])?.claims).toHaveLength(openClaimLimit);
  });
});

describe('an unused grant', () => {
  const allowed = (atMs: number, request: AdmissionRequest, more: Partial<Claim> = {}) =>
    seen({ ledgers: [ledgerOf({ claims: claimsFor(seen(), request).map((claim) => ({ ...claim, atMs, ...more })) })] });

  it.each([
    ['a decrease', shrink],
    ['an eviction', eviction],
  ] as const)('passes again for a short while, and then waits for its end: %s', (_, request) => {
    for (const age of [0, repeatMs]) expect(judge(allowed(ago(age), request), request).outcome, `${age}`).toBe('allow');
    const atMs = ago(repeatMs + 1);
    const answer = judge(allowed(atMs, request), request);
    expect(answer).toMatchObject({ outcome: 'deny', effect: 'hold' });
    expect(answer.results.at(-1)).toMatchObject({ rule: 'granted-before', outcome: 'wait', earliestMs: atMs + unappliedClaimMs });
    // Of a clock that is set ahead it cannot be told how old it is.
    expect(judge(allowed(kitNowMs + 2 * repeatMs, request), request).outcome).toBe('deny');
  });

  it('blocks no other request, and no claim of the agent', () => {
    const rules = (snapshot: ReturnType<typeof seen>, request: AdmissionRequest) =>
      judge(snapshot, request).results.map(({ rule }) => rule);
    expect(rules(allowed(ago(minuteMs), shrink), { ...shrink, to: 2 })).not.toContain('granted-before');
    expect(rules(allowed(ago(minuteMs), eviction), { ...eviction, pod: 'ingester-zone-a-2' })).not.toContain('granted-before');
    expect(rules(allowed(ago(minuteMs), eviction, { epoch: 3 }), eviction)).not.toContain('granted-before');
  });
});

describe('claims of the agent', () => {
  it('pass, also if other things have changed since', () => {
    const guarded = group({ zones: [{ name: 'a', noDownscale: true }, 'b'] });
    const announced = { ...withClaim({ epoch: 3, atMs: ago(10 * secondMs) }), groups: [guarded] };
    expect(judge(announced, shrink)).toMatchObject({ outcome: 'allow', results: [{ rule: 'announced', outcome: 'ok' }] });
  });

  it('covers no other change in the same write', () => {
    const announced = withClaim({ epoch: 3 });
    const update: Extract<AdmissionRequest, { kind: 'update' }> = {
      kind: 'update',
      ...set,
      from: 3,
      to: 1,
      isTemplateChanged: false,
      strategy: 'OnDelete',
      relabels: [],
      via: 'patch',
      partition: 0,
      firstOrdinal: 0,
    };
    expect(announcedByAgent(announced, update)).toBeDefined();
    const others = [
      { isTemplateChanged: true },
      { strategy: 'RollingUpdate' },
      { relabels: ['team'] },
      { partition: 1 },
      { firstOrdinal: 1 },
    ];
    for (const other of others) expect(announcedByAgent(announced, { ...update, ...other } as AdmissionRequest)).toBeUndefined();
  });

  it('is exactly that recent downscale by an agent', () => {
    expect(announcedByAgent(withClaim({ epoch: 3 }), shrink)).toBeDefined();
    expect(announcedByAgent(withClaim({ epoch: 3 }), { ...shrink, to: 0 })).toBeUndefined();
    expect(announcedByAgent(withClaim({ epoch: 3 }), { ...shrink, from: 4 })).toBeUndefined();
    expect(announcedByAgent(withClaim({ epoch: 3, uid: 'other' }), shrink)).toBeUndefined();
    expect(announcedByAgent(withClaim({ epoch: 3, atMs: ago(2 * minuteMs) }), shrink)).toBeUndefined();
    expect(announcedByAgent(withClaim({}), shrink)).toBeUndefined();
    expect(announcedByAgent(withClaim({ epoch: 3, to: 0 }), { kind: 'deleteStatefulSet', ...set, pods: 3 })).toBeUndefined();
  });
});

describe('a claimed downscale', () => {
  const other: AdmissionRequest = { ...eviction, pod: 'ingester-zone-b-1' };

  it('uses the budget for the pods that it removes, until the claim ends', () => {
    for (const atMs of [kitNowMs, ago(60 * minuteMs)]) {
      const answer = judge(withClaim({ atMs }), other);
      expect(answer).toMatchObject({ outcome: 'deny', code: 429 });
      expect(answer.message).toContain('2 pods not ready in ingester-zone-a');
    }
    expect(judge(seen(), other).outcome).toBe('allow');
  });

  it('blocks the deletion of another StatefulSet with its pods', () => {
    const deletion: AdmissionRequest = { kind: 'deleteStatefulSet', ...set, statefulSet: 'ingester-zone-b', pods: 3 };
    expect(judge(withClaim({}), deletion)).toMatchObject({ outcome: 'deny', effect: 'hold' });
    expect(judge(withClaim({}), { kind: 'deleteStatefulSet', ...set, statefulSet: 'ingester-zone-b' }).outcome).toBe('allow');
    expect(judge(seen(), deletion).outcome).toBe('allow');
    const down = seen({ podChanges: { 'ingester-zone-c': { 0: 'missing' } } });
    expect(judge(down, deletion).message).toContain('denied by other-zones-ready');
  });
});

describe('an update', () => {
  const update: Extract<AdmissionRequest, { kind: 'update' }> = {
    kind: 'update',
    ...set,
    from: 3,
    to: 3,
    isTemplateChanged: false,
    strategy: 'RollingUpdate',
    via: 'update',
  };
  const rolling = (partition: number) => {
    const revisions = { currentRevision: 'rev-1', updateRevision: 'rev-2' };
    return seen({ statefulSets: [statefulSet({ updateStrategy: 'RollingUpdate', partition, status: revisions })] });
  };

  it('that lowers the partition would replace pods', () => {
    expect(judge(rolling(3), { ...update, partition: 1 }).message).toContain('the partition 1 would replace 2 pods of ingester-zone-a');
    expect(judge(rolling(3), { ...update, partition: 3 }).outcome).toBe('allow');
    expect(judge(rolling(3), { ...update, partition: 4 }).outcome).toBe('allow');
    expect(judge(rolling(3), update).outcome).toBe('allow');
    expect(judge(rolling(3), { ...update, partition: 2, isTemplateChanged: true }).message).toContain('would replace 1 pod');
  });

  it('of the strategy is denied while the pods are unknown', () => {
    const unread = seen({ pods: [{ namespace: 'mimir', statefulSet: 'ingester-zone-a', pods: { unknown: 'forbidden' } }] });
    expect(judge(unread, update).results.at(-1)).toMatchObject({ rule: 'view-complete', outcome: 'unknown' });
    expect(judge(unread, { ...update, strategy: 'OnDelete' }).outcome).toBe('allow');
  });

  it('that changes the ordinals would remove pods', () => {
    const answer = judge(seen(), { ...update, strategy: 'OnDelete', firstOrdinal: 2 });
    expect(answer).toMatchObject({ outcome: 'deny', code: 403 });
    expect(answer.results.at(-1)).toMatchObject({ rule: 'ordinals-kept', outcome: 'no' });
    expect(judge(seen(), { ...update, strategy: 'OnDelete', firstOrdinal: 0 }).outcome).toBe('allow');
  });
});

const pod = { namespace: 'mimir', pod: 'ingester-zone-a-1', dryRun: false } as const;
const update: AdmissionRequest = {
  kind: 'update',
  ...set,
  from: 3,
  to: 2,
  isTemplateChanged: true,
  strategy: 'RollingUpdate',
  via: 'apply',
  partition: 1,
  firstOrdinal: 2,
  relabels: ['team'],
};
const requests: readonly AdmissionRequest[] = [
  { kind: 'scale', ...set, from: 3, to: 2, via: 'scale' },
  { kind: 'scale', ...set, from: undefined, to: 2, via: 'patch' },
  update,
  { kind: 'update', ...set, from: 3, to: 3, isTemplateChanged: false, strategy: 'OnDelete', via: 'update' },
  { ...update, betweenZones: '12h' },
  { kind: 'deleteStatefulSet', ...set },
  { kind: 'deleteStatefulSet', ...set, pods: 3 },
  { kind: 'restart', ...set },
  { kind: 'evictPod', ...pod },
  { kind: 'deletePod', ...pod },
];

describe('a request as text', () => {
  it('is the same after reading, except for the requester and the dry run', () => {
    for (const request of requests) {
      const text = encodeRequest({ ...request, user: 'kim', dryRun: true }) ?? '';
      expect(text).not.toContain('kim');
      expect(decodeRequest(text)).toEqual(JSON.parse(JSON.stringify(request)));
    }
  });

  it('is absent if the request is another one', () => {
    const texts = ['', '{', '[]', '{}', '{"kind":"scale"}', '{"kind":"evictPod","namespace":"mimir","statefulSet":"x"}'];
    const odd = [
      { ...update, via: 'scale' },
      { ...update, strategy: 'Other' },
      { ...update, from: '3' },
      { ...update, kind: 'other' },
      { kind: 'scale', ...set, from: 3, to: 2.5, via: 'scale' },
    ];
    for (const text of [...texts, ...odd.map((one) => JSON.stringify(one)), ' '.repeat(10_000)])
      expect(decodeRequest(text), text).toBeUndefined();
    expect(encodeRequest({ ...update, relabels: ['x'.repeat(10_000)] })).toBeUndefined();
  });
});

describe('the id of a decision', () => {
  const guarded = group({ zones: [{ name: 'a', noDownscale: true }, 'b'] });
  const [scale] = requests as readonly [AdmissionRequest];
  const idOf = (request: AdmissionRequest, overrides: Parameters<typeof snapshotOf>[0] = {}) =>
    judge(snapshotOf({ groups: [guarded], ...overrides }), request).decisionId;

  it('is that of the request, the object as it was made, the rule and the policies', () => {
    const others = [
      idOf({ ...scale, statefulSet: 'ingester-zone-b' } as AdmissionRequest),
      idOf({ ...scale, to: 1 } as AdmissionRequest),
      idOf(scale, { statefulSets: [statefulSet({ uid: 'made-anew' })] }),
      idOf(scale, { policyDigest: 'others' }),
      idOf(scale, { groups: [group({ zones: ['a', 'b'] })] }),
      idOf({ kind: 'evictPod', ...pod }),
      idOf({ kind: 'evictPod', ...pod }, { podChanges: { 'ingester-zone-a': { 1: { uid: 'made-anew' } } } }),
    ];
    expect(new Set([idOf(scale), ...others]).size).toBe(others.length + 1);
    expect(idOf(scale)).toMatch(/^[0-9a-f]{12}$/);
  });

  it('is the same for every requester, also as a dry run, and when read again from its text', () => {
    expect(idOf({ ...scale, user: 'kim', groups: ['oncall'], dryRun: true })).toBe(idOf(scale));
    for (const request of requests) expect(idOf(decodeRequest(encodeRequest(request) ?? '') ?? scale)).toBe(idOf(request));
  });
});
