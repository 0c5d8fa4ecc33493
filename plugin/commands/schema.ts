// The verb schema: what fields there are, for people, editors and API servers.
import { didYouMean } from '../../policies/did-you-mean.ts';
import { apiVersion, type Kind, kinds } from '../../policies/schema/kinds.ts';
import type { Candidate } from '../candidates.ts';
import { type CommandContext, type OutputStream, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes } from '../exit-code.ts';
import { Failure, usageFailure } from '../failure.ts';
import { paragraph } from '../output/plan-table-layout.ts';
import { type Field, fieldsOf, type JsonSchema, jsonSchemaOf, kindNames, kindOf, schemaAt, typeText } from '../schema-path.ts';

export interface SchemaOptions {
  readonly path?: string;
  readonly output: 'table' | 'jsonschema' | 'crd';
}

export async function run(context: CommandContext, { path, output }: SchemaOptions): Promise<ExitCode> {
  const { stdout } = context;
  if (path === undefined) {
    if (output !== 'table') throw usageFailure(`-o ${output} needs a kind`, `kubectl rollout-group schema RolloutGroup -o ${output}`);
    writeKinds(stdout);
    suggestNext(context, 'schema RolloutGroup.spec');
    return exitCodes.done;
  }
  const [first = '', ...steps] = path.split('.').filter((step) => step !== '');
  const kind = kindOf(first) ?? missingKind(first);
  const schema = schemaAt(jsonSchemaOf(kind), steps) ?? missingField(kind, steps);
  if (output === 'jsonschema') stdout.write(`${JSON.stringify(schema, null, 2)}\n`);
  else if (output === 'crd') await writeCrd(stdout, kind);
  else writeFields(stdout, [kind, ...steps], schema);
  return exitCodes.done;
}

/** The kinds, for completion. */
export function kindCandidates(): readonly Candidate[] {
  return kindNames().map((value) => ({ value, description: kinds[value].summary }));
}

function writeKinds(stdout: OutputStream): void {
  const { columns: width, paint } = stdout;
  const nameWidth = Math.max(...kindNames().map(({ length }) => length)) + 2;
  const lines = kindNames().flatMap((kind) => paragraph(kind.padEnd(nameWidth), kinds[kind].summary, width));
  stdout.write(`${[paint('bold', `${'KIND'.padEnd(nameWidth)}SUMMARY`), ...lines].join('\n')}\n`);
}

/** As `kubectl explain` shows fields: name and type on a line of their own, so that long descriptions have the whole width. */
function writeFields(stdout: OutputStream, path: readonly string[], schema: JsonSchema): void {
  const { columns: width, paint } = stdout;
  const about = [paint('bold', `${path.join('.')} <${typeText(schema)}>`)];
  if (path.length === 1) about.push(`  apiVersion: ${apiVersion}`);
  if (hasOwnDefault(schema)) about.push(`  default: ${JSON.stringify(schema.default)}`);
  if (schema.description !== undefined) about.push(...paragraph('  ', schema.description, width));
  const fields = fieldsOf(schema).flatMap((field) => ['', ...fieldLines(field, stdout)]);
  stdout.write(`${[...about, ...fields].join('\n')}\n`);
}

function fieldLines({ name, schema, isRequired }: Field, { columns: width, paint }: OutputStream): readonly string[] {
  const standard = hasOwnDefault(schema) ? ` = ${JSON.stringify(schema.default)}` : '';
  const head = `${paint('bold', name)} <${typeText(schema)}>${isRequired ? ' required' : standard}`;
  return [head, ...(schema.description === undefined ? [] : paragraph('    ', schema.description, width))];
}

/** An empty object as default only says that the defaults of its fields hold. */
function hasOwnDefault({ default: standard }: JsonSchema): boolean {
  return standard !== undefined && JSON.stringify(standard) !== '{}';
}

async function writeCrd(stdout: OutputStream, kind: Kind): Promise<void> {
  throw usageFailure(`${kind} ${stdout.isTerminal}`);
}

function missingKind(name: string): never {
  throw notThere(`there is no kind ${name}`, didYouMean(name, kindNames()), 'schema');
}

function missingField(kind: Kind, steps: readonly string[]): never {
  const known = steps.findIndex((_, index) => schemaAt(jsonSchemaOf(kind), steps.slice(0, index + 1)) === undefined);
  const parent = steps.slice(0, known);
  const names = fieldsOf(schemaAt(jsonSchemaOf(kind), parent) ?? {}).map(({ name }) => name);
  const path = [kind, ...parent].join('.');
  throw notThere(`${path} has no field ${steps[known] ?? ''}`, didYouMean(steps[known] ?? '', names), `schema ${path}`);
}

function notThere(what: string, meant: string | undefined, command: string): Failure {
  const suggestion = meant === undefined ? '' : `did you mean ${meant}? `;
  return new Failure({ exitCode: exitCodes.notFound, what, todo: `${suggestion}kubectl rollout-group ${command}` });
}
