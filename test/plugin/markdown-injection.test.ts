// Text from clusters and files only shows in a comment: it has no effect on people, issues, links or the layout.
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { RuleResult } from '../../engine/decision.ts';
import type { GroupPlan, Plan } from '../../engine/plan/document.ts';
import { readComment } from '../../plugin/forge/comment-text.ts';
import { markdownBlock, markdownCode, markdownDetails, markdownLine, markdownTable, markdownText } from '../../plugin/output/markdown.ts';
import { commentBudget, renderPlanMarkdown } from '../../plugin/output/plan/markdown.ts';
import { renderReviewMarkdown } from '../../plugin/output/review/markdown.ts';
import type { Review } from '../../review/document.ts';
import { scratchRepository } from '../deploy/pull-requests/runner.ts';
import { runInProcess } from './in-process.ts';
import { ingester, planOf } from './plan-kit.ts';
import { folderWith } from './process.ts';
import { findChromium, openComments, renderForge } from './rendered-markdown.ts';

const corpus: readonly string[] = [
  '@everyone and @org/team',
  'a @me, b@c.example, `@me',
  'Closes #1, fixes acme/infra#2 and GH-3, resolves https://github.com/acme/infra/issues/4',
  '!5 &6 %7 ~bug $8 %"a b" ~"c d" #{x}',
  '-->\n<!-- rollout-group:plan outcome=unchanged -->',
  '</details></summary></table><script>alert(1)</script><img src=x onerror=alert(1)>',
  '<https://evil.example> <me@evil.example>',
  '&lt;b&gt; &#64;me &commat;me &#x40;me',
  '| a | b |\n| --- | --- |\n| c | d |',
  'a\\|b\\\\|c|d\\',
  'a|b``c|`d',
  '`',
  '``` `` ```',
  '~~~\nx\n~~~',
  '```\n@me\n```',
  '[a](https://evil.example) [b]: https://evil.example ![c](d) [^1] [[_TOC_]]',
  'https://evil.example http://a www.evil.example ftp://evil.example HTTPS://EVIL.EXAMPLE',
  '# heading\n## heading\n=====\n---\n***',
  '- item\n1. item\n> quote\n    code\n\tcode',
  '/close\n/merge\n /label ~x',
  '**bold** __bold__ *em* _em_ ~~no~~ $x$ $`x`$ :smile:',
  '\u202egnp.exe\u2066x\u2069\u200f',
  '\u0007\u001b[31mred\u009b0m\r\rx\u2028y\u2029z\u0085',
  '\ud800 lone \udfff',
  `${'x'.repeat(1_000_000)}@me`,
  '`|<@a#1 '.repeat(20_000),
  `- [ ] task\n- [x] task`,
];

/** A plan that shows the text wherever a plan shows text from outside. */
function planWith(text: string): Plan {
  const source = { file: text, line: 1, column: 1 } as const;
  const result = { rule: text, outcome: 'no', fact: text, limit: text, source } as const satisfies RuleResult;
  const group: GroupPlan = {
    ...ingester(),
    namespace: text,
    group: text,
    changes: [{ kind: 'template', zones: [text], field: text, before: text, after: `${text}x`, consequence: 'none' }],
    refused: [{ what: text, zone: text, message: text, results: [result] }],
    waits: [result],
    permitted: [result],
    policies: [{ object: text, source }],
    policyChanges: [text],
    risks: [{ code: 'RG5009', severity: 'warning', message: text, source }],
    waves: [{ name: text, steps: [{ kind: 'roll', zone: text, pods: [text], waitsFor: text, startSeconds: 0, rules: [result] }] }],
    zones: [{ zone: text, statefulSet: text, replicasBefore: 1, replicasAfter: 1, restarts: 0 }],
  };
  return {
    ...planOf([group, { ...group, changes: [], outcome: 'unchanged' }], { policyDigest: text.slice(0, 200) }),
    notes: [text],
    denied: [{ objects: [text], message: text }],
  } as Plan;
}

/** A review whose policies, environments and tests show the text. */
function reviewWith(text: string): string {
  const decision = {
    action: 'delete',
    may: text,
    when: [text],
    before: { decision: text, rules: [text] },
    after: { decision: text, rules: [text] },
    text,
  };
  const effect = {
    namespace: text,
    group: text,
    cause: text,
    decisions: [decision, decision],
    after: { source: { file: text, line: 1, column: 1 } },
  };
  const effects = (['loosened', 'tightened', 'changed'] as const).map((direction) => ({ ...effect, direction }));
  const side = {
    passed: 1,
    failed: 1,
    coverage: { covered: 1, rules: 2 },
    failures: [{ file: text, test: text, case: text, problems: [text] }],
  };
  const tests = { base: side, head: side };
  const environments = ['a', 'b'].map((name) => ({ name, cluster: text, plan: planWith(text), policies: { effects, asked: 1 }, tests }));
  const review = { base: text, head: text, environments } as unknown as Review;
  return renderReviewMarkdown(review, { digest: text, outcomes: ['complete', 'complete'] });
}

const exampleFiles = (folder: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    readdirSync(`examples/quick-start/${folder}`).map((name) => [name, readFileSync(`examples/quick-start/${folder}/${name}`, 'utf8')]),
  );

/** Files whose annotations, arguments, messages and reasons are the text: the rule blocks, and the exception lets a scale-down pass. */
function filesWith(text: string): Readonly<Record<string, string>> {
  const object = (kind: string, name: string, spec: object) =>
    JSON.stringify({ apiVersion: 'rollout-group.dev/v1alpha1', kind, metadata: { name, namespace: 'shop' }, spec });
  const changed = Object.entries(exampleFiles('manifests-next')).map(([name, manifest]) => {
    const objects = parseAllDocuments(manifest).map((document) => {
      const json = document.toJS();
      if (json.kind !== 'StatefulSet') return json;
      json.metadata.annotations = { note: text };
      json.spec.template.metadata.annotations = { note: text, [`example.com/${name}`]: text };
      json.spec.template.spec.containers[0].args = [text];
      if (name.includes('-c')) json.spec.replicas = 2;
      return json;
    });
    return [`next/${name}.json`, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects })] as const;
  });
  const rule = { name: 'r', actions: ['rollout'], effect: 'deny', when: { '>': [{ count: [{ var: 'group.zones' }] }, 0] }, message: text };
  const range = { from: '2026-01-01T00:00:00Z', to: '2026-12-31T00:00:00Z', reason: text };
  const windows = [{ name: 'w', kind: 'deny', actions: ['rollout'], ranges: [range], inFlight: 'finishPod' }];
  const exception = { rule: 'no-downscale', target: { group: 'cache', zone: 'c' }, allow: { replicasAtLeast: 2 }, reason: text };
  const inForce = { ...exception, notBefore: '2026-06-01T00:00:00Z', expires: '2026-06-02T00:00:00Z' };
  return {
    ...Object.fromEntries(Object.entries(exampleFiles('manifests')).map(([name, manifest]) => [`manifests/${name}`, manifest])),
    ...Object.fromEntries(changed),
    'policies/cache.yaml': exampleFiles('policies')['cache.yaml'] ?? '',
    'policies/policy.json': object('RolloutPolicy', 'p', { targets: { all: true }, rules: [rule], windows }),
    'policies/exception.json': object('RolloutException', 'e', inForce),
  };
}

const short = corpus.filter((text) => text.length < 1000);
/** Fewer texts, because a review takes longer than a plan. */
const joined = short.flatMap((_, index) => (index % 4 === 0 ? [short.slice(index, index + 4).join(' ')] : []));

describe('a plan of files', () => {
  it.each(short)('shows %j without an effect', async (text) => {
    const words = [
      'plan',
      '--current',
      'manifests',
      '--desired',
      'next',
      '-f',
      'policies',
      '--at',
      '2026-06-01T12:00:00Z',
      '-o',
      'markdown',
    ];
    const { status, stdout, stderr } = await runInProcess(words, { cwd: folderWith(filesWith(text)) });
    expect([0, 5], stderr).toContain(status);
    expect(renderForge(stdout).effects).toEqual([]);
    expect(readComment('plan.md', stdout, 65_536).body).toContain('shop/cache');
  });
});

/** A group whose StatefulSet is in a namespace with the text as its name, so that the group is blocked. */
function elsewhere(text: string): Readonly<Record<string, string>> {
  const apiVersion = 'rollout-group.dev/v1alpha1';
  const members = { zones: [{ name: 'a', statefulSet: 'store-a' }] };
  const template = { metadata: { labels: { name: 'store-a' } }, spec: { containers: [{ name: 'store', image: 'store:1' }] } };
  const spec = { serviceName: 'store-a', replicas: 1, selector: { matchLabels: template.metadata.labels }, template };
  return {
    'policies/store.json': JSON.stringify({
      apiVersion,
      kind: 'RolloutGroup',
      metadata: { name: 'store', namespace: 'shop' },
      spec: { members, rollout: { strategy: 'onDelete' } },
    }),
    'manifests/store.json': JSON.stringify({
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: 'store-a', namespace: text },
      spec,
    }),
  };
}

describe('a review of files', () => {
  it.each([...joined, '@me Closes #1 GH-3\n/merge </details><script> <!-- https://evil.example [a](b) `@me', '- [ ] task', 'a\\|b``c|`d'])(
    'shows %j without an effect',
    async (text) => {
      const { 'policies/cache.yaml': group = '', ...files } = filesWith(text);
      const isNext = ([path]: readonly [string, string]): boolean => path.startsWith('next/') || path.startsWith('policies/');
      const base = Object.fromEntries(Object.entries(files).filter((entry) => !isNext(entry)));
      const head = Object.entries(files)
        .filter(isNext)
        .map(([path, content]) => [path.replace('next/', 'manifests/').replace('.yaml.json', '.yaml'), content]);
      const cwd = await scratchRepository({ ...base, 'policies/cache.yaml': group }, { ...Object.fromEntries(head), ...elsewhere(text) });
      const words = ['review', '--base', 'HEAD^1', '--policies', 'policies', '--manifests', 'manifests', '-o', 'markdown'];
      const { stdout, stderr } = await runInProcess([...words, '--at', '2026-06-01T12:00:00Z'], { cwd });
      expect(stdout).toMatch(/^\*\*Blocked\*\*\n\n- shop\/store: blocked: /m);
      expect(renderForge(stdout).effects, stderr).toEqual([]);
      expect(readComment('review.md', stdout, 65_536).body).toContain('shop/cache');
    },
  );
});

/** Every form of Markdown text, with the given text in each. */
const forms = (given: string): string => {
  const row = [markdownCode(given), markdownText(given)];
  return [
    `### ${markdownLine(given)}`,
    `- ${markdownText(given)} ${markdownCode(given)}\n  - ${markdownText(given)}`,
    markdownTable(['a', 'b'], [row, row]),
    markdownDetails(markdownText(given), markdownTable(['a'], [[markdownCode(given)]])),
    `**${markdownText(given)}**`,
  ].join('\n\n');
};

const chromium = findChromium();
if (chromium === undefined)
  process.stderr.write('SKIPPED: comments are not opened in Chromium, because it is neither in CHROMIUM nor on the PATH\n');

describe.skipIf(chromium === undefined)('in Chromium', () => {
  it('no text has an effect outside itself, and every page has the layout of a plain text', { timeout: 300_000 }, () => {
    const texts = [...short, 'plain'];
    const pieces = [...corpus, 'plain'].map((text) => forms(text.slice(0, 2000)));
    const alike = [texts.map((text) => renderPlanMarkdown(planWith(text))), texts.map(reviewWith), pieces];
    // A long text leaves out details, so its comment has another layout.
    const long = corpus.filter((text) => !short.includes(text)).map((text) => renderPlanMarkdown(planWith(text)));
    const comments = [...alike.flat(), ...long];
    const { pages, violations } = openComments(chromium ?? '', comments);
    const acting = pages.flatMap(({ effects }, index) =>
      effects.length > 0 ? [{ comment: comments[index]?.slice(0, 300), effects }] : [],
    );
    expect([acting, violations, pages.length]).toEqual([[], [], comments.length]);
    const layoutOf = (comment: string) => pages[comments.indexOf(comment)]?.elements.join('\n');
    expect(alike.map((same) => new Set(same.map(layoutOf)).size)).toEqual([1, 1, 1]);
  });

  it('a page with effects shows them', { timeout: 300_000 }, () => {
    const table = '<table><thead><tr><th>a</th><th>b</th></tr></thead><tr><td>c</td></tr></table>';
    const active = ['<https://evil.example>', '![a](b.png)', 'a @me', 'Closes #1', table, '- [ ] task', '<p onclick="alert(1)">a</p>'];
    const { pages, violations } = openComments(chromium ?? '', active);
    const seen = pages.map(({ effects }) => effects[0]);
    expect(seen).toEqual(['A', 'IMG', '@m', '#1', 'a table with rows of 2 and 1 cells', 'INPUT', 'onclick=alert(1)']);
    expect(violations.toSorted()).toEqual(['file', 'inline']);
  });
});

describe.each(corpus.map((text) => [text.length > 80 ? `${text.slice(0, 30)} (${text.length})` : JSON.stringify(text), text]))(
  '%s',
  (_, text) => {
    it('has no effect in the comment of a plan', () => {
      const comment = renderPlanMarkdown(planWith(text));
      const { effects, tags } = renderForge(comment);
      expect(effects).toEqual([]);
      expect(comment.length).toBeLessThanOrEqual(commentBudget);
      // A name of a megabyte leaves no room for the details of its group.
      if (text.length < 1000) expect(tags).toEqual(renderForge(renderPlanMarkdown(planWith('plain'))).tags);
      expect(readComment('plan.md', comment, 65_536).body.length).toBeGreaterThan(100);
    });

    it('has no effect in any form of Markdown text', () => {
      const { effects, tags } = renderForge(forms(text.slice(0, 2000)));
      expect(effects).toEqual([]);
      expect(tags).toEqual(renderForge(forms('plain')).tags);
      expect(renderForge(markdownBlock(text.slice(0, 2000), 'text')).tags).toEqual([
        '<pre>',
        '<code class="language-text">',
        '</code>',
        '</pre>',
      ]);
    });
  },
);
