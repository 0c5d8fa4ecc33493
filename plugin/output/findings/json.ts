// Converts findings to documents for programs.
import { countFindings } from '../../../policies/findings/finding.ts';
import type { OutputStream } from '../../context.ts';
import { writeDocument, writeLines } from '../formats.ts';
import type { FindingsReport } from './findings.ts';

/** Returns one document of kind `LintResult`. */
export async function writeFindingsJson(stream: OutputStream, { findings, files, exitCode }: FindingsReport): Promise<void> {
  const { error: errors, warning: warnings, notice: notices } = countFindings(findings);
  await writeDocument(stream, 'json', {
    kind: 'LintResult',
    exitCode,
    summary: { files: files.length, findings: findings.length, errors, warnings, notices },
    findings,
  });
}

/** Returns one document of kind `Finding` per finding. */
export function writeFindingsLines(stream: OutputStream, { findings }: FindingsReport): void {
  writeLines(
    stream,
    findings.map((finding) => ({ kind: 'Finding', ...finding })),
  );
}
