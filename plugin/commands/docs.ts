// The verb docs: shows the embedded pages of docs/, the finding codes and the rules.
import { type RuleEntry, ruleCatalog } from '../../engine/rules/catalog.ts';
import { type CodeEntry, explainCode, findingCodes } from '../../policies/findings/codes.ts';
import { didYouMean } from '../../policies/text/did-you-mean.ts';
import type { Candidate } from '../candidates.ts';
import { type CommandContext, suggestNext } from '../context.ts';
import * as pages from '../docs-pages.ts';
import { type ExitCode, exitCodes, type Failure, notFoundFailure } from '../failure.ts';
import { type ResultDocument, writeDocument } from '../output/formats.ts';
import type { Paint } from '../output/terminal.ts';

export interface DocsOptions {
  readonly topic?: string;
  readonly output: 'text' | 'json';
}

/** A page in both formats. The text has a final newline. */
interface Page {
  readonly document: ResultDocument;
  readonly text: (paint: Paint) => string;
}

export async function run(context: CommandContext, { topic, output }: DocsOptions): Promise<ExitCode> {
  const { stdout } = context;
  const { document, text } = topic === undefined ? topicList() : pageOf(topic);
  if (output === 'json') await writeDocument(stdout, 'json', document);
  else stdout.write(text(stdout.paint));
  if (topic === undefined) suggestNext(context, 'docs command-line', 'docs RG2003');
  return exitCodes.done;
}

/** Returns topics, codes and rules for completion. */
export function topicCandidates(): readonly Candidate[] {
  const codes: readonly (readonly [string, CodeEntry])[] = Object.entries(findingCodes);
  return [
    ...Object.entries(topics).map(([value, text]) => ({ value, description: titleOf(text) })),
    ...codes.map(([value, { title }]) => ({ value, description: title })),
    ...ruleCatalog.map(({ id, title }) => ({ value: id, description: title })),
  ];
}

function topicList(): Page {
  const all = Object.entries(topics).map(([name, text]) => ({ name, title: titleOf(text) }));
  const width = Math.max(...all.map(({ name }) => name.length));
  const lines = [
    'Topics:',
    ...all.map(({ name, title }) => `  ${name.padEnd(width)}  ${title}`),
    '',
    `And ${Object.keys(findingCodes).length} finding codes, such as docs RG2003,`,
    `and ${ruleCatalog.length} rules of the engine, such as docs ${ruleCatalog[0]?.id ?? ''}.`,
  ];
  const rules = ruleCatalog.map(({ id }) => id);
  return {
    document: { kind: 'TopicList', topics: all, codes: Object.keys(findingCodes).sort(), rules },
    text: () => `${lines.join('\n')}\n`,
  };
}

function pageOf(topic: string): Page {
  const code = topic.toUpperCase();
  const entry = explainCode(code);
  if (entry !== undefined) return codePage(code, entry);
  const rule = ruleCatalog.find(({ id }) => id === topic);
  if (rule !== undefined) return rulePage(rule);
  const text = Object.hasOwn(topics, topic) ? topics[topic] : undefined;
  if (text === undefined) throw unknownTopic(topic);
  return {
    document: { kind: 'Topic', name: topic, title: titleOf(text), markdown: text },
    text: (paint) => text.replace(/^#+ .*$/gm, (heading) => paint('bold', heading)),
  };
}

function codePage(code: string, { title, severity, explanation, hint }: CodeEntry): Page {
  const fix = hint === undefined ? '' : `\nfix: ${hint}\n`;
  return {
    document: { kind: 'FindingCode', code, title, severity, explanation, hint },
    text: (paint) => `${paint('bold', `${code} ${title}`)}\nseverity: ${severity}\n\n${explanation}\n${fix}`,
  };
}

function rulePage({ id, title, outcomes, whenBlocked }: RuleEntry): Page {
  const blocked = whenBlocked === undefined ? '' : `\n${whenBlocked}\n`;
  return {
    document: { kind: 'Rule', id, title, outcomes, whenBlocked },
    text: (paint) => `${paint('bold', id)}\npasses when ${title}\nmay answer ${outcomes.join(', ')}\n${blocked}`,
  };
}

function unknownTopic(topic: string): Failure {
  const meant = didYouMean(topic, [...Object.keys(topics), ...Object.keys(findingCodes), ...ruleCatalog.map(({ id }) => id)]);
  return notFoundFailure(`the topic "${topic}" does not exist`, {
    todo: `${meant === undefined ? '' : `did you mean ${meant}? `}kubectl rollout-group docs lists all topics`,
  });
}

function titleOf(markdown: string): string {
  return /^# (.*)$/m.exec(markdown)?.[1] ?? '';
}

/** The texts of the pages. Comments, which browsers do not show, are for the tests of the pages. */
const topics: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(pages)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, text]) => [name, text.replace(/^ *<!--.*?-->\n\n?/gms, '')]),
);
