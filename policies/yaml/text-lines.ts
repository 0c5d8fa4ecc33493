// Computes lines and columns of a text, and the lines that a finding shows.
import { LineCounter } from 'yaml';
import type { ExcerptLine, Place } from '../findings/finding.ts';

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
  const excerpt = excerptOf(lines, line);
  const trimmed = lines.text.slice(start, end).trimEnd();
  return {
    file: lines.file,
    line,
    column,
    ...(trimmed === '' || trimmed.includes('\n') ? {} : { endColumn: column + trimmed.length }),
    pointer,
    ...(excerpt.length > 0 ? { excerpt } : {}),
  };
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
function lineText({ text, counter: { lineStarts } }: TextLines, line: number): string | undefined {
  const [start = 0, end = text.length] = [lineStarts[line - 1], lineStarts[line]];
  return end - start > excerptLimit ? undefined : withoutCredentials(text.slice(start, end).replace(/\r?\n$/, ''));
}

/**
 * The user and the password of a URL, the query of a URL or a path, and the path of a webhook. Every repetition before the text is bounded,
 * because a pattern looks back from each character: the webhook reads values of any length.
 */
const inAddresses = [
  /(?<=:\/\/)[^/\s"']+(?=@)/g,
  /(?<=\/[^\s"'?]{0,500}\?)[^\s"'}]+/g,
  /(?<=\bhttps?:\/\/(?:[\w.-]{0,100}hook[\w.:-]{0,100}|[\w.:-]{1,100}\/(?:web)?hooks?)\/)[^\s"'}?]+/gi,
];

/** The text after a key that names a credential. */
const afterKeys =
  /(?<=(?:passw\w{0,40}|tokens?|secret|credentials?|(?:private|api|access|signing).?key|authorization)["']?[ \t]{0,40}[:=][ \t]{0,40}["']?(?:(?:Bearer|Basic)[ \t]{1,40})?)[^\s"'{}[\],]+/gi;

/** Returns a part of a file with credentials masked at the same length: excerpts appear in logs and comments. */
export function withoutCredentials(text: string): string {
  return maskedAt([...inAddresses, afterKeys], text);
}

/** Returns a message with the credentials of addresses masked at the same length: a message quotes texts of the file. */
export function withoutAddressCredentials(text: string): string {
  return text.includes('/') ? maskedAt(inAddresses, text) : text;
}

function maskedAt(patterns: readonly RegExp[], text: string): string {
  return patterns.reduce((masked, pattern) => masked.replace(pattern, (part) => '*'.repeat(part.length)), text);
}
