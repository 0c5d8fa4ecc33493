// Escapes text from clusters and files for Markdown, so that the text cannot add formatting, mentions or links, or break a table.
import { visible } from './text.ts';

/** The characters that Markdown or a forge interprets anywhere in a line. As entities they are plain text, also inside HTML and tables. */
const meaning = /[\\`*_[\]<>#!|~@&$%]|:(?=[\w/])/g;

/** Signs that forges turn into mentions, issues, merge requests, epics, labels, snippets, milestones and links if a word follows. */
const references = /[@#!&~$%](?=[\w{"-])|:(?=\/)/;

/** The beginning of a list item or of a line, inside the list item or the cell that the text begins. */
const listStart = /^(?:\d{1,9}[.)](?= |$)|\+(?= |$)|-(?!$))/;

/** Returns text for the inside of a Markdown line. A zero-width joiner prevents references. */
export function markdownText(text: string): string {
  return visible(text)
    .trim()
    .replace(meaning, (sign, offset: number, whole: string) => {
      const joiner = references.test(whole.slice(offset, offset + 2)) ? '&zwj;' : '';
      return `&#${sign.charCodeAt(0)};${joiner}`;
    })
    .replace(listStart, (begun) => `${begun.slice(0, -1)}&#${begun.charCodeAt(begun.length - 1)};`)
    .replace(/\b(www)\./gi, '$1&#46;&zwj;')
    .replace(/\b(gh)-(?=\d)/gi, '$1&#45;&zwj;');
}

/** Returns text for the inside of a Markdown line. Each line break becomes a space. */
export function markdownLine(text: string): string {
  return markdownText(text.replace(/\s+/g, ' '));
}

/** Returns text as code. The fence is longer than any sequence of backticks in the text. */
export function markdownCode(text: string): string {
  const shown = visible(text);
  const longest = longestTicks(shown);
  const fence = '`'.repeat(longest + 1);
  const pad = longest > 0 || shown === '' || shown.startsWith(' ') || shown.endsWith(' ') ? ' ' : '';
  return `${fence}${pad}${shown}${pad}${fence}`;
}

/** Returns lines as a code block. The fence is longer than any sequence of backticks in the lines. */
export function markdownBlock(text: string, language: string): string {
  const lines = text.trimEnd().split('\n').map(visible).join('\n');
  const fence = '`'.repeat(Math.max(2, longestTicks(lines)) + 1);
  return [`${fence}${language}`, lines, fence].join('\n');
}

function longestTicks(text: string): number {
  return text.match(/`+/g)?.reduce((longest, ticks) => Math.max(longest, ticks.length), 0) ?? 0;
}

export function markdownTable(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  return [markdownRow(titles), `|${titles.map(() => ' --- ').join('|')}|`, ...rows.map(markdownRow)].join('\n');
}

/**
 * Returns a row of a table. Escapes pipes, which end a cell even inside code. Parsers disagree about a pipe after a backslash, so a
 * zero-width joiner parts the two.
 */
export function markdownRow(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replace(/(\\?)\|/g, (_, slash) => `${slash && `${slash}\u200d`}\\|`)).join(' | ')} |`;
}

/** The maximum number of shown rows, because forges limit the length of a comment. */
const maxRows = 50;

/** Returns an empty line, a table of the first rows, and the number of the other rows; nothing without rows. */
export function boundedTable(titles: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  if (rows.length === 0) return [];
  const more = rows.length > maxRows ? ['', `and ${rows.length - maxRows} more`] : [];
  return ['', markdownTable(titles, rows.slice(0, maxRows)), ...more];
}

/** Returns a folded part. The blank lines make the forge render Markdown inside. */
export function markdownDetails(summary: string, body: string): string {
  return `<details><summary>${summary}</summary>\n\n${body}\n\n</details>`;
}
