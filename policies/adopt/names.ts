// Derives the names of adopted groups and zones from label values and the names of StatefulSets.
import { objectName, shortName } from '../schema/scalars.ts';
import { sha256 } from '../values/hash.ts';

/** Returns the zone name of each StatefulSet: its name without the common prefix (`a` for `ingester-zone-a`), or a slug of its name. */
export function zoneNames(statefulSets: readonly string[]): ReadonlyMap<string, string> {
  const shared = sharedPrefixLength(statefulSets);
  const rests = statefulSets.map((name) => name.slice(shared));
  const areNames = rests.every((rest) => shortName.safeParse(rest).success);
  const slugs = areNames ? rests : statefulSets.map((name) => slug(name, 63));
  const isUnique = new Set(slugs).size === slugs.length;
  return new Map(statefulSets.map((name, index) => [name, isUnique ? (slugs[index] ?? name) : `${slug(name, 54)}-${shortHash(name)}`]));
}

/** Returns the group name for a label value: the value if it is an object name, otherwise its slug with a short hash. */
export function groupName(labelValue: string): string {
  if (objectName.safeParse(labelValue).success) return labelValue;
  return `${slug(labelValue, 54) || 'group'}-${shortHash(labelValue)}`;
}

/** Returns the first eight hexadecimal digits of the SHA-256 of the text. */
export function shortHash(text: string): string {
  return sha256(text).slice(0, 8);
}

/** Returns the name, or if it is too long its beginning with a short hash. */
export function hashed(name: string, maxLength: number): string {
  return name.length <= maxLength ? name : `${name.slice(0, maxLength - 9)}-${shortHash(name)}`;
}

/** Returns the ASCII letters and digits of a text in lower case, with one dash for other characters between them; may be empty. */
export function slug(text: string, maxLength: number): string {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, maxLength)
    .replace(/^-+|-+$/g, '');
}

/** Returns the length of the common prefix including its last `-`; 0 for a single name, because nothing shows where its prefix ends. */
function sharedPrefixLength(names: readonly string[]): number {
  const [first = '', ...others] = names;
  if (others.length === 0) return 0;
  let length = 0;
  while (length < first.length && others.every((name) => name[length] === first[length])) length += 1;
  return first.slice(0, length).lastIndexOf('-') + 1;
}
