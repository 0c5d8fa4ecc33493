// Writes the findings of lint as text, JSON, SARIF, JUnit, GitHub commands or Markdown. Prints the findings of other verbs as text.
import { hash } from 'node:crypto';
import { isAbsolute, normalize } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Source } from '../../policies/definition.ts';
import { findingCodes } from '../../policies/findings/codes.ts';
import { countFindings, type Finding, placeText, renderFinding, type Severity } from '../../policies/findings/finding.ts';
import { counted } from '../../policies/wording.ts';
import type { CommandContext, OutputStream } from '../context.ts';
import { type ExitCode, exitCodes } from '../failure.ts';
import { version } from '../version.ts';
import { writeDocument, writeLines } from './formats.ts';
import { type JunitCase, junitXml } from './junit.ts';
import { boundedTable, markdownCode, markdownLine } from './markdown.ts';
import { sourceText } from './plan/plan-text.ts';
import type { Style } from './terminal.ts';

export type FindingsFormat = 'text' | 'json' | 'jsonl' | 'sarif' | 'junit' | 'github' | 'markdown';

interface FindingsReport {
  readonly findings: readonly Finding[];
  readonly files: readonly string[];
  /** The least severity that counts as a failure. */
  readonly failsFrom: Severity;
  readonly exitCode: ExitCode;
}

type TextFormat = Exclude<FindingsFormat, 'json' | 'jsonl'>;

const texts: Readonly<Record<TextFormat, (report: FindingsReport, stream: Pick<OutputStream, 'paint'>) => string>> = {
  text: (report, stream) => `${[...findingBlocks(report.findings, stream), summarySentence(report)].join('\n')}\n`,
  sarif: (report) => `${JSON.stringify(sarifLog(report), null, 2)}\n`,
  junit: findingsJunit,
  github: (report) => `${[...report.findings.map(githubCommand), summarySentence(report)].join('\n')}\n`,
  markdown: findingsMarkdown,
};

export async function writeFindings(stream: OutputStream, format: FindingsFormat, report: FindingsReport): Promise<void> {
  if (format === 'json') return writeFindingsJson(stream, report);
  if (format === 'jsonl')
    return writeLines(
      stream,
      report.findings.map((finding) => ({ kind: 'Finding', ...finding })),
    );
  stream.write(texts[format](report, stream));
}

function summarySentence({ findings, files }: FindingsReport): string {
  const { error, warning, notice } = countFindings(findings);
  const where = `in ${counted(files.length, 'file')}`;
  if (findings.length === 0) return `no findings ${where}`;
  return `${counted(findings.length, 'finding')} (${counted(error, 'error')}, ${counted(warning, 'warning')}, ${counted(notice, 'notice')}) ${where}`;
}

/** The styles of the parts of a finding. The text is complete without colour. */
const styles: Readonly<Record<'place' | 'error' | 'warning' | 'notice' | 'code' | 'caret' | 'hint', Style>> = {
  place: 'bold',
  error: 'red',
  warning: 'yellow',
  notice: 'cyan',
  code: 'dim',
  caret: 'red',
  hint: 'green',
};

/** Returns each finding as one block of lines without a final newline. */
export function findingBlocks(findings: readonly Finding[], { paint }: Pick<OutputStream, 'paint'>): readonly string[] {
  return findings.map((finding) => renderFinding(finding, (part, text) => paint(styles[part], text)));
}

async function writeFindingsJson(stream: OutputStream, { findings, files, exitCode }: FindingsReport): Promise<void> {
  const { error: errors, warning: warnings, notice: notices } = countFindings(findings);
  await writeDocument(stream, 'json', {
    kind: 'LintResult',
    exitCode,
    summary: { files: files.length, findings: findings.length, errors, warnings, notices },
    findings,
  });
}

function githubCommand(finding: Finding): string {
  const { severity, code, message, hint, file, line, column, endColumn, object, related = [] } = finding;
  const place =
    file === ''
      ? []
      : [
          `file=${escapedProperty(repositoryPath(file))}`,
          `line=${line}`,
          `col=${column}`,
          ...(endColumn === undefined ? [] : [`endColumn=${endColumn}`]),
        ];
  const see = related.flatMap((source) => sourceText(source) ?? []).map((one) => `\nsee ${one}`);
  const text = `${file === '' && object !== undefined ? `${object}: ` : ''}${message}${see.join('')}${hint === undefined ? '' : `\nfix: ${hint}`}`;
  return `::${severity} ${[...place, `title=${escapedProperty(code)}`].join(',')}::${escapedData(text)}`;
}

/** Escapes text for the runner, so that a message cannot start another command. */
function escapedData(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

function escapedProperty(text: string): string {
  return escapedData(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
}

function findingsJunit({ findings, files, failsFrom }: FindingsReport): string {
  const names = [...new Set([...files, ...findings.map(({ file }) => file)])];
  return junitXml(
    names.map((name) => {
      const own = findings.filter(({ file }) => file === name);
      const shown = name === '' ? 'cluster' : name;
      return {
        name: shown,
        cases: own.length === 0 ? [{ name: 'lint', className: shown }] : own.map((finding) => toCase(finding, failsFrom)),
      };
    }),
  );
}

function toCase(finding: Finding, failsFrom: Severity): JunitCase {
  const head = { name: `${finding.code} ${placeText(finding)}`, className: finding.file === '' ? 'cluster' : finding.file };
  const text = renderFinding(finding);
  if (order.indexOf(finding.severity) > order.indexOf(failsFrom)) return { ...head, output: text };
  return { ...head, failure: { type: finding.code, message: finding.message, text } };
}

const order: readonly Severity[] = ['error', 'warning', 'notice'];

function findingsMarkdown(report: FindingsReport): string {
  const sorted = order.flatMap((severity) => report.findings.filter((finding) => finding.severity === severity));
  const lines = [`### Lint: ${summarySentence(report)}`, ...boundedTable(['', 'Place', 'Finding'], sorted.map(markdownRow))];
  return `${lines.join('\n')}\n`;
}

function markdownRow(finding: Finding): readonly string[] {
  const fix = finding.hint === undefined ? '' : `<br>fix: ${markdownLine(finding.hint)}`;
  const see = (finding.related ?? []).flatMap((source) => sourceText(source) ?? []).map((text) => `<br>see ${markdownCode(text)}`);
  const text = `${finding.code} ${markdownLine(finding.message)}${see.join('')}${fix}`;
  return [finding.severity, markdownCode(placeText(finding)), text];
}

const levels: Readonly<Record<Severity, string>> = { error: 'error', warning: 'warning', notice: 'note' };

/** The maximum number of results that GitHub accepts in a SARIF file. GitHub rejects a file with more results. */
const maxResults = 25_000;

export function sarifLog({ findings }: FindingsReport): unknown {
  const fingerprint = fingerprints();
  const codes = [...new Set(findings.map(({ code }) => code))].sort();
  return {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: { driver: { name: 'kubectl-rollout-group', semanticVersion: version, rules: codes.map(sarifRule) } },
        // Columns of findings count UTF-16 units; the default of SARIF differs.
        columnKind: 'utf16CodeUnits',
        invocations: [{ executionSuccessful: true }],
        results: findings.slice(0, maxResults).map((finding) => sarifResult(finding, codes.indexOf(finding.code), fingerprint(finding))),
      },
    ],
  };
}

function sarifRule(code: Finding['code']): unknown {
  const entry: { readonly title: string; readonly explanation: string; readonly severity: Severity; readonly hint?: string } =
    findingCodes[code];
  const help = entry.hint === undefined ? entry.explanation : `${entry.explanation}\n\nFix: ${entry.hint}.`;
  return {
    id: code,
    shortDescription: { text: `${entry.title}.` },
    fullDescription: { text: entry.explanation },
    help: { text: help, markdown: `${help}\n\nOffline: \`kubectl rollout-group docs ${code}\`` },
    defaultConfiguration: { level: levels[entry.severity] },
  };
}

function sarifResult(finding: Finding, ruleIndex: number, fingerprint: string): unknown {
  const related = (finding.related ?? []).filter((source) => source.file !== undefined);
  return {
    ruleId: finding.code,
    ruleIndex,
    level: levels[finding.severity],
    message: { text: finding.hint === undefined ? `${finding.message}.` : `${finding.message}. Fix: ${finding.hint}.` },
    locations: [sarifLocation(finding)],
    ...(related.length === 0 ? {} : { relatedLocations: related.map((source, id) => ({ id, ...relatedLocation(source) })) }),
    partialFingerprints: { primaryLocationLineHash: fingerprint },
  };
}

function sarifLocation(finding: Finding): unknown {
  const logical = { fullyQualifiedName: `${finding.object ?? ''}${finding.pointer}` };
  if (finding.file === '') return { logicalLocations: [logical] };
  const { line, column, endColumn = column + 1 } = finding;
  return {
    physicalLocation: {
      artifactLocation: { uri: sourceUri(finding.file) },
      region: { startLine: line, startColumn: column, endLine: line, endColumn },
    },
    logicalLocations: [logical],
  };
}

function relatedLocation({ file = '', line = 1, column = 1 }: Source): object {
  return { physicalLocation: { artifactLocation: { uri: sourceUri(file) }, region: { startLine: line, startColumn: column } } };
}

/** Returns a function that computes fingerprints from code, object, field and value. Without line numbers, alerts survive other edits. */
function fingerprints(): (finding: Finding) => string {
  const seen = new Map<string, number>();
  return ({ code, object = '', pointer, excerpt, column, endColumn = column }) => {
    const value = (excerpt?.at(-1)?.text ?? '').slice(column - 1, endColumn - 1).trim();
    const digest = hash('sha256', JSON.stringify([code, object, pointer, value])).slice(0, 16);
    const count = (seen.get(digest) ?? 0) + 1;
    seen.set(digest, count);
    return `${digest}:${count}`;
  };
}

/** Returns a relative reference for files of the work tree and of revisions, or a `file:` URI for absolute paths. */
export function sourceUri(name: string): string {
  const path = repositoryPath(name);
  return isAbsolute(path) ? pathToFileURL(path).href : path.split('/').map(encodeURIComponent).join('/');
}

/** Returns the path without `git:REV:` and leading `./`, or `stdin` for standard input. */
function repositoryPath(name: string): string {
  if (name === '-') return 'stdin';
  return normalize(name.replace(/^git:[^:]*:/, '')).replaceAll('\\', '/');
}

/** Prints the findings and the number of errors on standard error, and returns the exit code. */
export function writeErrors({ stderr }: Pick<CommandContext, 'stderr'>, findings: readonly Finding[]): ExitCode {
  for (const block of findingBlocks(findings, stderr)) stderr.write(`${block}\n`);
  stderr.write(`${counted(countFindings(findings).error, 'error')} in the files; nothing was planned\n`);
  return exitCodes.findings;
}
