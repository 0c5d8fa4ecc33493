// The verb docs: shows the embedded pages of docs/, the finding codes and the rules.
import agent from '../../docs/agent.md';
import commandLine from '../../docs/command-line.md';
import concepts from '../../docs/concepts.md';
import conditions from '../../docs/conditions.md';
import deprecationPolicy from '../../docs/deprecation-policy.md';
import exitCodesPage from '../../docs/exit-codes.md';
import gates from '../../docs/gates.md';
import gettingStarted from '../../docs/getting-started.md';
import install from '../../docs/install.md';
import migrateOthers from '../../docs/migrate-from-other-operators.md';
import migrate from '../../docs/migrate-from-rollout-operator.md';
import notifications from '../../docs/notifications.md';
import output from '../../docs/output.md';
import people from '../../docs/people.md';
import plan from '../../docs/plan.md';
import policyTests from '../../docs/policy-tests.md';
import simulate from '../../docs/simulate.md';
import simulation from '../../docs/simulation.md';
import sources from '../../docs/sources.md';
import strategies from '../../docs/strategies.md';
import waves from '../../docs/waves.md';
import webhook from '../../docs/webhook.md';
import windows from '../../docs/windows.md';
import { type RuleEntry, ruleCatalog, rulesMarkdown } from '../../engine/rules/catalog.ts';
import { type CodeEntry, explainCode, findingCodes, findingsMarkdown } from '../../policies/findings/codes.ts';
import { didYouMean } from '../../policies/text/did-you-mean.ts';
import type { Candidate } from '../candidates.ts';
import { type CommandContext, type OutputStream, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes, Failure } from '../failure.ts';
import { writeDocument } from '../output/formats.ts';

export interface DocsOptions {
  readonly topic?: string;
  readonly output: 'text' | 'json';
}

export async function run(context: CommandContext, { topic, output }: DocsOptions): Promise<ExitCode> {
  const { stdout } = context;
  if (topic === undefined) {
    await writeTopics(stdout, output);
    suggestNext(context, 'docs command-line', 'docs RG2003');
    return exitCodes.done;
  }
  const code = topic.toUpperCase();
  const entry = explainCode(code);
  const rule = ruleCatalog.find(({ id }) => id === topic);
  if (entry !== undefined) await writeCode(stdout, output, code, entry);
  else if (rule !== undefined) await writeRule(stdout, output, rule);
  else await writeTopic(stdout, output, topic);
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

async function writeTopics(stdout: OutputStream, output: DocsOptions['output']): Promise<void> {
  const all = Object.entries(topics).map(([name, text]) => ({ name, title: titleOf(text) }));
  if (output === 'json')
    return writeDocument(stdout, 'json', {
      kind: 'TopicList',
      topics: all,
      codes: Object.keys(findingCodes).sort(),
      rules: ruleCatalog.map(({ id }) => id),
    });
  const width = Math.max(...all.map(({ name }) => name.length));
  const lines = all.map(({ name, title }) => `  ${name.padEnd(width)}  ${title}`);
  stdout.write(
    `${['Topics:', ...lines, '', `And ${Object.keys(findingCodes).length} finding codes, such as docs RG2003,`, `and ${ruleCatalog.length} rules of the engine, such as docs ${ruleCatalog[0]?.id ?? ''}.`].join('\n')}\n`,
  );
}

async function writeCode(stdout: OutputStream, output: DocsOptions['output'], code: string, entry: CodeEntry): Promise<void> {
  const { title, severity, explanation, hint } = entry;
  if (output === 'json') return writeDocument(stdout, 'json', { kind: 'FindingCode', code, title, severity, explanation, hint });
  const lines = [
    stdout.paint('bold', `${code} ${title}`),
    `severity: ${severity}`,
    '',
    explanation,
    ...(hint === undefined ? [] : ['', `fix: ${hint}`]),
  ];
  stdout.write(`${lines.join('\n')}\n`);
}

async function writeRule(
  stdout: OutputStream,
  output: DocsOptions['output'],
  { id, title, outcomes, whenBlocked }: RuleEntry,
): Promise<void> {
  if (output === 'json') return writeDocument(stdout, 'json', { kind: 'Rule', id, title, outcomes, whenBlocked });
  stdout.write(
    `${stdout.paint('bold', id)}\npasses when ${title}\nmay answer ${outcomes.join(', ')}\n${whenBlocked === undefined ? '' : `\n${whenBlocked}\n`}`,
  );
}

async function writeTopic(stdout: OutputStream, output: DocsOptions['output'], topic: string): Promise<void> {
  const text = Object.hasOwn(topics, topic) ? topics[topic] : undefined;
  if (text === undefined) throw unknownTopic(topic);
  if (output === 'json') return writeDocument(stdout, 'json', { kind: 'Topic', name: topic, title: titleOf(text), markdown: text });
  stdout.write(text.replace(/^#+ .*$/gm, (heading) => stdout.paint('bold', heading)));
}

function unknownTopic(topic: string): Failure {
  const meant = didYouMean(topic, [...Object.keys(topics), ...Object.keys(findingCodes), ...ruleCatalog.map(({ id }) => id)]);
  return new Failure({
    exitCode: exitCodes.notFound,
    what: `the topic "${topic}" does not exist`,
    todo: `${meant === undefined ? '' : `did you mean ${meant}? `}kubectl rollout-group docs lists all topics`,
  });
}

function titleOf(markdown: string): string {
  return /^# (.*)$/m.exec(markdown)?.[1] ?? '';
}

/** The pages by topic, as Markdown. */
export const topics: Readonly<Record<string, string>> = {
  agent,
  'command-line': commandLine,
  concepts,
  conditions,
  'deprecation-policy': deprecationPolicy,
  'exit-codes': exitCodesPage,
  findings: findingsMarkdown(),
  gates,
  'getting-started': gettingStarted,
  install,
  'migrate-from-other-operators': migrateOthers,
  'migrate-from-rollout-operator': migrate,
  notifications,
  output,
  people,
  plan,
  'policy-tests': policyTests,
  rules: rulesMarkdown(),
  simulate,
  simulation,
  sources,
  strategies,
  waves,
  webhook,
  windows,
};
