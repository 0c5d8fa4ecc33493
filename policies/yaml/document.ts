// Reads a text as YAML documents: plain values, findings, and the place of each value. JSON, such as the output of
// kubectl, is read without the YAML parser, which is much slower.
import { Composer, type Document, isMap, isScalar, isSeq, type Node } from 'yaml';
import { type Finding, finding, jsonPointer, type Place } from '../findings/finding.ts';
import { apiGroup } from '../schema/kinds.ts';
import { extended } from '../values/defined.ts';
import { tryParseJson } from '../values/try-parse-json.ts';
import { lowerFirst } from '../wording.ts';
import { type NodeProperty, scanYaml, yamlLimits } from './scan.ts';
import { placeOf, type TextLines, textLines } from './text-lines.ts';
import { nodeOf, type PathKey, plainValue } from './value.ts';

export type Path = readonly PathKey[];

export interface Places {
  /** Returns the place of the value (or of its key) at the path; undefined if the document has no such value. */
  readonly find: (path: Path, part?: 'value' | 'key') => Place | undefined;
  /** Returns the place that `find` returns. Without one, returns the place of the nearest enclosing key or value. */
  readonly place: (path: Path, part?: 'value' | 'key') => Place;
}

export interface YamlDocument extends Places {
  readonly file: string;
  /** The plain value; undefined if the document could not be read. */
  readonly value: unknown;
  /** The reasons why the document cannot be read. */
  readonly errors: readonly Finding[];
  /** The findings about YAML that Kubernetes objects may use but policies may not. */
  readonly dialect: readonly Finding[];
}

interface ParsedFile {
  /** The documents in the order of the file, without empty documents. */
  readonly documents: readonly YamlDocument[];
  /** The reasons why the whole file is rejected. */
  readonly findings: readonly Finding[];
}

/** The tags of the YAML core schema. They cause no finding. */
const harmlessTags: ReadonlySet<string> = new Set(['!!str', '!!int', '!!float', '!!bool', '!!null', '!!map', '!!seq']);
const operatorTag = /^!{1,2}={0,2}[:,]*$/;

/** The texts that were read before. Files with equal texts share their values, such as most files of both sides of a review. */
export type KnownTexts = Map<string, ComposedText>;

interface ComposedText {
  readonly documents: readonly ComposedDocument[];
  readonly properties: readonly NodeProperty[];
}

interface ComposedDocument extends ReturnType<typeof plainValue> {
  readonly document: Document.Parsed;
}

/** Reads a text. Never throws; reports problems as findings. */
export function parseDocuments(file: string, text: string, known: KnownTexts = new Map()): ParsedFile {
  const lines = textLines(file, text.replace(/^\uFEFF/, ''));
  const json = jsonDocument(lines);
  return json === undefined ? yamlDocuments(lines, known) : { documents: [json], findings: [] };
}

function yamlDocuments(lines: TextLines, known: KnownTexts): ParsedFile {
  const composed = known.get(lines.text) ?? composedText(lines);
  if ('code' in composed) return { documents: [], findings: [composed] };
  known.set(lines.text, composed);
  return { documents: composed.documents.map((document) => yamlDocument(lines, document, composed.properties)), findings: [] };
}

/** Returns the documents of a text, or why the whole text is rejected. */
function composedText(lines: TextLines): ComposedText | Finding {
  const { tokens, properties, refused } = scanYaml(lines);
  if (refused) return refused;
  const composer = new Composer({ version: '1.2', uniqueKeys: false, prettyErrors: false, logLevel: 'silent' });
  const documents = [...composer.compose(tokens, false, lines.text.length)]
    .filter((document) => !isEmpty(document))
    .map((document) => extended(plainValue(nodeOf(document.contents)), { document }));
  return { documents, properties };
}

function isEmpty(document: Document.Parsed): boolean {
  const root = document.contents;
  return document.errors.length === 0 && (root === null || (isScalar(root) && root.value === null && !root.source));
}

function yamlDocument(
  lines: TextLines,
  { document, value, problems }: ComposedDocument,
  properties: readonly NodeProperty[],
): YamlDocument {
  const root = nodeOf(document.contents);
  const at = (start: number, end: number, path: Path = []) => placeOf(lines, start, end, jsonPointer(path));
  const { find, place } = placesIn(lines, (path, part) => nodeAt(root, path, part)?.range ?? undefined, root?.range ?? document.range);
  const syntax = document.errors.map((error) => finding('RG1004', at(...error.pos), messageClause(error.message)));
  const reported = problems.map((one) => ({ fatal: one.fatal, finding: finding(one.code, at(one.start, one.end, one.path), one.message) }));
  // After a syntax error the values are unreliable, so other findings are omitted.
  const errors = syntax.length > 0 ? syntax : reported.filter((one) => one.fatal).map((one) => one.finding);
  const dialect = [
    ...reported.filter((one) => !one.fatal).map((one) => one.finding),
    ...properties
      .filter(({ offset }) => offset >= document.range[0] && offset < document.range[2])
      .flatMap((property) => propertyFinding(property, at(property.offset, property.offset + property.source.length))),
    ...warningFindings(document, at),
  ];
  return {
    file: lines.file,
    value: errors.length > 0 ? undefined : value,
    errors,
    dialect: syntax.length > 0 ? [] : dialect,
    find,
    place,
  };
}

/** The offsets of the first character and of the character after the last one. */
type Range = readonly [start: number, end: number, ...unknown[]];

/** Returns the places of a document, in which `rangeOf` finds values and keys. */
function placesIn(lines: TextLines, rangeOf: (path: Path, part: 'value' | 'key') => Range | undefined, whole: Range): Places {
  const at = ([start, end]: Range, path: Path): Place => placeOf(lines, start, end, jsonPointer(path));
  const find: Places['find'] = (path, part = 'value') => {
    const range = rangeOf(path, part);
    return range && at(range, path);
  };
  const place: Places['place'] = (path, part) => find(path, part) ?? (path.length > 0 ? place(path.slice(0, -1), 'key') : at(whole, path));
  return { find, place };
}

function propertyFinding({ kind, source }: NodeProperty, place: Place): readonly Finding[] {
  // An alias needs an anchor, which already has a finding.
  if (kind === 'alias') return [];
  if (kind === 'anchor') return [finding('RG1007', place, 'the anchor is not allowed in policies')];
  if (operatorTag.test(source)) {
    const operator = source.replace(/[:,]+$/, '');
    return [finding('RG1010', place, `the operator ${operator} needs quotes`, { hint: `write "${operator}"` })];
  }
  return harmlessTags.has(source) ? [] : [finding('RG1005', place, 'the tag is not allowed in policies')];
}

/** Returns findings for warnings of the parser and for a YAML version other than 1.2. Tags have separate findings. */
function warningFindings(document: Document.Parsed, at: (start: number, end: number) => Place): readonly Finding[] {
  const warnings = document.warnings
    .filter((warning) => warning.code !== 'TAG_RESOLVE_FAILED')
    .map((warning) => finding('RG1005', at(...warning.pos), messageClause(warning.message)));
  const version = document.directives.yaml.version;
  if (version === '1.2') return warnings;
  return [
    ...warnings,
    finding('RG1005', at(document.range[0], document.range[0]), `the document declares YAML ${version}; policies are YAML 1.2`),
  ];
}

/** Returns the node at a path, or its key. For the root and for list items, which have no key, returns the node. */
function nodeAt(root: Node | undefined, path: Path, part: 'value' | 'key'): Node | undefined {
  let node = root;
  let key = root;
  for (const step of path) {
    const child = childOf(node, step);
    if (!child) return undefined;
    ({ node, key } = child);
  }
  return part === 'key' ? key : node;
}

function childOf(parent: Node | undefined, step: PathKey): { readonly node: Node | undefined; readonly key: Node | undefined } | undefined {
  if (isMap(parent)) {
    const pair = parent.items.find((item) => textOf(item.key) === String(step));
    if (!pair) return undefined;
    const key = nodeOf(pair.key);
    return { node: nodeOf(pair.value) ?? key, key };
  }
  if (!isSeq(parent) || typeof step !== 'number' || step >= parent.items.length) return undefined;
  const node = nodeOf(parent.items[step]);
  return { node, key: node };
}

function textOf(key: unknown): string | undefined {
  const node = nodeOf(key);
  return node && 'value' in node ? (typeof node.value === 'string' ? node.value : node.source) : undefined;
}

/** Returns a message of the parser in our form: no capital, no full stop. */
function messageClause(message: string): string {
  return lowerFirst(message).replace(/[.:]?\s*$/, '');
}

/** The maximum length of a JSON text, in UTF-16 units: several thousand StatefulSets. JSON has no aliases that expand. */
const longestText = 64 * 1_048_576;

/** Returns the document of a JSON text; undefined if the YAML parser must read it. */
function jsonDocument(lines: TextLines): YamlDocument | undefined {
  const { text } = lines;
  if (!text.trimStart().startsWith('{') || text.length > longestText || text.includes(apiGroup) || text.includes('__proto__'))
    return undefined;
  const value = tryParseJson(text);
  const shape = measure(value, 0);
  if (value === undefined || shape.depth > yamlLimits.depth || shape.keys !== keysWritten(text)) return undefined;
  // Texts above the limit of YAML have no places: the ranges of all their values would need a multiple of the memory.
  if (new TextEncoder().encode(text).length > yamlLimits.bytes) {
    return {
      file: lines.file,
      value,
      errors: [],
      dialect: [],
      find: () => undefined,
      place: (path) => placeOf(lines, 0, 0, jsonPointer(path)),
    };
  }
  const start = text.search(/\S/);
  let root: JsonNode | undefined;
  const rangeOf = (path: Path, part: 'value' | 'key'): Range | undefined => {
    root ??= jsonNode(text, start);
    const found = path.reduce<JsonNode | undefined>((node, step) => node?.children.get(step) ?? node?.children.get(String(step)), root);
    return part === 'key' ? (found?.key ?? found?.range) : found?.range;
  };
  return { file: lines.file, value, errors: [], dialect: [], ...placesIn(lines, rangeOf, [start, text.trimEnd().length]) };
}

interface JsonNode {
  readonly range: Range;
  /** The range of the key; absent for the root and for items. */
  readonly key?: Range;
  readonly children: ReadonlyMap<PathKey, JsonNode>;
}

const separators = /[\s,:]*/y;
const scalar = /"(?:[^"\\]|\\.)*"|[^\s,:\]}]+/y;

/** Returns the offset after a match of the pattern at an offset. */
function afterMatch(pattern: RegExp, text: string, offset: number): number {
  pattern.lastIndex = offset;
  return pattern.test(text) ? pattern.lastIndex : offset;
}

/** Returns the ranges of a value and of the values in it. The text is valid JSON. */
function jsonNode(text: string, start: number): JsonNode {
  const children = new Map<PathKey, JsonNode>();
  const isObject = text[start] === '{';
  if (!isObject && text[start] !== '[') return { range: [start, afterMatch(scalar, text, start)], children };
  let offset = afterMatch(separators, text, start + 1);
  while (text[offset] !== '}' && text[offset] !== ']') {
    const keyEnd = isObject ? afterMatch(scalar, text, offset) : offset;
    const child = jsonNode(text, afterMatch(separators, text, keyEnd));
    if (isObject) children.set(JSON.parse(text.slice(offset, keyEnd)), { ...child, key: [offset, keyEnd] });
    else children.set(children.size, child);
    offset = afterMatch(separators, text, child.range[1]);
  }
  return { range: [start, offset + 1], children };
}

interface Shape {
  readonly keys: number;
  readonly depth: number;
}

/** Returns the number of keys and the nesting depth of a value. Does not visit values below the depth limit. */
function measure(value: unknown, depth: number): Shape {
  if (typeof value !== 'object' || value === null || depth > yamlLimits.depth) return { keys: 0, depth };
  const members: readonly unknown[] = Object.values(value);
  let keys = Array.isArray(value) ? 0 : members.length;
  let deepest = depth + 1;
  for (const member of members) {
    const shape = measure(member, depth + 1);
    keys += shape.keys;
    if (shape.depth > deepest) deepest = shape.depth;
  }
  return { keys, depth: deepest };
}

/** Returns the number of keys in the text: strings followed by a colon. A value with fewer keys lost a duplicate key. */
function keysWritten(text: string): number {
  let count = 0;
  for (const [, colon] of text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?/g)) if (colon !== undefined) count += 1;
  return count;
}
