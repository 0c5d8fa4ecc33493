// Turns a group of the user into a scenario for `simulate`: running objects, policies and the requested change.
import { mergePatch } from '../engine/diff/merge-patch.ts';
import { profileOf } from '../engine/profiles.ts';
import type { GroupDefinition } from '../policies/definition.ts';
import { holdingPartition, traitsOf } from '../policies/strategies.ts';
import { defined } from '../policies/values/defined.ts';
import type { GivenGroup, GroupShape } from './scenario.ts';
import { isObject } from './server/json.ts';
import type { Json } from './server/request.ts';
import { mutableFields } from './server/validate.ts';

export interface GivenInput {
  readonly group: GroupDefinition;
  /** The manifests of the running and of the requested state, of any kinds and groups. */
  readonly running: readonly Json[];
  readonly desired: readonly Json[];
  /** The policy documents in their requested state. They apply from the beginning. */
  readonly documents: readonly Json[];
  /** The StatefulSets whose change is left out. */
  readonly refused: ReadonlySet<string>;
  /** The wall-clock time at the start; undefined if it does not matter. */
  readonly startMs: number | undefined;
  /** `withoutGates` leaves out all gates, and `withoutApprovals` all approvals of waves: a simulation has no answers for them. */
  readonly withoutGates: boolean;
  readonly withoutApprovals: boolean;
}

/** Returns the group and its dependencies. The requested state becomes new StatefulSets, and patches of existing objects. */
export function givenGroup(input: GivenInput): GivenGroup {
  const { group, running, desired, startMs } = input;
  const { namespace, name } = group;
  const statefulSets = group.zones.map((zone) => zone.statefulSet);
  const sources = group.zones.flatMap(({ replicas }) => (replicas.kind === 'mirror' ? [`${replicas.resourceKind} ${replicas.name}`] : []));
  const isIn = (object: Json): boolean => (metadataOf(object).namespace ?? namespace) === namespace;
  const isNeeded = (object: Json): boolean => {
    const key = keyOf(object);
    return isIn(object) && (sources.includes(key) || statefulSets.some((set) => key === `StatefulSet ${set}`));
  };
  const now = running.filter(isNeeded).map((object) => withHoldingPartition(group, object));
  const byKey = new Map(now.map((object) => [keyOf(object), object]));
  // A mirrored object that the change creates exists from the start, because its zones read it.
  const wanted = desired
    .filter((object) => isNeeded(object) && !isRefused(object, input.refused))
    .map((object) => withHoldingPartition(group, object));
  const isSource = (object: Json): boolean => sources.includes(keyOf(object));
  const created = wanted.filter((object) => isSource(object) && !byKey.has(keyOf(object)));
  return {
    namespace,
    name,
    statefulSets,
    ...(startMs === undefined ? {} : { startMs: Math.floor(startMs / 1000) * 1000 }),
    objects: [
      ...[...now, ...created].map(withoutServerFields),
      ...desired.filter((object) => isIn(object) && budgetKinds.includes(`${object['kind']}`)).map(withoutServerFields),
      ...input.documents.flatMap((document) => objectOf(document, input)),
    ],
    policies: input.documents.flatMap((document, index) => fileOf(document, index)),
    changes: wanted.flatMap((object) => {
      const before = byKey.get(keyOf(object));
      if (before === undefined) return isSource(object) ? [] : [withoutServerFields(object)];
      const change = changeOf(before, object);
      return change === undefined ? [] : [change];
    }),
  };
}

/** Adds the partition that the agent keeps between rollouts, because manifests leave it out. */
function withHoldingPartition(group: GroupDefinition, object: Json): Json {
  const strategy = partOf(partOf(object, 'spec'), 'updateStrategy');
  const isRolling = object['kind'] === 'StatefulSet' && (strategy['type'] ?? 'RollingUpdate') === 'RollingUpdate';
  const written = partOf(strategy, 'rollingUpdate');
  if (!traitsOf(group).holdsPartition || !isRolling || (written['partition'] ?? 0) !== 0) return object;
  const held = { type: 'RollingUpdate', rollingUpdate: { ...written, partition: holdingPartition } };
  return { ...object, spec: { ...partOf(object, 'spec'), updateStrategy: held } };
}

/** Returns the shape of the group for judges and accidents. The parts that describe generated objects have no meaning here. */
export function shapeOf(
  group: GroupDefinition,
  given: GivenGroup,
  times: { readonly drainMs: number; readonly startMs: number },
): GroupShape {
  const sets = given.objects.filter(({ kind }) => kind === 'StatefulSet').map((set) => partOf(set, 'spec'));
  const [first] = group.zones;
  const counts = sets.map((spec) => (typeof spec['replicas'] === 'number' ? spec['replicas'] : 1));
  const isLed = first?.replicas.kind === 'leader' && group.zones.slice(1).every((zone) => zone.follows !== undefined);
  const amount = first?.maxUnavailable ?? 1;
  return {
    kind: profileOf(group).checksNativeInvariants ? 'native' : 'adopted',
    zones: group.zones.length,
    podsPerZone: Math.max(1, ...counts),
    maxUnavailable: amount === 'fromBudget' ? 1 : (amount as GroupShape['maxUnavailable']),
    minReadySeconds: Math.max(0, ...sets.map((spec) => (typeof spec['minReadySeconds'] === 'number' ? spec['minReadySeconds'] : 0))),
    podManagementPolicy: sets.every((spec) => spec['podManagementPolicy'] === 'Parallel') ? 'Parallel' : 'OrderedReady',
    rotateBy: group.rollout.rotateBy,
    ...(traitsOf(group).holdsPartition ? { strategy: group.rollout.strategy } : {}),
    replicas: isLed ? 'leader' : 'own',
    delaySeconds: 0,
    betweenZonesSeconds: 0,
    ...times,
  };
}

const budgetKinds: readonly string[] = ['PodDisruptionBudget', 'ZoneAwarePodDisruptionBudget'];
/** The kinds that agents read as objects of the namespace, and the kinds that they read from the policy directory. */
const objectKinds: readonly string[] = ['RolloutException', 'RolloutIntent'];
const fileKinds: readonly string[] = ['RolloutPolicy', 'MetricSource', 'NotificationChannel'];

function isRefused(object: Json, refused: ReadonlySet<string>): boolean {
  return object['kind'] === 'StatefulSet' && refused.has(metadataOf(object).name);
}

function objectOf(document: Json, { group, withoutGates, withoutApprovals }: GivenInput): readonly Json[] {
  const { name, namespace } = metadataOf(document);
  const isOurs = document['kind'] === 'RolloutGroup' && name === group.name && (namespace ?? group.namespace) === group.namespace;
  if (isOurs) return [withoutServerFields(withoutWaits(document, withoutGates, withoutApprovals))];
  return objectKinds.includes(`${document['kind']}`) && namespace === group.namespace ? [withoutServerFields(document)] : [];
}

function fileOf(document: Json, index: number): readonly { readonly name: string; readonly text: string }[] {
  if (!fileKinds.includes(`${document['kind']}`)) return [];
  // JSON is valid YAML.
  return [{ name: `${index}-${metadataOf(document).name}.yaml`, text: JSON.stringify(withoutServerFields(document)) }];
}

function withoutWaits(document: Json, withoutGates: boolean, withoutApprovals: boolean): Json {
  const spec = partOf(document, 'spec');
  const rollout = partOf(spec, 'rollout');
  if (!Array.isArray(rollout['waves'])) return document;
  const remaining = (side: Json): Json => {
    const { gates, approval, ...rest } = side;
    return {
      ...rest,
      ...(withoutGates || gates === undefined ? {} : { gates }),
      ...(withoutApprovals || approval === undefined ? {} : { approval }),
    };
  };
  const waves = rollout['waves'].map((wave: Json) => ({
    ...wave,
    ...(wave['before'] === undefined ? {} : { before: remaining(partOf(wave, 'before')) }),
    ...(wave['after'] === undefined ? {} : { after: remaining(partOf(wave, 'after')) }),
  }));
  const { gates, ...others } = spec;
  return { ...document, spec: { ...others, ...(withoutGates || gates === undefined ? {} : { gates }), rollout: { ...rollout, waves } } };
}

/** Returns a merge patch; undefined without a difference. If the new manifest has no replicas, they stay. */
function changeOf(before: Json, after: Json): Json | undefined {
  const isSet = after['kind'] === 'StatefulSet';
  const kept = ([key]: readonly [string, unknown]): boolean => !isSet || mutableFields.includes(key);
  const wanted = Object.fromEntries(Object.entries(partOf(after, 'spec')).filter(kept));
  const had = Object.entries(partOf(before, 'spec')).filter(
    ([key]) => kept([key, '']) && (wanted[key] !== undefined || key !== 'replicas'),
  );
  const spec = mergePatch(Object.fromEntries(had), wanted);
  const [was, is] = [metadataOf(before), metadataOf(after)];
  const labels = mergePatch(was.labels ?? {}, is.labels ?? {});
  const annotations = mergePatch(was.annotations ?? {}, is.annotations ?? {});
  if (spec === undefined && labels === undefined && annotations === undefined) return undefined;
  const { apiVersion, kind } = after;
  return { apiVersion, kind, metadata: { name: is.name, labels: labels ?? {}, annotations: annotations ?? {} }, spec: spec ?? {} };
}

interface Metadata {
  readonly name: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

function metadataOf(object: Json): Metadata {
  return (object['metadata'] ?? { name: '' }) as Metadata;
}

function keyOf(object: Json): string {
  return `${object['kind']} ${metadataOf(object).name}`;
}

function withoutServerFields(object: Json): Json {
  const { status, metadata: _, ...rest } = object;
  const { name, namespace, labels, annotations } = metadataOf(object);
  const metadata = {
    name,
    ...defined({ namespace, labels, annotations }),
  };
  // A mirrored object may have its number of replicas in the status.
  const keepsStatus = isObject(status) && object['kind'] !== 'StatefulSet' && !`${object['apiVersion']}`.startsWith('rollout-group.dev/');
  return { ...rest, metadata, ...(keepsStatus ? { status } : {}) };
}

function partOf(value: Json, name: string): Json {
  const part = value[name];
  return isObject(part) ? part : {};
}
