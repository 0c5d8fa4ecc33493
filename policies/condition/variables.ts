// Defines the variables of conditions and messages, and inserts the values into messages.
import { instantText } from '../instant.ts';
import { runPhases } from '../rollout/phases.ts';
import { policyAction } from '../schema/rollout-policy.ts';
import { cut } from '../text/shorten.ts';
import { boolean, type ConditionType, instant, listOf, mapOf, number, oneOf, record, text, typeAt } from './types.ts';

/** Reports whether a value is the marker of a value that could not be read, with the reason. The marker has no other key. */
export function isUnknownValue(value: unknown): value is { readonly unknown: string } {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.hasOwn(value, 'unknown') && typeof Reflect.get(value, 'unknown') === 'string' && Object.keys(value).length === 1;
}

const zone = record({
  name: text,
  statefulSet: text,
  replicas: number,
  ready: number,
  updated: number,
  available: number,
  isReady: boolean,
  follows: text,
});

/** Returns the variables of a rule, given the names of the metrics that the policy declares under `inputs.metrics`. */
export function ruleVariables(metrics: readonly string[]): ConditionType {
  return record({
    action: oneOf(policyAction.options),
    change: record({ from: number, to: number, delta: number }),
    target: record({
      name: text,
      namespace: text,
      zone: text,
      labels: mapOf(text),
      annotations: mapOf(text),
      replicas: number,
      ready: number,
      available: number,
      updated: number,
      lastDownscaleAt: instant,
    }),
    group: record({
      name: text,
      namespace: text,
      labels: mapOf(text),
      zones: listOf(zone),
      phase: oneOf(runPhases),
      wave: text,
      notReadyZones: listOf(text),
    }),
    inputs: record({ metrics: record(Object.fromEntries(metrics.map((name) => [name, number]))) }),
    user: record({ name: text, groups: listOf(text) }),
    now: instant,
  });
}

/** The variable of the condition `pass` of a gate: the measured number. */
export const gateVariables: ConditionType = record({ value: number });

/** Returns the paths of the variables in a type: `group.zones[].ready`, `target.labels.*`. */
export function variablePaths(type: ConditionType, prefix = ''): readonly string[] {
  if (type.kind === 'list') return type.of.kind === 'record' ? [prefix, ...variablePaths(type.of, `${prefix}[]`)] : [prefix];
  if (type.kind === 'map') return [`${prefix}.*`];
  if (type.kind !== 'record') return [prefix];
  return Object.entries(type.fields).flatMap(([name, field]) => variablePaths(field, prefix === '' ? name : `${prefix}.${name}`));
}

const placeholder = /\$\{([^{}]*)\}/g;

/** The maximum length of a message and of each value in it, in characters. Longer text is cut and ends in an ellipsis. */
const messageLimits = { message: 2048, value: 256 } as const;

/**
 * Replaces each `${variable}` in a message. Joins lists with commas and writes times as RFC 3339. Absent and unreadable values become
 * `unknown`, control characters become spaces. The key of a label may contain dots.
 */
export function substitute(message: string, data: unknown): string {
  const result = message.replace(placeholder, (_, path: string) =>
    cut(printable(valueText(valueAt(data, path), path)), messageLimits.value),
  );
  return cut(result, messageLimits.message);
}

/** Returns the variables that a message names, in order of occurrence. */
export function messageVariables(message: string): readonly string[] {
  return [...message.matchAll(placeholder)].map((match) => match[1] ?? '');
}

/** Returns the value at a path of own properties. Tries a key with dots as a whole before it splits the key. */
function valueAt(data: unknown, path: string): unknown {
  if (typeof data !== 'object' || data === null || isUnknownValue(data)) return undefined;
  if (Object.hasOwn(data, path)) return Reflect.get(data, path);
  const dot = path.indexOf('.');
  const name = path.slice(0, dot);
  return dot > 0 && Object.hasOwn(data, name) ? valueAt(Reflect.get(data, name), path.slice(dot + 1)) : undefined;
}

function valueText(value: unknown, path: string): string {
  if (Array.isArray(value)) return value.map((item) => valueText(item, path)).join(', ');
  if (typeof value === 'number')
    return isInstantPath(path) ? (instantText(value) ?? 'unknown') : Number.isFinite(value) ? String(value) : 'unknown';
  if (typeof value === 'string' || typeof value === 'boolean') return String(value);
  return 'unknown';
}

function isInstantPath(path: string): boolean {
  const type = typeAt(ruleVariables([]), path.split('.'));
  return 'kind' in type && type.kind === 'instant';
}

/** Writes a space for every character that moves the cursor or changes the writing direction. */
function printable(value: string): string {
  return value.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, ' ');
}
