// Hides the secret parts of objects in diffs: the contents of Secrets, and values whose name or form is that of a credential.
import { isSecretKey, isSecretName, mask, maskText } from '../../policies/text/credentials.ts';

interface Place {
  readonly path: string;
  readonly pattern: string;
}

/** Returns both values with secrets hidden. If the results are equal, they say before or after, so that the difference stays visible. */
export function masked(kind: string, place: Place, before: unknown, after: unknown): { readonly before: unknown; readonly after: unknown } {
  const isHidden =
    isSecretField(kind, place) || [before, after].some((value) => typeof value === 'string' && isSecretKey(lastKeyOf(place.path)));
  const shown = { before: maskValue(isHidden, before), after: maskValue(isHidden, after) };
  const areImages = [before, after].every((value) => value === undefined || isImage(lastKeyOf(place.path), value));
  if (areImages && !isHidden) return { before, after };
  if (before === undefined || after === undefined || JSON.stringify(shown.before) !== JSON.stringify(shown.after)) return shown;
  return { before: `${mask} (before)`, after: `${mask} (after)` };
}

function isSecretField(kind: string, place: Place): boolean {
  if (kind === 'Secret') return /^(?:data|stringData)(?:\.|$)/.test(place.pattern) || place.pattern.startsWith('metadata.annotations');
  const named = /\.(?:env|httpHeaders)\[([^\]]+)\]\.value$/.exec(place.path)?.[1];
  return named !== undefined && isSecretName(named);
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
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) => [key, isImage(key, part) ? part : maskValue(isSecretEntry(value, key), part)]),
  );
}

/** Reports whether this is a text whose key indicates a credential, or the `value` of a variable or header whose name does. */
function isSecretEntry(entry: object, key: string): boolean {
  if (key === 'value' && 'name' in entry) return isSecretName(String(entry.name));
  return typeof part(entry, key) === 'string' && isSecretKey(key);
}

/** Returns a list of arguments in which the values of credential flags are hidden. */
export function withoutFlagValues(list: readonly unknown[]): readonly unknown[] {
  return list.map((entry, index) => (isValueOfFlag(list, index) ? mask : entry));
}

function isValueOfFlag(list: readonly unknown[], index: number): boolean {
  const flag = index > 0 ? list[index - 1] : undefined;
  return typeof flag === 'string' && /^-{1,2}[\w.-]+$/.test(flag) && isSecretName(flag) && !String(list[index]).startsWith('-');
}

/** Returns a whole object with secrets hidden. A hidden value that differs says before or after, as in `masked`. */
export function withoutSecrets(
  object: Readonly<Record<string, unknown>>,
  other: Readonly<Record<string, unknown>> | undefined,
  side: 'before' | 'after',
): Readonly<Record<string, unknown>> {
  const isSecret = object['kind'] === 'Secret';
  const hide = (value: unknown, counterpart: unknown, path: string, isHidden: boolean): unknown => {
    if (Array.isArray(value)) {
      return value.map((entry, index) => hide(entry, part(counterpart, index), `${path}[]`, isHidden || isValueOfFlag(value, index)));
    }
    if (typeof value === 'object' && value !== null) {
      const entries = Object.entries(value).map(([key, entry]) => {
        const inner = `${path}.${key}`;
        const isContent = isSecret && /^(?:data|stringData|metadata\.annotations)\./.test(inner);
        if (!isHidden && !isContent && isImage(key, entry)) return [key, entry] as const;
        return [key, hide(entry, part(counterpart, key), inner, isHidden || isContent || isSecretEntry(value, key))] as const;
      });
      return Object.fromEntries(entries);
    }
    const shown = maskValue(isHidden, value);
    const isDistinct = value === counterpart || counterpart === undefined || shown !== maskValue(isHidden, counterpart);
    return isDistinct ? shown : `${mask} (${side})`;
  };
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, hide(value, other?.[key], key, false)]));
}

function part(value: unknown, key: string | number): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined;
}
