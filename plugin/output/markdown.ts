// Escapes foreign text for Markdown, so that it cannot format, mention, link, hide, reorder or break a table.
import { visible } from './text.ts';

/** Returns text for one table cell. Escapes every character that can start markup, a mention or a link. */
export function tableCell(text: string): string {
  return text
    .replace(/\s+/g, ' ')
    .replace(/[\\`*_{}[\]()#|~!]/g, '\\$&')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('@', '&#64;');
}

/** Returns text as code, also for tables. */
export function codeSpan(text: string): string {
  const oneLine = text.replace(/\s+/g, ' ').replaceAll('|', '\\|');
  const longest = Math.max(0, ...[...oneLine.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  const gap = longest > 0 ? ' ' : '';
  return `${fence}${gap}${oneLine}${gap}${fence}`;
}

/** Characters with a meaning anywhere in a line of Markdown. As entities they have no meaning, also inside HTML and tables. */
const meaning = /[\\`*_[\]<>#!|~@&$%]|:(?=[\w/])/g;

/** Signs that forges turn into mentions, issues, merge requests, epics, labels, snippets and milestones if a word follows. */
const references = /[@#!&~$%](?=[\w{"-])/;

/** Returns text for the inside of a Markdown line. A zero-width joiner prevents references and lists. */
export function markdownText(text: string): string {
  return visible(text)
    .replace(meaning, (sign, offset: number, whole: string) => {
      const joiner = references.test(whole.slice(offset, offset + 2)) ? '&zwj;' : '';
      return `&#${sign.charCodeAt(0)};${joiner}`;
    })
    .replace(/\b(www)\./gi, '$1&#46;')
    .replace(/\b(gh)-(?=\d)/gi, '$1&#45;');
}

/** Returns text as code. The fence is longer than any run of backticks in the text. */
export function markdownCode(text: string): string {
  const shown = visible(text);
  const longest = Math.max(0, ...[...shown.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  const pad = longest > 0 || shown === '' || shown.startsWith(' ') || shown.endsWith(' ') ? ' ' : '';
  return `${fence}${pad}${shown}${pad}${fence}`;
}

/** Returns lines as a code block. The fence is longer than any run of backticks in the lines. */
export function markdownBlock(text: string, language: string): string {
  const lines = text.trimEnd().split('\n').map(visible);
  const longest = Math.max(2, ...lines.flatMap((line) => [...line.matchAll(/`+/g)].map(([run]) => run.length)));
  const fence = '`'.repeat(longest + 1);
  return [`${fence}${language}`, ...lines, fence].join('\n');
}

/** Returns a table. Escapes pipes, which end a cell even inside code. */
export function markdownTable(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(titles), `|${titles.map(() => ' --- ').join('|')}|`, ...rows.map(line)].join('\n');
}

/** Returns a folded part. The blank lines make the forge render Markdown inside. */
export function markdownDetails(summary: string, body: string): string {
  return `<details><summary>${summary}</summary>\n\n${body}\n\n</details>`;
}

/** Cuts text to at most `length` characters, including an ellipsis. */
export function clip(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}
