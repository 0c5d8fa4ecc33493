import { describe, expect, it } from 'vitest';
import type { PlannedChange } from '../../engine/plan/document.ts';
import { isOneZoneAtATime } from '../../engine/plan/document.ts';
import { changeText } from '../../plugin/output/plan/changes.ts';
import { byAttention, spanText, stepObject } from '../../plugin/output/plan/plan-text.ts';
import { renderPlanTable } from '../../plugin/output/plan/table.ts';
import { podsText, shortPods, zonePodsText } from '../../plugin/output/pod-text.ts';
import { alignRows, paragraph } from '../../plugin/output/text.ts';
import { shorten } from '../../policies/text/shorten.ts';
import { expectGolden } from './golden.ts';
import { blocked, ingester, look, mirrorDownscale, planOf, refusedDownscale, step, unchanged } from './plan-kit.ts';

const plans = {
  rollout: planOf([ingester()]),
  refused: planOf([refusedDownscale()]),
  downscale: planOf([mirrorDownscale()]),
  many: planOf([unchanged('compactor'), ingester(), blocked(), refusedDownscale(), unchanged()], { startsAt: '2026-11-18T17:20:00Z' }),
};

const looks = {
  '80 columns': { columns: 80 },
  '80 columns, ASCII, colour': { columns: 80, ascii: true, colour: true },
  '120 columns': { columns: 120 },
  '120 columns, colour': { columns: 120, colour: true },
  '120 columns, wide': { columns: 120, wide: true },
  pipe: {},
};

describe('the table of a plan', () => {
  it.each(Object.entries(plans))('shows %s in each look', async (name, plan) => {
    const views = Object.entries(looks).map(([title, options]) => [title, renderPlanTable(plan, look(options))]);
    await expectGolden(`plan-${name}`, Object.fromEntries(views));
  });

  it('names the pods that no wave includes, also of a group without changes', () => {
    const message = '3 pods of zone-b stay outdated: no wave includes them';
    const zones = unchanged().zones.map((zone) => ({ ...zone, podsInNoWave: 3 }));
    const group = { ...unchanged(), zones, risks: [{ code: 'RG5017', severity: 'warning', message } as const] };
    expect(renderPlanTable(planOf([group]), look())).toMatch(/store-gateway {3}no changes.*\n\nRISKS +RG5017 warning {2}3 pods of zone-b/);
    const text = renderPlanTable(planOf([group, unchanged('compactor')]), look());
    expect(text).toMatch(/2 groups: 2 without changes.*\n\nmimir\/store-gateway {3}no changes\nRISKS +RG5017/);
    expect(text).toContain('SAME     mimir/compactor has no changes');
  });

  it('separates an exception from its rule', () => {
    const group = { ...ingester(), permitted: [{ rule: 'no-downscale', outcome: 'ok', fact: 'an exception allows it' } as const] };
    expect(renderPlanTable(planOf([group]), look())).toContain('EXCEPTION no-downscale: an exception allows it');
  });

  it('names the policies that apply to a group, with their places in files', () => {
    const policies = [
      { object: 'RolloutPolicy mimir/safety', source: { file: 'deploy/policies/stateful-safety.yaml', line: 12, column: 1 } },
      { object: 'RolloutPolicy agent/all', source: { object: 'RolloutPolicy agent/all' } },
    ];
    const text = renderPlanTable(planOf([{ ...ingester(), policies }]), look({ columns: 80 }));
    expect(text).toMatch(/^POLICIES RolloutPolicy mimir\/safety \(\S+safety\.yaml:12\)\n {9}RolloutPolicy agent\/all$/m);
  });

  it('names the command that ends a block, without approvals or durations for it', () => {
    const source = { object: 'RolloutIntent mimir/undo.ingester.1' };
    const undone = { rule: 'undone', outcome: 'wait', fact: 'revision 9 was undone by anna', source } as const;
    const wait = step('wait', 0, { zone: 'a', waitsFor: 'undone', rules: [undone] });
    const group = { ...blocked(), waves: [{ name: 'all', steps: [wait] }], waits: [undone] };
    const text = renderPlanTable(planOf([group]), look());
    expect(text).toMatch(/wait +undone a .*blocked +- +-/);
    expect(text).toMatch(/BLOCKED +. by undone(?:.*\n)*.*to continue: kubectl rollout-group cancel mimir\/\S+ undo\.ingester\.1/);
  });

  it('names a gate that passes before the approval of its wave, if the wave has no check of it', () => {
    const rules = [{ rule: 'gate', outcome: 'ok', fact: 'pre is 1' } as const];
    const approval = step('approval', 0, { waitsFor: '1 from oncall', gates: ['lag', 'pre'], rules });
    const waves = [{ name: 'rest', steps: [approval, step('check', 0, { waitsFor: 'lag', gates: ['lag'] })] }];
    expect(renderPlanTable(planOf([{ ...ingester(), waves }]), look())).toContain('approve  1 from oncall, gate pre\n');
  });

  it('has no columns of pods if no step has pods', () => {
    const wait = step('wait', 0, { zone: 'a', waitsFor: 'zone-budget' });
    const text = renderPlanTable(planOf([{ ...blocked(), waves: [{ name: 'all', steps: [wait] }] }]), look());
    expect(text).toMatch(/^ WAVE +STEP +GATE +p50 +p90\n all +wait +zone-budget a +\S+ +- +-\n +total/m);
    expect(renderPlanTable(planOf([ingester()]), look())).toMatch(/^ WAVE +STEP +PODS +AT ONCE +GATE/m);
  });

  it('shows a value that does not fit next to the others in full below its row', () => {
    const [image, ...others] = ingester().changes;
    if (image === undefined) throw new Error('the test expected a change');
    const after = `registry.example.com/${'storage/'.repeat(6)}mimir:2.17.1`;
    const text = renderPlanTable(planOf([{ ...ingester(), changes: [{ ...image, after }, ...others] }]), look({ columns: 100 }));
    expect(text).toMatch(new RegExp(`^CHANGE {3}image +60 pods restart\\n {11}${image.before} ->\\n {11}${after}\\n {9}args +added`, 'm'));
  });

  it('explains the pods that restart although no change concerns their zone', () => {
    const [image] = ingester().changes;
    if (image === undefined) throw new Error('the test expected a change');
    const group = { ...ingester(), changes: [{ ...image, zones: ['zone-b'] }] };
    expect(renderPlanTable(planOf([group]), look())).toMatch(
      /\(zone-b\) +20 pods restart\n +template +unchanged, but pods are outdated {2}\(zone-a, zone-c\) +40 pods restart\n/,
    );
  });

  it('fits into 80 columns, and with all details into 120', () => {
    for (const columns of [80, 120]) {
      for (const plan of Object.values(plans)) {
        for (const wide of columns === 80 ? [false] : [false, true]) {
          const long = renderPlanTable(plan, look({ columns, wide }))
            .split('\n')
            .filter((line) => line.length > columns);
          expect(long).toEqual([]);
        }
      }
    }
  });

  it('has the same text with and without colour, and only ASCII characters on request', () => {
    for (const plan of Object.values(plans)) {
      const plain = renderPlanTable(plan, look({ columns: 100, ascii: true }));
      // biome-ignore lint/suspicious/noControlCharactersInRegex: colour is made of them.
      expect(renderPlanTable(plan, look({ columns: 100, ascii: true, colour: true })).replace(/\u001b\[\d+m/g, '')).toBe(plain);
      expect(plain).toMatch(/^[\n -~]*$/);
    }
  });

  it('cuts names in the middle on a narrow terminal, and never in a pipe', () => {
    const zone = 'a-zone-with-a-name-of-some-length-in-europe-west-4';
    const [first, ...rest] = ingester().waves;
    const steps = first?.steps.map((step) => (step.kind === 'roll' ? { ...step, zone } : step)) ?? [];
    const plan = planOf([ingester({ waves: [{ name: 'canary', steps }, ...rest] })]);
    expect(renderPlanTable(plan, look({ columns: 80 }))).toContain('…');
    expect(renderPlanTable(plan, look({}))).toContain(`${zone}-19`);
  });

  it('prints a value of several lines in one line', () => {
    const change = {
      kind: 'settings',
      zones: ['a'],
      field: 'metadata.annotations.note',
      before: 'a',
      after: 'b\nc',
      consequence: 'none',
    } as const;
    expect(renderPlanTable(planOf([ingester({ changes: [change] })]), look())).toContain('a -> "b\\nc"');
  });

  it('names every approver at 80 columns and below', () => {
    const limit = '2 from team-of-the-storage-engineers or oncall-of-the-metrics-platform or consul-owners';
    const rules = [{ rule: 'approval', outcome: 'wait', fact: '', limit }] as const;
    const plan = planOf([ingester({ waves: [{ name: 'rest', steps: [step('approval', 0, { waitsFor: 'rest', rules })] }] })]);
    for (const columns of [60, 80, 120, undefined])
      expect(renderPlanTable(plan, look(columns === undefined ? {} : { columns })).replace(/\s+/g, ' ')).toContain(`approve ${limit}`);
  });

  it('names assumptions that differ from the defaults, and the start without a comment', () => {
    const plan = planOf([ingester()], { startsAt: '2026-11-18T17:20:00Z' });
    expect(renderPlanTable(plan, look())).toMatch(/approvals\.\n\nSTARTS {3}2026-11-18 17:20 UTC\n$/);
    const drain = { p50Seconds: 5, p90Seconds: 5 };
    const groups = { ingester: { drain }, 'without-steps': { drain } };
    const slow = { ...plan, assumptions: { ...plan.assumptions, groups, gates: 'fail' as const, metrics: { 'safety/lag': 0 } } };
    expect(renderPlanTable(slow, look())).toContain('ASSUMES  pods of ingester stop in 5s (p90 5s), gates fail, safety/lag 0\n');
    expect(renderPlanTable(slow, look({ wide: true }))).toContain('ASSUMES  pods stop in 30s (p90 2m)');
  });

  it('reports safety only if the timeline shows it', () => {
    const group = ingester();
    expect(isOneZoneAtATime(group)).toBe(true);
    const overlapping = group.timeline.map((span) => (span.zone === 'zone-c' ? { ...span, startSeconds: 5900, endSeconds: 5990 } : span));
    expect(isOneZoneAtATime({ ...group, timeline: overlapping })).toBe(false);
    const atOnce = group.timeline.map((span) => ({ ...span, startSeconds: 0, endSeconds: 0 }));
    expect(isOneZoneAtATime({ ...group, timeline: atOnce })).toBe(false);
    const permitted = [{ rule: 'other-zones-ready', outcome: 'ok', fact: 'zone b has 2 of 3 pods available' }] as const;
    expect(isOneZoneAtATime({ ...group, permitted })).toBe(false);
    expect(isOneZoneAtATime(unchanged())).toBe(false);
    expect(renderPlanTable(planOf([{ ...group, timeline: overlapping }]), look())).not.toContain('SAFETY');
  });
});

describe('the texts of a plan', () => {
  it.each([
    [0, '0s'],
    [59.4, '59s'],
    [60, '1m'],
    [190, '3m10s'],
    [1320, '22m'],
    [4500, '1h15m'],
    [86_400 * 2 + 3 * 3600, '2d3h'],
    [undefined, '?'],
  ])('writes %s seconds as %s', (seconds, text) => {
    expect(spanText(seconds)).toBe(text);
  });

  it.each([
    [['a-3', 'a-2', 'a-1', 'a-0'], '3..0'],
    [['a-0', 'a-1', 'a-5'], '0..1, 5'],
    [['a-1', 'a-2', 'a-1'], '1..2, 1'],
    [['a-19'], '19'],
    [['job'], 'job'],
    [[], ''],
  ])('writes pods %j as %s', (pods, text) => {
    expect(podsText(pods)).toBe(text);
  });

  it.each([
    [['ingester-zone-a-2'], 'a-2'],
    [['ingester-zone-a-2', 'ingester-zone-a-1'], 'a 2..1'],
    [['job'], 'job'],
    [[], 'a'],
  ])('writes pods %j of zone a as %s', (pods, text) => {
    expect(zonePodsText('a', pods)).toBe(text);
  });

  it('shortens only the names of pods of the group in a text', () => {
    const zones = [{ zone: 'a', statefulSet: 'ingester-zone-a' }, { zone: 'b' }];
    expect(shortPods('delete pod ingester-zone-a-12, ingester-zone-b-1 (ingester-zone-a)', zones)).toBe(
      'delete pod a-12, ingester-zone-b-1 (ingester-zone-a)',
    );
    expect(shortPods('scale ingester-zone-a from 5 to 4; data-ingester-zone-a-1; ingester-zone-a-1.svc', zones)).toBe(
      'scale ingester-zone-a from 5 to 4; data-ingester-zone-a-1; ingester-zone-a-1.svc',
    );
  });

  it.each([
    [{ before: 'r.io/a/b:1', after: 'r.io/a/b:2' }, 'r.io/a/b:1 -> 2'],
    [{ before: 'a/b:1', after: 'a/c:2' }, 'a/b:1 -> a/c:2'],
    [{ before: 'localhost:5000/b:1', after: 'localhost:5000/b:2' }, 'localhost:5000/b:1 -> 2'],
    [{ before: 3, after: 2 }, '3 -> 2'],
    [{ after: { cpu: 1 } }, 'added {"cpu":1}'],
    [{ before: true }, 'removed true'],
    [{ before: ['-a'], after: ['-b', '-c'] }, 'added -b -c, removed -a'],
    [{}, 'entries reordered'],
  ] satisfies [Partial<PlannedChange>, string][])('writes the change %j as %s', (change, text) => {
    expect(changeText({ kind: 'template', zones: [], field: 'x', consequence: 'none', ...change })).toBe(text);
  });

  it.each([
    [step('roll', 0, { zone: 'a', pods: ['x-2', 'x-1'] }), 'a 2..1'],
    [step('scaleDown', 0, { zone: 'a', from: 3, to: 2 }), 'a 3 -> 2'],
    [step('check', 0, { waitsFor: 'errors' }), 'errors'],
    [step('approval', 0, { waitsFor: 'rest' }), 'rest'],
    [
      step('approval', 0, { waitsFor: 'rest', rules: [{ rule: 'approval', outcome: 'wait', fact: '', limit: '1 from oncall' }] }),
      '1 from oncall',
    ],
    [step('wait', 0, { zone: 'b', waitsFor: 'zone-gap' }), 'zone-gap b'],
  ])('describes the step %#', (planned, text) => {
    expect(stepObject(planned)).toBe(text);
  });

  it('puts groups that need attention first and keeps the order of the rest', () => {
    const groups = [unchanged('a'), ingester(), blocked(), refusedDownscale(), unchanged('b')];
    expect(byAttention(groups).map((group) => group.outcome)).toEqual(['blocked', 'waits', 'complete', 'unchanged', 'unchanged']);
  });
});

describe('the layout of a table', () => {
  it('aligns columns, right and left', () => {
    const columns = [
      { title: 'A', align: 'left' },
      { title: 'B', align: 'right' },
    ] as const;
    const rows = [{ cells: ['A', 'B'] }, { cells: ['long', '1'] }, { cells: ['x', '100'] }];
    expect(alignRows(columns, rows, { width: undefined, ellipsis: '.' })).toEqual(['A       B', 'long    1', 'x     100']);
  });

  it('lets one cell span several columns, and wraps it behind its column', () => {
    const columns = ['A', 'B', 'C', 'D'].map((title) => ({ title, align: 'left', isFlexible: true }) as const);
    const row = { cells: ['a', 'long words', '', 'd'] };
    const lines = (width: number | undefined, last: number) =>
      alignRows(columns, [{ cells: ['1', '2', '3', '4'] }, { ...row, span: { first: 1, last } }], { width, ellipsis: '.' });
    expect(lines(undefined, 2)).toEqual(['1  2        3  4', 'a  long words  d']);
    expect(lines(10, 3)).toEqual(['1  2  3  4', 'a  long\n   words']);
    expect(lines(undefined, 3)).toEqual(['1  2  3  4', 'a  long words']);
  });

  it('shortens in the middle', () => {
    expect(shorten('ingester-zone-a', 9, '…')).toBe('inge…ne-a');
    expect(shorten('short', 9, '…')).toBe('short');
  });

  it('wraps behind its label', () => {
    expect(paragraph('NOTE  ', 'one two three', 14)).toEqual(['NOTE  one two', '      three']);
    expect(paragraph('NOTE  ', 'one two three', undefined)).toEqual(['NOTE  one two three']);
  });
});
