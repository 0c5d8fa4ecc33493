// Serves /admission/stamp, which writes the requester into RolloutIntents and RolloutExceptions.
import { asJsonObject, isJsonObject, isSameJson, type JsonObject } from '../../cluster/request/json.ts';
import { stopActions } from '../../engine/run/requests.ts';
import { endpointPaths } from '../../install/object.ts';
import { instantMs } from '../../policies/instant.ts';
import { apiGroup } from '../../policies/schema/kinds.ts';
import type { WebhookEnv } from '../env.ts';
import { type Answer, deny, type Endpoint, type PatchOperation, type Review, type ReviewUser } from '../review/review.ts';

/**
 * Returns the endpoint. It sets `spec.requestedBy` and replaces any other value when an object is created or its spec changes. It fails
 * closed, because approvals depend on the field. Only a new stop passes with an unverified requester.
 */
export function stampEndpoint({ clock }: Pick<WebhookEnv, 'clock'>): Endpoint {
  return {
    path: endpointPaths.stamp,
    handle: async (review) => (isConcerned(review) ? stamp(review, clock.nowMs()) : { allowed: true }),
    onFailure: (review, problem) => (isConcerned(review) ? unstamped(review, problem, 500) : { allowed: true }),
  };
}

function isConcerned(review: Review): boolean {
  return isStamped(review) && (review.operation === 'CREATE' || review.operation === 'UPDATE');
}

function stamp(review: Review, nowMs: number): Answer {
  const problem = unwritableName(review.user);
  if (problem !== undefined) return unstamped(review, problem, 403);
  if (review.object === undefined) return unstamped(review, 'the request has no object', 400);
  // The schema denies an object without a spec.
  if (!isJsonObject(review.object['spec'])) return { allowed: true };
  return allow(patchTo(review, rightStamp(review, nowMs)));
}

function allow(patch: readonly PatchOperation[]): Answer {
  return { allowed: true, ...(patch.length === 0 ? {} : { patch }) };
}

function unstamped(review: Review, problem: string, code: number): Answer {
  if (!createsStop(review)) return deny(code, `the request is denied because the requester cannot be stored: ${problem}`);
  return { ...allow(patchTo(review, undefined)), warnings: [`the requester is not verified: ${problem}`] };
}

/** Returns whether the request creates a RolloutIntent that only stops a group. Users must be able to stop a group also in an outage. */
export function createsStop({ resource, operation, object }: Review): boolean {
  const { action } = specOf(object);
  return operation === 'CREATE' && resource.resource === 'rolloutintents' && stopActions.some((one) => one === action);
}

/**
 * Returns a patch that sets the field to `wanted`, or removes it if `wanted` is undefined; empty if nothing changes. The patch first tests
 * the present value of the field, or the kind if the field is absent.
 */
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

export const stampField = 'requestedBy';

const stamped: ReadonlySet<string> = new Set(['rolloutintents', 'rolloutexceptions']);

/** Limits of the schema for names and groups. */
const longestName = 512;
const maxGroups = 200;

/** API servers wait at most 30 s for a webhook, so an earlier stamp of the same request is not older. */
const oneRequestMs = 30_000;

export function isStamped({ resource, subresource }: Pick<Review, 'resource' | 'subresource'>): boolean {
  return resource.group === apiGroup && stamped.has(resource.resource) && subresource === '';
}

/** Returns why the name of the user cannot be stored. Without a requester, an approval does not count. */
function unwritableName({ name }: ReviewUser): string | undefined {
  if (name === '') return 'the API server names no user';
  return name.length > longestName ? `the name of the user is longer than ${longestName} characters` : undefined;
}

/**
 * Returns the stamp that the object must have, if any. It names the user who creates or changes the object, so that no user acts in the
 * name of another. An unchanged spec keeps its stamp. A stamp from an earlier call for the same request stays, so that a second call
 * changes nothing.
 */
export function rightStamp(review: Pick<Review, 'operation' | 'user' | 'object' | 'oldObject'>, nowMs: number): unknown {
  const spec = specOf(review.object);
  const oldSpec = specOf(review.oldObject);
  const isChanged = review.operation !== 'UPDATE' || !isSameJson(withoutStamp(spec), withoutStamp(oldSpec));
  if (!isChanged) return oldSpec[stampField];
  const stampAt = (atMs: number): JsonObject => ({ ...identityOf(review.user), at: new Date(atMs).toISOString() });
  // The stamp must differ from the stored stamp. Otherwise a second call for this request takes it for the stored stamp and replaces it.
  const now = isSameJson(stampAt(nowMs), oldSpec[stampField]) ? stampAt(nowMs + 1) : stampAt(nowMs);
  const isStoredStamp = review.operation === 'UPDATE' && isSameJson(spec[stampField], oldSpec[stampField]);
  return !isStoredStamp && isStampOf(spec[stampField], review.user, nowMs) ? spec[stampField] : now;
}

/** Returns whether a stamp names this user and a time at most 30 s from now. */
function isStampOf(value: unknown, user: ReviewUser, nowMs: number): boolean {
  if (!isJsonObject(value)) return false;
  const { at, ...identity } = value;
  const atMs = typeof at === 'string' ? instantMs(at) : undefined;
  return atMs !== undefined && Math.abs(nowMs - atMs) <= oneRequestMs && isSameJson(identity, identityOf(user));
}

/** Returns the user with its groups. Drops groups beyond the limits of the schema: a user with fewer groups can only approve less. */
function identityOf({ name, groups }: ReviewUser): JsonObject {
  return { user: name, groups: groups.filter(({ length }) => length <= longestName).slice(0, maxGroups) };
}

/** Returns the spec; empty if it is absent, which the schema denies later. */
export function specOf(object: JsonObject | undefined): JsonObject {
  return asJsonObject(object?.['spec']);
}

function withoutStamp({ [stampField]: _stamp, ...rest }: JsonObject): JsonObject {
  return rest;
}
