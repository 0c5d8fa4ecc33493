// Text of files and clusters inside Markdown: nothing in it can format, mention, link, hide or reorder.
import { visible } from '../visible.ts';

/** Characters that Markdown gives a meaning to anywhere in a line; as entities they are shown and mean nothing, also inside HTML and tables. */
const meaning = /[\\`*_[\]<>#!|~@&$%]|:(?=[\w/])/g;

/** What forges turn into mentions, issues, merge requests, epics, labels, snippets and milestones when a word follows. */
const references = /[@#!&~$%](?=[\w{"-])/;

/**
 * Text as part of a line of Markdown. Not to be put at the start of a line, where a dash or a number would begin a list. Forges look for
 * references after they have decoded entities, so a zero-width joiner parts the sign from the word.
 */
export function markdownText(text: string): string {
  return visible(text)
    .replace(meaning, (sign, offset: number, whole: string) => {
      const joiner = references.test(whole.slice(offset, offset + 2)) ? '&zwj;' : '';
      return `&#${sign.charCodeAt(0)};${joiner}`;
    })
    .replace(/\b(www)\./gi, '$1&#46;')
    .replace(/\b(gh)-(?=\d)/gi, '$1&#45;');
}

/** Text as code, in which nothing acts; the fence is longer than any run of backticks in it. */
export function markdownCode(text: string): string {
  const shown = visible(text);
  const longest = Math.max(0, ...[...shown.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  const pad = longest > 0 || shown === '' || shown.startsWith(' ') || shown.endsWith(' ') ? ' ' : '';
  return `${fence}${pad}${shown}${pad}${fence}`;
}

/** Lines as a block of code; the fence is longer than any run of backticks in them. */
export function markdownBlock(text: string, language: string): string {
  const lines = text.trimEnd().split('\n').map(visible);
  const longest = Math.max(2, ...lines.flatMap((line) => [...line.matchAll(/`+/g)].map(([run]) => run.length)));
  const fence = '`'.repeat(longest + 1);
  return [`${fence}${language}`, ...lines, fence].join('\n');
}

/** A table. A pipe inside code still ends a cell unless a backslash stands before it. */
export function markdownTable(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(titles), `|${titles.map(() => ' --- ').join('|')}|`, ...rows.map(line)].join('\n');
}

/** A part that is closed until a reader opens it. The blank lines make the forge read Markdown inside. */
export function markdownDetails(summary: string, body: string): string {
  return `<details><summary>${summary}</summary>\n\n${body}\n\n</details>`;
}

/** At most `length` characters, with a sign that more was there. */
export function clip(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}
