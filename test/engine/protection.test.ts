import { describe, expect, it } from 'vitest';
import type { AdmissionRequest } from '../../engine/decision.ts';
import { judge } from '../../engine/judge.ts';
import { departureMs, departuresOf } from '../../engine/protection.ts';
import type { Departure, Snapshot } from '../../engine/snapshot.ts';
import { adopted, group } from '../kit/groups.ts';
import { kitNowMs, statefulSet } from '../kit/objects.ts';
import { ago, hourMs, ledgerOf, minuteMs, preparation } from '../kit/questions.ts';
import { type SnapshotOverrides, snapshotOf } from '../kit/snapshots.ts';

const set = { namespace: 'mimir', statefulSet: 'ingester-zone-a', dryRun: false } as const;
const relabel: Extract<AdmissionRequest, { kind: 'update' }> = {
  ...{ kind: 'update', ...set, from: 3, to: 3, isTemplateChanged: false, strategy: 'OnDelete', relabels: ['rollout-group'], via: 'update' },
};
const shrink: AdmissionRequest = { kind: 'scale', ...set, from: 3, to: 2, via: 'scale' };
const eviction: AdmissionRequest = { kind: 'evictPod', namespace: 'mimir', pod: 'ingester-zone-a-1', dryRun: false };
const departure: Departure = { statefulSet: set.statefulSet, uid: 'uid-ingester-zone-a', group: 'ingester', untilMs: kitNowMs + minuteMs };
const without = (departures: readonly Departure[], overrides: SnapshotOverrides = {}): Snapshot =>
  snapshotOf({ statefulSets: [statefulSet({ labels: {} })], departures, ...overrides });

describe('a StatefulSet that has left its group', () => {
  it('is held for a while, against whatever takes pods away', () => {
    for (const request of [shrink, eviction, { kind: 'deleteStatefulSet', ...set }] as const) {
      const answer = judge(without([departure]), request);
      expect(answer).toMatchObject({ outcome: 'deny', effect: 'hold' });
      expect(answer.results.at(-1)).toMatchObject({ rule: 'protection-kept', outcome: 'wait', earliestMs: kitNowMs + minuteMs });
    }
  });

  it('grows, and is free when the time is over, for another object of the name, and back in the group', () => {
    expect(judge(without([departure]), { ...shrink, to: 4 }).outcome).toBe('allow');
    expect(judge(without([{ ...departure, untilMs: kitNowMs }]), shrink).outcome).toBe('allow');
    expect(judge(without([{ ...departure, uid: 'former' }]), shrink).outcome).toBe('allow');
    expect(judge(without([departure], { groups: [group()] }), shrink).outcome).toBe('allow');
  });

  it('is held while nobody can read what was taken out of its group, unless it was certainly in none', () => {
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

  it('is held in the group that it has joined instead', () => {
    const other = group({ name: 'other', zones: [{ name: 'a', statefulSet: 'ingester-zone-a' }] });
    expect(judge(without([departure], { groups: [other] }), shrink).message).toContain('left the group ingester');
  });

  it('that lost a label is held for what the label refused', () => {
    const { group: _group, ...rest } = departure;
    const lost = { ...rest, label: 'grafana.com/no-downscale' };
    expect(judge(without([lost]), shrink).message).toContain('lost the label grafana.com/no-downscale');
    expect(judge(without([lost]), eviction).outcome).toBe('allow');
  });

  it('that has the label of a flag with another value than true has lost it', () => {
    const { group: _group, ...rest } = departure;
    const label = 'grafana.com/prepare-downscale';
    const now = (value: string) => without([{ ...rest, label }], { statefulSets: [statefulSet({ labels: { [label]: value } })] });
    expect(judge(now('false'), shrink).message).toContain(`lost the label ${label}`);
    expect(judge(now('true'), shrink).outcome).toBe('allow');
  });
});

describe('a write that takes protection away', () => {
  it('must not lower replicas too', () => {
    const answer = judge(snapshotOf({ groups: [adopted()] }), { ...relabel, to: 2 });
    expect(answer).toMatchObject({ outcome: 'deny', code: 403 });
    expect(answer.message).toContain('refused by protection-kept: it lowers replicas and changes the label rollout-group in one write');
    expect(judge(snapshotOf({ groups: [adopted()] }), { ...relabel, to: 2, relabels: ['team'] }).outcome).toBe('allow');
  });

  it('is refused while nobody can read what is under way', () => {
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

  it('waits when it takes the time of the last decrease back', () => {
    const definition = adopted({ zones: [{ name: 'a', betweenZonesMs: 2 * hourMs }, 'b'] });
    const forget = { ...relabel, relabels: ['grafana.com/last-downscale'] };
    const shrunk = (atMs: number) => [statefulSet({ annotations: { 'grafana.com/last-downscale': new Date(atMs).toISOString() } })];
    const recent = judge(snapshotOf({ groups: [definition], statefulSets: shrunk(ago(hourMs)) }), forget);
    expect(recent.results.at(-1)).toMatchObject({ rule: 'protection-kept', outcome: 'wait', earliestMs: kitNowMs + hourMs });
    expect(judge(snapshotOf({ groups: [definition], statefulSets: shrunk(ago(3 * hourMs)) }), forget).outcome).toBe('allow');
    expect(judge(snapshotOf({ groups: [group()], statefulSets: shrunk(ago(hourMs)) }), forget).outcome).toBe('allow');
  });

  it('waits when it changes the time for which others wait', () => {
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
  });

  it('is remembered: the group, and every label that protects by itself', () => {
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
