// Renders a review for a terminal: the effects first, then the decisions behind them and the plan.
import type { EnvironmentReview, PolicyEffect, Review } from '../../../review/document.ts';
import type { OutputStream } from '../../context.ts';
import { renderPlanTable } from '../plan/table.ts';
import type { Style } from '../terminal.ts';
import { alignTable, paragraph, plural, styledParagraph } from '../text.ts';
import {
  effectText,
  groupText,
  headline,
  placeText,
  plannedGroups,
  revisionsText,
  summaryCells,
  summaryTitles,
  testsText,
} from './review-text.ts';

type Look = Pick<OutputStream, 'columns' | 'paint' | 'glyphs'>;

const labelWidth = 10;

/** Returns the text of a review with a final line break. With several environments, a summary table comes first. */
export function renderReviewTable(review: Review, look: Look): string {
  const { environments } = review;
  const title = paragraph('Review  ', `${revisionsText(review)}   ${headline(environments)}`, look.columns);
  const lines = [
    ...title.map((line) => look.paint('bold', line)),
    ...(environments.length > 1 ? ['', ...summaryTable(environments, look)] : []),
    ...environments.flatMap((one) => [
      ...(environments.length > 1 ? ['', look.paint('bold', `${one.name}${one.cluster === undefined ? '' : ` (${one.cluster})`}`)] : []),
      ...environmentLines(one, look),
    ]),
  ];
  return `${lines.join('\n')}\n`;
}

function summaryTable(environments: readonly EnvironmentReview[], { columns: width, glyphs }: Look): readonly string[] {
  const columns = summaryTitles.map((title, index) => ({ title: title.toUpperCase(), align: 'left' as const, isFlexible: index < 3 }));
  const rows = environments.map((one) => ({ cells: summaryCells(one) }));
  const { header, lines } = alignTable(columns, rows, { width, ellipsis: glyphs.ellipsis });
  return [header, ...lines];
}

function environmentLines(one: EnvironmentReview, look: Look): readonly string[] {
  const { effects } = one.policies;
  const planned = plannedGroups(one.plan);
  return [
    ...briefs(effects, 'loosened', 'yellow', look),
    ...briefs(effects, 'tightened', 'green', look),
    ...planned.flatMap((group) =>
      labelled(group.refused.length > 0 ? 'DENIED' : 'ROLLOUT', `${group.namespace}/${group.group}: ${groupText(group)}`, look),
    ),
    ...(one.tests === undefined ? [] : labelled('TESTS', testsText(one), look)),
    ...(one.tests?.head.failures ?? []).flatMap(({ file, case: name, problems }) =>
      labelled('FAILED', `${file}: ${name}: ${problems.join('; ')}`, look),
    ),
    ...briefs(effects, 'changed', 'dim', look),
    ...effects.filter(({ decisions }) => decisions.length > 1).flatMap((effect) => ['', ...decisionLines(effect, look)]),
    ...(planned.length === 0 ? [] : ['', renderPlanTable({ ...one.plan, groups: planned }, look).trimEnd()]),
  ];
}

/** The maximum number of effects of one direction before the plan. */
const maxBriefs = 10;

function briefs(effects: readonly PolicyEffect[], direction: PolicyEffect['direction'], style: Style, look: Look): readonly string[] {
  const own = effects.filter((effect) => effect.direction === direction);
  const lines = own.slice(0, maxBriefs).flatMap((effect) => {
    const place = placeText(effect);
    return labelled(direction.toUpperCase(), `${effectText(effect)}${place === '' ? '' : ` (${place})`}`, look, style);
  });
  return own.length > maxBriefs ? [...lines, ...labelled('', `and ${plural(own.length - maxBriefs, 'more effect')}`, look)] : lines;
}

function decisionLines({ cause, decisions }: PolicyEffect, look: Look): readonly string[] {
  return [
    ...paragraph('', cause, look.columns).map((line) => look.paint('bold', line)),
    ...decisions.flatMap(({ text }) => paragraph(`  ${look.glyphs.bullet} `, text, look.columns)),
  ];
}

function labelled(label: string, text: string, look: Look, style: Style = 'dim'): readonly string[] {
  return styledParagraph(label.padEnd(labelWidth), text, look, style);
}
