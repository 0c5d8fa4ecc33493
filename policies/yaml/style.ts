// Writes YAML in our style: two spaces, unbroken long lines, and quotes around text that a YAML 1.1 reader would misread.
import { CST, type Document, type DocumentOptions, Lexer, type ParseOptions, type SchemaOptions, type ToStringOptions } from 'yaml';
import { markers } from './scan.ts';

/** The options of a document to write. Text that YAML 1.1 readers such as Kubernetes misread (`on`, `y`, `0777`) is quoted. */
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

/** A flow collection on a line longer than this is written as a block. */
export const longestFlowLine = 120;

/** Returns the document as text. Braces have inner spaces, brackets do not: `{ zones: [a, b] }`. */
export function yamlText(document: Document): string {
  const lexemes = [...new Lexer().lex(document.toString(textStyle))];
  return lexemes
    .filter((lexeme, index) => !markers.has(lexeme) && !isPaddingOfBracket(lexeme, lexemes[index - 1], lexemes[index + 1]))
    .join('');
}

function isPaddingOfBracket(lexeme: string, before: string | undefined, after: string | undefined): boolean {
  if (!/^ +$/.test(lexeme) || before === CST.SCALAR) return false;
  return (before === '[' && after?.startsWith('#') !== true) || (after === ']' && before !== '\n');
}
