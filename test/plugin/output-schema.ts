// Checks every document for programs that the plugin prints in a test against the published schema of its kind.
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { cliApiVersion } from '../../plugin/output/formats.ts';
import { isRecord } from '../../policies/values/is-record.ts';
import { outputSchemas } from '../../scripts/generated/output-schemas.ts';

const ajv = new Ajv2020({ allErrors: true, formats: { 'date-time': (value: string) => !Number.isNaN(Date.parse(value)) } });
const schemas = outputSchemas();
const compiled = new Map<string, ValidateFunction>();

/** Throws if the output has a document that does not follow its schema, or a document of an unknown kind. */
export function checkOutput(stdout: string): void {
  if (!stdout.startsWith('{') || !stdout.includes(`"${cliApiVersion}"`)) return;
  for (const document of documentsOf(stdout)) {
    if (!isRecord(document) || document['apiVersion'] !== cliApiVersion) continue;
    const kind = String(document['kind']);
    const schema = schemas[kind];
    if (schema === undefined) throw new Error(`no schema is published for the kind ${kind}`);
    const validate = compiled.get(kind) ?? ajv.compile(schema);
    compiled.set(kind, validate);
    if (!validate(document))
      throw new Error(`${kind} does not follow its schema: ${ajv.errorsText(validate.errors)}\n${stdout.slice(0, 2_000)}`);
  }
}

function documentsOf(stdout: string): readonly unknown[] {
  const whole = parsed(stdout);
  return whole === undefined ? stdout.split('\n').map(parsed) : [whole];
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
