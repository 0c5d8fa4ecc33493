// The plan as a comment on a pull request: verdict first, then what is refused and held, then each group, within the size that forges take.
import { createHash } from 'node:crypto';
import type { RuleResult } from '../../../engine/decision.ts';
import { canonicalJson } from '../../../engine/hash.ts';
import type { GroupPlan, Plan } from '../../../engine/plan/document.ts';
import { plural } from '../plural.ts';
import { fitSections, type Section } from './markdown-budget.ts';
import { groupForms } from './markdown-group.ts';
import { clip, markdownCode, markdownDetails, markdownTable, markdownText } from './markdown-text.ts';
import * as words from './plan-text.ts';

/** GitHub takes 65,536 characters, the least of the large forges; 1,000 are spared for what a bot adds. Counted in UTF-16 units. */
export const commentBudget = 65_536 - 1_000;

/**
 * The comment. Its first line is a marker by which a bot finds the comment again; the digest in it covers the whole plan, also what the
 * comment leaves out.
 */
export function renderPlanMarkdown(plan: Plan, budget: number = commentBudget): string {
  const groups = words.byAttention(plan.groups);
  const changed = groups.filter((group) => group.outcome !== 'unchanged' || group.changes.length > 0);
  const sections = [overview(changed), refused(changed, plan), held(changed, plan), details(changed), same(groups, changed)];
  return `${fitSections(head(plan), sections, foot(plan), budget - 1)}\n`;
}

function head(plan: Plan): string {
  const digest = createHash('sha256').update(canonicalJson(plan)).digest('hex');
  const policy = plan.metadata.policyDigest.replace(/[^\w:.]/g, '');
  return `<!-- rollout-group:plan digest=sha256:${digest} policy=${policy} -->\n### Rollout plan: ${headline(plan.groups)}`;
}

function headline(groups: readonly GroupPlan[]): string {
  const sum = (count: (group: GroupPlan) => number) => groups.reduce((total, group) => total + count(group), 0);
  const refusedCount = sum((group) => group.refused.length);
  const heldCount = groups.filter((group) => group.waits.length > 0).length;
  const restarts = sum((group) => group.totals.restarts);
  const scaleChanges = sum((group) => group.totals.scaleChanges);
  if (refusedCount + heldCount + restarts + scaleChanges === 0 && groups.every((group) => group.changes.length === 0)) return 'no changes';
  return [plural(restarts, 'restart'), plural(scaleChanges, 'scale change'), `${refusedCount} refused`, `${heldCount} held`].join(', ');
}

const outcomeMarks: Readonly<Record<GroupPlan['outcome'], string>> = {
  blocked: '**blocked**',
  waits: '**waits**',
  complete: 'completes',
  unchanged: 'same',
};

function overview(changed: readonly GroupPlan[]): Section {
  const rows = changed.map((group) => {
    const { restarts, scaleChanges, p50Seconds, p90Seconds } = group.totals;
    const cells = [
      groupName(group),
      outcomeMarks[group.outcome],
      String(restarts),
      String(scaleChanges),
      words.spanText(p50Seconds),
      words.spanText(p90Seconds),
    ];
    return [markdownTable([], [cells]).split('\n').at(-1) ?? ''];
  });
  return {
    title: '',
    items: rows.length === 0 ? [] : [[markdownTable(['group', 'outcome', 'restarts', 'scale changes', 'p50', 'p90'], [])], ...rows],
    separator: '\n',
    more: (count) => `${plural(count, 'more group')}.`,
  };
}

function refused(changed: readonly GroupPlan[], plan: Plan): Section {
  const items = changed.flatMap((group) =>
    group.refused.map((refusal) => {
      const first = `- ${groupName(group)}: **${markdownText(clip(refusal.what, 200))}**. ${markdownText(clip(refusal.message, 500))}`;
      const lines = words
        .holdingResults(refusal)
        .map(({ result, fact }) => `  - ${ruleText(result, fact)}; ${words.passesText(result, words.startMs(plan))}`);
      return [[first, ...lines].join('\n'), first];
    }),
  );
  return { title: '**Refused**', items, separator: '\n', more: (count) => `${plural(count, 'more refusal')}.` };
}

function held(changed: readonly GroupPlan[], plan: Plan): Section {
  const items = changed.flatMap((group) =>
    group.waits.map((result) => [`- ${groupName(group)} is held by ${ruleText(result)}; ${words.passesText(result, words.startMs(plan))}`]),
  );
  return { title: '**Held**', items, separator: '\n', more: (count) => `${plural(count, 'more wait')}.` };
}

function ruleText(result: RuleResult, fact: string | undefined = words.factText(result)): string {
  const source = words.sourceText(result.source);
  const shown = fact === undefined ? '' : `: ${markdownText(clip(fact, 500))}`;
  return `${markdownCode(result.rule)}${shown}${source === undefined ? '' : ` (${markdownCode(source)})`}`;
}

function details(changed: readonly GroupPlan[]): Section {
  return {
    title: '',
    items: changed.map(groupForms),
    separator: '\n\n',
    more: (count) => `${plural(count, 'more group')} without room here; \`plan -o html\` shows all.`,
  };
}

function same(groups: readonly GroupPlan[], changed: readonly GroupPlan[]): Section {
  const items = groups.filter((group) => !changed.includes(group)).map((group) => [groupName(group)]);
  return {
    title: items.length === 0 ? '' : 'Without changes:',
    items,
    separator: ', ',
    more: (count) => `and ${plural(count, 'more group')}.`,
  };
}

function foot(plan: Plan): string {
  const start = words.startMs(plan);
  const assumptions = markdownDetails('What the times stand on', `Assumed: ${words.assumptionsText(plan.assumptions)}.`);
  const policy = plan.metadata.policyDigest === '' ? '' : `policy ${markdownText(words.shortDigest(plan.metadata.policyDigest))}`;
  const starts = start === undefined ? '' : `starts ${words.instantText(start)}`;
  const line = [policy, starts].filter((part) => part !== '').join(', ');
  return line === '' ? assumptions : `${assumptions}\n\n<sub>${line}</sub>`;
}

function groupName(group: GroupPlan): string {
  return markdownCode(`${group.namespace}/${group.group}`);
}
