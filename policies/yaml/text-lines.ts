// Computes lines and columns of a text, and the lines that a finding shows.
import { LineCounter } from 'yaml';
import type { ExcerptLine, Place } from '../findings/finding.ts';
import { withoutCredentials } from '../text/credentials.ts';

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
