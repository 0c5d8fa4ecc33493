// A strict reader of small XML documents, enough to prove that ours are well-formed.

/** The names of all elements in their order; throws at the first character that XML 1.0 does not allow where it stands. */
export function elementsOf(xml: string): readonly string[] {
  if (/(?![\t\n\r])\p{Cc}|[\p{Cs}\ufffe\uffff]/u.test(xml)) throw new Error('a character that XML cannot hold');
  const body = xml.replace(/^<\?xml version="1\.0" encoding="UTF-8"\?>\n/, '');
  const token = /<(\/?)([\w-]+)((?:\s+[\w-]+="(?:[^"<&]|&(?:amp|lt|gt|quot|#10);)*")*)\s*(\/?)>|(?:[^<&]|&(?:amp|lt|gt|quot);)+/uy;
  const open: string[] = [];
  const names: string[] = [];
  while (token.lastIndex < body.length) {
    const at = token.lastIndex;
    const match = token.exec(body);
    if (match === null) throw new Error(`not well-formed at ${JSON.stringify(body.slice(at, at + 40))}`);
    const [text, closing, name, , empty] = match;
    if (name === undefined) {
      if (open.length === 0 && text.trim() !== '') throw new Error('text outside of the root');
    } else if (closing === '/') {
      if (open.pop() !== name) throw new Error(`</${name}> closes another element`);
    } else {
      names.push(name);
      if (empty !== '/') open.push(name);
    }
  }
  if (open.length > 0) throw new Error(`<${open.join('><')}> is not closed`);
  return names;
}
