import { describe, expect, it } from 'vitest';
import type { GroupPlan } from '../../engine/plan/document.ts';
import { markdownCode, markdownTable, markdownText } from '../../plugin/output/markdown.ts';
import { commentBudget, fitSections, renderPlanMarkdown } from '../../plugin/output/plan/markdown.ts';
import { blocked, ingester, mirrorDownscale, planOf, refusedDownscale, unchanged } from './plan-kit.ts';

const hostile = [
  '@everyone',
  'see #1 and GH-2',
  '-->',
  '<!-- hidden',
  '</details><script>alert(1)</script>',
  '| a | b |',
  '```',
  '`code`',
  '[link](https://evil.example)',
  'https://evil.example',
  'www.evil.example',
  '![image](x)',
  '\u202egnp.exe',
  '\u0007\u001b[31m',
  'two\nlines\n# heading',
  '&lt;b&gt;',
  '\ud800',
];

describe('the plan as a comment', () => {
  it.each([
    ['rollout', planOf([ingester()])],
    ['refused-and-held', planOf([unchanged('compactor'), ingester(), blocked(), refusedDownscale()], { startsAt: '2026-11-18T17:20:00Z' })],
    ['downscale', planOf([mirrorDownscale()])],
    ['unchanged', planOf([unchanged()])],
  ])('shows a plan: %s', async (name, plan) => {
    await expect(renderPlanMarkdown(plan).replace(/(?<=sha256:)[0-9a-f]{64}/, 'DIGEST')).toMatchFileSnapshot(`golden/plan-${name}.md`);
  });

  it('has a marker whose digest follows the plan', () => {
    const marker = (group: GroupPlan) => renderPlanMarkdown(planOf([group])).split('\n')[0];
    expect(marker(ingester())).toMatch(/^<!-- rollout-group:plan outcome=complete digest=sha256:[0-9a-f]{64} policy=3f9c2e1b8a40d6c7 -->$/);
    expect(marker(ingester())).toBe(marker(ingester()));
    expect(marker(ingester({ outcome: 'waits' }))).not.toBe(marker(ingester()));
  });

  it('cannot be ended or opened by a policy digest', () => {
    expect(renderPlanMarkdown(planOf([], { policyDigest: 'x --> <b>' })).split('\n')[0]).toMatch(/policy=xb -->$/);
  });

  it('puts denials, waits, risks and safety first, and the details of groups last', () => {
    const text = renderPlanMarkdown(planOf([ingester(), blocked(), refusedDownscale()]));
    const places = ['**Denied**', '**Waits**', '**Risks**', '**Safety**', '| group |', '####'].map((part) => text.indexOf(part));
    expect(places.every((place) => place > 0)).toBe(true);
    expect(places.toSorted((a, b) => a - b)).toEqual(places);
  });

  it('names every changed field of a policy, also if there are many', () => {
    const fields = Array.from({ length: 40 }, (_, index) => `spec.rollout.setting${index}`);
    const policyChanges = [{ object: 'RolloutGroup shop/cache', operation: 'changed' as const, fields }];
    const text = renderPlanMarkdown({ ...planOf([ingester()]), policyChanges });
    expect(fields.filter((field) => !text.includes(field))).toEqual([]);
  });

  it('fits 200 groups into one comment and names the number of omitted groups', () => {
    const groups = Array.from({ length: 200 }, (_, index) => ({ ...ingester(), group: `ingester-${index}` }));
    const text = renderPlanMarkdown(planOf([...groups, refusedDownscale(), blocked()]));
    expect(text.length).toBeLessThanOrEqual(commentBudget);
    expect(text.length).toBeGreaterThan(commentBudget * 0.9);
    const sections = text.match(/^#### /gm)?.length ?? 0;
    expect(text).toContain(`${202 - sections} more groups omitted for length`);
    expect(text.match(/<details>/g)?.length).toBe(text.match(/<\/details>/g)?.length);
    expect(text.match(/^\| `mimir\/ingester-/gm)).toHaveLength(200);
    expect(text).toContain('**Denied**');
  });

  it('respects its limit at any size', () => {
    const groups = Array.from({ length: 1000 }, (_, index) => ({ ...refusedDownscale(), group: `g-${index}` }));
    for (const budget of [3000, 10_000, 65_000]) {
      expect(
        renderPlanMarkdown(planOf([...groups, ...groups.map((group) => ({ ...unchanged(), group: `u-${group.group}` }))]), budget).length,
      ).toBeLessThanOrEqual(budget);
    }
  });

  it.each(hostile)('escapes text from files: %j', (text) => {
    const change = { kind: 'template', zones: [text], field: text, before: text, after: `${text}x`, consequence: 'none' } as const;
    const result = { rule: text, outcome: 'no', fact: text, limit: text, source: { file: text, line: 1, column: 1 } } as const;
    const group: GroupPlan = {
      ...ingester(),
      namespace: text,
      group: text,
      changes: [change],
      refused: [{ what: text, zone: text, message: text, results: [result] }],
      waits: [result],
      waves: [{ name: text, steps: [{ kind: 'roll', zone: text, pods: [text], waitsFor: text, startSeconds: 0, rules: [result] }] }],
      zones: [{ zone: text, statefulSet: text, replicasBefore: 1, replicasAfter: 1, restarts: 0 }],
    };
    const comment = renderPlanMarkdown(planOf([group]));
    expect(acting(comment)).toEqual([]);
  });
});

/** What a forge would act upon, once code and our own tags are taken away. */
function acting(comment: string): readonly string[] {
  const own = /<!-- rollout-group:plan [\w=:. -]+ -->|<\/?(?:details|summary|sub)>/g;
  const rest = comment.replace(own, '').replace(/(`+)(?!`)[^\n]*?(?<!`)\1(?!`)/g, '');
  const signs = [/<[a-z/!]/gi, /-->/g, /@\w/g, /[a-z]#\d|(?<!&)#\d/g, /GH-\d/g, /https?:\/\//g, /www\./g, /\]\(/g, /`/g];
  const unseen = /(?!\n)[\p{Cc}\p{Bidi_Control}\p{Cs}]/gu;
  return [...signs.flatMap((sign) => rest.match(sign) ?? []), ...(comment.match(unseen) ?? [])];
}

describe('text in Markdown', () => {
  it.each([
    ['plain words, 3 -> 2', 'plain words, 3 -&#62; 2'],
    ['@me', '&#64;&zwj;me'],
    ['#12', '&#35;&zwj;12'],
    ['50% of', '50&#37; of'],
    ['a|b', 'a&#124;b'],
    ['\u202e', '&#92;u202e'],
    ['9:00: x', '9&#58;00: x'],
  ])('writes %j as %j', (text, expected) => {
    expect(markdownText(text)).toBe(expected);
  });

  it('fences code by more backticks than it contains', () => {
    expect(markdownCode('a``b')).toBe('``` a``b ```');
    expect(markdownCode('ab')).toBe('`ab`');
  });

  it('keeps a pipe in code inside its cell', () => {
    expect(markdownTable(['x'], [[markdownCode('a|b')]])).toBe('| x |\n| --- |\n| `a\\|b` |');
  });
});

describe('the size of a document', () => {
  const section = (title: string, items: readonly string[][]) => ({
    title,
    items,
    separator: '\n',
    more: (count: number) => `${count} more`,
  });

  it('uses the longest form of each item that fits, and counts the rest', () => {
    const sections = [section('A', [['aaaaaaaaaaaaaaaaaaaa', 'a'], ['bbb'], ['cccccccccccccccccccccccccccccc']]), section('B', [['d']])];
    expect(fitSections('head', sections, 'foot', 58)).toBe('head\n\nA\n\na\nbbb\n\n1 more\n\nB\n\nd\n\nfoot');
    expect(fitSections('head', sections, 'foot', 500)).toContain('aaaaaaaaaaaaaaaaaaaa\nbbb\ncccccccccccccccccccccccccccccc\n\nB');
  });

  it('omits a section without items', () => {
    expect(fitSections('head', [section('A', [])], 'foot', 100)).toBe('head\n\nfoot');
  });
});
