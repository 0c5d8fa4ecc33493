// Escapes foreign text for Markdown, so that it neither becomes markup nor breaks a table.

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
