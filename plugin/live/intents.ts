// Reads and writes the RolloutIntents of a group.
import { onStatus } from '../../cluster/request/failure.ts';
import { listObjects } from '../../cluster/request/read.ts';
import type { KubernetesObject } from '../../cluster/request/resource.ts';
import { applyObject, deleteObject } from '../../cluster/request/write.ts';
import { observeIntent } from '../../engine/observe/objects.ts';
import { pauses } from '../../engine/run/requests.ts';
import { type IntentView, isUnknown } from '../../engine/snapshot.ts';
import { rolloutIntents } from '../cluster-snapshot/kinds.ts';
import type { Cluster } from '../connection.ts';

/** The field manager of objects that the plugin writes. */
export const fieldManager = 'kubectl-rollout-group';

interface PauseRequest {
  readonly namespace: string;
  readonly group: string;
  readonly zone?: string;
  readonly reason?: string;
  readonly expiresMs?: number;
}

/** Returns the intent that pauses a group or one of its zones. Repeated requests write the same object. */
export function pauseIntent({ namespace, group, zone, reason, expiresMs }: PauseRequest): KubernetesObject {
  return {
    apiVersion: 'rollout-group.dev/v1alpha1',
    kind: 'RolloutIntent',
    // The zone comes last and contains no dot, so every pair of group and zone has a distinct name.
    metadata: { name: `pause.${zone === undefined ? group : `${group}.${zone}`}`, namespace },
    spec: {
      group,
      action: 'pause',
      ...(zone === undefined ? {} : { zone }),
      ...(reason === undefined ? {} : { reason }),
      ...(expiresMs === undefined ? {} : { expires: new Date(expiresMs).toISOString() }),
    },
  };
}

/** An active intent, with the object to delete. */
interface StoredIntent {
  readonly view: IntentView;
  readonly object: KubernetesObject;
}

/** Returns the unexpired intents that pause the group or one of its zones: `pause`, and an unverified `abort`. */
export async function listActivePauses(
  { env, timeoutMs }: Cluster,
  { namespace, group }: { readonly namespace: string; readonly group: string },
  nowMs: number,
): Promise<readonly StoredIntent[]> {
  const { items } = await listObjects(env, rolloutIntents, { namespace, site: 'intents.list', timeoutMs });
  return items.flatMap((object) => {
    const view = observeIntent(object);
    return !isUnknown(view) && view.group === group && isPause(view, nowMs) ? [{ view, object }] : [];
  });
}

/** Reports whether the intent pauses its group or zone and has not expired. */
function isPause(intent: IntentView, nowMs: number): boolean {
  const { expiresMs, runId } = intent;
  return pauses({ nowMs }, intent, runId === undefined ? undefined : { id: runId }) && (expiresMs === undefined || expiresMs > nowMs);
}

/** Returns the undo intents that name one of these revisions. */
export async function listUndos(
  { env, timeoutMs }: Cluster,
  { namespace, group }: { readonly namespace: string; readonly group: string },
  revisions: readonly { readonly zone: string; readonly revision: string }[],
): Promise<readonly KubernetesObject[]> {
  const { items } = await listObjects(env, rolloutIntents, { namespace, site: 'intents.list', timeoutMs });
  return items.filter((object) => {
    const view = observeIntent(object);
    if (isUnknown(view) || view.group !== group || view.action !== 'undo') return false;
    return revisions.some(({ zone, revision }) => view.undone?.some((one) => one.zone === zone && one.revision === revision) === true);
  });
}

export function applyIntent({ env, timeoutMs }: Cluster, object: KubernetesObject, isDryRun: boolean): Promise<KubernetesObject> {
  return applyObject(env, rolloutIntents, object, { fieldManager, dryRun: isDryRun, site: 'intents.apply', timeoutMs });
}

/** Deletes an intent. Succeeds if the intent no longer exists. */
export async function deleteIntent({ env, timeoutMs }: Cluster, { metadata }: KubernetesObject): Promise<void> {
  const { namespace = '', name, uid = '', resourceVersion = '' } = metadata;
  const target = { namespace, name, uid, resourceVersion };
  await deleteObject(env, rolloutIntents, target, { site: 'intents.delete', timeoutMs }).catch(onStatus(undefined, 404));
}
