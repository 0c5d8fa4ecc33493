// The form of a scenario file: comments, and blocks of commands followed by what they printed. Reading and writing it, nothing else.

/** One command: a line, and the indented lines below it. */
export interface Call {
  readonly line: number;
  readonly name: string;
  /** The words of the line that are no options, in order. */
  readonly words: readonly string[];
  /** The words of the form `key=value`. */
  readonly options: Readonly<Record<string, string>>;
  /** The indented lines, without their indentation. */
  readonly body: string;
}

/** Commands that are run together, and what they printed when the file was written. */
interface Block {
  readonly input: readonly string[];
  readonly calls: readonly Call[];
  readonly output: readonly string[];
}

/** A comment or a blank line is kept as it is. */
export type Part = { readonly kind: 'text'; readonly lines: readonly string[] } | { readonly kind: 'block'; readonly block: Block };

const separator = '----';

/** Reads a scenario file. A block ends at a blank line; what stands before `----` is run, what stands after it was printed. */
export function readTranscript(text: string): readonly Part[] {
  const parts: Part[] = [];
  let lineNumber = 1;
  for (const paragraph of text.trimEnd().split('\n\n')) {
    const lines = paragraph.split('\n');
    const comments = lines.findIndex((line) => !line.startsWith('#'));
    const isText = comments === -1;
    const input = isText ? [] : lines.slice(comments);
    if (isText || comments > 0) parts.push({ kind: 'text', lines: isText ? lines : lines.slice(0, comments) });
    if (!isText) parts.push({ kind: 'block', block: readBlock(input, lineNumber + comments) });
    lineNumber += lines.length + 1;
  }
  return parts;
}

/** Writes a scenario file; the inverse of reading it. */
export function writeTranscript(parts: readonly Part[]): string {
  let text = '';
  for (const [index, part] of parts.entries()) {
    const lines = part.kind === 'text' ? part.lines : [...part.block.input, separator, ...part.block.output];
    const isAbove = part.kind === 'text' && parts[index + 1]?.kind === 'block' && index > 0;
    text += `${lines.join('\n')}\n${isAbove ? '' : '\n'}`;
  }
  return `${text.trimEnd()}\n`;
}

function readBlock(lines: readonly string[], firstLine: number): Block {
  const end = lines.indexOf(separator);
  const input = end === -1 ? lines : lines.slice(0, end);
  return { input, calls: readCalls(input, firstLine), output: end === -1 ? [] : lines.slice(end + 1) };
}

function readCalls(input: readonly string[], firstLine: number): readonly Call[] {
  const calls: Call[] = [];
  for (const [index, text] of input.entries()) {
    if (text.startsWith('  ')) continue;
    const next = input.findIndex((line, at) => at > index && !line.startsWith('  '));
    const body = input.slice(index + 1, next === -1 ? undefined : next).map((line) => line.slice(2));
    const [name = '', ...rest] = wordsOf(text);
    const options = rest.filter((word) => word.includes('=')).map((word) => splitAt(word, word.indexOf('=')));
    calls.push({
      line: firstLine + index,
      name,
      words: rest.filter((word) => !word.includes('=')),
      options: Object.fromEntries(options),
      body: body.join('\n'),
    });
  }
  return calls;
}

/** Words are separated by spaces; double quotes keep spaces within a word. */
function wordsOf(text: string): readonly string[] {
  return (text.match(/(?:"[^"]*"|[^\s"])+/g) ?? []).map((word) => word.replaceAll('"', ''));
}

function splitAt(word: string, index: number): readonly [string, string] {
  return [word.slice(0, index), word.slice(index + 1)];
}
