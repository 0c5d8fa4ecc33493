// Provides the basics of the HTML plan page: tables, the style, and templates that escape every value except markup.
import { visible } from '../text.ts';

/** Safe markup. `html` escapes texts, so that no text is used as markup by mistake. */
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

export function htmlTable(titles: readonly string[], rows: readonly (readonly (Html | string)[])[], numeric: readonly number[] = []): Html {
  const kind = (index: number) => (numeric.includes(index) ? html` class="number"` : nothing);
  const head = titles.map((title, index) => html`<th scope="col"${kind(index)}>${title}</th>`);
  const body = rows.map((cells) => html`<tr>${cells.map((cell, index) => html`<td${kind(index)}>${cell}</td>`)}</tr>\n`);
  return html`<div class="scroll"><table><thead><tr>${head}</tr></thead>\n<tbody>${body}</tbody></table></div>`;
}

export const planStyle = `
:root {
  color-scheme: light dark;
  --page: #ffffff; --panel: #f6f8fa; --line: #d1d9e0; --text: #1f2328; --soft: #59636e;
  --roll: #0969da; --scale: #8250df; --soak: #6e7781; --check: #1a7f37; --wait: #9a6700; --bad: #cf222e; --band: #0969da0d;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0d1117; --panel: #151b23; --line: #3d444d; --text: #f0f6fc; --soft: #9198a1;
    --roll: #4493f8; --scale: #ab7df8; --soak: #9198a1; --check: #3fb950; --wait: #d29922; --bad: #f85149; --band: #4493f814;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 2rem 1.25rem 4rem; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.6rem; margin: 0; } h2 { font-size: 1.2rem; margin: 0; } h3 { font-size: .95rem; margin: 1.4rem 0 .4rem; }
p { margin: .4rem 0; } a { color: var(--roll); }
code, .pods { font: .88em/1.4 ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; }
.soft { color: var(--soft); }
.figures { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.2rem 0; padding: 0; list-style: none; }
.figures li { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: .5rem .9rem; min-width: 6.5rem; }
.figures b { display: block; font-size: 1.3rem; line-height: 1.3; font-variant-numeric: tabular-nums; }
.group { border: 1px solid var(--line); border-radius: 10px; margin: 1.2rem 0; }
.group > summary { display: flex; flex-wrap: wrap; align-items: center; gap: .35rem .8rem; padding: .8rem 1.1rem; cursor: pointer; background: var(--panel); border-radius: 10px; }
.group[open] > summary { border-radius: 10px 10px 0 0; border-bottom: 1px solid var(--line); }
.group > summary .soft { margin-left: auto; }
.body { padding: .2rem 1.1rem 1.1rem; }
.badge { border: 1px solid currentColor; border-radius: 999px; padding: 0 .6rem; font-size: .82rem; font-weight: 600; white-space: nowrap; }
.blocked, .no { color: var(--bad); } .waits, .wait, .unknown { color: var(--wait); } .complete, .ok { color: var(--check); } .unchanged, .skip { color: var(--soft); }
.notice { border-left: 4px solid var(--wait); background: var(--panel); border-radius: 0 6px 6px 0; padding: .5rem .9rem; margin: .6rem 0; }
.notice.refused { border-color: var(--bad); }
.notice ul { margin: .3rem 0; padding-left: 1.2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th { text-align: left; font-weight: 600; color: var(--soft); white-space: nowrap; }
th, td { padding: .32rem .55rem; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: break-word; }
td code { overflow-wrap: anywhere; }
th:first-child, td:first-child { padding-left: 0; }
td .soft, td .key, td a { white-space: nowrap; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tbody tr:last-child td { border-bottom: 0; }
.fold > summary { cursor: pointer; color: var(--soft); margin-top: .8rem; }
.wide { display: block; width: 100%; min-width: 46rem; height: auto; margin-top: .4rem; }
.shared { position: absolute; }
.chart text { fill: var(--text); font: 12px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; }
.chart .small { font-size: 11px; fill: var(--soft); }
.chart .inside { fill: var(--page); font-weight: 600; font-size: 11px; }
.chart .grid { stroke: var(--line); } .chart .row { stroke: var(--line); stroke-dasharray: 1 3; }
.chart .band { fill: var(--band); } .chart .edge { stroke: var(--roll); stroke-opacity: .35; }
.chart .roll { fill: var(--roll); } .chart .scale { fill: var(--scale); } .chart .late { opacity: .3; }
.chart .hatch { stroke: var(--soak); stroke-width: 2; } .chart .dots { fill: var(--check); }
.chart .soak { stroke: var(--soak); } .chart .check { stroke: var(--check); }
.chart .wait { fill: none; stroke: var(--wait); stroke-width: 1.5; stroke-dasharray: 5 3; }
.chart .person { fill: var(--page); stroke: var(--wait); stroke-width: 2; }
.chart .held { stroke: var(--bad); stroke-width: 2; }
.share { display: block; width: 9rem; height: 10px; margin-top: .45rem; } .share .track { fill: var(--line); } .share .roll { fill: var(--roll); } .share .late { opacity: .35; }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; padding: 0; margin: .5rem 0 0; list-style: none; font-size: .85rem; color: var(--soft); }
.legend svg { width: 26px; height: 12px; vertical-align: -1px; margin-right: .35rem; }
@media print { .group { break-inside: avoid; } body { max-width: none; padding: 0; } }
`;
