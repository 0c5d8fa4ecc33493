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
  const scan = new ListScan(text);
  mark.lastIndex = 0;
  for (let found = mark.exec(text); found !== null; found = mark.exec(text)) {
    const at = found.index;
    if (text[at] === '"') {
      const end = stringEnd(text, at);
      if (end === undefined) return undefined;
      scan.readString(at, end);
      mark.lastIndex = end;
    } else if (text[at] === '{' || text[at] === '[') {
      if (!scan.open(at)) return undefined;
    } else if (scan.close(at)) return scan.list(at);
  }
  return undefined;
}

/** Follows the brackets of a list, whose items are at depth 3. */
class ListScan {
  readonly #text: string;
  readonly #items: (readonly [number, number])[] = [];
  #depth = 0;
  /** The last string at depth 1 was the key `items`. */
  #isNext = false;
  #arrayAt = -1;
  #beginAt = -1;
  #endAt = -1;

  constructor(text: string) {
    this.#text = text;
  }

  readString(at: number, end: number): void {
    if (this.#depth === 1) this.#isNext = this.#text.slice(at, end) === '"items"';
  }

  /** Reports whether the bracket may stand there. */
  open(at: number): boolean {
    this.#depth += 1;
    if (this.#depth === 2 && this.#isNext) {
      this.#arrayAt = at;
      this.#endAt = at + 1;
      return this.#text[at] === '[';
    }
    if (this.#depth === 3 && this.#arrayAt >= 0) {
      this.#beginAt = at;
      return isSeparator(this.#text.slice(this.#endAt, at), this.#items.length > 0);
    }
    return true;
  }

  /** Reports whether the array of the items ends there. */
  close(at: number): boolean {
    this.#depth -= 1;
    if (this.#arrayAt < 0) return false;
    if (this.#depth === 2) {
      this.#endAt = at + 1;
      this.#items.push([this.#beginAt, this.#endAt]);
    }
    return this.#depth === 1;
  }

  /** Returns the list, if only space is between its last item and the end of the array. */
  list(at: number): ListText | undefined {
    if (this.#text.slice(this.#endAt, at).trim() !== '') return undefined;
    return { list: `${this.#text.slice(0, this.#arrayAt)}[]${this.#text.slice(at + 1)}`, items: this.#items };
  }
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
