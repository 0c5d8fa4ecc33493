// Reads and writes the RolloutIntents of a group.
import { onStatus } from '../../cluster/request/failure.ts';
import { listObjects } from '../../cluster/request/read.ts';
import type { KubernetesObject, Resource } from '../../cluster/request/resource.ts';
import { applyObject, deleteObject, targetOf } from '../../cluster/request/write.ts';
import { pauses } from '../../engine/run/requests.ts';
import { type IntentView, isUnknown } from '../../engine/snapshot.ts';
import { readIntent } from '../../policies/live/intents.ts';
import { hashText } from '../../policies/values/hash.ts';
import { rolloutIntents } from '../cluster-snapshot/kinds.ts';
import { type Cluster, fieldManager } from '../connection.ts';
import { uncalledBy } from '../connection-failure.ts';
import { type CommandContext, writeNotes } from '../context.ts';
import type { ExitCode } from '../failure.ts';
import type { GroupName } from './target.ts';
import { type DryRun, printObjects } from './write-options.ts';

interface StoredIntent {
  readonly view: IntentView;
  readonly object: KubernetesObject;
}

async function listIntents({ env, timeoutMs }: Cluster, { namespace, group }: GroupName): Promise<readonly StoredIntent[]> {
  const { items } = await listObjects(env, rolloutIntents, { namespace, site: 'intents.list', timeoutMs });
  return items.flatMap((object) => {
    const view = readIntent(object);
    return isUnknown(view) || view.group !== group ? [] : [{ view, object }];
  });
}

/** Returns the unexpired intents that pause the group or a zone: each `pause`, and each `abort` that is unverified or names no run. */
export async function listActivePauses(cluster: Cluster, name: GroupName, nowMs: number): Promise<readonly StoredIntent[]> {
  return (await listIntents(cluster, name)).filter(({ view }) => {
    const { expiresMs = nowMs + 1, runId } = view;
    return pauses({ nowMs }, view, runId === undefined ? undefined : { id: runId }) && expiresMs > nowMs;
  });
}

/** Deletes the selected intents. With `keep`, calls it for each intent that the user may not delete, and continues. */
export async function deleteIntents(
  cluster: Cluster,
  name: GroupName,
  isSelected: (intent: IntentView) => boolean,
  { keep, dryRun }: { readonly keep?: (intent: IntentView) => void; readonly dryRun?: DryRun } = {},
): Promise<void> {
  for (const { view, object } of await listIntents(cluster, name)) {
    if (!isSelected(view)) continue;
    const deleted = deleteRequest(cluster, object, { dryRun });
    const isDeleted = await deleted.then(() => true, keep === undefined ? undefined : onStatus(false, 403));
    if (!isDeleted) keep?.(view);
  }
}

export function applyIntent({ env, timeoutMs }: Cluster, object: KubernetesObject, isDryRun: boolean): Promise<KubernetesObject> {
  return applyObject(env, rolloutIntents, object, { fieldManager, dryRun: isDryRun, site: 'intents.apply', timeoutMs });
}

/**
 * Writes an intent that only stops a group. While no webhook answers, the API server accepts new stops, but no change of a stored request.
 * The intent then gets another name, with a hash of its spec.
 */
export async function applyStop(cluster: Cluster, object: KubernetesObject, isDryRun: boolean): Promise<KubernetesObject> {
  const { uid: _uid, resourceVersion: _version, ...metadata } = object.metadata;
  const name = `${metadata.name.slice(0, 242)}.${hashText(JSON.stringify(object['spec'])).slice(0, 10)}`;
  return applyIntent(cluster, object, isDryRun).catch((error: unknown) => {
    if (uncalledBy(error) === undefined) throw error;
    return applyIntent(cluster, { ...object, metadata: { ...metadata, name } }, isDryRun);
  });
}

/** Deletes an intent or an exception, or asks the API server whether it may. Succeeds if the object no longer exists. */
export async function deleteRequest(
  { env, timeoutMs }: Cluster,
  object: KubernetesObject,
  { resource = rolloutIntents, dryRun }: { readonly resource?: Resource; readonly dryRun?: DryRun } = {},
): Promise<void> {
  if (dryRun === 'client') return;
  const options = { site: 'intents.delete', timeoutMs, dryRun: dryRun === 'server' };
  await deleteObject(env, resource, targetOf(object), options).catch(onStatus(undefined, 404));
}

/** Prints the requests that a dry run would delete, and says so, because the printed objects look like objects to apply. */
export function printDeletions(context: CommandContext, objects: readonly KubernetesObject[]): ExitCode {
  writeNotes(
    context,
    objects.map(({ kind, metadata }) => `would delete ${kind} ${metadata.name}; nothing was changed`),
  );
  return printObjects(context, objects);
}
