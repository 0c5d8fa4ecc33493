import { describe, expect, it } from 'vitest';
import type { RuleResult } from '../../../engine/decision.ts';
import * as roll from '../../../engine/rules/roll.ts';
import { updateStrategy } from '../../../engine/rules/strategy.ts';
import { type Claim, claimEndMs } from '../../../engine/snapshot.ts';
import type { GroupDefinition, RolloutDefinition } from '../../../policies/definition.ts';
import { adopted, group } from '../../kit/groups.ts';
import { kitNowMs, outdatedStatefulSet, type StatefulSetOverrides } from '../../kit/objects.ts';
import { ago, contextWith, intent, ledgerOf, line, minuteMs, outdatedSets, policy, rollQuestion, runOf } from '../../kit/questions.ts';
import type { SnapshotOverrides } from '../../kit/snapshots.ts';

const sources = { 'rollout.strategy': line(1), 'rollout.onFailure': line(2), 'zones.a.paused': line(3), 'rollout.minInterval': line(4) };

const rollRules: Readonly<Record<string, (question: roll.RollQuestion) => RuleResult>> = {
  'update-strategy': updateStrategy,
  'view-complete': roll.viewComplete,
  'run-failed': roll.notFailed,
  paused: ({ context, zone }) => roll.notPaused(context, zone.view.zone),
  'replica-write-in-flight': roll.noReplicaWrite,
  'other-zones-ready': roll.otherZonesReady,
  'min-interval': roll.minInterval,
  'ledger-full': roll.ledgerHasRoom,
};

/** Returns the result of one rule about a roll of zone a. */
function ask(
  rule: string,
  definition: GroupDefinition,
  overrides: SnapshotOverrides = {},
  question: Partial<roll.RollQuestion> = {},
): RuleResult | undefined {
  const context = contextWith(definition, { statefulSets: outdatedSets(), ...overrides });
  return rollRules[rule]?.(rollQuestion(context, 'a', question));
}

const native = group({ sources });
const rolled = (rollout: Partial<RolloutDefinition>) => group({ sources, rollout });
const down = { 'ingester-zone-b': { 1: { isReady: false } } };
const broken = { isReady: false, waitingReasons: ['CrashLoopBackOff'] };

it('the rules of a replacement have results under their own names', () => {
  const ids = Object.keys(rollRules);
  expect(ids.map((id) => ask(id, native)?.rule)).toEqual(ids);
});

describe('update-strategy', () => {
  const other = (name: string) =>
    ['a', 'b', 'c'].map((zone) =>
      outdatedStatefulSet({ name: `ingester-zone-${zone}`, updateStrategy: zone === name ? 'RollingUpdate' : 'OnDelete' }),
    );
  const ok = { rule: 'update-strategy', outcome: 'ok', fact: 'the update strategy is OnDelete', limit: 'OnDelete' };
  const no = (zone: string) => ({
    rule: 'update-strategy',
    outcome: 'no',
    fact: `ingester-zone-${zone} has the update strategy RollingUpdate: the strategy onDelete needs OnDelete`,
    limit: 'OnDelete',
    source: { object: `StatefulSet mimir/ingester-zone-${zone}`, field: 'spec.updateStrategy.type' },
    endsWith: `kubectl patch statefulset ingester-zone-${zone} -n mimir --type=merge -p '{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}', and write type: OnDelete into its manifest`,
  });

  it('checks the zone itself in native groups', () => {
    expect(ask('update-strategy', native)).toEqual(ok);
    expect(ask('update-strategy', native, { statefulSets: other('a') })).toEqual(no('a'));
    expect(ask('update-strategy', native, { statefulSets: other('b') })).toEqual(ok);
  });

  it('checks every member of adopted groups', () => {
    expect(ask('update-strategy', adopted(), { statefulSets: other('b') })).toEqual(no('b'));
  });
});

describe('view-complete', () => {
  const ok = { rule: 'view-complete', outcome: 'ok', fact: 'every zone was read' };
  const stale = outdatedSets(['a', 'b', 'c'], { generation: 4, status: { observedGeneration: 3 } });

  it('is unknown if a zone could not be read', () => {
    const pods = [{ namespace: 'mimir', statefulSet: 'ingester-zone-c', pods: { unknown: 'forbidden' } }];
    expect(ask('view-complete', native, { pods })).toEqual({
      rule: 'view-complete',
      outcome: 'unknown',
      fact: 'the pods of ingester-zone-c could not be read: forbidden',
    });
  });

  it('waits for a status that is as new as its spec', () => {
    expect(ask('view-complete', native)).toEqual(ok);
    expect(ask('view-complete', native, { statefulSets: stale })).toEqual({
      rule: 'view-complete',
      outcome: 'wait',
      fact: 'the StatefulSet controller has not observed the last change of ingester-zone-a: observed generation 3',
      limit: 'generation 4',
    });
  });

  it('ignores the status in adopted groups', () => {
    expect(ask('view-complete', adopted(), { statefulSets: stale })).toEqual(ok);
  });
});

describe('run-failed', () => {
  it('is ok while the run has not failed, and names the cause of a failure', () => {
    expect(ask('run-failed', native)).toEqual({ rule: 'run-failed', outcome: 'ok', fact: 'the run has not failed' });
    const run = runOf({ outcome: 'failed', failure: 'gate errors is 9' });
    expect(ask('run-failed', native, {}, { run })).toEqual({
      rule: 'run-failed',
      outcome: 'no',
      fact: 'gate errors is 9',
      source: line(2),
    });
    expect(ask('run-failed', native, {}, { run: runOf({ outcome: 'failed' }) })?.fact).toBe('the run failed');
  });
});

describe('paused', () => {
  const free = { rule: 'paused', outcome: 'ok', fact: 'no pause applies' };

  it('is ok while the zone is not paused', () => {
    expect(ask('paused', native)).toEqual(free);
  });

  it('waits for the settings of the zone', () => {
    expect(ask('paused', group({ sources, zones: [{ name: 'a', paused: true }] }))).toEqual({
      rule: 'paused',
      outcome: 'wait',
      fact: 'zone a is paused by its settings',
      source: line(3),
    });
  });

  it.each([
    ['pause', 'by kim'],
    ['abort', 'by an abort of kim that names no run'],
  ] as const)('waits for a user who requested %s', (action, who) => {
    expect(ask('paused', native, { intents: [intent({ action, reason: 'storage moves', expiresMs: kitNowMs + 9 })] })).toEqual({
      rule: 'paused',
      outcome: 'wait',
      fact: `the group is paused ${who} (storage moves)`,
      source: { object: 'RolloutIntent mimir/intent-1' },
      earliestMs: kitNowMs + 9,
    });
  });

  it('waits for the pause of this zone, and not of another', () => {
    const { requestedBy: _nobody, ...anonymous } = intent({ action: 'pause', zone: 'a' });
    expect(ask('paused', native, { intents: [anonymous] })).toMatchObject({
      outcome: 'wait',
      fact: 'zone a is paused by an unverified requester',
    });
    expect(ask('paused', native, { intents: [intent({ action: 'pause', zone: 'b' })] })).toEqual(free);
  });

  it.each([
    ['has ended', intent({ action: 'pause', expiresMs: kitNowMs })],
    ['is of another group', intent({ action: 'pause', group: 'store-gateway' })],
    ['is of another namespace', intent({ action: 'pause', namespace: 'loki' })],
    ['is none', intent({ action: 'approve' })],
  ])('is ok if the pause %s', (_name, given) => {
    expect(ask('paused', native, { intents: [given] })).toEqual(free);
  });

  it('names the first of two pauses by the name of the intent', () => {
    const intents = [intent({ action: 'pause', name: 'z', reason: 'z' }), intent({ action: 'pause', name: 'b', reason: 'b' })];
    expect(ask('paused', native, { intents })?.fact).toBe('the group is paused by kim (b)');
  });

  it('names the widest of several pauses', () => {
    const ofZone = intent({ action: 'pause', name: 'a', zone: 'a', reason: 'zone' });
    const ofGroup = intent({ action: 'pause', name: 'b', reason: 'group' });
    const settings = group({ sources, zones: [{ name: 'a', paused: true }, 'b', 'c'] });
    for (const definition of [native, settings])
      expect(ask('paused', definition, { intents: [ofZone, ofGroup] })?.fact).toBe('the group is paused by kim (group)');
    expect(ask('paused', settings, { intents: [ofZone] })?.fact).toBe('zone a is paused by its settings');
  });

  it('is unknown when it cannot be read', () => {
    expect(roll.pausedByPerson(contextWith(native, { intents: { unknown: 'forbidden' } }), 'a')).toEqual({
      rule: 'paused',
      outcome: 'unknown',
      fact: 'pauses could not be read: forbidden',
    });
  });
});

describe('replica-write-in-flight', () => {
  const rule = 'replica-write-in-flight';
  const shrinking: Claim = { verb: 'scaleDown', zone: 'b', uid: 'uid-ingester-zone-b', from: 4, to: 3, atMs: kitNowMs };
  const surplus = (definition: GroupDefinition) => {
    const pods = [
      {
        namespace: 'mimir',
        statefulSet: 'ingester-zone-b',
        pods: contextWith(definition, { statefulSets: outdatedSets(['b'], { replicas: 5 }) }).view.zones[1]?.pods ?? [],
      },
    ];
    return { pods };
  };

  it('is ok while no replicas change', () => {
    expect(ask(rule, native)).toEqual({ rule, outcome: 'ok', fact: 'no zone is shrinking' });
    expect(ask(rule, adopted())).toEqual({ rule, outcome: 'ok', fact: 'no replicas change' });
  });

  it.each([native, adopted()])('waits in the turn that writes replicas', (definition) => {
    expect(ask(rule, definition, {}, { isScaling: true })).toEqual({ rule, outcome: 'wait', fact: 'replicas change in this turn' });
  });

  it('waits while surplus pods exist in any zone', () => {
    expect(ask(rule, native, surplus(native))).toEqual({ rule, outcome: 'wait', fact: 'zone b is shrinking: 2 surplus pods remain' });
    expect(ask(rule, adopted(), surplus(adopted()))).toMatchObject({ outcome: 'ok' });
  });

  it('allows the repair of stuck pods for which surplus pods wait under OrderedReady', () => {
    const ordered = (changes: StatefulSetOverrides, pods: Readonly<Record<number, object>> = { 1: broken }, from = native) => ({
      statefulSets: outdatedSets(['a', 'b', 'c'], { podManagementPolicy: 'OrderedReady', ...changes }),
      pods: contextWith(from, {
        statefulSets: outdatedSets(['a', 'b', 'c']).map((set) => (set.name === 'ingester-zone-b' ? { ...set, replicas: 5 } : set)),
        podChanges: { 'ingester-zone-b': pods },
      }).snapshot.pods,
    });
    const waits = { outcome: 'wait', fact: 'zone b is shrinking: 2 surplus pods remain' };
    expect(ask(rule, native, ordered({}))).toEqual({ rule, outcome: 'ok', fact: 'zone b shrinks when its stuck pods are replaced' });
    expect(ask(rule, native, ordered({ podManagementPolicy: 'Parallel' }))).toMatchObject(waits);
    expect(ask(rule, native, ordered({}, {}))).toMatchObject(waits);
    expect(ask(rule, native, ordered({}, { 4: broken }))).toMatchObject(waits);
    expect(ask(rule, native, ordered({}, { 1: broken, 4: { isTerminating: true } }))).toMatchObject(waits);
    expect(ask(rule, native, { ...ordered({}), ledgers: [ledgerOf({ claims: [shrinking] })] })).toMatchObject({ outcome: 'wait' });
  });

  it('waits for a claimed downscale, but not for a claimed disruption', () => {
    expect(ask(rule, native, { ledgers: [ledgerOf({ claims: [shrinking] })] })).toMatchObject({ outcome: 'wait' });
    expect(ask(rule, native, { ledgers: [ledgerOf({ claims: [{ ...shrinking, verb: 'evictPod' }] })] })).toMatchObject({ outcome: 'ok' });
  });
});

describe('other-zones-ready', () => {
  const rule = 'other-zones-ready';
  const waits = (fact: string) => ({ rule, outcome: 'wait', fact, limit: 'all available' });

  it('is ok if every other zone is available, or there is no other zone', () => {
    expect(ask(rule, native)).toEqual({ rule, outcome: 'ok', fact: 'all pods of the other zones are available: b 3/3, c 3/3' });
    expect(ask(rule, native, { podChanges: { 'ingester-zone-a': { 1: { isReady: false } } } })).toMatchObject({ outcome: 'ok' });
    expect(ask(rule, group({ zones: ['a'] }))).toEqual({ rule, outcome: 'ok', fact: 'the group has no other zone' });
  });

  it('waits for every unavailable zone', () => {
    expect(ask(rule, native, { podChanges: { ...down, 'ingester-zone-c': { 0: 'missing', 2: 'missing' } } })).toEqual(
      waits('zone b has 2 of 3 pods available, zone c has 1 of 3 pods available'),
    );
  });

  it('waits until the pods of another zone are available', () => {
    const statefulSets = outdatedSets(['a', 'b', 'c'], { minReadySeconds: 90 });
    const podChanges = { 'ingester-zone-b': { 1: { readyChangedMs: ago(minuteMs) } } };
    expect(ask(rule, native, { statefulSets, podChanges })).toEqual({
      ...waits('zone b has 2 of 3 pods available'),
      earliestMs: kitNowMs + 30_000,
    });
  });

  it('names the eviction that was allowed in another zone, and waits until its claim ends', () => {
    const claim = { verb: 'evictPod', zone: 'b', uid: 'uid-ingester-zone-b-1', ordinal: 1, atMs: ago(12_000), user: 'kim' } as const;
    const ledgers = [ledgerOf({ claims: [claim] })];
    const fact = 'zone b has 2 of 3 pods available: the eviction of ingester-zone-b-1 was allowed and may still be carried out';
    for (const definition of [native, adopted()])
      expect(ask(rule, definition, { ledgers })).toEqual({ ...waits(fact), earliestMs: claimEndMs(claim) });
  });

  it('permits the repair of a stuck pod while other zones are not ready, unless they have a claim or cannot be read', () => {
    const cured = { 'ingester-zone-a': { 1: { isReady: false, readyChangedMs: ago(60 * minuteMs) } }, ...down };
    expect(ask(rule, native, { podChanges: cured })).toEqual({
      rule,
      outcome: 'ok',
      fact: 'zone b has 2 of 3 pods available; a stuck pod of zone a may still be replaced',
    });
    const claims = [{ verb: 'deletePod', zone: 'b', uid: 'uid-ingester-zone-b-1', ordinal: 1, atMs: kitNowMs }] as const;
    expect(ask(rule, native, { podChanges: cured, ledgers: [ledgerOf({ claims })] })).toMatchObject({ outcome: 'wait' });
    expect(ask(rule, adopted(), { podChanges: cured })).toMatchObject({ outcome: 'wait' });
  });

  it('names no time for pods that start, which become ready long before they count as stuck', () => {
    const unready = { isReady: false, readyChangedMs: ago(minuteMs) };
    const podChanges = { 'ingester-zone-a': { 1: unready }, 'ingester-zone-b': { 1: unready } };
    expect(ask(rule, native, { podChanges })).toEqual({
      rule: 'other-zones-ready',
      outcome: 'wait',
      fact: 'zone b has 2 of 3 pods available',
      limit: 'all available',
    });
  });

  it('waits for a claimed disruption in a zone that has left the group', () => {
    const claims = [{ verb: 'deletePod', zone: 'former', uid: 'uid-1', ordinal: 1, atMs: kitNowMs }] as const;
    expect(ask(rule, native, { ledgers: [ledgerOf({ claims })] })).toEqual({
      rule,
      outcome: 'wait',
      fact: 'zone former left the group with an open claim',
      limit: 'no open claim younger than 2m',
    });
  });

  it('ignores a paused zone in adopted groups if only this zone is not ready', () => {
    const paused = { zones: ['a', { name: 'b', paused: true }, 'c'] };
    expect(ask(rule, group(paused), { podChanges: down })).toMatchObject({ outcome: 'wait' });
    expect(ask(rule, adopted(paused), { podChanges: { 'ingester-zone-b': { 1: { containersReady: false } } } })).toMatchObject({
      outcome: 'ok',
    });
    const two = { 'ingester-zone-b': { 1: { containersReady: false } }, 'ingester-zone-c': { 1: { containersReady: false } } };
    expect(ask(rule, adopted(paused), { podChanges: two })).toEqual(
      waits('zone b has 2 of 3 pods available, zone c has 2 of 3 pods available'),
    );
  });
});

describe('min-interval', () => {
  const rule = 'min-interval';
  const paced = rolled({ minIntervalMs: 10 * minuteMs });
  const details = { limit: '10m', source: line(4) };
  const replaced = (atMs: number) => ({ run: runOf({ lastDisruptionMs: atMs }) });

  it('is skipped if it is not set', () => {
    expect(ask(rule, native, {}, replaced(kitNowMs))).toEqual({ rule, outcome: 'skip', fact: 'no interval is set' });
  });

  it('waits until exactly the interval has passed', () => {
    expect(ask(rule, paced)).toEqual({ rule, outcome: 'ok', fact: 'the run has replaced no pod', ...details });
    expect(ask(rule, paced, {}, replaced(ago(4 * minuteMs)))).toEqual({
      rule,
      outcome: 'wait',
      fact: 'the last replacement was 4m ago',
      age: expect.any(Object),
      ...details,
      earliestMs: kitNowMs + 6 * minuteMs,
    });
    expect(ask(rule, paced, {}, replaced(ago(10 * minuteMs) + 1))).toMatchObject({ outcome: 'wait', earliestMs: kitNowMs + 1 });
    expect(ask(rule, paced, {}, replaced(ago(10 * minuteMs)))).toEqual({
      rule,
      outcome: 'ok',
      fact: 'the last replacement was 10m ago',
      age: expect.any(Object),
      ...details,
    });
  });

  it('uses the interval of a policy if it is longer', () => {
    const limited = (minIntervalMs: number) => ({
      policies: [policy({ limits: { minIntervalMs }, limitSources: { minInterval: line(9) } })],
    });
    expect(ask(rule, paced, limited(20 * minuteMs), replaced(ago(10 * minuteMs)))).toMatchObject({
      outcome: 'wait',
      limit: '20m',
      source: line(9),
    });
    expect(ask(rule, paced, limited(5 * minuteMs), replaced(ago(7 * minuteMs)))).toMatchObject({ outcome: 'wait', ...details });
  });
});

describe('ledger-full', () => {
  const claims = (count: number): readonly Claim[] =>
    Array.from({ length: count }, (_, index) => ({ verb: 'evictPod', zone: 'gone', uid: `uid-${index}`, atMs: kitNowMs }));

  it.each([
    [0, 'ok', '0 claims are open'],
    [1, 'ok', '1 claim is open'],
    [99, 'ok', '99 claims are open'],
    [100, 'wait', '100 claims are open'],
  ])('with %i open claims answers %s', (count, outcome, fact) => {
    expect(ask('ledger-full', native, { ledgers: [ledgerOf({ claims: claims(count) })] })).toEqual({
      rule: 'ledger-full',
      outcome,
      fact,
      limit: '100',
    });
  });
});
