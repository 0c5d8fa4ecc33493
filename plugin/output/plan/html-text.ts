// HTML and SVG from templates in which every value is escaped unless it is markup itself.
import { visible } from '../visible.ts';

/** Markup that is safe to put into a page; made by `html` alone, so that no text can be taken for it by mistake. */
export interface Html {
  readonly markup: string;
}

type Value = Html | string | number | readonly Html[];

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** A template whose values are escaped for element content and quoted attributes; markup and lists of it are put in as they are. */
export function html(parts: TemplateStringsArray, ...values: readonly Value[]): Html {
  const [first = '', ...rest] = parts;
  return { markup: first + rest.map((part, index) => valueMarkup(values[index] ?? '') + part).join('') };
}

export const nothing: Html = { markup: '' };

function valueMarkup(value: Value): string {
  if (typeof value === 'number') return String(Math.round(value * 100) / 100);
  if (typeof value === 'string') return visible(value).replace(/[&<>"']/g, (character) => entities[character] ?? character);
  return 'markup' in value ? value.markup : value.map(({ markup }) => markup).join('');
}

/** A table; numeric columns are named by their index. */
export function htmlTable(titles: readonly string[], rows: readonly (readonly (Html | string)[])[], numeric: readonly number[] = []): Html {
  const kind = (index: number) => (numeric.includes(index) ? html` class="number"` : nothing);
  const head = titles.map((title, index) => html`<th scope="col"${kind(index)}>${title}</th>`);
  const body = rows
    .map((cells) => html`<tr>${cells.map((cell, index) => html`<td${kind(index)}>${cell}</td>`)}</tr>\n`.markup)
    .map((markup) => ({ markup }));
  return html`<div class="scroll"><table><thead><tr>${head}</tr></thead>\n<tbody>${body}</tbody></table></div>`;
}
