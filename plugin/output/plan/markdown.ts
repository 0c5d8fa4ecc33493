// Renders a plan as a comment on a pull request, within the size limit of GitHub.

import { hash } from 'node:crypto';
import type { RuleResult } from '../../../engine/decision.ts';
import { type GroupPlan, isOneZoneAtATime, namesText, type Plan } from '../../../engine/plan/document.ts';
import { isUntilPerson } from '../../../engine/rule.ts';
import { minuteText } from '../../../policies/instant.ts';
import { cut as clip } from '../../../policies/text/shorten.ts';
import { canonicalJson } from '../../../policies/values/canonical-json.ts';
import { groupBy } from '../../../policies/values/group-by.ts';
import { counted } from '../../../policies/wording.ts';
import { waitCommands, waitsBesidesStops } from '../explain.ts';
import { markdownCode, markdownDetails, markdownRow, markdownTable, markdownText } from '../markdown.ts';
import { changeLines, otherChangeTexts, policyChangeText } from './changes.ts';
import * as words from './plan-text.ts';

/** The maximum length of a comment in UTF-16 units: the limit of GitHub, less 1,000 for additions of a bot. */
export const commentBudget = 65_536 - 1_000;

/** Returns the comment. Its first line has a marker, by which a bot finds the comment again, and the digest of the whole plan. */
export function renderPlanMarkdown(plan: Plan, budget: number = commentBudget): string {
  const { changed, same } = words.splitByChange(plan);
  const sections = [
    bullets('**Notes**', 'note', plan.notes ?? [], 500),
    denials(changed, plan),
    waits(changed, plan),
    exceptions(changed),
    risks(changed),
    groupList('**Safety**: at most one zone at a time is disrupted in', changed.filter(isOneZoneAtATime)),
    overview(changed),
    listed('**Policies**', 'policy change', (plan.policyChanges ?? []).map(policyForms)),
    bullets('**Objects in no group**', 'change', otherChangeTexts(plan)),
    details(changed),
    groupList('Without changes:', same),
  ];
  return `${fitSections(head(plan), sections, foot(plan), budget - 1)}\n`;
}

function head(plan: Plan): string {
  const digest = hash('sha256', canonicalJson(plan));
  const policy = plan.metadata.policyDigest.replace(/[^\w:.]/g, '');
  const marker = `rollout-group:plan outcome=${worstOutcome(plan)} digest=sha256:${digest} policy=${policy}`;
  return `<!-- ${marker} -->\n### Rollout plan: ${headline(plan)}`;
}

export function worstOutcome({ outcome, groups }: Pick<Plan, 'outcome' | 'groups'>): Plan['outcome'] {
  const all = [outcome, ...groups.map((group) => group.outcome)];
  return (['blocked', 'waits', 'complete'] as const).find((one) => all.includes(one)) ?? 'unchanged';
}

function headline({ groups, policyChanges = [], otherChanges = [], denied = [] }: Plan): string {
  const sum = (count: (group: GroupPlan) => number) => groups.reduce((total, group) => total + count(group), 0);
  const deniedCount = sum((group) => group.refused.length) + denied.length;
  const waitingCount = groups.filter((group) => group.waits.length > 0).length;
  const parts = [
    ...(deniedCount === 0 ? [] : [`${deniedCount} denied`]),
    ...(waitingCount === 0 ? [] : [`${waitingCount} waiting`]),
    words.countsText([
      [sum((group) => group.totals.restarts), 'restart'],
      [sum((group) => group.totals.scaleChanges), 'scale change'],
      [policyChanges.length, 'policy change'],
      [otherChanges.length, 'other change'],
    ]),
  ].filter((part) => part !== '');
  if (parts.length > 0) return parts.join(', ');
  return groups.every((group) => group.changes.length === 0) ? 'no changes' : 'no restarts';
}

const outcomeMarks: Readonly<Partial<Record<GroupPlan['outcome'], string>>> = {
  blocked: '**blocked**',
  waits: '**waits**',
  unchanged: 'no restarts',
};

function overview(changed: readonly GroupPlan[]): Section {
  const rows = changed.map((group) => {
    const { restarts, scaleChanges, p50Seconds, p90Seconds } = group.totals;
    const cells = [
      groupName(group),
      outcomeMarks[group.outcome] ?? words.outcomeText(group),
      String(restarts),
      String(scaleChanges),
      words.spanText(p50Seconds),
      words.spanText(p90Seconds),
    ];
    return [markdownRow(cells)];
  });
  const head = [markdownTable(['group', 'outcome', 'restarts', 'scale changes', 'p50', 'p90'], [])];
  return listed('', 'group', rows.length === 0 ? [] : [head, ...rows]);
}

function denials(changed: readonly GroupPlan[], plan: Plan): Section {
  const ofServer = (plan.denied ?? []).map((denial) => [
    `- **${markdownText(clip(namesText(denial.objects), 200))}**. ${markdownText(clip(words.deniedText(denial), 500))}`,
  ]);
  const ofGroups = changed.flatMap((group) =>
    group.refused.map((refusal) => {
      const first = `- ${groupName(group)}: **${markdownText(clip(refusal.what, 200))}**. ${markdownText(clip(words.deniedText(refusal), 500))}`;
      const lines = words
        .denyingResults(refusal)
        .map(({ result, fact }) => `  - ${ruleText(result, fact)}; ${words.passesText(result, words.startMs(plan))}`);
      return [[first, ...lines].join('\n'), first];
    }),
  );
  return listed('**Denied**', 'denial', [...ofServer, ...ofGroups]);
}

function bullets(title: string, noun: string, texts: readonly string[], length = longestText): Section {
  return listed(
    title,
    noun,
    texts.map((text) => [`- ${markdownText(clip(text, length))}`]),
  );
}

/** Returns the line of a changed policy with all its fields. If the line is too long, also returns a line with the number of omitted fields. */
function policyForms(change: NonNullable<Plan['policyChanges']>[number]): readonly string[] {
  const line = (text: string): string => `- ${markdownText(text)}`;
  const { fields } = change;
  const shown = fields.filter((_, index) => fields.slice(0, index + 1).join(', ').length <= longestText);
  const full = line(policyChangeText(change));
  if (shown.length === fields.length) return [full];
  return [full, line(`${policyChangeText({ ...change, fields: shown })} and ${counted(fields.length - shown.length, 'more field')}`)];
}

function exceptions(changed: readonly GroupPlan[]): Section {
  const items = changed.flatMap((group) =>
    (group.permitted ?? []).map((result) => [`- ${groupName(group)}: ${ruleText(result, words.shownFact(result))}`]),
  );
  return listed('**Exceptions in force**', 'exception', items);
}

function waits(changed: readonly GroupPlan[], plan: Plan): Section {
  const items = changed.flatMap((group) => {
    const next = words.afterWaitText(group);
    return [
      ...(group.stops ?? []).map((stop) => {
        return [`- ${groupName(group)} is stopped: ${markdownText(clip(words.stopAndEndText(stop, words.startMs(plan)), 500))}`];
      }),
      ...waitsBesidesStops(group).map((result) => {
        const verb = isUntilPerson(result) ? 'is blocked by' : 'waits for';
        return [`- ${groupName(group)} ${verb} ${ruleText(result)}; ${words.passesText(result, words.startMs(plan))}`];
      }),
      ...waitCommands(group).map((command) => [`- ${groupName(group)}: ${markdownText(clip(command, longestText))}`]),
      ...(next === undefined ? [] : [[`- ${groupName(group)} then: ${markdownText(clip(next, longestText))}`]]),
    ];
  });
  return listed('**Waits**', 'wait', items);
}

function risks(changed: readonly GroupPlan[]): Section {
  const textOf = ({ code, severity, message, source }: GroupPlan['risks'][number]): string =>
    `${code} ${severity}: ${markdownText(clip(message, longestText))}${sourceSuffix(source)}`;
  const all = changed.flatMap((group) => group.risks.map((risk) => ({ name: groupName(group), text: textOf(risk) })));
  const items = [...groupBy(all, ({ text }) => text)].map(([text, same]) => {
    const more = same.length > 3 ? ` and ${counted(same.length - 3, 'more group')}` : '';
    return [
      `- ${same
        .slice(0, 3)
        .map(({ name }) => name)
        .join(', ')}${more}: ${text}`,
    ];
  });
  return listed('**Risks**', 'risk', items);
}

function details(changed: readonly GroupPlan[]): Section {
  return {
    title: '',
    items: changed.map(groupForms),
    separator: '\n\n',
    more: (count) => `${counted(count, 'more group')} omitted for length; \`plan -o html\` shows all groups.`,
  };
}

function listed(title: string, noun: string, items: Section['items']): Section {
  return { title, items, separator: '\n', more: (count) => `${counted(count, `more ${noun}`)}.` };
}

function groupList(title: string, groups: readonly GroupPlan[]): Section {
  return {
    title,
    items: groups.map((group) => [groupName(group)]),
    separator: ', ',
    more: (count) => `and ${counted(count, 'more group')}.`,
  };
}

function ruleText(result: RuleResult, fact: string = words.factText(result)): string {
  return `${markdownCode(result.rule)}: ${markdownText(clip(fact, 500))}${sourceSuffix(result.source)}`;
}

function foot(plan: Plan): string {
  const start = words.hasDurations(plan) ? words.startMs(plan) : undefined;
  const assumptions = words.hasDurations(plan)
    ? markdownDetails('Assumptions behind the durations', `Assumed: ${words.assumptionsText(plan)}.`)
    : '';
  const policy = plan.metadata.policyDigest === '' ? '' : `policy ${markdownText(words.shortDigest(plan.metadata.policyDigest))}`;
  const starts = start === undefined ? '' : `starts ${minuteText(start)}`;
  const line = [policy, starts].filter((part) => part !== '').join(', ');
  return [assumptions, line === '' ? '' : `<sub>${line}</sub>`].filter((part) => part !== '').join(between);
}

function groupName(group: GroupPlan): string {
  return markdownCode(`${group.namespace}/${group.group}`);
}

const longestText = 300;

/** Returns three forms of the group, from the longest to the shortest: complete, without the folded parts, and only title and totals. */
export function groupForms(group: GroupPlan): readonly string[] {
  const title = `#### ${markdownText(`${group.namespace}/${group.group}`)}: ${words.outcomeText(group)}`;
  const line = [title, words.totalsText(group.totals)].filter((part) => part !== '').join('\n\n');
  const steps = stepTable(group);
  const brief = [title, changeList(group), steps, words.totalsText(group.totals)].filter((part) => part !== '').join('\n\n');
  return [[brief, ...folded(group)].join('\n\n'), brief, line];
}

function changeList(group: GroupPlan): string {
  const lines = changeLines(group).map(
    (change) =>
      `- ${markdownCode(clip(change.field, longestText))}: ${markdownCode(clip(change.value, longestText))}, ${change.consequence}`,
  );
  const ended = words.endedTexts(group).map((text) => `- ${markdownText(clip(text, longestText))}`);
  const more = lines.length > 10 ? [`- ${counted(lines.length - 10, 'more change')}`] : [];
  return [...lines.slice(0, 10), ...more, ...ended].join('\n');
}

function stepTable(group: GroupPlan): string {
  const rows = words
    .stepRows(group)
    .map(({ wave, verb, object, podCount = '', atOnce = '', gate, p50, p90 }) => [
      markdownText(wave),
      `${verb} ${markdownText(clip(object, longestText))}`.trim(),
      `${podCount}`,
      `${atOnce}`,
      markdownText(gate),
      p50,
      p90,
    ]);
  return rows.length === 0 ? '' : markdownTable(['wave', 'step', 'pods', 'at once', 'gate', 'p50', 'p90'], rows);
}

function folded(group: GroupPlan): readonly string[] {
  const zones = group.zones.map((zone) => [
    markdownCode(zone.zone),
    markdownCode(zone.statefulSet),
    words.replicasText(zone),
    String(zone.restarts),
  ]);
  const rules = ruleRows(group);
  return [
    ...(rules.length === 0
      ? []
      : [markdownDetails(`Evaluated rules (${rules.length})`, markdownTable(['rule', 'result', 'fact', 'limit', 'defined at'], rules))]),
    markdownDetails(`Zones (${zones.length})`, markdownTable(['zone', 'StatefulSet', 'replicas', 'restarts'], zones)),
  ];
}

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

export interface Section {
  /** The text before the first item. A section without items is left out. */
  readonly title: string;
  /** The forms of each item, from the longest to the shortest. The first form that fits is used. */
  readonly items: readonly (readonly string[])[];
  readonly separator: string;
  /** The text between title and items. Absent: an empty line. */
  readonly join?: string;
  readonly more: (count: number) => string;
}

const between = '\n\n';

/** Returns the head, the sections and the foot. If they exceed `budget` UTF-16 units, shortens or omits items, but not the head or foot. */
export function fitSections(head: string, sections: readonly Section[], foot: string, budget: number): string {
  const shown = sections.filter((section) => section.items.length > 0);
  const reserves = shown.map((section) => section.title.length + section.more(section.items.length).length + 3 * between.length);
  let rest = budget - head.length - foot.length - 2 * between.length - reserves.reduce((sum, one) => sum + one, 0);
  const parts = shown.map((section) => {
    const fitted = fitItems(section, rest);
    rest -= fitted.cost;
    return fitted.text;
  });
  return [head, ...parts, foot].filter((part) => part !== '').join(between);
}

function fitItems(section: Section, room: number): { readonly text: string; readonly cost: number } {
  const taken: string[] = [];
  let cost = 0;
  for (const forms of section.items) {
    const form = forms.find((text) => text.length + section.separator.length <= room - cost);
    if (form === undefined) break;
    taken.push(form);
    cost += form.length + section.separator.length;
  }
  const left = section.items.length - taken.length;
  const body = taken.join(section.separator);
  const titled = [section.title, body].filter((part) => part !== '').join(section.join ?? between);
  const text = [titled, left > 0 ? section.more(left) : ''].filter((part) => part !== '').join(between);
  return { text, cost };
}
