// The comment of a large review: what is cut, and what stays.
import { expect, it } from 'vitest';
import type { GroupPlan } from '../../engine/plan/document.ts';
import { readComment } from '../../plugin/forge/comment-text.ts';
import { renderReviewMarkdown } from '../../plugin/output/review/markdown.ts';
import type { PolicyEffect } from '../../review/document.ts';
import { ingester, planOf } from './plan-kit.ts';

it('keeps the summary of each environment in a comment that is cut', () => {
  const changes: GroupPlan['changes'] = [
    {
      kind: 'template',
      zones: [],
      field: 'spec.template.spec.containers[x].image',
      before: 'x:1',
      after: `x:${'2'.repeat(2_000)}`,
      consequence: 'restart',
    },
  ];
  const groups = Array.from({ length: 20 }, (_, index): GroupPlan => ({ ...ingester(), group: `ingester-${index}`, changes }));
  const effects = Array.from({ length: 400 }, (_, index): PolicyEffect => {
    return {
      direction: 'loosened',
      namespace: 'mimir',
      group: 'ingester',
      cause: `rule ${index} is removed ${'x'.repeat(500)}`,
      decisions: [],
    };
  });
  const environments = ['staging', 'europe', 'america'].map((name) => ({ name, plan: planOf(groups), policies: { effects, asked: 1 } }));
  const comment = renderReviewMarkdown(
    { base: 'main', head: 'large', environments },
    { digest: '0', outcomes: environments.map(() => 'complete') },
  );
  expect(comment.length).toBeLessThanOrEqual(60_000);
  expect(comment.length).toBeGreaterThan(50_000);
  expect(comment.split('\n').slice(3, 8)).toMatchInlineSnapshot(`
    [
      "| environment | plan | loosened | restarts |",
      "| --- | --- | --- | --- |",
      "| staging | completes | 400 | 1200 |",
      "| europe | completes | 400 | 1200 |",
      "| america | completes | 400 | 1200 |",
    ]
  `);
  expect(comment).toMatch(/^\d+ more\.$/m);
  expect(readComment('review.md', comment, 65_536).environments).toHaveLength(3);
});
