// Computes lines and columns of a text, and the lines that a finding shows.
import type { ExcerptLine, Place } from '../findings/finding.ts';

/** A text with the offsets of its lines. */
export interface TextLines {
  readonly file: string;
  readonly text: string;
  /** The offset of the first character of each line. */
  readonly starts: readonly number[];
}

export function textLines(file: string, text: string): TextLines {
  const starts = [0];
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return { file, text, starts };
}

/** Returns the place from one offset to another (exclusive). The end column is omitted if the end is on another line. */
export function placeOf(lines: TextLines, start: number, end: number, pointer: string): Place {
  const line = lineAt(lines, start);
  const lineStart = lines.starts[line] ?? 0;
  const excerpt = excerptOf(lines, line);
  const trimmed = lines.text.slice(start, end).trimEnd();
  return {
    file: lines.file,
    line: line + 1,
    column: start - lineStart + 1,
    ...(trimmed === '' || trimmed.includes('\n') ? {} : { endColumn: start - lineStart + 1 + trimmed.length }),
    pointer,
    ...(excerpt.length > 0 ? { excerpt } : {}),
  };
}

/** The maximum length of a line in an excerpt. Longer lines are usually generated, so the position suffices. */
const excerptLimit = 500;

/** Returns the line, and the line before it if that is not empty. */
function excerptOf(lines: TextLines, line: number): readonly ExcerptLine[] {
  const before = line > 0 ? lineText(lines, line - 1) : '';
  const text = lineText(lines, line);
  if (text.length > excerptLimit) return [];
  return [...(before.trim() === '' || before.length > excerptLimit ? [] : [{ line, text: before }]), { line: line + 1, text }];
}

function lineText(lines: TextLines, line: number): string {
  return withoutUserInformation(lines.text.slice(lines.starts[line], lines.starts[line + 1] ?? lines.text.length).replace(/\r?\n$/, ''));
}

/** Returns the text with the user and password of URLs masked at the same length: excerpts appear in logs and comments. */
export function withoutUserInformation(text: string): string {
  return text.replace(/(?<=:\/\/)[^/\s@"']+(?=@)/g, (user) => '*'.repeat(user.length));
}

/** Returns the 0-based number of the line that contains the offset. */
function lineAt({ starts }: TextLines, offset: number): number {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((starts[middle] ?? 0) <= offset) low = middle;
    else high = middle - 1;
  }
  return low;
}
