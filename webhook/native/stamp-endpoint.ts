// /admission/stamp: writes the requester into intents and exceptions.
import { isJsonObject, isSameJson, type JsonObject } from '../../cluster/request/json.ts';
import { endpointPaths } from '../../install/object.ts';
import { instantMs } from '../../policies/instant.ts';
import { apiGroup } from '../../policies/schema/kinds.ts';
import type { WebhookEnv } from '../env.ts';
import { type Answer, deny, type Endpoint, type PatchOperation, type Review, type ReviewUser } from '../review/review.ts';

/**
 * Stamps RolloutIntents and RolloutExceptions on creation and on a changed request, over any other value. Fails closed, because approvals
 * depend on the stamp.
 */
export function stampEndpoint({ clock }: Pick<WebhookEnv, 'clock'>): Endpoint {
  return {
    path: endpointPaths.stamp,
    handle: async (review) => (isConcerned(review) ? stamp(review, clock.nowMs()) : { allowed: true }),
    onFailure: (review, problem) => (isConcerned(review) ? unstamped(problem, 500) : { allowed: true }),
  };
}

function isConcerned(review: Review): boolean {
  return isStamped(review) && (review.operation === 'CREATE' || review.operation === 'UPDATE');
}

function stamp(review: Review, nowMs: number): Answer {
  const problem = unwritableName(review.user);
  if (problem !== undefined) return unstamped(problem, 403);
  if (review.object === undefined) return unstamped('the request has no object', 400);
  // Without a spec there is no place for it, and the schema denies the object.
  if (!isJsonObject(review.object['spec'])) return { allowed: true };
  const patch = patchTo(review, rightStamp(review, nowMs));
  return { allowed: true, ...(patch.length === 0 ? {} : { patch }) };
}

function unstamped(problem: string, code: number): Answer {
  return deny(code, `the request is denied because the requester cannot be stored: ${problem}`);
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

/** The field of the spec. */
export const stampField = 'requestedBy';

const stamped: ReadonlySet<string> = new Set(['rolloutintents', 'rolloutexceptions']);

/** Limits of the schema. */
const longestName = 512;
const maxGroups = 200;

/** API servers wait at most 30 s for a webhook, so a stamp of this request is not older. */
const oneRequestMs = 30_000;

/** Returns whether objects of this resource name their requester. */
export function isStamped({ resource, subresource }: Pick<Review, 'resource' | 'subresource'>): boolean {
  return resource.group === apiGroup && stamped.has(resource.resource) && subresource === '';
}

/** Returns a name that cannot be stored; an intent without requester has no effect. */
function unwritableName({ name }: ReviewUser): string | undefined {
  if (name === '') return 'the API server names no user';
  return name.length > longestName ? `the name of the user is longer than ${longestName} characters` : undefined;
}

/**
 * Returns the required stamp; undefined for none. The requester is the user who creates or changes the request, so that no user asks in the
 * name of another. An unchanged request keeps its stamp. A stamp of this request stays, so a second call changes nothing.
 */
export function rightStamp(review: Review, nowMs: number): unknown {
  const spec = specOf(review.object);
  const oldSpec = specOf(review.oldObject);
  const isChanged = review.operation !== 'UPDATE' || !isSameJson(withoutStamp(spec), withoutStamp(oldSpec));
  if (!isChanged) return oldSpec[stampField];
  const stampAt = (atMs: number): JsonObject => ({ ...identityOf(review.user), at: new Date(atMs).toISOString() });
  // Two requests in one instant get two stamps: the earlier value belongs to another request.
  const now = isSameJson(stampAt(nowMs), oldSpec[stampField]) ? stampAt(nowMs + 1) : stampAt(nowMs);
  const isOfBefore = review.operation === 'UPDATE' && isSameJson(spec[stampField], oldSpec[stampField]);
  return !isOfBefore && isStampOf(spec[stampField], review.user, nowMs) ? spec[stampField] : now;
}

/** Returns whether a stamp names this user and the current time. */
function isStampOf(value: unknown, user: ReviewUser, nowMs: number): boolean {
  if (!isJsonObject(value)) return false;
  const { at, ...identity } = value;
  const atMs = typeof at === 'string' ? instantMs(at) : undefined;
  return atMs !== undefined && Math.abs(nowMs - atMs) <= oneRequestMs && isSameJson(identity, identityOf(user));
}

/** Drops groups beyond the limits of the schema: with fewer groups a user can approve only less. */
function identityOf({ name, groups }: ReviewUser): JsonObject {
  return { user: name, groups: groups.filter(({ length }) => length <= longestName).slice(0, maxGroups) };
}

/** Returns the spec; empty without one, which the schema denies later. */
export function specOf(object: JsonObject | undefined): JsonObject {
  const spec = object?.['spec'];
  return isJsonObject(spec) ? spec : {};
}

function withoutStamp({ [stampField]: _stamp, ...rest }: JsonObject): JsonObject {
  return rest;
}
