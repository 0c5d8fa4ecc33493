// Parses the bodies of requests as the API server does, and rejects invalid objects and patches.

import { tryParseJson } from '../../policies/values/try-parse-json.ts';
import { isObject, jsonPatch, mergePatch, type Operation, objectOf } from './json.ts';
import type { ServedKind } from './kinds.ts';
import { badRequest, Refusal, unsupportedMediaType } from './refusal.ts';
import type { Json, ModelRequest } from './request.ts';

/** Returns the object of a POST or PUT. Throws Refusal. */
export function objectIn({ body = '', contentType = 'application/json' }: ModelRequest, kind: ServedKind): Json {
  if (mediaTypeOf(contentType) !== 'application/json') throw unsupportedMediaType(kind);
  const shown = body === '' ? '<empty>' : body.slice(0, 30);
  const unrecognized = (why: string): string => `the object provided is unrecognized (must be of type ${kind.kind}): ${why} (${shown})`;
  const noJson = body === '' ? 'unexpected end of JSON input' : 'it is no JSON';
  const value = parsed(body, unrecognized(`couldn't get version/kind; json parse error: ${noJson}`));
  if (!isObject(value)) throw badRequest(unrecognized("couldn't get version/kind; json parse error: it is not an object"));
  if (kind.isCustom && typeof value['kind'] !== 'string') throw badRequest(unrecognized(`Object 'Kind' is missing in '${body}'`));
  return value;
}

/** Returns the JSON of the body; undefined without a body. Throws Refusal. */
export function optionalJson(body: string | undefined): unknown {
  return body === undefined || body === '' ? undefined : parsed(body, 'the body of the request is no JSON');
}

/** Returns a function that applies a merge patch or JSON patch, or throws Refusal. Throws Refusal at once for other content types. */
export function patchIn({ body = '', contentType = '' }: ModelRequest, kind: ServedKind): (before: Json) => unknown {
  switch (mediaTypeOf(contentType)) {
    case 'application/merge-patch+json':
      return (before) => mergePatch(before, decoded(body));
    case 'application/json-patch+json':
      return (before) => operated(before, body);
    default:
  }
  throw unsupportedMediaType(kind);
}

function mediaTypeOf(contentType: string): string {
  return contentType.split(';')[0]?.trim() ?? '';
}

function decoded(body: string): Json {
  const value = parsed(body);
  if (isObject(value)) return value;
  throw badRequest(`error decoding patch: json: cannot unmarshal ${typeNameOf(value)} into Go value of type map[string]interface {}`);
}

function operated(before: Json, body: string): unknown {
  const operations = parsed(body);
  if (!Array.isArray(operations)) {
    throw badRequest(`error decoding patch: json: cannot unmarshal ${typeNameOf(operations)} into Go value of type []handlers.jsonPatchOp`);
  }
  const after = jsonPatch(before, operations.map(operationOf));
  if (after !== undefined) return after;
  throw new Refusal(422, 'Invalid', 'the server rejected our request due to an error in our request', { details: {} });
}

function operationOf(value: unknown): Operation {
  const { op, path, value: given } = objectOf(value);
  return { op: typeof op === 'string' ? op : '', path: typeof path === 'string' ? path : '', value: given };
}

function parsed(body: string, problem = 'error decoding patch: unexpected end of JSON input'): unknown {
  const value = tryParseJson(body);
  if (value === undefined) throw badRequest(problem);
  return value;
}

function typeNameOf(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  return isObject(value) ? 'object' : value === null ? 'null' : typeof value === 'boolean' ? 'bool' : typeof value;
}
