// Applies the objects of a plan in order, with our field manager.
import { TransportFailure } from '../../../cluster/request/failure.ts';
import { messageOf } from '../../../policies/error-message.ts';
import type { Cluster } from '../../connection.ts';
import { shortMessage } from '../../connection-failure.ts';
import { nameOf } from '../../difference.ts';
import { planAnnotation } from './plan-basis.ts';
import { type Conflict, type ReadyObject, serverApply } from './server-apply.ts';

type ApplyResult = 'created' | 'configured' | 'failed' | 'unknown' | 'notAttempted';

export interface AppliedObject {
  /** `kind namespace/name`. */
  readonly object: string;
  readonly result: ApplyResult;
  readonly message?: string;
  /** The fields of other managers that the manifest now owns; absent without such fields. */
  readonly taken?: readonly Conflict[];
}

/** Applies the objects in order, stops at the first failure and reverts nothing. After a lost response the result is `unknown`. */
export async function applyAll(
  cluster: Cluster,
  objects: readonly ReadyObject[],
  { plan, forceConflicts }: { readonly plan: string; readonly forceConflicts: boolean },
): Promise<{ readonly applied: readonly AppliedObject[]; readonly error?: unknown }> {
  const applied: AppliedObject[] = [];
  for (const [index, ready] of objects.entries()) {
    const object = nameOf(ready.object);
    try {
      const { taken } = await serverApply(cluster, marked(ready, plan), { isDryRun: false, forceConflicts });
      applied.push({ object, result: ready.live === undefined ? 'created' : 'configured', ...(taken.length === 0 ? {} : { taken }) });
    } catch (error) {
      const result = error instanceof TransportFailure && error.mayBeApplied ? 'unknown' : 'failed';
      const message = shortMessage(messageOf(error));
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
