// Scans a YAML text before values are built: checks limits, and lists every tag, anchor and alias.
import { CST, Lexer, Parser } from 'yaml';
import { type Finding, finding } from '../findings/finding.ts';
import { placeOf, type TextLines } from './text-lines.ts';

/** The limits of one YAML file. All except `expandedNodes` apply before the text is composed into values. */
export const yamlLimits = {
  bytes: 1_048_576,
  documents: 500,
  depth: 64,
  aliases: 1000,
  /** The maximum number of values to which the aliases of one document may expand. */
  expandedNodes: 10_000,
} as const;

/** A tag, anchor or alias as written in the text. */
export interface NodeProperty {
  readonly kind: 'tag' | 'anchor' | 'alias';
  readonly source: string;
  readonly offset: number;
}

interface YamlScan {
  readonly tokens: readonly CST.Token[];
  readonly properties: readonly NodeProperty[];
  /** The finding about an exceeded limit. There are then no tokens and no properties. */
  readonly refused?: Finding;
}

const collections: ReadonlySet<string> = new Set(['block-map', 'block-seq', 'flow-collection']);
/** The lexemes that only control the parser and represent no text. */
export const markers: ReadonlySet<string> = new Set([CST.DOCUMENT, CST.FLOW_END, CST.SCALAR]);

/** Returns the tokens of a text. Stops at a limit, because composing is recursive and deep nesting would exhaust the stack. */
export function scanYaml(lines: TextLines): YamlScan {
  const bytes = new TextEncoder().encode(lines.text).length;
  if (bytes > yamlLimits.bytes) {
    return refuse(lines, 'RG1001', 0, `the file has ${bytes} bytes; at most ${yamlLimits.bytes} are allowed`);
  }
  const parser = new Parser();
  const tokens: CST.Token[] = [];
  const properties: NodeProperty[] = [];
  const counts = { documents: 0, aliases: 0 };
  let offset = 0;
  let previous = '';
  for (const lexeme of new Lexer().lex(lines.text)) {
    const kind = previous === CST.SCALAR ? undefined : propertyKind(lexeme);
    if (kind !== undefined) properties.push({ kind, source: lexeme, offset });
    if (kind === 'alias') counts.aliases += 1;
    counts.documents += moveTokens(parser.next(lexeme), tokens);
    const limit = brokenLimit(parser, counts);
    if (limit) return refuse(lines, limit[0], offset, limit[1]);
    if (!markers.has(lexeme)) offset += lexeme.length;
    previous = lexeme;
  }
  tokens.push(...parser.end());
  return { tokens, properties };
}

/** Moves the tokens to the end of the list, and returns the number of documents among them. */
function moveTokens(tokens: Iterable<CST.Token>, to: CST.Token[]): number {
  let documents = 0;
  for (const token of tokens) {
    to.push(token);
    if (token.type === 'document') documents += 1;
  }
  return documents;
}

const propertyKinds: Readonly<Record<string, NodeProperty['kind']>> = { '!': 'tag', '&': 'anchor', '*': 'alias' };

function propertyKind(lexeme: string): NodeProperty['kind'] | undefined {
  return propertyKinds[lexeme.charAt(0)];
}

function brokenLimit({ stack }: Parser, { documents, aliases }: { readonly documents: number; readonly aliases: number }) {
  if (stack.length > yamlLimits.depth && stack.filter(({ type }) => collections.has(type)).length > yamlLimits.depth) {
    return ['RG1003', `the document is nested more than ${yamlLimits.depth} deep`] as const;
  }
  if (documents >= yamlLimits.documents && documents + (stack[0]?.type === 'document' ? 1 : 0) > yamlLimits.documents) {
    return ['RG1002', `the file has more than ${yamlLimits.documents} documents`] as const;
  }
  if (aliases > yamlLimits.aliases) return ['RG1007', `the file has more than ${yamlLimits.aliases} aliases`] as const;
  return undefined;
}

function refuse(lines: TextLines, code: 'RG1001' | 'RG1002' | 'RG1003' | 'RG1007', offset: number, message: string): YamlScan {
  return { tokens: [], properties: [], refused: finding(code, placeOf(lines, offset, offset, ''), message) };
}
