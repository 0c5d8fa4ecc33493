// Merge patches and selectors, as the API server in memory understands them.
import type { StoredObject } from './memory-api.ts';

/** The selectors of a list or watch: labels by equality or existence, fields by `metadata.name`. */
export function selectorOf(query: URLSearchParams): (object: StoredObject) => boolean {
  const labels = (query.get('labelSelector') ?? '').split(',').filter((part) => part !== '');
  const name = /metadata\.name=(.*)/.exec(query.get('fieldSelector') ?? '')?.[1];
  return ({ metadata }) =>
    (name === undefined || metadata.name === name) &&
    labels.every((part) => {
      const [key = '', value] = part.split('=');
      return value === undefined ? metadata.labels?.[key] !== undefined : metadata.labels?.[key] === value;
    });
}

/** A merge patch (RFC 7386). */
export function merge(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const merged: Record<string, unknown> = typeof target === 'object' && target !== null && !Array.isArray(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete merged[key];
    else if (value !== undefined) merged[key] = merge(merged[key], value);
  }
  return merged;
}
