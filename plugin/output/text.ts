// Formats plain text: numbers with nouns, escaped control characters, columns, paragraphs and help that fit an optional width.
import { shorten } from '../../policies/text/shorten.ts';
import { listed } from '../../policies/wording.ts';
import type { OutputStream } from '../context.ts';
import type { Style } from './terminal.ts';

export interface Column {
  readonly title: string;
  readonly align: 'left' | 'right';
  /** Cells can be shortened in the middle if the terminal is too narrow. */
  readonly isFlexible?: boolean;
  /** For the last column: its cells are texts, which are wrapped and not shortened. */
  readonly isText?: boolean;
}

export interface ItemColumn<Item> extends Column {
  readonly cell: (item: Item) => string;
  /** For the last column: its cells are paragraphs below the rows if the table is too wide. */
  readonly isBelow?: boolean;
  /** The column is omitted if the terminal has fewer columns. */
  readonly leastWidth?: number;
}

export interface Row {
  readonly cells: readonly string[];
  /** Wraps the cell of column `first` in the width of columns `first` to `last`. The other cells of these columns are not printed. */
  readonly span?: { readonly first: number; readonly last: number };
  readonly style?: Style;
}

interface Fit {
  /** The width; undefined if nothing may be cut. */
  readonly width: number | undefined;
  /** The character that replaces the cut text. */
  readonly ellipsis: string;
}

const gap = '  ';
const leastFlexible = 8;

/** Returns the rows with aligned columns and without trailing spaces. A row is one text; it has line breaks if a span is wrapped. */
export function alignRows(columns: readonly Column[], rows: readonly Row[], fit: Fit): readonly string[] {
  const widths = fittedWidths(columns, rows, fit.width);
  return rows.map((row) => alignRow(row, columns, widths, fit));
}

function alignRow(row: Row, columns: readonly Column[], widths: readonly number[], fit: Fit): string {
  const last = columns.length - 1;
  const isTooLong = columns[last]?.isText === true && (row.cells[last] ?? '').length > (widths[last] ?? 0);
  const { cells, span = isTooLong && fit.width !== undefined ? { first: last, last } : undefined } = row;
  const shown = columns.map(({ align }, index) => {
    const width = widths[index] ?? 0;
    const cell = shorten(oneLine(cells[index] ?? ''), width, fit.ellipsis);
    return align === 'left' ? cell.padEnd(width) : cell.padStart(width);
  });
  if (span === undefined) return shown.join(gap).trimEnd();
  const startOf = (column: number): number => widths.slice(0, column).reduce((sum, width) => sum + width + gap.length, 0);
  const { first } = span;
  // The last column ends where the terminal ends.
  const end = span.last < last ? startOf(span.last + 1) - gap.length : (fit.width ?? Number.POSITIVE_INFINITY);
  const width = Math.max(end - startOf(first), widths[first] ?? 0);
  const [text = '', ...more] = wrapWords(oneLine(cells[first] ?? ''), width).map((part) => shorten(part, width, fit.ellipsis));
  const line = [...shown.slice(0, first), Number.isFinite(width) ? text.padEnd(width) : text, ...shown.slice(span.last + 1)]
    .join(gap)
    .trimEnd();
  return [line, ...more.map((rest) => ' '.repeat(startOf(first)) + rest)].join('\n');
}

export function alignTable(
  columns: readonly Column[],
  rows: readonly Row[],
  fit: Fit,
): { readonly header: string; readonly lines: readonly string[] } {
  const [header = '', ...lines] = alignRows(columns, [{ cells: columns.map(({ title }) => title) }, ...rows], fit);
  return { header, lines };
}

/**
 * Returns the titles in bold and one line per item, coloured by `paintLine`. Without a width, nothing is cut. A last column of texts also
 * goes below the rows if the other columns leave no room for it.
 */
export function itemTable<Item>(
  columns: readonly ItemColumn<Item>[],
  items: readonly Item[],
  { paint, glyphs, columns: width }: Pick<OutputStream, 'paint' | 'glyphs' | 'columns'>,
  paintLine: (line: string, item: Item) => string = (line) => line,
): readonly string[] {
  const shown = columns.filter(({ leastWidth = 0 }) => width === undefined || width >= leastWidth);
  const rows = items.map((item) => ({ cells: shown.map(({ cell }) => cell(item)) }));
  const fit = { width, ellipsis: glyphs.ellipsis };
  const last = shown.at(-1);
  const exceeds = (row: string): boolean => width !== undefined && row.split('\n').some((line) => line.length > width);
  const isSplit =
    (last?.isBelow === true && alignRows(shown, rows, { ...fit, width: undefined }).some(exceeds)) ||
    (last?.isText === true && alignRows(shown, rows, fit).some(exceeds));
  const { header, lines } = alignTable(isSplit ? shown.slice(0, -1) : shown, rows, fit);
  const below = (text = ''): readonly string[] => (isSplit && text !== '' ? paragraph('    ', text, width) : []);
  return [paint('bold', header), ...items.flatMap((item, index) => [paintLine(lines[index] ?? '', item), ...below(last?.cell(item))])];
}

function fittedWidths(columns: readonly Column[], rows: readonly Row[], width: number | undefined): readonly number[] {
  const widths = columns.map((_, index) =>
    Math.max(0, ...rows.map((row) => (isSpanned(row, index) ? 0 : (row.cells[index] ?? '').length))),
  );
  const sumOf = (some: readonly number[]): number => some.reduce((sum, one) => sum + one + gap.length, 0) - gap.length;
  for (const { cells, span } of rows) {
    if (span === undefined || span.last === columns.length - 1) continue;
    const missing = (cells[span.first] ?? '').length - sumOf(widths.slice(span.first, span.last + 1));
    widths[span.first] = (widths[span.first] ?? 0) + Math.max(0, missing);
  }
  const total = () => sumOf(widths);
  while (width !== undefined && total() > width) {
    const widest = widestFlexible(columns, widths);
    if (widest === undefined) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}

function isSpanned({ span }: Row, index: number): boolean {
  return span !== undefined && index >= span.first && index <= span.last;
}

function widestFlexible(columns: readonly Column[], widths: readonly number[]): number | undefined {
  let widest: number | undefined;
  for (const [index, column] of columns.entries()) {
    const width = widths[index] ?? 0;
    if (column.isFlexible === true && width > leastFlexible && (widest === undefined || width > (widths[widest] ?? 0))) widest = index;
  }
  return widest;
}

/** Returns the label and the text as lines of at most `width` characters; one line if `width` is undefined. Indents later lines. */
export function paragraph(label: string, text: string, width: number | undefined): readonly string[] {
  const indent = ' '.repeat(label.length);
  return wrapWords(oneLine(text), width === undefined ? undefined : width - label.length).map(
    (line, index) => (index === 0 ? label : indent) + line,
  );
}

export function styledParagraph(
  label: string,
  text: string,
  { columns, paint }: Pick<OutputStream, 'columns' | 'paint'>,
  style: Style,
): readonly string[] {
  const [first = '', ...rest] = paragraph(label, text, columns);
  return [paint(style, label) + first.slice(label.length), ...rest];
}

function oneLine(text: string): string {
  return text.replace(/\s*[\n\t]\s*/g, ' ');
}

/** Breaks lines at blanks, and within a word only if the word is longer than a line. */
function wrapWords(text: string, width: number | undefined): readonly string[] {
  if (width === undefined || width === Number.POSITIVE_INFINITY) return [text];
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ').flatMap((one) => piecesOf(one, width))) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

/** Cuts the text into pieces of at most this length. An empty text gives one empty piece. */
export function piecesOf(text: string, length: number): readonly string[] {
  return text.match(new RegExp(`.{1,${Math.max(1, length)}}`, 'gsu')) ?? [''];
}

/** Returns ` (REASON)`, or an empty text without a reason. */
export function reasonSuffix(reason: string | undefined): string {
  return reason === undefined ? '' : ` (${reason})`;
}

/** Returns `TEXT in a and b`, or only the text if the zones are absent. */
export function inZones(text: string, zones: readonly string[] | undefined): string {
  return zones === undefined ? text : `${text} in ${listed(zones, 'and')}`;
}

/** Returns `mimir/ingester zone zone-b`, or only the name of the group. */
export function placeText(name: string, zone: string | undefined): string {
  return zone === undefined ? name : `${name} zone ${zone}`;
}

/** Matches control, bidirectional and zero-width characters, and unpaired surrogates. */
const unseen =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the expression must match these characters.
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Returns the text with each invisible character as `\u` and four digits. Escapes line breaks too, so the result is one line. */
export function visible(text: string): string {
  return text.replace(unseen, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** A line of the help: a flag, verb or exit code with its description, or a text without a label. */
export interface HelpEntry {
  readonly label?: string;
  readonly text: string;
}

export interface HelpSection {
  readonly title?: string;
  readonly entries: readonly HelpEntry[];
}

/** Returns the help text with a final newline. Wraps at the width of the terminal, at most 120 columns; in pipes at 80. */
export function helpText(sections: readonly HelpSection[], stream: Pick<OutputStream, 'columns' | 'paint'>): string {
  const width = Math.min(stream.columns ?? 80, 120);
  return `${sections.flatMap((section, index) => [...(index === 0 ? [] : ['']), ...sectionLines(section, width, stream)]).join('\n')}\n`;
}

function sectionLines({ title, entries }: HelpSection, width: number, { paint }: Pick<OutputStream, 'paint'>): readonly string[] {
  const indent = title === undefined ? '' : '  ';
  const labelWidth = Math.max(0, ...entries.map(({ label = '' }) => label.length));
  const lines = entries.flatMap(({ label, text }) =>
    title === 'Examples'
      ? exampleLines(text, width)
      : paragraph(label === undefined ? indent : `${indent}${label.padEnd(labelWidth)}  `, text, width),
  );
  return title === undefined ? lines : [paint('bold', title), ...lines];
}

/** Wraps a command before its flags and pipes. Each line but the last ends with a backslash, so that a shell accepts the copied text. */
function exampleLines(command: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = ' ';
  for (const part of command.split(/ (?=--?[a-z]|[|>] )/)) {
    if (line !== ' ' && `${line} ${part} \\`.length > width) {
      lines.push(`${line} \\`);
      line = '     ';
    }
    line += ` ${part}`;
  }
  return [...lines, line];
}
