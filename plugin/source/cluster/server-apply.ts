// Applies one object by server-side apply, in plan and diff as a dry run. Takes over only fields that people wrote.
import { ApiFailure, isStatus } from '../../../cluster/request/failure.ts';
import { getObject } from '../../../cluster/request/read.ts';
import { type KubernetesObject, type Resource, resources } from '../../../cluster/request/resource.ts';
import { applyObject, patchByOperations, patchObject, targetOf as targetIn } from '../../../cluster/request/write.ts';
import type { ObjectContent } from '../../../engine/diff/field-diff.ts';
import { mergePatch } from '../../../engine/diff/merge-patch.ts';
import { fieldAt } from '../../../engine/observe/raw.ts';
import { isSameValue } from '../../../policies/values/canonical-json.ts';
import { firstOf } from '../../../policies/wording.ts';
import { type Cluster, fieldManager } from '../../connection.ts';
import { adopted, adoptionOf, applied, handedOver } from './managed-fields.ts';
import { planAnnotation, targetOf } from './plan-basis.ts';

export interface ReadyObject {
  readonly resource: Resource;
  readonly object: KubernetesObject;
  /** The object as last read; undefined if it does not exist. */
  readonly live: KubernetesObject | undefined;
  /** True if the write is correct for every spec, so that a change by another writer does not stop it. */
  readonly mayChange?: true;
}

export interface ApplyMode {
  readonly isDryRun: boolean;
  readonly forceConflicts: boolean;
}

export interface Conflict {
  readonly manager: string;
  readonly field: string;
}

interface Applied {
  readonly object: KubernetesObject;
  readonly taken: readonly Conflict[];
  /** The managers of client-side apply whose fields move to our manager. */
  readonly moved: readonly string[];
}

/** The maximum number of attempts: the status changes often while pods start. A change of the spec stops the apply. */
const attempts = 12;

/** Applies the object. Throws ApiFailure 409 if the spec changed since the read, or if another manager keeps a field that conflicts. */
export async function serverApply(cluster: Cluster, given: ReadyObject, mode: ApplyMode): Promise<Applied> {
  const adoption = mode.forceConflicts ? adoptionOf(given.live) : undefined;
  const moved = adoption?.managers ?? [];
  if (adoption === undefined) return { ...(await send(cluster, given, mode)), moved };
  if (!mode.isDryRun) return { ...(await send(cluster, await adopt(cluster, given), mode)), moved };
  const { taken } = await send(cluster, given, mode);
  const isMoved = ({ manager }: Conflict): boolean => moved.includes(manager);
  return { object: await afterAdoption(cluster, given), taken: taken.filter((one) => !isMoved(one)), moved };
}

async function send(cluster: Cluster, ready: ReadyObject, { isDryRun, forceConflicts }: ApplyMode): Promise<Omit<Applied, 'moved'>> {
  const { env, timeoutMs } = cluster;
  const options = { fieldManager, dryRun: isDryRun, site: isDryRun ? 'apply.try' : 'apply.apply', timeoutMs };
  const mayTake = (one: Conflict): boolean => isOurField(one) || (forceConflicts && isOfKubectl(one));
  let { live } = ready;
  let taken: readonly Conflict[] = [];
  for (let attempt = 1; ; attempt += 1) {
    try {
      const body = preconditioned(ready.object, live);
      return { object: await applyObject(env, ready.resource, body, { ...options, takesFields: taken.length > 0 }), taken };
    } catch (error) {
      if (attempt >= attempts) throw error;
      // The apply is forced only for exactly the state with these conflicts.
      taken = taken.length === 0 && isExact(live) ? takeable(error, mayTake) : [];
      if (taken.length === 0) live = await readUnchanged(cluster, ready, error);
    }
  }
}

/** Moves the fields of client-side apply to our manager, so that the apply also removes fields that the manifest omits. */
async function adopt(cluster: Cluster, ready: ReadyObject): Promise<ReadyObject> {
  return { ...ready, live: await writeManagers(cluster, ready, (live) => adoptionOf(live)?.managedFields) };
}

/**
 * Makes the manager that applies the pod template the owner of the fields that our patch added. Then a later manifest without these fields
 * removes them. Returns the patched object.
 */
export async function handOver(cluster: Cluster, before: KubernetesObject, patched: KubernetesObject): Promise<KubernetesObject> {
  const ready = { resource: resources.statefulSets, object: patched, live: patched, mayChange: true } as const;
  return (await writeManagers(cluster, ready, (live) => handedOver(before, live))) ?? patched;
}

/** Writes the managed fields that `from` returns for the newest object. Writes nothing if it returns undefined. Returns the object. */
function writeManagers(
  cluster: Cluster,
  ready: ReadyObject,
  from: (live: KubernetesObject) => readonly ObjectContent[] | undefined,
): Promise<KubernetesObject | undefined> {
  const { env, timeoutMs } = cluster;
  return onNewest(cluster, ready, 422, async (live) => {
    const managedFields = live && from(live);
    if (live === undefined || managedFields === undefined) return live;
    const target = targetIn(live);
    const operations = [
      { op: 'test', path: '/metadata/resourceVersion', value: target.resourceVersion },
      { op: 'replace', path: '/metadata/managedFields', value: managedFields },
    ] as const;
    return patchByOperations(env, ready.resource, target, { operations, site: 'apply.patchManagers', timeoutMs });
  });
}

/** Computes the object after the move of its fields and the apply. No single dry run can do both. */
function afterAdoption(cluster: Cluster, ready: ReadyObject): Promise<KubernetesObject> {
  const { env, timeoutMs } = cluster;
  return onNewest(cluster, ready, 409, async (live) => {
    if (live === undefined) return ready.object;
    const adoption = adoptionOf(live);
    const patch = mergePatch(live, applied(adoption === undefined ? live : adopted(live, adoption), ready.object));
    if (patch === undefined) return live;
    return patchObject(env, ready.resource, targetIn(live), { patch, site: 'apply.try', timeoutMs, dryRun: true });
  });
}

/** Calls `act` with the object as it was read. If the object is stale, reads it and calls `act` again. */
async function onNewest<Result>(
  cluster: Cluster,
  ready: ReadyObject,
  stale: number,
  act: (live: KubernetesObject | undefined) => Promise<Result>,
): Promise<Result> {
  let { live } = ready;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await act(live);
    } catch (error) {
      if (attempt >= attempts || !isStatus(error, stale)) throw error;
      live = await readAgain(cluster, ready, error);
    }
  }
}

/** Reads the object again after a conflict of versions. Throws the error if it has another cause, or the spec changed. */
async function readUnchanged(cluster: Cluster, ready: ReadyObject, error: unknown): Promise<KubernetesObject | undefined> {
  if (!isStatus(error, 409) || conflictsOf(error).length > 0) throw error;
  return readAgain(cluster, ready, error);
}

/** Reads the object again. Throws the error if the spec changed, unless a change does not matter. */
async function readAgain({ env, timeoutMs }: Cluster, ready: ReadyObject, error: unknown): Promise<KubernetesObject | undefined> {
  const now = await getObject(env, ready.resource, ready.object.metadata, { site: 'apply.read', timeoutMs });
  if (ready.mayChange !== true && !isSameValue(targetOf('', ready.live), targetOf('', now))) throw error;
  return now;
}

/** Reports whether manifests may overwrite the field: a verb of this tool wrote it, or it is the annotation with the digest of a plan. */
function isOurField({ manager, field }: Conflict): boolean {
  return manager === fieldManager || field === `.metadata.annotations.${planAnnotation}`;
}

export function takenText(taken: readonly Conflict[]): string {
  const writers = [...new Set(taken.map(({ manager }) => manager))].map((manager) => {
    const fields = taken.filter((one) => one.manager === manager).map(({ field }) => field);
    return `${manager === fieldManager ? 'undo, restart or scale' : manager}: ${firstOf(fields, 3)}`;
  });
  return `the manifest overwrites fields written by ${writers.join('; by ')}`;
}

/** Reports whether a person wrote the field with kubectl. A GitOps tool or an autoscaler keeps its fields. */
export function isOfKubectl({ manager }: Conflict): boolean {
  return /^kubectl(?:-|$)/.test(manager) || manager === 'before-first-apply';
}

/** Returns the conflicting fields if all of them may be taken; otherwise an empty list. */
function takeable(error: unknown, mayTake: (one: Conflict) => boolean): readonly Conflict[] {
  if (!(error instanceof ApiFailure)) return [];
  const { causes } = error.details;
  const conflicts = conflictsOf(error);
  const isAll = conflicts.length === (Array.isArray(causes) ? causes.length : 0);
  return isAll && conflicts.every(mayTake) ? conflicts : [];
}

/** Reports whether a precondition can name exactly this state of the object. */
function isExact(live: KubernetesObject | undefined): boolean {
  return live !== undefined && (live.metadata.uid ?? '') !== '' && (live.metadata.resourceVersion ?? '') !== '';
}

/** Adds UID and resource version as preconditions, so that the apply fails if the object has changed. */
export function preconditioned(object: KubernetesObject, live: KubernetesObject | undefined): KubernetesObject {
  if (live === undefined) return object;
  const { uid = '', resourceVersion = '' } = live.metadata;
  return { ...object, metadata: { ...object.metadata, uid, resourceVersion } };
}

/** Returns the fields that other managers own, from the Status of a failed apply. */
export function conflictsOf(error: unknown): readonly Conflict[] {
  if (!(error instanceof ApiFailure) || error.status !== 409) return [];
  const { causes } = error.details;
  if (!Array.isArray(causes)) return [];
  return causes.flatMap((cause): readonly Conflict[] => {
    if (fieldAt(cause, ['reason']) !== 'FieldManagerConflict') return [];
    const manager = /conflict with "((?:[^"\\]|\\.)*)"/.exec(String(fieldAt(cause, ['message']) ?? ''))?.[1] ?? 'another manager';
    return [{ manager, field: String(fieldAt(cause, ['field']) ?? '') }];
  });
}
