// Renders one group of a plan in Markdown: changes and steps, and folded parts for risks, rules and zones.
import type { RuleResult } from '../../../engine/decision.ts';
import type { GroupPlan } from '../../../engine/plan/document.ts';
import { plural } from '../plural.ts';
import { changeLines } from './changes.ts';
import { clip, markdownCode, markdownDetails, markdownTable, markdownText } from './markdown-text.ts';
import * as words from './plan-text.ts';

const longestText = 300;

/** Returns the group from its longest form to its shortest: complete, without the folded parts, and as one line. */
export function groupForms(group: GroupPlan): readonly string[] {
  const title = `#### ${markdownText(`${group.namespace}/${group.group}`)}: ${words.outcomeWords[group.outcome]}`;
  const line = `${title}\n\n${words.totalsText(group.totals)}`;
  const steps = stepTable(group);
  const brief = [title, changeList(group), steps, words.totalsText(group.totals)].filter((part) => part !== '').join('\n\n');
  return [[brief, ...folded(group)].join('\n\n'), brief, line];
}

function changeList(group: GroupPlan): string {
  const lines = changeLines(group).map(
    (change) =>
      `- ${markdownCode(clip(change.field, longestText))}: ${markdownCode(clip(change.value, longestText))}, ${change.consequence}`,
  );
  return lines.slice(0, 10).join('\n') + (lines.length > 10 ? `\n- ${plural(lines.length - 10, 'more change')}` : '');
}

function stepTable(group: GroupPlan): string {
  const titles = words.waveTitles(group);
  const rows = group.waves.flatMap((wave, number) =>
    wave.steps.map((step, index) => [
      index === 0 ? markdownText(titles[number] ?? '') : '',
      `${words.stepVerb(step)} ${markdownText(clip(words.stepObject(step), longestText))}`.trim(),
      String(words.stepPodCount(step) ?? ''),
      String(step.atOnce ?? ''),
      markdownText(words.stepGate(step)),
      words.spanText(step.p50Seconds),
      words.spanText(step.p90Seconds),
    ]),
  );
  return rows.length === 0 ? '' : markdownTable(['wave', 'step', 'pods', 'at once', 'gate', 'p50', 'p90'], rows);
}

function folded(group: GroupPlan): readonly string[] {
  const zones = group.zones.map(({ zone, statefulSet, replicasBefore, replicasAfter, restarts }) => [
    markdownCode(zone),
    markdownCode(statefulSet),
    replicasBefore === replicasAfter ? String(replicasAfter) : `${replicasBefore} → ${replicasAfter}`,
    String(restarts),
  ]);
  const risks = group.risks.map(
    (risk) => `- ${risk.code} ${risk.severity}: ${markdownText(clip(risk.message, longestText))}${sourceSuffix(risk.source)}`,
  );
  const rules = ruleRows(group);
  return [
    ...(risks.length === 0 ? [] : [markdownDetails(plural(risks.length, 'risk'), risks.join('\n'))]),
    ...(rules.length === 0
      ? []
      : [markdownDetails(`Evaluated rules (${rules.length})`, markdownTable(['rule', 'result', 'fact', 'limit', 'defined at'], rules))]),
    markdownDetails(`Zones (${zones.length})`, markdownTable(['zone', 'StatefulSet', 'replicas', 'restarts'], zones)),
  ];
}

/** Returns each rule once, with its most severe result. */
function ruleRows(group: GroupPlan): readonly (readonly string[])[] {
  const weight: Readonly<Record<RuleResult['outcome'], number>> = { no: 4, unknown: 3, wait: 2, ok: 1, skip: 0 };
  const worst = new Map<string, RuleResult>();
  const results = [
    ...group.refused.flatMap((refusal) => refusal.results),
    ...group.waits,
    ...group.waves.flatMap((wave) => wave.steps.flatMap((step) => step.rules)),
  ];
  for (const result of results) {
    const known = worst.get(result.rule);
    if (known === undefined || weight[result.outcome] > weight[known.outcome]) worst.set(result.rule, result);
  }
  return [...worst.values()].map((result) => [
    markdownCode(result.rule),
    result.outcome,
    markdownText(clip(result.fact, longestText)),
    markdownText(clip(result.limit ?? '', longestText)),
    words.sourceText(result.source) === undefined ? '' : markdownCode(words.sourceText(result.source) ?? ''),
  ]);
}

function sourceSuffix(source: RuleResult['source']): string {
  const text = words.sourceText(source);
  return text === undefined ? '' : ` (${markdownCode(text)})`;
}
