// Computes revisions of a StatefulSet: each template has one name, so a rollback finds the old name again.
import type { ModelObject } from '../server/request.ts';
import { type PodTemplate, specOf } from './workload.ts';

/** Letters and digits of generated names in Kubernetes, chosen so that no words appear. */
const alphabet = 'bcdfghjklmnpqrstvwxz2456789';

const hashes: WeakMap<object, string> = new WeakMap();

/** Returns the name of the ControllerRevision: the name of the StatefulSet and a hash of its template. */
export function revisionName(set: ModelObject): string {
  return `${set.metadata.name}-${templateHash(specOf(set).template ?? {})}`;
}

/** Returns the same hash for equal templates, regardless of the order of fields. */
function templateHash(template: PodTemplate): string {
  const known = hashes.get(template);
  if (known !== undefined) return known;
  const text = canonical(template);
  let high = 0x811c9dc5;
  let low = 0x01000193;
  for (let index = 0; index < text.length; index += 1) {
    high = Math.imul(high ^ text.charCodeAt(index), 0x01000193);
    low = Math.imul(low ^ high ^ index, 0x85ebca6b);
  }
  const hash = `${letters(high >>> 0)}${letters(low >>> 0)}`;
  hashes.set(template, hash);
  return hash;
}

function letters(value: number): string {
  let rest = value;
  let text = '';
  for (let count = 0; count < 5; count += 1) {
    text += alphabet[rest % alphabet.length];
    rest = Math.floor(rest / alphabet.length);
  }
  return text;
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${canonical(member)}`).join(',')}}`;
}
