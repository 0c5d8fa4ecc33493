// Finds tests in the source of a file by their titles, and reports why a test proves nothing.

/** Names a test by its file, and its title or that of its suite. */
export interface NamedTest {
  readonly file: string;
  readonly title: string;
}

/** Names the tests of one file. */
export const of =
  (file: string) =>
  (...titles: readonly string[]): readonly NamedTest[] =>
    titles.map((title) => ({ file, title }));

/** One `describe`, `it` or `test` of a file. */
interface Block {
  /** The title as in the source; for a template the text between the backticks. */
  readonly title: string;
  readonly isSuite: boolean;
  /** `.skip`, `.each` and other modifiers in their order. */
  readonly modifiers: readonly string[];
  /** The arguments of the modifiers, without texts and comments. */
  readonly tables: readonly string[];
  readonly startsAt: number;
  readonly endsAt: number;
  /** The code of the block, without texts and comments. */
  readonly body: string;
}

const notRun = ['skip', 'todo', 'skipIf', 'runIf', 'fails'];
const asserts = /\b(?:expect|assert)\w*\s*(?:[.(]|<)/;

/** Returns why the test with this title proves nothing; undefined if it does. A suite needs at least one test that proves something. */
export function defectOf(source: string, title: string): string | undefined {
  const blocks = blocksOf(source);
  const named = blocks.filter((block) => block.title === title);
  if (named.length === 0) return 'there is no test of this title';
  return named.map((block) => defectIn(block, blocks)).find((defect) => defect !== undefined);
}

function defectIn(block: Block, blocks: readonly Block[]): string | undefined {
  const around = blocks.filter((other) => other.isSuite && other.startsAt < block.startsAt && other.endsAt >= block.endsAt);
  const modifier = [block, ...around].flatMap(({ modifiers }) => modifiers).find((one) => notRun.includes(one));
  if (modifier !== undefined) return `it is not run always (.${modifier})`;
  if ([block, ...around].some(({ tables }) => tables.some((table) => /^\s*\[\s*\]\s*$/.test(table)))) return 'its table is empty';
  if (!block.isSuite) return asserts.test(block.body) ? undefined : 'nothing is expected in it';
  const inside = blocks.filter((other) => !other.isSuite && other.startsAt > block.startsAt && other.endsAt <= block.endsAt);
  if (inside.length === 0) return 'it has no tests';
  return inside.map((one) => defectIn(one, blocks)).find((defect) => defect !== undefined);
}

/** Returns the blocks with a literal title, in their order. */
function blocksOf(source: string): readonly Block[] {
  const code = withoutTexts(source);
  const blocks: Block[] = [];
  for (const found of code.matchAll(/(?<![.\w$])(describe\w*|it|test)(?=\s*[.(<])/g)) {
    const block = blockAt(source, code, { name: found[1] ?? '', startsAt: found.index });
    if (block !== undefined) blocks.push(block);
  }
  return blocks;
}

function blockAt(
  source: string,
  code: string,
  { name, startsAt }: { readonly name: string; readonly startsAt: number },
): Block | undefined {
  const modifiers: string[] = [];
  const tables: string[] = [];
  let at = startsAt + name.length;
  for (;;) {
    const rest = code.slice(at);
    const modifier = /^\s*\.\s*(\w+)/.exec(rest);
    if (modifier !== null) {
      modifiers.push(modifier[1] ?? '');
      at += modifier[0].length;
      continue;
    }
    const opening = /^\s*[<(]/.exec(rest);
    if (opening === null) return undefined;
    const opensAt = at + opening[0].length - 1;
    const closesAt = closing(code, opensAt);
    if (closesAt === undefined) return undefined;
    if (code[opensAt] === '<') {
      at = closesAt + 1;
      continue;
    }
    const title = titleAt(source, opensAt + 1);
    if (title !== undefined && !/^\s*\(/.test(code.slice(closesAt + 1))) {
      const body = code.slice(opensAt + 1, closesAt);
      return { title, isSuite: name.startsWith('describe'), modifiers, tables, startsAt, endsAt: closesAt, body };
    }
    tables.push(code.slice(opensAt + 1, closesAt));
    at = closesAt + 1;
  }
}

function titleAt(source: string, from: number): string | undefined {
  const literal = /^\s*(?:'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`)/.exec(source.slice(from));
  if (literal === null) return undefined;
  return (literal[1] ?? literal[2] ?? literal[3] ?? '').replace(/\\(.)/g, '$1');
}

const brackets: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' };

/** Returns where the bracket at `opensAt` closes. `<` and `>` count as brackets only if the first bracket is `<`, and not in arrows. */
function closing(code: string, opensAt: number): number | undefined {
  const pairs = code[opensAt] === '<' ? { ...brackets, '<': '>' } : brackets;
  const open: string[] = [];
  for (let at = opensAt; at < code.length; at++) {
    const character = code[at] ?? '';
    const partner = pairs[character];
    if (partner !== undefined) open.push(partner);
    else if (character === '>' && code[at - 1] === '=') continue;
    else if (character === open.at(-1)) {
      open.pop();
      if (open.length === 0) return at;
    }
  }
  return undefined;
}

/** Returns the source with blanks instead of the content of texts, templates, regular expressions and comments. Its length is unchanged. */
function withoutTexts(source: string): string {
  let code = '';
  let at = 0;
  const blank = (length: number): void => {
    code += source.slice(at, at + length).replace(/[^\n]/g, ' ');
    at += length;
  };
  while (at < source.length) {
    const rest = source.slice(at, at + 20_000);
    const passed =
      /^\/\/[^\n]*/.exec(rest) ??
      /^\/\*[\s\S]*?\*\//.exec(rest) ??
      /^(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")/.exec(rest) ??
      (rest.startsWith('`') ? /^`(?:[^`\\]|\\[\s\S])*`/.exec(rest) : null) ??
      (mayBeginRegex(code) ? /^\/(?![*/])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/\w*/.exec(rest) : null);
    if (passed !== null) blank(passed[0].length);
    else {
      code += source[at] ?? '';
      at += 1;
    }
  }
  return code;
}

/** After a value a slash is a division, not the start of a regular expression. */
function mayBeginRegex(code: string): boolean {
  const before = code.trimEnd();
  return before === '' || /(?:[(,=:[!&|?{};<>+*%~^-]|\breturn|\btypeof)$/.test(before.slice(-12));
}
