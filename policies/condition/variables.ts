// The variables that conditions and messages may read, with their types: of rules of a RolloutPolicy, and of gates.

import { instantText } from '../instant.ts';
import { policyAction } from '../schema/rollout-policy.ts';
import { boolean, type ConditionType, instant, listOf, mapOf, number, oneOf, record, text, typeAt } from './types.ts';

/** Stands in data where a value could not be read, with the reason. It has exactly this one key. */
interface UnknownValue {
  readonly unknown: string;
}

/** Whether a value of the data is the marker for *could not be read*. */
export function isUnknownValue(value: unknown): value is UnknownValue {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.hasOwn(value, 'unknown') && typeof Reflect.get(value, 'unknown') === 'string' && Object.keys(value).length === 1;
}

type Knowable<Value> = Value | UnknownValue;

/** The phases of a group that conditions may compare with. */
export const groupPhases = ['Done', 'Rolling', 'Scaling', 'Waiting', 'Paused', 'Blocked', 'Failed'] as const;

/** A zone as conditions see it. */
interface ZoneData {
  readonly name: string;
  readonly statefulSet: string;
  readonly replicas: Knowable<number>;
  readonly ready: Knowable<number>;
  /** Pods at the revision that the StatefulSet is to reach. */
  readonly updated: Knowable<number>;
  readonly available: Knowable<number>;
  readonly isReady: Knowable<boolean>;
  /** Name of the zone it follows; empty for a leader. */
  readonly follows: string;
}

/** What the rules of a RolloutPolicy see. An absent field is unknown to a condition that reads it without a default. */
export interface RuleData {
  readonly action: (typeof policyAction.options)[number];
  /** Replicas before and after, and `to - from`; only for scaleUp and scaleDown. */
  readonly change?: { readonly from: Knowable<number>; readonly to: Knowable<number>; readonly delta: Knowable<number> };
  /** The StatefulSet that is to be changed. Labels and annotations are those before the change. */
  readonly target: {
    readonly name: string;
    readonly namespace: string;
    readonly zone: string;
    readonly labels: Knowable<Readonly<Record<string, string>>>;
    readonly annotations: Knowable<Readonly<Record<string, string>>>;
    readonly replicas: Knowable<number>;
    readonly ready: Knowable<number>;
    readonly available: Knowable<number>;
    readonly updated: Knowable<number>;
    /** Milliseconds since 1970; absent when no downscale is on record. */
    readonly lastDownscaleAt?: Knowable<number>;
  };
  readonly group: {
    readonly name: string;
    readonly namespace: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly zones: Knowable<readonly ZoneData[]>;
    readonly phase?: Knowable<(typeof groupPhases)[number]>;
    /** Name of the wave under way; absent outside a run. */
    readonly wave?: Knowable<string>;
    readonly notReadyZones: Knowable<readonly string[]>;
  };
  readonly inputs: { readonly metrics: Readonly<Record<string, Knowable<number>>> };
  /** Who asks; absent when nobody does, as in the agent and in a plan. */
  readonly user?: { readonly name: Knowable<string>; readonly groups: Knowable<readonly string[]> };
  /** Milliseconds since 1970. */
  readonly now: number;
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

/** What a rule of a RolloutPolicy may read, given the names of the metrics that the policy declares under `inputs.metrics`. */
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
      phase: oneOf(groupPhases),
      wave: text,
      notReadyZones: listOf(text),
    }),
    inputs: record({ metrics: record(Object.fromEntries(metrics.map((name) => [name, number]))) }),
    user: record({ name: text, groups: listOf(text) }),
    now: instant,
  });
}

/** What the condition `pass` of a gate may read: the one number that was measured. */
export const gateVariables: ConditionType = record({ value: number });

/** Every path of the variables, for completion and documentation: `group.zones[].ready`, `target.labels.*`. */
export function variablePaths(type: ConditionType, prefix = ''): readonly string[] {
  const below = (fields: readonly (readonly [string, ConditionType])[]) => fields.flatMap(([path, field]) => variablePaths(field, path));
  if (type.kind === 'list') return type.of.kind === 'record' ? [prefix, ...variablePaths(type.of, `${prefix}[]`)] : [prefix];
  if (type.kind === 'map') return [`${prefix}.*`];
  if (type.kind !== 'record') return [prefix];
  return below(Object.entries(type.fields).map(([name, field]) => [prefix === '' ? name : `${prefix}.${name}`, field] as const));
}

const placeholder = /\$\{([^{}]*)\}/g;

/** How long a message and one value in it may become; longer ones end in an ellipsis. */
const messageLimits = { message: 2048, value: 256 } as const;

/**
 * The message with each `${variable}` replaced by its value: lists joined by commas, instants in RFC 3339, anything that is absent or could not
 * be read as `unknown`. A label is named by its whole key, `${target.labels.app.kubernetes.io/name}`. Control characters become spaces, because
 * labels are written by others and messages end up in terminals.
 */
export function substitute(message: string, data: unknown): string {
  const result = message.replace(placeholder, (_, path: string) =>
    shorten(printable(valueText(valueAt(data, path), path)), messageLimits.value),
  );
  return shorten(result, messageLimits.message);
}

/** The variables that a message names, in the order in which they occur. */
export function messageVariables(message: string): readonly string[] {
  return [...message.matchAll(placeholder)].map((match) => match[1] ?? '');
}

/** By own properties; a key that contains dots is found as a whole before it is cut. */
function valueAt(data: unknown, path: string): unknown {
  if (typeof data !== 'object' || data === null || isUnknownValue(data)) return undefined;
  if (Object.hasOwn(data, path)) return Reflect.get(data, path);
  const dot = path.indexOf('.');
  const name = path.slice(0, dot);
  return dot > 0 && Object.hasOwn(data, name) ? valueAt(Reflect.get(data, name), path.slice(dot + 1)) : undefined;
}

function valueText(value: unknown, path: string): string {
  if (Array.isArray(value)) return value.map((item) => valueText(item, path)).join(', ');
  if (typeof value === 'number') return isInstantPath(path) ? (instantText(value) ?? 'unknown') : numberText(value);
  if (typeof value === 'string' || typeof value === 'boolean') return String(value);
  return 'unknown';
}

function isInstantPath(path: string): boolean {
  const type = typeAt(ruleVariables([]), path.split('.'));
  return 'kind' in type && type.kind === 'instant';
}

function numberText(value: number): string {
  return Number.isFinite(value) ? String(value) : 'unknown';
}

/** Any character that would move the cursor or change the direction of writing becomes a space. */
function printable(value: string): string {
  return value.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, ' ');
}

function shorten(value: string, length: number): string {
  return value.length <= length ? value : `${value.slice(0, length - 1)}…`;
}
