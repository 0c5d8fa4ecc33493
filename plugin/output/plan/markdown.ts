// Renders a plan as a comment on a pull request, within the size limit of the forges.
import { createHash } from 'node:crypto';
import type { RuleResult } from '../../../engine/decision.ts';
import type { GroupPlan, Plan } from '../../../engine/plan/document.ts';
import { canonicalJson } from '../../../policies/values/canonical-json.ts';
import { plural } from '../plural.ts';
import { fitSections, type Section } from './markdown-budget.ts';
import { groupForms } from './markdown-group.ts';
import { clip, markdownCode, markdownDetails, markdownTable, markdownText } from './markdown-text.ts';
import * as words from './plan-text.ts';

/** GitHub accepts 65,536 characters, the smallest limit of the large forges. 1,000 are reserved for additions of a bot. Counted in UTF-16 units. */
export const commentBudget = 65_536 - 1_000;

/**
 * Returns the comment. Its first line is a marker by which a bot finds the comment again. The digest in the marker covers the whole plan,
 * including the omitted parts.
 */
export function renderPlanMarkdown(plan: Plan, budget: number = commentBudget): string {
  const groups = words.byAttention(plan.groups);
  const changed = groups.filter((group) => group.outcome !== 'unchanged' || group.changes.length > 0);
  const sections = [overview(changed), denials(changed, plan), waits(changed, plan), details(changed), same(groups, changed)];
  return `${fitSections(head(plan), sections, foot(plan), budget - 1)}\n`;
}

function head(plan: Plan): string {
  const digest = createHash('sha256').update(canonicalJson(plan)).digest('hex');
  const policy = plan.metadata.policyDigest.replace(/[^\w:.]/g, '');
  return `<!-- rollout-group:plan digest=sha256:${digest} policy=${policy} -->\n### Rollout plan: ${headline(plan.groups)}`;
}

function headline(groups: readonly GroupPlan[]): string {
  const sum = (count: (group: GroupPlan) => number) => groups.reduce((total, group) => total + count(group), 0);
  const deniedCount = sum((group) => group.refused.length);
  const waitingCount = groups.filter((group) => group.waits.length > 0).length;
  const restarts = sum((group) => group.totals.restarts);
  const scaleChanges = sum((group) => group.totals.scaleChanges);
  if (deniedCount + waitingCount + restarts + scaleChanges === 0 && groups.every((group) => group.changes.length === 0))
    return 'no changes';
  return [plural(restarts, 'restart'), plural(scaleChanges, 'scale change'), `${deniedCount} denied`, `${waitingCount} waiting`].join(', ');
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

function denials(changed: readonly GroupPlan[], plan: Plan): Section {
  const items = changed.flatMap((group) =>
    group.refused.map((refusal) => {
      const first = `- ${groupName(group)}: **${markdownText(clip(refusal.what, 200))}**. ${markdownText(clip(refusal.message, 500))}`;
      const lines = words
        .denyingResults(refusal)
        .map(({ result, fact }) => `  - ${ruleText(result, fact)}; ${words.passesText(result, words.startMs(plan))}`);
      return [[first, ...lines].join('\n'), first];
    }),
  );
  return { title: '**Denied**', items, separator: '\n', more: (count) => `${plural(count, 'more denial')}.` };
}

function waits(changed: readonly GroupPlan[], plan: Plan): Section {
  const items = changed.flatMap((group) =>
    group.waits.map((result) => {
      const verb = result.outcome === 'no' ? 'is blocked by' : 'waits for';
      return [`- ${groupName(group)} ${verb} ${ruleText(result)}; ${words.passesText(result, words.startMs(plan))}`];
    }),
  );
  return { title: '**Waits**', items, separator: '\n', more: (count) => `${plural(count, 'more wait')}.` };
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
    more: (count) => `${plural(count, 'more group')} omitted for length; \`plan -o html\` shows all groups.`,
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
  const assumptions = markdownDetails('Assumptions behind the durations', `Assumed: ${words.assumptionsText(plan.assumptions)}.`);
  const policy = plan.metadata.policyDigest === '' ? '' : `policy ${markdownText(words.shortDigest(plan.metadata.policyDigest))}`;
  const starts = start === undefined ? '' : `starts ${words.instantText(start)}`;
  const line = [policy, starts].filter((part) => part !== '').join(', ');
  return line === '' ? assumptions : `${assumptions}\n\n<sub>${line}</sub>`;
}

function groupName(group: GroupPlan): string {
  return markdownCode(`${group.namespace}/${group.group}`);
}
