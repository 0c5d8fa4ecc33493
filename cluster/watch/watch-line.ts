// Parses one line of a watch.
import { messageOf } from '../../policies/error-message.ts';
import { ApiFailure } from '../request/failure.ts';
import { isJsonObject, type JsonObject, parseJson } from '../request/json.ts';
import { named } from '../request/read.ts';
import type { KubernetesObject, Resource } from '../request/resource.ts';

export type WatchLine =
  /** The object is in this state now, whether it was known before or not. */
  | { readonly kind: 'present'; readonly object: KubernetesObject; readonly resourceVersion: string }
  /** The object was deleted, or no longer fits the selector. */
  | { readonly kind: 'gone'; readonly object: KubernetesObject; readonly resourceVersion: string }
  /** Everything up to here has been told. */
  | { readonly kind: 'bookmark'; readonly resourceVersion: string }
  | { readonly kind: 'error'; readonly error: ApiFailure }
  | { readonly kind: 'unparsable'; readonly message: string };

/** Never throws. ADDED and MODIFIED are one: a server may say either of an object, depending on what it had sent before. */
export function parseWatchLine(text: string, resource: Resource, site: string): WatchLine {
  try {
    return read(parseJson(text), resource, site);
  } catch (error) {
    return unparsable(messageOf(error));
  }
}

function read(event: unknown, resource: Resource, site: string): WatchLine {
  if (!isJsonObject(event) || !isJsonObject(event['object'])) return unparsable('it is not a watch event');
  const { type, object } = event;
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED': {
      const whole = named(object, resource, site);
      const { resourceVersion } = whole.metadata;
      if (!isVersion(resourceVersion)) return unparsable('its object has no resourceVersion');
      return { kind: type === 'DELETED' ? 'gone' : 'present', object: whole, resourceVersion };
    }
    case 'BOOKMARK': {
      const resourceVersion = isJsonObject(object['metadata']) ? object['metadata']['resourceVersion'] : undefined;
      return isVersion(resourceVersion) ? { kind: 'bookmark', resourceVersion } : unparsable('a bookmark has no resourceVersion');
    }
    case 'ERROR':
      return { kind: 'error', error: failureOf(object, site) };
    default:
      return unparsable('its event type is unknown');
  }
}

/** The object of an ERROR is a Status; one without a code is like an internal error. */
function failureOf(object: JsonObject, site: string): ApiFailure {
  const { code, reason, details } = object;
  const isExpired = reason === 'Expired' || reason === 'Gone';
  const seconds = isJsonObject(details) ? details['retryAfterSeconds'] : undefined;
  return new ApiFailure(
    {
      status: isExpired ? 410 : typeof code === 'number' ? code : 500,
      headers: typeof seconds === 'number' ? { 'retry-after': String(seconds) } : {},
      body: JSON.stringify(object),
    },
    site,
  );
}

function isVersion(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function unparsable(message: string): WatchLine {
  return { kind: 'unparsable', message };
}
