// Defines findings about policies and manifests, sorts them, and renders them for a terminal.
import type { Source } from '../definition.ts';
import { withoutAddressCredentials } from '../text/credentials.ts';
import { compareText } from '../values/compare-text.ts';
import { defined } from '../values/defined.ts';
import { type FindingCode, findingCodes } from './codes.ts';

export type Severity = 'error' | 'warning' | 'notice';

export interface ExcerptLine {
  /** The line, from 1. */
  readonly line: number;
  readonly text: string;
}

/** The place of a finding. For an object from a cluster, `file` is empty, line and column are 0, and `object` has the name. */
export interface Place {
  readonly file: string;
  /** The line, from 1; 0 without a file. */
  readonly line: number;
  /** The column, from 1, in UTF-16 units; 0 without a file. */
  readonly column: number;
  /** The column after the last character, if the value ends on the same line. */
  readonly endColumn?: number;
  /** The JSON pointer (RFC 6901) into the document; empty for the document itself. */
  readonly pointer: string;
  /** The object, as `kind namespace/name`; absent if unknown. */
  readonly object?: string;
  /** The line of the place. The line before it comes first, unless that line is empty. */
  readonly excerpt?: readonly ExcerptLine[];
}

export interface Finding extends Place {
  readonly code: FindingCode;
  readonly severity: Severity;
  /** The message: one sentence without a full stop, subject first. */
  readonly message: string;
  /** The fix, in a few words. */
  readonly hint?: string;
  readonly related?: readonly Source[];
}

interface FindingOptions {
  readonly hint?: string | undefined;
  readonly severity?: Severity | undefined;
  readonly related?: readonly Source[] | undefined;
}

/** Returns a finding with the severity and hint of its code, unless the options replace them. Masks the credentials of quoted addresses. */
export function finding(code: FindingCode, place: Place, message: string, options: FindingOptions = {}): Finding {
  const entry = findingCodes[code];
  const hint = options.hint ?? entry.hint;
  return {
    code,
    severity: options.severity ?? entry.severity,
    message: withoutAddressCredentials(message),
    ...place,
    ...defined({ hint: hint === undefined ? undefined : withoutAddressCredentials(hint) }),
    ...(options.related?.length ? { related: options.related } : {}),
  };
}

/** Returns the place of a field of an object from a cluster. */
export function objectPlace(object: string, path: readonly (string | number)[] = []): Place {
  return { file: '', line: 0, column: 0, pointer: jsonPointer(path), object };
}

/** Converts the place of a finding to the source of a setting. */
export function sourceOf(place: Place): Source {
  return {
    ...(place.file === '' ? {} : { file: place.file, line: place.line, column: place.column }),
    ...defined({ object: place.object }),
    ...(place.file === '' && place.pointer !== '' ? { field: pointerText(place.pointer) } : {}),
  };
}

export function jsonPointer(path: readonly (string | number)[]): string {
  return path.map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** Sorts findings by file, object, line, column and code. Drops repeats, which have the same code, message and place. */
export function sortFindings(findings: readonly Finding[]): readonly Finding[] {
  const sorted = [...findings].sort(
    (a, b) =>
      compareText(a.file, b.file) ||
      compareText(a.object ?? '', b.object ?? '') ||
      a.line - b.line ||
      a.column - b.column ||
      compareText(a.code, b.code) ||
      compareText(a.pointer, b.pointer) ||
      compareText(a.message, b.message),
  );
  return sorted.filter((one, index) => {
    const before = sorted[index - 1];
    return !before || before.code !== one.code || before.message !== one.message || placeText(before) !== placeText(one);
  });
}

export function countFindings(findings: readonly Finding[]): Readonly<Record<Severity, number>> {
  const counts = { error: 0, warning: 0, notice: 0 };
  for (const { severity } of findings) counts[severity] += 1;
  return counts;
}

/** Returns `file:line:column`, or the name of the object and its field for a place without a file. */
export function placeText(place: Place): string {
  if (place.file !== '') return `${place.file}:${place.line}:${place.column}`;
  const field = place.pointer === '' ? '' : ` ${pointerText(place.pointer)}`;
  return `${place.object ?? 'unknown object'}${field}`;
}

/** Returns a JSON pointer as a path: `spec.rollout.waves[0].zones`. */
export function pointerText(pointer: string): string {
  const keys = pointer
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
  return keys.reduce((text, key) => (/^\d+$/.test(key) ? `${text}[${key}]` : text === '' ? key : `${text}.${key}`), '');
}

type Paint = (part: 'place' | Severity | 'code' | 'caret' | 'hint', text: string) => string;

const plain: Paint = (_part, text) => text;

/** The maximum length of an excerpt line. The beginning of a line is cut only if the caret would be right of the middle. */
const excerptWidth = 110;

/** Returns the text of a finding. Control and bidirectional characters are escaped, so that a file cannot control the terminal. */
export function renderFinding(finding: Finding, paint: Paint = plain): string {
  const head = [
    paint('place', visible(placeText(finding))),
    paint(finding.severity, finding.severity),
    paint('code', finding.code),
    visible(finding.message),
  ].join(' ');
  const related = (finding.related ?? []).map(
    (source) => `   see ${visible(source.file ? `${source.file}:${source.line ?? 1}:${source.column ?? 1}` : (source.object ?? ''))}`,
  );
  const hint = finding.hint === undefined ? [] : [paint('hint', `   fix: ${visible(finding.hint)}`)];
  return [head, ...renderExcerpt(finding, paint), ...related, ...hint].join('\n');
}

function renderExcerpt(place: Place, paint: Paint): readonly string[] {
  const lines = place.excerpt ?? [];
  const last = lines.at(-1);
  if (!last) return [];
  const width = Math.max(4, String(last.line).length + 1);
  const cut = Math.max(0, place.column - 1 - Math.floor(excerptWidth / 2));
  const shown = (text: string) => visible(text.slice(cut, cut + excerptWidth)).trimEnd();
  const caretStart = visible(last.text.slice(cut, place.column - 1)).length;
  const marked = last.text.slice(place.column - 1, Math.min(place.endColumn ?? place.column, cut + excerptWidth + 1) - 1);
  const caret = '^'.repeat(Math.max(1, visible(marked).length));
  // The line before gives no context if the beginning of the lines is cut.
  const context = cut > 0 ? [last] : lines;
  return [
    ...context.map(({ line, text }) => `${String(line).padStart(width)} | ${shown(text)}`),
    `${' '.repeat(width)} | ${' '.repeat(caretStart)}${paint('caret', caret)}`,
  ].map((text) => text.trimEnd());
}

/** Escapes control characters, line separators and bidirectional marks; a tab becomes two spaces. */
function visible(text: string): string {
  return (
    text
      .replaceAll('\t', '  ')
      // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
      .replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, (character) => {
        return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
      })
  );
}
