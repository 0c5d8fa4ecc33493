// Writes the result of lint in every format.
import { countFindings, type Finding } from '../../../policies/findings/finding.ts';
import type { OutputStream } from '../../context.ts';
import type { ExitCode } from '../../failure.ts';
import { plural } from '../plural.ts';

export type FindingsFormat = 'text' | 'json' | 'jsonl' | 'sarif' | 'junit' | 'github' | 'markdown';

export interface FindingsReport {
  /** Findings in display order. */
  readonly findings: readonly Finding[];
  /** All checked files, with or without findings. */
  readonly files: readonly string[];
  /** Notices count as failures. */
  readonly isStrict: boolean;
  readonly exitCode: ExitCode;
}

/** Writes the report. Loads only the requested format. */
export async function writeFindings(stream: OutputStream, format: FindingsFormat, report: FindingsReport): Promise<void> {
  switch (format) {
    case 'text':
      return stream.write((await import('./text.ts')).findingsText(report, stream));
    case 'json':
      return (await import('./json.ts')).writeFindingsJson(stream, report);
    case 'jsonl':
      return (await import('./json.ts')).writeFindingsLines(stream, report);
    case 'sarif':
      return stream.write(`${JSON.stringify((await import('./sarif.ts')).sarifLog(report), null, 2)}\n`);
    case 'junit':
      return stream.write((await import('./junit.ts')).findingsJunit(report));
    case 'github':
      return stream.write((await import('./github.ts')).findingsGithub(report));
    case 'markdown':
      return stream.write((await import('./markdown.ts')).findingsMarkdown(report));
    default:
      return format satisfies never;
  }
}

/** Returns `4 findings (2 errors, 1 warning, 1 notice) in 9 files`. */
export function summarySentence({ findings, files }: FindingsReport): string {
  const { error, warning, notice } = countFindings(findings);
  const where = `in ${plural(files.length, 'file')}`;
  if (findings.length === 0) return `no findings ${where}`;
  return `${plural(findings.length, 'finding')} (${plural(error, 'error')}, ${plural(warning, 'warning')}, ${plural(notice, 'notice')}) ${where}`;
}
