// Parses the body of an admission request for the server. Refuses a body that is malformed, too deep or too large.
import { isJsonObject, type JsonObject, parseJson } from '../../cluster/request/json.ts';
import { defined } from '../../policies/values/defined.ts';
import type { Review } from './review.ts';

/** The HTTP status and text of a refusal. The text contains nothing of the body. */
interface Refusal {
  readonly status: number;
  readonly message: string;
}

export type ReadReview = { readonly review: Review } | { readonly refused: Refusal };

/** The maximum length of a name, a user or a uid, in UTF-16 units. Kubernetes allows 253 characters for a name. */
const maxNameLength = 1024;

/**
 * Reads an AdmissionReview `v1` or `v1beta1` as Kubernetes does: null is absent, unknown fields are ignored, the last duplicate counts.
 * Refuses a review without `request`; grafana/rollout-operator closes the connection instead. Never throws.
 */
export function readReview(body: Uint8Array, bounds: JsonBounds): ReadReview {
  const excess = excessOf(body, bounds);
  if (excess === 'deep') return undecodable(`it is nested more than ${bounds.maxDepth} levels deep`);
  if (excess === 'wide') return undecodable(`it has more than ${bounds.maxValues} values`);
  const json = parseBody(body);
  if (json === undefined) return undecodable(body.length === 0 ? 'it is empty' : 'it is not JSON in UTF-8');
  if (!isJsonObject(json)) return undecodable('it is not an object');
  const { apiVersion, kind, request } = json;
  if (kind !== 'AdmissionReview' || !isReviewVersion(apiVersion)) {
    return isOtherKind(apiVersion, kind)
      ? refused('unsupported group version kind: an AdmissionReview of admission.k8s.io/v1 or v1beta1 is expected')
      : undecodable('it is not an AdmissionReview of admission.k8s.io/v1 or v1beta1');
  }
  if (request === undefined || request === null) return refused('the AdmissionReview has no request');
  try {
    return { review: reviewOf(apiVersion, objectAt(request, 'request')) };
  } catch (error) {
    if (error instanceof WrongType) return undecodable(error.message);
    throw error;
  }
}

/** Returns the parsed body; undefined if it is not JSON in UTF-8. */
function parseBody(body: Uint8Array): unknown {
  try {
    return parseJson(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body));
  } catch {
    return undefined;
  }
}

function isReviewVersion(apiVersion: unknown): apiVersion is Review['apiVersion'] {
  return apiVersion === 'admission.k8s.io/v1' || apiVersion === 'admission.k8s.io/v1beta1';
}

function refused(message: string): ReadReview {
  return { refused: { status: 400, message } };
}

function undecodable(why: string): ReadReview {
  return refused(`the body could not be decoded: ${why}`);
}

/** Returns whether the body is an object of `v1`, `apps/v1` or `autoscaling/v1`. The refusal of such a body has another message. */
function isOtherKind(apiVersion: unknown, kind: unknown): boolean {
  if (typeof kind !== 'string' || kind === '') return false;
  return apiVersion === 'v1' || apiVersion === 'apps/v1' || apiVersion === 'autoscaling/v1';
}

/** The error for a field with another type than in Kubernetes. */
class WrongType extends Error {}

function reviewOf(apiVersion: Review['apiVersion'], request: JsonObject): Review {
  const userInfo = optionalObjectAt(request['userInfo'], 'request.userInfo') ?? {};
  const object = optionalObjectAt(request['object'], 'request.object');
  const oldObject = optionalObjectAt(request['oldObject'], 'request.oldObject');
  const options = optionalObjectAt(request['options'], 'request.options');
  return {
    apiVersion,
    uid: nameAt(request['uid'], 'request.uid'),
    kind: qualifiedAt(request, 'kind'),
    resource: qualifiedAt(request, 'resource'),
    subresource: nameAt(request['subResource'], 'request.subResource'),
    operation: nameAt(request['operation'], 'request.operation'),
    namespace: nameAt(request['namespace'], 'request.namespace'),
    name: nameAt(request['name'], 'request.name'),
    user: {
      name: nameAt(userInfo['username'], 'request.userInfo.username'),
      groups: namesAt(userInfo['groups'], 'request.userInfo.groups'),
    },
    ...defined({ object, oldObject, options }),
    dryRun: flagAt(request['dryRun'], 'request.dryRun'),
  };
}

/** Reads `request.kind` (group, version, kind) or `request.resource` (group, version, resource). */
function qualifiedAt<Field extends 'kind' | 'resource'>(request: JsonObject, field: Field) {
  const fields = optionalObjectAt(request[field], `request.${field}`) ?? {};
  const text = (key: string): string => nameAt(fields[key], `request.${field}.${key}`);
  return { group: text('group'), version: text('version'), [field]: text(field) } as Record<'group' | 'version' | Field, string>;
}

function objectAt(value: unknown, path: string): JsonObject {
  if (isJsonObject(value)) return value;
  throw new WrongType(`${path} is not an object`);
}

function optionalObjectAt(value: unknown, path: string): JsonObject | undefined {
  return value === undefined || value === null ? undefined : objectAt(value, path);
}

function nameAt(value: unknown, path: string): string {
  if (value === undefined || value === null) return '';
  if (typeof value !== 'string') throw new WrongType(`${path} is not a string`);
  if (value.length > maxNameLength) throw new WrongType(`${path} is longer than ${maxNameLength} characters`);
  return value;
}

function namesAt(value: unknown, path: string): readonly string[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new WrongType(`${path} is not a list`);
  return value.map((item: unknown, index) => nameAt(item, `${path}[${index}]`));
}

function flagAt(value: unknown, path: string): boolean {
  if (value === undefined || value === null) return false;
  if (typeof value !== 'boolean') throw new WrongType(`${path} is not a boolean`);
  return value;
}

interface JsonBounds {
  /** Nesting depth of objects and arrays. */
  readonly maxDepth: number;
  /**
   * Count of objects, arrays and elements. The parser allocates memory for each, so a few megabytes of `{},{},` block the process for most of a
   * second.
   */
  readonly maxValues: number;
}

const quote = 0x22;
const comma = 0x2c;
const backslash = 0x5c;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** Returns the exceeded bound, if any. Does not check the syntax, because the parser stops at the first syntax error. */
function excessOf(text: Uint8Array, { maxDepth, maxValues }: JsonBounds): 'deep' | 'wide' | undefined {
  let depth = 0;
  let values = 0;
  for (let index = 0; index < text.length; index++) {
    switch (text[index]) {
      case quote:
        index = stringEnd(text, index);
        break;
      case openBrace:
      case openBracket:
        depth++;
        values++;
        if (depth > maxDepth) return 'deep';
        break;
      case closeBrace:
      case closeBracket:
        depth--;
        break;
      case comma:
        values++;
        break;
    }
    if (values > maxValues) return 'wide';
  }
  return undefined;
}

/** Returns the index of the closing quote of the string that begins at `begin`, or the end of the text. */
function stringEnd(text: Uint8Array, begin: number): number {
  let index = begin + 1;
  while (index < text.length && text[index] !== quote) index += text[index] === backslash ? 2 : 1;
  return index;
}
