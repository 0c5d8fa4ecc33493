// The syntax of RE2 (https://github.com/google/re2/wiki/Syntax, as Go reads it): text to a tree, or what is wrong with the text.

import { defined } from '../values/defined.ts';
import { classOf, escapeOf, type Test } from './linear-pattern-class.ts';

export type PatternNode =
  | { readonly kind: 'empty' }
  | { readonly kind: 'character'; readonly test: Test }
  | { readonly kind: 'assertion'; readonly what: Assertion }
  | { readonly kind: 'group'; readonly index: number; readonly node: PatternNode }
  | { readonly kind: 'sequence'; readonly nodes: readonly PatternNode[] }
  | { readonly kind: 'choice'; readonly nodes: readonly PatternNode[] }
  | {
      readonly kind: 'repeat';
      readonly node: PatternNode;
      readonly least: number;
      /** No end when absent. */
      readonly most?: number;
      readonly isLazy: boolean;
    };

export type Assertion = 'textBegin' | 'textEnd' | 'lineBegin' | 'lineEnd' | 'wordBoundary' | 'noWordBoundary';

type ParsedPattern = { readonly problem: string } | { readonly root: PatternNode; readonly groupCount: number };

/** As in RE2. */
const mostRepeats = 1000;
/** Far beyond what a pattern of pod names needs, and no danger to the stack. */
const mostDepth = 100;

const foreign = 'uses look-around or a back-reference';
const malformed = 'does not compile';

/** Never throws. */
export function parsePattern(source: string): ParsedPattern {
  const parser = new Parser(source);
  const root = parser.whole();
  return parser.problem === undefined ? { root, groupCount: parser.groupCount } : { problem: parser.problem };
}

interface Flags {
  readonly ignoresCase: boolean;
  readonly hasLines: boolean;
  readonly dotTakesNewline: boolean;
  readonly isLazy: boolean;
}

const noFlags: Flags = { ignoresCase: false, hasLines: false, dotTakesNewline: false, isLazy: false };
const flagNames: Readonly<Record<string, keyof Flags>> = { i: 'ignoresCase', m: 'hasLines', s: 'dotTakesNewline', U: 'isLazy' };

/** Recursive descent. After the first problem nothing more is read. */
class Parser {
  readonly #source: string;
  readonly #names = new Set<string>();
  #at = 0;
  #flags = noFlags;
  #depth = 0;
  groupCount = 0;
  problem: string | undefined;

  constructor(source: string) {
    this.#source = source;
  }

  whole(): PatternNode {
    const node = this.#choice();
    // A bracket that closes nothing.
    if (this.#at < this.#source.length) this.#fail(malformed);
    return node;
  }

  #fail(problem: string): PatternNode {
    this.problem ??= problem;
    this.#at = this.#source.length;
    return { kind: 'empty' };
  }

  #choice(): PatternNode {
    const nodes = [this.#sequence()];
    while (this.#take('|')) nodes.push(this.#sequence());
    const [only] = nodes;
    return nodes.length === 1 && only !== undefined ? only : { kind: 'choice', nodes };
  }

  #sequence(): PatternNode {
    const nodes: PatternNode[] = [];
    while (this.#at < this.#source.length && !this.#isNext('|') && !this.#isNext(')')) nodes.push(this.#repeated(this.#atom()));
    const [only] = nodes;
    return nodes.length === 1 && only !== undefined ? only : { kind: 'sequence', nodes };
  }

  #repeated(node: PatternNode): PatternNode {
    const counts = this.#counts();
    if (counts === undefined) return node;
    const isLazy = this.#take('?') !== this.#flags.isLazy;
    const { least, most } = counts;
    if (Math.max(least, most ?? 0) > mostRepeats || (most !== undefined && most < least)) return this.#fail(malformed);
    // `a**` and `a+{2}` are mistakes, not repetitions of repetitions.
    if (this.#counts() !== undefined) return this.#fail(malformed);
    return { kind: 'repeat', node, least, isLazy, ...defined({ most }) };
  }

  /** How often what was read is repeated; undefined when no operator follows. */
  #counts(): { readonly least: number; readonly most?: number } | undefined {
    if (this.#take('*')) return { least: 0 };
    if (this.#take('+')) return { least: 1 };
    if (this.#take('?')) return { least: 0, most: 1 };
    // Braces that hold no numbers stand for themselves.
    const [text, least, comma, most] = this.#match(/\{(\d{1,5})(,?)(\d{0,5})\}/y) ?? [];
    if (text === undefined || (comma === '' && most !== '')) return undefined;
    this.#at += text.length;
    if (comma === '') return { least: Number(least), most: Number(least) };
    return { least: Number(least), ...(most === '' ? {} : { most: Number(most) }) };
  }

  #atom(): PatternNode {
    const first = String.fromCodePoint(this.#source.codePointAt(this.#at) ?? 0);
    switch (first) {
      case '(':
        return this.#group();
      case '[': {
        const read = classOf(this.#source, this.#at);
        if (read === undefined) return this.#fail(malformed);
        this.#at = read.end;
        return this.#character(read.test);
      }
      case '\\':
        return this.#escaped();
      case '*':
      case '+':
      case '?':
        return this.#fail(malformed);
      default:
        this.#at += first.length;
    }
    if (first === '^') return { kind: 'assertion', what: this.#flags.hasLines ? 'lineBegin' : 'textBegin' };
    if (first === '$') return { kind: 'assertion', what: this.#flags.hasLines ? 'lineEnd' : 'textEnd' };
    const { dotTakesNewline } = this.#flags;
    if (first === '.') return { kind: 'character', test: (point) => dotTakesNewline || point !== 10 };
    const literal = first.codePointAt(0);
    return this.#character((point) => point === literal);
  }

  #character(test: Test): PatternNode {
    if (!this.#flags.ignoresCase) return { kind: 'character', test };
    const folded = (point: number, fold: (text: string) => string): number => fold(String.fromCodePoint(point)).codePointAt(0) ?? point;
    const lower = (point: number): number => folded(point, (text) => text.toLowerCase());
    const upper = (point: number): number => folded(point, (text) => text.toUpperCase());
    return { kind: 'character', test: (point) => test(point) || test(lower(point)) || test(upper(point)) };
  }

  #escaped(): PatternNode {
    const next = this.#source[this.#at + 1] ?? '';
    const assertions: Readonly<Record<string, Assertion>> = { A: 'textBegin', z: 'textEnd', b: 'wordBoundary', B: 'noWordBoundary' };
    const what = Object.hasOwn(assertions, next) ? assertions[next] : undefined;
    if (what !== undefined) {
      this.#at += 2;
      return { kind: 'assertion', what };
    }
    if (next === 'Q') return this.#quoted();
    const read = escapeOf(this.#source, this.#at);
    if (read === undefined) return this.#fail(/[1-9k]/.test(next) ? foreign : malformed);
    this.#at = read.end;
    return this.#character(read.test);
  }

  /** `\Q...\E`: everything between stands for itself, to the end of the pattern without `\E`. */
  #quoted(): PatternNode {
    const from = this.#at + 2;
    const end = this.#source.indexOf('\\E', from);
    const text = this.#source.slice(from, end < 0 ? undefined : end);
    this.#at = end < 0 ? this.#source.length : end + 2;
    const nodes = Array.from(text, (character) => this.#character((point) => point === character.codePointAt(0)));
    const last = nodes.at(-1);
    // An operator behind it repeats the last character alone.
    return last === undefined ? { kind: 'empty' } : { kind: 'sequence', nodes: [...nodes.slice(0, -1), this.#repeated(last)] };
  }

  #group(): PatternNode {
    if (this.#match(/\(\?<?[=!]/y) !== undefined) return this.#fail(foreign);
    const before = this.#flags;
    const flags = this.#match(/\(\?([imsU]*)(?:-([imsU]+))?([:)])/y);
    if (flags !== undefined) {
      const [text, on = '', off = '', end] = flags;
      this.#at += text.length;
      this.#flags = { ...before, ...flagsOf(on, true), ...flagsOf(off, false) };
      // Without a colon they hold up to the end of the group around.
      return end === ')' ? { kind: 'empty' } : this.#inside(before);
    }
    const name = this.#match(/\(\?P?<([A-Za-z0-9_]+)>/y);
    const text = name?.[0] ?? '(';
    const label = name?.[1];
    if (name === undefined && this.#source[this.#at + 1] === '?') return this.#fail(malformed);
    if (label !== undefined && this.#names.has(label)) return this.#fail(malformed);
    if (label !== undefined) this.#names.add(label);
    this.#at += text.length;
    this.groupCount += 1;
    const index = this.groupCount;
    return { kind: 'group', index, node: this.#inside(before) };
  }

  /** What stands in a group, up to its end; afterwards the flags are those of before. */
  #inside(before: Flags): PatternNode {
    this.#depth += 1;
    if (this.#depth > mostDepth) return this.#fail('is nested too deep');
    const node = this.#choice();
    this.#depth -= 1;
    this.#flags = before;
    return this.#take(')') ? node : this.#fail(malformed);
  }

  #match(expression: RegExp): RegExpExecArray | undefined {
    expression.lastIndex = this.#at;
    return expression.exec(this.#source) ?? undefined;
  }

  #isNext(text: string): boolean {
    return this.#source.startsWith(text, this.#at);
  }

  #take(text: string): boolean {
    const isNext = this.#isNext(text);
    if (isNext) this.#at += text.length;
    return isNext;
  }
}

function flagsOf(letters: string, value: boolean): Partial<Flags> {
  return Object.fromEntries([...letters].flatMap((letter) => (flagNames[letter] === undefined ? [] : [[flagNames[letter], value]])));
}
