// Reads and writes the RolloutIntents of a group.
import { onStatus } from '../../cluster/request/failure.ts';
import { listObjects } from '../../cluster/request/read.ts';
import type { KubernetesObject, Resource } from '../../cluster/request/resource.ts';
import { applyObject, deleteObject } from '../../cluster/request/write.ts';
import { observeIntent } from '../../engine/observe/objects.ts';
import { pauses } from '../../engine/run/requests.ts';
import { type IntentView, isUnknown } from '../../engine/snapshot.ts';
import { rolloutIntents } from '../cluster-snapshot/kinds.ts';
import type { Cluster } from '../connection.ts';
import type { GroupName } from './target.ts';

/** The field manager of objects that the plugin writes. */
export const fieldManager = 'kubectl-rollout-group';

interface StoredIntent {
  readonly view: IntentView;
  readonly object: KubernetesObject;
}

async function listIntents({ env, timeoutMs }: Cluster, { namespace, group }: GroupName): Promise<readonly StoredIntent[]> {
  const { items } = await listObjects(env, rolloutIntents, { namespace, site: 'intents.list', timeoutMs });
  return items.flatMap((object) => {
    const view = observeIntent(object);
    return isUnknown(view) || view.group !== group ? [] : [{ view, object }];
  });
}

/** Returns the unexpired intents that pause the group or a zone: each `pause`, and each `abort` that is unverified or names no run. */
export async function listActivePauses(cluster: Cluster, name: GroupName, nowMs: number): Promise<readonly StoredIntent[]> {
  return (await listIntents(cluster, name)).filter(({ view }) => isPause(view, nowMs));
}

function isPause(intent: IntentView, nowMs: number): boolean {
  const { expiresMs, runId } = intent;
  return pauses({ nowMs }, intent, runId === undefined ? undefined : { id: runId }) && (expiresMs === undefined || expiresMs > nowMs);
}

/** Returns the intents that undid one of these revisions. */
export async function listUndos(
  cluster: Cluster,
  name: GroupName,
  revisions: readonly { readonly zone: string; readonly revision: string }[],
): Promise<readonly KubernetesObject[]> {
  const undos = (await listIntents(cluster, name)).filter(({ view: { action, undone = [] } }) => {
    return (
      action === 'undo' && revisions.some(({ zone, revision }) => undone.some((one) => one.zone === zone && one.revision === revision))
    );
  });
  return undos.map(({ object }) => object);
}

export function applyIntent({ env, timeoutMs }: Cluster, object: KubernetesObject, isDryRun: boolean): Promise<KubernetesObject> {
  return applyObject(env, rolloutIntents, object, { fieldManager, dryRun: isDryRun, site: 'intents.apply', timeoutMs });
}

/** Deletes an intent or an exception. Succeeds if the object no longer exists. */
export async function deleteRequest(
  { env, timeoutMs }: Cluster,
  { metadata }: KubernetesObject,
  resource: Resource = rolloutIntents,
): Promise<void> {
  const { namespace = '', name, uid = '', resourceVersion = '' } = metadata;
  const target = { namespace, name, uid, resourceVersion };
  await deleteObject(env, resource, target, { site: 'intents.delete', timeoutMs }).catch(onStatus(undefined, 404));
}
