// Desired objects as the cluster would store them: by a dry run, else by laying the manifest over the live object.

import { ApiFailure, isStatus } from '../../../cluster/request/failure.ts';
import { getObject } from '../../../cluster/request/read.ts';
import type { KubernetesObject, Resource } from '../../../cluster/request/resource.ts';
import { createObject, patchObject } from '../../../cluster/request/write.ts';
import { entryKey, keyOf, type ObjectContent } from '../../../engine/diff/field-diff.ts';
import { fieldAt } from '../../../engine/observe/raw.ts';
import { isRecord } from '../../../policies/schema/schema-walk.ts';
import { canonicalJson } from '../../../policies/values/canonical-json.ts';
import { tryParseJson } from '../../../policies/values/try-parse-json.ts';
import type { ResourceOf } from '../../cluster-snapshot/kinds.ts';
import type { Cluster } from '../../connection.ts';
import { nameOf } from '../../difference.ts';

/** A desired object with its resource and live twin. */
export interface AskedObject {
  readonly manifest: ObjectContent;
  readonly resource: Resource | undefined;
  readonly live: KubernetesObject | undefined;
}

export interface StoredObject {
  readonly object: ObjectContent;
  /** Why the object was computed here; absent when the API server computed it or nothing changes. */
  readonly note?: string;
}

/**
 * Returns the object as the API server would store it, by a dry run without conflicts. If that fails, the manifest over the live object.
 */
export async function storedObject(cluster: Cluster, asked: AskedObject): Promise<StoredObject> {
  const { live, manifest, resource } = asked;
  const object = overlaid(live, manifest);
  if (resource === undefined) return { object, note: `the kind of ${nameOf(manifest)} is not installed` };
  try {
    return { object: live === undefined ? await tryCreate(cluster, resource, manifest) : await tryPatch(cluster, resource, live, object) };
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
    return { object, note: `${nameOf(manifest)}: the API server refused the dry run: ${error.message}` };
  }
}

async function tryCreate({ env, timeoutMs }: Cluster, resource: Resource, manifest: ObjectContent): Promise<ObjectContent> {
  if (!hasName(manifest)) return manifest;
  return createObject(env, resource, withoutIdentity(manifest), { site: 'source.tryCreate', timeoutMs, dryRun: true });
}

async function tryPatch(
  { env, timeoutMs }: Cluster,
  resource: Resource,
  live: KubernetesObject,
  wanted: ObjectContent,
): Promise<ObjectContent> {
  const patch = mergePatch(live, wanted);
  if (patch === undefined) return live;
  const { namespace, name, uid = '', resourceVersion = '' } = live.metadata;
  const target = { name, uid, resourceVersion, ...(namespace === undefined ? {} : { namespace }) };
  return patchObject(env, resource, target, { patch, site: 'source.tryPatch', timeoutMs, dryRun: true });
}

/** Pairs the objects with their live twins. Objects in `seen` are not read again. */
export async function liveTwins(
  { env, timeoutMs }: Cluster,
  asked: readonly ObjectContent[],
  resourceOf: ResourceOf,
  seen: readonly ObjectContent[],
): Promise<readonly AskedObject[]> {
  const read = new Map(seen.map((object) => [nameOf(object), object]));
  return Promise.all(
    asked.map(async (manifest): Promise<AskedObject> => {
      const resource = resourceOf(String(manifest['apiVersion']), String(manifest['kind']));
      const twin = read.get(nameOf(manifest));
      if (twin !== undefined && hasName(twin)) return { manifest, resource, live: twin };
      return { manifest, resource, live: resource === undefined ? undefined : await get(resource, manifest) };
    }),
  );

  async function get(resource: Resource, manifest: ObjectContent): Promise<KubernetesObject | undefined> {
    const namespace = fieldAt(manifest, ['metadata', 'namespace']);
    const target = { name: String(fieldAt(manifest, ['metadata', 'name']) ?? ''), ...(typeof namespace === 'string' ? { namespace } : {}) };
    try {
      return await getObject(env, resource, target, { site: 'source.twin', timeoutMs });
    } catch (error) {
      // The resource was removed after discovery.
      if (isStatus(error, 404)) return undefined;
      throw error;
    }
  }
}

/** The JSON merge patch (RFC 7386) from one object to another; undefined when there is nothing to change. Lists are replaced whole. */
export function mergePatch(from: ObjectContent, to: ObjectContent): ObjectContent | undefined {
  const members = [...new Set([...Object.keys(from), ...Object.keys(to)])].flatMap((key): readonly (readonly [string, unknown])[] => {
    const [before, after] = [from[key], to[key]];
    if (canonicalJson(before) === canonicalJson(after)) return [];
    if (after === undefined) return [[key, null]];
    if (!isRecord(before) || !isRecord(after)) return [[key, after]];
    const inner = mergePatch(before, after);
    return inner === undefined ? [] : [[key, inner]];
  });
  return members.length === 0 ? undefined : Object.fromEntries(members);
}

/** Removes the identity and status of the object from which a manifest was exported. */
function withoutIdentity(manifest: ObjectContent & Pick<KubernetesObject, 'metadata'>): KubernetesObject {
  const {
    uid: _uid,
    resourceVersion: _version,
    managedFields: _fields,
    creationTimestamp: _created,
    generation: _generation,
    ...metadata
  } = manifest.metadata;
  const { status: _status, ...rest } = manifest;
  return { ...rest, metadata };
}

/** Returns the manifest to apply, without status and identity of an exported object. */
export function toApply(manifest: ObjectContent): KubernetesObject {
  if (!hasName(manifest)) throw new Error(`${nameOf(manifest)} has no name`);
  const { selfLink: _link, ...metadata } = withoutIdentity(manifest).metadata;
  const { 'kubectl.kubernetes.io/last-applied-configuration': _last, ...annotations } = metadata.annotations ?? {};
  const { annotations: _all, ...rest } = metadata;
  return {
    ...withoutIdentity(manifest),
    metadata: { ...rest, ...(Object.keys(annotations).length === 0 ? {} : { annotations }) },
  };
}

/** Reports whether the manifest has a name. */
function hasName(manifest: ObjectContent): manifest is ObjectContent & Pick<KubernetesObject, 'metadata'> {
  const metadata = manifest['metadata'];
  return isRecord(metadata) && typeof metadata['name'] === 'string' && metadata['name'] !== '';
}

const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';

/** Returns the live object with the manifest over it, without fields that only the last manifest named. List entries match by key. */
export function overlaid(live: ObjectContent | undefined, asked: ObjectContent): ObjectContent {
  if (live === undefined) return asked;
  const merged = merge(live, asked, lastManifest(live), '');
  return isRecord(merged) ? merged : asked;
}

/** Removes replicas that only the cluster names: a plan takes the number in a manifest as desired. */
export function withReplicasAsAsked(object: ObjectContent, manifest: ObjectContent | undefined): ObjectContent {
  const spec = object['spec'];
  if (object['kind'] !== 'StatefulSet' || !isRecord(spec) || fieldAt(manifest, ['spec', 'replicas']) !== undefined) return object;
  const { replicas: _replicas, ...rest } = spec;
  return { ...object, spec: rest };
}

/** A field that neither side nor the last manifest has is undefined and left out. */
function merge(live: unknown, asked: unknown, last: unknown, name: string): unknown {
  if (asked === undefined) return last === undefined ? live : undefined;
  if (isRecord(live) && isRecord(asked)) return mergeMaps(live, asked, isRecord(last) ? last : {});
  if (Array.isArray(live) && Array.isArray(asked)) return mergeLists(live, asked, Array.isArray(last) ? last : [], name);
  return asked;
}

function mergeMaps(live: ObjectContent, asked: ObjectContent, last: ObjectContent): ObjectContent {
  const keys = new Set([...Object.keys(live), ...Object.keys(asked)]);
  const members = [...keys].map((key): readonly [string, unknown] => [key, merge(live[key], asked[key], last[key], key)]);
  return Object.fromEntries(members.filter(([, value]) => value !== undefined));
}

function mergeLists(live: readonly unknown[], asked: readonly unknown[], last: readonly unknown[], name: string): readonly unknown[] {
  const key = entryKey(name, [live, asked, last]);
  // Without a key the list is one value, as it is for the API server.
  if (key === undefined || live.length === 0 || asked.length === 0) return asked;
  const keyed = (list: readonly unknown[]) => new Map(list.map((entry) => [keyOf(entry, key), entry]));
  const [present, wanted, before] = [keyed(live), keyed(asked), keyed(last)];
  const kept = live.filter((entry) => !wanted.has(keyOf(entry, key)) && !before.has(keyOf(entry, key)));
  return [...asked.map((entry) => merge(present.get(keyOf(entry, key)), entry, before.get(keyOf(entry, key)), '')), ...kept];
}

function lastManifest(live: ObjectContent): unknown {
  return tryParseJson(fieldAt(live, ['metadata', 'annotations', lastApplied]));
}
