// Columns and paragraphs of plain text, fitted into an optional width.
import type { Style } from '../colour.ts';

export interface Column {
  readonly title: string;
  readonly align: 'left' | 'right';
  /** Cells can be shortened in the middle if the terminal is too narrow. */
  readonly isFlexible?: boolean;
}

export interface Row {
  readonly cells: readonly string[];
  readonly style?: Style;
}

interface Fit {
  /** Width; undefined if nothing may be cut. */
  readonly width: number | undefined;
  /** The character that replaces the cut text. */
  readonly ellipsis: string;
}

const gap = '  ';
const leastFlexible = 12;

/** Returns the rows as lines with aligned columns and without trailing spaces. */
export function alignRows(columns: readonly Column[], rows: readonly Row[], fit: Fit): readonly string[] {
  const widths = fittedWidths(columns, rows, fit.width);
  return rows.map(({ cells }) =>
    columns
      .map(({ align }, index) => {
        const width = widths[index] ?? 0;
        const cell = shorten(cells[index] ?? '', width, fit.ellipsis);
        return align === 'left' ? cell.padEnd(width) : cell.padStart(width);
      })
      .join(gap)
      .trimEnd(),
  );
}

function fittedWidths(columns: readonly Column[], rows: readonly Row[], width: number | undefined): readonly number[] {
  const widths = columns.map((_, index) => Math.max(0, ...rows.map(({ cells }) => (cells[index] ?? '').length)));
  const total = () => widths.reduce((sum, one) => sum + one, 0) + gap.length * (columns.length - 1);
  while (width !== undefined && total() > width) {
    const widest = widestFlexible(columns, widths);
    if (widest === undefined) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}

function widestFlexible(columns: readonly Column[], widths: readonly number[]): number | undefined {
  let widest: number | undefined;
  for (const [index, column] of columns.entries()) {
    const width = widths[index] ?? 0;
    if (column.isFlexible === true && width > leastFlexible && (widest === undefined || width > (widths[widest] ?? 0))) widest = index;
  }
  return widest;
}

/** Shortens text to at most `width` characters. Cuts in the middle, because names differ at both ends. */
export function shorten(text: string, width: number, ellipsis: string): string {
  if (text.length <= width) return text;
  const head = Math.ceil((width - ellipsis.length) / 2);
  return `${text.slice(0, head)}${ellipsis}${text.slice(text.length - (width - ellipsis.length - head))}`;
}

/** Returns a paragraph after a label of fixed width. Without a width it is one line. */
export function paragraph(label: string, text: string, width: number | undefined): readonly string[] {
  const indent = ' '.repeat(label.length);
  return wrapWords(text, width === undefined ? undefined : width - label.length).map(
    (line, index) => (index === 0 ? label : indent) + line,
  );
}

function wrapWords(text: string, width: number | undefined): readonly string[] {
  if (width === undefined) return [text];
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
