// Reads JSON, such as the output of kubectl, without the YAML parser, which is much slower. Places are computed on demand.
import { jsonPointer } from '../findings/finding.ts';
import { apiGroup } from '../schema/kinds.ts';
import { tryParseJson } from '../values/try-parse-json.ts';
import type { YamlDocument } from './document.ts';
import { yamlLimits } from './scan.ts';
import { placeOf, type TextLines } from './text-lines.ts';

/** The maximum length of a JSON text, in UTF-16 units: several thousand StatefulSets. JSON has no aliases that expand. */
const longestText = 64 * 1_048_576;

/** Returns the document of a JSON text; undefined if the YAML parser must read it. `read` parses the text as YAML, to compute places. */
export function jsonDocument(lines: TextLines, read: () => YamlDocument | undefined): YamlDocument | undefined {
  const { text } = lines;
  if (!text.trimStart().startsWith('{') || text.length > longestText || text.includes(apiGroup) || text.includes('__proto__'))
    return undefined;
  const value = tryParseJson(text);
  const shape = measure(value, 0);
  if (value === undefined || shape.depth > yamlLimits.depth || shape.keys !== keysWritten(text)) return undefined;
  let slow: YamlDocument | undefined;
  const document = (): YamlDocument | undefined => {
    slow ??= read();
    return slow;
  };
  return {
    file: lines.file,
    value,
    errors: [],
    dialect: [],
    find: (path, part) => document()?.find(path, part),
    place: (path, part) => document()?.place(path, part) ?? placeOf(lines, 0, 0, jsonPointer(path)),
  };
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
