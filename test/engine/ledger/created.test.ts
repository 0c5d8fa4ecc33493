import { describe, expect, it } from 'vitest';
import { createdPods } from '../../../engine/ledger/created.ts';
import { observeLedger } from '../../../engine/ledger/ledger.ts';
import { decodeLedger, encodeLedger } from '../../../engine/ledger/ledger-document.ts';
import { isUnknown, type Ledger } from '../../../engine/snapshot.ts';
import { group, type ZoneOverrides } from '../../kit/groups.ts';
import { kitNowMs, type PodChanges, type StatefulSetOverrides, statefulSet } from '../../kit/objects.ts';
import { ledgerOf, preparation } from '../../kit/questions.ts';
import { type SnapshotOverrides, snapshotOf } from '../../kit/snapshots.ts';

const endpoint = { scheme: 'http', port: 8080, path: '/prepare', timeout: '5s' } as const;
const delayed = { delayed: { afterMs: 60_000, endpoint, onUnreachable: 'hold' } } as const;
const prepare = { prepare: { endpoint, onFailure: 'deny' } } as const;

interface Given {
  readonly zone?: Omit<ZoneOverrides, 'name'>;
  readonly set?: StatefulSetOverrides;
  readonly missing?: readonly number[];
  readonly ledger?: Partial<Ledger>;
  readonly snapshot?: SnapshotOverrides;
}

function seenIn({ zone = delayed, set, missing = [], snapshot }: Given) {
  const podChanges: PodChanges = Object.fromEntries(missing.map((ordinal) => [ordinal, 'missing']));
  const definition = group({ zones: [{ name: 'a', ...zone }] });
  const overrides = { statefulSets: [statefulSet(set)], podChanges: { 'ingester-zone-a': podChanges }, ...snapshot };
  return { definition, snapshot: snapshotOf({ groups: [definition], ...overrides }) };
}

function created(given: Given) {
  const { definition, snapshot } = seenIn(given);
  return createdPods(ledgerOf(given.ledger), definition, snapshot);
}

const uid = 'uid-ingester-zone-a';
const known = (ordinals: string) => ({ created: [{ zone: 'a', uid, ordinals }] });
const counts = (replicas: number, counted: number): StatefulSetOverrides => ({ replicas, status: { replicas: counted } });

describe('the created ordinals', () => {
  it('are the ordinals of pods in zones that prepare', () => {
    expect(created({})).toEqual(known('0-2').created);
    expect(created({ zone: prepare })).toEqual(known('0-2').created);
    expect(created({ zone: {} })).toEqual([]);
  });

  it('keep a lost pod, and add no pod that was never created', () => {
    expect(created({ ledger: known('0-2'), missing: [2], set: counts(3, 2) })).toEqual(known('0-2').created);
    expect(created({ ledger: known('0-2'), missing: [3, 4], set: counts(5, 3) })).toEqual(known('0-2').created);
    expect(created({ ledger: known('0-2'), missing: [3], set: counts(5, 4) })).toEqual(known('0-2,4').created);
  });

  it('lose an ordinal that the StatefulSet no longer has', () => {
    expect(created({ ledger: known('0-4'), set: counts(3, 3) })).toEqual(known('0-2').created);
    expect(created({ ledger: known('0-2'), set: counts(0, 0) })).toEqual(known('').created);
  });

  it('are at first also the pods that the status counts, or that an older agent called or claimed', () => {
    expect(created({ missing: [2], set: counts(3, 3) })).toEqual(known('0-2').created);
    expect(created({ missing: [2], set: counts(3, 2) })).toEqual(known('0-1').created);
    expect(created({ missing: [2], set: counts(3, 2), ledger: { preparations: [preparation(2)] } })).toEqual(known('0-2').created);
    expect(created({ missing: [2], set: counts(3, 2), ledger: { preparations: [preparation(2, { podUid: '' })] } })).toEqual(
      known('0-1').created,
    );
    const claim = { verb: 'evictPod', zone: 'a', uid: 'gone', ordinal: 2, atMs: kitNowMs } as const;
    expect(created({ missing: [2], set: counts(3, 2), ledger: { claims: [claim] } })).toEqual(known('0-2').created);
  });

  it('stay for another StatefulSet of the same name, because its pods get the same volumes', () => {
    const former = { created: [{ zone: 'a', uid: 'former', ordinals: '0-4' }] };
    expect(created({ ledger: former, set: counts(5, 3), missing: [3, 4] })).toEqual(known('0-4').created);
  });

  it('stay while the StatefulSet or its pods cannot be read', () => {
    const unread = { pods: [{ namespace: 'mimir', statefulSet: 'ingester-zone-a', pods: { unknown: 'lost' } }] };
    expect(created({ ledger: known('0-4'), snapshot: unread })).toEqual(known('0-4').created);
    expect(created({ snapshot: unread })).toEqual([]);
    const { definition } = seenIn({});
    expect(createdPods(ledgerOf(known('0-4')), definition, { statefulSets: [], pods: [] })).toEqual(known('0-4').created);
  });

  it('name a bounded number of pods for any status', () => {
    const [row] = created({ missing: [0, 1, 2], set: counts(2_147_483_647, 2_147_483_647), snapshot: { pods: [noPods] } });
    expect(row).toEqual({ zone: 'a', uid, ordinals: '0-999' });
  });
});

const noPods = { namespace: 'mimir', statefulSet: 'ingester-zone-a', pods: [] };

describe('a ledger with created ordinals', () => {
  const look = (ledger: Ledger, given: Given = {}) => observeLedger(ledger, seenIn(given).snapshot, { keepDownscalesMs: 3_600_000 });

  it('is the same value if it has not changed, and is empty without zones that prepare', () => {
    const once = look(ledgerOf());
    expect(once.created).toEqual(known('0-2').created);
    expect(look(once)).toBe(once);
    expect(look(once, { zone: {} })).toEqual(ledgerOf());
  });

  it('can be read again', () => {
    for (const ordinals of ['0-2,4', '']) {
      const ledger = ledgerOf(known(ordinals));
      const text = encodeLedger(ledger);
      if (isUnknown(text)) throw new Error(text.unknown);
      expect(JSON.parse(text)).toMatchObject({ format: '1.2' });
      expect(decodeLedger(text, ledger)).toEqual(ledger);
    }
    expect(decodeLedger(JSON.stringify({ ...ledgerOf(known('2-1,x')), format: '1.2' }), ledgerOf())).toMatchObject({
      unknown: expect.stringContaining('created'),
    });
  });
});
