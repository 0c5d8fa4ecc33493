// Finds restrictions (settings that block or limit changes) and exceptions in policy documents. Removes one of them at a time.
import type { LoadedDocument } from '../../policies/load.ts';
import { schemas } from '../../policies/schema/kinds.ts';

export interface Removal {
  /** The restriction as `KIND NAME: PATH`, or the exception as `KIND NAME`. */
  readonly restriction: string;
  readonly document: LoadedDocument;
  /** The document without the restriction; undefined for an exception. */
  readonly without: LoadedDocument | undefined;
}

type Path = readonly (string | number)[];

interface Restriction {
  readonly path: Path;
  /** The value that turns the restriction off. Absent if the removal of the field turns it off. */
  readonly off?: unknown;
}

/** Returns one removal for each restriction and exception of the documents. */
export function removalsOf(documents: readonly LoadedDocument[]): readonly Removal[] {
  return documents.flatMap((document): readonly Removal[] => {
    const name = `${document.kind} ${document.name}`;
    if (document.kind === 'RolloutException') return [{ restriction: name, document, without: undefined }];
    return restrictionsOf(document).map((restriction) => ({
      restriction: `${name}: ${describe(document.value, restriction)}`,
      document,
      without: withoutRestriction(document, restriction),
    }));
  });
}

function restrictionsOf(document: LoadedDocument): readonly Restriction[] {
  switch (document.kind) {
    case 'RolloutGroup':
      return restrictionsAt(document, groupPatterns);
    case 'RolloutPolicy':
      return restrictionsAt(document, policyPatterns);
    default:
      return [];
  }
}

function restrictionsAt({ value }: LoadedDocument, patterns: readonly Pattern[]): readonly Restriction[] {
  return patterns.flatMap(({ pattern, ...rest }) => matches(value, ['spec', ...pattern]).map((path) => ({ path, ...rest })));
}

interface Pattern {
  /** A path below `spec`. `*` matches every element of a list and every field of an object. */
  readonly pattern: readonly string[];
  /** The value that turns the restriction off. Absent if it is enough to remove the field: then no default and no setting of the group applies. */
  readonly off?: unknown;
}

const zonePatterns: readonly Pattern[] = [
  { pattern: ['scaling', 'up', 'followersWaitFor'], off: 'nothing' },
  { pattern: ['scaling', 'down', 'betweenZones'] },
  { pattern: ['scaling', 'down', 'delayed'] },
  { pattern: ['scaling', 'down', 'prepare'] },
  { pattern: ['scaling', 'hold'] },
  { pattern: ['scaling', 'down', 'hold'] },
  { pattern: ['replicas', 'bounds', 'min'] },
  { pattern: ['replicas', 'bounds', 'max'] },
  { pattern: ['replicas', 'bounds', 'multipleOf'] },
  { pattern: ['replicas', 'bounds', 'parity'] },
  { pattern: ['protect', '*'], off: false },
];

const groupPatterns: readonly Pattern[] = [
  ...zonePatterns,
  ...zonePatterns.map(({ pattern, ...rest }) => ({ pattern: ['members', 'zones', '*', ...pattern], ...rest })),
  { pattern: ['members', 'zones', '*', 'maxUnavailable'], off: '100%' },
  { pattern: ['rollout', 'maxUnavailable'], off: '100%' },
  { pattern: ['rollout', 'minInterval'] },
  { pattern: ['rollout', 'deadlines', '*'] },
  { pattern: ['rollout', 'waves', '*', 'before', 'approval'] },
  { pattern: ['rollout', 'waves', '*', 'before', 'gates', '*'] },
  { pattern: ['rollout', 'waves', '*', 'after', 'soak'] },
  { pattern: ['rollout', 'waves', '*', 'after', 'approval'] },
  { pattern: ['rollout', 'waves', '*', 'after', 'gates', '*'] },
  { pattern: ['gates', '*', 'consecutive'] },
  { pattern: ['disruption'] },
  { pattern: ['disruption', 'maxUnavailable'], off: 1000 },
  { pattern: ['disruption', 'partition'] },
  { pattern: ['disruption', 'crossZoneDelay'] },
];

const policyPatterns: readonly Pattern[] = [{ pattern: ['rules', '*'] }, { pattern: ['windows', '*'] }, { pattern: ['limits', '*'] }];

/** Returns the paths that match the pattern. Omits fields that are false or have a value of `neutralValues`, because they restrict nothing. */
function matches(value: unknown, pattern: readonly string[], before: Path = []): readonly Path[] {
  const [head, ...rest] = pattern;
  if (head === undefined) return restrictsNothing(value, before) ? [] : [before];
  if (typeof value !== 'object' || value === null) return [];
  const keys = head === '*' ? Object.keys(value) : Object.hasOwn(value, head) ? [head] : [];
  return keys.flatMap((key) => matches(Reflect.get(value, key), rest, [...before, Array.isArray(value) ? Number(key) : key]));
}

/** The values of fields that restrict nothing. */
const neutralValues: Readonly<Record<string, unknown>> = { multipleOf: 1, parity: 'any', minInterval: '0s', consecutive: 1 };

function restrictsNothing(value: unknown, path: Path): boolean {
  const name = String(path.at(-1));
  return value === false || value === undefined || (Object.hasOwn(neutralValues, name) && neutralValues[name] === value);
}

/** Returns the path below `spec`, such as `rollout.waves.canary.after.soak`. The name of a list element replaces its index. */
function describe(value: unknown, { path }: Restriction): string {
  let current = value;
  const words = path.map((key) => {
    current = typeof current === 'object' && current !== null ? Reflect.get(current, key) : undefined;
    const name: unknown = typeof current === 'object' && current !== null ? Reflect.get(current, 'name') : current;
    return typeof key === 'number' && typeof name === 'string' ? name : String(key);
  });
  return words.slice(1).join('.');
}

function withoutRestriction(document: LoadedDocument, { path, off }: Restriction): LoadedDocument {
  const value = schemas[document.kind].parse(replaceAt(document.value, path, off));
  return { ...document, value } as LoadedDocument;
}

/** Returns a copy in which `off` replaces the value at the path. Removes the field or the element if `off` is undefined. */
function replaceAt(value: unknown, [head, ...rest]: Path, off: unknown): unknown {
  if (head === undefined) return off;
  if (Array.isArray(value)) {
    return value.flatMap((item, index) => {
      if (index !== head) return [item];
      const replaced = replaceAt(item, rest, off);
      return replaced === undefined ? [] : [replaced];
    });
  }
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, member]) => [key, key === head ? replaceAt(member, rest, off) : member] as const);
  return Object.fromEntries(entries.filter(([, member]) => member !== undefined));
}
