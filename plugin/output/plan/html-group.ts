// Renders one group of a plan in HTML: changes, denials, waits, timeline, steps, risks, and folded zones and rules.
import type { RuleResult } from '../../../engine/decision.ts';
import type { GroupPlan } from '../../../engine/plan/document.ts';
import { changeLines } from './changes.ts';
import { type Html, html, htmlTable, nothing } from './html-text.ts';
import { timelineSvg } from './html-timeline.ts';
import * as words from './plan-text.ts';

interface GroupPlace {
  /** Anchor of the group, unique in the page. */
  readonly id: string;
  readonly isOpen: boolean;
  /** Start time of the plan, if the plan depends on the calendar. */
  readonly startMs: number | undefined;
}

/** Returns the group as one foldable part. */
export function groupHtml(group: GroupPlan, place: GroupPlace): Html {
  return html`<details class="group" id="${place.id}"${place.isOpen ? html` open` : nothing}><summary><h2>${group.namespace}/${group.group}</h2><span class="badge ${group.outcome}">${words.outcomeWords[group.outcome]}</span><span class="soft">${timesText(group)}</span></summary>
<div class="body">
<p class="soft">${words.totalsText(group.totals)}</p>
${refusals(group, place.startMs)}${waits(group, place.startMs)}${changes(group)}
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
  const safety = words.isOneZoneAtATime(group) ? html`<p>This plan disturbs at most one zone at a time.</p>` : nothing;
  const rows = lines.map((line) => [html`<code>${line.field}</code>`, html`<code>${line.value}</code>`, line.consequence]);
  return html`<h3>Changes</h3>${htmlTable(['field', 'change', 'effect'], rows)}${safety}`;
}

function refusals(group: GroupPlan, startMs: number | undefined): readonly Html[] {
  return group.refused.map((refusal) => {
    return html`<div class="notice refused"><b>Denied: ${refusal.what}</b><p>${refusal.message}</p><ul>${words.denyingResults(refusal).map(({ result, fact }) => holding(result, fact, startMs))}</ul></div>\n`;
  });
}

function waits(group: GroupPlan, startMs: number | undefined): Html {
  if (group.waits.length === 0) return nothing;
  return html`<div class="notice"><b>Waits</b><ul>${group.waits.map((result) => holding(result, words.factText(result), startMs))}</ul></div>\n`;
}

function holding(result: RuleResult, fact: string | undefined, startMs: number | undefined): Html {
  const source = words.sourceText(result.source);
  return html`<li><code>${result.rule}</code>${fact === undefined ? nothing : html`: ${fact}`}${source === undefined ? nothing : html` <code class="soft">${source}</code>`}<br><span class="soft">${words.passesText(result, startMs)}</span></li>`;
}

function steps(group: GroupPlan): Html {
  const waveTitles = words.waveTitles(group);
  const rows = group.waves.flatMap((wave, number) =>
    wave.steps.map((step, index) => [
      index === 0 ? (waveTitles[number] ?? '') : '',
      words.stepVerb(step),
      html`<span class="pods">${words.stepObject(step)}</span>`,
      String(words.stepPodCount(step) ?? '–'),
      String(step.atOnce ?? '–'),
      words.stepGate(step),
      `+${words.spanText(step.startSeconds)}`,
      words.spanText(step.p50Seconds),
      words.spanText(step.p90Seconds),
      html`<code class="soft">${words.sourceText(step.source) ?? ''}</code>`,
    ]),
  );
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
    zone.replicasBefore === zone.replicasAfter ? String(zone.replicasAfter) : `${zone.replicasBefore} → ${zone.replicasAfter}`,
    String(zone.restarts),
  ]);
  return html`<details class="fold"><summary>Zones (${rows.length})</summary>${htmlTable(['zone', 'StatefulSet', 'replicas', 'restarts'], rows, [2, 3])}</details>`;
}

function rules(group: GroupPlan): Html {
  const results = group.waves.flatMap((wave) => wave.steps.flatMap((step) => step.rules.map((result) => ({ step, result }))));
  if (results.length === 0) return nothing;
  const rows = results.map(({ step, result }) => [
    `${words.stepVerb(step)} ${words.stepObject(step)}`.trim(),
    html`<code class="key">${result.rule}</code>`,
    html`<b class="${result.outcome}">${result.outcome}</b>`,
    words.factText(result),
    html`<code class="soft">${words.sourceText(result.source) ?? ''}</code>`,
  ]);
  return html`<details class="fold"><summary>Evaluated rules (${rows.length})</summary>${htmlTable(['step', 'rule', 'result', 'fact', 'defined at'], rows)}</details>`;
}
