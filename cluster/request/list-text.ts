// Splits the text of a list into its items, so that they can be parsed one by one. A page parsed at once needs several times its text in memory.

export interface ListText {
  /** The list without its items: the same text with an empty array. */
  readonly list: string;
  /** Begin and end of each item in the text. */
  readonly items: readonly (readonly [begin: number, end: number])[];
}

const mark = /["{}[\]]/g;
const backslash = 0x5c;

/**
 * Finds the objects of the array `items` of a list. Undefined when there is no such array of objects, or the text is cut short before its
 * end; what is found may still be no JSON, which parsing it tells.
 */
export function splitList(text: string): ListText | undefined {
  const items: (readonly [number, number])[] = [];
  let depth = 0;
  let isNext = false;
  let arrayAt = -1;
  let beginAt = -1;
  let endAt = -1;
  mark.lastIndex = 0;
  for (let found = mark.exec(text); found !== null; found = mark.exec(text)) {
    const at = found.index;
    switch (text[at]) {
      case '"': {
        const end = stringEnd(text, at);
        if (end === undefined) return undefined;
        if (depth === 1) isNext = text.slice(at, end) === '"items"';
        mark.lastIndex = end;
        break;
      }
      case '{':
      case '[':
        depth += 1;
        if (depth === 2 && isNext) {
          if (text[at] !== '[') return undefined;
          arrayAt = at;
          endAt = at + 1;
        } else if (depth === 3 && arrayAt >= 0) {
          if (!isSeparator(text.slice(endAt, at), items.length > 0)) return undefined;
          beginAt = at;
        }
        break;
      default:
        depth -= 1;
        if (arrayAt < 0) break;
        if (depth === 2) {
          endAt = at + 1;
          items.push([beginAt, endAt]);
        }
        if (depth === 1) {
          if (text.slice(endAt, at).trim() !== '') return undefined;
          return { list: `${text.slice(0, arrayAt)}[]${text.slice(at + 1)}`, items };
        }
    }
  }
  return undefined;
}

/** After the closing quote of the string that begins here. */
function stringEnd(text: string, at: number): number | undefined {
  for (let end = text.indexOf('"', at + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === backslash) slashes += 1;
    if (slashes % 2 === 0) return end + 1;
  }
  return undefined;
}

/** Anything else between two items would be lost. */
function isSeparator(text: string, isComma: boolean): boolean {
  return text.trim() === (isComma ? ',' : '');
}
