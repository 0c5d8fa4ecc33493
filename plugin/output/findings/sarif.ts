// Writes findings as SARIF 2.1.0 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/), the format of code scanning.
import { createHash } from 'node:crypto';
import type { Source } from '../../../policies/definition.ts';
import { findingCodes } from '../../../policies/findings/codes.ts';
import type { Finding, Severity } from '../../../policies/findings/finding.ts';
import { version } from '../../version.ts';
import { sourceUri } from '../source-uri.ts';
import type { FindingsReport } from './findings.ts';

const levels: Readonly<Record<Severity, string>> = { error: 'error', warning: 'warning', notice: 'note' };

/** Maximum number of results that GitHub accepts in one run. GitHub rejects the whole file if there are more. */
const maxResults = 25_000;

/** Returns the SARIF log. */
export function sarifLog({ findings }: FindingsReport): unknown {
  const fingerprint = fingerprints();
  const codes = [...new Set(findings.map(({ code }) => code))].sort();
  return {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: { driver: { name: 'kubectl-rollout-group', semanticVersion: version, rules: codes.map(rule) } },
        // Columns of findings count UTF-16 units; the default of SARIF differs.
        columnKind: 'utf16CodeUnits',
        invocations: [{ executionSuccessful: true }],
        results: findings.slice(0, maxResults).map((finding) => result(finding, codes.indexOf(finding.code), fingerprint(finding))),
      },
    ],
  };
}

function rule(code: Finding['code']): unknown {
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

function result(finding: Finding, ruleIndex: number, fingerprint: string): unknown {
  const related = (finding.related ?? []).filter((source) => source.file !== undefined);
  return {
    ruleId: finding.code,
    ruleIndex,
    level: levels[finding.severity],
    message: { text: finding.hint === undefined ? `${finding.message}.` : `${finding.message}. Fix: ${finding.hint}.` },
    locations: [location(finding)],
    ...(related.length === 0 ? {} : { relatedLocations: related.map((source, id) => ({ id, ...relatedLocation(source) })) }),
    partialFingerprints: { primaryLocationLineHash: fingerprint },
  };
}

function location(finding: Finding): unknown {
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

/**
 * Returns a fingerprint that is independent of line numbers, so that an alert is not closed and opened again. It covers the code, the object,
 * the field and the value. Equal fingerprints are numbered, in the form that GitHub uses.
 */
function fingerprints(): (finding: Finding) => string {
  const seen = new Map<string, number>();
  return ({ code, object = '', pointer, excerpt, column, endColumn = column }) => {
    const value = (excerpt?.at(-1)?.text ?? '').slice(column - 1, endColumn - 1).trim();
    const hash = createHash('sha256')
      .update(JSON.stringify([code, object, pointer, value]))
      .digest('hex')
      .slice(0, 16);
    const count = (seen.get(hash) ?? 0) + 1;
    seen.set(hash, count);
    return `${hash}:${count}`;
  };
}
