// Writes policy files in canonical form: fields in the order of the schema, two spaces, at most one blank line, and every comment kept.
import { CST, type Document, isMap, isNode, isScalar, isSeq, Lexer, type Pair, parseDocument, visit, type YAMLMap } from 'yaml';
import type * as z from 'zod';
import { apiVersion, type Kind, schemas } from './schema/kinds.ts';
import { fieldNames, schemaBelow, unwrapped } from './schema/schema-walk.ts';
import { scanYaml, yamlLimits } from './yaml/scan.ts';
import { documentStyle, longestFlowLine, yamlText } from './yaml/style.ts';
import { textLines } from './yaml/text-lines.ts';

/** The maximum number of rounds of a loop. A round formats at least one level of nesting; the parser allows this many levels. */
const maxRounds = yamlLimits.depth;

/** Returns policy text in canonical form. Documents of other kinds keep their content; text with directives or errors stays unchanged. */
export function formatText(text: string): string {
  const lines = text.replace(/^\uFEFF/, '').replace(/\r\n?/g, '\n');
  const parts = documentTexts(lines);
  if (!parts || scanYaml(textLines('', lines)).refused) return text;
  const formatted = parts.map((part) => (usesReferences(part) ? part : formatUntilStable(part)));
  return formatted.some((part) => part === undefined) ? text : formatted.join('---\n');
}

/** Returns the texts between document markers, without empty ones; undefined if the text has directives or other content at a marker. */
function documentTexts(text: string): readonly string[] | undefined {
  if (/^(?:---[^\S\n]*[^\s]|\.\.\.(?:\s|$)|%)/m.test(text)) return undefined;
  return text
    .split(/^---[^\S\n]*(?:\n|$)/m)
    .filter((part) => part.trim() !== '')
    .map((part) => `${part.replace(/^(?:[^\S\n]*\n)+/, '').trimEnd()}\n`);
}

/** Formats the text until it no longer changes. Returns undefined for unreadable text, and the same text if it must not be formatted. */
function formatUntilStable(text: string): string | undefined {
  let current = text;
  for (let round = 0; round < maxRounds; round += 1) {
    const document = parseDocument(current, documentStyle);
    if (document.errors.length > 0) return undefined;
    const schema = schemaOf(document);
    if (!schema) return text;
    reorder(document.contents, schema, true);
    const next = withoutLongLines(yamlText(document));
    if (next === current) return current;
    if (!isSame(current, next)) return text;
    current = next;
  }
  return text;
}

/** Returns whether the text has anchors, aliases or tags. Policies do not allow them, and a move could put an alias before its anchor. */
function usesReferences(text: string): boolean {
  return scanYaml(textLines('', text)).properties.length > 0;
}

function schemaOf(document: Document.Parsed): z.ZodType | undefined {
  const kind = isMap(document.contents) && document.get('apiVersion') === apiVersion ? document.get('kind') : undefined;
  return typeof kind === 'string' && Object.hasOwn(schemas, kind) ? schemas[kind as Kind] : undefined;
}

/** Sorts the fields of every map in the order of the schema, and removes quotes around their names. Unknown fields come last, unchanged. */
function reorder(node: unknown, schema: unknown, isRoot = false): void {
  if (isSeq(node)) for (const [index, item] of node.items.entries()) reorder(item, schemaBelow(schema, index));
  if (!isMap(node)) return;
  const names = fieldNames(unwrapped(schema));
  const rank = (pair: Pair) => (names.indexOf(textOf(pair.key)) + names.length + 1) % (names.length + 1);
  const [first] = node.items;
  node.items.sort((a, b) => rank(a) - rank(b));
  if (first && first !== node.items[0]) moveFirst(node, first, isRoot);
  for (const { key, value } of node.items) {
    if (isScalar(key) && names.includes(textOf(key))) key.type = 'PLAIN';
    reorder(value, schemaBelow(schema, textOf(key)));
  }
}

/** Moves the comment above the former first field: in the root to the head of the document, elsewhere to the new place of the field. */
function moveFirst(map: YAMLMap, formerFirst: Pair, isRoot: boolean): void {
  const first = map.items[0]?.key;
  const former = formerFirst.key;
  if (!isNode(first) || !isNode(former)) return;
  first.spaceBefore = false;
  if (isRoot) {
    first.commentBefore = joined(former.commentBefore, first.commentBefore);
    former.commentBefore = '';
  } else {
    former.commentBefore = joined(map.commentBefore, former.commentBefore);
    map.commentBefore = '';
  }
}

function joined(...texts: readonly (string | null | undefined)[]): string {
  return texts.filter((text) => text).join('\n');
}

function textOf(key: unknown): string {
  return isScalar(key) ? String(key.value) : '';
}

/** Writes collections in braces or brackets as blocks if their line is too long, outer collections first. */
function withoutLongLines(text: string): string {
  let current = text;
  for (let round = 0; round < maxRounds; round += 1) {
    if (current.split('\n').every((line) => line.length <= longestFlowLine)) return current;
    const document = parseDocument(current, documentStyle);
    let isChanged = false;
    visit(document, {
      Collection(_, node) {
        if (node.flow !== true) return undefined;
        if (node.items.length > 0 && lineLength(current, node.range?.[0] ?? 0) > longestFlowLine) {
          node.flow = false;
          isChanged = true;
        }
        return visit.SKIP;
      },
    });
    if (!isChanged) return current;
    current = yamlText(document);
  }
  return current;
}

function lineLength(text: string, offset: number): number {
  const end = text.indexOf('\n', offset);
  return (end < 0 ? text.length : end) - (text.lastIndexOf('\n', offset - 1) + 1);
}

/** Returns whether two texts of a document have the same values and comments, because formatting must not lose any. */
function isSame(before: string, after: string): boolean {
  const values = (text: string) => JSON.stringify(meaning(parseDocument(text, documentStyle).contents));
  return values(before) === values(after) && comments(before) === comments(after);
}

/** Returns the values with sorted keys. Numbers that JSON would write differently, such as 0777 or very long ones, stay text. */
function meaning(node: unknown): unknown {
  if (isSeq(node)) return node.items.map(meaning);
  if (isMap(node)) {
    return node.items.map((pair) => [meaning(pair.key), meaning(pair.value)]).sort(([a], [b]) => (String(a) < String(b) ? -1 : 1));
  }
  if (!isScalar(node)) return undefined;
  return typeof node.value === 'number' && !isClearNumber(node.value, node.source ?? '') ? [node.source] : node.value;
}

function isClearNumber(value: number, source: string): boolean {
  return Math.abs(value) <= Number.MAX_SAFE_INTEGER && /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/.test(source);
}

function comments(text: string): string {
  const found: string[] = [];
  let previous = '';
  for (const lexeme of new Lexer().lex(text)) {
    if (previous !== CST.SCALAR && CST.tokenType(lexeme) === 'comment') found.push(lexeme.trim());
    previous = lexeme;
  }
  return found.sort().join('\n');
}
