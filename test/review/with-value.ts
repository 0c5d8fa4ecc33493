// Changes one value of a document.
import { isRecord } from '../../policies/values/is-record.ts';

/** Returns the document with the value at the path; without the field or item if the value is undefined. */
export function withValue(document: unknown, [key = '', ...rest]: readonly string[], value: unknown): unknown {
  const next = (own: unknown): unknown => (rest.length === 0 ? value : withValue(own, rest, value));
  if (Array.isArray(document))
    return document.map((item, index) => (String(index) === key ? next(item) : item)).filter((item) => item !== undefined);
  const { [key]: own, ...others } = isRecord(document) ? document : {};
  const set = next(own);
  return set === undefined ? others : { ...(isRecord(document) ? document : {}), [key]: set };
}
