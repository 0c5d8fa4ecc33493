// How conditions read data: by own properties only, and never past a value that is not known.
import { noteRead, spend, spendText, stop } from './evaluation.ts';
import { isUnknownValue } from './variables.ts';

/**
 * The value of a variable. A value that could not be read ends the evaluation as unknown, default or not; one that is absent, or null, does so
 * without a default. Everything inside the value counts as read.
 */
export function read(data: unknown, label: string | undefined, path: unknown, fallback?: unknown): unknown {
  const value = readList(data, label, path, fallback);
  requireKnown(value, label ?? toSteps(path).join('.'));
  return value;
}

/** Like `read`, for a list whose elements are looked at one by one: what is inside them counts as read only when it is. */
export function readList(data: unknown, label: string | undefined, path: unknown, fallback?: unknown): unknown {
  const steps = toSteps(path);
  const name = label ?? steps.join('.');
  spend(1 + steps.length);
  if (label !== undefined) noteRead(label);
  const value = locate(data, steps);
  if (isUnknownValue(value)) return stop(value.unknown, name);
  if (value !== undefined && value !== null) return value;
  return fallback === undefined ? stop('absent', name) : fallback;
}

/** Whether something is there, readable or not. Unknown when the way to it could not be read. */
export function isThere(data: unknown, label: string | undefined, path: unknown): boolean {
  const steps = toSteps(path);
  spend(1 + steps.length);
  if (label !== undefined) noteRead(label);
  const parent = locate(data, steps.slice(0, -1));
  if (isUnknownValue(parent)) return stop(parent.unknown, label ?? steps.join('.'));
  const value = locate(parent, steps.slice(-1));
  return value !== undefined && value !== null;
}

/** Whether something is there and could be read. */
export function isKnown(data: unknown, label: string | undefined, path: unknown): boolean {
  const steps = toSteps(path);
  spend(1 + steps.length);
  if (label !== undefined) noteRead(label);
  const value = locate(data, steps);
  return value !== undefined && value !== null && !isUnknownValue(value);
}

/** Those of the paths that lead to nothing, to null, to empty text, or to a value that could not be read. `prefix` undefined: not data. */
export function missing(data: unknown, prefix: string | undefined, paths: readonly unknown[]): readonly unknown[] {
  return paths.filter((path) => {
    const steps = toSteps(path);
    spend(1 + steps.length);
    if (prefix !== undefined) noteRead(prefix + steps.join('.'));
    const value = locate(data, steps);
    return value === undefined || value === null || value === '' || isUnknownValue(value);
  });
}

/** Ends the evaluation when anything inside the value is not known, or is no finite number. */
export function requireKnown(value: unknown, name: string): void {
  if (typeof value === 'number' && !Number.isFinite(value)) stop('no finite number', name);
  spendText(typeof value === 'string' ? value.length : 0);
  if (typeof value !== 'object' || value === null) return;
  if (isUnknownValue(value)) stop(value.unknown, name);
  for (const [key, item] of Object.entries(value)) requireKnown(item, Array.isArray(value) ? `${name}[]` : `${name}.${key}`);
}

/** The steps of a path: a list as it is, text cut at its dots, nothing for the data itself. */
function toSteps(path: unknown): readonly string[] {
  if (path === undefined || path === null || path === '') return [];
  return Array.isArray(path) ? path.map(String) : String(path).split('.');
}

/** What is at the end of the steps, the marker of the first value on the way that could not be read, or undefined. */
function locate(data: unknown, steps: readonly string[]): unknown {
  let value = data;
  for (const step of steps) {
    if (isUnknownValue(value)) return value;
    value = ownProperty(value, step);
  }
  return value;
}

/** A list has its elements and nothing else; text has no properties; the prototype is out of reach. */
function ownProperty(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  if (Array.isArray(value)) return /^(?:0|[1-9]\d*)$/.test(name) ? value[Number(name)] : undefined;
  return Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined;
}
