// Policy documents as YAML text: fields in the order of the schema, defaults left out, short maps on one line.
import { Document, isCollection, isMap, isPair, isScalar, isSeq, type Node, Scalar, visit } from 'yaml';
import { z } from 'zod';
import { type PolicyDocument, schemas } from './schema/kinds.ts';
import { fieldNames, isRecord, schemaBelow, unwrapped } from './schema/schema-walk.ts';
import { documentStyle, yamlText } from './yaml/style.ts';

/** A map on one line has at most this many members and characters. */
const shortMap = { members: 4, characters: 80 };
/** A condition or a list of scalars on one line has at most this many characters. */
const longestFlowText = 100;

interface WriteOptions {
  /** Address of the JSON Schema, for editors that read the line `# yaml-language-server: $schema=...`. */
  readonly schemaUrl?: string;
  /** Lines of a comment above the first document. */
  readonly comment?: readonly string[];
}

/** One document, without separator. Read back, with defaults filled in, it equals the document. The same document gives the same bytes. */
export function writeDocument(document: PolicyDocument, options: WriteOptions = {}): string {
  const yaml = new Document(withoutDefaults(schemas[document.kind], document), documentStyle);
  const above = [
    ...(options.schemaUrl === undefined ? [] : [`yaml-language-server: $schema=${options.schemaUrl}`]),
    ...(options.comment ?? []),
  ];
  if (above.length > 0) yaml.commentBefore = above.map((line) => ` ${line}`).join('\n');
  layOut(yaml);
  return yamlText(yaml);
}

/** Several documents in the order given, with `---` between them. */
export function writeDocuments(documents: readonly PolicyDocument[], options: WriteOptions = {}): string {
  return documents.map((document, index) => writeDocument(document, index === 0 ? options : {})).join('---\n');
}

/** The value as people write it: fields in the order of the schema, without those that say what holds anyway; undefined when nothing remains. */
function withoutDefaults(schema: unknown, value: unknown): unknown {
  const inner = unwrapped(schema);
  if (Array.isArray(value)) return value.map((item, index) => withoutDefaults(schemaBelow(inner, index), item));
  if (!isRecord(value) || !inner) return value;
  const fields = inner instanceof z.ZodObject ? fieldNames(inner) : [];
  const others = Object.keys(value).filter((key) => !fields.includes(key));
  const written = [...fields, ...others].flatMap((key) => {
    const member = value[key];
    if (member === undefined) return [];
    const fieldSchema = inner instanceof z.ZodObject ? inner.shape[key] : undefined;
    const text = withoutDefaults(fieldSchema ?? schemaBelow(inner, key), member);
    return isDefault(fieldSchema, text) ? [] : [[key, text] as const];
  });
  return Object.fromEntries(written);
}

/** Returns whether a field that is left out would read as this value, whose own defaults are already left out. */
function isDefault(schema: unknown, written: unknown): boolean {
  if (schema instanceof z.ZodOptional) return isDefault(schema.unwrap(), written);
  if (!(schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault)) return false;
  return JSON.stringify(withoutDefaults(schema, schema.def.defaultValue)) === JSON.stringify(written);
}

/** Puts on one line what reads well there: short maps of scalars, lists of scalars, and conditions. `metadata` stays a block. */
function layOut(document: Document): void {
  visit(document, {
    Collection(_, node, path) {
      const parent = path.at(-1);
      const key = isPair(parent) && isScalar(parent.key) ? parent.key.value : undefined;
      const isRoot = path.length <= 1 || key === 'metadata' || key === 'spec';
      const isOneLine = isMap(node) ? isShortMap(node) || isCondition(node) : isSeq(node) && node.items.every(isScalar);
      const fits = JSON.stringify(node).length <= longestFlowText;
      if (isRoot || !isOneLine || !fits) return undefined;
      node.flow = true;
      return visit.SKIP;
    },
  });
}

function isShortMap(node: Node): boolean {
  if (!isMap(node) || node.items.length > shortMap.members || JSON.stringify(node).length > shortMap.characters) return false;
  return node.items.every((item) => item.value instanceof Scalar || (isCollection(item.value) && item.value.items.length === 0));
}

/** A JsonLogic operator as the only key: `{ ">": [...] }`, `{ and: [...] }`. Their nesting is easier to read on one line. */
function isCondition(node: Node): boolean {
  if (!isMap(node) || node.items.length !== 1) return false;
  const [pair] = node.items;
  return isSeq(pair?.value) && isScalar(pair.key) && /^(?:[^a-zA-Z]+|and|or|if|in|var|some|all|none|min|max)$/.test(String(pair.key.value));
}

export function manifestText(manifest: Readonly<Record<string, unknown>>): string {
  return yamlText(new Document(manifest, { ...documentStyle, aliasDuplicateObjects: false }));
}
