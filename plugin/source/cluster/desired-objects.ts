// Computes desired objects as the cluster would store them: by a dry run, else by merging the manifest into the live object.
import { ApiFailure, isStatus } from '../../../cluster/request/failure.ts';
import { getObject } from '../../../cluster/request/read.ts';
import { type KubernetesObject, lastAppliedAnnotation, type Resource } from '../../../cluster/request/resource.ts';
import { createObject, patchObject } from '../../../cluster/request/write.ts';
import { entryKey, keyOf, type ObjectContent } from '../../../engine/diff/field-diff.ts';
import { fieldAt } from '../../../engine/observe/raw.ts';
import { isSameValue } from '../../../policies/values/canonical-json.ts';
import { isRecord } from '../../../policies/values/is-record.ts';
import { tryParseJson } from '../../../policies/values/try-parse-json.ts';
import type { ResourceOf } from '../../cluster-snapshot/kinds.ts';
import type { Cluster } from '../../connection.ts';
import { nameOf } from '../../difference.ts';

/** A manifest with its resource and the live object of the same name. */
export interface ManifestObject {
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
 * Returns the object as the API server would store it, by a dry run without conflicts. If the dry run fails,
 * returns the live object with the manifest merged into it.
 */
export async function storedObject(cluster: Cluster, desired: ManifestObject): Promise<StoredObject> {
  const { live, manifest, resource } = desired;
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

/** Pairs each manifest with the live object of the same name. Objects in `seen` are not read again. */
export async function pairWithLiveObjects(
  { env, timeoutMs }: Cluster,
  manifests: readonly ObjectContent[],
  resourceOf: ResourceOf,
  seen: readonly ObjectContent[],
): Promise<readonly ManifestObject[]> {
  const read = new Map(seen.map((object) => [nameOf(object), object]));
  return Promise.all(
    manifests.map(async (manifest): Promise<ManifestObject> => {
      const resource = resourceOf(String(manifest['apiVersion']), String(manifest['kind']));
      const found = read.get(nameOf(manifest));
      if (found !== undefined && hasName(found)) return { manifest, resource, live: found };
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

/** Returns the JSON merge patch (RFC 7386) from one object to another; undefined without a change. Lists are replaced as a whole. */
export function mergePatch(from: ObjectContent, to: ObjectContent): ObjectContent | undefined {
  const members = [...new Set([...Object.keys(from), ...Object.keys(to)])].flatMap((key): readonly (readonly [string, unknown])[] => {
    const [before, after] = [from[key], to[key]];
    if (isSameValue(before, after)) return [];
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

/** Merges the manifest into the live object. Removes fields that only the last applied manifest named. Matches list entries by key. */
export function overlaid(live: ObjectContent | undefined, manifest: ObjectContent): ObjectContent {
  if (live === undefined) return manifest;
  const merged = merge(live, manifest, lastManifest(live), '');
  return isRecord(merged) ? merged : manifest;
}

/** Removes replicas that only the cluster names: a plan takes the number in a manifest as desired. */
export function withManifestReplicas(object: ObjectContent, manifest: ObjectContent | undefined): ObjectContent {
  const spec = object['spec'];
  if (object['kind'] !== 'StatefulSet' || !isRecord(spec) || fieldAt(manifest, ['spec', 'replicas']) !== undefined) return object;
  const { replicas: _replicas, ...rest } = spec;
  return { ...object, spec: rest };
}

/** Returns the merged value; undefined for a field that the merge removes. */
function merge(live: unknown, manifest: unknown, last: unknown, name: string): unknown {
  if (manifest === undefined) return last === undefined ? live : undefined;
  if (isRecord(live) && isRecord(manifest)) return mergeMaps(live, manifest, isRecord(last) ? last : {});
  if (Array.isArray(live) && Array.isArray(manifest)) return mergeLists(live, manifest, Array.isArray(last) ? last : [], name);
  return manifest;
}

function mergeMaps(live: ObjectContent, manifest: ObjectContent, last: ObjectContent): ObjectContent {
  const keys = new Set([...Object.keys(live), ...Object.keys(manifest)]);
  const members = [...keys].map((key): readonly [string, unknown] => [key, merge(live[key], manifest[key], last[key], key)]);
  return Object.fromEntries(members.filter(([, value]) => value !== undefined));
}

function mergeLists(live: readonly unknown[], manifest: readonly unknown[], last: readonly unknown[], name: string): readonly unknown[] {
  const key = entryKey(name, [live, manifest, last]);
  // Without a key the list is one value, as it is for the API server.
  if (key === undefined || live.length === 0 || manifest.length === 0) return manifest;
  const keyed = (list: readonly unknown[]) => new Map(list.map((entry) => [keyOf(entry, key), entry]));
  const [present, wanted, before] = [keyed(live), keyed(manifest), keyed(last)];
  const kept = live.filter((entry) => !wanted.has(keyOf(entry, key)) && !before.has(keyOf(entry, key)));
  return [...manifest.map((entry) => merge(present.get(keyOf(entry, key)), entry, before.get(keyOf(entry, key)), '')), ...kept];
}

function lastManifest(live: ObjectContent): unknown {
  return tryParseJson(fieldAt(live, ['metadata', 'annotations', lastAppliedAnnotation]));
}
