// The verb init: writes policy files for groups found in labels, annotations and objects of other operators, in files or a cluster.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { discover } from '../../cluster/request/discovery.ts';
import { onStatus } from '../../cluster/request/failure.ts';
import { asJsonObject } from '../../cluster/request/json.ts';
import { getObject } from '../../cluster/request/read.ts';
import { type KubernetesObject, type Resource, resourceOf, resources } from '../../cluster/request/resource.ts';
import { adoptGroups } from '../../policies/adopt/adopt.ts';
import { type Conversion, claimedSets, convertObjects } from '../../policies/adopt/convert.ts';
import type { ForeignObject } from '../../policies/adopt/foreign.ts';
import { type GuessedGroup, type Guesses, type GuessInput, guessGroups } from '../../policies/adopt/guess.ts';
import { countFindings, type Finding, objectPlace, sortFindings } from '../../policies/findings/finding.ts';
import { adoptionFindings } from '../../policies/lint/lint.ts';
import { loadPolicies } from '../../policies/load.ts';
import { type MetricSource, type NotificationChannel, type RolloutGroup, schemas } from '../../policies/schema/kinds.ts';
import { valueAt } from '../../policies/schema/schema-walk.ts';
import { isRecord } from '../../policies/values/is-record.ts';
import { counted, firstOf } from '../../policies/wording.ts';
import { manifestText, writeDocument } from '../../policies/write.ts';
import { rolloutGroups } from '../cluster-snapshot/kinds.ts';
import { listIn, listKnown } from '../cluster-snapshot/listing.ts';
import { type Cluster, type ConnectionFlags, withCluster } from '../connection.ts';
import { type CommandContext, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes, Failure, notFoundFailure, unwritable, usageFailure } from '../failure.ts';
import { findingBlocks } from '../output/findings.ts';
import { readInput } from '../source/input.ts';

export interface InitOptions extends ConnectionFlags {
  readonly fromDir?: string;
  readonly fromCluster?: boolean;
  readonly allNamespaces?: boolean;
  readonly out: string;
  readonly force?: boolean;
  readonly guess?: boolean;
}

interface Page {
  /** The path below the output directory, with slashes. */
  readonly path: string;
  readonly text: string;
  readonly content: string;
}

export async function run(context: CommandContext, options: InitOptions): Promise<ExitCode> {
  const { out, force = false } = options;
  const { stdout, stderr, cwd } = context;
  const reading = await read(context, options);
  const { groups, findings, source, statefulSets, notes } = reading;
  const guesses = guessGroups(reading.guessable);
  // After an error, no group is guessed without --guess: the invalid object may define how a StatefulSet is rolled out.
  const isGuessing = options.guess === true || (groups.length === 0 && countFindings(findings).error === 0);
  const guessed = isGuessing ? guesses.groups : [];
  for (const note of [...notes, ...(isGuessing ? leftOutNotes(guesses) : unlabelledNotes(guesses))]) stderr.write(`note: ${note}\n`);
  for (const block of findingBlocks(findings, stderr)) stderr.write(`${block}\n`);
  if (groups.length + guessed.length === 0) throw noGroup(source, findings, guesses);
  const pages = pagesOf(reading, guessed);
  if (!force) refuseOverwriting(pages, out, cwd);
  for (const page of pages) {
    write(join(resolve(cwd, out), page.path), page.text);
    stdout.write(`${join(out, page.path)}  ${page.content}\n`);
  }
  suggestNext(context, `lint ${out}`, `plan ${currentOf(options, statefulSets.length > 0)}-f ${out} --set image=...`);
  return countFindings(findings).error > 0 ? exitCodes.findings : exitCodes.done;
}

async function read(context: CommandContext, options: InitOptions): Promise<InitReading> {
  const { fromDir, fromCluster = false } = options;
  if (fromCluster && fromDir !== undefined) throw usageFailure('--from-dir and --from-cluster exclude each other', 'give only one of them');
  if (fromDir !== undefined) return readFromFiles(context, fromDir);
  if (!fromCluster) throw usageFailure('--from-dir or --from-cluster is required', 'give one of them');
  return withCluster(context, options, 'read', (cluster) =>
    readFromCluster(cluster, options.allNamespaces === true ? undefined : [cluster.namespace]),
  );
}

/** Returns the plan flag for the running state. StatefulSets that were converted from other objects exist only in the written manifests. */
function currentOf({ fromDir, out }: InitOptions, hasManifests: boolean): string {
  if (fromDir === undefined) return '--live ';
  return `--current ${hasManifests ? join(out, manifestFolder) : fromDir} `;
}

const agentFolder = 'agent';
const manifestFolder = 'manifests';

/** Returns one file per document. With several namespaces, each namespace has a folder. */
function pagesOf({ groups, documents, statefulSets }: InitReading, guessed: readonly GuessedGroup[]): readonly Page[] {
  const namespaces = new Set([...groups, ...guessed.map(({ group }) => group)].map(({ metadata }) => metadata.namespace));
  const place = (namespace: string, name: string) => (namespaces.size > 1 ? `${namespace}/${name}.yaml` : `${name}.yaml`);
  return [
    ...groups.map((group) => groupPage(group, place)),
    ...guessed.map((one) => guessedPage(one, place)),
    ...documents.map(agentPage),
    ...statefulSets.map((set) => {
      const [namespace, name] = (['namespace', 'name'] as const).map((field) => String(valueAt(set, ['metadata', field])));
      const path = `${manifestFolder}/${place(namespace ?? '', name ?? '')}`;
      return { path, text: manifestText(set), content: `StatefulSet ${namespace}/${name}` };
    }),
  ];
}

function groupPage(group: RolloutGroup, place: (namespace: string, name: string) => string): Page {
  const { namespace = 'default', name } = group.metadata;
  const zones = counted(group.spec.members.zones?.length ?? 0, 'zone');
  return { path: place(namespace, name), text: writeDocument(group), content: `RolloutGroup ${namespace}/${name}, ${zones}` };
}

function guessedPage({ group, comment, because }: GuessedGroup, place: (namespace: string, name: string) => string): Page {
  const page = groupPage(group, place);
  return { ...page, text: writeDocument(group, comment), content: `${page.content}, guessed: ${because}` };
}

function leftOutNotes({ leftOut }: Guesses): readonly string[] {
  return leftOut.map(({ namespace, name, why }) => `StatefulSet ${namespace}/${name} is left out: ${why}`);
}

/** Returns a note about the StatefulSets that are in no group because init runs without --guess. */
function unlabelledNotes({ groups }: Guesses): readonly string[] {
  const names = groups.flatMap(
    ({ group }) => group.spec.members.zones?.map(({ statefulSet }) => `${group.metadata.namespace}/${statefulSet}`) ?? [],
  );
  if (names.length === 0) return [];
  return [
    `${counted(names.length, 'StatefulSet')} ${names.length === 1 ? 'is' : 'are'} in no group: ${firstOf(names, 5)}. Run init with --guess to propose groups`,
  ];
}

function agentPage(document: MetricSource | NotificationChannel): Page {
  const { kind, metadata, spec } = document;
  const prefix = kind === 'MetricSource' ? 'source' : 'channel';
  const path = `${agentFolder}/${prefix}-${metadata.name}.yaml`;
  return { path, text: writeDocument(document), content: `${kind} ${metadata.name}, for ${spec.usableFrom.namespaces.join(', ')}` };
}

/** Throws Failure before any file is written, if an existing file would change. */
function refuseOverwriting(pages: readonly Page[], out: string, cwd: string): void {
  const different = pages.filter(({ path, text }) => {
    const file = join(resolve(cwd, out), path);
    return existsSync(file) && readFileSync(file, 'utf8') !== text;
  });
  const [first] = different;
  if (first === undefined) return;
  throw new Failure({
    exitCode: exitCodes.usage,
    what: `${join(out, first.path)} already exists with other content`,
    why: `${different.length} of ${counted(pages.length, 'file')} would be overwritten`,
    todo: 'choose another directory with --out, or overwrite with --force',
  });
}

function write(file: string, text: string): void {
  try {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  } catch (error) {
    throw unwritable(file, error);
  }
}

function noGroup(source: string, findings: readonly Finding[], { members, leftOut }: Guesses): Failure {
  if (members.length > 0 && leftOut.length === 0 && countFindings(findings).error === 0) {
    return notFoundFailure(`every StatefulSet of ${source} already belongs to a group`, {
      why: `members: ${firstOf(members, 5)}`,
      todo: 'run kubectl rollout-group get to see the groups, or choose another namespace or directory',
    });
  }
  const { error } = countFindings(findings);
  return notFoundFailure(`${source} has no StatefulSet for a group and no convertible object of another operator`, {
    ...(error === 0 ? {} : { why: `${counted(error, 'error')} above may hide such an object` }),
    todo: 'give the directory with the rendered manifests, or the namespace of the StatefulSets',
  });
}

interface InitReading extends Omit<Conversion, 'findings'> {
  readonly findings: readonly Finding[];
  readonly source: string;
  readonly notes: readonly string[];
  /** The input of a guess: all StatefulSets and the existing groups. */
  readonly guessable: GuessInput;
}

async function readFromFiles(context: CommandContext, fromDir: string): Promise<InitReading> {
  const { documents, manifests, findings: fileFindings } = loadPolicies(await readInput(fromDir, context));
  const adoption = adoptGroups(manifests.map(({ value }) => value));
  const conversion = convertObjects({
    objects: manifests,
    groups: adoption.groups,
    secretKeys: (namespace, name) => {
      const secret = manifests.find((one) => one.kind === 'Secret' && one.namespace === namespace && one.name === name);
      return secret && keysOf(secret.value);
    },
  });
  const isThere = (set: unknown) =>
    manifests.some(
      ({ kind, namespace, name }) =>
        kind === 'StatefulSet' && namespace === valueAt(set, ['metadata', 'namespace']) && name === valueAt(set, ['metadata', 'name']),
    );
  // An object without a namespace gets the default namespace of its file.
  const objects = manifests
    .filter(({ kind }) => kind === 'StatefulSet')
    .map(({ value, namespace }) => ({ ...value, metadata: { ...asJsonObject(valueAt(value, ['metadata'])), namespace } }));
  const groups = [...adoption.groups, ...conversion.groups];
  const written = documents.flatMap((document) => (document.kind === 'RolloutGroup' ? [document.value] : []));
  return {
    ...conversion,
    groups,
    guessable: { objects, groups: [...groups, ...written], claimed: claimedSets(manifests) },
    statefulSets: conversion.statefulSets.filter((set) => !isThere(set)),
    findings: sortFindings([...fileFindings, ...adoptionFindings(adoption.findings, manifests), ...conversion.findings]),
    source: fromDir,
    notes: [],
  };
}

/** Returns the names of the keys in a Secret, never the values. */
function keysOf(secret: unknown): readonly string[] {
  return ['data', 'stringData'].flatMap((field) => {
    const map = valueAt(secret, [field]);
    return isRecord(map) ? Object.keys(map) : [];
  });
}

const foreignResources = [
  resourceOf('sts.plus/v1alpha1', 'phasedrollouts', 'PhasedRollout'),
  resourceOf('bedrock.operator.slack.com/v1', 'statefulsetrollouts', 'StatefulsetRollout'),
];

/** Reads the objects of these namespaces, or of all if `namespaces` is undefined. */
async function readFromCluster(cluster: Cluster, namespaces: readonly string[] | undefined): Promise<InitReading> {
  const statefulSets = await listIn(cluster, resources.statefulSets, namespaces);
  const discovery = await discover(cluster.env, { timeoutMs: cluster.timeoutMs });
  const served = foreignResources.flatMap((known) =>
    discovery.find({ group: known.group, version: known.version, kind: known.kind }).slice(0, 1),
  );
  const notes: string[] = [];
  const lists = await Promise.all(
    served.map(async (resource) => {
      const list = await listIn(cluster, resource, namespaces).catch(onStatus(undefined, 403));
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
  const named = new Map(
    objects.flatMap(({ namespace, value }) => {
      const name = valueAt(value, ['spec', 'check', 'query', 'secretRef']);
      return typeof name === 'string' && name !== '' ? [[`${namespace}/${name}`, { namespace, name }] as const] : [];
    }),
  );
  const found = await Promise.all(
    [...named.entries()].map(async ([key, secret]) => {
      const options = { site: 'init.secretKeys', timeoutMs: cluster.timeoutMs };
      const object = await getObject(cluster.env, resources.secrets, secret, options).catch(onStatus(undefined, 403));
      return object === undefined ? [] : [[key, keysOf(object)] as const];
    }),
  );
  return new Map(found.flat());
}
