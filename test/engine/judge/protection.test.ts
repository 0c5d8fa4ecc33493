import { describe, expect, it } from 'vitest';
import type { AdmissionRequest } from '../../../engine/decision.ts';
import { judge } from '../../../engine/judge/judge.ts';
import { departureMs, departuresOf, joinedDepartures } from '../../../engine/judge/protection.ts';
import type { Departure, Snapshot } from '../../../engine/snapshot.ts';
import { adopted, group } from '../../kit/groups.ts';
import { kitNowMs, statefulSet } from '../../kit/objects.ts';
import { ago, hourMs, ledgerOf, minuteMs, preparation } from '../../kit/questions.ts';
import { type SnapshotOverrides, snapshotOf } from '../../kit/snapshots.ts';

const set = { namespace: 'mimir', statefulSet: 'ingester-zone-a', dryRun: false } as const;
const relabel: Extract<AdmissionRequest, { kind: 'update' }> = {
  kind: 'update',
  ...set,
  from: 3,
  to: 3,
  isTemplateChanged: false,
  strategy: 'OnDelete',
  relabels: ['rollout-group'],
  via: 'update',
};
const shrink: AdmissionRequest = { kind: 'scale', ...set, from: 3, to: 2, via: 'scale' };
const eviction: AdmissionRequest = { kind: 'evictPod', namespace: 'mimir', pod: 'ingester-zone-a-1', dryRun: false };
const departure: Departure = { statefulSet: set.statefulSet, uid: 'uid-ingester-zone-a', group: 'ingester', untilMs: kitNowMs + minuteMs };
const without = (departures: readonly Departure[], overrides: SnapshotOverrides = {}): Snapshot =>
  snapshotOf({ statefulSets: [statefulSet({ labels: {} })], departures, ...overrides });

describe('a StatefulSet that has left its group', () => {
  it('stays protected for a while against every path that removes pods', () => {
    for (const request of [shrink, eviction, { kind: 'deleteStatefulSet', ...set }] as const) {
      const answer = judge(without([departure]), request);
      expect(answer).toMatchObject({ outcome: 'deny', effect: 'hold' });
      expect(answer.results.at(-1)).toMatchObject({ rule: 'protection-kept', outcome: 'wait', earliestMs: kitNowMs + minuteMs });
    }
  });

  it('can grow, and is free after the time, as another object of the same name, and back in the group', () => {
    expect(judge(without([departure]), { ...shrink, to: 4 }).outcome).toBe('allow');
    expect(judge(without([{ ...departure, untilMs: kitNowMs }]), shrink).outcome).toBe('allow');
    expect(judge(without([{ ...departure, uid: 'former' }]), shrink).outcome).toBe('allow');
    expect(judge(without([departure], { groups: [group()] }), shrink).outcome).toBe('allow');
  });

  it('stays protected while group removals cannot be read, unless it was certainly in no group', () => {
    const unknown: Snapshot = { ...without([]), departures: { unknown: 'forbidden' } };
    for (const request of [shrink, eviction, { kind: 'deleteStatefulSet', ...set }] as const) {
      const answer = judge(unknown, request);
      expect(answer.outcome).toBe('deny');
      expect(answer.results.at(-1)).toMatchObject({ rule: 'protection-kept', outcome: 'unknown' });
      expect(judge({ ...unknown, unprotected: ['another'] }, request).outcome).toBe('deny');
      expect(judge({ ...unknown, unprotected: ['uid-ingester-zone-a'] }, request).outcome).toBe('allow');
    }
    expect(judge(unknown, { ...shrink, to: 4 }).outcome).toBe('allow');
    // Nobody is kept from deleting a pod for want of an answer.
    expect(judge(unknown, { ...eviction, kind: 'deletePod' }).outcome).toBe('allow');
    expect(judge({ ...unknown, groups: [group()] }, shrink).outcome).toBe('deny');
  });

  it('is protected in its new group instead', () => {
    const other = group({ name: 'other', zones: [{ name: 'a', statefulSet: 'ingester-zone-a' }] });
    expect(judge(without([departure], { groups: [other] }), shrink).message).toContain('left the group ingester');
  });

  it('without its former label stays protected against the actions that the label denied', () => {
    const { group: _group, ...rest } = departure;
    const lost = { ...rest, label: 'grafana.com/no-downscale' };
    expect(judge(without([lost]), shrink).message).toContain('lost the label grafana.com/no-downscale');
    expect(judge(without([lost]), eviction).outcome).toBe('allow');
  });

  it('with a flag label of another value than true counts as without the label', () => {
    const { group: _group, ...rest } = departure;
    const label = 'grafana.com/prepare-downscale';
    const now = (value: string) => without([{ ...rest, label }], { statefulSets: [statefulSet({ labels: { [label]: value } })] });
    expect(judge(now('false'), shrink).message).toContain(`lost the label ${label}`);
    expect(judge(now('true'), shrink).outcome).toBe('allow');
  });
});

describe('a StatefulSet with less protection than before', () => {
  const label = 'grafana.com/min-time-between-zones-downscale';
  const path = 'grafana.com/prepare-downscale-http-path';
  const { group: _group, ...rest } = departure;

  it('is protected by its former interval between zones until it has the same or a longer one again', () => {
    const now = (value?: string) =>
      without([{ ...rest, label, value: '12h' }], {
        statefulSets: [statefulSet({ labels: value === undefined ? {} : { [label]: value } })],
      });
    const answer = judge(now('0s'), shrink);
    expect(answer).toMatchObject({ outcome: 'deny', effect: 'hold' });
    expect(answer.message).toContain(`had 12h in the label ${label} less than ten minutes ago`);
    expect(judge(now(), shrink).message).toContain(`lost the label ${label}`);
    expect(judge(now('soon'), shrink).outcome).toBe('deny');
    expect(judge(now('0s'), { kind: 'deleteStatefulSet', ...set }).outcome).toBe('deny');
    expect(judge(now('0s'), eviction).outcome).toBe('allow');
    for (const value of ['12h', '720m', '13h']) expect(judge(now(value), shrink).outcome).toBe('allow');
  });

  it('stays protected while the endpoint of its pods differs from before', () => {
    const now = (value: string) =>
      without([{ ...rest, label: path, value: 'ingester/prepare' }], { statefulSets: [statefulSet({ annotations: { [path]: value } })] });
    expect(judge(now('always-yes'), shrink).message).toContain(`had another value in the annotation ${path} less than ten minutes ago`);
    expect(judge(now('ingester/prepare'), shrink).outcome).toBe('allow');
  });

  it('keeps the protection from before several changes', () => {
    const joined = (key: string, ...values: readonly string[]) =>
      values.map((value, index): Departure => ({ ...rest, label: key, value, untilMs: index })).reduce(joinedDepartures);
    expect(joined(label, '12h', '6h', '7h')).toMatchObject({ value: '12h', untilMs: 2 });
    expect(joined(label, '6h', '12h')).toMatchObject({ value: '12h', untilMs: 1 });
    expect(joined(path, 'ingester/prepare', 'always-yes')).toMatchObject({ value: 'ingester/prepare', untilMs: 1 });
    expect(joinedDepartures({ ...departure, untilMs: 9 }, departure)).toEqual(departure);
  });
});

describe('a write that removes protection', () => {
  it('must not lower replicas too', () => {
    const answer = judge(snapshotOf({ groups: [adopted()] }), { ...relabel, to: 2 });
    expect(answer).toMatchObject({ outcome: 'deny', code: 403 });
    expect(answer.message).toContain('denied by protection-kept: one write lowers replicas and changes the label rollout-group');
    expect(judge(snapshotOf({ groups: [adopted()] }), { ...relabel, to: 2, relabels: ['team'] }).outcome).toBe('allow');
  });

  it('is denied while the state of the group is unknown', () => {
    const unread = [{ kind: 'Ledger', namespace: 'mimir', name: 'ingester', unknown: 'forbidden' }] as const;
    const answer = judge(snapshotOf({ groups: [adopted()], unread }), relabel);
    expect(answer.outcome).toBe('deny');
    expect(answer.results.at(-1)).toMatchObject({ rule: 'view-complete', outcome: 'unknown' });
    expect(judge(snapshotOf({ groups: [adopted()], unread }), { ...relabel, relabels: ['team'] }).outcome).toBe('allow');
  });

  it('waits for claims, preparations and delays', () => {
    const claim = { verb: 'evictPod', zone: 'a', uid: 'uid-ingester-zone-a-1', ordinal: 1, atMs: kitNowMs } as const;
    const pending = [
      ledgerOf({ claims: [claim] }),
      ledgerOf({ preparations: [preparation(2)] }),
      ledgerOf({ downscales: [{ zone: 'b', atMs: ago(hourMs), from: 4, to: 3 }] }),
    ];
    const definition = adopted({ zones: [{ name: 'a', betweenZonesMs: 2 * hourMs }, 'b'] });
    for (const ledger of pending) {
      expect(judge(snapshotOf({ groups: [definition], ledgers: [ledger] }), relabel).results.at(-1)).toMatchObject({ outcome: 'wait' });
    }
    expect(judge(snapshotOf({ groups: [definition], ledgers: [ledgerOf({ claims: [{ ...claim, zone: 'b' }] })] }), relabel).outcome).toBe(
      'allow',
    );
    expect(judge(snapshotOf({ groups: [definition], ledgers: pending.slice(2) }), { ...relabel, relabels: ['team'] }).outcome).toBe(
      'allow',
    );
  });

  it('waits if it removes the time of the last downscale', () => {
    const definition = adopted({ zones: [{ name: 'a', betweenZonesMs: 2 * hourMs }, 'b'] });
    const forget = { ...relabel, relabels: ['grafana.com/last-downscale'] };
    const shrunk = (atMs: number) => [statefulSet({ annotations: { 'grafana.com/last-downscale': new Date(atMs).toISOString() } })];
    const recent = judge(snapshotOf({ groups: [definition], statefulSets: shrunk(ago(hourMs)) }), forget);
    expect(recent.results.at(-1)).toMatchObject({ rule: 'protection-kept', outcome: 'wait', earliestMs: kitNowMs + hourMs });
    expect(judge(snapshotOf({ groups: [definition], statefulSets: shrunk(ago(3 * hourMs)) }), forget).outcome).toBe('allow');
    expect(judge(snapshotOf({ groups: [group()], statefulSets: shrunk(ago(hourMs)) }), forget).outcome).toBe('allow');
  });

  it('waits if it changes the time for which others wait', () => {
    const label = 'grafana.com/min-time-between-zones-downscale';
    const definition = adopted({ zones: [{ name: 'a', betweenZonesMs: 2 * hourMs }, 'b'] });
    const change = { ...relabel, relabels: [label] };
    const seen = (atMs: number, labels: Readonly<Record<string, string>>) => {
      const annotations = { 'grafana.com/last-downscale': new Date(atMs).toISOString() };
      return snapshotOf({ groups: [definition], statefulSets: [statefulSet({ annotations, labels })] });
    };
    const recent = judge(seen(ago(hourMs), { [label]: '2h' }), change);
    expect(recent.results.at(-1)).toMatchObject({ rule: 'protection-kept', outcome: 'wait', earliestMs: kitNowMs + hourMs });
    expect(judge(seen(ago(3 * hourMs), { [label]: '2h' }), change).outcome).toBe('allow');
    // It says for the first time how long others wait.
    expect(judge(seen(ago(hourMs), {}), change).outcome).toBe('allow');
    for (const [betweenZones, outcome] of [
      ['0s', 'deny'],
      ['119m', 'deny'],
      ['forever', 'deny'],
      ['120m', 'allow'],
      ['12h', 'allow'],
    ] as const) {
      expect(judge(seen(ago(hourMs), { [label]: '2h' }), { ...change, betweenZones }).outcome, betweenZones).toBe(outcome);
    }
  });

  it('waits if it lowers that time, by the ledger if no annotation has it', () => {
    const labels = { 'grafana.com/min-time-between-zones-downscale': '2h', 'grafana.com/prepare-downscale': 'true' };
    const definition = adopted({ zones: [{ name: 'a', betweenZonesMs: 2 * hourMs }, 'b'] });
    const change: AdmissionRequest = { ...relabel, relabels: Object.keys(labels).slice(0, 1), betweenZones: '0s' };
    const seen = (overrides: SnapshotOverrides) =>
      snapshotOf({ groups: [definition], statefulSets: [statefulSet({ labels })], ...overrides });
    const downscales = (zone: string, atMs: number) => [{ zone, atMs, from: 4, to: 3 }];
    const claims = [{ verb: 'scaleDown', zone: 'a', uid: 'uid-ingester-zone-a', from: 4, to: 3, atMs: ago(hourMs) }] as const;
    for (const ledger of [ledgerOf({ downscales: downscales('a', ago(hourMs)) }), ledgerOf({ claims })]) {
      const answer = judge(seen({ ledgers: [ledger] }), change);
      expect(answer.results.at(-1)).toMatchObject({ rule: 'protection-kept', outcome: 'wait', earliestMs: kitNowMs + hourMs });
      // Nobody waits for a zone whose pods are not prepared.
      const unprepared = [statefulSet({ labels: { ...labels, 'grafana.com/prepare-downscale': 'false' } })];
      expect(judge(seen({ ledgers: [ledger], statefulSets: unprepared }), change).outcome).toBe('allow');
      expect(judge(seen({ ledgers: [ledger] }), { ...change, betweenZones: '3h' }).outcome).toBe('allow');
    }
    for (const past of [downscales('a', ago(3 * hourMs)), downscales('b', ago(hourMs))]) {
      expect(judge(seen({ ledgers: [ledgerOf({ downscales: past })] }), change).outcome).toBe('allow');
    }
    const unread = [{ kind: 'Ledger', namespace: 'mimir', name: 'ingester', unknown: 'forbidden' }] as const;
    expect(judge(seen({ unread }), change).results.at(-1)).toMatchObject({ rule: 'view-complete', outcome: 'unknown' });
  });

  it('that lowers the interval between zones, or changes the endpoint of its pods, is recorded with the former values', () => {
    const common = { statefulSet: set.statefulSet, uid: 'uid-ingester-zone-a', untilMs: kitNowMs + departureMs };
    const label = 'grafana.com/min-time-between-zones-downscale';
    const path = 'grafana.com/prepare-downscale-http-path';
    const seen = (labels: Readonly<Record<string, string>>) =>
      snapshotOf({ statefulSets: [statefulSet({ labels, annotations: { [path]: 'ingester/prepare' } })] });
    const lower = (before: string, betweenZones?: string) =>
      departuresOf(seen({ [label]: before }), { ...relabel, relabels: [label], ...(betweenZones === undefined ? {} : { betweenZones }) });
    for (const [before, now] of [
      ['12h', '0s'],
      ['12h', '11h59m'],
      ['12h', undefined],
      ['12h', 'never'],
      ['never', '12h'],
    ] as const) {
      expect(lower(before, now), `${before} to ${now}`).toEqual([{ ...common, label, value: before }]);
    }
    for (const [before, now] of [
      ['12h', '720m'],
      ['12h', '13h'],
      ['0s', undefined],
      ['-1h', '0s'],
    ] as const) {
      expect(lower(before, now), `${before} to ${now}`).toEqual([]);
    }
    const elsewhere = { ...relabel, relabels: [path] };
    const prepared = seen({ 'grafana.com/prepare-downscale': 'true' });
    expect(departuresOf(prepared, elsewhere)).toEqual([{ ...common, label: path, value: 'ingester/prepare' }]);
    expect(departuresOf(seen({ 'grafana.com/prepare-downscale': 'false' }), elsewhere)).toEqual([]);
    expect(judge(prepared, { ...elsewhere, to: 2 }).message).toContain(`one write lowers replicas and changes the annotation ${path}`);
  });

  it('is recorded: the group, and every label that protects by itself', () => {
    const common = { statefulSet: set.statefulSet, uid: 'uid-ingester-zone-a', untilMs: kitNowMs + departureMs };
    const labels = { 'grafana.com/no-downscale': 'true', 'grafana.com/prepare-downscale': 'true' };
    const seen = snapshotOf({ groups: [group()], statefulSets: [statefulSet({ labels })] });
    expect(departuresOf(seen, { ...relabel, relabels: ['team', ...Object.keys(labels)] })).toEqual([
      { ...common, group: 'ingester' },
      { ...common, label: 'grafana.com/no-downscale' },
      { ...common, label: 'grafana.com/prepare-downscale' },
    ]);
    expect(departuresOf(seen, { ...relabel, dryRun: true })).toEqual([]);
    expect(departuresOf(seen, { ...relabel, relabels: [] })).toEqual([]);
    expect(departuresOf(seen, shrink)).toEqual([]);
    expect(departuresOf(snapshotOf({ statefulSets: [statefulSet({ labels: {} })] }), relabel)).toEqual([]);
  });
});

describe('an unread pod', () => {
  const pods = [{ namespace: 'mimir', statefulSet: 'ingester-zone-a', pods: { unknown: 'forbidden' } }];
  const deletion: AdmissionRequest = { ...eviction, kind: 'deletePod' };

  it('is judged by the group of the StatefulSet in its name', () => {
    expect(judge(without([], { pods }), eviction)).toMatchObject({ outcome: 'allow', results: [] });
    expect(judge(without([], { pods }), eviction)).not.toHaveProperty('unjudged');
    const unread = [{ kind: 'Group', unknown: 'forbidden' }] as const;
    for (const request of [eviction, deletion])
      expect(judge(without([], { pods, unread }), request)).toMatchObject({
        unjudged: 'the group of StatefulSet ingester-zone-a could not be read',
      });
    expect(judge(without([departure], { pods }), eviction)).toMatchObject({ outcome: 'deny', results: [{ rule: 'protection-kept' }] });
    expect(judge(without([departure], { pods }), deletion)).toMatchObject({ outcome: 'allow' });
  });

  it('is not evicted if a ZoneAwarePodDisruptionBudget may select it', () => {
    const budget = { namespace: 'mimir', name: 'zpdb', matchLabels: { name: 'ingester-zone-a' }, maxUnavailable: 1, crossZoneDelayMs: 0 };
    for (const zoneBudgets of [[budget], { unknown: 'forbidden' }])
      expect(judge(without([], { pods, zoneBudgets }), eviction)).toMatchObject({ outcome: 'deny', code: 500 });
    const other = { ...budget, matchLabels: { name: 'distributor' } };
    expect(judge(without([], { pods, zoneBudgets: [other] }), eviction)).toMatchObject({ outcome: 'allow' });
    expect(judge(without([], { pods, zoneBudgets: [budget] }), deletion)).toMatchObject({ outcome: 'allow' });
  });
});
