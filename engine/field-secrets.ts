// What of an object may not be shown: the contents of Secrets, and values whose name or form says that they are credentials.

const mask = '***';

interface Place {
  readonly path: string;
  readonly pattern: string;
}

/**
 * The two values of a difference, fit to be shown. Where both would become the same text, each says which it is, so that a reader still sees
 * that they differ.
 */
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
  if (Array.isArray(value)) return value.map((entry) => maskValue(false, entry));
  if (typeof value !== 'object') return value;
  const isVariable = 'name' in value && 'value' in value && isSecretName(String(value.name));
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, maskValue(isVariable && key === 'value', part)]));
}

/** Hides the value of flags such as `-auth.token=…`, and the user part of URLs. */
function maskText(text: string): string {
  const flag = /^(-{1,2}[\w.-]+)=/.exec(text);
  if (flag?.[1] !== undefined && isSecretName(flag[1])) return `${flag[1]}=${mask}`;
  return text.replace(/\b([a-z][a-z0-9+.-]*:\/\/)[^/\s@]+@/gi, `$1${mask}@`);
}

/** A whole object that may be shown. Contents of Secrets become the same sign on both sides only when nothing is known of the other side. */
export function withoutSecrets(object: Readonly<Record<string, unknown>>, side: 'before' | 'after'): Readonly<Record<string, unknown>> {
  const isSecret = object['kind'] === 'Secret';
  return Object.fromEntries(
    Object.entries(object).map(([key, value]) => {
      const isHidden = isSecret && (key === 'data' || key === 'stringData');
      return [key, isHidden && typeof value === 'object' && value !== null ? hiddenEntries(value, side) : maskValue(false, value)];
    }),
  );
}

function hiddenEntries(entries: object, side: 'before' | 'after'): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.keys(entries).map((key) => [key, `${mask} (${side})`]));
}
