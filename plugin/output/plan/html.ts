// Renders a plan as one self-contained HTML page without scripts, fonts or requests.
import { hash } from 'node:crypto';
import type { RuleResult } from '../../../engine/decision.ts';
import { type GroupPlan, isOneZoneAtATime, namesText, type Plan } from '../../../engine/plan/document.ts';
import { minuteText } from '../../../policies/instant.ts';
import { waitCommands, waitsBesidesStops } from '../explain.ts';
import { changeLines } from './changes.ts';
import { type Html, html, htmlTable, nothing, planStyle } from './html-text.ts';
import { timelineLegend, timelinePatterns, timelineSvg } from './html-timeline.ts';
import * as words from './plan-text.ts';

/** The number of changed groups up to which all of them are unfolded. With more, only blocked, waiting and denied groups are unfolded. */
const maxUnfolded = 6;

/** Returns the page. Its content security policy allows only its own style, so that no text of a plan can load or run anything. */
export function renderPlanHtml(plan: Plan): string {
  const { changed, same } = words.splitByChange(plan);
  const title = plan.groups.length === 1 ? `Plan of ${name(plan.groups[0])}` : `Plan of ${plan.groups.length} groups`;
  const isOpen = (group: GroupPlan) =>
    changed.length <= maxUnfolded || group.refused.length > 0 || ['blocked', 'waits'].includes(group.outcome);
  const startMs = words.startMs(plan);
  const body = html`<header><h1>${title}</h1><p class="soft">${subtitle(plan)}</p></header>
<main>
${keyFigures(plan)}${(plan.denied ?? []).map((denial) => html`<div class="notice refused"><b>Denied: ${namesText(denial.objects)}</b><p>${words.deniedText(denial)}</p></div>\n`)}
${(plan.notes ?? []).map((note) => html`<p>Note: ${note}</p>\n`)}${overview(changed)}
${changed.length > 0 ? timelineLegend : nothing}
${changed.map((group, index) => groupHtml(group, { id: anchor(index), isOpen: isOpen(group), startMs }))}
${same.length === 0 ? nothing : html`<h3>Without changes</h3><p>${same.map(name).join(', ')}</p>`}
<h3>Assumptions</h3><p>The durations assume: ${words.assumptionsText(plan)}. Half of all runs are done within p50, nine of ten within p90.</p>
</main>`;
  return page(title, body).markup;
}

function page(title: string, body: Html): Html {
  const style: Html = { markup: planStyle };
  const digest = hash('sha256', planStyle, 'base64');
  return html`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-${{ markup: digest }}'; base-uri 'none'; form-action 'none'">
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
  const start = words.hasDurations(plan) ? words.startMs(plan) : undefined;
  const parts = [
    ...(plan.metadata.policyDigest === '' ? [] : [`policy ${words.shortDigest(plan.metadata.policyDigest)}`]),
    ...(start === undefined ? [] : [`starts ${minuteText(start)}`]),
    words.groupsText(plan.groups),
  ];
  return parts.join(' · ');
}

function keyFigures(plan: Plan): Html {
  const sum = (count: (group: GroupPlan) => number) => String(plan.groups.reduce((total, group) => total + count(group), 0));
  const only = plan.groups.length === 1 ? plan.groups[0] : undefined;
  const entries: readonly (readonly [string, string])[] = [
    ['policy changes', String(plan.policyChanges?.length ?? 0)],
    ['other changes', String(plan.otherChanges?.length ?? 0)],
    ['restarts', sum((group) => group.totals.restarts)],
    ['scale changes', sum((group) => group.totals.scaleChanges)],
    ['denied', String(plan.groups.reduce((total, group) => total + group.refused.length, plan.denied?.length ?? 0))],
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
    html`<span class="badge ${group.outcome}">${words.outcomeText(group)}</span>`,
    String(group.totals.restarts),
    String(group.totals.scaleChanges),
    words.spanText(group.totals.p50Seconds),
    words.spanText(group.totals.p90Seconds),
    share(group, longest),
  ]);
  return html`<h3>Groups</h3>${htmlTable(['group', 'outcome', 'restarts', 'scale changes', 'p50', 'p90', 'time'], rows, [2, 3, 4, 5])}`;
}

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

interface GroupPlace {
  readonly id: string;
  readonly isOpen: boolean;
  readonly startMs: number | undefined;
}

export function groupHtml(group: GroupPlan, place: GroupPlace): Html {
  return html`<details class="group" id="${place.id}"${place.isOpen ? html` open` : nothing}><summary><h2>${group.namespace}/${group.group}</h2><span class="badge ${group.outcome}">${words.outcomeText(group)}</span><span class="soft">${timesText(group)}</span></summary>
<div class="body">
${words.totalsText(group.totals) === '' ? nothing : html`<p class="soft">${words.totalsText(group.totals)}</p>`}
${refusals(group, place.startMs)}${exceptions(group)}${waits(group, place.startMs)}${changes(group)}
${group.waves.length === 0 ? nothing : html`<h3>Timeline</h3>${timelineSvg(group, place.id)}`}
${steps(group)}${risks(group)}${zones(group)}${rules(group)}
</div></details>
`;
}

function timesText({ totals, waves }: GroupPlan): string {
  if (waves.length === 0) return 'no steps';
  return totals.p50Seconds === undefined
    ? 'end unknown'
    : `p50 ${words.spanText(totals.p50Seconds)}, p90 ${words.spanText(totals.p90Seconds)}`;
}

function changes(group: GroupPlan): Html {
  const lines = changeLines(group, { fullPaths: true });
  if (lines.length === 0) return nothing;
  const safety = isOneZoneAtATime(group) ? html`<p>This plan disrupts at most one zone at a time.</p>` : nothing;
  const rows = lines.map((line) => [html`<code>${line.field}</code>`, html`<code>${line.value}</code>`, line.consequence]);
  const ended = words.endedTexts(group).map((text) => html`<p>This plan ${text}.</p>`);
  return html`<h3>Changes</h3>${htmlTable(['field', 'change', 'effect'], rows)}${ended}${safety}`;
}

function refusals(group: GroupPlan, startMs: number | undefined): readonly Html[] {
  return group.refused.map(
    (refusal) =>
      html`<div class="notice refused"><b>Denied: ${refusal.what}</b><p>${words.deniedText(refusal)}</p><ul>${words.denyingResults(refusal).map(({ result, fact }) => resultItem(result, fact, startMs))}</ul></div>\n`,
  );
}

function exceptions({ permitted = [] }: GroupPlan): Html {
  if (permitted.length === 0) return nothing;
  const items = permitted.map((result) => html`<li><code>${result.rule}</code>: ${words.shownFact(result)}</li>`);
  return html`<div class="notice"><b>Exceptions in force</b><ul>${items}</ul></div>\n`;
}

function waits(group: GroupPlan, startMs: number | undefined): Html {
  const { stops = [] } = group;
  if (group.waits.length + stops.length === 0) return nothing;
  const next = words.afterWaitText(group);
  const then = next === undefined ? nothing : html`<li>then: ${next}</li>`;
  const stopped = stops.map((stop) => html`<li>stopped: ${words.stopAndEndText(stop, startMs)}</li>`);
  const items = waitsBesidesStops(group).map((result) => resultItem(result, words.factText(result), startMs));
  const commands = waitCommands(group).map((command) => html`<li>${command}</li>`);
  return html`<div class="notice"><b>Waits</b><ul>${stopped}${items}${commands}${then}</ul></div>\n`;
}

function resultItem(result: RuleResult, fact: string | undefined, startMs: number | undefined): Html {
  const source = words.sourceText(result.source);
  return html`<li><code>${result.rule}</code>${fact === undefined ? nothing : html`: ${fact}`}${source === undefined ? nothing : html` <code class="soft">${source}</code>`}<br><span class="soft">${words.passesText(result, startMs)}</span></li>`;
}

function steps(group: GroupPlan): Html {
  const rows = words
    .stepRows(group)
    .map(({ wave, verb, object, podCount = '–', atOnce = '–', gate, start, p50, p90, source }) => [
      ...[wave, verb, html`<span class="pods">${object}</span>`, `${podCount}`, `${atOnce}`],
      ...[gate, start, p50, p90, html`<code class="soft">${source}</code>`],
    ]);
  if (rows.length === 0) return nothing;
  const titles = ['wave', 'step', 'object', 'pods', 'at once', 'gate', 'starts', 'p50', 'p90', 'defined at'];
  return html`<h3>Steps</h3>${htmlTable(titles, rows, [3, 4, 6, 7, 8])}`;
}

function risks(group: GroupPlan): Html {
  if (group.risks.length === 0) return nothing;
  const rows = group.risks.map((risk) => [
    html`<code class="key">${risk.code}</code>`,
    risk.severity,
    risk.message,
    html`<code class="soft">${words.sourceText(risk.source) ?? ''}</code>`,
  ]);
  return html`<h3>Risks</h3>${htmlTable(['code', 'severity', 'risk', 'defined at'], rows)}`;
}

function zones(group: GroupPlan): Html {
  const rows = group.zones.map((zone) => [
    zone.zone,
    html`<code>${zone.statefulSet}</code>`,
    words.replicasText(zone),
    String(zone.restarts),
  ]);
  return html`<details class="fold"><summary>Zones (${rows.length})</summary>${htmlTable(['zone', 'StatefulSet', 'replicas', 'restarts'], rows, [2, 3])}</details>`;
}

function rules(group: GroupPlan): Html {
  const results = group.waves.flatMap((wave) => wave.steps.flatMap((step) => step.rules.map((result) => ({ step, result }))));
  if (results.length === 0) return nothing;
  const rows = results.map(({ step, result }) => [
    words.stepText(step),
    html`<code class="key">${result.rule}</code>`,
    html`<b class="${result.outcome}">${result.outcome}</b>`,
    words.factText(result),
    html`<code class="soft">${words.sourceText(result.source) ?? ''}</code>`,
  ]);
  return html`<details class="fold"><summary>Evaluated rules (${rows.length})</summary>${htmlTable(['step', 'rule', 'result', 'fact', 'defined at'], rows)}</details>`;
}
