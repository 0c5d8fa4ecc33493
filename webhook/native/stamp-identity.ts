// Who asked for an intent or an exception: what the field has to say, from the identity that the API server has authenticated.
import { isJsonObject, isSameJson, type JsonObject } from '../../cluster/request/json.ts';
import { instantMs } from '../../policies/instant.ts';
import { apiGroup } from '../../policies/schema/kinds.ts';
import type { Review, ReviewUser } from '../review/review.ts';

/** The field of the spec. */
export const stampField = 'requestedBy';

const stamped: ReadonlySet<string> = new Set(['rolloutintents', 'rolloutexceptions']);

/** As the schema of the kinds limits them. */
const longestName = 512;
const mostGroups = 200;

/** The API server waits for a webhook for 30 s at most, so that a stamp of this request is not older. */
const oneRequestMs = 30_000;

/** Whether objects of this resource say who asked. */
export function isStamped({ resource, subresource }: Pick<Review, 'resource' | 'subresource'>): boolean {
  return resource.group === apiGroup && stamped.has(resource.resource) && subresource === '';
}

/** The name cannot be written down, and an intent of nobody counts for nothing. */
export function unwritableName({ name }: ReviewUser): string | undefined {
  if (name === '') return 'the API server names nobody who asks';
  return name.length > longestName ? `the name of the user is longer than ${longestName} characters` : undefined;
}

/**
 * What the field must say, undefined for nothing. Whoever creates an object asks for it, and so does whoever changes what it asks for: otherwise
 * anybody who may edit the intent of another person could ask in that person's name. As long as it asks for the same, it says what it said. A
 * stamp of this request that is there already stays, so that being asked twice changes nothing.
 */
export function rightStamp(review: Review, nowMs: number): unknown {
  const spec = specOf(review.object);
  const oldSpec = specOf(review.oldObject);
  const isAsked = review.operation !== 'UPDATE' || !isSameJson(withoutStamp(spec), withoutStamp(oldSpec));
  if (!isAsked) return oldSpec[stampField];
  const stampAt = (atMs: number): JsonObject => ({ ...identityOf(review.user), at: new Date(atMs).toISOString() });
  // Two requests of one instant have two stamps: what stood there before is of another request, and whoever asks again asks later.
  const now = isSameJson(stampAt(nowMs), oldSpec[stampField]) ? stampAt(nowMs + 1) : stampAt(nowMs);
  const isOfBefore = review.operation === 'UPDATE' && isSameJson(spec[stampField], oldSpec[stampField]);
  return !isOfBefore && isStampOf(spec[stampField], review.user, nowMs) ? spec[stampField] : now;
}

/** Whether a stamp says that this user asked just now. */
function isStampOf(value: unknown, user: ReviewUser, nowMs: number): boolean {
  if (!isJsonObject(value)) return false;
  const { at, ...identity } = value;
  const atMs = typeof at === 'string' ? instantMs(at) : undefined;
  return atMs !== undefined && Math.abs(nowMs - atMs) <= oneRequestMs && isSameJson(identity, identityOf(user));
}

/** What the schema has no room for is left out: of a group less, only less can be approved. */
function identityOf({ name, groups }: ReviewUser): JsonObject {
  return { user: name, groups: groups.filter(({ length }) => length <= longestName).slice(0, mostGroups) };
}

/** The spec; empty where there is none, which the schema of the kind refuses after us. */
export function specOf(object: JsonObject | undefined): JsonObject {
  const spec = object?.['spec'];
  return isJsonObject(spec) ? spec : {};
}

function withoutStamp({ [stampField]: _stamp, ...rest }: JsonObject): JsonObject {
  return rest;
}
