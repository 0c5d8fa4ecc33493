// Reads YAML of the most common form, which most manifests have, much faster than the YAML parser: block maps
// and lists with scalars of one line. Leaves every other text to the parser, so it decides about all that could be read in two ways.
import { yamlLimits } from './scan.ts';
import { booleanWord, refusedKeys } from './value.ts';

interface Line {
  readonly indent: number;
  readonly text: string;
}

/** The lines with content of one document, and the next one. */
interface Reader {
  readonly lines: Line[];
  next: number;
}

/** Thrown for a text of another form. */
class OtherForm extends Error {}

const unusualCharacter = /[^\n -~]/;
const keyWithValue = /^([A-Za-z][\w./-]*):(?: +(.*))?$/;
const comment = / +#.*$/;
const quotedText = /^(?:'([^'\\]*)'|"([^"\\]*)")(?: +#.*)?$/;
const number = /^(?:0|[1-9]\d{0,14})(?:\.\d{1,9})?$/;
/** Texts that start like a number: quantities and versions. */
const likeNumber = /^[1-9]\d*(?:[KMGT]i?|m|s|h|d)$|^\d+\.\d+\.\d[\w.-]*$/;
const words = /^(?:-{0,2}[A-Za-z]|\/)[\w./@%+=-]*(?::[\w./@%+=-]+)*$/;
const flowList = /^\[ ?([\w./-]+(?:, [\w./-]+)*) ?\]$/;
/** The words that YAML reads as other values than text, in any of their forms. */
const otherValue = /^(?:true|false|null)$/i;

/** Returns the values of the documents with content; undefined if the text has another form. */
export function plainYaml(text: string): readonly unknown[] | undefined {
  if (unusualCharacter.test(text) || text.length > yamlLimits.bytes) return undefined;
  try {
    const documents = documentsOf(text).filter(({ lines }) => lines.length > 0);
    return documents.length > yamlLimits.documents ? undefined : documents.map(documentValue);
  } catch (error) {
    if (error instanceof OtherForm) return undefined;
    throw error;
  }
}

function documentsOf(text: string): readonly Reader[] {
  const documents: Reader[] = [{ lines: [], next: 0 }];
  for (const line of text.split('\n')) {
    const content = line.trim();
    if (content === '---' && line.startsWith('-')) documents.push({ lines: [], next: 0 });
    else if (content !== '' && !content.startsWith('#')) documents.at(-1)?.lines.push({ indent: line.indexOf(content), text: content });
  }
  return documents;
}

function documentValue(reader: Reader): unknown {
  const value = nodeAt(reader, reader.lines[0]?.indent ?? 0, 0);
  if (reader.next < reader.lines.length || typeof value !== 'object') throw new OtherForm();
  return value;
}

/** Returns the node that starts at the next line. */
function nodeAt(reader: Reader, indent: number, depth: number): unknown {
  if (depth >= yamlLimits.depth) throw new OtherForm();
  const { text } = lineOf(reader) ?? { text: '' };
  if (isItem(text)) return listAt(reader, indent, depth);
  if (keyWithValue.test(text)) return mapAt(reader, indent, depth);
  reader.next += 1;
  return scalarOf(text);
}

function listAt(reader: Reader, indent: number, depth: number): readonly unknown[] {
  const items: unknown[] = [];
  for (let line = lineOf(reader); line?.indent === indent && isItem(line.text); line = lineOf(reader)) {
    const rest = line.text.slice(1).trimStart();
    if (rest === '' || rest.startsWith('#')) {
      reader.next += 1;
      items.push(below(reader, indent, depth));
    } else {
      // The rest of the line is the first line of a node with a deeper indent.
      const start = indent + line.text.length - rest.length;
      reader.lines[reader.next] = { indent: start, text: rest };
      items.push(nodeAt(reader, start, depth + 1));
    }
    refuseDeeper(reader, indent);
  }
  return items;
}

function mapAt(reader: Reader, indent: number, depth: number): Readonly<Record<string, unknown>> {
  const map: Record<string, unknown> = {};
  for (let line = lineOf(reader); line?.indent === indent && !isItem(line.text); line = lineOf(reader)) {
    const [, key = '', value = ''] = keyWithValue.exec(line.text) ?? [];
    if (key === '' || key.length > 1000 || Object.hasOwn(map, key) || isUnclear(key)) throw new OtherForm();
    reader.next += 1;
    const isEmpty = value === '' || value.startsWith('#');
    const first = lineOf(reader);
    // A list in a map can have the same indent as its key.
    map[key] = !isEmpty
      ? scalarOf(value)
      : first?.indent === indent && isItem(first.text)
        ? listAt(reader, indent, depth + 1)
        : below(reader, indent, depth);
    refuseDeeper(reader, indent);
  }
  return map;
}

/** Returns the node on the next lines if they have a deeper indent, and null otherwise. */
function below(reader: Reader, indent: number, depth: number): unknown {
  const line = lineOf(reader);
  return line !== undefined && line.indent > indent ? nodeAt(reader, line.indent, depth + 1) : null;
}

/** Refuses a deeper line after a node: it would continue a scalar, or be an error. */
function refuseDeeper(reader: Reader, indent: number): void {
  if ((lineOf(reader)?.indent ?? 0) > indent) throw new OtherForm();
}

function lineOf({ lines, next }: Reader): Line | undefined {
  return lines[next];
}

function isItem(text: string): boolean {
  return text === '-' || text.startsWith('- ');
}

function isUnclear(word: string): boolean {
  return otherValue.test(word) || booleanWord.test(word) || refusedKeys.has(word);
}

function scalarOf(text: string): unknown {
  const quoted = quotedText.exec(text);
  if (quoted !== null) return quoted[1] ?? quoted[2];
  const value = text.replace(comment, '');
  if (value === 'true' || value === 'false') return value === 'true';
  if (number.test(value)) return Number(value);
  if (value === '{}') return {};
  if (value === '[]') return [];
  const items = flowList.exec(value)?.[1];
  if (items !== undefined) return items.split(', ').map(scalarOf);
  if (likeNumber.test(value) || value.split(' ').every((word) => words.test(word) && !isUnclear(word))) return value;
  throw new OtherForm();
}
