// Defines the static types of conditions: types of variables and operator results that are known before evaluation.

export type ConditionType =
  | { readonly kind: 'any' }
  | { readonly kind: 'nothing' }
  | { readonly kind: 'boolean' }
  | { readonly kind: 'number' }
  /** A time in milliseconds since 1970-01-01T00:00:00Z. */
  | { readonly kind: 'instant' }
  /** A length of time in milliseconds. */
  | { readonly kind: 'duration' }
  /** A text. If `values` is present, only these texts occur. */
  | { readonly kind: 'text'; readonly values?: readonly string[] }
  | { readonly kind: 'list'; readonly of: ConditionType }
  /** A fixed set of fields. */
  | { readonly kind: 'record'; readonly fields: Readonly<Record<string, ConditionType>> }
  /** A map with any keys, such as labels. A key may contain dots. */
  | { readonly kind: 'map'; readonly of: ConditionType };

export const any: ConditionType = { kind: 'any' };
export const boolean: ConditionType = { kind: 'boolean' };
export const number: ConditionType = { kind: 'number' };
export const instant: ConditionType = { kind: 'instant' };
export const duration: ConditionType = { kind: 'duration' };
export const text: ConditionType = { kind: 'text' };

export const oneOf = (values: readonly string[]): ConditionType => ({ kind: 'text', values });
export const listOf = (of: ConditionType): ConditionType => ({ kind: 'list', of });
export const mapOf = (of: ConditionType): ConditionType => ({ kind: 'map', of });
export const record = (fields: Readonly<Record<string, ConditionType>>): ConditionType => ({ kind: 'record', fields });

/** The names of types in messages. The name of any other type is its kind with the article `a`. */
const kindTexts: Readonly<Partial<Record<ConditionType['kind'], string>>> = {
  any: 'a value',
  nothing: 'null',
  boolean: 'a boolean',
  instant: 'an instant',
  text: 'text',
  record: 'an object',
  map: 'an object',
};

export function describeType({ kind }: Pick<ConditionType, 'kind'>): string {
  return kindTexts[kind] ?? `a ${kind}`;
}

/** Returns the type that covers both; `any` if they have nothing in common. */
export function commonType(a: ConditionType, b: ConditionType): ConditionType {
  if (a.kind !== b.kind) return any;
  if (a.kind === 'text') return text;
  if (a.kind === 'list' && b.kind === 'list') return listOf(commonType(a.of, b.of));
  if (a.kind === 'record' || a.kind === 'map') return a === b ? a : any;
  return a;
}

/** A step that does not exist: its index, and the names that exist there. */
export interface MissingStep {
  readonly index: number;
  readonly names: readonly string[];
  /** True if the step before `index` and all later steps can be one key with dots in a map. */
  readonly isDottedKey: boolean;
}

/** Returns the type at the end of `steps`, or the first step that does not exist. */
export function typeAt(root: ConditionType, steps: readonly string[]): ConditionType | MissingStep {
  let type = root;
  for (const [index, step] of steps.entries()) {
    if (type.kind === 'any') return any;
    if (type.kind === 'record' && Object.hasOwn(type.fields, step)) type = type.fields[step] ?? any;
    else if (type.kind === 'map') type = type.of;
    else if (type.kind === 'list' && /^\d+$/.test(step)) type = type.of;
    else return missingStep(root, steps, index, type);
  }
  return type;
}

function missingStep(root: ConditionType, steps: readonly string[], index: number, at: ConditionType): MissingStep {
  const parent = index >= 2 ? typeAt(root, steps.slice(0, index - 1)) : undefined;
  return {
    index,
    names: at.kind === 'record' ? Object.keys(at.fields).sort() : [],
    isDottedKey: at.kind !== 'record' && parent !== undefined && 'kind' in parent && parent.kind === 'map',
  };
}
