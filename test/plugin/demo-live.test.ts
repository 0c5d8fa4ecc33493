import { describe, expect, it } from 'vitest';
import type { Turn } from '../../engine/plan/forward.ts';
import { renderLanes } from '../../plugin/output/simulate.ts';
import { type Moment, renderFrame, transitionKey, transitionLine } from '../../plugin/output/status.ts';
import { zoneSpans } from '../../plugin/simulation/runs.ts';
import { decision, rollStep, zoneDecision } from './decision-kit.ts';
import { look } from './plan-kit.ts';

const moment: Moment = {
  decision: decision({ steps: [rollStep('zone-b', [])] }),
  zones: [
    { zone: 'zone-a', updated: 20, done: 20, inFlight: 0, failing: 0, toDo: 0 },
    { zone: 'zone-b', updated: 7, done: 7, inFlight: 5, failing: 0, toDo: 8 },
    { zone: 'zone-c', updated: 0, done: 0, inFlight: 0, failing: 0, toDo: 20 },
  ],
  nowMs: 0,
  elapsedSeconds: 2040,
  totalSeconds: 6600,
};

const soaking: Moment = {
  ...moment,
  decision: decision({
    outcome: 'wait',
    phase: 'Waiting',
    waits: [{ rule: 'soak', outcome: 'wait', fact: 'wave rest has soaked for 1m', limit: '5m', earliestMs: 240_000 }],
  }),
  zones: moment.zones.map((zone) => ({ ...zone, toDo: zone.toDo + zone.inFlight, inFlight: 0 })),
};

describe('the live display', () => {
  it('shows done, in flight and outdated pods with three fills and as text', () => {
    expect(renderFrame(moment, look({ columns: 80, ascii: true })).join('\n')).toMatchInlineSnapshot(`
      "mimir/ingester   ROLLING   wave 2/3 rest   +34m of about 1h50m
        zone-a   20/20 updated [######################]  done
        zone-b    7/20 updated [########======........]  5 in flight, 8 to go
        zone-c    0/20 updated [......................]  waits for zone zone-b
        now: 5 pods of zone-b in flight"
    `);
  });

  it('shows the wait and its earliest end', () => {
    expect(renderFrame(soaking, look({ columns: 100 })).at(-1)).toBe(
      '  blocked by soak: wave rest has soaked for 1m (limit: 5m), at the earliest in 4m',
    );
  });

  it('shows a single pod among many', () => {
    const zones = [{ zone: 'zone-a', updated: 498, done: 498, inFlight: 1, failing: 0, toDo: 1 }];
    expect(renderFrame({ ...moment, zones }, look({ columns: 80, ascii: true }))[1]).toMatch(/\[#+=\.\]/);
  });

  it('is never wider than the terminal', () => {
    for (const columns of [60, 80, 120]) {
      for (const one of [moment, soaking]) {
        expect(renderFrame(one, look({ columns })).filter((line) => line.length > columns)).toEqual([]);
      }
    }
  });

  it('writes one line per transition for logs, with a clock and fields that can be searched', () => {
    expect(transitionLine(moment)).toBe('+00:34:00 mimir/ingester rolling wave=2/3 name=rest zone=zone-b updated=27/60');
    expect(transitionLine(soaking)).toBe('+00:34:00 mimir/ingester waiting wave=2/3 name=rest updated=27/60 waits=soak');
  });

  it('has a transition for another zone, wave or wait, and none for one more pod', () => {
    const key = transitionKey(moment);
    const more = moment.zones.map((zone) => (zone.zone === 'zone-b' ? { ...zone, updated: 8, done: 8, toDo: 7 } : zone));
    expect(transitionKey({ ...moment, zones: more })).toBe(key);
    expect(transitionKey(soaking)).not.toBe(key);
    expect(transitionKey({ ...moment, decision: decision({ wave: { name: 'last', index: 2, count: 3 } }) })).not.toBe(key);
  });
});

describe('lanes', () => {
  it('draw each zone over time, with a mark for each kind and a legend of the used kinds', () => {
    const spans = [
      { lane: 'zone-a', kind: 'roll', startSeconds: 0, endSeconds: 600 },
      { lane: 'zone-a', kind: 'soak', startSeconds: 600, endSeconds: 1200 },
      { lane: 'zone-b', kind: 'wait', startSeconds: 0, endSeconds: 1200 },
      { lane: 'zone-b', kind: 'roll', startSeconds: 1200, endSeconds: 2400 },
      { lane: 'zone-b', kind: 'fault', startSeconds: 1800, endSeconds: 1800 },
    ] as const;
    expect(renderLanes(spans, { lanes: ['zone-a', 'zone-b', 'zone-c'], columns: 52 })).toEqual([
      '  zone-a |##########==========                    |',
      '  zone-b |....................##########x#########|',
      '  zone-c |                                        |',
      '          0                                   +40m',
      '          . wait  = soak  # roll  x fault',
    ]);
  });

  it('show even the shortest span, and no row without spans', () => {
    const spans = [
      { lane: 'a', kind: 'wait', startSeconds: 0, endSeconds: 90_000 },
      { lane: 'a', kind: 'scale', startSeconds: 90_000, endSeconds: 90_001 },
    ] as const;
    expect(renderLanes(spans, { lanes: ['a'], columns: 80 })[0]).toContain('.%|');
    expect(renderLanes([], { lanes: ['a'], columns: 80 })).toEqual([]);
  });

  it('come from the decisions of a run: active, soak, wait, done', () => {
    const pending = rollStep('zone-b', []);
    const turn = (nowMs: number, rest: Parameters<typeof decision>[0]): Turn => ({ nowMs, decision: decision(rest) });
    const oldB = zoneDecision('zone-b');
    const turns = [
      turn(0, { zones: [zoneDecision('zone-a', { available: 19 }), oldB], steps: [pending] }),
      turn(90_000, {
        outcome: 'wait',
        waits: [{ rule: 'soak', outcome: 'wait', fact: '' }],
        zones: [zoneDecision('zone-a', { updated: 20 }), oldB],
        steps: [pending],
      }),
      turn(100_000, { zones: [zoneDecision('zone-a', { updated: 20 }), zoneDecision('zone-b', { available: 1 })], steps: [pending] }),
      turn(120_000, {
        outcome: 'done',
        zones: [zoneDecision('zone-a', { updated: 20 }), zoneDecision('zone-b', { updated: 20 })],
        steps: [],
      }),
    ];
    expect(zoneSpans(turns)).toEqual([
      { lane: 'zone-a', kind: 'roll', startSeconds: 0, endSeconds: 90 },
      { lane: 'zone-b', kind: 'wait', startSeconds: 0, endSeconds: 100 },
      { lane: 'zone-a', kind: 'soak', startSeconds: 90, endSeconds: 100 },
      { lane: 'zone-b', kind: 'roll', startSeconds: 100, endSeconds: 120 },
    ]);
  });
});
