// Reads data for conditions: only own properties, and never past an unknown value.
import { noteRead, spend, spendText, stop } from './evaluation.ts';
import { isUnknownValue } from './variables.ts';

/**
 * Returns the value of a variable. A value that could not be read ends the evaluation as unknown, even with a default; an absent value or
 * null does so only without a default. Everything inside the value counts as read.
 */
export function read(data: unknown, label: string | undefined, path: unknown, fallback?: unknown): unknown {
  const value = readList(data, label, path, fallback);
  requireKnown(value, label ?? toSteps(path).join('.'));
  return value;
}

/** Returns a list whose elements are read one by one. Like `read`, but the content of an element counts as read only when it is read. */
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

/** Reports whether a value exists, readable or not. Ends the evaluation as unknown if a parent of the value could not be read. */
export function isThere(data: unknown, label: string | undefined, path: unknown): boolean {
  const steps = toSteps(path);
  spend(1 + steps.length);
  if (label !== undefined) noteRead(label);
  const parent = locate(data, steps.slice(0, -1));
  if (isUnknownValue(parent)) return stop(parent.unknown, label ?? steps.join('.'));
  const value = locate(parent, steps.slice(-1));
  return value !== undefined && value !== null;
}

/** Reports whether a value exists and could be read. */
export function isKnown(data: unknown, label: string | undefined, path: unknown): boolean {
  const steps = toSteps(path);
  spend(1 + steps.length);
  if (label !== undefined) noteRead(label);
  const value = locate(data, steps);
  return value !== undefined && value !== null && !isUnknownValue(value);
}

/**
 * Returns the paths that lead to no value, to null, to empty text, or to a value that could not be read. An undefined `prefix` means that
 * the paths name no data.
 */
export function missing(data: unknown, prefix: string | undefined, paths: readonly unknown[]): readonly unknown[] {
  return paths.filter((path) => {
    const steps = toSteps(path);
    spend(1 + steps.length);
    if (prefix !== undefined) noteRead(prefix + steps.join('.'));
    const value = locate(data, steps);
    return value === undefined || value === null || value === '' || isUnknownValue(value);
  });
}

/** Ends the evaluation if the value contains an unknown value or a number that is not finite. */
export function requireKnown(value: unknown, name: string): void {
  if (typeof value === 'number' && !Number.isFinite(value)) stop('not a finite number', name);
  spendText(typeof value === 'string' ? value.length : 0);
  if (typeof value !== 'object' || value === null) return;
  if (isUnknownValue(value)) stop(value.unknown, name);
  for (const [key, item] of Object.entries(value)) requireKnown(item, Array.isArray(value) ? `${name}[]` : `${name}.${key}`);
}

/** Returns the steps of a path: a list unchanged, text split at its dots, no steps for the data itself. */
function toSteps(path: unknown): readonly string[] {
  if (path === undefined || path === null || path === '') return [];
  return Array.isArray(path) ? path.map(String) : String(path).split('.');
}

/** Returns the value at the end of the steps, the marker of the first unknown value on the way, or undefined. */
function locate(data: unknown, steps: readonly string[]): unknown {
  let value = data;
  for (const step of steps) {
    if (isUnknownValue(value)) return value;
    value = ownProperty(value, step);
  }
  return value;
}

/** Returns an own property. A list has only its elements, text has no properties, and the prototype is not readable. */
function ownProperty(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  if (Array.isArray(value)) return /^(?:0|[1-9]\d*)$/.test(name) ? value[Number(name)] : undefined;
  return Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined;
}
