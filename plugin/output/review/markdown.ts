// Renders a review as a comment on a pull request, within the size limit of GitHub: the summary first, then the effects, then the plans.
import type { Plan } from '../../../engine/plan/document.ts';
import { cut } from '../../../policies/text/shorten.ts';
import { counted } from '../../../policies/wording.ts';
import type { EnvironmentReview, Review } from '../../../review/document.ts';
import { markdownCode, markdownDetails, markdownRow, markdownTable, markdownText } from '../markdown.ts';
import { fitSections, groupForms, type Section } from '../plan/markdown.ts';
import {
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

/** The maximum length of a comment in UTF-16 units, so that a bot can add text within the 65,536 units of GitHub. */
const maxLength = 60_000;

/** Returns the comment. A bot finds it again by the marker in its first line, which has the environments, their outcomes and the digest. */
export function renderReviewMarkdown(
  review: Review,
  { digest, outcomes }: { readonly digest: string; readonly outcomes: readonly Plan['outcome'][] },
  budget: number = maxLength,
): string {
  const { environments } = review;
  const rows = reviewRows(review);
  const names = environments.map(({ name }) => name.replace(/[^\w.-]|-(?=-)/g, '')).join(',');
  const title = environments.length === 1 ? titleOf(environments[0]) : counted(environments.length, 'environment');
  const head = [
    `<!-- rollout-group:review env=${names} outcome=${outcomes.join(',')} digest=sha256:${digest.replace(/\W/g, '')} -->`,
    `### Rollout review${title === '' ? '' : ` of ${title}`}: ${headline(review, rows)}`,
  ].join('\n');
  const sections = [
    ...(environments.length > 1 ? [summary(environments, rows)] : []),
    ...[...new Set(rows.map(({ kind }) => kind))].map((kind) => rowSection(kind, rows, environments)),
    ...evenDetails(environments, budget - sizeOf(rows.map((row) => rowForms(row, environments)))),
  ];
  return `${fitSections(head, sections, `<sub>${markdownText(revisionsText(review))}</sub>`, budget - 1)}\n`;
}

function titleOf(one: EnvironmentReview | undefined): string {
  return one === undefined || one.name === 'default' ? '' : markdownText(environmentName(one));
}

function summary(environments: readonly EnvironmentReview[], effects: readonly ReviewRow[]): Section {
  const { titles: columns, rows } = summaryOf(environments, effects);
  return {
    title: markdownTable(columns, []),
    items: rows.map((cells) => [markdownRow(cells.map(markdownText))]),
    separator: '\n',
    join: '\n',
    more: (count) => `${counted(count, 'more environment')}.`,
  };
}

const longestText = 600;

function rowSection(kind: ReviewRow['kind'], rows: readonly ReviewRow[], environments: readonly EnvironmentReview[]): Section {
  const items = rows.filter((row) => row.kind === kind).map((row) => rowForms(row, environments));
  return { title: `**${rowKinds[kind].title}**`, items, separator: '\n', more: (count) => `${count} more.` };
}

/** Returns a row with a list of its decisions and groups, and with the first decision in its line. */
function rowForms(row: ReviewRow, environments: readonly EnvironmentReview[]): readonly string[] {
  const places = placeText(row);
  const place = places === '' ? '' : ` (${markdownCode(places)})`;
  const line = (text: string): string => `- ${markdownText(cut(text, longestText))}${place}`;
  const short = line(rowText(row, environments));
  const items = [...(row.decisions.length < 2 ? [] : row.decisions), ...groupsText(row)];
  if (items.length === 0) return [short];
  const first = row.decisions.length < 2 ? short : line(rowText({ ...row, decisions: [] }, environments));
  return [[first, ...items.map((text) => `  - ${markdownText(cut(text, longestText))}`)].join('\n'), short];
}

/** Returns the plans in the longest form in which those of all environments fit, so that no plan takes the room of another. */
function evenDetails(environments: readonly EnvironmentReview[], room: number): readonly Section[] {
  const all = environments.map((one) => details(one, environments.length > 1));
  const shorter = (count: number): readonly Section[] =>
    all.map((section) => ({ ...section, items: section.items.map((forms) => forms.slice(Math.min(count, forms.length - 1))) }));
  // The rest is for titles, the summary and the marker.
  const fits = (sections: readonly Section[]): boolean => sizeOf(sections.flatMap(({ items }) => items)) < room * 0.9;
  return [all, shorter(1)].find(fits) ?? shorter(2);
}

/** Returns the size of the items in their longest forms. */
function sizeOf(items: readonly (readonly string[])[]): number {
  return items.reduce((sum, [longest = '']) => sum + longest.length + 2, 0);
}

function details(one: EnvironmentReview, isNamed: boolean): Section {
  const where = isNamed ? ` in ${titleOf(one)}` : '';
  return {
    title: '',
    items: plannedGroups(one.plan).map((group) => {
      const name = markdownText(`${group.namespace}/${group.group}`);
      return groupForms(group).map((form) => markdownDetails(`Plan of ${name}${where}`, form));
    }),
    separator: '\n\n',
    more: (count) => `${counted(count, 'more plan')} omitted for length; \`review -o table\` shows every plan.`,
  };
}
