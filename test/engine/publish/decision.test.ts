import { describe, expect, it } from 'vitest';
import { decide } from '../../../engine/decide/decide.ts';
import type { GroupDecision } from '../../../engine/decision.ts';
import { ledgerName } from '../../../engine/ledger/ledger-document.ts';
import { bytesOf } from '../../../engine/publish/bounds.ts';
import { publishedDecision, publishedReadings, samePublished } from '../../../engine/publish/decision.ts';
import { isStatusMapName, type PublishedDecision, publishedByteLimit, statusMapName } from '../../../engine/publish/published.ts';
import { readPublished } from '../../../engine/publish/read.ts';
import { groupStatus } from '../../../engine/publish/status.ts';
import { factAt } from '../../../engine/rule.ts';
import type { Claim, Snapshot } from '../../../engine/snapshot.ts';
import type { GroupDefinition } from '../../../policies/definition.ts';
import { gate, group } from '../../kit/groups.ts';
import { kitNowMs, oldRevision, outdatedStatefulSet, statefulSet } from '../../kit/objects.ts';
import { intent } from '../../kit/questions.ts';
import { type SnapshotOverrides, snapshotOf } from '../../kit/snapshots.ts';

type Input = Parameters<typeof publishedDecision>[0];
type Extra = Omit<Input, 'group' | 'decision' | 'snapshot' | 'atMs'> & Partial<Pick<Input, 'decision'>>;

function publish(overrides: SnapshotOverrides, extra: Extra = {}): PublishedDecision {
  const snapshot = snapshotOf(overrides);
  return publishedDecision({ ...parts(snapshot), snapshot, atMs: snapshot.nowMs, ...extra });
}

function parts(snapshot: Snapshot): { readonly group: GroupDefinition; readonly decision: GroupDecision } {
  const [one] = snapshot.groups;
  const [decision] = decide(snapshot).groups;
  if (one === undefined || decision === undefined) throw new Error('the snapshot has no group');
  return { group: one, decision };
}

const zones = ['a', 'b', 'c'];
const sets = zones.map((zone) => outdatedStatefulSet({ name: `ingester-zone-${zone}` }));
const rolling: SnapshotOverrides = { groups: [group({ zones })], statefulSets: sets };
const unready = { 1: { isReady: false, containersReady: false } };
/** Not for so long that it would count as stuck. */
const unreadyNow = { 1: { ...unready[1], readyChangedMs: kitNowMs - 60_000 } };
const held: SnapshotOverrides = { ...rolling, podChanges: { 'ingester-zone-a': unreadyNow, 'ingester-zone-b': unreadyNow } };

describe('a published decision', () => {
  it('names phase, progress, zones, steps with their rules, and the agent', () => {
    expect(publish(rolling, { leader: 'agent-1', origin: 'objects' })).toMatchObject({
      format: '1.0',
      namespace: 'mimir',
      group: 'ingester',
      phase: 'Rolling',
      phaseSinceMs: kitNowMs,
      outcome: 'act',
      zones: zones.map((zone) => ({ zone, replicas: 3, updated: 0, revisions: [{ revision: oldRevision, ordinals: '0-2' }] })),
      steps: [
        { kind: 'roll', podCount: 3, results: expect.arrayContaining([expect.objectContaining({ rule: 'zone-budget', outcome: 'ok' })]) },
      ],
      leader: 'agent-1',
      origin: 'objects',
      decidedMs: kitNowMs,
      omitted: [],
    });
  });

  it('names the kind of a run like the history, and whether the run returns to the earlier revisions', () => {
    const { decision } = parts(snapshotOf(rolling));
    const shown = (change: Partial<NonNullable<GroupDecision['run']>>): unknown => {
      const run = { ...decision.run, ...change } as NonNullable<GroupDecision['run']>;
      const { kind, returns } = publish(rolling, { decision: { ...decision, run } }).run ?? {};
      return [kind, returns];
    };
    expect(shown({})).toEqual(['rollout', undefined]);
    expect(shown({ kind: 'rollback' })).toEqual(['rollout', true]);
    expect(shown({ kind: 'rollback', origin: { isUndo: true } })).toEqual(['rollback', undefined]);
    expect(shown({ kind: 'rollout', origin: { isUndo: true } })).toEqual(['rollback', false]);
  });

  it('names each requester with a grant, the latest first, and no requester for claims of the agent', () => {
    const claims = Array.from(
      { length: 7 },
      (_, ordinal): Claim => ({
        verb: 'evictPod',
        zone: 'a',
        uid: `u${ordinal}`,
        ordinal,
        atMs: kitNowMs - 10_000 + ordinal,
        ...(ordinal === 6 ? { epoch: 1 } : { user: `user-${ordinal}` }),
      }),
    );
    const shrink: Claim = { verb: 'scaleDown', zone: 'b', uid: 'set', from: 3, to: 2, atMs: kitNowMs, user: 'kim' };
    const ledger = { namespace: 'mimir', group: 'ingester', claims: [...claims, shrink], downscales: [], preparations: [] };
    const published = publish(rolling, { ledger });
    expect(published.openClaims).toBe(8);
    expect(published.reservations?.map(({ what, user }) => `${what}: ${user}`)).toEqual([
      'scale zone b from 3 to 2: kim',
      ...[5, 4, 3, 2].map((ordinal) => `evict pod ${ordinal} of zone a: user-${ordinal}`),
    ]);
    expect(readPublished(JSON.stringify(published))).toEqual(published);
    expect(publish(rolling)).not.toHaveProperty('reservations');
  });

  it('names the pods that are replaced or not ready, the worst first, and no others', () => {
    const podChanges = {
      'ingester-zone-a': { 0: { isTerminating: true }, 1: { isReady: false }, 2: 'missing' as const },
      'ingester-zone-b': { 0: { isReady: false, waitingReasons: ['ErrImagePull'] }, 1: { isReady: false, nodeReady: false } },
    };
    const { pods } = publish({ ...rolling, podChanges });
    expect(pods.map(({ pod, state, reason }) => `${pod} ${state}${reason === undefined ? '' : ` ${reason}`}`)).toEqual([
      'ingester-zone-b-0 crashing ErrImagePull',
      'ingester-zone-b-1 nodeDown',
      'ingester-zone-a-1 unready',
      'ingester-zone-a-2 missing',
      'ingester-zone-a-0 terminating',
    ]);
  });

  it('has the start of a state, and no other time', () => {
    const terminatingSinceMs = kitNowMs - 5000;
    const podChanges = {
      'ingester-zone-a': { 0: { isTerminating: true, terminatingSinceMs }, 1: { isReady: false, readyChangedMs: kitNowMs - 9000 } },
      'ingester-zone-b': { 0: { isTerminating: true } },
    };
    const { pods } = publish({ ...rolling, podChanges });
    expect(Object.fromEntries(pods.map(({ pod, sinceMs }) => [pod, sinceMs]))).toEqual({
      'ingester-zone-a-0': terminatingSinceMs,
      'ingester-zone-a-1': kitNowMs - 9000,
      'ingester-zone-b-0': undefined,
    });
  });

  it('names at most 50 pods and the number of the others', () => {
    const big = outdatedStatefulSet({ name: 'ingester-zone-a', replicas: 80 });
    const podChanges = { 'ingester-zone-a': Object.fromEntries(Array.from({ length: 80 }, (_, ordinal) => [ordinal, { isReady: false }])) };
    const { pods, omitted } = publish({ groups: [group({ zones: ['a'] })], statefulSets: [big], podChanges });
    expect([pods.length, omitted]).toEqual([50, ['pods: 30']]);
  });

  it('restarts the time of a pause that replaces another pause', () => {
    const paused = (name: string) => ({ ...rolling, intents: [intent({ name, action: 'pause' })] });
    const sinceOf = ({ waits }: PublishedDecision) => waits.map(({ rule, sinceMs }) => [rule, sinceMs - kitNowMs]);
    const first = publish(paused('one'));
    expect(sinceOf(publish({ ...paused('one'), nowMs: kitNowMs + 60_000 }, { previous: first }))).toEqual([['paused', 0]]);
    expect(sinceOf(publish({ ...paused('two'), nowMs: kitNowMs + 60_000 }, { previous: first }))).toEqual([['paused', 60_000]]);
  });

  it('keeps the start of the phase and of each wait', () => {
    const first = publish(held);
    const later = publish({ ...held, nowMs: kitNowMs + 60_000 }, { previous: first });
    expect(first.waits.length).toBeGreaterThan(0);
    expect([later.phaseSinceMs, later.decidedMs]).toEqual([first.phaseSinceMs, kitNowMs + 60_000]);
    expect(later.waits.map(({ rule, sinceMs }) => [rule, sinceMs])).toEqual(first.waits.map(({ rule }) => [rule, kitNowMs]));
    const other = publish({ ...rolling, nowMs: kitNowMs + 60_000 }, { previous: first });
    expect(other.phaseSinceMs).toBe(first.phase === other.phase ? kitNowMs : kitNowMs + 60_000);
  });

  it('names the zones that a wait blocks', () => {
    const [wait] = publish(held).waits;
    expect(wait).toMatchObject({ rule: 'other-zones-ready', zones: [expect.stringMatching(/^[abc]$/)] });
  });

  it('keeps the last turn that had an action', () => {
    const snapshot = snapshotOf(rolling);
    const [action] = parts(snapshot).decision.actions;
    if (action === undefined) throw new Error('the decision has no action');
    const first = publish(rolling, { performed: [{ action, result: 'refused', message: 'budget' }] });
    expect(first.actions).toEqual([
      {
        kind: action.kind,
        zone: 'a',
        what: expect.stringMatching(/^(?:delete|evict) pod ingester-zone-a-\d$/),
        result: 'refused',
        message: 'budget',
        atMs: kitNowMs,
      },
    ]);
    expect(publish({ ...rolling, nowMs: kitNowMs + 1 }, { previous: first }).actions).toEqual(first.actions);
  });

  const wanting = (given: SnapshotOverrides) => ({
    decision: { ...parts(snapshotOf(given)).decision, wantedReadings: [{ gate: 'errors', fromMs: 0 }] },
  });

  it('shows the latest reading of each gate that the decision needs', () => {
    const readings = [
      { atMs: 2, result: 'value' as const, value: 7 },
      { atMs: 3, result: 'noData' as const },
      { atMs: 1, result: 'error' as const, message: 'x' },
    ];
    const given = { ...rolling, groups: [group({ zones, gates: [gate({ name: 'errors' })] })] };
    const read = { ...given, gateReadings: [{ namespace: 'mimir', group: 'ingester', gate: 'errors', readings }] };
    expect(publish(read, wanting(read)).gates).toEqual([
      { gate: 'errors', mode: 'enforce', readings: 3, failures: 2, latest: readings[1] },
    ]);
    // The plugin reads the latest reading, and the failures before it as failures of the same kind.
    const [of = group()] = given.groups;
    const stored = [{ atMs: 2, result: 'noData' }, readings[1]];
    expect(publishedReadings(of, publish(read, wanting(read)))).toEqual([{ ...read.gateReadings[0], readings: stored }]);
    // The agent forgets the readings of a gate that the decision does not need.
    expect(publish(read).gates).toEqual(publish(given).gates);
    expect(publish(given).gates).toEqual([{ gate: 'errors', mode: 'enforce', readings: 0 }]);
  });

  it('can be read again if the latest reading is no finite number', () => {
    for (const value of ['NaN', '+Inf'] as const) {
      const readings = [{ atMs: 2, result: 'notFinite' as const, value }];
      const given = { ...rolling, groups: [group({ zones, gates: [gate({ name: 'errors' })] })] };
      const read = { ...given, gateReadings: [{ namespace: 'mimir', group: 'ingester', gate: 'errors', readings }] };
      const published = publish(read, wanting(read));
      expect(readPublished(JSON.stringify(published))).toEqual(published);
      expect(published.gates[0]?.latest).toEqual({ atMs: 2, result: 'error', message: `the value is ${value}` });
    }
  });
});

describe('a published decision that would be too long', () => {
  const names = Array.from({ length: 50 }, (_, index) => `zone-${index}-${'x'.repeat(50)}`);
  const long = (fact: string): PublishedDecision => {
    const base = publish(rolling);
    const result = { rule: 'zone-gap', outcome: 'wait' as const, fact, limit: fact };
    const step = { ...base.steps[0], id: 'x', kind: 'roll' as const, zone: 'a', outcome: 'wait' as const, podCount: 1 };
    const snapshot = snapshotOf(rolling);
    const { group: one, decision } = parts(snapshot);
    const results = [
      ...Array.from({ length: 40 }, () => ({ ...result, outcome: 'ok' as const })),
      ...Array.from({ length: 5 }, () => result),
    ];
    const changed: GroupDecision = {
      ...decision,
      goal: fact,
      zones: names.map((zone) => ({ ...(decision.zones[0] ?? missing()), zone, statefulSet: `${zone}-set` })),
      steps: names.map((zone) => ({ ...step, id: `roll/${zone}`, zone, pods: [], results })),
      waits: names.map((zone) => ({ ...result, fact: `${zone} ${fact}` })),
      warnings: names.map(() => result),
    };
    return publishedDecision({ group: one, decision: changed, snapshot, atMs: kitNowMs });
  };
  const missing = (): never => {
    throw new Error('the decision has no zone');
  };

  it.each([1, 100, 5000, 300_000])('fits with facts of %i characters, names the omitted parts, and can be read', (length) => {
    const published = long('é'.repeat(length));
    expect(bytesOf(published)).toBeLessThanOrEqual(publishedByteLimit);
    expect(published.omitted.length).toBeGreaterThan(0);
    expect(published.waits.length).toBeGreaterThan(0);
    expect(readPublished(JSON.stringify(published))).toEqual(published);
  });

  it('first drops results that do not block', () => {
    const results = long('x').steps.flatMap((step) => step.results ?? []);
    expect(results.every(({ outcome }) => outcome === 'wait')).toBe(true);
  });
});

describe('two published decisions', () => {
  const shrunk = { zone: 'b', atMs: kitNowMs - 60_000, from: 4, to: 3 };
  const waiting = (nowMs: number, limitMs = 3_600_000): PublishedDecision => {
    const zone = (name: string, count: number) => ({ name, replicas: { kind: 'count' as const, count }, betweenZonesMs: limitMs });
    return publish({
      nowMs,
      groups: [group({ zones: [zone('a', 2), zone('b', 3)] })],
      statefulSets: ['a', 'b'].map((name) => statefulSet({ name: `ingester-zone-${name}` })),
      ledgers: [{ namespace: 'mimir', group: 'ingester', claims: [], downscales: [shrunk], preparations: [] }],
    });
  };

  const noData = (atMs: number) => ({ atMs, result: 'noData' as const });

  it('are equal if only time passed: a stored fact names the time instead of an age', () => {
    const [now, later] = [waiting(kitNowMs), waiting(kitNowMs + 600_000)];
    expect(now.waits.map(({ fact }) => fact)).toEqual(['zone b shrank at 2026-03-02T11:59:00Z']);
    expect(now.waits.map((wait) => factAt(wait, kitNowMs + 600_000))).toEqual(['zone b shrank 11m ago']);
    const ready = groupStatus(now).conditions.find(({ type }) => type === 'Ready');
    expect(ready?.message).toContain('shrank at 2026-03-02T11:59:00Z');
    expect(
      samePublished(now, {
        ...later,
        waits: later.waits.map((wait, index) => ({ ...wait, sinceMs: now.waits[index]?.sinceMs ?? 0 })),
        phaseSinceMs: now.phaseSinceMs,
      }),
    ).toBe(true);
  });

  it.each<[string, (published: PublishedDecision) => PublishedDecision]>([
    ['a phase', (one) => ({ ...one, phase: 'Paused' })],
    ['a limit', (one) => ({ ...one, waits: one.waits.map((wait) => ({ ...wait, limit: '2h' })) })],
    [
      'an earliest instant that moved by an hour',
      (one) => ({ ...one, waits: one.waits.map((wait) => ({ ...wait, earliestMs: (wait.earliestMs ?? 0) + 3_600_000 })) }),
    ],
    [
      'an earliest instant that has passed, a minute later',
      (one) => {
        const decidedMs = (one.waits[0]?.earliestMs ?? 0) + 60_000;
        return { ...one, decidedMs, waits: one.waits.map((wait) => ({ ...wait, earliestMs: decidedMs + 10_000 })) };
      },
    ],
    ['a pod', (one) => ({ ...one, pods: [{ zone: 'a', pod: 'x', state: 'missing' }] })],
    ['the leader', (one) => ({ ...one, leader: 'other' })],
    [
      'a gate reading a minute later',
      (one) => ({ ...one, gates: [{ gate: 'errors', mode: 'enforce', readings: 1, latest: noData(60_000) }] }),
    ],
  ])('differ by %s', (_case, change) => {
    const now: PublishedDecision = { ...waiting(kitNowMs), gates: [{ gate: 'errors', mode: 'enforce', readings: 1, latest: noData(0) }] };
    expect(samePublished(now, change(now))).toBe(false);
    expect(samePublished(now, now)).toBe(true);
  });
});

describe('a stored decision', () => {
  const good = publish(held, { leader: 'x', performed: [] });

  it('is read as text and as a value', () => {
    expect([readPublished(good), readPublished(JSON.stringify(good))]).toEqual([good, good]);
  });

  it('is read in a newer minor format, without the new fields', () => {
    expect(readPublished({ ...good, format: '1.9', added: 1 })).toEqual({ ...good, format: '1.9' });
  });

  it.each<[string, unknown, string]>([
    ['nothing', undefined, 'nothing is published'],
    ['no JSON', '{', 'nothing is published'],
    ['another value', [1], 'is not a decision'],
    ['another major format', { ...good, format: '2.0' }, 'has the format 2.0'],
    ['a field of another type', { ...good, zones: 'all' }, 'cannot be read: zones'],
    ['an unknown phase', { ...good, phase: 'Dancing' }, 'cannot be read: phase'],
    ['an instant that is none', { ...good, decidedMs: Number.POSITIVE_INFINITY }, 'cannot be read: decidedMs'],
    ['too much', { ...good, goal: 'x'.repeat(100_000) }, 'too long'],
  ])('is unknown: %s', (_case, stored, why) => {
    expect(readPublished(stored)).toEqual({ unknown: expect.stringContaining(why) });
  });
});

it.each(['foo', 'foo-status', 'status-foo', 'rollout-status-foo', 'status'])(
  'the decision of group %s has a name that no ledger can have',
  (group) => {
    for (const other of [group, 'foo', `${group}-status`, `status-${group}`]) expect(ledgerName(other)).not.toBe(statusMapName(group));
    expect([isStatusMapName(statusMapName(group)), isStatusMapName(ledgerName(group))]).toEqual([true, false]);
  },
);
