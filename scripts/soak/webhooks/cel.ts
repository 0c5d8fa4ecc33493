// Evaluates the part of CEL that the match conditions of our webhooks use, as API servers do.
import { isObject, isSame } from '../../../simulation/server/json.ts';

type Scope = Readonly<Record<string, unknown>>;

/** A compiled expression. Throws CelError, for example for an absent field. */
type Evaluate = (scope: Scope) => unknown;

class CelError extends Error {
  override readonly name = 'CelError';
}

/** Returns a function that evaluates the expression. It returns undefined if the expression fails. Throws for an unknown syntax. */
export function compileCel(expression: string): (scope: Scope) => boolean | undefined {
  const parser = new Parser(expression);
  const evaluate = parser.whole();
  return (scope) => {
    try {
      return evaluate(scope) === true;
    } catch (error) {
      if (error instanceof CelError) return undefined;
      throw error;
    }
  };
}

const token = /\s*(?:(\d+)|'([^']*)'|([A-Za-z_]\w*)|(&&|\|\||[=!<>]=|[-+!<>?:.,()[\]{}]))/y;

interface Token {
  readonly kind: 'number' | 'text' | 'name' | 'sign' | 'end';
  readonly text: string;
}

function tokensOf(expression: string): readonly Token[] {
  const tokens: Token[] = [];
  token.lastIndex = 0;
  while (token.lastIndex < expression.trimEnd().length) {
    const at = token.lastIndex;
    const [, number, text, name, sign] = token.exec(expression) ?? [];
    if (number !== undefined) tokens.push({ kind: 'number', text: number });
    else if (text !== undefined) tokens.push({ kind: 'text', text });
    else if (name !== undefined) tokens.push({ kind: 'name', text: name });
    else if (sign !== undefined) tokens.push({ kind: 'sign', text: sign });
    else throw new Error(`unknown CEL at ${at}: ${expression}`);
  }
  return [...tokens, { kind: 'end', text: '' }];
}

class Parser {
  readonly #expression: string;
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(expression: string) {
    this.#expression = expression;
    this.#tokens = tokensOf(expression);
  }

  whole(): Evaluate {
    const evaluate = this.#choice();
    if (this.#next().kind !== 'end') throw this.#unknown();
    return evaluate;
  }

  #choice(): Evaluate {
    const condition = this.#or();
    if (!this.#takes('?')) return condition;
    const yes = this.#choice();
    this.#take(':');
    const no = this.#choice();
    return (scope) => (condition(scope) === true ? yes(scope) : no(scope));
  }

  #or(): Evaluate {
    let left = this.#and();
    while (this.#takes('||')) left = joined(left, this.#and(), true);
    return left;
  }

  #and(): Evaluate {
    let left = this.#relation();
    while (this.#takes('&&')) left = joined(left, this.#relation(), false);
    return left;
  }

  #relation(): Evaluate {
    const left = this.#sum();
    const { kind, text } = this.#next();
    const compare = kind === 'sign' || text === 'in' ? relations[text] : undefined;
    if (compare === undefined) return left;
    this.#at += 1;
    const right = this.#sum();
    return (scope) => compare(left(scope), right(scope));
  }

  #sum(): Evaluate {
    let left = this.#unary();
    while (this.#takes('+')) {
      const [first, second] = [left, this.#unary()];
      left = (scope) => (first(scope) as string) + (second(scope) as string);
    }
    return left;
  }

  #unary(): Evaluate {
    if (!this.#takes('!')) return this.#selection();
    const operand = this.#unary();
    return (scope) => operand(scope) !== true;
  }

  #selection(): Evaluate {
    let value = this.#primary();
    for (;;) {
      if (this.#takes('[')) {
        const [object, key] = [value, this.#choice()];
        this.#take(']');
        value = (scope) => fieldOf(object(scope), `${key(scope)}`);
      } else if (this.#takes('.')) {
        const [object, name] = [value, this.#name()];
        value = this.#takes('(') ? this.#method(object, name) : (scope) => fieldOf(object(scope), name);
      } else return value;
    }
  }

  #method(object: Evaluate, name: string): Evaluate {
    if (name === 'exists' || name === 'map') {
      const variable = this.#name();
      this.#take(',');
      const body = this.#closed();
      const inside = (scope: Scope) => (item: unknown) => body({ ...scope, [variable]: item });
      return name === 'map'
        ? (scope) => itemsOf(object(scope)).map(inside(scope))
        : (scope) => itemsOf(object(scope)).some((item) => inside(scope)(item) === true);
    }
    const given = this.#closed();
    if (name === 'startsWith') return (scope) => `${object(scope)}`.startsWith(`${given(scope)}`);
    if (name === 'matches') return (scope) => new RegExp(`${given(scope)}`).test(`${object(scope)}`);
    throw this.#unknown();
  }

  #primary(): Evaluate {
    const { kind, text } = this.#next();
    this.#at += 1;
    if (kind === 'number') return () => Number(text);
    if (kind === 'text') return () => text;
    if (kind === 'name') return text === 'has' ? this.#has() : (scope) => fieldOf(scope, text);
    if (text === '(') return this.#closed();
    if (text === '[') return this.#list();
    if (text === '{' && this.#takes('}')) return () => ({});
    throw this.#unknown();
  }

  #has(): Evaluate {
    this.#take('(');
    const path = [this.#name()];
    while (this.#takes('.')) path.push(this.#name());
    this.#take(')');
    const last = path.pop() ?? '';
    return (scope) => {
      const object = path.reduce<unknown>(fieldOf, scope);
      return isObject(object) && object[last] !== undefined;
    };
  }

  #list(): Evaluate {
    const items: Evaluate[] = [];
    while (!this.#takes(']')) {
      items.push(this.#choice());
      this.#takes(',');
    }
    return (scope) => items.map((item) => item(scope));
  }

  #closed(): Evaluate {
    const value = this.#choice();
    this.#take(')');
    return value;
  }

  #name(): string {
    const { kind, text } = this.#next();
    if (kind !== 'name') throw this.#unknown();
    this.#at += 1;
    return text;
  }

  #next(): Token {
    return this.#tokens[this.#at] ?? { kind: 'end', text: '' };
  }

  #takes(sign: string): boolean {
    const { kind, text } = this.#next();
    if (kind !== 'sign' || text !== sign) return false;
    this.#at += 1;
    return true;
  }

  #take(sign: string): void {
    if (!this.#takes(sign)) throw this.#unknown();
  }

  #unknown(): Error {
    return new Error(`unknown CEL near ${JSON.stringify(this.#next().text)}: ${this.#expression}`);
  }
}

const relations: Readonly<Record<string, (left: unknown, right: unknown) => boolean>> = {
  '==': isSame,
  '!=': (left, right) => !isSame(left, right),
  '<': (left, right) => Number(left) < Number(right),
  '>': (left, right) => Number(left) > Number(right),
  in: (left, right) => (Array.isArray(right) ? right.includes(left) : isObject(right) && Object.hasOwn(right, `${left}`)),
};

/** Joins two conditions. An error counts only if the other condition does not decide. */
function joined(left: Evaluate, right: Evaluate, deciding: boolean): Evaluate {
  return (scope) => {
    let failure: unknown;
    try {
      if ((left(scope) === true) === deciding) return deciding;
    } catch (error) {
      failure = error;
    }
    if ((right(scope) === true) === deciding) return deciding;
    if (failure !== undefined) throw failure;
    return !deciding;
  };
}

function fieldOf(object: unknown, name: string): unknown {
  const value = isObject(object) ? object[name] : undefined;
  if (value === undefined) throw new CelError(`no such key: ${name}`);
  return value;
}

/** Returns the items of a list, or the keys of an object. */
function itemsOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  if (isObject(value)) return Object.keys(value);
  throw new CelError('no list');
}
