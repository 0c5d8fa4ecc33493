import { describe, expect, it } from 'vitest';
import type { FaultClass, PlacedFault, Point, RequestFault } from '../../../simulation/faults/fault.ts';
import { drawnFaults, eitherFaults, placedFaults, podVerb, recordedFaults, usualLimits } from '../../../simulation/faults/source.ts';

const point = (site: string, count = 1, process = 'a1', atMs = 0): Point => ({ key: `${process}/${site}#${count}`, process, site, atMs });
const noGaps = { ...usualLimits, crashGapMs: 0, pauseGapMs: 0 };
const only = (kind: FaultClass, rate = 1) => drawnFaults(1, { [kind]: rate }, noGaps);

function requests(kind: FaultClass, verb: string, site = 'act.deletePod'): readonly (RequestFault | undefined)[] {
  const faults = only(kind);
  return Array.from({ length: 400 }, (_, index) => faults.ofRequest(point(site, index + 1), verb));
}

const kindsOf = (faults: readonly ({ readonly kind: string } | undefined)[]): readonly string[] =>
  [...new Set(faults.map((fault) => fault?.kind ?? 'none'))].sort();

describe('drawn faults', () => {
  it('happen as often as the rate says, and never without one', () => {
    const faults = drawnFaults(7, { F1: 0.05 });
    const hits = Array.from({ length: 10_000 }, (_, index) => faults.ofRequest(point('fresh.pods', index), 'list')).filter(Boolean);
    // 500, with a standard deviation of 22.
    expect(Math.abs(hits.length - 500)).toBeLessThan(110);
    const none = drawnFaults(7, {});
    expect([none.ofRequest(point('x'), 'get'), none.ofLine(point('x')), none.ofPodCall(point('x')), none.ofGate(point('x'))]).toEqual(
      new Array(4).fill(undefined),
    );
  });

  it('are the same for the same seed and place, with any other classes', () => {
    const keys = Array.from({ length: 500 }, (_, index) => point('ledger.replace', index));
    const drawn = (seed: number, rates: Partial<Record<FaultClass, number>>) =>
      keys.map((at) => drawnFaults(seed, rates).ofRequest(at, 'update'));
    expect(drawn(1, { F2: 0.1 })).toEqual(drawn(1, { F2: 0.1 }));
    expect(drawn(1, { F2: 0.1 })).not.toEqual(drawn(2, { F2: 0.1 }));
    const alone = drawn(1, { F2: 0.1 });
    const beside = drawn(1, { F2: 0.1, F3: 0.2, F5: 0.2 });
    alone.forEach((fault, index) => {
      if (fault !== undefined) expect(beside[index]).toEqual(fault);
    });
  });

  it('have parameters within the ranges of the catalogue', () => {
    const within = (value: number, from: number, to: number): void => {
      expect(value).toBeGreaterThanOrEqual(from);
      expect(value).toBeLessThanOrEqual(to);
    };
    for (const fault of requests('F3', 'delete')) if (fault?.kind === 'held') within(fault.delayMs, 1_000, 60_000);
    for (const fault of requests('F12', 'delete')) if (fault?.kind === 'pause') within(fault.durationMs, 1_000, 120_000);
    for (const fault of requests('F11', 'delete')) if (fault?.kind === 'crash') within(fault.restartAfterMs, 500, 60_000);
    const stalls = only('F7');
    let deaths = 0;
    for (let count = 1; count <= 100; count += 1) {
      const fault = stalls.ofLine(point('watch.pods.watch', count));
      if (fault?.kind === 'dead') deaths += 1;
      if (fault?.kind === 'stall') within(fault.durationMs, 5_000, 600_000);
    }
    within(deaths, 10, 35);
    const short = drawnFaults(1, { F7: 1 }, { ...noGaps, longestMs: 6_000 });
    expect(short.ofLine(point('watch.pods.watch'))).toMatchObject({ class: 'F7' });
    for (let count = 1; count <= 100; count += 1) {
      const fault = short.ofLine(point('watch.pods.watch', count));
      if (fault?.kind === 'stall') within(fault.durationMs, 5_000, 6_000);
      expect(fault?.kind).not.toBe('dead');
    }
  });

  it('crash at each of the three moments, and answer with every kind of error', () => {
    const moments = requests('F11', 'delete').map((fault) => (fault?.kind === 'crash' ? fault.moment : ''));
    expect([...new Set(moments)].sort()).toEqual(['afterApply', 'afterReply', 'beforeSend']);
    const answers = requests('F5', 'delete').flatMap((fault) => (fault?.kind === 'answer' ? [fault] : []));
    expect([...new Set(answers.map(({ what }) => `${what}`))].sort()).toEqual([
      ...['429', '500', '502', '503', '504', 'malformed', 'tls', 'truncated'],
    ]);
    // Who turns a request away with 429, or cannot be spoken with, has not carried it out.
    expect(answers.filter(({ what, isApplied }) => isApplied && (what === 429 || what === 'tls'))).toEqual([]);
    expect(answers.filter(({ what, isApplied }) => isApplied && what === 500)).not.toEqual([]);
    for (const { what, retryAfterSeconds } of answers) if (what === 429) expect(retryAfterSeconds).toBeGreaterThanOrEqual(1);
  });

  it('fit the request', () => {
    expect(kindsOf(requests('F4', 'get'))).toEqual(['none']);
    expect(kindsOf(requests('F4', 'create'))).toEqual(['none']);
    expect(kindsOf(requests('F4', 'create', 'act.evictPod'))).toEqual(['foreignWrite']);
    expect(kindsOf(requests('F4', 'patch'))).toEqual(['foreignWrite']);
    expect(kindsOf(requests('F6', 'update'))).toEqual(['none']);
    expect(kindsOf(requests('F6', 'list'))).toEqual(['expired', 'tooLarge']);
    const all = drawnFaults(1, { F1: 1, F2: 1, F3: 1, F4: 1, F5: 1, F6: 1 });
    expect(all.ofRequest(point('pods.prepare'), podVerb)).toBeUndefined();
    expect(drawnFaults(1, { F11: 1 }).ofRequest(point('pods.prepare'), podVerb)).toMatchObject({ class: 'F11' });
    expect(kindsOf(requests('F1', 'update', 'lease.renew'))).toEqual(['lost']);
  });

  it('of lines, pods and gates are of every kind', () => {
    const faults = drawnFaults(1, { F8: 1, F21: 1, F22: 1 });
    const counts = Array.from({ length: 400 }, (_, index) => index + 1);
    expect(kindsOf(counts.map((count) => faults.ofLine(point('watch.pods.watch', count))))).toEqual([
      ...['coalesce', 'duplicate', 'reconnectToPast'],
    ]);
    expect(kindsOf(counts.map((count) => faults.ofPodCall(point('pods.prepare', count))))).toHaveLength(8);
    expect(kindsOf(counts.map((count) => faults.ofGate(point('gate.read', count))))).toHaveLength(7);
    expect([only('F6').ofLine(point('watch.pods.watch')), only('F9').ofLine(point('watch.pods.watch'))]).toEqual([
      { class: 'F6', kind: 'gone' },
      { class: 'F9', kind: 'lose' },
    ]);
  });

  it('kill and stop a process more often where it acts than where it keeps the Lease', () => {
    const faults = drawnFaults(1, { F11: 0.1 }, noGaps);
    const hits = (site: string): number => {
      const places = Array.from({ length: 2_000 }, (_, index) => point(site, index));
      return places.filter((place) => faults.ofRequest(place, 'update') !== undefined).length;
    };
    const [lease, watch, act] = [hits('lease.renew'), hits('watch.pods.watch'), hits('act.deletePod')];
    // 40, 200 and 800 of 2,000.
    expect(lease).toBeGreaterThan(10);
    expect(watch).toBeGreaterThan(2 * lease);
    expect(act).toBeGreaterThan(2 * watch);
  });

  it('leave a process some time between two crashes', () => {
    const faults = drawnFaults(1, { F11: 1 }, { ...usualLimits, crashGapMs: 10_000 });
    const at = (process: string, atMs: number, count: number) => faults.ofRequest(point('ledger.replace', count, process, atMs), 'update');
    expect(at('a1', 0, 1)).toMatchObject({ class: 'F11' });
    expect(at('a2', 9_999, 2)).toBeUndefined();
    expect(at('b1', 5_000, 3)).toMatchObject({ class: 'F11' });
    expect(at('a2', 10_000, 4)).toMatchObject({ class: 'F11' });
  });
});

describe('placed faults', () => {
  const plan: readonly PlacedFault[] = [
    { at: 'a1/act.deletePod#2', port: 'request', fault: { class: 'F2', kind: 'replyLost', isSilent: true } },
    { at: 'a1/watch.pods.watch#5', port: 'line', fault: { class: 'F9', kind: 'lose' } },
    { at: 'a1/pods.prepare#1', port: 'pod', fault: { class: 'F21', kind: 'hang' } },
    { at: 'a1/gate.read#1', port: 'gate', fault: { class: 'F22', kind: 'nan' } },
  ];

  it('happen at their places and ports only', () => {
    const faults = placedFaults(plan);
    expect(faults.ofRequest(point('act.deletePod', 1), 'delete')).toBeUndefined();
    expect(faults.ofRequest(point('act.deletePod', 2), 'delete')).toEqual(plan[0]?.fault);
    expect(faults.ofRequest(point('act.deletePod', 2, 'a2'), 'delete')).toBeUndefined();
    expect(faults.ofLine(point('watch.pods.watch', 5))).toEqual(plan[1]?.fault);
    expect(faults.ofRequest(point('watch.pods.watch', 5), 'watch')).toBeUndefined();
    expect(faults.ofPodCall(point('pods.prepare'))).toEqual(plan[2]?.fault);
    expect(faults.ofGate(point('gate.read'))).toEqual(plan[3]?.fault);
  });

  it('come before drawn ones where both are possible', () => {
    const faults = eitherFaults(placedFaults(plan), drawnFaults(1, { F1: 1, F21: 1 }));
    expect(faults.ofRequest(point('act.deletePod', 2), 'delete')).toEqual(plan[0]?.fault);
    expect(faults.ofRequest(point('act.deletePod', 1), 'delete')).toMatchObject({ class: 'F1' });
    expect(faults.ofPodCall(point('pods.prepare'))).toEqual(plan[2]?.fault);
  });
});

describe('recorded faults', () => {
  it('do not count when they have changed nothing, and keep their places', () => {
    const faults = recordedFaults(drawnFaults(3, { F4: 1 }), () => false);
    faults.ofRequest(point('ledger.replace'), 'update');
    faults.ofRequest(point('ledger.replace', 2), 'update');
    faults.missed('F4');
    expect([faults.counts(), faults.placed().length]).toEqual([{ F4: 1 }, 2]);
    faults.missed('F4');
    expect(faults.counts()).toEqual({});
  });

  it('delay no event of another object', () => {
    const coalesce = { class: 'F8', kind: 'coalesce' } as const;
    const placed = [1, 2].map((count) => ({ at: `a1/watch.pods.watch#${count}`, port: 'line', fault: coalesce }) as const);
    const faults = recordedFaults(placedFaults(placed), () => false);
    expect(faults.ofLine(point('watch.pods.watch', 1), '{"type":"BOOKMARK","object":{}}')).toBeUndefined();
    expect(faults.ofLine(point('watch.pods.watch', 2), '{"type":"MODIFIED","object":{}}')).toEqual(coalesce);
    expect(faults.counts()).toEqual({ F8: 1 });
  });

  it('are counted by class, kept with their places, and stop when they are over', () => {
    let isOver = false;
    const heard: string[] = [];
    const faults = recordedFaults(
      drawnFaults(3, { F11: 1, F7: 1, F21: 1, F22: 1 }),
      () => isOver,
      ({ at }) => heard.push(at),
    );
    const asked = [
      faults.ofRequest(point('ledger.replace'), 'update'),
      faults.ofLine(point('watch.pods.watch')),
      faults.ofPodCall(point('pods.prepare')),
      faults.ofGate(point('gate.read')),
    ];
    faults.happened('F10');
    isOver = true;
    expect([faults.ofRequest(point('ledger.replace', 1, 'b1'), 'update'), faults.ofLine(point('watch.pods.watch', 2))]).toEqual([
      undefined,
      undefined,
    ]);
    expect(faults.counts()).toEqual({ F7: 1, F10: 1, F11: 1, F21: 1, F22: 1 });
    expect(faults.placed()).toEqual([
      { at: 'a1/ledger.replace#1', port: 'request', fault: asked[0] },
      { at: 'a1/watch.pods.watch#1', port: 'line', fault: asked[1] },
      { at: 'a1/pods.prepare#1', port: 'pod', fault: asked[2] },
      { at: 'a1/gate.read#1', port: 'gate', fault: asked[3] },
    ]);
    expect(heard).toHaveLength(4);
    const moment = asked[0]?.kind === 'crash' ? (asked[0] as Extract<RequestFault, { kind: 'crash' }>).moment : '';
    expect(faults.crashes()).toEqual({ [`ledger.replace ${moment}`]: 1 });
  });
});
