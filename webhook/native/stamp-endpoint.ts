// /admission/stamp: writes the requester into intents and exceptions.
import { isJsonObject, isSameJson } from '../../cluster/request/json.ts';
import { endpointPaths } from '../../install/paths.ts';
import type { WebhookEnv } from '../env.ts';
import type { Answer, Endpoint, PatchOperation, Review } from '../review/review.ts';
import { isStamped, rightStamp, specOf, stampField, unwritableName } from './stamp-identity.ts';

/**
 * Stamps RolloutIntents and RolloutExceptions when they are created, and when they ask for something else. It overwrites values that users
 * write. A dry run gets the same answer, because only the object changes. Without an answer the request is denied: approvals depend on this
 * field.
 */
export function stampEndpoint({ clock }: Pick<WebhookEnv, 'clock'>): Endpoint {
  return {
    path: endpointPaths.stamp,
    handle: async (review) => (isConcerned(review) ? stamp(review, clock.nowMs()) : { allowed: true }),
    onFailure: (review, problem) => (isConcerned(review) ? unstamped(problem, 500, 'InternalError') : { allowed: true }),
  };
}

function isConcerned(review: Review): boolean {
  return isStamped(review) && (review.operation === 'CREATE' || review.operation === 'UPDATE');
}

function stamp(review: Review, nowMs: number): Answer {
  const problem = unwritableName(review.user);
  if (problem !== undefined) return unstamped(problem, 403, 'Forbidden');
  if (review.object === undefined) return unstamped('the request has no object', 400, 'BadRequest');
  // Without a spec there is no place for it, and the schema denies the object.
  if (!isJsonObject(review.object['spec'])) return { allowed: true };
  const patch = patchTo(review, rightStamp(review, nowMs));
  return { allowed: true, ...(patch.length === 0 ? {} : { patch }) };
}

function unstamped(problem: string, code: number, reason: string): Answer {
  return { allowed: false, code, reason, message: `the request is denied because the requester cannot be stored: ${problem}` };
}

/** Returns a patch with a test that the object is unchanged. */
function patchTo({ object = {} }: Review, wanted: unknown): readonly PatchOperation[] {
  const path = `/spec/${stampField}`;
  const spec = specOf(object);
  const present = spec[stampField];
  if (!Object.hasOwn(spec, stampField)) {
    if (wanted === undefined) return [];
    return [
      { op: 'test', path: '/kind', value: object['kind'] },
      { op: 'add', path, value: wanted },
    ];
  }
  if (isSameJson(present, wanted)) return [];
  const test: PatchOperation = { op: 'test', path, value: present };
  return wanted === undefined ? [test, { op: 'remove', path }] : [test, { op: 'replace', path, value: wanted }];
}
