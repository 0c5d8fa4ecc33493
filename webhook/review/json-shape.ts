// Measures depth and size of a JSON text before it is parsed.

export interface JsonBounds {
  /** Nesting depth of objects and arrays. */
  readonly maxDepth: number;
  /** Objects, arrays, and their elements. The parser allocates each: a few megabytes of `{},{},` stop the process for most of a second. */
  readonly maxValues: number;
}

const quote = 0x22;
const comma = 0x2c;
const backslash = 0x5c;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/**
 * Returns the exceeded bound; undefined if none. Does not check the syntax: up to the first error the parser sees the same strings and
 * brackets. Bytes beyond ASCII never count as either.
 */
export function excessOf(text: Uint8Array, { maxDepth, maxValues }: JsonBounds): 'deep' | 'wide' | undefined {
  let depth = 0;
  let values = 0;
  for (let index = 0; index < text.length; index++) {
    switch (text[index]) {
      case quote:
        index = stringEnd(text, index);
        break;
      case openBrace:
      case openBracket:
        depth++;
        values++;
        if (depth > maxDepth) return 'deep';
        break;
      case closeBrace:
      case closeBracket:
        depth--;
        break;
      case comma:
        values++;
        break;
    }
    if (values > maxValues) return 'wide';
  }
  return undefined;
}

/** Returns the index of the closing quote of the string that begins at `begin`, or the end of the text. */
function stringEnd(text: Uint8Array, begin: number): number {
  let index = begin + 1;
  while (index < text.length && text[index] !== quote) index += text[index] === backslash ? 2 : 1;
  return index;
}
