// Documents kinds and their fields, for commands and for the pages in docs/kinds/.
import { didYouMean } from '../text/did-you-mean.ts';
import { type Choice, choicesIn, type JsonSchema, kindSchema } from './json-schema.ts';
import { type Kind, kinds, schemas } from './kinds.ts';

export interface FieldDoc {
  /** The path without the kind: `spec.rollout.maxUnavailable`, `spec.gates[].every`. */
  readonly path: string;
  readonly name: string;
  /** The type as text: `duration`, `integer 0 to 100`, `pinned | partition | onDelete`, `list of objects`. */
  readonly type: string;
  readonly isRequired: boolean;
  /** The default as YAML; absent if the schema defines no default, or only `{}`. */
  readonly defaultText?: string;
  readonly description?: string;
  /** The fields of the object (or of the objects of the list) that exclude each other; may be empty. */
  readonly choices: readonly Choice[];
}

/** The documentation of a kind or field, with the fields directly in it. */
export interface SchemaDocs {
  readonly kind: Kind;
  readonly field: FieldDoc;
  readonly fields: readonly FieldDoc[];
}

interface UnknownPath {
  readonly unknown: string;
  readonly suggestion?: string;
}

/** Returns the documentation at a path such as `rg.spec.gates[].every`. The kind can be in any case, plural or short. */
export function schemaDocs(path: string): SchemaDocs | UnknownPath {
  const [kindText = '', ...steps] = path.split('.').map((part) => part.replace(/\[\d*\]$/, ''));
  const kind = kindNamed(kindText);
  if (!kind) return unknownName(kindText, Object.keys(schemas));
  let place = rootPlace(kind);
  for (const name of steps) {
    const fields = placesIn(place);
    const next = fields.find((one) => one.doc.name === name) ?? fields.find((one) => one.doc.name === anyName);
    const names = fields.map((one) => one.doc.name);
    if (!next) return unknownName(name, names);
    place = next;
  }
  return { kind, field: place.doc, fields: placesIn(place).map((one) => one.doc) };
}

/** Returns the allowed number of fields as text: `exactly one of a, b`. */
export function choiceText({ fields, isNeeded }: Choice, show: (field: string) => string = (field) => field): string {
  return `${isNeeded ? 'exactly' : 'at most'} one of ${fields.map(show).join(', ')}`;
}

interface FieldPlace {
  readonly doc: FieldDoc;
  readonly schema: JsonSchema;
}

const anyName = '<name>';

function rootPlace(kind: Kind): FieldPlace {
  const schema = kindSchema(kind);
  return { schema, doc: { path: '', name: kind, type: 'object', isRequired: true, description: kinds[kind].summary, choices: [] } };
}

function placesIn({ schema, doc }: FieldPlace): readonly FieldPlace[] {
  const { object, suffix } = objectIn(schema);
  const parent = `${doc.path}${suffix}`;
  const fields = Object.entries(object.properties ?? {});
  const anyField = typeof object.additionalProperties === 'object' ? [[anyName, object.additionalProperties] as const] : [];
  return [...fields, ...(anyField.some(([, values]) => objectIn(values).object.properties !== undefined) ? anyField : [])].map(
    ([name, field]) => ({
      schema: field,
      doc: fieldDoc(parent === '' ? name : `${parent}.${name}`, name, field, object.required?.includes(name) === true),
    }),
  );
}

function objectIn(schema: JsonSchema): { readonly object: JsonSchema; readonly suffix: string } {
  if (schema.items === undefined) return { object: schema, suffix: '' };
  const { object, suffix } = objectIn(schema.items);
  return { object, suffix: `[]${suffix}` };
}

function fieldDoc(path: string, name: string, schema: JsonSchema, isRequired: boolean): FieldDoc {
  const description = schema.description ?? schema.items?.description;
  // An empty object as default only applies the defaults of its fields.
  const hasDefault = schema.default !== undefined && JSON.stringify(schema.default) !== '{}';
  return {
    path,
    name,
    type: typeText(schema),
    isRequired,
    ...(hasDefault && { defaultText: typeof schema.default === 'string' ? schema.default : JSON.stringify(schema.default) }),
    ...(description !== undefined && { description }),
    choices: choicesIn(objectIn(schema).object),
  };
}

function typeText(schema: JsonSchema): string {
  const { type, enum: choices, anyOf, items, additionalProperties, title } = schema;
  if (anyOf) return [...new Set(anyOf.map(typeText))].join(' | ');
  if (schema.const !== undefined) return JSON.stringify(schema.const).replace(/^"|"$/g, '');
  if (choices) return choices.join(' | ');
  if (title !== undefined) return title;
  if (items) return `list of ${plural(typeText(items))}`;
  if (typeof additionalProperties === 'object') return `map of ${plural(typeText(additionalProperties))}`;
  if (type === 'integer' || type === 'number') return `${type}${rangeText(schema)}`;
  if (schema.pattern !== undefined && type === 'string') return `string like \`${schema.pattern}\``;
  return type ?? 'any value';
}

function plural(type: string): string {
  if (/^(?:integer|number) /.test(type)) return type.replace(' ', 's ');
  return /^[a-z ]+$/.test(type) && !type.startsWith('list of') ? `${type}s` : type;
}

function rangeText({ minimum, maximum }: JsonSchema): string {
  if (minimum !== undefined && maximum !== undefined) return ` ${minimum} to ${maximum}`;
  if (minimum !== undefined) return ` from ${minimum}`;
  return maximum === undefined ? '' : ` up to ${maximum}`;
}

function kindNamed(text: string): Kind | undefined {
  const wanted = text.toLowerCase();
  return (Object.keys(schemas) as Kind[]).find((kind) => {
    const { plural: many, shortNames = [] } = kinds[kind];
    return [kind.toLowerCase(), many, ...shortNames].includes(wanted);
  });
}

function unknownName(unknown: string, known: readonly string[]): UnknownPath {
  const suggestion = didYouMean(unknown, known);
  return suggestion === undefined ? { unknown } : { unknown, suggestion };
}
