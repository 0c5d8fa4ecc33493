// Every rule of a policy document, each with the document as it would be without it.
import type { LoadedDocument } from '../../policies/load.ts';
import { schemas } from '../../policies/schema/kinds.ts';

export interface Removal {
  /** `kind name: path of the rule`. */
  readonly rule: string;
  readonly document: LoadedDocument;
  /** The document without the rule; undefined when the whole document is the rule. */
  readonly without: LoadedDocument | undefined;
}

type Path = readonly (string | number)[];

/** A rule of a document: where it stands, and what stands there when it is switched off; undefined when it is left out. */
interface Rule {
  readonly path: Path;
  readonly off?: unknown;
}

/** Every rule of the documents, one removal each. */
export function removalsOf(documents: readonly LoadedDocument[]): readonly Removal[] {
  return documents.flatMap((document): readonly Removal[] => {
    const name = `${document.kind} ${document.name}`;
    if (document.kind === 'RolloutException') return [{ rule: name, document, without: undefined }];
    return rulesOf(document).map((rule) => ({
      rule: `${name}: ${describe(document.value, rule)}`,
      document,
      without: changed(document, rule),
    }));
  });
}

function rulesOf(document: LoadedDocument): readonly Rule[] {
  switch (document.kind) {
    case 'RolloutGroup':
      return rulesAt(document, groupPatterns);
    case 'RolloutPolicy':
      return rulesAt(document, policyPatterns);
    default:
      return [];
  }
}

function rulesAt({ value }: LoadedDocument, patterns: readonly Pattern[]): readonly Rule[] {
  return patterns.flatMap(({ pattern, ...rest }) => matches(value, ['spec', ...pattern]).map((path) => ({ path, ...rest })));
}

/** `*` stands for every element of a list or every field. What switches a rule off is given where leaving it out means a default. */
interface Pattern {
  readonly pattern: readonly string[];
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

/** The places of the value that a pattern names and that say something: a default that was filled in is no rule. */
function matches(value: unknown, pattern: readonly string[], before: Path = []): readonly Path[] {
  const [head, ...rest] = pattern;
  if (head === undefined) return isSilent(value, before) ? [] : [before];
  if (typeof value !== 'object' || value === null) return [];
  const keys = head === '*' ? Object.keys(value) : Object.hasOwn(value, head) ? [head] : [];
  return keys.flatMap((key) => matches(Reflect.get(value, key), rest, [...before, Array.isArray(value) ? Number(key) : key]));
}

const silentValues: Readonly<Record<string, unknown>> = { multipleOf: 1, parity: 'any', minInterval: '0s', consecutive: 1 };

function isSilent(value: unknown, path: Path): boolean {
  const name = String(path.at(-1));
  return value === false || value === undefined || (Object.hasOwn(silentValues, name) && silentValues[name] === value);
}

/** The path in words, with names for the elements that have one. */
function describe(value: unknown, { path }: Rule): string {
  let current = value;
  const words = path.map((key) => {
    current = typeof current === 'object' && current !== null ? Reflect.get(current, key) : undefined;
    const name: unknown = typeof current === 'object' && current !== null ? Reflect.get(current, 'name') : current;
    return typeof key === 'number' && typeof name === 'string' ? name : String(key);
  });
  return words.slice(1).join('.');
}

function changed(document: LoadedDocument, rule: Rule): LoadedDocument {
  const value = schemas[document.kind].parse(without(document.value, rule.path, rule.off));
  return { ...document, value } as LoadedDocument;
}

function without(value: unknown, [head, ...rest]: Path, off: unknown): unknown {
  if (head === undefined) return off;
  if (Array.isArray(value)) {
    return value.flatMap((item, index) => {
      if (index !== head) return [item];
      const changedItem = without(item, rest, off);
      return changedItem === undefined ? [] : [changedItem];
    });
  }
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, member]) => [key, key === head ? without(member, rest, off) : member] as const);
  return Object.fromEntries(entries.filter(([, member]) => member !== undefined));
}
