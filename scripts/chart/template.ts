// Merges the YAML of several variants into one Helm template, and writes it. Text in `{{ }}` is a Helm expression.
import { stringify } from 'yaml';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { isRecord } from '../../policies/values/is-record.ts';

/** A YAML value, with blocks of Helm: see `Block`, `Inserted` and `ifKey`. */
export type Tree = string | number | boolean | readonly Tree[] | Block | Inserted | Entries;

/** The entries of a mapping. The key of `ifKey` has the entries of a condition. */
export interface Entries {
  readonly [key: string]: Tree;
}

/** Items of a list that Helm repeats or leaves out. */
interface Block {
  readonly $block: string;
  readonly $then: readonly Tree[];
  readonly $else: readonly Tree[];
}

/** The value of a Helm expression: a scalar without quotes, YAML, or further items or entries of the list or mapping around it. */
interface Inserted {
  readonly $as: 'scalar' | 'yaml' | 'items';
  readonly $expression: string;
}

/** Returns the value of an expression; see `Inserted`. */
export function inserted($as: Inserted['$as'], $expression: string): Inserted {
  return { $as, $expression };
}

/** Returns the key of entries that exist under a condition. The value has the entries as `yes` and `no`. */
export function ifKey(condition: string, first: string): string {
  return `$if ${condition}#${first}`;
}

/** The expression for two braces in a text. */
const brace = '{{ `{{` }}';

/** Escapes text that Helm would read as an expression. */
export function escaped(text: string): string {
  return text.replaceAll('{{', brace);
}

/** Merges the variant in which a condition is true with the variant in which it is false. */
export function either(condition: string, yes: Tree, no: Tree): Tree {
  if (yes === no) return yes;
  if (isList(yes) && isList(no)) return eitherList(condition, yes, no);
  if (textOf(yes) === textOf(no)) return yes;
  if (isBlock(yes) && isBlock(no)) {
    return {
      ...yes,
      $then: eitherList(condition, yes.$then, no.$then),
      $else: eitherList(condition, yes.$else, no.$else),
    };
  }
  if (isEntries(yes) && isEntries(no)) return eitherEntries(condition, yes, no);
  if (isScalar(yes) && isScalar(no)) return `{{ if ${condition} }}${yes}{{ else }}${no}{{ end }}`;
  throw new Error(`under ${condition}, a value has two types: ${canonicalJson(yes)} and ${canonicalJson(no)}`);
}

const texts = new WeakMap<object, string>();

/** Returns the canonical JSON. Variants share most of their parts, so the text of a part is computed once. */
function textOf(tree: Tree): string {
  if (typeof tree !== 'object') return canonicalJson(tree);
  const known = texts.get(tree);
  if (known !== undefined) return known;
  const text = canonicalJson(tree);
  texts.set(tree, text);
  return text;
}

function eitherList(condition: string, yes: readonly Tree[], no: readonly Tree[]): readonly Tree[] {
  return segments(yes.map(identity), no.map(identity)).flatMap(({ from, count, isSame }): readonly Tree[] => {
    const [a, b] = [yes.slice(from[0], from[0] + count[0]), no.slice(from[1], from[1] + count[1])];
    // Items without a name are the same item if their places are the same.
    const isPaired = a.length === b.length && [...a, ...b].every((item) => isEntries(item) && !('metadata' in item));
    if (isPaired || isSame) return a.map((one, index) => either(condition, one, b[index] ?? one));
    return [{ $block: `if ${condition}`, $then: a, $else: b }];
  });
}

function eitherEntries(condition: string, yes: Entries, no: Entries): Entries {
  const [keys, others] = [Object.keys(yes), Object.keys(no)];
  const merged = segments(keys, others).flatMap(({ from, count, isSame }): readonly (readonly [string, Tree])[] => {
    const [a, b] = [keys.slice(from[0], from[0] + count[0]), others.slice(from[1], from[1] + count[1])];
    if (isSame) return a.map((key) => [key, either(condition, yes[key] ?? '', no[key] ?? '')]);
    return [[ifKey(condition, a[0] ?? b[0] ?? ''), { yes: pick(yes, a), no: pick(no, b) }]];
  });
  return Object.fromEntries(merged);
}

function pick(entries: Entries, keys: readonly string[]): Entries {
  return Object.fromEntries(keys.map((key) => [key, entries[key] ?? '']));
}

/** Objects are the same object if their kind and name are the same, and blocks if they have the same objects. */
function identity(item: Tree): string {
  if (isBlock(item)) return canonicalJson([item.$block, item.$then.map(identity), item.$else.map(identity)]);
  const name = isEntries(item) ? item['metadata'] : undefined;
  if (!isEntries(item) || !isRecord(name)) return canonicalJson(item);
  return canonicalJson([item['kind'], name['name'], name['namespace']]);
}

interface Segment {
  readonly from: readonly [number, number];
  readonly count: readonly [number, number];
  /** True for a pair of equal items. */
  readonly isSame: boolean;
}

/** Returns the parts of two lists in order: a pair of equal items, or the items between two pairs. */
function segments(a: readonly string[], b: readonly string[]): readonly Segment[] {
  const pairs = [...longestCommon(a, b), [a.length, b.length] as const];
  const found: Segment[] = [];
  let [x, y] = [0, 0];
  for (const [i, j] of pairs) {
    if (i > x || j > y) found.push({ from: [x, y], count: [i - x, j - y], isSame: false });
    if (i < a.length) found.push({ from: [i, j], count: [1, 1], isSame: true });
    [x, y] = [i + 1, j + 1];
  }
  return found;
}

/** Returns the index pairs of a longest common subsequence. */
function longestCommon(a: readonly string[], b: readonly string[]): readonly (readonly [number, number])[] {
  const lengths = commonLengths(a, b);
  const pairs: (readonly [number, number])[] = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) pairs.push([i++, j++]);
    else if (lengths(i + 1, j) >= lengths(i, j + 1)) i += 1;
    else j += 1;
  }
  return pairs;
}

/** Returns a function with the length of a longest common subsequence of the items from two indexes on. */
function commonLengths(a: readonly string[], b: readonly string[]): (i: number, j: number) => number {
  const rows: number[][] = [];
  const at = (i: number, j: number): number => rows[i]?.[j] ?? 0;
  for (let i = a.length - 1; i >= 0; i -= 1) {
    const row: number[] = [];
    rows[i] = row;
    for (let j = b.length - 1; j >= 0; j -= 1) row[j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  }
  return at;
}

/** Changes every list, the inner lists first. */
export function mapLists(tree: Tree, change: (items: readonly Tree[]) => readonly Tree[]): Tree {
  if (isList(tree)) return change(tree.map((item) => mapLists(item, change)));
  if (isBlock(tree)) {
    const [yes, no] = [mapLists(tree.$then, change), mapLists(tree.$else, change)];
    return { ...tree, $then: isList(yes) ? yes : [], $else: isList(no) ? no : [] };
  }
  if (!isEntries(tree)) return tree;
  return Object.fromEntries(Object.entries(tree).map(([key, value]) => [key, mapLists(value, change)]));
}

/** Changes every text, except keys. */
export function mapTexts(tree: Tree, change: (text: string) => string): Tree {
  if (typeof tree === 'string') return change(tree);
  if (isList(tree)) return tree.map((item) => mapTexts(item, change));
  return isEntries(tree) ? Object.fromEntries(Object.entries(tree).map(([key, value]) => [key, mapTexts(value, change)])) : tree;
}

/** Repeats each run of items that match in a loop of Helm. */
export function repeated(items: readonly Tree[], header: string, isMatch: (item: Tree) => boolean): readonly Tree[] {
  const result: Tree[] = [];
  for (const item of items) {
    const last = result.at(-1);
    if (!isMatch(item)) result.push(item);
    else if (last !== undefined && isBlock(last) && last.$block === header)
      result[result.length - 1] = { ...last, $then: [...last.$then, item] };
    else result.push({ $block: header, $then: [item], $else: [] });
  }
  return result;
}

/** Returns the objects as a Helm template: YAML documents. */
export function documents(objects: readonly Tree[]): string {
  return `${objects.flatMap((object) => documentLines(object)).join('\n')}\n`;
}

function documentLines(object: Tree): readonly string[] {
  if (!isBlock(object)) return ['---', ...lines(object, '')];
  return blockLines(object.$block, { yes: object.$then.flatMap(documentLines), no: object.$else.flatMap(documentLines), indent: '' });
}

interface Branches {
  readonly yes: readonly string[];
  readonly no: readonly string[];
  readonly indent: string;
}

function blockLines(block: string, { yes, no, indent }: Branches): readonly string[] {
  const end = `${indent}{{- end }}`;
  if (yes.length === 0) return [`${indent}{{- ${block.replace(/^if (.*)$/, 'if not ($1)')} }}`, ...no, end];
  return [`${indent}{{- ${block} }}`, ...yes, ...(no.length === 0 ? [] : [`${indent}{{- else }}`, ...no]), end];
}

/** Returns the YAML lines of a mapping or of a list. */
export function lines(tree: Tree, indent: string): readonly string[] {
  if (isList(tree)) return tree.flatMap((item) => itemLines(item, indent));
  if (!isEntries(tree)) throw new Error(`${canonicalJson(tree)} is no mapping`);
  return Object.entries(tree).flatMap(([key, value]) => entryLines(key, value, indent));
}

function entryLines(key: string, value: Tree, indent: string): readonly string[] {
  if (key.startsWith('$if ') && isEntries(value)) {
    const branch = (name: string): readonly string[] => (isEntries(value[name] ?? '') ? lines(value[name] ?? '', indent) : []);
    return blockLines(`if ${key.slice('$if '.length, key.indexOf('#'))}`, { yes: branch('yes'), no: branch('no'), indent });
  }
  const name = scalar(key);
  if (isInserted(value)) return insertedLines(name, value, indent);
  if (typeof value === 'string' && value.includes('\n')) return [`${indent}${name}: ${blockScalar(value, `${indent}  `)}`];
  if (isList(value)) return value.length === 0 ? [`${indent}${name}: []`] : [`${indent}${name}:`, ...lines(value, `${indent}  `)];
  if (!isEntries(value)) return [`${indent}${name}: ${scalar(value)}`];
  return Object.keys(value).length === 0 ? [`${indent}${name}: {}`] : [`${indent}${name}:`, ...lines(value, `${indent}  `)];
}

function blockScalar(text: string, indent: string): string {
  if (/^\s|\n$/.test(text.replace(/\n$/, ''))) throw new Error(`no block scalar can have this text: ${text}`);
  const indented = text.replace(/\n$/, '').replace(/^(?=.)/gm, indent);
  return `|${text.endsWith('\n') ? '' : '-'}\n${indented}`;
}

function insertedLines(name: string, value: Inserted, indent: string): readonly string[] {
  if (value.$as === 'items') return itemLines(value, indent);
  if (value.$as === 'scalar') return [`${indent}${name}: {{ ${value.$expression} }}`];
  return [`${indent}${name}:`, `${indent}  {{- toYaml ${value.$expression} | nindent ${indent.length + 2} }}`];
}

function itemLines(item: Tree, indent: string): readonly string[] {
  if (isBlock(item)) {
    return blockLines(item.$block, { yes: lines(item.$then, indent), no: lines(item.$else, indent), indent });
  }
  if (isInserted(item)) {
    return [`${indent}{{- with ${item.$expression} }}`, `${indent}{{- toYaml . | nindent ${indent.length} }}`, `${indent}{{- end }}`];
  }
  if (!isEntries(item)) return [`${indent}- ${scalar(item)}`];
  const [first = '', ...rest] = lines(item, `${indent}  `);
  if (first.includes('{{-')) throw new Error(`an item begins with a block: ${first}`);
  return [`${indent}- ${first.trimStart()}`, ...rest];
}

/** Returns a scalar in YAML. An expression that is the whole scalar is quoted by Helm. */
function scalar(value: Tree): string {
  const text = String(value);
  const expressions: string[] = [];
  const plain = text.replace(/\{\{.*?\}\}/g, (expression) => `helm${expressions.push(expression) - 1}expression`);
  if (expressions.length === 0) return stringify(value, { lineWidth: 0 }).trimEnd();
  if (plain === 'helm0expression') return text.replace(/ \}\}$/, ' | quote }}');
  // Braces of the text itself are invisible in `plain`, and need quotes.
  const quoted = text.includes(brace) ? JSON.stringify(plain) : stringify(plain, { lineWidth: 0 }).trimEnd();
  return quoted.replace(/helm(\d+)expression/g, (_, index: string) => expressions[Number(index)] ?? '');
}

function isScalar(tree: Tree): tree is string | number | boolean {
  return typeof tree !== 'object';
}

export function isList(tree: Tree): tree is readonly Tree[] {
  return Array.isArray(tree);
}

export function isBlock(tree: Tree): tree is Block {
  return isRecord(tree) && '$block' in tree;
}

function isInserted(tree: Tree): tree is Inserted {
  return isRecord(tree) && '$as' in tree;
}

export function isEntries(tree: Tree): tree is Entries {
  return isRecord(tree) && !isBlock(tree) && !isInserted(tree);
}
