// The digest of an installed admission policy, which distinguishes another version from a manual change.

import { canonicalJson } from '../policies/values/canonical-json.ts';
import { sha256 } from '../policies/values/hash.ts';
import type { InstallObject } from './object.ts';

type Fields = Readonly<Record<string, unknown>>;

/** The annotation. It is not a signature: a user who may change the policy may change the annotation too. */
export const markAnnotation = 'rollout-group.dev/installed-spec';

/** What the API server fills in where nothing is said. */
const matchesAll: Fields = { matchPolicy: 'Equivalent', namespaceSelector: {}, objectSelector: {} };

/**
 * Of a policy and of a binding, what an absent field stands for. A field that is as usual is not part of the mark, so that marks of older versions stay
 * true when one is added here.
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

/** The object with its mark. */
export function marked(object: InstallObject): InstallObject {
  const { metadata, spec, ...rest } = object;
  const annotations = { ...metadata.annotations, [markAnnotation]: markOf(fieldsOf(spec)) };
  return { ...rest, apiVersion: object.apiVersion, kind: object.kind, metadata: { ...metadata, annotations }, spec };
}

/** The same for a spec as it is written and as an API server stores it. */
export function markOf(spec: Fields): string {
  const told = Object.entries(usualFields).flatMap(([field, usual]) => {
    const value = usual === matchesAll ? matched(spec[field]) : (spec[field] ?? usual);
    return canonicalJson(value) === canonicalJson(usual) ? [] : [[field, value] as const];
  });
  return sha256(canonicalJson(Object.fromEntries(told))).slice(0, 32);
}

/** `matchConstraints` or `matchResources` with what the API server fills in. */
export function matched(value: unknown): Fields {
  return { ...matchesAll, ...fieldsOf(value) };
}

export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}
