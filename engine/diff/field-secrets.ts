// Hides the secret parts of objects in diffs: the contents of Secrets, and values whose name or form is that of a credential.
import { apiGroup } from '../../policies/schema/kinds.ts';
import { isSecretKey, mask, maskLiteral, maskText } from '../../policies/text/credentials.ts';
import { isHarmlessLiteral, isSecretName } from '../../policies/text/harmless.ts';
import { isRecord } from '../../policies/values/is-record.ts';

interface Place {
  readonly path: string;
  readonly pattern: string;
}

/** Returns both values with secrets hidden. If the results are equal, they say before or after, so that the difference stays visible. */
export function masked(kind: string, place: Place, before: unknown, after: unknown): { readonly before: unknown; readonly after: unknown } {
  const key = lastKeyOf(place.path);
  const isHidden = isSecretField(kind, place);
  const areImages = [before, after].every((value) => value === undefined || isImage(key, value));
  if (areImages && !isHidden) return { before, after };
  const show = isHidden ? hideText : showOf(key, literalName(place.path));
  const shown = { before: show(before), after: show(after) };
  if (before === undefined || after === undefined || JSON.stringify(shown.before) !== JSON.stringify(shown.after)) return shown;
  return { before: `${mask} (before)`, after: `${mask} (after)` };
}

function isSecretField(kind: string, place: Place): boolean {
  return kind === 'Secret' && (/^(?:data|stringData)(?:\.|$)/.test(place.pattern) || place.pattern.startsWith('metadata.annotations'));
}

/** Returns the name of the variable, header or annotation whose literal value is at the path; undefined for other fields. */
function literalName(path: string): string | undefined {
  const annotation = /\bannotations(?:\[([^\]]*)\]|\.([\w-]+))$/.exec(path);
  const key = annotation?.[1] ?? annotation?.[2];
  if (key !== undefined) return annotationName(key);
  const value = /(?:^|\.|\[([^\]]+)\]\.)value$/.exec(path);
  return value === null ? undefined : (value[1] ?? '');
}

/**
 * Returns the part of the key of an annotation that can say that the value is a credential: the prefix is a domain. Returns undefined for
 * the annotations that only this project writes: their values have hashes and texts of people, and no credentials.
 */
function annotationName(key: string): string | undefined {
  return key.startsWith(`${apiGroup}/`) ? undefined : key.replace(/^.*\//, '');
}

/** Reports whether the value names an image. In `external-secrets:1.2` the text after the colon is a tag, and not a credential. */
function isImage(key: string, value: unknown): boolean {
  return key === 'image' && typeof value === 'string' && !/[@\s]/.test(value.replace(/@sha256:[0-9a-f]+$/, ''));
}

/** Returns the last key of `metadata.annotations[example.com/token]` or `data.token`. */
function lastKeyOf(path: string): string {
  return /\[([^\]]*)\]$/.exec(path)?.[1] ?? path.slice(path.lastIndexOf('.') + 1);
}

function maskValue(isHidden: boolean, value: unknown): unknown {
  if (value === undefined || value === null) return value;
  if (isHidden) return mask;
  if (typeof value === 'string') return maskText(value);
  if (Array.isArray(value)) return withoutFlagValues(value).map((entry) => maskValue(false, entry));
  if (typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, isImage(key, part) ? part : showEntry(value, key)(part)]));
}

type Show = (value: unknown) => unknown;

const showText: Show = (value) => maskValue(false, value);
const hideText: Show = (value) => maskValue(true, value);

/** Hides a text under the name of a credential. A list or an object under such a name has parts with names. */
const hideTextOnly: Show = (value) => maskValue(typeof value === 'string', value);

/** Masks the annotations of an object, each as a literal value. */
const showAnnotations: Show = (value) => {
  if (!isRecord(value)) return showText(value);
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, showOf(key, annotationName(key))(entry)]));
};

/** Returns how a field is shown: by the name of the variable, header or annotation of which it is the literal value, or else by its key. */
function showOf(key: string, name: string | undefined): Show {
  if (name !== undefined) return literal(name);
  if (key === 'annotations') return showAnnotations;
  return isSecretKey(key) ? hideTextOnly : showText;
}

/** Returns how the field of an object is shown. A `value` is a literal value, also without a name next to it. */
function showEntry(entry: object, key: string): Show {
  return showOf(key, key === 'value' ? String(part(entry, 'name') ?? '') : undefined);
}

/** Returns how a field of the object at the path is shown. */
function showField({ isSecret, path }: { readonly isSecret: boolean; readonly path: string }, entry: object, key: string): Show {
  if (isSecret && /^(?:data|stringData|metadata\.annotations)(?:\.|$)/.test(path)) return hideText;
  return /(?:^|\.)annotations$/.test(path) ? showOf(key, annotationName(key)) : showEntry(entry, key);
}

function literal(name: string): Show {
  return (value) => {
    if (typeof value === 'object' || value === undefined) return showText(value);
    const shown = maskLiteral(name, String(value));
    return shown === String(value) ? value : shown;
  };
}

/** Returns a list of arguments in which the values of credential flags are hidden. */
export function withoutFlagValues(list: readonly unknown[]): readonly unknown[] {
  return list.map((entry, index) => (isValueOfFlag(list, index) ? mask : entry));
}

function isValueOfFlag(list: readonly unknown[], index: number): boolean {
  const flag = index > 0 ? list[index - 1] : undefined;
  if (typeof flag !== 'string' || !/^-{1,2}[\w.-]+$/.test(flag) || !isSecretName(flag)) return false;
  const value = String(list[index]);
  return !value.startsWith('-') && !isHarmlessLiteral(flag, value);
}

/** Returns a whole object with secrets hidden. A hidden value that differs says before or after, as in `masked`. */
export function withoutSecrets(
  object: Readonly<Record<string, unknown>>,
  other: Readonly<Record<string, unknown>> | undefined,
  side: 'before' | 'after',
): Readonly<Record<string, unknown>> {
  const isSecret = object['kind'] === 'Secret';
  const hide = (value: unknown, counterpart: unknown, path: string, show: Show): unknown => {
    if (Array.isArray(value)) {
      const below = show === hideText ? hideText : showText;
      return value.map((entry, index) =>
        hide(entry, part(counterpart, index), `${path}[]`, isValueOfFlag(value, index) ? hideText : below),
      );
    }
    if (typeof value === 'object' && value !== null) {
      const entries = Object.entries(value).map(([key, entry]) => {
        const own = show === hideText ? hideText : showField({ isSecret, path }, value, key);
        if (own !== hideText && isImage(key, entry)) return [key, entry] as const;
        return [key, hide(entry, part(counterpart, key), `${path}.${key}`, own)] as const;
      });
      return Object.fromEntries(entries);
    }
    const shown = show(value);
    const isDistinct = value === counterpart || counterpart === undefined || shown !== show(counterpart);
    return isDistinct ? shown : `${mask} (${side})`;
  };
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, hide(value, other?.[key], key, showText)]));
}

function part(value: unknown, key: string | number): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined;
}
