import { describe, expect, it } from 'vitest';
import type { AdmissionRequest } from '../../../engine/decision.ts';
import { judge } from '../../../engine/judge/judge.ts';
import { decodeRequest, encodeRequest } from '../../../engine/judge/request-text.ts';
import { group } from '../../kit/groups.ts';
import { statefulSet } from '../../kit/objects.ts';
import { snapshotOf } from '../../kit/snapshots.ts';

const set = { namespace: 'mimir', statefulSet: 'ingester-zone-a', dryRun: false } as const;
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
  it('is the same when it is read again, but for who asked and whether it was tried out', () => {
    for (const request of requests) {
      const text = encodeRequest({ ...request, user: 'kim', dryRun: true }) ?? '';
      expect(text).not.toContain('kim');
      expect(decodeRequest(text)).toEqual(JSON.parse(JSON.stringify(request)));
    }
  });

  it('is absent when it says something else', () => {
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
