// Reads the assumed circumstances of a plan: changes of manifests with --set, and a file with durations, metrics and the outcomes of gates.
import { parseDocument } from 'yaml';
import type { ObjectContent } from '../../engine/diff/field-diff.ts';
import { fieldAt, objectKey } from '../../engine/observe/raw.ts';
import { type Assumptions, defaultAssumptions, type PodTimes, type Quantiles } from '../../engine/plan/document.ts';
import { containersOf } from '../../engine/plan/risks.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { parseDuration } from '../../policies/duration.ts';
import { isRecord } from '../../policies/values/is-record.ts';
import { exitCodes, Failure, notFoundFailure, usageFailure } from '../failure.ts';
import type { InputFile } from './input.ts';

export type WhatIf = { readonly text: string; readonly zone?: string } & (
  | { readonly kind: 'image'; readonly container?: string; readonly image: string }
  | { readonly kind: 'field'; readonly path: readonly string[]; readonly value: unknown }
);

/**
 * Reads `[ZONE.]image=[CONTAINER=]REPOSITORY:TAG`, `[ZONE.]replicas=N` or `spec.PATH=VALUE`. Throws Failure with exit code 3 for anything
 * else.
 */
export function parseWhatIf(text: string): WhatIf {
  const [, key = '', value = ''] = /^([^=]+)=(.+)$/s.exec(text) ?? [];
  if (/^spec\.[\w.-]+$/.test(key)) return { text, kind: 'field', path: key.split('.'), value: scalar(value) };
  const [, zone, name] = /^(?:(.+)\.)?(image|replicas)$/.exec(key) ?? [];
  const target = zone === undefined ? { text } : { text, zone };
  if (name === 'replicas' && /^\d{1,6}$/.test(value)) return { ...target, kind: 'field', path: ['spec', 'replicas'], value: Number(value) };
  const [, container, image = ''] = /^(?:([a-z0-9-]+)=)?([^\s=]+)$/.exec(value) ?? [];
  if (name === 'image' && image !== '') return { ...target, kind: 'image', image, ...(container === undefined ? {} : { container }) };
  throw usageFailure(
    `--set ${text} is not understood`,
    'use --set [ZONE.]image=[CONTAINER=]REPOSITORY:TAG, --set [ZONE.]replicas=N or --set spec.PATH=VALUE',
  );
}

function scalar(value: string): unknown {
  if (value === 'true' || value === 'false') return value === 'true';
  return /^-?\d{1,15}$/.test(value) ? Number(value) : value;
}

/** Returns the manifests with every change applied to the members. Throws Failure with exit code 10 if a change applies to nothing. */
export function applyWhatIf(
  objects: readonly ObjectContent[],
  groups: readonly GroupDefinition[],
  changes: readonly WhatIf[],
): readonly ObjectContent[] {
  return changes.reduce((current, change) => applyOne(current, groups, change), objects);
}

function applyOne(objects: readonly ObjectContent[], groups: readonly GroupDefinition[], change: WhatIf): readonly ObjectContent[] {
  const members = membersOf(objects, groups, change.zone);
  if (members.length === 0)
    throw nothingFound(
      change,
      change.zone === undefined ? 'no group has a member here' : `no group has a zone ${change.zone}; known are ${zoneNames(groups)}`,
    );
  const changed = new Map(members.map((member) => [member, changedMember(member, members, change)]));
  if ([...changed.values()].every((member) => member === undefined)) throw nothingFound(change, 'no member has such a container');
  return objects.map((object) => changed.get(object) ?? object);
}

function zoneNames(groups: readonly GroupDefinition[]): string {
  return [...new Set(groups.flatMap((group) => group.zones.map(({ name }) => name)))].join(', ');
}

function nothingFound(change: WhatIf, why: string): Failure {
  return notFoundFailure(`--set ${change.text} applies to nothing`, { why });
}

function membersOf(
  objects: readonly ObjectContent[],
  groups: readonly GroupDefinition[],
  wanted: string | undefined,
): readonly ObjectContent[] {
  const zones = new Map<string, string>(
    groups.flatMap((group) => group.zones.map((zone) => [`${group.namespace}/${zone.statefulSet}`, zone.name] as const)),
  );
  return objects.filter((object) => {
    const zone = object['kind'] === 'StatefulSet' ? zones.get(objectKey(object)) : undefined;
    return zone !== undefined && (wanted === undefined || zone === wanted);
  });
}

function changedMember(member: ObjectContent, members: readonly ObjectContent[], change: WhatIf): ObjectContent | undefined {
  if (change.kind === 'field') return withField(member, change.path, change.value);
  const containers = withImage(containersOf(member), change, isRunAnywhere(change, members));
  return containers === undefined ? undefined : withField(member, containersPath, containers);
}

const containersPath: readonly string[] = ['spec', 'template', 'spec', 'containers'];

/** Reports whether a member already runs an image of the repository. Then only containers with this repository change. */
function isRunAnywhere(change: { readonly image: string }, members: readonly ObjectContent[]): boolean {
  return members.some((member) => containersOf(member).some((container) => repositoryOf(container) === repository(change.image)));
}

/** Changes the named container. Without a name, changes the containers with the repository, or else the first container. */
function withImage(
  containers: readonly unknown[],
  change: { readonly image: string; readonly container?: string },
  isRun: boolean,
): readonly unknown[] | undefined {
  const isMeant = (container: unknown, index: number) => {
    if (change.container !== undefined) return fieldAt(container, ['name']) === change.container;
    return isRun ? repositoryOf(container) === repository(change.image) : index === 0;
  };
  if (!containers.some(isMeant)) return undefined;
  return containers.map((container, index) =>
    isMeant(container, index) && isRecord(container) ? { ...container, image: change.image } : container,
  );
}

function repositoryOf(container: unknown): string {
  return repository(String(fieldAt(container, ['image']) ?? ''));
}

/** Returns the image without tag and digest. A colon before the last slash belongs to a port. */
function repository(image: string): string {
  return image.replace(/@.*$/, '').replace(/:[^:/]*$/, '');
}

export function withField(object: ObjectContent, [key = '', ...rest]: readonly string[], value: unknown): ObjectContent {
  if (rest.length === 0) return { ...object, [key]: value };
  const inner = object[key];
  return { ...object, [key]: withField(isRecord(inner) ? inner : {}, rest, value) };
}

type Fields = Readonly<Record<string, unknown>>;

/** Collects the problems of fields, each as a sentence that begins with the path. */
class Problems {
  readonly found: string[] = [];

  add(path: string, sentence: string): undefined {
    this.found.push(`${path === '' ? 'the document' : path} ${sentence}`);
    return undefined;
  }
}

/**
 * Reads assumptions from YAML or JSON. An absent field has its default, and an absent `p90` equals `p50`. Throws a Failure that names
 * every invalid field, with exit code 4.
 */
export function readAssumptions(file: InputFile): Assumptions {
  const document = parseDocument(file.text, { uniqueKeys: true });
  const [syntaxError] = document.errors;
  const problems = new Problems();
  // Aliases have no use here, and can expand a small file to a huge document.
  const value =
    syntaxError === undefined ? toPlain(document, problems) : problems.add('', `is not valid YAML: ${firstLine(syntaxError.message)}`);
  const assumptions = readFields(value ?? {}, problems);
  if (problems.found.length === 0) return assumptions;
  throw new Failure({
    exitCode: exitCodes.findings,
    what: `${file.name} holds no valid assumptions`,
    why: problems.found.join('; '),
    todo: 'kubectl rollout-group docs plan',
  });
}

function toPlain(document: ReturnType<typeof parseDocument>, problems: Problems): unknown {
  try {
    return document.toJS({ maxAliasCount: 0 });
  } catch {
    return problems.add('', 'uses aliases, which are not supported');
  }
}

function firstLine(text: string): string {
  return text.split('\n')[0]?.replace(/:$/, '') ?? '';
}

const choices = {
  gates: ['pass', 'fail'],
  approvals: ['given', 'missing'],
  preparations: ['succeed', 'fail'],
} as const;

function readFields(value: unknown, problems: Problems): Assumptions {
  const fields = readMap(value, '', ['pods', 'groups', 'gates', 'approvals', 'preparations', 'metrics'], problems);
  const groups = readMap(fields['groups'], 'groups', undefined, problems);
  const metrics = readMap(fields['metrics'], 'metrics', undefined, problems);
  const entries = Object.entries(metrics).flatMap(([name, number]) =>
    typeof number === 'number' ? [[name, number] as const] : (problems.add(`metrics.${name}`, 'is not a number') ?? []),
  );
  return {
    pods: { ...defaultAssumptions.pods, ...readPodTimes(fields['pods'], 'pods', problems) },
    groups: Object.fromEntries(Object.entries(groups).map(([name, times]) => [name, readPodTimes(times, `groups.${name}`, problems)])),
    gates: readChoice(fields, 'gates', problems),
    approvals: readChoice(fields, 'approvals', problems),
    preparations: readChoice(fields, 'preparations', problems),
    metrics: { ...defaultAssumptions.metrics, ...Object.fromEntries(entries) },
  };
}

function readChoice<Key extends keyof typeof choices>(fields: Fields, key: Key, problems: Problems): (typeof choices)[Key][number] {
  const allowed: readonly (typeof choices)[Key][number][] = choices[key];
  const found = allowed.find((choice) => choice === (fields[key] ?? defaultAssumptions[key]));
  if (found === undefined) problems.add(key, `is not ${allowed.join(' or ')}`);
  return found ?? defaultAssumptions[key];
}

function readPodTimes(value: unknown, path: string, problems: Problems): Partial<PodTimes> {
  const fields = readMap(value, path, ['drain', 'start'], problems);
  const drain = readQuantiles(fields['drain'], `${path}.drain`, problems);
  const start = readQuantiles(fields['start'], `${path}.start`, problems);
  return { ...(drain === undefined ? {} : { drain }), ...(start === undefined ? {} : { start }) };
}

/** Reads `{ p50: 90s, p90: 3m }`, the fields `p50Seconds` and `p90Seconds` of a printed plan, or one duration for both. */
function readQuantiles(value: unknown, path: string, problems: Problems): Quantiles | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'object') {
    const both = readSeconds(value, path, problems);
    return both === undefined ? undefined : { p50Seconds: both, p90Seconds: both };
  }
  const fields = readMap(value, path, ['p50', 'p90', 'p50Seconds', 'p90Seconds'], problems);
  const p50Seconds = readSeconds(fields['p50Seconds'] ?? fields['p50'], `${path}.p50`, problems);
  const p90Seconds = readSeconds(fields['p90Seconds'] ?? fields['p90'] ?? p50Seconds, `${path}.p90`, problems);
  if (p50Seconds === undefined || p90Seconds === undefined) return undefined;
  if (p90Seconds < p50Seconds) return problems.add(path, `has a p90 of ${p90Seconds} s below its p50 of ${p50Seconds} s`);
  return { p50Seconds, p90Seconds };
}

const longestSeconds = 30 * 86_400;

function readSeconds(value: unknown, path: string, problems: Problems): number | undefined {
  const ms = typeof value === 'string' ? parseDuration(value) : undefined;
  const seconds = typeof value === 'number' ? value : ms && ms / 1000;
  if (seconds === undefined) return problems.add(path, 'is neither a duration such as 90s nor a number of seconds');
  if (!(seconds >= 0 && seconds <= longestSeconds)) return problems.add(path, 'is not between 0 and 30 days');
  return seconds;
}

function readMap(value: unknown, path: string, known: readonly string[] | undefined, problems: Problems): Fields {
  if (value === undefined || value === null) return {};
  if (typeof value !== 'object' || Array.isArray(value)) return problems.add(path, 'is not a mapping') ?? {};
  for (const key of Object.keys(value)) {
    if (known !== undefined && !known.includes(key))
      problems.add(path === '' ? key : `${path}.${key}`, `is unknown here; known are ${known.join(', ')}`);
  }
  return Object.fromEntries(Object.entries(value));
}
