// Revokes deletions with an unknown outcome: it touches the pod, so that a delayed DELETE with the old resourceVersion fails.

import { isStatus } from '../../cluster/request/failure.ts';
import { resources } from '../../cluster/request/resource.ts';
import { patchObject } from '../../cluster/request/write.ts';
import { type ObservedObjects, type Revocation, revocationsOf } from '../../engine/ledger/ledger.ts';
import type { Ledger } from '../../engine/snapshot.ts';
import type { AgentEnv } from '../env.ts';
import type { ChangedObject } from '../watched/freshness.ts';

/** Says when a claim on the pod was last revoked; its value means nothing else. */
const revokedAnnotation = 'rollout-group.dev/claim-revoked';

/**
 * The pods that must be touched: those of claims of earlier leaderships, and of claims whose request this process never saw answered.
 * `confirmed` are the UIDs for which it did.
 */
export function openRevocations(
  ledger: Ledger,
  seen: ObservedObjects,
  { epoch, confirmed }: { readonly epoch: number; readonly confirmed: ReadonlySet<string> },
): readonly Revocation[] {
  const claims = ledger.claims.filter((claim) => !confirmed.has(claim.uid)).map(({ epoch: _epoch, ...claim }) => claim);
  return revocationsOf({ ...ledger, claims }, seen, epoch);
}

interface RevokeOptions {
  /** Timeout of each request in milliseconds. */
  readonly timeoutMs: number;
  readonly mayAct: () => boolean;
  /** Pods may not be patched; what was announced for them is waited out. */
  readonly onForbidden: (message: string) => void;
}

/**
 * Touches the pods. Answers what the caches must show before anything is decided; a pod that changed meanwhile has made its claim void by
 * itself. Where pods may not be patched the claims are waited out. Rejects when the server cannot be reached.
 */
export async function revoke(
  env: AgentEnv,
  revocations: readonly Revocation[],
  { timeoutMs, mayAct, onForbidden }: RevokeOptions,
): Promise<readonly ChangedObject[]> {
  const changed: ChangedObject[] = [];
  for (const { namespace, pod: name, uid, resourceVersion } of revocations) {
    if (!mayAct()) break;
    const value = new Date(env.clock.nowMs()).toISOString();
    const patch = { metadata: { annotations: { [revokedAnnotation]: value } } };
    try {
      const options = { patch, site: 'revoke.touchPod', timeoutMs };
      const touched = await patchObject(env, resources.pods, { namespace, name, uid, resourceVersion }, options);
      changed.push({ kind: 'pod', namespace, name, uid, resourceVersion: touched.metadata.resourceVersion ?? resourceVersion });
      env.log.info('unanswered pod deletion revoked', { namespace, pod: name });
    } catch (error) {
      if (isStatus(error, 404, 409, 410)) continue;
      if (!isStatus(error, 403)) throw error;
      // The next pod may be patched no more than this one.
      onForbidden(error.message);
      break;
    }
  }
  return changed;
}
