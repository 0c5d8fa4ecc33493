// Defines the refusals of the API server: errors with the Status of the answer.
import { resourceOf, type ServedKind } from './kinds.ts';
import type { Json, ModelResponse } from './request.ts';

export interface Cause {
  readonly reason?: string;
  readonly message: string;
  readonly field?: string;
}

/** The error for a request that the API server rejects. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly status: number;
  /** The reason of the Status; empty if it has no reason. */
  readonly reason: string;
  readonly details: Json | undefined;
  readonly metadata: Json;

  constructor(
    status: number,
    reason: string,
    message: string,
    { details, metadata = {} }: { readonly details?: Json; readonly metadata?: Json } = {},
  ) {
    super(message);
    this.status = status;
    this.reason = reason;
    this.details = details;
    this.metadata = metadata;
  }
}

export function statusOf({ status, reason, message, details, metadata }: Refusal): Json {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata,
    status: 'Failure',
    message,
    ...(reason !== '' && { reason }),
    ...(details !== undefined && { details }),
    code: status,
  };
}

const headers: ModelResponse['headers'] = { 'content-type': 'application/json' };

export function answer(status: number, body: string): ModelResponse {
  return { status, headers, body };
}

export function refused(refusal: Refusal): ModelResponse {
  const seconds = refusal.details?.['retryAfterSeconds'];
  const body = JSON.stringify(statusOf(refusal));
  if (typeof seconds !== 'number') return answer(refusal.status, body);
  return { status: refusal.status, headers: { ...headers, 'retry-after': String(seconds) }, body };
}

/** The answer to an unknown path. It has no Status. */
export const pageNotFound: ModelResponse = {
  status: 404,
  headers: { 'content-type': 'text/plain; charset=utf-8' },
  body: '404 page not found\n',
};

/** Returns the `details` of a Status about an object. Their `kind` is the plural of the resource. */
function detailsOf({ group, plural }: ServedKind, name: string): Json {
  return { ...(name !== '' && { name }), ...(group !== '' && { group }), kind: plural };
}

export function notFound(kind: ServedKind, name: string): Refusal {
  return new Refusal(404, 'NotFound', `${resourceOf(kind)} "${name}" not found`, { details: detailsOf(kind, name) });
}

export function noSuchResource(): Refusal {
  return new Refusal(404, 'NotFound', 'the server could not find the requested resource', { details: {} });
}

export function methodNotAllowed(): Refusal {
  return new Refusal(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', { details: {} });
}

export function unsupportedMediaType(kind: ServedKind): Refusal {
  if (!kind.isCustom) return new Refusal(415, 'UnsupportedMediaType', '415: Unsupported Media Type', { details: {} });
  const types = 'application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml';
  const message = `the body of the request was in an unknown format - accepted media types include: ${types}`;
  return new Refusal(415, 'UnsupportedMediaType', message);
}

export function alreadyExists(kind: ServedKind, name: string): Refusal {
  return new Refusal(409, 'AlreadyExists', `${resourceOf(kind)} "${name}" already exists`, { details: detailsOf(kind, name) });
}

export function conflict(kind: ServedKind, name: string, why: string): Refusal {
  const message = `Operation cannot be fulfilled on ${resourceOf(kind)} "${name}": ${why}`;
  return new Refusal(409, 'Conflict', message, { details: detailsOf(kind, name) });
}

export function modified(kind: ServedKind, name: string): Refusal {
  return conflict(kind, name, 'the object has been modified; please apply your changes to the latest version and try again');
}

/** Returns the conflict with a precondition of a DELETE or an eviction. It names the kind, whereas other conflicts name the resource. */
export function preconditionFailed({ group, kind }: ServedKind, name: string, why: string): Refusal {
  const what = group === '' ? kind : `${kind}.${group}`;
  const details = { name, ...(group !== '' && { group }), kind };
  return new Refusal(409, 'Conflict', `Operation cannot be fulfilled on ${what} "${name}": ${why}`, { details });
}

export function badRequest(message: string): Refusal {
  return new Refusal(400, 'BadRequest', message);
}

export function internal(message: string): Refusal {
  return new Refusal(500, '', message);
}

/** Returns the refusal of invalid fields. `kind` is the kind or the plural of the object or options, or empty for a patch. */
export function invalid(
  { group, kind }: { readonly group: string; readonly kind: string },
  name: string,
  causes: readonly Cause[],
): Refusal {
  // A repeated cause appears once in the message, but each time in the details.
  const texts = [...new Set(causes.map(({ field, message }) => `${field}: ${message}`))];
  const message = `${group === '' ? kind : `${kind}.${group}`} "${name}" is invalid: ${texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`}`;
  const details = { ...(name !== '' && { name }), ...(group !== '' && { group }), ...(kind !== '' && { kind }), causes };
  return new Refusal(422, 'Invalid', message, { details });
}

export function mustNameVersion(kind: ServedKind, name: string): Refusal {
  const message = 'Invalid value: 0: must be specified for an update';
  return invalid({ group: kind.group, kind: kind.plural }, name, [
    { reason: 'FieldValueInvalid', message, field: 'metadata.resourceVersion' },
  ]);
}

export function expired(message: string, metadata: Json = {}): Refusal {
  return new Refusal(410, 'Expired', message, { metadata });
}

export function budgetExceeded(message: string, retryAfterSeconds?: number): Refusal {
  const details = { causes: [{ reason: 'DisruptionBudget', message }], ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) };
  const text = "Cannot evict pod as it would violate the pod's disruption budget.";
  return new Refusal(429, 'TooManyRequests', text, { details });
}

/** Returns the refusal of RBAC. */
/** The answer of the admission plugin NamespaceLifecycle to a creation. */
export function namespaceTerminating(kind: ServedKind, name: string, namespace: string): Refusal {
  const message = `${resourceOf(kind)} "${name}" is forbidden: unable to create new content in namespace ${namespace} because it is being terminated`;
  const cause = { reason: 'NamespaceTerminating', message: `namespace ${namespace} is being terminated`, field: 'metadata.namespace' };
  return new Refusal(403, 'Forbidden', message, { details: { ...detailsOf(kind, name), causes: [cause] } });
}

export function forbidden(
  kind: ServedKind,
  { user, verb, namespace, name, subresource }: Readonly<Record<'user' | 'verb' | 'namespace' | 'name' | 'subresource', string>>,
): Refusal {
  const object = name === '' ? resourceOf(kind) : `${resourceOf(kind)} "${name}"`;
  const what = subresource === '' ? kind.plural : `${kind.plural}/${subresource}`;
  const where = namespace === '' ? ' at the cluster scope' : ` in the namespace "${namespace}"`;
  const message = `${object} is forbidden: User "${user}" cannot ${verb} resource "${what}" in API group "${kind.group}"${where}`;
  return new Refusal(403, 'Forbidden', message, { details: detailsOf(kind, name) });
}
