// Determines how the cluster would store desired objects: from a dry run of the apply, or computed here if the dry run is rejected.
import { ApiFailure, onStatus } from '../../../cluster/request/failure.ts';
import { getObject } from '../../../cluster/request/read.ts';
import { type KubernetesObject, lastAppliedAnnotation, type Resource } from '../../../cluster/request/resource.ts';
import { applyObject, patchObject, targetOf, WriteRefused } from '../../../cluster/request/write.ts';
import { entryKey, fieldDiff, keyOf, type ObjectContent, withDefaults } from '../../../engine/diff/field-diff.ts';
import { mergePatch } from '../../../engine/diff/merge-patch.ts';
import { fieldAt } from '../../../engine/observe/raw.ts';
import { holdingPartition } from '../../../policies/strategies.ts';
import { isRecord } from '../../../policies/values/is-record.ts';
import { tryParseJson } from '../../../policies/values/try-parse-json.ts';
import { resourcesOf } from '../../cluster-snapshot/kinds.ts';
import { type Cluster, fieldManager } from '../../connection.ts';
import { isAdmission, shortMessage } from '../../connection-failure.ts';
import { nameOf } from '../../difference.ts';
import { withField } from '../what-if.ts';
import { gitOpsOwner } from './git-ops-owner.ts';
import { applied, clientSideManagersOf, keptFields, removableFields } from './managed-fields.ts';
import { planAnnotation } from './plan-basis.ts';
import { type ApplyMode, type Conflict, conflictsOf, preconditioned, type ReadyObject, serverApply } from './server-apply.ts';

export interface ManifestObject {
  readonly manifest: ObjectContent;
  readonly resource: Resource | undefined;
  readonly live: KubernetesObject | undefined;
}

export interface StoredObject {
  readonly object: ObjectContent;
  /** The facts about the result, each as a part of a sentence without the name of the object. */
  readonly notes: readonly string[];
  /** The error with which the API server would reject the apply. */
  readonly trouble?: ApiFailure;
  /** The fields of other managers that the manifest owns after the apply. */
  readonly taken: readonly Conflict[];
}

/** Returns the object as the API server stores it after the apply. Sends the same request as the apply, as a dry run. */
export async function storedObject(cluster: Cluster, desired: ManifestObject, forceConflicts: boolean): Promise<StoredObject> {
  const { live, manifest, resource } = desired;
  if (resource === undefined || !hasName(manifest)) return { object: manifest, notes: [], taken: [] };
  if (live !== undefined && gitOpsOwner(live) !== undefined) return writtenByOwner(cluster, resource, live, manifest);
  const ready = { resource, live, object: toApply(manifest, live) };
  const mode = { isDryRun: true, forceConflicts };
  try {
    const { object, taken, moved } = await serverApply(cluster, ready, mode);
    const movedNote = `apply moves the fields of ${moved.join(' and ')} to ${fieldManager}`;
    return { object, taken, notes: moved.length > 0 ? [movedNote] : keptNotes(ready, object) };
  } catch (error) {
    if (error instanceof ApiFailure) return { ...(await refusedObject(cluster, ready, error, mode)), trouble: error };
    if (error instanceof WriteRefused) return refusedObject(cluster, ready, error, mode);
    throw error;
  }
}

/** Returns the result of a refused apply: from a dry run that forces the conflicts, or computed here if the error names no conflict. */
async function refusedObject(cluster: Cluster, ready: ReadyObject, error: Error, mode: ApplyMode): Promise<StoredObject> {
  const { live } = ready;
  const merged = applied(live, ready.object);
  // --force-conflicts also removes fields that only the last `kubectl apply` named. Defaults stay, although client-side apply owns them.
  const kept = mode.forceConflicts ? overlaid(merged, ready.object) : merged;
  const object = live === undefined ? kept : withDefaults(live, kept);
  // Plan and diff show the message of a denial as DENIED.
  if (conflictsOf(error).length === 0)
    return computedObject(live, object, error instanceof ApiFailure && isAdmission(error) ? undefined : error);
  const { env, timeoutMs } = cluster;
  const options = { fieldManager, takesFields: true, dryRun: true, site: 'source.force', timeoutMs };
  const tried = await triedObject(applyObject(env, ready.resource, preconditioned(ready.object, live), options), live, object);
  return mode.forceConflicts ? tried : { ...tried, notes: [...tried.notes, ...keptNotes(ready, tried.object)] };
}

/** Returns the result that was computed here. The note has the message of the error; undefined: the message is shown elsewhere. */
function computedObject(live: ObjectContent | undefined, object: ObjectContent, error: Error | undefined): StoredObject {
  const isChanged = live === undefined || fieldDiff(live, object).length > 0;
  const why = error === undefined ? '' : `: ${shortMessage(error.message)}`;
  const note = `the API server refused the dry run, so the result is computed here, without changes by webhooks${why}`;
  return { object, notes: isChanged ? [note] : [], taken: [] };
}

/** Returns a note for each other manager whose fields stay although the manifest omits them. */
function keptNotes({ live, object }: ReadyObject, stored: ObjectContent): readonly string[] {
  const noteOn = (manager: string, without: ObjectContent, todo: string): readonly string[] => {
    const [first, ...others] = fieldDiff(stored, without).filter(({ operation }) => /remove|change/.test(operation));
    if (first === undefined) return [];
    const [fields, stay] = others.length === 0 ? [first.path, 'stays'] : [`${first.path} and ${others.length} more fields`, 'stay'];
    return [`${fields} of ${manager} ${stay}; ${todo}`];
  };
  const forced = '--force-conflicts removes fields that the manifest omits';
  const clientSide = clientSideManagersOf(live);
  return [
    ...(clientSide.length === 0 ? [] : noteOn(clientSide.join(' and '), overlaid(live, object), forced)),
    ...keptFields(live, stored).flatMap(({ manager, isOfKubectl, without }) =>
      noteOn(manager, without, isOfKubectl ? forced : `${manager} still applies what this manifest no longer names`),
    ),
  ];
}

/** Returns the result of a dry run. If the API server rejects it, returns the object that was computed here. */
async function triedObject(
  dryRun: Promise<KubernetesObject>,
  live: KubernetesObject | undefined,
  computed: ObjectContent,
): Promise<StoredObject> {
  try {
    return { object: await dryRun, notes: [], taken: [] };
  } catch (error) {
    if (error instanceof ApiFailure) return computedObject(live, computed, error);
    throw error;
  }
}

/** Returns the object that its GitOps tool would write from the manifest. `apply` rejects a change of such an object. */
async function writtenByOwner(
  { env, timeoutMs }: Cluster,
  resource: Resource,
  live: KubernetesObject,
  manifest: ObjectContent,
): Promise<StoredObject> {
  const object = overlaid(live, manifest);
  const patch = mergePatch(live, object);
  if (patch === undefined) return { object: live, notes: [], taken: [] };
  const dryRun = patchObject(env, resource, targetOf(live), { patch, site: 'source.tryPatch', timeoutMs, dryRun: true });
  return triedObject(dryRun, live, withDefaults(live, object));
}

/**
 * Pairs each manifest with its resource and the live object of the same name. Adds `cluster.namespace` to manifests without a namespace.
 * Objects in `seen` are not read again.
 */
export async function pairWithLiveObjects(
  cluster: Cluster,
  manifests: readonly ObjectContent[],
  seen: readonly ObjectContent[],
): Promise<readonly ManifestObject[]> {
  const resourceOf = await resourcesOf(cluster, manifests);
  const read = new Map(seen.map((object) => [nameOf(object), object]));
  return Promise.all(
    manifests.map(async (written): Promise<ManifestObject> => {
      const resource = resourceOf(String(written['apiVersion']), String(written['kind']));
      const manifest = resource?.isNamespaced === false ? written : inNamespace(written, cluster.namespace);
      const found = read.get(nameOf(manifest));
      if (found !== undefined && hasName(found)) return { manifest, resource, live: found };
      return { manifest, resource, live: resource === undefined ? undefined : await liveObject(cluster, resource, manifest) };
    }),
  );
}

function inNamespace(object: ObjectContent, namespace: string): ObjectContent {
  const metadata = isRecord(object['metadata']) ? object['metadata'] : {};
  return metadata['namespace'] === undefined ? { ...object, metadata: { ...metadata, namespace } } : object;
}

async function liveObject({ env, timeoutMs }: Cluster, resource: Resource, manifest: ObjectContent): Promise<KubernetesObject | undefined> {
  const namespace = fieldAt(manifest, ['metadata', 'namespace']);
  const target = { name: String(fieldAt(manifest, ['metadata', 'name']) ?? ''), ...(typeof namespace === 'string' ? { namespace } : {}) };
  // The status is 404 if the resource was removed after discovery.
  return getObject(env, resource, target, { site: 'source.twin', timeoutMs }).catch(onStatus(undefined, 404));
}

/**
 * Returns the manifest to apply, without status and identity of an exported object. Keeps the annotation of the last plan, and the
 * partition of the agent.
 */
export function toApply(manifest: ObjectContent, live?: KubernetesObject): KubernetesObject {
  const held = live === undefined ? manifest : withHeldPartition(manifest, live);
  if (!hasName(held)) throw new Error(`${nameOf(manifest)} has no name`);
  const { status: _status, metadata, ...rest } = held;
  const {
    uid: _uid,
    resourceVersion: _version,
    managedFields: _fields,
    creationTimestamp: _created,
    generation: _generation,
    selfLink: _link,
    annotations: written,
    ...named
  } = metadata;
  // A manifest may have the key without a value, which YAML reads as null.
  const { [lastAppliedAnnotation]: _last, [planAnnotation]: _plan, ...own } = written ?? {};
  const mark = live?.metadata.annotations?.[planAnnotation];
  const annotations = mark === undefined ? own : { ...own, [planAnnotation]: mark };
  return { ...rest, metadata: { ...named, ...(Object.keys(annotations).length === 0 ? {} : { annotations }) } };
}

const partitionPath = ['spec', 'updateStrategy', 'rollingUpdate', 'partition'];
const partitionField = partitionPath.map((name) => `/f:${name}`).join('');

/**
 * Adds `holdingPartition` if an earlier manifest named it and the new manifest omits it. Otherwise the apply would remove the partition,
 * and the StatefulSet controller would replace pods until the agent restores the partition.
 */
function withHeldPartition(manifest: ObjectContent, live: KubernetesObject): ObjectContent {
  const partition = fieldAt(live, partitionPath);
  const isKept =
    manifest['kind'] === 'StatefulSet' &&
    partition === holdingPartition &&
    fieldAt(manifest, partitionPath) === undefined &&
    fieldAt(manifest, ['spec', 'updateStrategy', 'type']) !== 'OnDelete' &&
    removableFields(live).includes(partitionField);
  return isKept ? withField(manifest, partitionPath, partition) : manifest;
}

/** Returns the stored object without a partition that the manifest omits. The agent wrote this partition, so lint ignores it. */
export function withManifestPartition(object: ObjectContent, manifest: ObjectContent): ObjectContent {
  const isOthers = fieldAt(object, partitionPath) !== undefined && fieldAt(manifest, partitionPath) === undefined;
  return object['kind'] === 'StatefulSet' && isOthers ? withField(object, partitionPath, undefined) : object;
}

function hasName(manifest: ObjectContent): manifest is ObjectContent & Pick<KubernetesObject, 'metadata'> {
  const metadata = manifest['metadata'];
  return isRecord(metadata) && typeof metadata['name'] === 'string' && metadata['name'] !== '';
}

/** Merges the manifest into the live object. Removes fields that only the last applied manifest named. Matches list entries by key. */
export function overlaid(live: ObjectContent | undefined, manifest: ObjectContent): ObjectContent {
  if (live === undefined) return manifest;
  const last = tryParseJson(fieldAt(live, ['metadata', 'annotations', lastAppliedAnnotation]));
  const merged = merge(live, manifest, last, '');
  return isRecord(merged) ? merged : manifest;
}

/** Removes `spec.replicas` that the manifest does not name and the apply does not change. A plan treats remaining replicas as desired. */
export function withManifestReplicas(object: ObjectContent, desired?: Pick<ManifestObject, 'manifest' | 'live'>): ObjectContent {
  const spec = object['spec'];
  if (object['kind'] !== 'StatefulSet' || !isRecord(spec) || fieldAt(desired?.manifest, ['spec', 'replicas']) !== undefined) return object;
  // An apply that no longer names its replicas resets them to the default.
  if (desired?.live !== undefined && fieldAt(desired.live, ['spec', 'replicas']) !== spec['replicas']) return object;
  const { replicas: _replicas, ...rest } = spec;
  return { ...object, spec: rest };
}

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
  // As in the API server, a list without a key is one value.
  if (key === undefined || live.length === 0 || manifest.length === 0) return manifest;
  const keyed = (list: readonly unknown[]) => new Map(list.map((entry) => [keyOf(entry, key), entry]));
  const [present, wanted, before] = [keyed(live), keyed(manifest), keyed(last)];
  const kept = live.filter((entry) => !wanted.has(keyOf(entry, key)) && !before.has(keyOf(entry, key)));
  return [...manifest.map((entry) => merge(present.get(keyOf(entry, key)), entry, before.get(keyOf(entry, key)), '')), ...kept];
}
