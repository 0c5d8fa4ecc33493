// Every field that a user can write reaches the value that the engine and the agent read, or has a reason not to.
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { channelOf } from '../../policies/integrations/channel.ts';
import { metricSourceOf } from '../../policies/integrations/metric-source.ts';
import { intentOf } from '../../policies/live/intents.ts';
import { loadObjects } from '../../policies/live/objects.ts';
import type { LoadedDocument } from '../../policies/load.ts';
import { resolvePolicies } from '../../policies/resolve/resolve.ts';
import { atMostOneOfFields, oneOfFields } from '../../policies/schema/json-schema.ts';
import { apiVersion, type Kind, schemas } from '../../policies/schema/kinds.ts';
import { fieldText, schemaBelow, unwrapped } from '../../policies/schema/schema-walk.ts';
import type { PathKey } from '../../policies/yaml/value.ts';

/** The kinds that users write for the engine. The agent writes RolloutRuns, and a PolicyTest is read as it is written. */
const readKinds = ['RolloutGroup', 'RolloutPolicy', 'RolloutException', 'RolloutIntent', 'MetricSource', 'NotificationChannel'] as const;

interface Wanted {
  readonly path: readonly PathKey[];
  readonly value: unknown;
}

/** The fields that no reader passes on, each with the reason. */
const reviewed: Readonly<Record<string, string>> = {
  'RolloutGroup spec.members.zones[0].replicas.leader': 'It states the default. The other fields of the choice replace the default.',
  'RolloutGroup spec.groupLabel':
    'init records the label of an adopted group. The members name their StatefulSets, so nothing reads the label.',
  'RolloutGroup spec.replicas.leader': 'It states the default. The other fields of the choice replace the default.',
  'RolloutException spec.requestedBy.groups[0]': 'No rule restricts exceptions by group: RBAC decides who may write them.',
};

/** Fields that need another field next to them to have an effect. */
const companions: Readonly<Record<string, readonly Wanted[]>> = {
  'RolloutGroup spec.members.expect.count': [
    { path: ['spec', 'members', 'selector'], value: { matchExpressions: [{ key: 'one', operator: 'Exists' }] } },
  ],
  'RolloutGroup spec.members.expect.names[0]': [{ path: ['spec', 'members', 'selector'], value: { matchLabels: { one: 'one' } } }],
  'RolloutGroup spec.members.selector.matchExpressions[0].key': [
    { path: ['spec', 'members', 'selector', 'matchExpressions', 0, 'operator'], value: 'Exists' },
  ],
  'RolloutGroup spec.rollout.schedule.factor': [{ path: ['spec', 'rollout', 'schedule', 'kind'], value: 'geometric' }],
};

/** Values of every form that a field can have. A sample of a field are those that its schema accepts. */
const pool: readonly unknown[] = [
  ...[true, false, 2, 3, 1024, 2048, 'one', 'two', '30s', '45s', '10%', '20%'],
  ...['2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z', 'https://one.example', 'https://two.example', 'one/first', 'two/second'],
  ...['/one', '/two', 'C0123456789', 'C0123456780', '0'.repeat(32), '1'.repeat(32), '0 9 * * 1-4', '0 8 * * 1-4'],
];
const conditions = [{ '==': [{ var: 'value' }, 1] }, { '==': [{ var: 'value' }, 2] }];

/** Returns at most two values of a field; one value if the schema accepts no other. */
function samplesOf(schema: z.ZodType): readonly unknown[] {
  if (schema instanceof z.ZodUnknown) return conditions;
  if (schema instanceof z.ZodEnum) return schema.options.slice(0, 2);
  if (schema instanceof z.ZodLiteral) return [...schema.values];
  const found = pool.filter((one) => schema.safeParse(one).success);
  if (found.length < 2) throw new Error(`the pool has no two values for ${JSON.stringify(z.toJSONSchema(schema))}`);
  return found.slice(0, 2);
}

/** Returns the paths of all leaves below a schema. Lists have one item, and maps have the key `one`. */
function leavesOf(schema: z.ZodType | undefined, path: readonly PathKey[]): readonly (readonly PathKey[])[] {
  const inner = unwrapped(schema);
  const below = (key: PathKey) => leavesOf(schemaBelow(inner, key), [...path, key]);
  if (inner instanceof z.ZodObject) return Object.keys(inner.shape).flatMap(below);
  if (inner instanceof z.ZodArray) return below(0);
  if (inner instanceof z.ZodRecord) return below('one');
  return [path];
}

/** Returns the smallest valid value with the wanted leaf: required fields, and one field of each choice. */
function build(schema: z.ZodType | undefined, path: readonly PathKey[], wanted: readonly Wanted[]): unknown {
  const inner = unwrapped(schema);
  const exact = wanted.find((one) => fieldText(one.path) === fieldText(path));
  if (exact !== undefined) return exact.value;
  const isToward = (key: PathKey) =>
    wanted.some((one) => path.every((step, index) => one.path[index] === step) && one.path[path.length] === key);
  const below = (key: PathKey) => build(schemaBelow(inner, key), [...path, key], wanted);
  if (inner instanceof z.ZodArray) return [below(0)];
  if (inner instanceof z.ZodRecord) return isToward('one') ? { one: below('one') } : {};
  if (!(inner instanceof z.ZodObject)) return inner && samplesOf(inner)[0];
  const shape: Readonly<Record<string, z.ZodType>> = inner.shape;
  const chosen = choicesOf(inner).flatMap(({ keys, isRequired }) => keys.find(isToward) ?? (isRequired ? keys.slice(0, 1) : []));
  const keys = Object.keys(shape).filter(
    (key) => isToward(key) || chosen.includes(key) || shape[key]?.safeParse(undefined).success === false,
  );
  return Object.fromEntries(keys.map((key) => [key, below(key)]).filter(([, value]) => value !== undefined));
}

function choicesOf(schema: z.ZodType): readonly { readonly keys: readonly string[]; readonly isRequired: boolean }[] {
  const meta = schema.meta() ?? {};
  return [oneOfFields, atMostOneOfFields].flatMap((name) => {
    const keys = meta[name];
    return Array.isArray(keys) ? [{ keys: keys.map(String), isRequired: name === oneOfFields }] : [];
  });
}

const statefulSets = ['one', 'two'].map((name) => ({ namespace: 'mimir', name, labels: { one: name, [name]: 'one' } }));

/** Returns the value that the engine or the agent reads, without the places of the settings. */
function engineValue(document: LoadedDocument): unknown {
  switch (document.kind) {
    case 'RolloutIntent':
      return intentOf(document, true);
    case 'MetricSource':
      return metricSourceOf(document.value);
    case 'NotificationChannel':
      return channelOf(document.value);
    default:
      return resolvePolicies([document], { statefulSets, isCluster: true }).bundle;
  }
}

function isPlace(key: string, value: unknown): boolean {
  return /^(?:source|sources|limitSources)$/.test(key) && typeof value === 'object';
}

function textOf(kind: Kind, wanted: readonly Wanted[]): string {
  const spec = build(schemaBelow(schemas[kind], 'spec'), ['spec'], wanted);
  const { documents, findings } = loadObjects([{ apiVersion, kind, metadata: { name: 'one', namespace: 'mimir' }, spec }]);
  const [document] = documents;
  if (document === undefined) throw new Error(`${JSON.stringify(spec)}: ${findings.map(({ message }) => message).join('; ')}`);
  return JSON.stringify(engineValue(document), (key, value) => (isPlace(key, value) ? undefined : value));
}

/** Returns whether the value of the engine is the same for each value of the field; a field with one value is compared with its absence. */
function isDropped(kind: Kind, path: readonly PathKey[]): boolean {
  const schema = path.reduce<z.ZodType | undefined>(schemaBelow, schemas[kind]);
  if (schema === undefined) throw new Error(`no schema at ${fieldText(path)}`);
  const samples = samplesOf(schema);
  const others = companions[`${kind} ${fieldText(path)}`] ?? [];
  const texts = samples.map((value) => textOf(kind, [{ path, value }, ...others]));
  return new Set(texts.length === 1 ? [...texts, textOf(kind, others)] : texts).size === 1;
}

describe.each(readKinds)('a %s', (kind) => {
  const leaves = leavesOf(schemaBelow(schemas[kind], 'spec'), ['spec']);

  it(`has no field that its reader drops without a reason (${leaves.length} fields)`, () => {
    const dropped = leaves.filter((path) => isDropped(kind, path)).map((path) => `${kind} ${fieldText(path)}`);
    expect(dropped).toEqual(Object.keys(reviewed).filter((name) => name.startsWith(`${kind} `)));
  });
});
