// Renders a plan as one self-contained HTML page without scripts, fonts or requests.
import { createHash } from 'node:crypto';
import type { GroupPlan, Plan } from '../../../engine/plan/document.ts';
import { groupHtml } from './html-group.ts';
import { planStyle } from './html-style.ts';
import { type Html, html, htmlTable, nothing } from './html-text.ts';
import { timelineLegend, timelinePatterns } from './html-timeline.ts';
import * as words from './plan-text.ts';

/** If the plan has more groups, only the groups that need attention are unfolded. */
const mostUnfolded = 6;

/** Returns the page. Its content security policy allows only its own style, so that no text of a plan can load or run anything. */
export function renderPlanHtml(plan: Plan): string {
  const groups = words.byAttention(plan.groups);
  const changed = groups.filter((group) => group.outcome !== 'unchanged' || group.changes.length > 0);
  const same = groups.filter((group) => !changed.includes(group));
  const title = plan.groups.length === 1 ? `Plan of ${name(plan.groups[0])}` : `Plan of ${plan.groups.length} groups`;
  const isOpen = (group: GroupPlan) => changed.length <= mostUnfolded || group.refused.length > 0 || group.outcome === 'blocked';
  const startMs = words.startMs(plan);
  const body = html`<header><h1>${title}</h1><p class="soft">${subtitle(plan)}</p></header>
<main>
${figures(plan)}
${overview(changed)}
${changed.length > 0 ? timelineLegend : nothing}
${changed.map((group, index) => groupHtml(group, { id: anchor(index), isOpen: isOpen(group), startMs }))}
${same.length === 0 ? nothing : html`<h3>Without changes</h3><p>${same.map(name).join(', ')}</p>`}
<h3>What the times stand on</h3><p>Assumed: ${words.assumptionsText(plan.assumptions)}. p50 is met in half of all cases, p90 in nine of ten.</p>
</main>`;
  return page(title, body).markup;
}

function page(title: string, body: Html): Html {
  const style: Html = { markup: planStyle };
  const hash = createHash('sha256').update(planStyle).digest('base64');
  return html`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-${{ markup: hash }}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>${title}</title>
<style>${style}</style>
</head>
<body>
${timelinePatterns}
${body}
</body>
</html>
`;
}

function subtitle(plan: Plan): string {
  const start = words.startMs(plan);
  const parts = [
    ...(plan.metadata.policyDigest === '' ? [] : [`policy ${words.shortDigest(plan.metadata.policyDigest)}`]),
    ...(start === undefined ? [] : [`starts ${words.instantText(start)}`]),
    words.groupsText(plan.groups),
  ];
  return parts.join(' · ');
}

function figures(plan: Plan): Html {
  const sum = (count: (group: GroupPlan) => number) => String(plan.groups.reduce((total, group) => total + count(group), 0));
  const only = plan.groups.length === 1 ? plan.groups[0] : undefined;
  const entries: readonly (readonly [string, string])[] = [
    ['restarts', sum((group) => group.totals.restarts)],
    ['scale changes', sum((group) => group.totals.scaleChanges)],
    ['denied', sum((group) => group.refused.length)],
    ['waiting', sum((group) => (group.waits.length > 0 ? 1 : 0))],
    ['risks', sum((group) => group.risks.length)],
    ...(only === undefined
      ? []
      : ([
          ['p50', words.spanText(only.totals.p50Seconds)],
          ['p90', words.spanText(only.totals.p90Seconds)],
        ] as const)),
  ];
  return html`<ul class="figures">${entries.map(([word, value]) => html`<li><b>${value}</b>${word}</li>`)}</ul>`;
}

function overview(changed: readonly GroupPlan[]): Html {
  if (changed.length < 2) return nothing;
  const longest = Math.max(1, ...changed.map((group) => group.totals.p90Seconds ?? 0));
  const rows = changed.map((group, index) => [
    html`<a href="#${anchor(index)}">${name(group)}</a>`,
    html`<span class="badge ${group.outcome}">${words.outcomeWords[group.outcome]}</span>`,
    String(group.totals.restarts),
    String(group.totals.scaleChanges),
    words.spanText(group.totals.p50Seconds),
    words.spanText(group.totals.p90Seconds),
    share(group, longest),
  ]);
  return html`<h3>Groups</h3>${htmlTable(['group', 'outcome', 'restarts', 'scale changes', 'p50', 'p90', 'time'], rows, [2, 3, 4, 5])}`;
}

/** Returns a bar that compares the duration of a group with the longest one. */
function share({ totals }: GroupPlan, longest: number): Html {
  const width = (seconds: number | undefined) => (144 * (seconds ?? 0)) / longest;
  return html`<svg class="share" viewBox="0 0 144 10" aria-hidden="true"><rect class="track" y="4" width="144" height="2"/><rect class="roll late" y="1" width="${width(totals.p90Seconds)}" height="8"/><rect class="roll" y="1" width="${width(totals.p50Seconds)}" height="8"/></svg>`;
}

function name(group: GroupPlan | undefined): string {
  return group === undefined ? 'nothing' : `${group.namespace}/${group.group}`;
}

function anchor(index: number): string {
  return `group-${index + 1}`;
}
