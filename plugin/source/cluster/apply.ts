// Applies objects in order under our field manager, takes no field of another manager, and finds the other writers of an object.
import { ApiFailure, isStatus, TransportFailure } from '../../../cluster/request/failure.ts';
import { getObject } from '../../../cluster/request/read.ts';
import type { KubernetesObject, Resource } from '../../../cluster/request/resource.ts';
import { applyObject } from '../../../cluster/request/write.ts';
import { fieldAt } from '../../../engine/observe/raw.ts';
import { messageOf } from '../../../policies/error-message.ts';
import { instantMs } from '../../../policies/instant.ts';
import { isSameValue } from '../../../policies/values/canonical-json.ts';
import type { Cluster } from '../../connection.ts';
import { nameOf } from '../../difference.ts';
import { fieldManager } from '../../live/intents.ts';
import { planAnnotation, targetOf } from './plan-basis.ts';

export interface ReadyObject {
  readonly resource: Resource;
  /** The object to apply. */
  readonly object: KubernetesObject;
  /** The object as last read; undefined if it does not exist. */
  readonly live: KubernetesObject | undefined;
}

type ApplyResult = 'created' | 'configured' | 'failed' | 'unknown' | 'notAttempted';

export interface AppliedObject {
  /** `kind namespace/name`. */
  readonly object: string;
  readonly result: ApplyResult;
  /** Why it failed. */
  readonly message?: string;
  /** Fields of the template that `undo` or `restart` wrote and the manifest owns from now on; absent without any. */
  readonly taken?: readonly string[];
}

/** The result of a dry run of all objects. */
interface Trial {
  /** Every problem, in the order of the objects. */
  readonly troubles: readonly Trouble[];
  /** `AppliedObject.taken` of the objects to apply, by name. */
  readonly taken: ReadonlyMap<string, readonly string[]>;
}

/** A field that another manager owns. */
interface Conflict {
  readonly object: string;
  readonly manager: string;
  readonly field: string;
}

/** A problem of one object in the dry run. */
export interface Trouble {
  readonly object: string;
  readonly error: ApiFailure;
  /** Conflicts with other field managers; empty for any other problem. */
  readonly conflicts: readonly Conflict[];
}

/** Sends every object as a dry run. */
export async function tryAll(cluster: Cluster, objects: readonly ReadyObject[]): Promise<Trial> {
  const troubles: Trouble[] = [];
  const taken = new Map<string, readonly string[]>();
  for (const ready of objects) {
    try {
      const fields = await send(cluster, ready, { isDryRun: true });
      if (fields.length > 0) taken.set(nameOf(ready.object), fields);
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error;
      troubles.push({ object: nameOf(ready.object), error, conflicts: conflictsOf(nameOf(ready.object), error) });
    }
  }
  return { troubles, taken };
}

/** Applies the objects in order, stops at the first failure and reverts nothing. After a lost response the result is `unknown`. */
export async function applyAll(
  cluster: Cluster,
  objects: readonly ReadyObject[],
  plan: string,
): Promise<{ readonly applied: readonly AppliedObject[]; readonly error?: unknown }> {
  const applied: AppliedObject[] = [];
  for (const [index, ready] of objects.entries()) {
    const object = nameOf(ready.object);
    try {
      const taken = await send(cluster, marked(ready, plan), { isDryRun: false });
      applied.push({ object, result: ready.live === undefined ? 'created' : 'configured', ...(taken.length === 0 ? {} : { taken }) });
    } catch (error) {
      const result = error instanceof TransportFailure && error.mayBeApplied ? 'unknown' : 'failed';
      const message = messageOf(error);
      const rest = objects.slice(index + 1).map((one) => ({ object: nameOf(one.object), result: 'notAttempted' as const }));
      return { applied: [...applied, { object, result, message }, ...rest], error };
    }
  }
  return { applied };
}

function marked({ object, ...rest }: ReadyObject, plan: string): ReadyObject {
  const annotations = { ...object.metadata.annotations, [planAnnotation]: plan };
  return { ...rest, object: { ...object, metadata: { ...object.metadata, annotations } } };
}

/** A status update in between is no change. A change of the spec stops the apply. */
const attempts = 4;

/** Returns the fields for `AppliedObject.taken`. */
async function send(cluster: Cluster, ready: ReadyObject, { isDryRun }: { readonly isDryRun: boolean }): Promise<readonly string[]> {
  const { env, timeoutMs } = cluster;
  const options = { fieldManager, dryRun: isDryRun, site: isDryRun ? 'apply.try' : 'apply.apply', timeoutMs };
  let { live } = ready;
  let taken: readonly string[] = [];
  for (let attempt = 1; ; attempt += 1) {
    try {
      await applyObject(env, ready.resource, preconditioned(ready.object, live), { ...options, takesFields: taken.length > 0 });
      return taken;
    } catch (error) {
      if (attempt >= attempts) throw error;
      // Forces the apply only on exactly the state in which no other manager owns these fields.
      taken = taken.length === 0 && isExact(live) ? onlyOurs(ready, error) : [];
      if (taken.length === 0) live = await readUnchanged(cluster, ready, error);
    }
  }
}

/** Reads the object again after a conflict of versions. @throws the error if it has another cause, or the spec changed. */
async function readUnchanged({ env, timeoutMs }: Cluster, ready: ReadyObject, error: unknown): Promise<KubernetesObject | undefined> {
  if (!isStatus(error, 409) || conflictsOf('', error).length > 0) throw error;
  const { namespace, name } = ready.object.metadata;
  const target = { name, ...(namespace === undefined ? {} : { namespace }) };
  const now = await getObject(env, ready.resource, target, { site: 'apply.read', timeoutMs });
  if (!isSameValue(targetOf('', ready.live), targetOf('', now))) throw error;
  return now;
}

/** The field manager of `undo` and `restart`: the name of the executable, which the API server takes from the user agent. */
const patchManager = 'kubectl-rollout_group';

/** Returns the conflicting fields if `undo` or `restart` patched all of them, because manifests may overwrite those; else none. */
function onlyOurs({ object }: ReadyObject, error: unknown): readonly string[] {
  if (!(error instanceof ApiFailure) || object.kind !== 'StatefulSet') return [];
  const { causes } = error.details;
  const conflicts = conflictsOf('', error);
  const isAll = conflicts.length === (Array.isArray(causes) ? causes.length : 0);
  const areOurs = conflicts.every(({ manager, field }) => manager === patchManager && field.startsWith('.spec.template.'));
  return isAll && areOurs ? conflicts.map(({ field }) => field) : [];
}

/** Reports whether a precondition can name exactly this state of the object. */
function isExact(live: KubernetesObject | undefined): boolean {
  return live !== undefined && (live.metadata.uid ?? '') !== '' && (live.metadata.resourceVersion ?? '') !== '';
}

/** Adds UID and resource version, so that the apply changes only the object as it was read. */
function preconditioned(object: KubernetesObject, live: KubernetesObject | undefined): KubernetesObject {
  if (live === undefined) return object;
  const { uid = '', resourceVersion = '' } = live.metadata;
  return { ...object, metadata: { ...object.metadata, uid, resourceVersion } };
}

/** Returns the fields that other managers own, from the Status of a failed apply. */
export function conflictsOf(object: string, error: ApiFailure): readonly Conflict[] {
  const { causes } = error.details;
  if (error.status !== 409 || !Array.isArray(causes)) return [];
  return causes.flatMap((cause): readonly Conflict[] => {
    if (fieldAt(cause, ['reason']) !== 'FieldManagerConflict') return [];
    const manager = /conflict with "((?:[^"\\]|\\.)*)"/.exec(String(fieldAt(cause, ['message']) ?? ''))?.[1] ?? 'another manager';
    return [{ object, manager, field: String(fieldAt(cause, ['field']) ?? '') }];
  });
}

/** A tool that reverts an object to its state in Git. */
interface GitOpsOwner {
  /** Such as Argo CD. */
  readonly tool: string;
  /** The application or release, where the object names it. */
  readonly of?: string;
  /** The evidence: a field manager, a label or an annotation. */
  readonly evidence: string;
  /** The tool owns `spec.replicas`. */
  readonly ownsReplicas: boolean;
}

const managers: readonly (readonly [RegExp, string])[] = [
  [/^argocd-(?:application-)?controller$|^argocd-server$|^argocd$/, 'Argo CD'],
  [/^kustomize-controller$/, 'Flux'],
  [/^helm-controller$/, 'Flux'],
  [/^flux(?:$|-)/, 'Flux'],
  [/^helm$/, 'Helm'],
  [/^(?:config-sync|configsync|applier-manager)/, 'Config Sync'],
  [/^fleet(?:agent|-agent)/, 'Fleet'],
];

const marks: readonly (readonly [kind: 'labels' | 'annotations', key: string, tool: string])[] = [
  ['annotations', 'argocd.argoproj.io/tracking-id', 'Argo CD'],
  ['labels', 'argocd.argoproj.io/instance', 'Argo CD'],
  ['labels', 'kustomize.toolkit.fluxcd.io/name', 'Flux'],
  ['labels', 'helm.toolkit.fluxcd.io/name', 'Flux'],
  ['annotations', 'meta.helm.sh/release-name', 'Helm'],
  ['annotations', 'configmanagement.gke.io/managed', 'Config Sync'],
];

/** Returns the GitOps tool that owns a live object, from labels and annotations, else from field managers; undefined without one. */
export function gitOpsOwner(live: unknown): GitOpsOwner | undefined {
  const ownsReplicas = replicaOwners(live).some((name) => toolOf(name) !== undefined);
  for (const [kind, key, tool] of marks) {
    const value = fieldAt(live, ['metadata', kind, key]);
    if (typeof value !== 'string') continue;
    const of = key.endsWith('tracking-id') ? (value.split(':')[0] ?? value) : value;
    return { tool, of, evidence: `${kind === 'labels' ? 'label' : 'annotation'} ${key}`, ownsReplicas };
  }
  for (const { manager } of managedFields(live)) {
    const tool = toolOf(manager);
    if (tool !== undefined) return { tool, evidence: `field manager ${manager}`, ownsReplicas };
  }
  return undefined;
}

/** Returns the managers that own `spec.replicas`, in the order of the object. */
export function replicaOwners(live: unknown): readonly string[] {
  return managedFields(live)
    .filter(({ fields }) => fieldAt(fields, ['f:spec', 'f:replicas']) !== undefined)
    .map(({ manager }) => manager);
}

/** Returns when a manager last wrote the object, in milliseconds. */
export function lastWriteMs(live: unknown, manager: string): number | undefined {
  const times = managedFields(live).flatMap((entry) => (entry.manager === manager && entry.timeMs !== undefined ? [entry.timeMs] : []));
  return times.length === 0 ? undefined : Math.max(...times);
}

interface ManagedFields {
  readonly manager: string;
  readonly fields: unknown;
  readonly timeMs?: number;
}

function managedFields(live: unknown): readonly ManagedFields[] {
  const list = fieldAt(live, ['metadata', 'managedFields']);
  if (!Array.isArray(list)) return [];
  return list.flatMap((entry): readonly ManagedFields[] => {
    const manager = fieldAt(entry, ['manager']);
    // A writer of only the status does not own the spec.
    if (typeof manager !== 'string' || fieldAt(entry, ['subresource']) === 'status') return [];
    const time = fieldAt(entry, ['time']);
    const timeMs = typeof time === 'string' ? instantMs(time) : undefined;
    return [{ manager, fields: fieldAt(entry, ['fieldsV1']), ...(timeMs === undefined ? {} : { timeMs }) }];
  });
}

function toolOf(manager: string): string | undefined {
  return managers.find(([pattern]) => pattern.test(manager))?.[1];
}
