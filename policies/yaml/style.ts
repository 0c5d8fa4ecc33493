// How we write YAML: two spaces, long lines left whole, and quotes around what an older YAML reader would not take for text.
import { CST, type Document, type DocumentOptions, Lexer, type ParseOptions, type SchemaOptions, type ToStringOptions } from 'yaml';

/**
 * Options of a document that is to be written. Kubernetes reads YAML with rules of version 1.1, in which `on`, `y` and `0777` are no
 * texts, so such texts are quoted.
 */
export const documentStyle = { version: '1.2', compat: 'yaml-1.1', logLevel: 'silent' } as const satisfies DocumentOptions &
  SchemaOptions &
  ParseOptions;

const textStyle = {
  indent: 2,
  indentSeq: true,
  lineWidth: 0,
  flowCollectionPadding: true,
  nullStr: 'null',
} as const satisfies ToStringOptions;

/** A flow collection on a longer line is written as a block. */
export const longestFlowLine = 120;

/** The document as text. Braces stand apart from what they hold, brackets do not: `{ zones: [a, b] }`. */
export function yamlText(document: Document): string {
  const lexemes = [...new Lexer().lex(document.toString(textStyle))];
  return lexemes
    .filter((lexeme, index) => !markers.has(lexeme) && !isPaddingOfBracket(lexeme, lexemes[index - 1], lexemes[index + 1]))
    .join('');
}

/** Lexemes that only steer the parser and stand for no text. */
const markers: ReadonlySet<string> = new Set([CST.DOCUMENT, CST.FLOW_END, CST.SCALAR]);

function isPaddingOfBracket(lexeme: string, before: string | undefined, after: string | undefined): boolean {
  if (!/^ +$/.test(lexeme) || before === CST.SCALAR) return false;
  return (before === '[' && after?.startsWith('#') !== true) || (after === ']' && before !== '\n');
}
