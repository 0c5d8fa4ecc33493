// Text from clusters and files only shows in a comment: it has no effect on people, issues, links or the layout.
import { describe, expect, it } from 'vitest';
import type { RuleResult } from '../../engine/decision.ts';
import type { GroupPlan, Plan } from '../../engine/plan/document.ts';
import { readComment } from '../../plugin/forge/comment-text.ts';
import { markdownBlock, markdownCode, markdownDetails, markdownLine, markdownTable, markdownText } from '../../plugin/output/markdown.ts';
import { commentBudget, renderPlanMarkdown } from '../../plugin/output/plan/markdown.ts';
import { ingester, planOf } from './plan-kit.ts';
import { renderForge } from './rendered-markdown.ts';

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
