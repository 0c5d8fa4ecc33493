// A finding: a message about a policy or manifest, with its place and fix.
import type { Source } from '../definition.ts';
import { defined } from '../values/defined.ts';
import { type FindingCode, findingCodes } from './codes.ts';

export type Severity = 'error' | 'warning' | 'notice';

/** A line of the text that a finding points into. */
export interface ExcerptLine {
  /** 1-based. */
  readonly line: number;
  readonly text: string;
}

/** The place of a finding. An object from a cluster has an empty `file`, line and column 0, and its name in `object`. */
export interface Place {
  readonly file: string;
  /** 1-based; 0 without a file. */
  readonly line: number;
  /** 1-based, counted in UTF-16 units; 0 without a file. */
  readonly column: number;
  /** Column after the last character, when the value ends on the same line. */
  readonly endColumn?: number;
  /** JSON pointer (RFC 6901) into the document; empty for the document itself. */
  readonly pointer: string;
  /** `kind namespace/name`, when known. */
  readonly object?: string;
  /** The line itself, with the line before it for context. */
  readonly excerpt?: readonly ExcerptLine[];
}

export interface Finding extends Place {
  readonly code: FindingCode;
  readonly severity: Severity;
  /** One sentence without a full stop, subject first. */
  readonly message: string;
  /** The fix, in a few words. */
  readonly hint?: string;
  readonly related?: readonly Source[];
}

export interface FindingOptions {
  /** Replaces the hint of the table. */
  readonly hint?: string | undefined;
  /** Replaces the severity of the table, where the same mistake weighs less or more than usual. */
  readonly severity?: Severity | undefined;
  readonly related?: readonly Source[] | undefined;
}

/** A finding with the severity and the hint that the table has for its code, unless the options say otherwise. */
export function finding(code: FindingCode, place: Place, message: string, options: FindingOptions = {}): Finding {
  const entry: { readonly severity: Severity; readonly hint?: string } = findingCodes[code];
  const hint = options.hint ?? entry.hint;
  return {
    code,
    severity: options.severity ?? entry.severity,
    message,
    ...place,
    ...defined({ hint }),
    ...(options.related?.length ? { related: options.related } : {}),
  };
}

/** The place of a field of an object that was read from a cluster, not from a file. */
export function objectPlace(object: string, path: readonly (string | number)[] = []): Place {
  return { file: '', line: 0, column: 0, pointer: jsonPointer(path), object };
}

/** The same place as a source of a definition, without text. */
export function sourceOf(place: Place): Source {
  return {
    ...(place.file === '' ? {} : { file: place.file, line: place.line, column: place.column }),
    ...defined({ object: place.object }),
    ...(place.file === '' && place.pointer !== '' ? { field: pointerText(place.pointer) } : {}),
  };
}

/** JSON pointer of a path of keys and indices. */
export function jsonPointer(path: readonly (string | number)[]): string {
  return path.map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** Findings in the order of files, lines and columns, then codes; the same list in any order gives the same result. Exact repeats are dropped. */
export function sortFindings(findings: readonly Finding[]): readonly Finding[] {
  const sorted = [...findings].sort(
    (a, b) =>
      compare(a.file, b.file) ||
      compare(a.object ?? '', b.object ?? '') ||
      a.line - b.line ||
      a.column - b.column ||
      compare(a.code, b.code) ||
      compare(a.pointer, b.pointer) ||
      compare(a.message, b.message),
  );
  return sorted.filter((one, index) => {
    const before = sorted[index - 1];
    return !before || before.code !== one.code || before.message !== one.message || placeText(before) !== placeText(one);
  });
}

/** Returns the number of findings of each severity. */
export function countFindings(findings: readonly Finding[]): Readonly<Record<Severity, number>> {
  const counts = { error: 0, warning: 0, notice: 0 };
  for (const { severity } of findings) counts[severity] += 1;
  return counts;
}

/** `file:line:column`, or the name of the object and the field in it when there is no file. */
export function placeText(place: Place): string {
  if (place.file !== '') return `${place.file}:${place.line}:${place.column}`;
  const field = place.pointer === '' ? '' : ` ${pointerText(place.pointer)}`;
  return `${place.object ?? 'unknown object'}${field}`;
}

/** A JSON pointer as people write a path: `spec.rollout.waves[0].zones`. */
function pointerText(pointer: string): string {
  const keys = pointer
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
  return keys.reduce((text, key) => (/^\d+$/.test(key) ? `${text}[${key}]` : text === '' ? key : `${text}.${key}`), '');
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
