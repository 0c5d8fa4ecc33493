// Computes lines and columns of a text, and the lines that a finding shows.

import { LineCounter } from 'yaml';
import type { ExcerptLine, Place } from '../findings/finding.ts';
import { endsWithSecretFlag, isSecretKey, withoutCredentials, withoutValues } from '../text/credentials.ts';
import { defined } from '../values/defined.ts';
import { keptByObject } from '../values/map.ts';

export interface TextLines {
  readonly file: string;
  readonly text: string;
  readonly counter: LineCounter;
}

export function textLines(file: string, text: string): TextLines {
  const counter = new LineCounter();
  counter.addNewLine(0);
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) counter.addNewLine(at + 1);
  return { file, text, counter };
}

/** Returns the place from one offset to another (exclusive). The end column is omitted if the end is on another line. */
export function placeOf(lines: TextLines, start: number, end: number, pointer: string): Place {
  const { line, col: column } = lines.counter.linePos(start);
  const trimmed = lines.text.slice(start, end).trimEnd();
  const endColumn = trimmed === '' || trimmed.includes('\n') ? undefined : column + trimmed.length;
  const place: Place = defined({ file: lines.file, line, column, endColumn, pointer });
  if (rawLine(lines, line) === undefined) return place;
  // Only findings show their excerpt. Most places become sources of settings, and the search for credentials takes longer than the rest.
  return Object.defineProperty(place, 'excerpt', { enumerable: true, get: () => excerptOf(lines, line) });
}

/** The maximum length of a line in an excerpt, with its line break. Longer lines are usually generated, so the position suffices. */
const excerptLimit = 500;

function excerptOf(lines: TextLines, line: number): readonly ExcerptLine[] {
  const text = lineText(lines, line);
  if (text === undefined) return [];
  const before = line > 1 ? (lineText(lines, line - 1) ?? '') : '';
  return [...(before.trim() === '' ? [] : [{ line: line - 1, text: before }]), { line, text }];
}

/** Returns undefined for a long line, without reading it: each place in a JSON file of one line would read the whole file. */
function lineText(lines: TextLines, line: number): string | undefined {
  const raw = rawLine(lines, line);
  if (raw === undefined) return undefined;
  return isInSecret(lines, line) || isInHiddenField(lines, line) || isAfterFlag(lines, line) ? withoutValues(raw) : withoutCredentials(raw);
}

function rawLine({ text, counter: { lineStarts } }: TextLines, line: number): string | undefined {
  const [start = 0, end = text.length] = [lineStarts[line - 1], lineStarts[line]];
  return end - start > excerptLimit ? undefined : text.slice(start, end).replace(/\r?\n$/, '');
}

/** Reports whether the line can have the value of a flag on the line before. */
function isAfterFlag(lines: TextLines, line: number): boolean {
  const before = line > 1 ? rawLine(lines, line - 1) : undefined;
  return before !== undefined && endsWithSecretFlag(before) && !/^\s*(?:-\s+)?["']?--?[a-z]/i.test(rawLine(lines, line) ?? '');
}

/** Reports whether the line is in a document with a Secret, of which every value can be a credential. */
function isInSecret(lines: TextLines, line: number): boolean {
  const at = lines.counter.lineStarts[line - 1] ?? 0;
  return rangesOfSecrets(lines).some(([start, end]) => start <= at && at < end);
}

/** Returns the ranges of the documents that contain a Secret. Most texts have no excerpt, so they are not searched. */
const rangesOfSecrets = keptByObject(({ text }: TextLines): readonly (readonly [start: number, end: number])[] => {
  const ranges: (readonly [start: number, end: number])[] = [];
  for (const { index } of text.matchAll(/\bkind["']?[ \t]*:[ \t]*["']?Secret(?:List)?\b/g)) {
    if (index < (ranges.at(-1)?.[1] ?? 0)) continue;
    const end = text.indexOf('\n---', index);
    ranges.push([Math.max(0, text.lastIndexOf('\n---', index)), end < 0 ? text.length + 1 : end]);
  }
  return ranges;
});

/** The maximum number of lines that are searched for the key of a line: longer texts are rare. */
const ancestorLimit = 200;

/** Reports whether a line above with a smaller indentation is the key of annotations, of a `value` or of a text with a credential. */
function isInHiddenField(lines: TextLines, line: number): boolean {
  const own = rawLine(lines, line) ?? '';
  let indent = indentOf(own);
  for (let above = line - 1; above > Math.max(0, line - ancestorLimit) && indent > 0; above -= 1) {
    const text = rawLine(lines, above) ?? '';
    if (/^\s*(?:#|$)/.test(text) || indentOf(text) >= indent) continue;
    const [, prefix = '', key, rest = ''] = keyOfLine.exec(text) ?? [];
    if (key !== undefined && prefix.length < indent && hidesLines(key, rest, own)) return true;
    indent = indentOf(text);
  }
  return false;
}

/** The key of a line, and the text after its colon. */
const keyOfLine = /^([\s-]*)["']?([\w.-]+)["']?[ \t]*:(?=\s|$)(.*)$/;

/** Reports whether a key hides a line below it. The name of a credential hides a text and a list, and no map such as the volume `secret`. */
function hidesLines(key: string, rest: string, line: string): boolean {
  if (key === 'annotations' || key === 'value') return true;
  return isSecretKey(key) && (/^\s*[^\s#]/.test(rest) || !keyOfLine.test(line));
}

/** Returns the indentation of a line. The entries of a list can have the same indentation as their key, and count as deeper. */
function indentOf(text: string): number {
  const start = text.trimStart();
  return text.length - start.length + (/^-(?:\s|$)/.test(start) ? 0.5 : 0);
}
