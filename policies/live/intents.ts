// Requests (RolloutIntents) from objects and files. The requester is trusted only if a webhook stamps it.
import { instantMs } from '../instant.ts';
import type { Loaded } from '../load.ts';
import type { RolloutIntent } from '../schema/kinds.ts';
import { defined } from '../values/defined.ts';

/** A request as the engine reads it. */
export interface LiveIntent {
  readonly namespace: string;
  readonly name: string;
  readonly group: string;
  readonly action: RolloutIntent['spec']['action'];
  readonly zone?: string;
  readonly wave?: string;
  readonly rule?: string;
  readonly gate?: string;
  readonly digest?: string;
  readonly replicas?: number;
  readonly ordinals?: readonly number[];
  readonly undone?: readonly { readonly zone: string; readonly revision: string; readonly to?: string | undefined }[];
  readonly runId?: string;
  readonly reason?: string;
  readonly expiresMs?: number;
  readonly requestedBy?: { readonly user: string; readonly groups: readonly string[]; readonly atMs: number };
}

/** Returns the request of a document. With `isStamped`, only a webhook can write `requestedBy`, from the identity at the API server. */
export function intentOf(document: Loaded<'RolloutIntent'>, isStamped: boolean): LiveIntent {
  const { group, action, zone, wave, rule, gate, digest, replicas, ordinals, undone, runId, reason, expires, requestedBy } =
    document.value.spec;
  const atMs = requestedBy && instantMs(requestedBy.at);
  return defined({
    namespace: document.namespace,
    name: document.name,
    group,
    action,
    zone,
    wave,
    rule,
    gate,
    digest,
    replicas,
    ordinals,
    undone,
    runId,
    reason,
    expiresMs: expires === undefined ? undefined : instantMs(expires),
    requestedBy: isStamped && requestedBy && atMs !== undefined ? { user: requestedBy.user, groups: requestedBy.groups, atMs } : undefined,
  });
}
