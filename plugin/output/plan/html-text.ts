// HTML and SVG templates that escape every value except markup.
import { visible } from '../visible.ts';

/** Safe markup. Only `html` creates it, so that no text is used as markup by mistake. */
export interface Html {
  readonly markup: string;
}

type Value = Html | string | number | readonly Html[];

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** Builds markup. Escapes values for element content and quoted attributes; inserts markup unchanged. */
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

/** Returns a table. `numeric` lists the indices of numeric columns. */
export function htmlTable(titles: readonly string[], rows: readonly (readonly (Html | string)[])[], numeric: readonly number[] = []): Html {
  const kind = (index: number) => (numeric.includes(index) ? html` class="number"` : nothing);
  const head = titles.map((title, index) => html`<th scope="col"${kind(index)}>${title}</th>`);
  const body = rows
    .map((cells) => html`<tr>${cells.map((cell, index) => html`<td${kind(index)}>${cell}</td>`)}</tr>\n`.markup)
    .map((markup) => ({ markup }));
  return html`<div class="scroll"><table><thead><tr>${head}</tr></thead>\n<tbody>${body}</tbody></table></div>`;
}
