// Prints fields of a result by JSONPath, like -o jsonpath and -o custom-columns of kubectl.
import { JSONPath } from 'jsonpath-plus';
import { usageFailure } from '../failure.ts';
import { alignTable } from './text.ts';

/** Fills the expressions in braces, such as `{.groups[*].phase}` and `{"\n"}`. Adds no newline. Throws Failure for an invalid template. */
export function jsonPathText(template: string, document: object): string {
  const text = template.includes('{') ? template : `{${template}}`;
  const filled = text.replace(bracesPattern, (_match, expression: string) => expressionText(expression.trim(), document));
  if (text.replace(bracesPattern, '').includes('{')) throw invalid(template, 'a brace is not closed');
  return filled;
}

/** Returns a note for each expression that finds nothing although its last field is elsewhere in the document. */
export function misplacedPaths(template: string, document: object): readonly string[] {
  const text = template.includes('{') ? template : `{${template}}`;
  const expressions = [...text.matchAll(bracesPattern)].map(([, expression = '']) => expression.trim());
  return expressions.filter((one) => !one.startsWith('"')).flatMap((one) => placeNote(one, [document], (path) => `{${path}}`));
}

/** Returns a note for each column that is empty for every object although its last field is elsewhere in the objects. */
export function misplacedColumns(spec: string, objects: readonly object[]): readonly string[] {
  return columnsIn(spec).flatMap(({ path }) => placeNote(path, objects, (other) => other));
}

/** Returns a note with the place of the last field of the path. A path of a Kubernetes list stands for the same path of a group. */
function placeNote(path: string, objects: readonly object[], shown: (path: string) => string): readonly string[] {
  const name = /(\w+)(?:\[\*\])?$/.exec(path)?.[1];
  if (name === undefined || objects.some((object) => valuesText(path, object, '') !== '')) return [];
  const likely = path.replace(/^\.items\b/, '.groups').replace(/\.metadata(?=\.)/, '.group');
  const places = objects.flatMap((object) => placesOf(name, object));
  const [place] = places.sort((a, b) => Number(b === likely) - Number(a === likely) || a.length - b.length);
  return place === undefined ? [] : [`${shown(path)} finds nothing; the field ${name} is at ${shown(place)}`];
}

/** Returns the paths of the fields with this name: `.groups[*].phase`. */
function placesOf(name: string, json: object): readonly string[] {
  const places: readonly string[] = JSONPath({ path: `$..${name}`, json, wrap: true, eval: 'safe', resultType: 'path' });
  return places.map((place) =>
    place
      .slice(1)
      .replace(/\['(\w+)'\]/g, '.$1')
      .replace(/\[\d+\]/g, '[*]'),
  );
}

const bracesPattern = /\{((?:"(?:[^"\\]|\\.)*"|'[^']*'|[^{}"'])*)\}/g;

function expressionText(expression: string, document: object): string {
  if (/^(?:range\b|end$)/.test(expression))
    throw invalid(`{${expression}}`, 'range and end are not supported; [*] prints every element, and -o custom-columns one line per group');
  if (!expression.startsWith('"')) return valuesText(expression, document, '');
  try {
    return String(JSON.parse(expression));
  } catch {
    throw invalid(expression, 'it is not a text in double quotes');
  }
}

/** Returns one line per object, after a header. Columns are `TITLE:PATH`, separated by commas. Throws Failure for an invalid column. */
export function customColumns(spec: string, objects: readonly object[]): string {
  const columns = columnsIn(spec);
  const rows = objects.map((object) => ({ cells: columns.map(({ path }) => valuesText(path, object, '<none>', ',')) }));
  const shown = columns.map(({ title }) => ({ title, align: 'left' as const }));
  const { header, lines } = alignTable(shown, rows, { width: undefined, ellipsis: '' });
  return [header, ...lines].map((line) => `${line}\n`).join('');
}

function columnsIn(spec: string): readonly { readonly title: string; readonly path: string }[] {
  return spec.split(/,(?=[^,:[\]]+:)/).map((part) => {
    const [, title, path] = /^([^:]+):(.+)$/.exec(part) ?? [];
    if (title === undefined || path === undefined)
      throw invalid(
        `-o custom-columns=${spec}`,
        'each column has a title and a path, as in -o custom-columns=NAME:.group.name,PHASE:.phase',
      );
    return { title, path: path.replace(/^\{(.*)\}$/, '$1') };
  });
}

function valuesText(path: string, object: object, absent: string, separator = ' '): string {
  const rooted = path.startsWith('$') ? path : `$${/^[.[]/.test(path) ? '' : '.'}${path}`;
  const values = found(rooted, object).filter((value) => value !== undefined);
  return values.length === 0
    ? absent
    : values.map((value) => (typeof value === 'object' ? JSON.stringify(value) : String(value))).join(separator);
}

function found(path: string, json: object): readonly unknown[] {
  try {
    // Filters such as [?(@.phase=="Done")] are parsed by the library and never run as code.
    const values: readonly unknown[] = JSONPath({ path, json, wrap: true, eval: 'safe' });
    return values;
  } catch (error) {
    throw invalid(path, error instanceof Error ? error.message : String(error));
  }
}

function invalid(text: string, why: string): Error {
  return usageFailure(`${text} is not valid: ${why}`, 'kubectl rollout-group docs output');
}
