// Computes the JSON merge patch between two objects, for `apply`, dry runs and `simulate`.
import { isSameValue } from '../../policies/values/canonical-json.ts';
import { isRecord } from '../../policies/values/is-record.ts';
import type { ObjectContent } from './field-diff.ts';

/** Returns the JSON merge patch (RFC 7386) from one object to another; undefined without a change. Lists are replaced as a whole. */
export function mergePatch(from: ObjectContent, to: ObjectContent): ObjectContent | undefined {
  const members = [...new Set([...Object.keys(from), ...Object.keys(to)])].flatMap((key): readonly (readonly [string, unknown])[] => {
    const [before, after] = [from[key], to[key]];
    if (isSameValue(before, after)) return [];
    if (after === undefined) return [[key, null]];
    if (!isRecord(before) || !isRecord(after)) return [[key, after]];
    const inner = mergePatch(before, after);
    return inner === undefined ? [] : [[key, inner]];
  });
  return members.length === 0 ? undefined : Object.fromEntries(members);
}
