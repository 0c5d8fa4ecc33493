import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { stopActions } from '../../../engine/run/requests.ts';
import { stampEndpoint } from '../../../webhook/native/stamp-endpoint.ts';
import type { Answer, Review } from '../../../webhook/review/review.ts';
import { ada, call, type Json, mallory, nowMs, patched, reviewOf } from './our-reviews.ts';

const approval = { group: 'ingester', action: 'approve', wave: 'rest' };
const exception = {
  rule: 'zone-gap',
  target: { group: 'ingester' },
  allow: { anything: true },
  reason: 'moving',
  expires: '2026-12-01T00:00:00Z',
};
const byAda = { user: 'ada', groups: ada.groups, at: '2026-11-20T10:00:00.000Z' };
const byAdaYesterday = { ...byAda, at: '2026-11-19T10:00:00.000Z' };

function stamp(review: Review, atMs = nowMs): Promise<Answer> {
  return stampEndpoint({ clock: { nowMs: () => atMs, monotonicMs: () => 0 } }).handle(review, call);
}

/** What the field says after the stamp. */
async function stampedBy(review: Review): Promise<unknown> {
  const { allowed, patch } = await stamp(review);
  expect(allowed).toBe(true);
  const { spec } = patched(review, patch).object as { readonly spec: Json };
  return spec['requestedBy'];
}

describe('the stamp', () => {
  it.each([
    ['RolloutIntent', approval],
    ['RolloutException', exception],
  ])('names the creator of a %s', async (kind, spec) => {
    const { allowed, patch } = await stamp(reviewOf(kind, spec));
    expect({ allowed, patch }).toEqual({
      allowed: true,
      patch: [
        { op: 'test', path: '/kind', value: kind },
        { op: 'add', path: '/spec/requestedBy', value: byAda },
      ],
    });
  });

  it('overwrites a stamp that users write themselves on create', async () => {
    const forged = { ...byAda, user: 'mallory', groups: ['system:masters'] };
    expect((await stamp(reviewOf('RolloutIntent', { ...approval, requestedBy: forged }))).patch).toEqual([
      { op: 'test', path: '/spec/requestedBy', value: forged },
      { op: 'replace', path: '/spec/requestedBy', value: byAda },
    ]);
    for (const wrong of [
      'ada',
      null,
      [],
      7,
      { user: 'ada' },
      { ...byAda, groups: [] },
      { ...byAda, at: 'now' },
      byAdaYesterday,
      { ...byAda, more: 1 },
    ]) {
      expect(await stampedBy(reviewOf('RolloutIntent', { ...approval, requestedBy: wrong }))).toEqual(byAda);
    }
  });

  it('is kept by updates with the same request', async () => {
    const old = { ...approval, requestedBy: byAdaYesterday };
    for (const touched of [old, approval, { ...approval, requestedBy: { ...byAda, user: 'mallory' } }]) {
      expect(await stampedBy(reviewOf('RolloutIntent', touched, { oldSpec: old, user: mallory }))).toEqual(byAdaYesterday);
    }
  });

  it('is not added by an update of an object without one', async () => {
    const claimed = { ...approval, requestedBy: byAda };
    expect((await stamp(reviewOf('RolloutIntent', claimed, { oldSpec: approval, user: mallory }))).patch).toEqual([
      { op: 'test', path: '/spec/requestedBy', value: byAda },
      { op: 'remove', path: '/spec/requestedBy' },
    ]);
  });

  it('names the user who changes the request: no user approves under the name of another user', async () => {
    const old = { group: 'ingester', action: 'pause', requestedBy: byAdaYesterday };
    const changed = { ...approval, requestedBy: byAdaYesterday };
    expect(await stampedBy(reviewOf('RolloutIntent', changed, { oldSpec: old, user: mallory }))).toMatchObject({
      user: 'mallory',
      groups: mallory.groups,
    });
  });

  it('is new each time the same user changes the request, also within a moment', async () => {
    const old = { ...approval, requestedBy: { ...byAda, at: new Date(nowMs - 2_000).toISOString() } };
    for (const requestedBy of [old.requestedBy, undefined]) {
      const { requestedBy: _old, ...rest } = old;
      const changed = { ...rest, digest: 'd'.repeat(32), ...(requestedBy === undefined ? {} : { requestedBy }) };
      expect(await stampedBy(reviewOf('RolloutIntent', changed, { oldSpec: old }))).toEqual(byAda);
    }
  });

  it('is the same in a dry run', async () => {
    const review = reviewOf('RolloutIntent', approval);
    expect(await stamp({ ...review, dryRun: true })).toEqual(await stamp(review));
  });

  it.each<[string, Partial<Review>]>([
    ['deletions', { operation: 'DELETE' }],
    ['subresources', { subresource: 'status' }],
    ['other kinds of ours', { resource: { group: 'rollout-group.dev', version: 'v1alpha1', resource: 'rolloutgroups' } }],
    ['other groups', { resource: { group: 'example.com', version: 'v1', resource: 'rolloutintents' } }],
  ])('does not change %s, also on failure', async (_what, changes) => {
    const review = reviewOf('RolloutIntent', approval, changes);
    expect(await stamp(review)).toEqual({ allowed: true });
    expect(stampEndpoint({ clock: { nowMs: () => nowMs, monotonicMs: () => 0 } }).onFailure(review, 'it is late')).toEqual({
      allowed: true,
    });
  });

  it('leaves the error to the schema of the kind if there is no spec', async () => {
    const review = reviewOf('RolloutIntent', approval);
    expect(await stamp({ ...review, object: { ...review.object, spec: 'none' } })).toEqual({ allowed: true });
  });

  it('denies a request if the requester cannot be recorded', async () => {
    const { object: _object, ...without } = reviewOf('RolloutIntent', approval);
    const answers = [
      await stamp(reviewOf('RolloutIntent', approval, { user: { name: '', groups: [] } })),
      await stamp(reviewOf('RolloutIntent', approval, { user: { name: 'x'.repeat(513), groups: [] } })),
      await stamp(without),
      stampEndpoint({ clock: { nowMs: () => nowMs, monotonicMs: () => 0 } }).onFailure(reviewOf('RolloutIntent', approval), 'it is late'),
    ];
    expect(answers.map(({ allowed, code, message }) => [allowed, code, message])).toEqual([
      [false, 403, 'the request is denied because the requester cannot be stored: the API server names no user'],
      [false, 403, 'the request is denied because the requester cannot be stored: the name of the user is longer than 512 characters'],
      [false, 400, 'the request is denied because the requester cannot be stored: the request has no object'],
      [false, 500, 'the request is denied because the requester cannot be stored: it is late'],
    ]);
  });

  it.each(stopActions)('is omitted from a new %s if it cannot be written, and any other value is removed', async (action) => {
    const forged = { ...byAda, user: 'mallory' };
    const endpoint = stampEndpoint({ clock: { nowMs: () => nowMs, monotonicMs: () => 0 } });
    for (const [spec, patch] of [
      [{ group: 'ingester', action }, []],
      [
        { group: 'ingester', action, requestedBy: forged },
        [
          { op: 'test', path: '/spec/requestedBy', value: forged },
          { op: 'remove', path: '/spec/requestedBy' },
        ],
      ],
    ] as const) {
      const stop = reviewOf('RolloutIntent', spec);
      const warned = { allowed: true, ...(patch.length === 0 ? {} : { patch }) };
      expect(endpoint.onFailure(stop, 'it is late')).toEqual({ ...warned, warnings: ['the requester is not verified: it is late'] });
      expect(await stamp({ ...stop, user: { name: '', groups: [] } })).toMatchObject(warned);
    }
  });

  it.each([
    ['an approval that becomes a pause', approval, { group: 'ingester', action: 'pause' }],
    [
      'a pause that changes',
      { group: 'ingester', action: 'pause' },
      { group: 'ingester', action: 'pause', expires: '2026-11-20T10:00:01Z' },
    ],
  ])('is required for %s', (_what, oldSpec, spec) => {
    const endpoint = stampEndpoint({ clock: { nowMs: () => nowMs, monotonicMs: () => 0 } });
    expect(endpoint.onFailure(reviewOf('RolloutIntent', spec, { oldSpec }), 'it is late')).toMatchObject({ allowed: false, code: 500 });
  });

  it('omits groups above the limit of the schema', async () => {
    const groups = ['y'.repeat(513), ...Array.from({ length: 250 }, (_, index) => `team-${index}`)];
    const stamped = (await stampedBy(reviewOf('RolloutIntent', approval, { user: { name: 'ada', groups } }))) as {
      readonly groups: readonly string[];
    };
    expect([stamped.groups.length, stamped.groups[0]]).toEqual([200, 'team-0']);
  });

  it('S33: stamping again changes nothing, also a moment later in another process, and a patch tests before it writes', async () => {
    const stamps = fc.oneof(
      fc.constant(undefined),
      fc.constant(byAda),
      fc.constant(byAdaYesterday),
      fc.record({
        user: fc.constantFrom('ada', 'mallory', ''),
        groups: fc.array(fc.string(), { maxLength: 2 }),
        at: fc.constant(byAda.at),
      }),
      fc.jsonValue(),
    );
    const specs = fc.record({ action: fc.constantFrom('pause', 'approve'), requestedBy: stamps }, { requiredKeys: ['action'] });
    await fc.assert(
      fc.asyncProperty(specs, fc.option(specs, { nil: undefined }), fc.constantFrom(ada, mallory), async (spec, oldSpec, user) => {
        const clean = (one: Json): Json => JSON.parse(JSON.stringify({ group: 'ingester', ...one }));
        const review = reviewOf('RolloutIntent', clean(spec), { user, ...(oldSpec === undefined ? {} : { oldSpec: clean(oldSpec) }) });
        const { patch = [] } = await stamp(review);
        expect(patch.length).toBeLessThanOrEqual(2);
        if (patch.length > 0) expect(patch[0]?.op).toBe('test');
        expect((await stamp(patched(review, patch), nowMs + 3_000)).patch ?? []).toEqual([]);
      }),
    );
  });
});
