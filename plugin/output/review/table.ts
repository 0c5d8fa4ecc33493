// Renders a review for a terminal: the effects of all environments first, then the decisions behind them and the plans.

import type { EnvironmentReview, Review } from '../../../review/document.ts';
import type { OutputStream } from '../../context.ts';
import { renderPlanTable } from '../plan/table.ts';
import { alignTable, paragraph, styledParagraph } from '../text.ts';
import {
  causeOfRow,
  environmentName,
  groupsText,
  headline,
  placeText,
  plannedGroups,
  type ReviewRow,
  reviewRows,
  revisionsText,
  rowKinds,
  rowText,
  summaryOf,
} from './review-text.ts';

type Look = Pick<OutputStream, 'columns' | 'paint' | 'glyphs'>;

const labelWidth = 10;

/** Returns the text of a review with a final line break. With several environments, a summary table comes first. */
export function renderReviewTable(review: Review, look: Look): string {
  const { environments } = review;
  const rows = reviewRows(review);
  const title = paragraph('Review  ', `${revisionsText(review)}   ${headline(review, rows)}`, look.columns);
  const lines = [
    ...title.map((line) => look.paint('bold', line)),
    ...(environments.length > 1 ? summaryTable(environments, rows, look) : []),
    ...[...new Set(rows.map(({ kind }) => kind))].flatMap((kind) => rowLines(rows, kind, environments, look)),
    ...rows
      .filter(({ decisions, groups }) => decisions.length > 1 || groups.length > 0)
      .flatMap((row) => ['', ...decisionLines(row, environments, look)]),
    ...environments.flatMap((one) => planLines(one, environments.length > 1, look)),
  ];
  return `${lines.join('\n')}\n`;
}

function summaryTable(
  environments: readonly EnvironmentReview[],
  effects: readonly ReviewRow[],
  { columns: width, glyphs }: Look,
): readonly string[] {
  const { titles, rows } = summaryOf(environments, effects);
  const columns = titles.map((title, index) => ({ title: title.toUpperCase(), align: 'left' as const, isFlexible: index < 2 }));
  const { header, lines } = alignTable(
    columns,
    rows.map((cells) => ({ cells })),
    { width, ellipsis: glyphs.ellipsis },
  );
  return [header, ...lines];
}

/** The maximum number of rows of one kind before the plans. */
const maxRows = 10;

function rowLines(
  rows: readonly ReviewRow[],
  kind: ReviewRow['kind'],
  environments: readonly EnvironmentReview[],
  look: Look,
): readonly string[] {
  const own = rows.filter((row) => row.kind === kind);
  const label = kind.toUpperCase().padEnd(labelWidth);
  const lines = own.slice(0, maxRows).flatMap((row) => {
    const place = placeText(row);
    return styledParagraph(label, `${rowText(row, environments)}${place === '' ? '' : ` (${place})`}`, look, rowKinds[kind].style);
  });
  return own.length > maxRows ? [...lines, ...styledParagraph(label, `and ${own.length - maxRows} more`, look, 'dim')] : lines;
}

function decisionLines(row: ReviewRow, environments: readonly EnvironmentReview[], look: Look): readonly string[] {
  return [
    ...paragraph('', causeOfRow(row, environments), look.columns).map((line) => look.paint('bold', line)),
    ...[...row.decisions, ...groupsText(row)].flatMap((one) => paragraph(`  ${look.glyphs.bullet} `, one, look.columns)),
  ];
}

function planLines(one: EnvironmentReview, isNamed: boolean, look: Look): readonly string[] {
  const planned = plannedGroups(one.plan);
  if (planned.length === 0) return [];
  const { otherChanges: _otherChanges, ...plan } = one.plan;
  return [
    '',
    ...(isNamed ? [look.paint('bold', environmentName(one))] : []),
    renderPlanTable({ ...plan, groups: planned }, look).trimEnd(),
  ];
}
