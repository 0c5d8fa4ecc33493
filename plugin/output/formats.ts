// Writes results for programs in one envelope, as JSON, YAML or one JSON object per line.
import { type CommandContext, type OutputStream, writeNotes } from '../context.ts';
import type { LiveGroup } from '../live/groups.ts';

/** The version of the output for programs. Added fields keep the version; other changes raise it. */
export const cliApiVersion = 'rollout-group.dev/cli/v1';

/** The kinds of results. Each has a schema in deploy/schemas. */
export type OutputKind =
  | 'Applied'
  | 'Denial'
  | 'Diagnosis'
  | 'Difference'
  | 'Event'
  | 'EventList'
  | 'Explanation'
  | 'Finding'
  | 'FindingCode'
  | 'Group'
  | 'GroupList'
  | 'GroupStatus'
  | 'LintResult'
  | 'Rule'
  | 'Run'
  | 'RunList'
  | 'SiblingDifference'
  | 'Simulation'
  | 'TestResult'
  | 'Topic'
  | 'TopicList'
  | 'Version'
  | 'Plan'
  | 'Review';

/** A result with its kind. Keys are printed in their order. */
export interface ResultDocument {
  readonly kind: OutputKind;
  readonly [key: string]: unknown;
}

/** Writes one result. Loads the writer of YAML only if needed. */
export async function writeDocument(stream: OutputStream, format: 'json' | 'yaml', document: ResultDocument): Promise<void> {
  const enveloped = { apiVersion: cliApiVersion, ...document };
  if (format === 'json') stream.write(`${JSON.stringify(enveloped, null, 2)}\n`);
  else stream.write((await import('./yaml.ts')).toYaml(enveloped));
}

export type ResultFormat = 'json' | 'yaml' | `jsonpath=${string}`;

export async function writeResult(context: CommandContext, format: ResultFormat, document: ResultDocument): Promise<void> {
  return isJsonPath(format) ? writeFields(context, format, document) : writeDocument(context.stdout, format, document);
}

/** Writes one line per object with the columns of `-o custom-columns`. Adds a note for each column that finds nothing. */
export async function writeColumns(context: CommandContext, format: CustomColumns, documents: readonly object[]): Promise<void> {
  const { customColumns, misplacedColumns } = await import('./json-path.ts');
  const spec = format.slice('custom-columns='.length);
  context.stdout.write(customColumns(spec, documents));
  writeNotes(context, misplacedColumns(spec, documents));
}

export type CustomColumns = `custom-columns=${string}`;

export function isColumns(output: string): output is CustomColumns {
  return output.startsWith('custom-columns=');
}

/** Writes the fields of one result. Adds a note for each path that finds nothing although its last field is elsewhere in the result. */
async function writeFields(context: CommandContext, format: `jsonpath=${string}`, document: ResultDocument): Promise<void> {
  const { jsonPathText, misplacedPaths } = await import('./json-path.ts');
  const enveloped = { apiVersion: cliApiVersion, ...document };
  const template = format.slice('jsonpath='.length);
  context.stdout.write(jsonPathText(template, enveloped));
  writeNotes(context, misplacedPaths(template, enveloped));
}

function isJsonPath(output: string): output is `jsonpath=${string}` {
  return output.startsWith('jsonpath=');
}

/** Writes one object per line, each with its envelope. */
export function writeLines(stream: OutputStream, documents: readonly ResultDocument[]): void {
  for (const document of documents) stream.write(`${JSON.stringify({ apiVersion: cliApiVersion, ...document })}\n`);
}

/** Returns the document of a group. Its keys are in print order. */
export function groupDocument({ decision, from, unread, unattended }: LiveGroup): Readonly<Record<string, unknown>> {
  const { namespace, group, ...rest } = decision;
  return {
    group: { namespace, name: group },
    decidedBy: from === 'here' ? 'this command' : (decision.leader ?? 'agent'),
    ...(unattended === undefined ? {} : { unattended }),
    ...(unread.length === 0 ? {} : { unread }),
    ...withInstants(rest),
  };
}

/** Appends `At` to the name of a time, except to `at` and names that end in `At` or `Since`. */
function instantKey(name: string): string {
  return name === 'at' || /(?:At|[Ss]ince)$/.test(name) ? name : `${name}At`;
}

/** Converts instants: `decidedMs: 0` becomes `decidedAt: 1970-01-01T00:00:00.000Z`. Converts the only duration, `maxAgeMs`, to seconds. */
export function withInstants(value: object): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(value).map(([key, member]): [string, unknown] => {
      if (typeof member === 'number' && key === 'maxAgeMs') return ['maxAgeSeconds', member / 1000];
      if (typeof member === 'number' && key.endsWith('Ms')) return [instantKey(key.slice(0, -2)), new Date(member).toISOString()];
      if (Array.isArray(member))
        return [key, member.map((item) => (typeof item === 'object' && item !== null ? withInstants(item) : item))];
      return [key, typeof member === 'object' && member !== null ? withInstants(member) : member];
    }),
  );
}
