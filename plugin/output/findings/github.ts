// Writes findings as workflow commands of GitHub Actions, which show them next to the changed lines.
import type { Finding } from '../../../policies/findings/finding.ts';
import { sourceText } from '../plan/plan-text.ts';
import { repositoryPath } from '../source-uri.ts';
import { type FindingsReport, summarySentence } from './findings.ts';

/** Returns one command per finding, then the summary as a plain log line. */
export function findingsGithub(report: FindingsReport): string {
  return `${[...report.findings.map(command), summarySentence(report)].join('\n')}\n`;
}

function command(finding: Finding): string {
  const { severity, code, message, hint, file, line, column, endColumn, object, related = [] } = finding;
  const place =
    file === ''
      ? []
      : [
          `file=${property(repositoryPath(file))}`,
          `line=${line}`,
          `col=${column}`,
          ...(endColumn === undefined ? [] : [`endColumn=${endColumn}`]),
        ];
  const see = related.flatMap((source) => sourceText(source) ?? []).map((one) => `\nsee ${one}`);
  const text = `${file === '' && object !== undefined ? `${object}: ` : ''}${message}${see.join('')}${hint === undefined ? '' : `\nfix: ${hint}`}`;
  return `::${severity} ${[...place, `title=${property(code)}`].join(',')}::${data(text)}`;
}

/** Escapes text for the runner, so that a message cannot start another command. */
function data(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

function property(text: string): string {
  return data(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
}
