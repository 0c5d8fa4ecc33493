// The verb schema: shows the fields of a kind, its JSON Schema or its CRD.
import { editorSchema } from '../../policies/schema/json-schema.ts';
import { apiVersion, type Kind, kinds } from '../../policies/schema/kinds.ts';
import { choiceText, type FieldDoc, type SchemaDocs, schemaDocs } from '../../policies/schema/schema-docs.ts';
import type { Candidate } from '../candidates.ts';
import { type CommandContext, type OutputStream, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes, type Failure, notFoundFailure, usageFailure } from '../failure.ts';
import { paragraph } from '../output/text.ts';

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
  const docs = schemaDocs(path);
  if ('unknown' in docs) throw notThere(docs.unknown, docs.suggestion);
  if (output === 'table') writeFields(stdout, docs);
  else if (docs.field.path !== '')
    throw usageFailure(`-o ${output} shows a whole kind`, `kubectl rollout-group schema ${docs.kind} -o ${output}`);
  else if (output === 'jsonschema') stdout.write(`${JSON.stringify(editorSchema(docs.kind), null, 2)}\n`);
  else await writeCrd(stdout, docs.kind);
  return exitCodes.done;
}

export function kindCandidates(): readonly Candidate[] {
  return kindNames().map((value) => ({ value, description: kinds[value].summary }));
}

function kindNames(): readonly Kind[] {
  return Object.keys(kinds) as Kind[];
}

function writeKinds({ write, columns: width, paint }: OutputStream): void {
  const nameWidth = Math.max(...kindNames().map(({ length }) => length)) + 2;
  const lines = kindNames().flatMap((kind) => paragraph(kind.padEnd(nameWidth), kinds[kind].summary, width));
  write(`${[paint('bold', `${'KIND'.padEnd(nameWidth)}SUMMARY`), ...lines].join('\n')}\n`);
}

/** Writes fields like `kubectl explain`: name and type on one line, then the description in full width. */
function writeFields({ write, columns: width, paint }: OutputStream, { kind, field, fields }: SchemaDocs): void {
  const path = field.path === '' ? kind : `${kind}.${field.path}`;
  const about = [`${paint('bold', path)} <${field.type}>${standardText(field)}`];
  if (field.path === '') about.push(`    apiVersion: ${apiVersion}`);
  if (field.description !== undefined) about.push(...paragraph('    ', field.description, width));
  for (const choice of field.choices) {
    const text = choiceText(choice);
    about.push(...paragraph('    ', `${text.charAt(0).toUpperCase()}${text.slice(1)}.`, width));
  }
  const below = fields.flatMap((one) => [
    '',
    `${paint('bold', one.name)} <${one.type}>${standardText(one)}`,
    ...(one.description === undefined ? [] : paragraph('    ', one.description, width)),
  ]);
  write(`${[...about, ...below].join('\n')}\n`);
}

function standardText({ isRequired, path, defaultText }: FieldDoc): string {
  if (isRequired) return path === '' ? '' : ' required';
  return defaultText === undefined ? '' : ` = ${defaultText}`;
}

async function writeCrd(stdout: OutputStream, kind: Kind): Promise<void> {
  const [{ customResourceDefinition }, { toYaml }] = await Promise.all([
    import('../../policies/schema/json-schema.ts'),
    import('../output/yaml.ts'),
  ]);
  const definition = customResourceDefinition(kind);
  if (definition !== undefined) return stdout.write(toYaml(definition));
  throw notFoundFailure(`${kind} exists only in files and has no CRD`, { todo: `kubectl rollout-group schema ${kind} -o jsonschema` });
}

function notThere(name: string, suggestion: string | undefined): Failure {
  return notFoundFailure(`the kind or field ${name} does not exist`, {
    todo: `${suggestion === undefined ? '' : `did you mean ${suggestion}? `}kubectl rollout-group schema lists the kinds`,
  });
}
