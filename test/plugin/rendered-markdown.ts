// Renders Markdown as a forge does, and finds what would act in the page: in the text of the HTML, and in the document that Chromium makes of it.
import { spawnSync } from 'node:child_process';
import { accessSync, constants, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { micromark } from 'micromark';
import { gfm, gfmHtml } from 'micromark-extension-gfm';

/** The tags of comments, with the attributes that the renderer writes. */
const ownTag =
  /^<(?:\/?(?:h[1-6]|p|ul|ol|li|strong|em|code|pre|table|thead|tbody|tr|details|summary|sub|br|hr)(?: \/)?|\/?t[hd](?: align="\w+")?|code class="language-\w+")>$/;
const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', zwj: '\u200d' };
const references = [/[@#!&~$%][\w{"-]/g, /\bgh-\d/gi, /https?:\/\//gi, /\bwww\.\w/gi];

export interface Rendered {
  /** The tags in their order: the layout of the page. */
  readonly tags: readonly string[];
  /** What is not ours: tags, links, mentions, references, invisible characters. */
  readonly effects: readonly string[];
}

function htmlOf(markdown: string): string {
  return micromark(markdown, { allowDangerousHtml: true, extensions: [gfm()], htmlExtensions: [gfmHtml()] });
}

export function renderForge(markdown: string): Rendered {
  const html = htmlOf(markdown);
  const [marker = ''] = /^<!-- rollout-group:\w+ [\w=:. -]+ -->/.exec(html) ?? [];
  const tags: string[] = [];
  const effects: string[] = [];
  let depth = 0;
  for (const part of html.slice(marker.length).split(/(<[^>]*>)/)) {
    if (part.startsWith('<')) {
      tags.push(part);
      if (!ownTag.test(part)) effects.push(part);
      if (/^<(?:code|pre)\b/.test(part)) depth += 1;
      if (/^<\/(?:code|pre)\b/.test(part)) depth -= 1;
    } else if (depth === 0) {
      // The text of an HTML block still has its entities.
      const text = part.replace(/&(?:#(\d+)|(\w+));/g, (whole, code, name) =>
        code ? String.fromCharCode(code) : (entities[name] ?? whole),
      );
      effects.push(...references.flatMap((reference) => text.match(reference) ?? []));
    }
  }
  effects.push(...(html.match(/(?!\n)[\p{Cc}\p{Bidi_Control}\p{Cs}]/gu) ?? []));
  // A quick action of GitLab is a line of the source.
  effects.push(...(markdown.match(/^\s*\/\w+/gm) ?? []));
  return { tags, effects };
}

/** The executable in CHROMIUM, or the first one on the PATH; undefined without both. */
export function findChromium(): string | undefined {
  const { CHROMIUM, PATH = '' } = process.env;
  const named = PATH.split(delimiter).flatMap((folder) =>
    ['chromium', 'chromium-browser', 'google-chrome'].map((name) => join(folder, name)),
  );
  return CHROMIUM || named.find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** What Chromium makes of one comment. */
export interface Page {
  /** The elements in their order, each with its depth and the names of its attributes: the layout of the page. */
  readonly elements: readonly string[];
  /** What is not ours: elements, attributes, text outside code that a forge acts on, broken tables, text outside the width of the comment. */
  readonly effects: readonly string[];
}

/** The width of a comment on GitHub, in pixels. */
const commentWidth = 840;

/** The script of the page. `PATTERNS` becomes the list of references. A resource that the page loads, or a script in a text, is a violation. */
const examine = String.raw`
const allowed = /^(?:H[1-6]|P|UL|OL|LI|STRONG|EM|CODE|PRE|TABLE|THEAD|TBODY|TR|T[HD]|DETAILS|SUMMARY|SUB|BR|HR)$/;
const attribute = /^(?:align=(?:left|right|center)|class=language-\w+|open=)$/;
const patterns = PATTERNS.map((source) => new RegExp(source, 'i'));
const violations = [];
addEventListener('securitypolicyviolation', ({ blockedURI }) => violations.push(blockedURI));
function pageOf(section) {
  const effects = [];
  const elements = [...section.querySelectorAll('*')].map((element) => {
    const attributes = [...element.attributes].map(({ name, value }) => name + '=' + value);
    if (!allowed.test(element.tagName)) effects.push(element.tagName);
    effects.push(...attributes.filter((one) => !attribute.test(one)));
    let depth = 0;
    for (let above = element.parentElement; above !== section; above = above.parentElement) depth += 1;
    return [depth, element.tagName, ...attributes].join(' ');
  });
  for (const table of section.querySelectorAll('table')) {
    const widths = new Set([...table.rows].map(({ cells }) => cells.length));
    if (widths.size > 1 || table.tHead === null) effects.push('a table with rows of ' + [...widths].join(' and ') + ' cells');
  }
  const walker = document.createTreeWalker(section, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    if (/\p{Bidi_Control}|(?!\n)\p{Cc}/u.test(node.nodeValue)) effects.push('a hidden character');
    if (node.parentElement.closest('code, pre') !== null) continue;
    effects.push(...patterns.flatMap((pattern) => pattern.exec(node.nodeValue)?.[0] ?? []));
  }
  // Only code blocks and tables scroll inside the comment.
  if (section.scrollWidth > section.clientWidth) effects.push('text that is ' + section.scrollWidth + ' pixels wide');
  return { elements, effects };
}
addEventListener('load', () => {
  const pages = [...document.querySelectorAll('body > section')].map(pageOf);
  // A violation is told a moment later.
  setTimeout(() => (document.documentElement.textContent = JSON.stringify({ pages, violations })), 100);
});`;

/** Opens the comments in Chromium, without a network. `violations` are the resources and scripts that the page would have loaded or run. */
export function openComments(
  chromium: string,
  comments: readonly string[],
): { readonly pages: readonly Page[]; readonly violations: readonly string[] } {
  const style = `section { width: ${commentWidth}px; overflow-wrap: break-word } table, pre { display: block; max-width: 100%; overflow: auto }`;
  const script = examine.replace('PATTERNS', () => JSON.stringify(references.map(({ source }) => source)));
  const policy = "default-src 'none'; script-src 'nonce-own'; style-src 'nonce-own'";
  const head = `<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${policy}">`;
  const sections = comments.map((comment) => `<section>${htmlOf(comment).replaceAll('<details>', '<details open>')}</section>`).join('\n');
  const page = `<!doctype html>${head}<style nonce="own">${style}</style><script nonce="own">${script}</script><body>${sections}`;
  const folder = mkdtempSync(join(tmpdir(), 'chromium-'));
  try {
    const file = join(folder, 'comments.html');
    writeFileSync(file, page);
    const flags = ['--headless', '--no-sandbox', '--disable-gpu', `--user-data-dir=${folder}`, '--host-resolver-rules=MAP * ~NOTFOUND'];
    const { stdout, stderr, error } = spawnSync(chromium, [...flags, '--virtual-time-budget=10000', '--dump-dom', `file://${file}`], {
      encoding: 'utf8',
      maxBuffer: 256 * 1024 * 1024,
    });
    const [, text] = /<html[^>]*>(\{[\s\S]*\})<\/html>/.exec(stdout) ?? [];
    if (text === undefined) throw new Error(`${chromium} shows no page: ${error?.message ?? stderr.slice(-500)}`);
    return JSON.parse(text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&nbsp;', '\u00a0').replaceAll('&amp;', '&'));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
