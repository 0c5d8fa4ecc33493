// The digest of an installed admission policy, which distinguishes another version from a manual change.

import { canonicalJson } from '../policies/values/canonical-json.ts';
import { sha256 } from '../policies/values/hash.ts';
import type { InstallObject } from './object.ts';

type Fields = Readonly<Record<string, unknown>>;

/** The annotation. It is not a signature: a user who may change the policy may change the annotation too. */
export const markAnnotation = 'rollout-group.dev/installed-spec';

/** Defaults that the API server adds. */
const matchesAll: Fields = { matchPolicy: 'Equivalent', namespaceSelector: {}, objectSelector: {} };

/**
 * Defaults of absent fields of a policy and of a binding. A field with its default is not part of the mark, so marks of older versions stay
 * valid when a field is added here.
 */
const usualFields: Fields = {
  failurePolicy: 'Fail',
  paramKind: null,
  variables: [],
  validations: [],
  matchConditions: [],
  matchConstraints: matchesAll,
  policyName: null,
  paramRef: null,
  validationActions: [],
  matchResources: matchesAll,
};

/** Returns the object with its mark. */
export function marked(object: InstallObject): InstallObject {
  const { metadata, spec, ...rest } = object;
  const annotations = { ...metadata.annotations, [markAnnotation]: markOf(fieldsOf(spec)) };
  return { ...rest, apiVersion: object.apiVersion, kind: object.kind, metadata: { ...metadata, annotations }, spec };
}

/** Returns the mark of a spec. A written spec and the stored spec have the same mark. */
export function markOf(spec: Fields): string {
  const told = Object.entries(usualFields).flatMap(([field, usual]) => {
    const value = usual === matchesAll ? matched(spec[field]) : (spec[field] ?? usual);
    return canonicalJson(value) === canonicalJson(usual) ? [] : [[field, value] as const];
  });
  return sha256(canonicalJson(Object.fromEntries(told))).slice(0, 32);
}

/** Returns `matchConstraints` or `matchResources` with the defaults of the API server. */
export function matched(value: unknown): Fields {
  return { ...matchesAll, ...fieldsOf(value) };
}

export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}
