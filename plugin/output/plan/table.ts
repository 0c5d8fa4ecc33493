// Renders a plan for a terminal: changes, waves with steps and durations, denials, waits and assumptions.

import type { RuleResult } from '../../../engine/decision.ts';
import { type GroupPlan, isOneZoneAtATime, namesText, type Plan } from '../../../engine/plan/document.ts';
import { isUntilPerson } from '../../../engine/rule.ts';
import { minuteText } from '../../../policies/instant.ts';
import { shorten } from '../../../policies/text/shorten.ts';
import type { OutputStream } from '../../context.ts';
import { waitCommands, waitsBesidesStops } from '../explain.ts';
import { alignRows, type Column, paragraph, type Row, styledParagraph } from '../text.ts';
import { changeLines, otherChangeTexts, policyChangeText } from './changes.ts';
import * as words from './plan-text.ts';

export interface TableLook extends Pick<OutputStream, 'columns' | 'paint' | 'glyphs'> {
  /** True to show full field paths, sources and start times. */
  readonly isWide?: boolean;
}

const labelWidth = 9;

/** Returns the text of a plan with a final line break. Changed groups come first, sorted by need of attention. */
export function renderPlanTable(plan: Plan, look: TableLook): string {
  const isSingle = plan.groups.length === 1;
  const { changed, same } = words.splitByChange(plan);
  const lines = [
    ...headLines(plan, look),
    ...(plan.policyChanges ?? []).flatMap((change) => labelled('POLICY', policyChangeText(change), look)),
    ...otherChangeTexts(plan).flatMap((text) => labelled('OBJECT', text, look)),
    ...changed.flatMap((group) => ['', ...(isSingle ? [] : [groupTitle(group, look)]), ...groupLines(plan, group, look)]),
    ...(isSingle ? [] : unchangedLines(same, look)),
    ...deniedLines(plan, look),
    ...basisLines(plan, look),
  ];
  return `${lines.join('\n')}\n`;
}

function headLines(plan: Plan, look: TableLook): readonly string[] {
  const [first] = plan.groups;
  const title =
    first !== undefined && plan.groups.length === 1
      ? `${first.namespace}/${first.group}   ${(plan.denied ?? []).length > 0 ? 'blocked' : words.outcomeText(first)}`
      : undefined;
  const policy = plan.metadata.policyDigest === '' ? '' : `   policy ${words.shortDigest(plan.metadata.policyDigest)}`;
  return paragraph('Plan  ', `${title ?? words.groupsText(plan.groups)}${policy}`, look.columns).map((line) => look.paint('bold', line));
}

function deniedLines({ denied = [] }: Plan, look: TableLook): readonly string[] {
  return denied.flatMap((denial) => [
    '',
    ...paragraph(`${'DENIED'.padEnd(labelWidth)}${look.glyphs.no} `, namesText(denial.objects), look.columns).map((line) =>
      look.paint('red', line),
    ),
    ...paragraph(' '.repeat(labelWidth + 2), words.deniedText(denial), look.columns),
  ]);
}

function groupTitle(group: GroupPlan, { paint }: TableLook): string {
  return `${paint('bold', `${group.namespace}/${group.group}`)}   ${words.outcomeText(group)}`;
}

function unchangedLines(groups: readonly GroupPlan[], look: TableLook): readonly string[] {
  if (groups.length === 0) return [];
  const names = groups.map((group) => `${group.namespace}/${group.group}`).join(', ');
  return ['', ...labelled('SAME', `${names} ${groups.length === 1 ? 'has' : 'have'} no changes`, look)];
}

/** Returns the basis of the durations: the assumptions (without `-o wide` only those that differ from the defaults) and the start. */
function basisLines(plan: Plan, look: TableLook): readonly string[] {
  const assumed = words.hasDurations(plan) ? words.assumptionsText(plan, { isComplete: look.isWide === true }) : '';
  const start = words.hasDurations(plan) ? words.startMs(plan) : undefined;
  const lines = [
    ...(assumed === '' ? [] : labelled('ASSUMES', assumed, look)),
    ...(start === undefined ? [] : labelled('STARTS', minuteText(start), look)),
  ];
  return lines.length === 0 ? [] : ['', ...lines];
}

function groupLines(plan: Plan, group: GroupPlan, look: TableLook): readonly string[] {
  const nowMs = words.startMs(plan);
  const totals = words.totalsText(group.totals);
  const blocks = [
    changeBlock(group, look),
    stepBlock(group, look),
    approvalBlock(group, look),
    deniedBlock(group, nowMs, look),
    (group.permitted ?? []).flatMap((result) => labelled('EXCEPTION', words.exceptionText(result, nowMs), look)),
    waitBlock(group, nowMs, look),
    riskBlock(group, look),
    totals === '' ? [] : paragraph('', totals, look.columns),
  ];
  return blocks.filter((block) => block.length > 0).flatMap((block, index) => (index === 0 ? block : ['', ...block]));
}

/** The maximum length of a value in characters, if it is below its row. */
const longestValue = 400;

const changeColumns: readonly Column[] = [
  { title: '', align: 'left', isFlexible: true },
  { title: '', align: 'left', isFlexible: true },
  { title: '', align: 'left' },
];

/** Returns the changes, what they end, and the policies. A value that does not fit into its row is below the row. */
function changeBlock(group: GroupPlan, look: TableLook): readonly string[] {
  const changes = changeLines(group, { fullPaths: look.isWide === true });
  const width = look.columns === undefined ? undefined : look.columns - labelWidth;
  const longest = (texts: readonly string[]): number => Math.max(0, ...texts.map(({ length }) => length));
  const others = longest(changes.map(({ field }) => field)) + longest(changes.map(({ consequence }) => consequence)) + 4;
  const isBelow = ({ value }: (typeof changes)[number]): boolean => width !== undefined && value.length + others > width;
  const rows = changes.map((line) => ({ cells: [line.field, isBelow(line) ? '' : line.value, line.consequence] }));
  const lines = alignRows(changeColumns, rows, { width, ellipsis: look.glyphs.ellipsis }).flatMap((row, index) => {
    const { [index]: change } = changes;
    const below = change !== undefined && isBelow(change) ? shorten(change.value, longestValue, look.glyphs.ellipsis) : '';
    return [
      label(index === 0 ? 'CHANGE' : '', look) + row,
      ...(below === '' ? [] : paragraph(' '.repeat(labelWidth + 2), below, look.columns)),
    ];
  });
  const safety = isOneZoneAtATime(group) ? labelled('SAFETY', 'this plan disrupts at most one zone at a time', look) : [];
  const policies = words.policyTexts(group);
  return [
    ...lines,
    ...words.endedTexts(group).flatMap((text, index) => labelled(index === 0 ? 'RUN' : '', text, look)),
    ...safety,
    ...policies.flatMap((text, index) => labelled(index === 0 ? 'POLICIES' : '', text, look)),
  ];
}

const stepColumns: readonly Column[] = [
  { title: 'WAVE', align: 'left', isFlexible: true },
  { title: 'STEP', align: 'left' },
  { title: '', align: 'left', isFlexible: true },
  { title: 'PODS', align: 'right' },
  { title: 'AT ONCE', align: 'right' },
  { title: 'GATE', align: 'left', isFlexible: true },
  { title: 'p50', align: 'right' },
  { title: 'p90', align: 'right' },
];

/** The columns that the object of a step without pods may fill. The approvers of an approval, which has no duration, fill all columns. */
const withoutPods = { first: 2, last: 4 } as const;

const wideColumns: readonly Column[] = [
  ...stepColumns,
  { title: 'START', align: 'right' },
  { title: 'DEFINED AT', align: 'left', isFlexible: true },
];

/** Returns the steps with their totals. The columns of pods are left out if no step has pods, as in a blocked plan. */
function stepBlock(group: GroupPlan, look: TableLook): readonly string[] {
  const steps = words.stepRows(group);
  const isCounted = steps.some(({ podCount }) => podCount !== undefined);
  const shown = <Value>(cells: readonly Value[]): readonly Value[] => (isCounted ? cells : [...cells.slice(0, 3), ...cells.slice(5)]);
  const approval = { first: 2, last: shown(stepColumns).length - 1 };
  const rows = steps.map(({ kind, wave, verb, object, podCount, atOnce = '-', gate, p50, p90, start, source }): Row => {
    const span = kind === 'approval' ? approval : isCounted && podCount === undefined ? withoutPods : undefined;
    return {
      cells: shown([wave, verb, object, `${podCount}`, `${atOnce}`, gate, p50, p90, start, source]),
      ...(span === undefined ? {} : { span }),
      ...(kind === 'approval' || kind === 'wait' ? { style: 'yellow' } : {}),
    };
  });
  if (rows.length === 0) return [];
  const columns = shown(look.isWide === true ? wideColumns : stepColumns);
  const { p50Seconds, p90Seconds } = group.totals;
  const total = shown(['', '', '', '', '', 'total', words.spanText(p50Seconds), words.spanText(p90Seconds)]);
  const all: Row[] = [{ cells: columns.map(({ title }) => title), style: 'dim' }, ...rows, { cells: total, style: 'bold' }];
  const width = look.columns === undefined ? undefined : look.columns - 1;
  const lines = alignRows(columns, all, { width, ellipsis: look.glyphs.ellipsis });
  return lines.flatMap((row, index) => row.split('\n').map((line) => ` ${paintRow(line, all[index], look)}`));
}

function paintRow(line: string, row: Row | undefined, { paint }: TableLook): string {
  return row?.style === undefined ? line : paint(row.style, line);
}

/** Returns why policy rules ask for approvals: the message of each rule, and how the rollout differs from its approved plan. */
function approvalBlock(group: GroupPlan, look: TableLook): readonly string[] {
  return words.approvalReasons(group).flatMap((result) => {
    const source = words.sourceText(result.source);
    return labelled('APPROVAL', `${result.rule}: ${words.shownFact(result)}${source === undefined ? '' : ` (${source})`}`, look);
  });
}

function deniedBlock(group: GroupPlan, nowMs: number | undefined, look: TableLook): readonly string[] {
  return group.refused.flatMap((refusal) => {
    const zone = refusal.zone === undefined || refusal.what.includes(refusal.zone) ? '' : `  (${refusal.zone})`;
    return [
      look.paint('red', `${'DENIED'.padEnd(labelWidth)}${look.glyphs.no} ${refusal.what}${zone}`),
      ...paragraph(' '.repeat(labelWidth + 2), words.deniedText(refusal), look.columns),
      ...words
        .denyingResults(refusal)
        .flatMap(({ result, fact }) =>
          resultLines(result, [result.rule, fact].filter((part) => part !== undefined).join(': '), nowMs, look),
        ),
    ];
  });
}

function waitBlock(group: GroupPlan, nowMs: number | undefined, look: TableLook): readonly string[] {
  const lines = waitsBesidesStops(group).flatMap((result) => {
    const isBlocked = isUntilPerson(result);
    const mark = isBlocked ? look.paint('red', look.glyphs.no) : look.glyphs.wait;
    const start = `${label(isBlocked ? 'BLOCKED' : 'WAITS', look, 'yellow')}${mark} ${isBlocked ? 'by' : 'for'}`;
    return [`${start} ${result.rule}`, ...resultLines(result, words.factText(result), nowMs, look)];
  });
  const next = words.afterWaitText(group);
  return [
    ...(group.stops ?? []).flatMap((stop) => labelled('STOPPED', words.stopAndEndText(stop, nowMs), look)),
    ...lines,
    ...waitCommands(group).flatMap((command) => labelled('DO', command, look)),
    ...(next === undefined ? [] : labelled('THEN', next, look)),
  ];
}

function resultLines(result: RuleResult, text: string, nowMs: number | undefined, look: TableLook): readonly string[] {
  const indent = ' '.repeat(labelWidth + 2);
  const source = words.sourceText(result.source);
  const written = source === undefined ? '' : `, defined at ${source}`;
  return [...paragraph(indent, `${text}${written}`, look.columns), ...paragraph(indent, words.passesText(result, nowMs), look.columns)];
}

function riskBlock(group: GroupPlan, look: TableLook): readonly string[] {
  return group.risks.flatMap((risk, index) => {
    const source = words.sourceText(risk.source);
    const text = `${risk.code} ${risk.severity}  ${risk.message}${source === undefined ? '' : ` (${source})`}`;
    return index === 0 ? labelled('RISKS', text, look) : paragraph(' '.repeat(labelWidth), text, look.columns);
  });
}

function labelled(word: string, text: string, look: TableLook): readonly string[] {
  return styledParagraph(`${word.padEnd(labelWidth - 1)} `, text, look, 'bold');
}

function label(word: string, { paint }: TableLook, style: 'bold' | 'yellow' = 'bold'): string {
  return paint(style, word.padEnd(labelWidth));
}
