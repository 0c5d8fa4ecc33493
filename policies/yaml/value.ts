// Converts YAML nodes to plain values and reports values that other YAML readers read differently.
import { isAlias, isMap, isScalar, isSeq, type Node, type Pair, type Scalar } from 'yaml';
import type { FindingCode } from '../findings/codes.ts';
import { yamlLimits } from './scan.ts';

export type PathKey = string | number;

/** A problem of a node: `fatal` if the document cannot be read at all, otherwise a violation of the policy dialect. */
interface NodeProblem {
  readonly code: FindingCode;
  readonly fatal: boolean;
  readonly start: number;
  readonly end: number;
  readonly path: readonly PathKey[];
  readonly message: string;
}

/** The words that YAML 1.1 reads as booleans and YAML 1.2 as text. */
const booleanWord = /^(?:y|Y|yes|Yes|YES|n|N|no|No|NO|on|On|ON|off|Off|OFF)$/;

/** The numbers that YAML versions or JSON read differently: octal, binary, with underscores, base 60, infinite. */
const unclearNumber =
  /^[-+]?(?:0[0-9_]+|0o[0-7]+|0b[01_]+|[0-9][0-9_]*_[0-9_]*|[0-9]+(?::[0-5]?[0-9])+|\.inf|\.Inf|\.INF)$|^\.(?:nan|NaN|NAN)$/;

export const refusedKeys: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

interface Walk {
  readonly anchors: Map<string, Node>;
  readonly problems: NodeProblem[];
  readonly path: PathKey[];
  expanded: number;
  inAlias: number;
  /** True once a limit is exceeded; the walk then ends. */
  isTooLarge: boolean;
}

/** Returns the plain value of a node. Aliases expand up to a limit; objects keep every key as an own property. */
export function plainValue(node: Node | undefined): { readonly value: unknown; readonly problems: readonly NodeProblem[] } {
  const walk: Walk = { anchors: new Map(), problems: [], path: [], expanded: 0, inAlias: 0, isTooLarge: false };
  const value = plainOf(node, walk);
  return { value, problems: walk.problems };
}

function plainOf(node: Node | undefined, walk: Walk): unknown {
  if (!node) return undefined;
  if (walk.inAlias > 0) walk.expanded += 1;
  if (walk.expanded > yamlLimits.expandedNodes) walk.isTooLarge = true;
  if (walk.isTooLarge) return undefined;
  if (isAlias(node)) return aliasValue(node.source, node, walk);
  if (node.anchor !== undefined && walk.inAlias === 0) walk.anchors.set(node.anchor, node);
  if (isMap(node)) return mapValue(node.items, walk);
  if (isSeq(node)) return node.items.map((item, index) => within(walk, index, () => plainOf(nodeOf(item), walk)));
  if (!isScalar(node)) return undefined;
  checkPlainScalar(node, walk);
  return node.value;
}

function aliasValue(name: string, node: Node, walk: Walk): unknown {
  const target = walk.anchors.get(name);
  // The text of an alias can be a credential that begins with `*`.
  if (!target) return reportFatal(walk, 'RG1004', node, 'the alias has no anchor before it');
  // A node that contains its own alias has no finite value; the depth limit of aliases stops the expansion.
  if (walk.inAlias >= yamlLimits.depth) walk.isTooLarge = true;
  if (walk.isTooLarge) return undefined;
  walk.inAlias += 1;
  const value = plainOf(target, walk);
  walk.inAlias -= 1;
  if (!walk.isTooLarge || walk.inAlias > 0) return value;
  return reportFatal(walk, 'RG1007', node, `with this alias the document expands to more than ${yamlLimits.expandedNodes} values`);
}

function mapValue(items: readonly Pair[], walk: Walk): Readonly<Record<string, unknown>> {
  const entries = new Map<string, unknown>();
  const merged: unknown[] = [];
  for (const item of items) {
    const keyNode = nodeOf(item.key);
    const key = keyText(keyNode, walk);
    const value = within(walk, key, () => {
      if (keyNode) checkKey(keyNode, key, entries, walk);
      return plainOf(nodeOf(item.value), walk);
    });
    if (key === '<<' && isPlain(keyNode)) merged.push(...(Array.isArray(value) ? value : [value]));
    else if (!entries.has(key)) entries.set(key, value);
  }
  for (const [key, value] of merged.flatMap((source) => Object.entries(source ?? {}))) if (!entries.has(key)) entries.set(key, value);
  // Unlike an assignment, this makes `__proto__` an ordinary property.
  return Object.fromEntries(entries);
}

function keyText(node: Node | undefined, walk: Walk): string {
  if (isScalar(node)) return typeof node.value === 'string' ? node.value : (node.source ?? '');
  if (isAlias(node)) return String(aliasValue(node.source, node, walk));
  return '';
}

function checkKey(node: Node, key: string, seen: ReadonlyMap<string, unknown>, walk: Walk): void {
  if (isScalar(node)) checkPlainScalar(node, walk);
  const isText = isScalar(node) && typeof node.value === 'string';
  // A key with a tag gets the finding about tags, because it is most often an operator without quotes.
  if (!isText && node.tag === undefined)
    report(walk, 'RG1014', node, `the key ${key === '' ? 'is empty or not a scalar' : `${key} is not text`}`);
  if (key === '<<' && isPlain(node)) report(walk, 'RG1008', node, 'the merge key << is not allowed in policies');
  else if (seen.has(key)) reportFatal(walk, 'RG1006', node, `the key ${key} appears twice`);
  if (refusedKeys.has(key)) report(walk, 'RG1011', node, `the key ${key} is not allowed`);
}

function checkPlainScalar(node: Scalar, walk: Walk): void {
  if (!isPlain(node) || node.source === undefined) return;
  const text = node.source;
  if (booleanWord.test(text)) report(walk, 'RG1009', node, `${text} is a boolean for readers of YAML 1.1 and text for others`);
  if (unclearNumber.test(text)) report(walk, 'RG1013', node, `${text} is not the same number for every reader of YAML`);
}

function isPlain(node: unknown): boolean {
  return isScalar(node) && node.type === 'PLAIN' && node.tag === undefined;
}

function reportFatal(walk: Walk, code: FindingCode, node: Node, message: string): undefined {
  const [start, end] = node.range ?? [0, 0];
  walk.problems.push({ code, fatal: true, start, end, path: [...walk.path], message });
}

function report(walk: Walk, code: FindingCode, node: Node, message: string): void {
  // Problems behind an alias are reported where the anchor is written.
  if (walk.inAlias > 0) return;
  const [start, end] = node.range ?? [0, 0];
  walk.problems.push({ code, fatal: false, start, end, path: [...walk.path], message });
}

function within<T>(walk: Walk, key: PathKey, visit: () => T): T {
  walk.path.push(key);
  const result = visit();
  walk.path.pop();
  return result;
}

/** Returns the value if it is a node; undefined for an empty place in the text. */
export function nodeOf(value: unknown): Node | undefined {
  return isAlias(value) || isMap(value) || isSeq(value) || isScalar(value) ? value : undefined;
}
