// Writes manifests and policy documents as YAML. Policy documents get fields in schema order, no defaults, and short maps on one line.
import { Document, isCollection, isMap, isPair, isScalar, isSeq, type Node, Scalar, visit } from 'yaml';
import * as z from 'zod';
import { type PolicyDocument, schemas } from './schema/kinds.ts';
import { fieldNames, schemaBelow, unwrapped } from './schema/schema-walk.ts';
import { isRecord } from './values/is-record.ts';
import { documentStyle, yamlText } from './yaml/style.ts';

/** The limits for a map that is written on one line. */
const shortMap = { members: 4, characters: 80 };
/** The maximum length, as JSON, of a condition or a list of scalars that is written on one line. */
const longestFlowText = 100;

/** Writes one document below the lines of a comment. The text reads back as the same document, and is the same for the same document. */
export function writeDocument(document: PolicyDocument, comment: readonly string[] = []): string {
  const yaml = new Document(withoutDefaults(schemas[document.kind], document), documentStyle);
  if (comment.length > 0) yaml.commentBefore = comment.map((line) => ` ${line}`).join('\n');
  shortenToOneLine(yaml);
  return yamlText(yaml);
}

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

/** Returns whether the value is the default of the field. The caller must have removed defaults inside the value. */
function isDefault(schema: unknown, written: unknown): boolean {
  if (schema instanceof z.ZodOptional) return isDefault(schema.unwrap(), written);
  if (!(schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault)) return false;
  return JSON.stringify(withoutDefaults(schema, schema.def.defaultValue)) === JSON.stringify(written);
}

/** Puts short maps of scalars, lists of scalars and conditions on one line. `metadata` and `spec` stay on several lines. */
function shortenToOneLine(document: Document): void {
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

/** Returns whether the only key is a JsonLogic operator: `{ ">": [...] }`, `{ and: [...] }`. */
function isCondition(node: Node): boolean {
  if (!isMap(node) || node.items.length !== 1) return false;
  const [pair] = node.items;
  return isSeq(pair?.value) && isScalar(pair.key) && /^(?:[^a-zA-Z]+|and|or|if|in|var|some|all|none|min|max)$/.test(String(pair.key.value));
}

/** Writes a Kubernetes object as YAML. Its fields keep their order. */
export function manifestText(manifest: Readonly<Record<string, unknown>>): string {
  return yamlText(new Document(manifest, { ...documentStyle, aliasDuplicateObjects: false }));
}
