// Hides the secret parts of objects in diffs: the contents of Secrets, and values whose name or form is that of a credential.

const mask = '***';

interface Place {
  readonly path: string;
  readonly pattern: string;
}

/** Returns both values with secrets hidden. If the results are equal, they say before or after, so that the difference stays visible. */
export function masked(kind: string, place: Place, before: unknown, after: unknown): { readonly before: unknown; readonly after: unknown } {
  const isHidden = isSecretField(kind, place);
  const shown = { before: maskValue(isHidden, before), after: maskValue(isHidden, after) };
  if (before === undefined || after === undefined || JSON.stringify(shown.before) !== JSON.stringify(shown.after)) return shown;
  return { before: `${mask} (before)`, after: `${mask} (after)` };
}

function isSecretField(kind: string, place: Place): boolean {
  if (kind === 'Secret') return /^(?:data|stringData)(?:\.|$)/.test(place.pattern) || place.pattern.startsWith('metadata.annotations');
  const variable = /\.env\[([^\]]+)\]\.value$/.exec(place.path)?.[1];
  return variable !== undefined && isSecretName(variable);
}

function isSecretName(name: string): boolean {
  return /passw|token|secret|credential|private.?key|api.?key|access.?key/i.test(name);
}

function maskValue(isHidden: boolean, value: unknown): unknown {
  if (value === undefined || value === null) return value;
  if (isHidden) return mask;
  if (typeof value === 'string') return maskText(value);
  if (Array.isArray(value)) return withoutFlagValues(value).map((entry) => maskValue(false, entry));
  if (typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, maskValue(isSecretEntry(value, key), part)]));
}

/** Reports whether this is the `value` of a variable whose name indicates a credential. */
function isSecretEntry(entry: object, key: string): boolean {
  return key === 'value' && 'name' in entry && isSecretName(String(entry.name));
}

/** Returns a list of arguments in which the values of credential flags are hidden. */
export function withoutFlagValues(list: readonly unknown[]): readonly unknown[] {
  return list.map((entry, index) => (isValueOfFlag(list, index) ? mask : entry));
}

function isValueOfFlag(list: readonly unknown[], index: number): boolean {
  const flag = index > 0 ? list[index - 1] : undefined;
  return typeof flag === 'string' && /^-{1,2}[\w.-]+$/.test(flag) && isSecretName(flag) && !String(list[index]).startsWith('-');
}

/** The pattern of assignments such as `password: …`, `--auth.token=…` and `"api_key": "…"`, anywhere in a text. */
const assignment =
  /([\w.-]*(?:passw|token|secret|credential|private.?key|api.?key|access.?key)[\w.-]*["']?[ \t]*[:=][ \t]*)("[^"\n]*"|'[^'\n]*'|[^\s,;&"']+)/gi;

/** Hides the values that are assigned to names of credentials, and the user part of URLs. */
function maskText(text: string): string {
  return text.replace(/\b([a-z][a-z0-9+.-]*:\/\/)[^/\s@]+@/gi, `$1${mask}@`).replace(assignment, `$1${mask}`);
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
