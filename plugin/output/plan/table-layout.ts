// Columns and paragraphs of plain text, fitted into a width when there is one.
import type { Style } from '../colour.ts';

export interface Column {
  readonly title: string;
  readonly align: 'left' | 'right';
  /** Cells may be shortened in the middle when the terminal is too narrow; never without a width. */
  readonly isFlexible?: boolean;
}

export interface Row {
  readonly cells: readonly string[];
  readonly style?: Style;
}

interface Fit {
  /** undefined when nothing may be cut. */
  readonly width: number | undefined;
  /** One character that stands for what was cut. */
  readonly ellipsis: string;
}

const gap = '  ';
const leastFlexible = 12;

/** The rows as lines of equal columns, titles not included. Every line ends with its last character. */
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

/** Text of at most `width` characters, cut in the middle, since names differ at both ends. */
export function shorten(text: string, width: number, ellipsis: string): string {
  if (text.length <= width) return text;
  const head = Math.ceil((width - ellipsis.length) / 2);
  return `${text.slice(0, head)}${ellipsis}${text.slice(text.length - (width - ellipsis.length - head))}`;
}

/** A paragraph behind a label of fixed width; without a width it stays on one line. */
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
