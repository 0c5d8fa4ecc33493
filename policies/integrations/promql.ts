// Checks the syntax of PromQL queries for lint: brackets, strings, operators and operands. Does not check function names and types.

interface QueryProblem {
  /** The problem, as the rest of a sentence about the query. */
  readonly message: string;
  /** The offset from 0 in UTF-16 units. */
  readonly at: number;
}

interface Token {
  readonly kind: 'name' | 'number' | 'text' | 'range' | 'sign' | 'end';
  readonly text: string;
  readonly at: number;
}

/** The error of the parser. Only this file throws and catches it. */
class NotAQuery extends Error {
  readonly at: number;
  constructor(message: string, at: number) {
    super(message);
    this.at = at;
  }
}

/** The maximum nesting depth of a query, so that no text overflows the stack. */
const maxDepth = 100;
const wordOperators: ReadonlySet<string> = new Set(['and', 'or', 'unless', 'atan2', 'default', 'if', 'ifnot']);
const signOperators: ReadonlySet<string> = new Set(['+', '-', '*', '/', '%', '^', '==', '!=', '<=', '>=', '<', '>']);
const matchOperators: ReadonlySet<string> = new Set(['=', '!=', '=~', '!~']);

/** Returns the first syntax problem of a query, or undefined. Accepts a few VictoriaMetrics extensions, such as the operator `default`. */
export function queryProblem(text: string): QueryProblem | undefined {
  try {
    new Reader(tokensOf(text)).query();
    return undefined;
  } catch (error) {
    if (error instanceof NotAQuery) return { message: error.message, at: error.at };
    throw error;
  }
}

const patterns: readonly (readonly [kind: Token['kind'], pattern: RegExp])[] = [
  ['name', /[a-zA-Z_:][a-zA-Z0-9_:.]*/y],
  // Durations are numbers too; an exponent may have a sign.
  ['number', /(?:0[xX][0-9a-fA-F_]+|(?:\d[\d_]*(?:\.[\d_]*)?|\.\d+)(?:[eE][+-]?\d+)?[0-9a-zA-Z.]*)/y],
  ['text', /"(?:[^"\\\n]|\\[^\n])*"|'(?:[^'\\\n]|\\[^\n])*'|`[^`]*`/y],
  ['range', /\[[^[\]]*\]/y],
  ['sign', /==|!=|=~|!~|<=|>=|[-+*/%^<>=(){},@]/y],
];

function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = [];
  const blank = /(?:\s|#[^\n]*)*/y;
  for (let at = 0; ; ) {
    blank.lastIndex = at;
    at += blank.exec(text)?.[0].length ?? 0;
    if (at >= text.length) return [...tokens, { kind: 'end', text: '', at: text.length }];
    const token = tokenAt(text, at);
    if (token === undefined) throw new NotAQuery(strangeText(text, at), at);
    tokens.push(token);
    at += token.text.length;
  }
}

function tokenAt(text: string, at: number): Token | undefined {
  for (const [kind, pattern] of patterns) {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0];
    if (found !== undefined) return { kind, text: found, at };
  }
  return undefined;
}

function strangeText(text: string, at: number): string {
  const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
  if (['"', "'", '`'].includes(character)) return 'has a text that does not end';
  return character === '[' ? 'has a range that does not end' : `has an unexpected ${JSON.stringify(character)}`;
}

class Reader {
  readonly #tokens: readonly Token[];
  #next = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  query(): void {
    if (this.#peek().kind === 'end') throw new NotAQuery('is empty', 0);
    this.#expression();
    if (this.#peek().kind !== 'end') this.#refuse('an operator or the end');
  }

  #peek(): Token {
    return this.#tokens[this.#next] ?? { kind: 'end', text: '', at: 0 };
  }

  /** Takes the next token if it is one of these signs or words; the case of words does not matter. */
  #takes(...texts: readonly string[]): boolean {
    const { kind, text } = this.#peek();
    const isFound = (kind === 'sign' && texts.includes(text)) || (kind === 'name' && texts.includes(text.toLowerCase()));
    if (isFound) this.#next += 1;
    return isFound;
  }

  #takesKind(kind: Token['kind']): boolean {
    const isFound = this.#peek().kind === kind;
    if (isFound) this.#next += 1;
    return isFound;
  }

  #refuse(wanted: string): never {
    const { kind, text, at } = this.#peek();
    throw new NotAQuery(kind === 'end' ? `ends where ${wanted} is missing` : `has ${JSON.stringify(text)} where ${wanted} is missing`, at);
  }

  #needs(sign: string): void {
    if (!this.#takes(sign)) this.#refuse(`"${sign}"`);
  }

  #expression(): void {
    this.#depth += 1;
    if (this.#depth > maxDepth) throw new NotAQuery(`is nested deeper than ${maxDepth} levels`, this.#peek().at);
    this.#operand();
    while (this.#takesOperator()) this.#operand();
    this.#depth -= 1;
  }

  #takesOperator(): boolean {
    const { kind, text } = this.#peek();
    const isOperator = kind === 'sign' ? signOperators.has(text) : kind === 'name' && wordOperators.has(text.toLowerCase());
    if (!isOperator) return false;
    this.#next += 1;
    this.#takes('bool');
    if (this.#takes('on', 'ignoring')) this.#labels();
    if (this.#takes('group_left', 'group_right') && this.#peek().text === '(') this.#labels();
    return true;
  }

  #operand(): void {
    while (this.#takes('+', '-'));
    this.#primary();
    for (;;) {
      if (this.#peek().kind === 'range') this.#range();
      else if (this.#takes('offset')) this.#offset();
      else if (this.#takes('@')) this.#instant();
      else return;
    }
  }

  #primary(): void {
    if (this.#takesKind('number') || this.#takesKind('text')) return;
    if (this.#takes('(')) {
      this.#expression();
      this.#needs(')');
    } else if (this.#peek().text === '{') this.#matchers();
    else if (this.#takesKind('name')) this.#named();
    else this.#refuse('a metric, a number or a bracket');
  }

  #named(): void {
    if (this.#takes('by', 'without')) {
      this.#labels();
      if (this.#peek().text !== '(') this.#refuse('"("');
    }
    if (this.#peek().text === '(') this.#call();
    else if (this.#peek().text === '{') this.#matchers();
  }

  #call(): void {
    this.#needs('(');
    if (!this.#takes(')')) {
      do this.#expression();
      while (this.#takes(','));
      this.#needs(')');
    }
    if (this.#takes('by', 'without')) this.#labels();
  }

  #labels(): void {
    this.#needs('(');
    while (this.#takesKind('name') || this.#takesKind('text')) {
      if (!this.#takes(',')) break;
    }
    this.#needs(')');
  }

  #matchers(): void {
    this.#needs('{');
    while (this.#takesKind('name') || this.#takesKind('text')) {
      const { kind, text } = this.#peek();
      if (kind === 'sign' && matchOperators.has(text)) {
        this.#next += 1;
        if (!this.#takesKind('text')) this.#refuse('a text in quotes');
      } else if (this.#tokens[this.#next - 1]?.kind === 'name') this.#refuse('=, !=, =~ or !~');
      if (!this.#takes(',', 'or')) break;
    }
    this.#needs('}');
  }

  #range(): void {
    const { text, at } = this.#peek();
    if (text.slice(1, -1).trim() === '') throw new NotAQuery('has a range without a duration', at);
    this.#next += 1;
  }

  #offset(): void {
    this.#takes('-', '+');
    if (this.#takes('(')) {
      this.#expression();
      this.#needs(')');
    } else if (!this.#takesKind('number') && !this.#takesKind('name')) this.#refuse('a duration');
  }

  #instant(): void {
    this.#takes('-', '+');
    if (this.#takesKind('number')) return;
    if (this.#takes('(')) this.#expression();
    else if (this.#takesKind('name')) this.#needs('(');
    else this.#refuse('a time');
    this.#needs(')');
  }
}
