import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeLedger, encodeLedger, ledgerByteLimit } from '../../../engine/ledger/ledger-document.ts';
import type { RunState } from '../../../engine/run/run-state.ts';
import { type Claim, isUnknown, type Ledger, type Preparation } from '../../../engine/snapshot.ts';

const identity = { namespace: 'mimir', group: 'ingester' };
const empty: Ledger = { ...identity, claims: [], downscales: [], preparations: [] };

function written(ledger: Partial<Ledger>): string {
  const text = encodeLedger({ ...empty, ...ledger });
  if (isUnknown(text)) throw new Error(text.unknown);
  return text;
}

const claim = (ordinal: number): Claim => ({
  verb: 'deletePod',
  zone: 'a',
  uid: `uid-${ordinal}`,
  ordinal,
  atMs: 5,
  epoch: 3,
  resourceVersion: `${ordinal + 100}`,
});

describe('a written ledger', () => {
  it('names the ordinals of a batch as ranges', () => {
    const { claims } = JSON.parse(written({ claims: [claim(4), claim(0), claim(1), claim(2)] })) as { claims: unknown };
    expect(claims).toEqual([
      {
        verb: 'deletePod',
        zone: 'a',
        atMs: 5,
        epoch: 3,
        ordinals: '0-2,4',
        uids: ['uid-0', 'uid-1', 'uid-2', 'uid-4'],
        resourceVersions: ['100', '101', '102', '104'],
      },
    ]);
  });

  it('keeps two pods of one ordinal apart', () => {
    const claims = [claim(1), { ...claim(1), uid: 'other' }];
    expect(decodeLedger(written({ claims }), identity)).toMatchObject({ claims: expect.arrayContaining(claims) });
  });

  it('is rejected if it is too long, without an exception', () => {
    const preparations = Array.from(
      { length: 5000 },
      (_, ordinal): Preparation => ({
        zone: 'a',
        ordinal,
        podUid: `${ordinal}`.padStart(64),
        call: 'delayed',
        state: 'prepared',
        seenMs: 1,
      }),
    );
    expect(encodeLedger({ ...empty, preparations })).toEqual({
      unknown: `the ledger of mimir/ingester is longer than ${ledgerByteLimit} bytes`,
    });
  });

  it('keeps the requester, and merges only entries of one requester', () => {
    const claims = [claim(0), { ...claim(1), user: 'kim' }, { ...claim(2), user: 'kim' }, { ...claim(3), user: 'robin "R" \u0000' }];
    const scale: Claim = { verb: 'scaleDown', zone: 'a', uid: 'set', from: 3, to: 2, atMs: 5, user: 'kim' };
    const text = written({ claims: [...claims, scale] });
    expect((JSON.parse(text) as { claims: unknown[] }).claims).toHaveLength(4);
    expect(decodeLedger(text, identity)).toMatchObject({ claims: expect.arrayContaining([...claims, scale]) });
  });

  it('fits for a hundred claims and twice 2,100 prepared pods', () => {
    const claims = Array.from({ length: 100 }, (_, ordinal) => ({ ...claim(ordinal), uid: uuid(ordinal) }));
    const preparations = ['a', 'b', 'c'].flatMap((zone) =>
      (['delayed', 'prepare'] as const).flatMap((call) =>
        Array.from(
          { length: 700 },
          (_, ordinal): Preparation => ({
            zone,
            ordinal,
            podUid: uuid(ordinal),
            call,
            state: 'prepared',
            seenMs: 1_700_000_000_000,
            ...(call === 'delayed' && { reportedMs: 1_700_000_000_000 + ordinal }),
          }),
        ),
      ),
    );
    expect(decodeLedger(written({ claims, preparations }), identity)).toMatchObject({ claims, preparations: { length: 4200 } });
  });

  it('is rejected if it could not be read again', () => {
    expect(encodeLedger({ ...empty, claims: [{ ...claim(1), zone: 'No Zone' }] })).toEqual({
      unknown: expect.stringContaining('cannot be read'),
    });
  });
});

function uuid(ordinal: number): string {
  return `00000000-0000-4000-8000-${`${ordinal}`.padStart(12, '0')}`;
}

describe('a ledger during reading', () => {
  const good = JSON.parse(written({ claims: [claim(1)] })) as Record<string, unknown>;
  const [goodClaim] = good['claims'] as readonly Record<string, unknown>[];
  const changed = (change: Record<string, unknown>): string => JSON.stringify({ ...good, ...change });
  const withClaim = (change: Record<string, unknown>): string => changed({ claims: [{ ...goodClaim, ...change }] });

  it('is empty if it is missing', () => {
    expect(decodeLedger(undefined, identity)).toEqual(empty);
  });

  it('is accepted in a newer minor format, without the new fields', () => {
    expect(decodeLedger(changed({ format: '1.7', added: true }), identity)).toEqual({ ...empty, claims: [claim(1)] });
  });

  it.each([
    ['a newer major format', changed({ format: '3.0' }), 'which only a newer version reads; this version reads 1 and 2'],
    ['an older major format', changed({ format: '0.9' }), 'is no longer read'],
    ['no format', changed({ format: undefined }), 'names no format version'],
    ['a format that is no text', changed({ format: 1 }), 'names no format version'],
    ['no JSON', '{', 'is not JSON'],
    ['nothing', '', 'is not JSON'],
    ['another value', 'null', 'names no format version'],
    ['too much', ' '.repeat(ledgerByteLimit + 1), 'is longer than'],
    ['another group', changed({ group: 'other' }), 'belongs to mimir/other'],
    ['another namespace', changed({ namespace: 'loki' }), 'belongs to loki/ingester'],
    ['claims that are no list', changed({ claims: {} }), 'cannot be read: claims'],
    ['an unknown verb', withClaim({ verb: 'explode' }), 'cannot be read: claims.0'],
    ['a zone that is no name', withClaim({ zone: '../b' }), 'cannot be read: claims.0'],
    ['an instant as text', withClaim({ atMs: '5' }), 'cannot be read: claims.0'],
    ['more ordinals than UIDs', withClaim({ ordinals: '0-9999999999' }), 'lists of different lengths'],
    ['fewer ordinals than UIDs', withClaim({ uids: ['a', 'b'], resourceVersions: ['1', '2'] }), 'lists of different lengths'],
    ['ordinals that fall', withClaim({ ordinals: '4,1', uids: ['a', 'b'], resourceVersions: ['1', '2'] }), 'lists of different lengths'],
    [
      'fewer instants than UIDs',
      changed({ preparations: [{ zone: 'a', call: 'prepare', state: 'asked', seenMs: [1], ordinals: '0-1', uids: ['x', 'y'] }] }),
      'lists of different lengths',
    ],
    ['fewer versions than UIDs', withClaim({ resourceVersions: [] }), 'lists of different lengths'],
    ['a key of JavaScript', written({}).replace('"downscales"', '"__proto__":{"claims":[]},"downscales"'), '__proto__'],
    ['a key of JavaScript in other letters', written({}).replace('"downscales"', '"\\u005f_proto__":{},"downscales"'), '__proto__'],
    ['no lists at all', JSON.stringify({ format: '1.0', ...identity }), 'cannot be read: claims'],
  ])('is unknown if it contains %s', (_case, text, why) => {
    expect(decodeLedger(text, identity)).toEqual({ unknown: expect.stringContaining(why) });
  });

  it('reads the name of a JavaScript property in a message as text', () => {
    const failed: Preparation = { zone: 'a', ordinal: 1, podUid: 'u', call: 'prepare', state: 'failed', seenMs: 1, message: '__proto__' };
    expect(decodeLedger(written({ preparations: [failed] }), identity)).toEqual({ ...empty, preparations: [failed] });
  });
});

const instants = fc.integer({ min: 0, max: 2_000_000_000_000 });
const zones = fc.constantFrom('a', 'b', 'zone-c', 'constructor', 'ingester.zone-d');
const uids = fc.string({ maxLength: 12 });
const podClaims = fc
  .record(
    {
      verb: fc.constantFrom('deletePod' as const, 'evictPod' as const),
      zone: zones,
      uid: uids,
      ordinal: fc.nat(8),
      atMs: fc.constantFrom(1, 2),
      epoch: fc.nat(2),
      resourceVersion: fc.string({ maxLength: 3 }),
    },
    { requiredKeys: ['verb', 'zone', 'uid', 'atMs'] },
  )
  .map((made): Claim => made);
const scaleClaims = fc
  .record({ zone: zones, uid: uids, from: fc.nat(9), to: fc.nat(9), atMs: instants })
  .map((made): Claim => ({ verb: 'scaleDown', ...made }));
const preparations = fc
  .record(
    {
      zone: zones,
      ordinal: fc.nat(6),
      podUid: uids,
      call: fc.constantFrom('delayed' as const, 'prepare' as const),
      state: fc.constantFrom('asked' as const, 'prepared' as const, 'failed' as const),
      seenMs: fc.constantFrom(1, 2),
      reportedMs: fc.constantFrom(1, 2),
      answeredMs: fc.constantFrom(1, 2),
      sinceMs: fc.constantFrom(1, 2),
      message: fc.string(),
      isWithdrawn: fc.constant(true as const),
    },
    { requiredKeys: ['zone', 'ordinal', 'podUid', 'call', 'state', 'seenMs'] },
  )
  .map((made): Preparation => made);
const cores = fc.record({
  id: fc.string({ minLength: 1 }),
  kind: fc.constant('rollout' as const),
  target: fc.dictionary(zones, uids).map((made) => ({ ...made })),
  previous: fc.constant({}),
  startedMs: instants,
  wave: fc.nat(3),
  waveStartedMs: instants,
  movableMs: instants,
  movableAsOfMs: instants,
  isMovable: fc.boolean(),
});
const outcomes = fc.oneof(
  fc.constant({ outcome: 'running' as const }),
  fc.record({ outcome: fc.constant('failed' as const), failure: fc.string(), failedMs: instants }),
  fc.record({ outcome: fc.constant('completed' as const), completedMs: instants }),
);
const runs = fc.tuple(cores, outcomes).map(([core, outcome]): RunState => ({ ...core, ...outcome }));
const ledgers = fc
  .record(
    {
      claims: fc.array(fc.oneof(podClaims, scaleClaims), { maxLength: 12 }),
      downscales: fc.array(fc.record({ zone: zones, atMs: instants, from: fc.nat(), to: fc.nat() }), { maxLength: 4 }),
      preparations: fc.array(preparations, { maxLength: 12 }),
      run: runs,
      epoch: fc.nat(),
      endedCancels: fc.array(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 3 }),
    },
    { requiredKeys: ['claims', 'downscales', 'preparations'] },
  )
  .map((made): Ledger => ({ ...identity, ...made }));

describe('any ledger', () => {
  it('is the same after writing and reading, with the same bytes', () => {
    fc.assert(
      fc.property(ledgers, (ledger) => {
        const text = written(ledger);
        const read = decodeLedger(text, identity);
        if (isUnknown(read)) throw new Error(read.unknown);
        expect(bag(read)).toEqual(bag(ledger));
        expect(encodeLedger(read)).toBe(text);
      }),
    );
  });

  it('has the same bytes in any order of its lists', () => {
    fc.assert(
      fc.property(ledgers, (ledger) => {
        const turned = {
          ...ledger,
          claims: [...ledger.claims].reverse(),
          downscales: [...ledger.downscales].reverse(),
          preparations: [...ledger.preparations].reverse(),
        };
        expect(encodeLedger(turned)).toBe(encodeLedger(ledger));
      }),
    );
  });
});

/** The ledger without the order of its lists. */
function bag(ledger: Ledger): unknown {
  const inOrder = (rows: readonly object[]) =>
    rows.map((row) => JSON.stringify(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1)))).sort();
  return {
    ...ledger,
    claims: inOrder(ledger.claims),
    downscales: inOrder(ledger.downscales),
    preparations: inOrder(ledger.preparations),
  };
}
