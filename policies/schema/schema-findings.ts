// Validates a value against a schema and reports findings at the place of each value.
import * as z from 'zod';
import { type Finding, finding } from '../findings/finding.ts';
import { instantMs } from '../instant.ts';
import { maskLiteral, withoutCredentialsOf } from '../text/credentials.ts';
import { isRecord } from '../values/is-record.ts';
import { keptByObject } from '../values/map.ts';
import { listed, suggestion, withArticle } from '../wording.ts';
import type { Path, Places } from '../yaml/document.ts';
import { fieldNames, fieldText, schemaAt, unwrapped, valueAt, walkWithSchema } from './schema-walk.ts';

type Issue = z.core.$ZodIssue;

interface Checked {
  readonly schema: z.ZodType;
  readonly value: unknown;
  readonly places: Places;
}

/** The hint for a malformed value, by scalar type. */
const forms: Readonly<Record<string, string>> = {
  duration: 'write a duration such as 30s, 12h, 1h30m or 7d',
  'count or percent': 'write a whole number, or a percentage from 1% to 100%',
  'object name': 'use lower-case letters, digits, dashes and dots, with a letter or digit at both ends',
  'short name': 'use lower-case letters, digits and dashes, with a letter or digit at both ends',
  instant: 'write an instant with an offset such as 2026-12-18T18:00:00+01:00',
  'address of a server':
    'write http:// or https://, a host, and no user, password, query or fragment; credentials belong in a Secret that the source names',
};

/**
 * Returns the problems of a value: issues of the schema, exclusive fields (`x-rollout-group-one-of`), and dates that do not exist. Without an
 * issue of the schema, also returns the value with every default.
 */
export function checkValue(
  schema: z.ZodType,
  value: unknown,
  places: Places,
): { readonly findings: readonly Finding[]; readonly parsed?: unknown } {
  const checked = { schema, value, places };
  const result = schema.safeParse(value);
  const findings = result.success ? [] : result.error.issues.flatMap((issue) => issueFindings(checked, issue));
  walkWithSchema(unwrapped(schema), value, (inner, one, path) => {
    findings.push(...oneOfFindings(checked, inner, one, path), ...instantFindings(checked, inner, one, path));
  });
  return result.success ? { findings, parsed: result.data } : { findings };
}

/** Returns only the problems of a value. */
export function schemaFindings(schema: z.ZodType, value: unknown, places: Places): readonly Finding[] {
  return checkValue(schema, value, places).findings;
}

/** Returns the problems of a computed value, which has no place in a file, as one text. Empty without a problem. */
export function schemaProblems(schema: z.ZodType, value: unknown): string {
  const nowhere = { file: '', line: 0, column: 0, pointer: '' };
  return schemaFindings(schema, value, { find: () => nowhere, place: () => nowhere })
    .map(({ message }) => message)
    .join('; ');
}

function issueFindings(checked: Checked, issue: Issue): readonly Finding[] {
  const path = issue.path.map((key) => (typeof key === 'symbol' ? String(key) : key));
  const value = valueAt(checked.value, path);
  const field = fieldText(path) || 'the document';
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => unknownField(checked, path, key));
  const place = checked.places.place(path);
  if (value === undefined) return [finding('RG2004', place, `${field} is missing`, { hint: missingHint(checked, path) })];
  switch (issue.code) {
    case 'invalid_type':
      return [typeFinding(checked, path, value, issue.expected)];
    case 'invalid_value': {
      const words = issue.values.map(String);
      const hint = suggestion(String(value), words);
      return [
        finding(typeof value === 'string' ? 'RG2006' : 'RG2005', place, `${field} is ${shown(path, value)}; it takes ${listed(words)}`, {
          hint,
        }),
      ];
    }
    case 'too_small':
      return [finding('RG2008', place, `${field} ${sizeText(value)}; at least ${issue.minimum} is needed`)];
    case 'too_big':
      return [finding('RG2008', place, `${field} ${sizeText(value)}; at most ${issue.maximum} is allowed`)];
    case 'invalid_union':
      return [unionFinding(checked, path, value)];
    case 'invalid_key':
      return [
        finding(
          'RG2007',
          checked.places.place(path, 'key'),
          `the key ${path.at(-1)} of ${fieldText(path.slice(0, -1))} has the wrong form`,
        ),
      ];
    default:
      return [formFinding(checked, path, value)];
  }
}

function typeFinding(checked: Checked, path: Path, value: unknown, expected: string): Finding {
  const title = schemaAt(checked.schema, path)?.meta()?.title;
  const form = title === undefined ? undefined : forms[title];
  const wanted = title === undefined || form === undefined ? typeText(expected) : withArticle(title);
  return finding('RG2005', checked.places.place(path), `${fieldText(path)} is ${shown(path, value)}; it takes ${wanted}`, {
    hint: form ?? typeHint(expected, value),
  });
}

function unknownField(checked: Checked, path: Path, key: string): Finding {
  const names = fieldNames(schemaAt(checked.schema, path));
  const owner = path.length > 0 ? fieldText(path) : 'the document';
  const hint = suggestion(key, names) ?? `${owner} takes ${listed(names, 'and')}`;
  return finding('RG2003', checked.places.place([...path, key], 'key'), `${owner} has no field ${key}`, { hint });
}

/** Returns one finding for a value that matches no alternative of a union, because the intended alternative is unknown. */
function unionFinding(checked: Checked, path: Path, value: unknown): Finding {
  const code = typeof value === 'string' ? 'RG2007' : typeof value === 'number' ? 'RG2008' : 'RG2005';
  const alternatives = alternativesOf(schemaAt(checked.schema, path));
  return finding(code, checked.places.place(path), `${fieldText(path)} is ${shown(path, value)}; it takes ${listed(alternatives)}`, {
    hint: typeof value === 'string' ? suggestion(value, alternatives) : undefined,
  });
}

function alternativesOf(schema: z.ZodType | undefined): readonly string[] {
  if (schema instanceof z.ZodUnion) return schema.options.flatMap((option) => alternativesOf(unwrapped(option)));
  if (schema instanceof z.ZodLiteral) return [...schema.values].map(String);
  if (schema instanceof z.ZodNumber) return [typeText(schema.isInt ? 'int' : 'number')];
  if (schema instanceof z.ZodString) return ['a percentage from 1% to 100%'];
  return [typeText(schema?.type ?? 'value')];
}

function formFinding(checked: Checked, path: Path, value: unknown): Finding {
  const schema = schemaAt(checked.schema, path);
  if (schema instanceof z.ZodUnion) return unionFinding(checked, path, value);
  const title = schema?.meta()?.title;
  const message = `${fieldText(path)} is ${shown(path, value)}, which is not ${title === undefined ? 'of the form that it needs' : withArticle(title)}`;
  return finding('RG2007', checked.places.place(path), message, { hint: title === undefined ? undefined : forms[title] });
}

/** Each call of `meta` makes a copy, and each value in a document asks for the one of its schema. */
const metaOf = keptByObject((schema: z.ZodType) => schema.meta());

/** Reports exclusive fields that are missing or not alone. `replicas` may have no field, which means `leader: true`. */
function oneOfFindings(checked: Checked, schema: z.ZodType, value: unknown, path: Path): readonly Finding[] {
  const keys = metaOf(schema)?.['x-rollout-group-one-of'];
  if (!Array.isArray(keys) || !isRecord(value)) return [];
  const names = keys.map(String);
  const present = names.filter((name) => value[name] !== undefined);
  if (present.length === 1 || (present.length === 0 && names.includes('leader'))) return [];
  const field = fieldText(path);
  if (present.length === 0) {
    return [finding('RG2009', checked.places.place(path, 'key'), `${field} lacks ${listed(names)}`, { hint: 'write exactly one of them' })];
  }
  const last = present.at(-1) ?? '';
  return [
    finding('RG2009', checked.places.place([...path, last], 'key'), `${field} has ${listed(present, 'and')}, which exclude each other`),
  ];
}

function instantFindings(checked: Checked, schema: z.ZodType, value: unknown, path: Path): readonly Finding[] {
  if (metaOf(schema)?.title !== 'instant' || typeof value !== 'string' || !schema.safeParse(value).success) return [];
  return instantMs(value) !== undefined
    ? []
    : [finding('RG2010', checked.places.place(path), `${fieldText(path)} is ${value}, an instant that does not exist`)];
}

function missingHint(checked: Checked, path: Path): string | undefined {
  const schema = schemaAt(checked.schema, path);
  return schema instanceof z.ZodEnum ? `write ${listed(schema.options.map(String))}` : undefined;
}

function typeHint(expected: string, value: unknown): string | undefined {
  if (expected === 'string' && (typeof value === 'number' || typeof value === 'boolean')) return 'quote it';
  if (expected === 'array') return 'start each item with a dash, or use brackets';
  if ((expected === 'int' || expected === 'number') && typeof value === 'string' && /^\d+$/.test(value)) return 'remove the quotes';
  return value === null ? 'give it a value, or remove the key' : undefined;
}

function typeText(expected: string): string {
  const names: Readonly<Record<string, string>> = {
    int: 'a whole number',
    number: 'a number',
    string: 'text',
    boolean: 'true or false',
    array: 'a list',
    object: 'fields',
    record: 'fields',
  };
  return names[expected] ?? withArticle(expected);
}

function shown(path: Path, value: unknown): string {
  const key = String(path.at(-1) ?? '');
  if (value === null) return 'empty';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'an object';
  const isAnnotation = path.at(-2) === 'annotations';
  const text = isAnnotation ? maskLiteral(key.replace(/^.*\//, ''), String(value)) : withoutCredentialsOf(key, String(value));
  return typeof value === 'string' ? `"${text.length > 60 ? `${text.slice(0, 57)}...` : text}"` : text;
}

function sizeText(value: unknown): string {
  if (typeof value === 'string') return value.length === 1 ? 'has 1 character' : `has ${value.length} characters`;
  if (Array.isArray(value)) return value.length === 1 ? 'has 1 item' : `has ${value.length} items`;
  return `is ${String(value)}`;
}
