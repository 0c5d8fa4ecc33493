// Renders a review as a comment on a pull request, within the size limit of GitHub: the summary first, then the effects, then the plans.
import { shorten } from '../../../policies/condition/variables.ts';
import { lowerFirst } from '../../../policies/wording.ts';
import type { EnvironmentReview, PolicyEffect, Review } from '../../../review/document.ts';
import { markdownCode, markdownDetails, markdownTable, markdownText } from '../markdown.ts';
import { commentBudget, fitSections, groupForms, type Section } from '../plan/markdown.ts';
import { plural } from '../text.ts';
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

/** Returns the comment. A bot finds it again by the marker in its first line, which has the environments and the digest of the review. */
export function renderReviewMarkdown(review: Review, digest: string, budget: number = commentBudget): string {
  const { environments } = review;
  const names = environments.map(({ name }) => name.replace(/[^\w.-]|-(?=-)/g, '')).join(',');
  const title = environments.length === 1 ? titleOf(environments[0]) : plural(environments.length, 'environment');
  const head = [
    `<!-- rollout-group:review env=${names} digest=sha256:${digest.replace(/\W/g, '')} -->`,
    `### Rollout review${title === '' ? '' : ` of ${title}`}: ${headline(environments)}`,
  ].join('\n');
  const sections = [
    ...(environments.length > 1 ? [summary(environments)] : []),
    ...environments.flatMap((one) => effectSections(one, environments.length > 1)),
    ...environments.map((one) => details(one, environments.length > 1)),
  ];
  return `${fitSections(head, sections, `<sub>${markdownText(revisionsText(review))}</sub>`, budget - 1)}\n`;
}

function titleOf(one: EnvironmentReview | undefined): string {
  return one === undefined || one.name === 'default'
    ? ''
    : markdownText(`${one.name}${one.cluster === undefined ? '' : ` (${one.cluster})`}`);
}

function summary(environments: readonly EnvironmentReview[]): Section {
  return {
    title: markdownTable(summaryTitles, []),
    items: environments.map((one) => [
      markdownTable([], [summaryCells(one).map(markdownText)])
        .split('\n')
        .at(-1) ?? '',
    ]),
    separator: '\n',
    join: '\n',
    more: (count) => `${plural(count, 'more environment')}.`,
  };
}

const longestText = 600;

function effectSections(one: EnvironmentReview, isNamed: boolean): readonly Section[] {
  const title = (text: string): string => `**${isNamed ? `${titleOf(one)}: ${lowerFirst(text)}` : text}**`;
  const { effects } = one.policies;
  const planned = plannedGroups(one.plan).map((group) => `${group.namespace}/${group.group}: ${groupText(group)}`);
  const failures = (one.tests?.head.failures ?? []).map(({ file, case: name, problems }) => `${file}: ${name}: ${problems.join('; ')}`);
  return [
    effectList(title('Loosened'), effects, 'loosened'),
    effectList(title('Tightened'), effects, 'tightened'),
    textList(title('Rollout'), 'group', planned),
    textList(title('Failed tests'), 'failed test', failures),
    textList(title('Tests'), 'test', one.tests === undefined ? [] : [testsText(one)]),
    effectList(title('Other changes of policies'), effects, 'changed'),
  ];
}

function effectList(title: string, effects: readonly PolicyEffect[], direction: PolicyEffect['direction']): Section {
  const items = effects.filter((effect) => effect.direction === direction).map(effectForms);
  return { title, items, separator: '\n', more: (count) => `${plural(count, 'more effect')}.` };
}

/** Returns an effect with all its decisions, and with the first one. */
function effectForms(effect: PolicyEffect): readonly string[] {
  const place = placeText(effect);
  const line = `- ${markdownText(shorten(effectText(effect), longestText))}${place === '' ? '' : ` (${markdownCode(place)})`}`;
  const others = effect.decisions.slice(1).map(({ text }) => `  - ${markdownText(shorten(text, longestText))}`);
  return [[line, ...others].join('\n'), line];
}

function textList(title: string, noun: string, texts: readonly string[]): Section {
  return {
    title,
    items: texts.map((text) => [`- ${markdownText(shorten(text, longestText))}`]),
    separator: '\n',
    more: (count) => `${plural(count, `more ${noun}`)}.`,
  };
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
    more: (count) => `${plural(count, 'more plan')} omitted for length; \`review -o table\` shows every plan.`,
  };
}
