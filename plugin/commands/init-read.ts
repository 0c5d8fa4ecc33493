// What init reads: StatefulSets with labels, and objects of other operators, from files or from a cluster.
import { isStatus } from '../../cluster/request/failure.ts';
import type { KubernetesObject, Resource } from '../../cluster/request/resource.ts';
import { adoptGroups } from '../../policies/adopt/adopt.ts';
import { type Conversion, convertObjects } from '../../policies/adopt/convert.ts';
import type { ForeignObject } from '../../policies/adopt/foreign.ts';
import { type Finding, objectPlace, sortFindings } from '../../policies/findings/finding.ts';
import { adoptionFindings } from '../../policies/lint/adoption.ts';
import { loadPolicies, type Manifest } from '../../policies/load.ts';
import { isRecord, valueAt } from '../../policies/schema/schema-walk.ts';
import type { Cluster } from '../connection.ts';
import type { CommandContext } from '../context.ts';
import { readInput } from '../source/input.ts';

export interface InitReading extends Omit<Conversion, 'findings'> {
  readonly findings: readonly Finding[];
  /** What was read, in words for people. */
  readonly source: string;
  /** What could not be read, each as one sentence part. */
  readonly notes: readonly string[];
}

export async function readFromFiles(context: CommandContext, fromDir: string): Promise<InitReading> {
  const { manifests, findings: fileFindings } = loadPolicies(await readInput(fromDir, context));
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
  return {
    ...conversion,
    groups: [...adoption.groups, ...conversion.groups],
    statefulSets: conversion.statefulSets.filter((set) => !isThere(set)),
    findings: sortFindings([...fileFindings, ...adoptionFindings(adoption.findings, manifests), ...conversion.findings]),
    source: fromDir,
    notes: [],
  };
}

/** The names of the keys; what they hold is looked at by nobody. */
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

/** `namespaces` undefined: all of them. */
export async function readFromCluster(cluster: Cluster, namespaces: readonly string[] | undefined): Promise<InitReading> {
  const [{ discover }, { resources }, { listIn }] = await Promise.all([
    import('../../cluster/request/discovery.ts'),
    import('../../cluster/request/resource.ts'),
    import('../source/cluster.ts'),
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
      if (list === undefined) notes.push(`no permission to list ${resource.plural}.${resource.group}, so none of them is converted`);
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
  return {
    ...conversion,
    groups: [...adoption.groups, ...conversion.groups],
    findings: sortFindings([...adoptionFindings(adoption.findings, []), ...conversion.findings]),
    source: namespaces === undefined ? 'the cluster' : `namespace ${cluster.namespace}`,
    notes,
  };
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

/** Of the Secrets that PhasedRollouts name, and of no other: which keys they have. One that may not be read, or is not there, is left out. */
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
