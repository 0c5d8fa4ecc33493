// Writes findings as JUnit XML: one suite per file, one case per finding, and one passed case for a file without findings.
import { type Finding, placeText, renderFinding } from '../../../policies/findings/finding.ts';
import { type JunitCase, junitXml } from '../junit.ts';
import type { FindingsReport } from './findings.ts';

export function findingsJunit({ findings, files, isStrict }: FindingsReport): string {
  const names = [...new Set([...files, ...findings.map(({ file }) => file)])];
  return junitXml(
    names.map((name) => {
      const own = findings.filter(({ file }) => file === name);
      const shown = name === '' ? 'cluster' : name;
      return {
        name: shown,
        cases: own.length === 0 ? [{ name: 'lint', className: shown }] : own.map((finding) => toCase(finding, isStrict)),
      };
    }),
  );
}

function toCase(finding: Finding, isStrict: boolean): JunitCase {
  const head = { name: `${finding.code} ${placeText(finding)}`, className: finding.file === '' ? 'cluster' : finding.file };
  const text = renderFinding(finding);
  if (finding.severity === 'notice' && !isStrict) return { ...head, output: text };
  return { ...head, failure: { type: finding.code, message: finding.message, text } };
}
