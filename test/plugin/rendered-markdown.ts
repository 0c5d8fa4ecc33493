// Renders Markdown as a forge does, and finds what would act in the page.
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

export function renderForge(markdown: string): Rendered {
  const html = micromark(markdown, { allowDangerousHtml: true, extensions: [gfm()], htmlExtensions: [gfmHtml()] });
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
