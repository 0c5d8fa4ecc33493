import { describe, expect, it } from 'vitest';
import { zoneGap } from '../../../engine/rules/zone-gap.ts';
import type { Claim } from '../../../engine/snapshot.ts';
import { adopted, group, type ZoneOverrides } from '../../kit/groups.ts';
import { kitNowMs, statefulSet } from '../../kit/objects.ts';
import { ago, contextWith, hourMs, ledgerOf, line, minuteMs, policy, scaleQuestion, secondMs, zoneIn } from '../../kit/questions.ts';
import type { SnapshotOverrides } from '../../kit/snapshots.ts';

const gap = { betweenZonesMs: 13 * hourMs };
const sources = { 'scaling.down.betweenZones': line(1), 'zones.b.betweenZones': line(2), 'zones.a.betweenZones': line(3) };
const shrank = (zone: string, atMs: number) => ({ zone, atMs, from: 4, to: 3 });
const skip = { rule: 'zone-gap', outcome: 'skip', fact: 'no interval between zones is set' };

describe('the interval of a native group', () => {
  const definition = group({ zones: [{ name: 'a', ...gap }, { name: 'b', ...gap }, 'c'], sources });
  const ask = (overrides: SnapshotOverrides, isForced = false) =>
    zoneGap(scaleQuestion(contextWith(definition, overrides), 2, { isForced }));
  const downscales = (...list: ReturnType<typeof shrank>[]) => ({ ledgers: [ledgerOf({ downscales: list })] });
  const at = { limit: '13h', source: line(3) };

  it('is kept if no other zone shrank, or only the zone itself', () => {
    const kept = { rule: 'zone-gap', outcome: 'ok', fact: 'no other zone shrank', source: line(3) };
    expect(ask({})).toEqual(kept);
    expect(ask(downscales(shrank('a', ago(minuteMs))))).toEqual(kept);
  });

  it('waits until exactly the time has passed', () => {
    const atMs = ago(13 * hourMs) + 1;
    expect(ask(downscales(shrank('b', atMs)))).toEqual({
      rule: 'zone-gap',
      outcome: 'wait',
      fact: 'zone b shrank 12h59m59s ago',
      age: expect.any(Object),
      ...at,
      earliestMs: kitNowMs + 1,
    });
    expect(ask(downscales(shrank('b', ago(13 * hourMs))))).toEqual({
      rule: 'zone-gap',
      outcome: 'ok',
      fact: 'zone b shrank 13h ago',
      age: expect.any(Object),
      ...at,
    });
  });

  it('counts from the last zone that shrank, and names the first by name if several did', () => {
    const two = downscales(shrank('b', ago(2 * hourMs)), shrank('c', ago(hourMs)), shrank('b', ago(3 * hourMs)));
    expect(ask(two)).toMatchObject({ fact: 'zone c shrank 1h ago', earliestMs: kitNowMs + 12 * hourMs });
    expect(ask(downscales(shrank('c', ago(hourMs)), shrank('b', ago(hourMs))))).toMatchObject({ fact: 'zone b shrank 1h ago' });
  });

  it('counts a claimed downscale from its claim', () => {
    const claim: Claim = { verb: 'scaleDown', zone: 'b', uid: 'uid-ingester-zone-b', from: 4, to: 3, atMs: ago(minuteMs) };
    expect(ask({ ledgers: [ledgerOf({ claims: [claim] })] })).toMatchObject({ outcome: 'wait', fact: 'zone b shrank 1m ago' });
    expect(ask({ ledgers: [ledgerOf({ claims: [{ ...claim, verb: 'evictPod' }] })] })).toMatchObject({ outcome: 'ok' });
  });

  it('counts zones that have left the group since, because their data is gone', () => {
    expect(ask(downscales(shrank('gone', ago(minuteMs))))).toMatchObject({ outcome: 'wait', fact: 'zone gone shrank 1m ago' });
    const claim: Claim = { verb: 'scaleDown', zone: 'gone', uid: 'uid-gone', from: 4, to: 3, atMs: ago(minuteMs) };
    expect(ask({ ledgers: [ledgerOf({ claims: [claim] })] })).toMatchObject({ outcome: 'wait', fact: 'zone gone shrank 1m ago' });
    expect(ask({ ledgers: [ledgerOf({ claims: [{ ...claim, verb: 'evictPod' }] })] })).toMatchObject({ outcome: 'ok' });
  });

  it('accepts a time up to 30 s ahead of the clock, and no later one', () => {
    expect(ask(downscales(shrank('b', kitNowMs + 30 * secondMs)))).toEqual({
      rule: 'zone-gap',
      outcome: 'wait',
      fact: 'zone b shrank 0s ago',
      age: expect.any(Object),
      ...at,
      earliestMs: kitNowMs + 30 * secondMs + 13 * hourMs,
    });
    expect(ask(downscales(shrank('b', kitNowMs + 30 * secondMs + 1)))).toEqual({
      rule: 'zone-gap',
      outcome: 'unknown',
      fact: 'zone b has a recorded scale-down at 2026-03-02T12:00:30.001Z, a time in the future',
      ...at,
      // By then it will have been long enough ago, whether or not it is believed.
      earliestMs: kitNowMs + 30 * secondMs + 1 + 13 * hourMs,
    });
  });

  it('does not block forced replicas', () => {
    expect(ask(downscales(shrank('b', ago(minuteMs))), true)).toEqual({ ...skip, fact: 'replicas are forced' });
  });

  it('is skipped if it is not set, and 0 means not set', () => {
    const context = contextWith(group({ zones: ['a', 'b'] }), downscales(shrank('b', ago(minuteMs))));
    expect(zoneGap(scaleQuestion(context, 2))).toEqual(skip);
    const zero = contextWith(group({ zones: [{ name: 'a', betweenZonesMs: 0 }, 'b'] }), downscales(shrank('b', ago(minuteMs))));
    expect(zoneGap(scaleQuestion(zero, 2))).toEqual(skip);
  });

  it('is the interval of a policy if it is longer', () => {
    const longer = policy({ limits: { betweenZonesMs: 24 * hourMs }, limitSources: { betweenZones: line(9) } });
    expect(ask({ ...downscales(shrank('b', ago(hourMs))), policies: [longer] })).toEqual({
      rule: 'zone-gap',
      outcome: 'wait',
      fact: 'zone b shrank 1h ago',
      age: expect.any(Object),
      limit: '1d',
      source: line(9),
      earliestMs: kitNowMs + 23 * hourMs,
    });
  });

  it('is its own interval if a policy has a shorter one', () => {
    const shorter = policy({ limits: { betweenZonesMs: hourMs }, limitSources: { betweenZones: line(9) } });
    expect(ask({ ...downscales(shrank('b', ago(hourMs))), policies: [shorter] })).toMatchObject({ outcome: 'wait', ...at });
  });
});

describe('the interval of an adopted group', () => {
  const followers = (b: Omit<ZoneOverrides, 'name'>, a: Omit<ZoneOverrides, 'name'> = {}) =>
    adopted({
      zones: [
        { name: 'a', ...a },
        { name: 'b', follows: 'a', ...b },
      ],
      sources,
    });
  const last = (text: string) => [
    statefulSet({ annotations: { 'grafana.com/last-downscale': text } }),
    statefulSet({ name: 'ingester-zone-b' }),
  ];
  const iso = (atMs: number) => new Date(atMs).toISOString();
  const ask = (definition: ReturnType<typeof adopted>, overrides: SnapshotOverrides, name = 'b', more: object = {}) => {
    const context = contextWith(definition, overrides);
    return zoneGap(scaleQuestion(context, 2, { zone: zoneIn(context, name), ...more }));
  };

  it('is the interval of the follower, and must be exceeded', () => {
    const definition = followers({ betweenZonesMs: 12 * hourMs });
    expect(ask(definition, { statefulSets: last(iso(ago(12 * hourMs))) })).toEqual({
      rule: 'zone-gap',
      outcome: 'wait',
      fact: 'zone a shrank 12h ago',
      age: expect.any(Object),
      limit: '12h',
      source: line(2),
      earliestMs: kitNowMs + 1,
    });
    expect(ask(definition, { statefulSets: last(iso(ago(12 * hourMs + secondMs))) })).toEqual({
      rule: 'zone-gap',
      outcome: 'ok',
      fact: 'zone a shrank 12h1s ago',
      age: expect.any(Object),
      limit: '12h',
      source: line(2),
    });
  });

  it('denies a follower without an interval after another zone has shrunk', () => {
    expect(ask(followers({}), { statefulSets: last(iso(ago(hourMs))) })).toEqual({
      rule: 'zone-gap',
      outcome: 'no',
      fact: 'zone a shrank, and ingester-zone-b sets no interval between zones',
      limit: 'the label grafana.com/min-time-between-zones-downscale',
      source: line(2),
    });
    expect(ask(followers({}), {})).toEqual({ rule: 'zone-gap', outcome: 'ok', fact: 'no other zone shrank', source: line(2) });
  });

  it('is unknown if the recorded time is invalid', () => {
    expect(
      ask(followers({ betweenZonesMs: hourMs }), { statefulSets: last('yesterday, at about noon, or perhaps a little later') }),
    ).toEqual({
      rule: 'zone-gap',
      outcome: 'unknown',
      fact: 'annotation grafana.com/last-downscale of ingester-zone-a is not a timestamp: yesterday, at about noon, or perhaps a l',
    });
  });

  it('does not apply to a zone that follows no other, nor in admission', () => {
    const definition = followers({ betweenZonesMs: hourMs }, { betweenZonesMs: hourMs });
    const recent = { statefulSets: last(iso(ago(minuteMs))) };
    expect(ask(definition, recent, 'a')).toEqual(skip);
    expect(ask(definition, recent, 'b', { asker: 'admission' })).toEqual(skip);
    expect(ask(definition, recent, 'b')).toMatchObject({ outcome: 'wait' });
  });

  it('uses the annotation instead of the ledger, and a claimed downscale of a zone that prepares', () => {
    const claim: Claim = { verb: 'scaleDown', zone: 'a', uid: 'uid', from: 4, to: 3, atMs: ago(minuteMs) };
    const ledgers = [ledgerOf({ claims: [claim], downscales: [shrank('a', ago(minuteMs))] })];
    const prepare = { endpoint: { scheme: 'http', port: 80, path: '/prepare', timeout: '5s' }, onFailure: 'deny' } as const;
    expect(ask(followers({ betweenZonesMs: hourMs }), { ledgers })).toMatchObject({ outcome: 'ok', fact: 'no other zone shrank' });
    expect(ask(followers({ betweenZonesMs: hourMs }, { prepare }), { ledgers })).toMatchObject({
      outcome: 'wait',
      fact: 'zone a shrank 1m ago',
    });
  });

  it('of a prepared downscale is that of the zone that shrank, forced or not, for every caller', () => {
    const prepare = { endpoint: { scheme: 'http', port: 80, path: '/prepare', timeout: '5s' }, onFailure: 'deny' } as const;
    const definition = followers({ prepare }, { betweenZonesMs: 2 * hourMs });
    const recent = { statefulSets: last(iso(ago(hourMs))) };
    const waits = {
      rule: 'zone-gap',
      outcome: 'wait',
      fact: 'zone a shrank 1h ago',
      age: { words: '1h ago', fromMs: ago(hourMs) },
      limit: '2h',
      source: line(3),
      earliestMs: kitNowMs + hourMs,
    };
    expect(ask(definition, recent, 'b', { asker: 'admission' })).toEqual(waits);
    expect(ask(definition, recent, 'b', { asker: 'admission', isForced: true })).toEqual(waits);
    expect(ask(definition, { statefulSets: last(iso(ago(2 * hourMs))) }, 'b', { asker: 'admission' })).toMatchObject({ outcome: 'ok' });
  });

  it('returns the worse of both results', () => {
    const prepare = { endpoint: { scheme: 'http', port: 80, path: '/prepare', timeout: '5s' }, onFailure: 'deny' } as const;
    const both = followers({ prepare, betweenZonesMs: 4 * hourMs }, { betweenZonesMs: 2 * hourMs });
    const recent = { statefulSets: last(iso(ago(hourMs))) };
    expect(ask(both, recent)).toMatchObject({ outcome: 'wait', limit: '4h', earliestMs: kitNowMs + 3 * hourMs + 1 });
    expect(ask(both, { statefulSets: last(iso(ago(3 * hourMs))) })).toMatchObject({ outcome: 'wait', limit: '4h' });
    const longer = followers({ prepare, betweenZonesMs: hourMs }, { betweenZonesMs: 4 * hourMs });
    expect(ask(longer, { statefulSets: last(iso(ago(3 * hourMs))) })).toMatchObject({ outcome: 'wait', limit: '4h' });
    const shorter = followers({ prepare, betweenZonesMs: 2 * hourMs }, { betweenZonesMs: 4 * hourMs });
    expect(ask(shorter, recent)).toMatchObject({ outcome: 'wait', limit: '4h', earliestMs: kitNowMs + 3 * hourMs });
    const without = followers({ prepare }, { betweenZonesMs: 4 * hourMs });
    expect(ask(without, recent)).toMatchObject({ outcome: 'no' });
  });
});
