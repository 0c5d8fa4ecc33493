// Reads the input of init from files or a cluster: StatefulSets and objects of other operators.
import { isStatus } from '../../cluster/request/failure.ts';
import type { KubernetesObject, Resource } from '../../cluster/request/resource.ts';
import { adoptGroups } from '../../policies/adopt/adopt.ts';
import { type Conversion, claimedSets, convertObjects } from '../../policies/adopt/convert.ts';
import type { ForeignObject } from '../../policies/adopt/foreign.ts';
import type { GuessInput } from '../../policies/adopt/guess.ts';
import { type Finding, objectPlace, sortFindings } from '../../policies/findings/finding.ts';
import { adoptionFindings } from '../../policies/lint/adoption.ts';
import { loadPolicies, type Manifest } from '../../policies/load.ts';
import { type RolloutGroup, schemas } from '../../policies/schema/kinds.ts';
import { isRecord, valueAt } from '../../policies/schema/schema-walk.ts';
import type { Cluster } from '../connection.ts';
import type { CommandContext } from '../context.ts';
import { readInput } from '../source/input.ts';

export interface InitReading extends Omit<Conversion, 'findings'> {
  readonly findings: readonly Finding[];
  /** Description of the source. */
  readonly source: string;
  /** Notes about unreadable objects. */
  readonly notes: readonly string[];
  /** Input of a guess: all StatefulSets and the existing groups. */
  readonly guessable: GuessInput;
}

export async function readFromFiles(context: CommandContext, fromDir: string): Promise<InitReading> {
  const { documents, manifests, findings: fileFindings } = loadPolicies(await readInput(fromDir, context));
  const adoption = adoptGroups(manifests.map(({ value }) => value));
  const conversion = convertObjects({
    objects: manifests,
    groups: adoption.groups,
    secretKeys: (namespace, name) => keysIn(manifests, namespace, name),
  });
  const isThere = (set: unknown) =>
    manifests.some(
      ({ kind, namespace, name }) =>
        kind === 'StatefulSet' && namespace === valueAt(set, ['metadata', 'namespace']) && name === valueAt(set, ['metadata', 'name']),
    );
  const groups = [...adoption.groups, ...conversion.groups];
  const written = documents.flatMap((document) => (document.kind === 'RolloutGroup' ? [document.value] : []));
  return {
    ...conversion,
    groups,
    guessable: { objects: objectsOfKind(manifests, 'StatefulSet'), groups: [...groups, ...written], claimed: claimedSets(manifests) },
    statefulSets: conversion.statefulSets.filter((set) => !isThere(set)),
    findings: sortFindings([...fileFindings, ...adoptionFindings(adoption.findings, manifests), ...conversion.findings]),
    source: fromDir,
    notes: [],
  };
}

/** Adds the default namespace of the file to objects without one. */
function objectsOfKind(manifests: readonly Manifest[], kind: string): readonly unknown[] {
  return manifests
    .filter((one) => one.kind === kind)
    .map(({ value, namespace }) => ({ ...value, metadata: { ...recordAt(value), namespace } }));
}

function recordAt(value: unknown): Readonly<Record<string, unknown>> {
  const metadata = valueAt(value, ['metadata']);
  return isRecord(metadata) ? metadata : {};
}

/** Returns the names of the keys. The values are never read. */
function keysIn(manifests: readonly Manifest[], namespace: string, name: string): readonly string[] | undefined {
  const secret = manifests.find((one) => one.kind === 'Secret' && one.namespace === namespace && one.name === name);
  return secret && keysOf(secret.value);
}

function keysOf(secret: unknown): readonly string[] {
  return ['data', 'stringData'].flatMap((field) => {
    const map = valueAt(secret, [field]);
    return isRecord(map) ? Object.keys(map) : [];
  });
}

const foreignResources: readonly Resource[] = [
  { group: 'sts.plus', version: 'v1alpha1', plural: 'phasedrollouts', kind: 'PhasedRollout', isNamespaced: true },
  { group: 'bedrock.operator.slack.com', version: 'v1', plural: 'statefulsetrollouts', kind: 'StatefulsetRollout', isNamespaced: true },
];

/** Reads the cluster. `namespaces` undefined means all namespaces. */
export async function readFromCluster(cluster: Cluster, namespaces: readonly string[] | undefined): Promise<InitReading> {
  const [{ discover }, { resources }, { listIn }] = await Promise.all([
    import('../../cluster/request/discovery.ts'),
    import('../../cluster/request/resource.ts'),
    import('../cluster-snapshot/listing.ts'),
  ]);
  const statefulSets = await listIn(cluster, resources.statefulSets, namespaces);
  const discovery = await discover(cluster.env, { timeoutMs: cluster.timeoutMs });
  const served = foreignResources.flatMap((known) =>
    discovery.find({ group: known.group, version: known.version, kind: known.kind }).slice(0, 1),
  );
  const notes: string[] = [];
  const lists = await Promise.all(
    served.map(async (resource) => {
      const list = await unlessForbidden(listIn(cluster, resource, namespaces));
      if (list === undefined) notes.push(`no permission to list ${resource.plural}.${resource.group}; they are not converted`);
      return (list ?? []).map((object) => foreignObject(object, resource));
    }),
  );
  const objects = [...lists.flat(), ...statefulSets.map((set) => foreignObject(set, resources.statefulSets))];
  const adoption = adoptGroups(statefulSets);
  const keys = await secretKeysOf(cluster, lists.flat());
  const conversion = convertObjects({
    objects,
    groups: adoption.groups,
    secretKeys: (namespace, name) => keys.get(`${namespace}/${name}`),
  });
  const groups = [...adoption.groups, ...conversion.groups];
  return {
    ...conversion,
    groups,
    guessable: {
      objects: statefulSets,
      groups: [...groups, ...(await groupsOf(cluster, namespaces, notes))],
      claimed: claimedSets(objects),
    },
    findings: sortFindings([...adoptionFindings(adoption.findings, []), ...conversion.findings]),
    source: namespaces === undefined ? 'the cluster' : `namespace ${cluster.namespace}`,
    notes,
  };
}

/** Lists the RolloutGroups. Returns an empty list if the kind is not installed. */
async function groupsOf(cluster: Cluster, namespaces: readonly string[] | undefined, notes: string[]): Promise<readonly RolloutGroup[]> {
  const [{ rolloutGroups }, { listKnown }] = await Promise.all([
    import('../cluster-snapshot/kinds.ts'),
    import('../cluster-snapshot/listing.ts'),
  ]);
  const list = await listKnown(cluster, rolloutGroups, namespaces);
  if (!Array.isArray(list)) {
    notes.push('no permission to list rolloutgroups; a proposed group may already exist');
    return [];
  }
  return list.flatMap((object) => {
    const read = schemas.RolloutGroup.safeParse({
      apiVersion: object.apiVersion,
      kind: 'RolloutGroup',
      metadata: { name: object.metadata.name, namespace: object.metadata.namespace },
      spec: object['spec'],
    });
    return read.success ? [read.data] : [];
  });
}

function foreignObject(object: KubernetesObject, { group, version, kind }: Resource): ForeignObject {
  const { namespace = 'default', name } = object.metadata;
  return {
    kind,
    namespace,
    name,
    value: { ...object, kind, apiVersion: `${group}/${version}` },
    place: (path) => objectPlace(`${kind} ${namespace}/${name}`, path),
  };
}

/** Returns the keys of the Secrets that PhasedRollouts name. Omits missing and unreadable Secrets. */
async function secretKeysOf(cluster: Cluster, objects: readonly ForeignObject[]): Promise<ReadonlyMap<string, readonly string[]>> {
  const [{ getObject }, { resources }] = await Promise.all([
    import('../../cluster/request/read.ts'),
    import('../../cluster/request/resource.ts'),
  ]);
  const named = new Map(
    objects.flatMap(({ namespace, value }) => {
      const name = valueAt(value, ['spec', 'check', 'query', 'secretRef']);
      return typeof name === 'string' && name !== '' ? [[`${namespace}/${name}`, { namespace, name }] as const] : [];
    }),
  );
  const found = await Promise.all(
    [...named.entries()].map(async ([key, secret]) => {
      const options = { site: 'init.secretKeys', timeoutMs: cluster.timeoutMs };
      const object = await unlessForbidden(getObject(cluster.env, resources.secrets, secret, options));
      return object === undefined ? [] : [[key, keysOf(object)] as const];
    }),
  );
  return new Map(found.flat());
}

async function unlessForbidden<Value>(reading: Promise<Value>): Promise<Value | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isStatus(error, 403)) return undefined;
    throw error;
  }
}
