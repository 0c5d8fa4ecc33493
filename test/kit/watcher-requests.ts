// Checks each single write: its preconditions, and that it is not forced.
import type { History, RecordedRequest } from './watcher-history.ts';

interface RequestViolation {
  readonly invariant: 'S10' | 'S20';
  readonly message: string;
}

const writing = new Set(['create', 'update', 'patch', 'delete', 'deletecollection']);
const reviews = new Set([
  'selfsubjectaccessreviews',
  'selfsubjectrulesreviews',
  'selfsubjectreviews',
  'subjectaccessreviews',
  'tokenreviews',
]);
const neverDeleted = new Set(['statefulsets', 'persistentvolumeclaims', 'persistentvolumes', 'namespaces', 'nodes']);

/** Reports whether the request changes the cluster. Dry runs and reviews do not, although a review is a POST. */
export function isWrite({ verb, requestURI, objectRef }: RecordedRequest): boolean {
  return writing.has(verb) && !/[?&]dryRun=All\b/.test(requestURI) && !reviews.has(objectRef?.resource ?? '');
}

export function isDone({ responseStatus }: RecordedRequest): boolean {
  const code = responseStatus?.code ?? 0;
  return code >= 200 && code < 300;
}

/** Returns the write as text, such as `delete pods default/server-0`. */
export function describe({ verb, objectRef }: RecordedRequest): string {
  const resource = [objectRef?.resource, objectRef?.subresource].filter((part) => part !== undefined).join('/');
  return `${verb} ${resource} ${objectRef?.namespace ?? ''}/${objectRef?.name ?? ''}`;
}

export function isEviction({ verb, objectRef }: RecordedRequest): boolean {
  return verb === 'create' && objectRef?.resource === 'pods' && objectRef.subresource === 'eviction';
}

export function isPodDelete({ verb, objectRef }: RecordedRequest): boolean {
  return verb === 'delete' && objectRef?.resource === 'pods' && objectRef.subresource === undefined;
}

/** Returns the preconditions of a delete or an eviction. */
export function preconditionsOf(request: RecordedRequest): { readonly uid?: unknown; readonly resourceVersion?: unknown } {
  const options = isEviction(request) ? field(request.requestObject, 'deleteOptions') : request.requestObject;
  return { uid: field(options, 'preconditions', 'uid'), resourceVersion: field(options, 'preconditions', 'resourceVersion') };
}

/**
 * Returns the names of the pods that left after a request of the user, one per object, ascending. Responses do not count: a request whose
 * sender died may be carried out and logged as failed. Pods are matched by UID, because the kubelet of the fixture deletes by name, and on
 * a busy machine it may delete the successor.
 */
export function podsRemovedBy(user: string, { requests, events }: History): readonly string[] {
  const own = requests.filter((request) => request.user.username === user && (isPodDelete(request) || isEviction(request)));
  const asked = new Set(own.map((request) => preconditionsOf(request).uid));
  return events
    .flatMap(({ type, kind, object }) =>
      type === 'DELETED' && kind === 'Pod' && asked.has(object.metadata.uid) ? [object.metadata.name] : [],
    )
    .sort();
}

/**
 * S20: a delete has the UID and the resourceVersion, an eviction the UID, an update the resourceVersion, a patch the resourceVersion or a
 * `test`; server-side apply does not force; a created object has a name. S10: no grace period of 0, no deletion of a collection, only pods
 * and the kinds of this project. Denied requests are judged too, because the server denied them only by chance.
 */
export function checkRequest(request: RecordedRequest): readonly RequestViolation[] {
  if (!isWrite(request) || isUnread(request)) return [];
  const found: RequestViolation[] = [];
  const say = (invariant: 'S10' | 'S20', what: string) => found.push({ invariant, message: `${describe(request)} ${what}` });
  const { verb, objectRef, requestObject, requestURI } = request;
  if (verb === 'deletecollection') say('S10', 'deletes a whole collection');
  if (verb === 'delete') {
    if (neverDeleted.has(objectRef?.resource ?? '') && objectRef?.subresource === undefined) say('S10', 'deletes what holds data');
    if (field(requestObject, 'gracePeriodSeconds') === 0) say('S10', 'leaves no time to end');
    const { uid, resourceVersion } = preconditionsOf(request);
    if (uid === undefined) say('S20', 'carries no UID');
    if (resourceVersion === undefined) say('S20', 'carries no resourceVersion');
  } else if (isEviction(request)) {
    if (preconditionsOf(request).uid === undefined) say('S20', 'carries no UID');
    if (field(requestObject, 'deleteOptions', 'gracePeriodSeconds') === 0) say('S10', 'leaves no time to end');
  } else if (verb === 'create') {
    if (field(requestObject, 'metadata', 'generateName') !== undefined) say('S20', 'leaves the name to the server');
  } else if (verb === 'update') {
    if (!field(requestObject, 'metadata', 'resourceVersion')) say('S20', 'carries no resourceVersion');
  } else if (verb === 'patch') {
    if (/[?&]force=true\b/.test(requestURI)) say('S20', 'takes fields from other managers');
    const isApply = typeof field(requestObject, 'kind') === 'string' && /[?&]fieldManager=/.test(requestURI);
    const isTested = Array.isArray(requestObject) && requestObject.some((operation) => field(operation, 'op') === 'test');
    if (!isApply && !isTested && !field(requestObject, 'metadata', 'resourceVersion')) say('S20', 'carries no resourceVersion and no test');
  }
  return found;
}

/** The audit log has no bodies of Secrets, and none of requests that the server denied before it read the body. */
function isUnread({ responseStatus, requestObject, objectRef }: RecordedRequest): boolean {
  const isDenied = responseStatus?.code === 401 || responseStatus?.code === 403;
  return requestObject === undefined && (isDenied || objectRef?.resource === 'secrets');
}

function field(value: unknown, ...path: readonly string[]): unknown {
  let current = value;
  for (const name of path) {
    if (typeof current !== 'object' || current === null) return undefined;
    current = (current as Readonly<Record<string, unknown>>)[name];
  }
  return current ?? undefined;
}
