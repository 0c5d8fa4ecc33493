// The names that adoption gives: of zones, after what tells their StatefulSets apart; of groups, when a label value is no object name.
import { objectName, shortName } from '../schema/scalars.ts';

/**
 * The name of each zone by the name of its StatefulSet. What all names share up to a `-` is left out (`ingester-zone-a` becomes `a`);
 * when what remains is no short name for one of them, every zone is named after its whole StatefulSet.
 */
export function zoneNames(statefulSets: readonly string[]): ReadonlyMap<string, string> {
  const shared = sharedPrefixLength(statefulSets);
  const rests = statefulSets.map((name) => name.slice(shared));
  const areNames = rests.every((rest) => shortName.safeParse(rest).success);
  const slugs = areNames ? rests : statefulSets.map((name) => slug(name, 63));
  const isUnique = new Set(slugs).size === slugs.length;
  return new Map(statefulSets.map((name, index) => [name, isUnique ? (slugs[index] ?? name) : `${slug(name, 54)}-${shortHash(name)}`]));
}

/** The name of the group of a label value: the value itself when it is an object name, otherwise a slug of it with a short hash. */
export function groupName(labelValue: string): string {
  if (objectName.safeParse(labelValue).success) return labelValue;
  return `${slug(labelValue, 54) || 'group'}-${shortHash(labelValue)}`;
}

/** Eight hexadecimal digits: FNV-1a, 32 bits, over the code units. It tells names apart and protects nothing. */
export function shortHash(text: string): string {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, '0');
}

/** The name itself, or when it is too long its beginning with a short hash. */
export function hashed(name: string, maxLength: number): string {
  return name.length <= maxLength ? name : `${name.slice(0, maxLength - 9)}-${shortHash(name)}`;
}

/** Letters, digits and single dashes of a text, in lower case; empty when it has none. */
export function slug(text: string, maxLength: number): string {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, maxLength)
    .replace(/^-+|-+$/g, '');
}

/** One name alone shares nothing: what its last part means cannot be known. */
function sharedPrefixLength(names: readonly string[]): number {
  const [first = '', ...others] = names;
  if (others.length === 0) return 0;
  let length = 0;
  while (length < first.length && others.every((name) => name[length] === first[length])) length += 1;
  return first.slice(0, length).lastIndexOf('-') + 1;
}
