import { describe, expect, it } from 'vitest';
import type { Estimate } from '../../engine/plan/estimate.ts';
import type { PodState, PublishedDecision } from '../../engine/publish/published.ts';
import { rolesIn } from '../../plugin/live/facts.ts';
import type { LiveGroup } from '../../plugin/live/groups.ts';
import { renderLiveExplanation } from '../../plugin/output/explain-live.ts';
import { groupDocument } from '../../plugin/output/formats.ts';
import { renderGroups, renderTree } from '../../plugin/output/get.ts';
import { endText, etaDocument, startingText } from '../../plugin/output/group-text.ts';
import type { TableLook } from '../../plugin/output/plan/table.ts';
import { heartbeatLine, renderFrame, renderStatus, statusKey, statusLine } from '../../plugin/output/status.ts';
import { zoneProgress } from '../../plugin/output/zone-progress.ts';
import { kitNowMs } from '../kit/objects.ts';
import { expectGolden, inEachLook } from './golden.ts';
import { definition, done, exposed, fromAgent, paused, reserved, rolledBack, rolling, waiting } from './live-kit.ts';
import { look } from './plan-kit.ts';

/** Somebody looks a while after the decision was made. */
const nowMs = kitNowMs + 42_000;
const all: readonly LiveGroup[] = [
  rolling,
  { ...waiting, group: 'store-gateway' },
  { ...paused, group: 'distributor' },
  { ...done, group: 'querier' },
  { ...rolledBack, group: 'ruler' },
].map(fromAgent);

const changes = [{ from: 'grafana/mimir:2.16.0', to: 'grafana/mimir:2.17.1' }];
const followers = definition.zones.map((zone) => (zone.name === 'a' ? zone : { ...zone, follows: 'a' }));

/** The pods of this run took three minutes. */
const estimate: Estimate = {
  end: { p50Ms: nowMs + 4_930_000, p90Ms: nowMs + 7_300_000 },
  zones: { b: { p50Ms: nowMs + 2_000_000, p90Ms: nowMs + 3_000_000 }, c: { p50Ms: nowMs + 4_930_000, p90Ms: nowMs + 7_300_000 } },
  approvals: 1,
  start: { p50Seconds: 190, p90Seconds: 240 },
  measuredPods: 27,
  stop: { p50Seconds: 30, p90Seconds: 120 },
  measuredStops: 0,
};

const screens: Readonly<Record<string, (look: TableLook) => string>> = {
  groups: (at) => renderGroups({ groups: all, nowMs, hasNamespaces: true }, at),
  'tree-rolling': (at) => `${renderTree(fromAgent(rolling), nowMs, at).join('\n')}\n`,
  'tree-pods': (at) =>
    `${renderTree(fromAgent(rolling), nowMs, { ...at, pods: 'all' }, { roles: rolesIn({ zones: followers }) }).join('\n')}\n`,
  'tree-waiting': (at) => `${renderTree(fromAgent(waiting), nowMs, at).join('\n')}\n`,
  'status-rolling': (at) => `${renderStatus(fromAgent(rolling), nowMs, at).join('\n')}\n`,
  'status-end': (at) => `${renderStatus(fromAgent(rolling), nowMs, at, { estimation: estimate, changes }).join('\n')}\n`,
  'tree-end': (at) => `${renderTree(fromAgent(rolling), nowMs, at, { estimation: estimate, changes }).join('\n')}\n`,
  'status-unknown-end': (at) =>
    `${renderStatus(fromAgent(paused), nowMs, at, { estimation: { unknown: 'the group is paused by an unverified requester (read latency)' } }).join('\n')}\n`,
  'tree-rolled-back': (at) => `${renderTree(fromAgent(rolledBack), nowMs, at).join('\n')}\n`,
  'status-rolled-back': (at) => `${renderStatus(fromAgent(rolledBack), nowMs, at).join('\n')}\n`,
  'explain-rolled-back': (at) =>
    renderLiveExplanation({ live: fromAgent(rolledBack), subject: {}, nowMs, showsAllRules: false, outdated: [] }, at),
  'explain-waiting': (at) =>
    renderLiveExplanation({ live: fromAgent(waiting), subject: {}, nowMs, showsAllRules: false, outdated: [] }, at),
  'explain-pod': (at) =>
    renderLiveExplanation(
      { live: fromAgent(rolling), subject: { zone: 'b', pod: 'ingester-zone-b-12' }, nowMs, showsAllRules: false, outdated: [] },
      at,
    ),
};

// biome-ignore lint/suspicious/noControlCharactersInRegex: colour is made of them.
const colours = /\u001b\[\d+m/g;

describe.each(Object.entries(screens))('%s', (name, render) => {
  it('is shown at 80 and 120 columns, and complete in a pipe', async () => {
    await expectGolden(`live-${name}`, { ...inEachLook(render), pipe: render(look()) });
  });

  it.each([80, 120])('fits %d columns, and has the same text without colour', (columns) => {
    const plain = render(look({ columns }));
    expect(plain.split('\n').filter((line) => line.length > columns)).toEqual([]);
    expect(render(look({ columns, colour: true })).replace(colours, '')).toBe(plain);
  });
});

describe('the estimated end', () => {
  const at = (p50Seconds: number, p90Seconds?: number): Estimate => ({
    ...estimate,
    end: { p50Ms: nowMs + p50Seconds * 1000, ...(p90Seconds === undefined ? {} : { p90Ms: nowMs + p90Seconds * 1000 }) },
  });

  it.each([
    [at(4930, 7300), 'in about 1h23m to 2h2m, plus 1 approval; pods took 3m10s to start (measured on 27) and are assumed to stop in 30s'],
    [{ ...at(130, 150), approvals: 0, measuredPods: 0 }, 'in about 3m; pods are assumed to stop in 30s and to start in 3m10s'],
    [
      { ...at(-5, 20), approvals: 2, measuredStops: 9 },
      'in about 1m, plus 2 approvals; pods took 3m10s to start (measured on 27) and 30s to stop',
    ],
    [at(600), 'in about 10m or much later, plus 1 approval; pods took 3m10s to start (measured on 27) and are assumed to stop in 30s'],
    [{ unknown: 'INC-1' }, 'unknown: INC-1'],
  ])('is approximate and names its assumptions: %#', (one, text) => {
    expect(endText(one, nowMs)).toBe(text);
  });

  it('names the oldest starting pod, and whether it is slow', () => {
    expect(startingText(rolling, estimate, nowMs)).toBe('b-12 has been starting for 2m44s (usually 3m10s)');
    const later = nowMs + 180_000;
    expect(startingText(rolling, estimate, later)).toBe('b-12 has been starting for 5m44s (slower than usual; 90% start within 4m)');
    expect(startingText(waiting, estimate, nowMs)).toBeUndefined();
  });

  it('has the same facts for programs and for logs', () => {
    expect(etaDocument(estimate, nowMs)).toMatchObject({
      eta: {
        p50Seconds: 4930,
        p90Seconds: 7300,
        excludes: ['human'],
        approvals: 1,
        podStart: { measuredPods: 27 },
        zones: { b: { p50Seconds: 2000 } },
      },
    });
    expect([etaDocument({ unknown: 'paused' }, nowMs), etaDocument(undefined, nowMs)]).toEqual([{ eta: { unknown: 'paused' } }, {}]);
    expect(heartbeatLine(fromAgent(rolling), nowMs, estimate)).toMatch(
      / for=42s end=2026-03-02T13:22:52Z\.\.2026-03-02T14:02:22Z missing-approvals=1$/,
    );
    expect(heartbeatLine(fromAgent(rolling), nowMs, { ...estimate, approvals: 0 })).toMatch(/ end=[^ ]+$/);
    expect(heartbeatLine(fromAgent(paused), nowMs, { unknown: 'paused' })).toMatch(/ end=\?$/);
  });
});

describe('the pods of a zone', () => {
  const zone = { zone: 'a', statefulSet: 'ingester-zone-a', replicas: 5, updated: 3, available: 3, isReady: false } as const;
  const revisions = [
    { revision: 'rev-1', ordinals: '0-1' },
    { revision: 'rev-2', ordinals: '2-4' },
  ];
  const pod = (ordinal: number, state: PodState) => ({ zone: 'a', pod: `ingester-zone-a-${ordinal}`, state });

  it.each(['starting', 'crashing', 'terminating', 'announced', 'nodeDown'] as const)('count once when an updated pod is %s', (state) => {
    const progress = zoneProgress({ ...zone, revisions }, [pod(2, state), pod(1, 'terminating'), pod(5, 'leaving')]);
    const failing = state === 'crashing' || state === 'nodeDown' ? 1 : 0;
    expect(progress).toEqual({ zone: 'a', updated: 3, done: 2, inFlight: 2 - failing, failing, toDo: 1 });
  });

  it('count as to do if one is missing or outdated', () => {
    const view = {
      ...zone,
      updated: 2,
      revisions: [
        { revision: 'rev-1', ordinals: '0-1' },
        { revision: 'rev-2', ordinals: '3-4' },
      ],
    };
    expect(zoneProgress(view, [pod(2, 'missing'), pod(1, 'crashing')])).toEqual({
      zone: 'a',
      updated: 2,
      done: 2,
      inFlight: 1,
      failing: 1,
      toDo: 1,
    });
  });
});

describe('the revisions of a zone', () => {
  const [a] = paused.zones;
  const revisions = [
    { revision: 'ingester-zone-a-5885', ordinals: '1-2' },
    { revision: 'ingester-zone-a-b9c5', ordinals: '0' },
  ];
  const zone = { ...a, zone: 'a', statefulSet: 'ingester-zone-a', replicas: 3, available: 3, isReady: true, revisions };
  const rows = (more: Pick<PublishedDecision['zones'][number], 'updated' | 'desiredRevision'>, detail: 'ranges' | 'all') =>
    renderTree(fromAgent({ ...paused, pods: [], zones: [{ ...zone, ...more }] }), nowMs, { ...look(), pods: detail })
      .filter((line) => / {2}(outdated|updated)/.test(line))
      .map((line) => line.trim().split(/ {2,}/).slice(0, 3));

  it('are outdated while no pod has the update revision, which is after the arrow', () => {
    const target = { updated: 0, desiredRevision: 'ingester-zone-a-6c99' };
    expect(rows(target, 'ranges')).toEqual([
      ['a', 'outdated', '5885, b9c5→6c99'],
      ['1-2', 'outdated', '5885'],
      ['0', 'outdated', 'b9c5'],
    ]);
    expect(
      rows(target, 'all')
        .slice(1)
        .map(([, state]) => state),
    ).toEqual(['outdated', 'outdated', 'outdated']);
  });
});

describe('warnings', () => {
  it('are shown in get, except those that a stop repeats', () => {
    const restart = { rule: 'restart-version', outcome: 'wait', fact: 'ingester-zone-a-2 would come back at rev-1' } as const;
    const rolledBack = { rule: 'rolled-back', outcome: 'wait', fact: 'zone a stays at rev-1' } as const;
    const stop = { rule: 'rolled-back', fact: 'rev-2 was rolled back', zones: ['a'], isBlocking: true, endsWith: 'retry' };
    const decision = { ...waiting, warnings: [restart, rolledBack], stops: [stop] };
    const screen = renderTree({ decision, from: 'agent', unread: [] }, nowMs, look()).join('\n');
    expect(screen).toContain('warnings\n  restart-version: ingester-zone-a-2 would come back at rev-1');
    expect(screen).not.toContain('zone a stays at rev-1');
  });
});

describe('an age in a fact', () => {
  it('is computed at the time of display', () => {
    const soak = { rule: 'soak', outcome: 'wait', fact: 'wave canary has soaked since 1970-01-01T00:00:00Z', limit: '1h' } as const;
    const wait = { ...soak, age: { words: 'since 1970-01-01T00:00:00Z', fromMs: 0 }, earliestMs: 3_600_000, sinceMs: 0, zones: ['a'] };
    const decision = { ...waiting, waits: [wait], steps: waiting.steps.map((step) => ({ ...step, results: [wait] })), zones: [] };
    const live = { decision, from: 'agent', unread: [] } as const;
    const nowMs = 20 * 60_000;
    const text = 'wave canary has soaked for 20m (limit: 1h)';
    expect(renderTree(live, nowMs, look()).join(' ')).toContain(text);
    expect(renderLiveExplanation({ live, subject: {}, nowMs, showsAllRules: false, outdated: [] }, look())).toContain(text);
    expect(renderStatus(live, nowMs, look()).join(' ')).toContain(text);
    expect(renderGroups({ groups: [live], nowMs, hasNamespaces: false }, look())).toContain(text);
    expect(renderTree(live, 3_600_001, look()).join(' ')).toContain('wait ended at 1970-01-01 01:00 UTC; passes with the next decision');
  });

  it('does not exceed the time of a wait while no agent decides, and a future time is never 0s', () => {
    const soak = { rule: 'soak', outcome: 'wait', fact: 'wave canary has soaked for 14s', limit: '1m' } as const;
    const wait = { ...soak, age: { words: 'for 14s', fromMs: 0 }, earliestMs: 60_000, sinceMs: 0, zones: ['a'] };
    const stop = { rule: 'paused', fact: 'the group is paused', untilMs: 60_000, zones: ['a'], isBlocking: true, endsWith: 'resume' };
    const decision = { ...waiting, waits: [wait], stops: [stop], zones: [], outcome: 'wait', phase: 'Waiting' } as const;
    const ended = renderTree({ decision, from: 'agent', unread: [] }, 5 * 60_000, look()).join('\n');
    expect(ended).toContain('wave canary has soaked for 1m (limit: 1m); the wait ended at 1970-01-01 00:01 UTC');
    const unattended = 'agent not running: Lease expired 4m ago';
    const live = { decision, from: 'agent', unread: [], unattended } as const;
    const screen = renderTree(live, 5 * 60_000, look()).join('\n');
    expect(screen).toContain(`${unattended}; nothing is carried out`);
    expect(screen).toContain('the group is paused, until 1970-01-01 00:01 UTC (passed)');
    const soon = [renderTree(live, 59_900, look()), renderStatus({ decision, from: 'agent', unread: [] }, 59_900, look())].join('\n');
    expect(soon).toContain('(in 1s)');
    expect(soon).not.toContain('in 0s');
  });
});

function explained(decision: PublishedDecision): string {
  return renderLiveExplanation({ live: fromAgent(decision), subject: {}, nowMs, showsAllRules: false, outdated: [] }, look());
}

describe('lines of a log', () => {
  it('have a time, the name and searchable fields', () => {
    expect([rolling, waiting, paused, done].map((decision) => statusLine(fromAgent(decision), nowMs))).toMatchInlineSnapshot(`
      [
        "2026-03-02T12:00:42Z mimir/ingester rolling wave=3/3 name=rest zone=b updated=28/60 available=58/60 waits=zone-budget "2 pods of b in flight"",
        "2026-03-02T12:00:42Z mimir/ingester waiting wave=3/3 name=rest updated=20/60 available=60/60 waits=approval "approval: 0 of 1 approvals from oncall (limit: 1 from oncall)"",
        "2026-03-02T12:00:42Z mimir/ingester paused wave=2/3 name=zone-a updated=1/60 available=60/60 waits=paused stops=paused "paused: the group is paused by an unverified requester (read latency)"",
        "2026-03-02T12:00:42Z mimir/ingester done updated=9/9 available=9/9",
      ]
    `);
    expect(heartbeatLine(fromAgent(waiting), nowMs)).toMatchInlineSnapshot(
      `"2026-03-02T12:00:42Z heartbeat mimir/ingester waiting wave=3/3 name=rest updated=20/60 available=60/60 waits=approval "approval: 0 of 1 approvals from oncall (limit: 1 from oncall)" for=42s"`,
    );
  });

  it('show no time for a group at rest without a run, and the duration of an ended run', () => {
    expect(renderStatus(fromAgent(done), nowMs, look())[0]).toBe('mimir/ingester   DONE');
    const [line = ''] = renderStatus(fromAgent(rolledBack), nowMs, look());
    expect(line).toMatch(/ROLLED BACK {3}took \d+m$/);
  });

  it('name the wait of a zone like get', () => {
    for (const render of [renderStatus, renderTree]) {
      const text = render(fromAgent(waiting), nowMs, look()).join('\n');
      expect(text).toMatch(/^ *b .* {2}blocked by approval$/m);
      expect(text).toMatch(/^ *c .* {2}waits for zone b$/m);
    }
  });

  it('draw a bar for every number of pods', () => {
    const { glyphs } = look({ ascii: true });
    const zones = (done: number, inFlight: number, toDo: number) => [{ zone: 'a', updated: done, done, inFlight, failing: 0, toDo }];
    const bars = [zones(0, 79, 1), zones(1, 99, 0), zones(1, 99, 1)].map((given) => {
      const moment = { decision: { ...rolling, actions: [] }, zones: given, nowMs, elapsedSeconds: 0, totalSeconds: undefined };
      return /\[(.*)\]/.exec(renderFrame(moment, look({ columns: 80, ascii: true })).join('\n'))?.[1]?.replace(/(.)\1*/g, '$1');
    });
    expect(bars).toEqual([`${glyphs.half}${glyphs.empty}`, `${glyphs.full}${glyphs.half}`, `${glyphs.full}${glyphs.half}${glyphs.empty}`]);
  });

  it('names the zone that is next while no action was carried out', () => {
    const zones = rolling.zones.map((zone) => ({ ...zone, available: zone.replicas }));
    const lines = renderStatus(fromAgent({ ...rolling, outcome: 'act', zones, pods: [], waits: [], actions: [] }), nowMs, look());
    expect(lines).toContain('  next: b');
  });

  it('names each rule once in the log line of status', () => {
    const twice = { ...waiting, waits: waiting.waits.flatMap((wait) => [wait, wait]) };
    expect(statusLine(fromAgent(twice), nowMs)).toBe(statusLine(fromAgent(waiting), nowMs));
  });

  it('name a crashing pod, which is a transition', () => {
    const pod = { zone: 'b', pod: 'ingester-zone-b-12', state: 'crashing', reason: 'CrashLoopBackOff' } as const;
    const crashing = { ...rolling, pods: [pod, ...rolling.pods.slice(1)] };
    expect(statusLine(fromAgent(crashing), nowMs)).toContain('"b-12 crashes (CrashLoopBackOff); 1 pod of b in flight"');
    expect(renderStatus(fromAgent(crashing), nowMs, look({}))).toContain('  trouble: b-12 crashes (CrashLoopBackOff)');
    expect(renderStatus(fromAgent(crashing), nowMs, look({})).join('\n')).toMatch(/\n {2}b .* 1 failing, 1 in flight, 12 to go/);
    expect(renderTree(fromAgent(crashing), nowMs, look()).join('\n')).toMatch(/\nb +failing .* 1 failing, 1 in flight, 12 to go/);
    // The crashing pod is updated: every view has the same count.
    expect(renderStatus(fromAgent(crashing), nowMs, look({})).join('\n')).toMatch(/\n {2}b +8\/20 updated \[/);
    expect(renderTree(fromAgent(crashing), nowMs, look({}))[0]).toContain(' 28 of 60 updated ');
    expect(explained(crashing)).toContain('b 8/20 updated, ');
    expect(statusKey(fromAgent(crashing))).not.toBe(statusKey(fromAgent(rolling)));
  });

  it('are new for another phase, wave, zone or wait, and not for one more pod', () => {
    const key = statusKey(fromAgent(rolling));
    const zones = rolling.zones.map((zone) => (zone.zone === 'b' ? { ...zone, updated: zone.updated + 1 } : zone));
    expect(statusKey(fromAgent({ ...rolling, zones }))).toBe(key);
    expect(statusKey(fromAgent({ ...rolling, decidedMs: rolling.decidedMs + 1, phaseSinceMs: 0 }))).toBe(key);
    for (const other of [waiting, paused, done, { ...rolling, wave: { name: 'x', index: 0, count: 3 } }]) {
      expect(statusKey(fromAgent(other))).not.toBe(key);
    }
  });
});

describe('the explanation of a group', () => {
  it('reports that a paused group continues after a resume', () => {
    const text = explained(paused);
    expect(text).toContain('Stopped: the group is paused by an unverified requester (read latency).');
    expect(text).not.toContain('Nothing is wrong');
    expect(text).toContain('do       to continue: kubectl rollout-group resume mimir/ingester');
  });

  it('offers no command for a protection that blocks nothing yet, and names its end', () => {
    const protection = {
      rule: 'protected',
      fact: 'kim protects the group',
      zones: ['a', 'b', 'c'],
      isBlocking: true,
      endsWith: 'cancel it',
    };
    const text = explained({ ...done, stops: [protection] });
    expect(text).toContain('stopped  kim protects the group. To end it: cancel it');
    expect(text).not.toMatch(/^ {2}do /m);
  });

  it.each([{}, { zone: 'b', pod: 'ingester-zone-b-18' }])(
    'does not report a healthy state if a user lowered the partition: %j',
    (subject) => {
      const text = renderLiveExplanation({ live: fromAgent(exposed), subject, nowMs, showsAllRules: false, outdated: [] }, look());
      expect(text).not.toContain('Nothing is wrong');
      expect(text).toMatch(
        /\. The group waits: partition 18 lets the StatefulSet controller replace ingester-zone-b-18, ingester-zone-b-19, which/,
      );
    },
  );

  it('reports a healthy state only if the agent ends every wait', () => {
    const waits = (more: Partial<PublishedDecision['waits'][number]>) => [{ ...rolling.waits[0], ...more }] as PublishedDecision['waits'];
    const verdictOf = (more: Partial<PublishedDecision['waits'][number]>) =>
      explained({ ...rolling, phase: 'Waiting', outcome: 'wait', waits: waits({ outcome: 'wait', fact: 'it waits', ...more }) });
    const fine = 'Nothing is wrong; the group continues by itself.';
    expect(verdictOf({ rule: 'zone-budget' })).toContain(fine);
    expect(verdictOf({ rule: 'window', earliestMs: nowMs + 1000 })).toContain(fine);
    for (const rule of ['window', 'partition-kept', 'agent-access', 'safety/queue', 'a-rule-of-a-later-version'])
      expect(verdictOf({ rule }), rule).toMatch(/\. The group waits: it waits(?: \(limit: 1\))?\.\n/);
  });

  it('does not report that the group continues by itself next to a wait that a user must end', () => {
    const [wait] = rolling.waits;
    const waits = [{ ...wait, rule: 'partition-kept', outcome: 'wait', fact: 'it waits' }] as PublishedDecision['waits'];
    const stop = { rule: 'undone', fact: 'anna undid rev-3', zones: ['b'], isBlocking: false, endsWith: 'cancel' };
    const permitted = [{ rule: 'zone-budget', outcome: 'ok' as const, fact: 'permitted', earliestMs: nowMs + 60_000 }];
    for (const more of [{ stops: [stop] }, { permitted }]) {
      const text = explained({ ...rolling, phase: 'Waiting', outcome: 'wait', waits, ...more });
      expect(text).toMatch(/\. The group waits: it waits/);
      expect(text).not.toMatch(/continues (?:by itself|only because)/);
    }
  });

  it('names allowed disruptions with requester and time', () => {
    const reservations = [{ what: 'evict pod 1 of zone b', user: 'kim', atMs: kitNowMs - 18_000 }];
    expect(explained({ ...rolling, openClaims: 2, reservations })).toContain('  allowed  evict pod 1 of zone b, for kim, 1m ago\n');
    expect(explained({ ...rolling, openClaims: 2 })).not.toContain('allowed');
  });

  it('names the allowed eviction that makes a ready pod count as unavailable, and the end of the wait', () => {
    const because = 'the eviction of ingester-zone-c-4 was allowed and may still be carried out';
    const passes = 'passes at 2026-03-02 12:01 UTC (in 1m6s) if nothing else changes';
    expect(explained(reserved).replaceAll(/\s+/g, ' ')).toContain(`in zone c: ${because} (limit: 1) ${passes}`);
    for (const decision of [reserved, { ...reserved, phase: 'Rolling' as const }]) {
      const live = fromAgent(decision);
      expect(statusLine(live, nowMs)).toContain(because);
      expect(renderTree(live, nowMs, look()).join('\n')).toContain(because);
      expect(renderStatus(live, nowMs, look()).join('\n')).toContain(`${because} (limit: 1), at the earliest in 1m6s`);
    }
    const acting = renderStatus(fromAgent({ ...reserved, outcome: 'act' }), nowMs, look());
    expect(acting.join('\n')).toContain('now: 1 pod of c in flight');
  });

  it('names pods that do not recover by waiting, with a command', () => {
    const text = explained({ ...rolling, pods: [{ zone: 'b', pod: 'ingester-zone-b-12', state: 'crashing', reason: 'CrashLoopBackOff' }] });
    expect(text).toContain('Some pods do not recover by themselves and need a repair.');
    expect(text).toContain('  trouble  b-12 crashes (CrashLoopBackOff)\n');
    expect(text).toContain('  do       kubectl logs ingester-zone-b-12 -n mimir --all-containers --previous\n');
    expect(text.replaceAll(/\s+/g, ' ')).toContain('or end the run: kubectl rollout-group abort mimir/ingester');
    const crash = { zone: 'b', pod: 'ingester-zone-b-12', state: 'crashing' } as const;
    const live = { ...fromAgent({ ...rolling, pods: [crash] }), unattended: 'agent not running' };
    const unattended = renderLiveExplanation({ live, subject: {}, nowMs, showsAllRules: false, outdated: [] }, look());
    expect(unattended).not.toContain('rollout-group abort');
    expect(unattended.replaceAll(/\s+/g, ' ')).toContain('or undo the new revision: kubectl rollout-group undo mimir/ingester');
    const soaking = { ...fromAgent(waiting), unattended: 'agent not running' };
    const offered = renderLiveExplanation({ live: soaking, subject: {}, nowMs, showsAllRules: false, outdated: [] }, look());
    expect(explained(waiting)).toMatch(/^ {2}do .*rollout-group (?:approve|promote) /ms);
    expect(offered).not.toMatch(/rollout-group (?:approve|promote|override|retry) /);
    expect(offered).toContain('  do       find out why: kubectl rollout-group doctor -n mimir');
    expect(explained(rolling)).toContain('Nothing is wrong; the group continues by itself.');
    const undone = { rule: 'undone', fact: 'anna undid the revision rev-3 of zone b', zones: ['b'], isBlocking: false, endsWith: 'cancel' };
    const allowed = explained({ ...rolling, stops: [undone] });
    expect(allowed).toContain('continues by itself; the undone or failed revision does not roll out.');
    expect(allowed).toContain('stopped  anna undid the revision rev-3 of zone b. To end it: cancel');
    expect(allowed).not.toMatch(/^ {2}do /m);
  });
});

describe('a StatefulSet that left the group', () => {
  const decision: PublishedDecision = {
    ...done,
    left: [
      {
        zone: 'd',
        statefulSet: 'ingester-zone-d',
        fact: 'StatefulSet ingester-zone-d left the group and keeps the partition 1000000, so a new template reaches no pod',
        endsWith: 'kubectl patch statefulset ingester-zone-d',
        alternatives: ['add the StatefulSet to the group again'],
      },
    ],
  };
  const live = fromAgent(decision);
  const text = `${decision.left?.[0]?.fact}. To end it: kubectl patch statefulset ingester-zone-d, or add the StatefulSet to the group again`;

  it('is shown by get, status and explain, although no work is left', () => {
    expect(renderTree(live, nowMs, look()).join('\n')).toContain(`\nleft the group\n  ${text}`);
    expect(renderStatus(live, nowMs, look()).join('\n')).toContain(`  left: ${text}`);
    expect(renderGroups({ groups: [live], nowMs, hasNamespaces: true }, look())).toContain(`${decision.left?.[0]?.fact}\n`);
    expect(renderGroups({ groups: [live], nowMs, hasNamespaces: true }, look({ columns: 80 }))).toContain('1 left\n');
    expect(statusLine(live, nowMs)).toContain(JSON.stringify(decision.left?.[0]?.fact));
    expect(statusKey(live)).not.toBe(statusKey(fromAgent(done)));
    const explained = renderLiveExplanation({ live, subject: {}, nowMs, showsAllRules: false, outdated: [] }, look());
    expect(explained).toMatch(
      /^mimir\/ingester is DONE \(for 42s\)\. Nothing is left to do, but StatefulSet ingester-zone-d left the group/,
    );
    expect(explained).toContain(
      '  do       for new templates of ingester-zone-d: kubectl patch statefulset ingester-zone-d\n           or: add the StatefulSet to the group again\n',
    );
  });
});

describe('the document of a group', () => {
  it('names a time after its instant, and the maximum age of a metric in seconds', () => {
    const metric = { namespace: 'mimir', policy: 'safety', input: 'lag', source: 'prod', question: 'q', maxAgeMs: 120_000 };
    const document = groupDocument(fromAgent({ ...rolling, wakeAtMs: 1_750_000_000_000, metrics: [metric] }));
    expect(document).toMatchObject({ wakeAt: '2025-06-15T15:06:40.000Z', metrics: [{ input: 'lag', maxAgeSeconds: 120 }] });
  });
});
