// Sets of characters in RE2 patterns: brackets, escapes and named classes, each as a test of one code point.

export type Test = (point: number) => boolean;

interface ReadSet {
  readonly test: Test;
  /** Where it ends in the pattern. */
  readonly end: number;
  /** The one character that it stands for, where it stands for one. */
  readonly literal?: number;
}

const perl: Readonly<Record<string, RegExp>> = { d: /[0-9]/, s: /[\t\n\f\r ]/, w: /[0-9A-Za-z_]/ };

const posix: Readonly<Record<string, RegExp>> = {
  alnum: /[0-9A-Za-z]/,
  alpha: /[A-Za-z]/,
  ascii: /[\0-\x7f]/,
  blank: /[\t ]/,
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the control characters.
  cntrl: /[\0-\x1f\x7f]/,
  digit: /[0-9]/,
  graph: /[!-~]/,
  lower: /[a-z]/,
  print: /[ -~]/,
  punct: /[!-/:-@[-`{-~]/,
  space: /[\t\n\v\f\r ]/,
  upper: /[A-Z]/,
  word: /[0-9A-Za-z_]/,
  xdigit: /[0-9A-Fa-f]/,
};

const named: Readonly<Record<string, number>> = { a: 7, f: 12, t: 9, n: 10, r: 13, v: 11 };

/** The set in brackets that begins at `from`; undefined when it is not well-formed. */
export function classOf(source: string, from: number): ReadSet | undefined {
  const isNegated = source[from + 1] === '^';
  const tests: Test[] = [];
  const first = from + (isNegated ? 2 : 1);
  for (let at = first; at < source.length; ) {
    // A closing bracket that comes first stands for itself.
    if (source[at] === ']' && at > first) {
      return { test: (point) => tests.some((test) => test(point)) !== isNegated, end: at + 1 };
    }
    const member = posixOf(source, at) ?? rangeOf(source, at);
    if (member === undefined) return undefined;
    tests.push(member.test);
    at = member.end;
  }
  return undefined;
}

/** What a backslash at `from` makes of the characters behind it; undefined when it means nothing in RE2. */
export function escapeOf(source: string, from: number): ReadSet | undefined {
  const letter = source[from + 1] ?? '';
  const set = Object.hasOwn(perl, letter.toLowerCase()) ? perl[letter.toLowerCase()] : undefined;
  if (set !== undefined) return { test: testOf(set, letter !== letter.toLowerCase()), end: from + 2 };
  if (letter === 'p' || letter === 'P') return propertyOf(source, from);
  const code = Object.hasOwn(named, letter) ? named[letter] : undefined;
  if (code !== undefined) return literalOf(code, from + 2);
  // One digit alone would be a back-reference, which RE2 does not know.
  const [octal] = matchAt(/\\(?:0[0-7]{0,2}|[1-7][0-7]{1,2})/y, source, from) ?? [];
  if (octal !== undefined) return literalOf(Number.parseInt(octal.slice(1), 8), from + octal.length);
  const [hexadecimal, digits] = matchAt(/\\x(?:\{([0-9A-Fa-f]{1,6})\}|[0-9A-Fa-f]{2})/y, source, from) ?? [];
  if (hexadecimal !== undefined) {
    const value = Number.parseInt(digits ?? hexadecimal.slice(2), 16);
    return value > 0x10_ff_ff ? undefined : literalOf(value, from + hexadecimal.length);
  }
  return /^[!-/:-@[-`{-~ ]$/.test(letter) ? literalOf(letter.charCodeAt(0), from + 2) : undefined;
}

function posixOf(source: string, from: number): ReadSet | undefined {
  const [text, not, name = ''] = matchAt(/\[:(\^?)([a-z]+):\]/y, source, from) ?? [];
  const set = Object.hasOwn(posix, name) ? posix[name] : undefined;
  return text === undefined || set === undefined ? undefined : { test: testOf(set, not === '^'), end: from + text.length };
}

function rangeOf(source: string, from: number): ReadSet | undefined {
  const low = memberOf(source, from);
  if (low?.literal === undefined || source[low.end] !== '-' || (source[low.end + 1] ?? ']') === ']') return low;
  const high = memberOf(source, low.end + 1);
  const { literal: least } = low;
  const most = high?.literal;
  if (high === undefined || most === undefined || most < least) return undefined;
  return { test: (point) => point >= least && point <= most, end: high.end };
}

function memberOf(source: string, from: number): ReadSet | undefined {
  // The name of a class that does not exist.
  if (matchAt(/\[:\^?[a-z]+:\]/y, source, from) !== undefined) return undefined;
  if (source[from] === '\\') return escapeOf(source, from);
  const point = source.codePointAt(from);
  return point === undefined ? undefined : literalOf(point, from + String.fromCodePoint(point).length);
}

/** `\pL`, `\p{Greek}`, `\P{^Lu}`. */
function propertyOf(source: string, from: number): ReadSet | undefined {
  const [text, letter, not, braced, single] = matchAt(/\\([pP])(?:\{(\^?)([A-Za-z_]+)\}|([A-Z]))/y, source, from) ?? [];
  const name = braced ?? single;
  if (text === undefined || name === undefined) return undefined;
  const isNegated = (letter === 'P') !== (not === '^');
  const set = unicodeSet(`\\p{${name}}`) ?? unicodeSet(`\\p{Script=${name}}`);
  return set === undefined ? undefined : { test: testOf(set, isNegated), end: from + text.length };
}

function unicodeSet(text: string): RegExp | undefined {
  try {
    return new RegExp(text, 'u');
  } catch {
    return undefined;
  }
}

function literalOf(literal: number, end: number): ReadSet {
  return { test: (point) => point === literal, end, literal };
}

/** Of one character, so no pattern of anybody is ever matched by it. */
function testOf(set: RegExp, isNegated: boolean): Test {
  return (point) => set.test(String.fromCodePoint(point)) !== isNegated;
}

function matchAt(expression: RegExp, source: string, from: number): RegExpExecArray | undefined {
  expression.lastIndex = from;
  return expression.exec(source) ?? undefined;
}
