// The changes of `--set`: an image, replicas or another field of the manifests of groups.
import type { ObjectContent } from '../../engine/diff/field-diff.ts';
import { fieldAt } from '../../engine/observe/raw.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { isRecord } from '../../policies/schema/schema-walk.ts';
import { exitCodes, Failure, usageFailure } from '../failure.ts';

/** A parsed `--set`. */
export type WhatIf = { readonly text: string; readonly zone?: string } & (
  | { readonly kind: 'image'; readonly container?: string; readonly image: string }
  | { readonly kind: 'replicas'; readonly replicas: number }
  | { readonly kind: 'field'; readonly path: readonly string[]; readonly value: unknown }
);

/** A member of a group among manifests. */
interface Member {
  readonly index: number;
  readonly zone: string;
  readonly object: ObjectContent;
}

/**
 * Reads `[ZONE.]image=[CONTAINER=]REPOSITORY:TAG`, `[ZONE.]replicas=N` or `spec.PATH=VALUE`.
 *
 * @throws Failure with exit code 3 for anything else.
 */
export function parseWhatIf(text: string): WhatIf {
  const [, key = '', value = ''] = /^([^=]+)=(.+)$/s.exec(text) ?? [];
  if (/^spec\.[\w.-]+$/.test(key)) return { text, kind: 'field', path: key.split('.'), value: scalar(value) };
  const [, zone, name] = /^(?:(.+)\.)?(image|replicas)$/.exec(key) ?? [];
  const target = zone === undefined ? { text } : { text, zone };
  if (name === 'replicas' && /^\d{1,6}$/.test(value)) return { ...target, kind: 'replicas', replicas: Number(value) };
  const [, container, image = ''] = /^(?:([a-z0-9-]+)=)?([^\s=]+)$/.exec(value) ?? [];
  if (name === 'image' && image !== '') return { ...target, kind: 'image', image, ...(container === undefined ? {} : { container }) };
  throw usageFailure(
    `--set ${text} is not understood`,
    'use --set [ZONE.]image=[CONTAINER=]REPOSITORY:TAG, --set [ZONE.]replicas=N or --set spec.PATH=VALUE',
  );
}

/** Returns numbers and booleans as such, and everything else as text. */
function scalar(value: string): unknown {
  if (value === 'true' || value === 'false') return value === 'true';
  return /^-?\d{1,15}$/.test(value) ? Number(value) : value;
}

/**
 * Returns the manifests in the same order, with every change applied to the members of the groups.
 *
 * @throws Failure with exit code 10 if a change applies to nothing.
 */
export function applyWhatIf(
  objects: readonly ObjectContent[],
  groups: readonly GroupDefinition[],
  changes: readonly WhatIf[],
): readonly ObjectContent[] {
  return changes.reduce((current, change) => applyOne(current, groups, change), objects);
}

function applyOne(objects: readonly ObjectContent[], groups: readonly GroupDefinition[], change: WhatIf): readonly ObjectContent[] {
  const members = membersOf(objects, groups).filter((member) => change.zone === undefined || member.zone === change.zone);
  if (members.length === 0)
    throw nothingFound(
      change,
      change.zone === undefined ? 'no group has a member here' : `no group has a zone ${change.zone}; known are ${zoneNames(groups)}`,
    );
  const changed = new Map(members.flatMap((member) => changedMember(member, members, change)));
  if (changed.size === 0) throw nothingFound(change, 'no member has such a container');
  return objects.map((object, index) => changed.get(index) ?? object);
}

function zoneNames(groups: readonly GroupDefinition[]): string {
  return [...new Set(groups.flatMap((group) => group.zones.map(({ name }) => name)))].join(', ');
}

function nothingFound(change: WhatIf, why: string): Failure {
  return new Failure({ exitCode: exitCodes.notFound, what: `--set ${change.text} applies to nothing`, why });
}

function membersOf(objects: readonly ObjectContent[], groups: readonly GroupDefinition[]): readonly Member[] {
  const zones = new Map(
    groups.flatMap((group) => group.zones.map((zone) => [`${group.namespace}/${zone.statefulSet}`, zone.name] as const)),
  );
  return objects.flatMap((object, index) => {
    if (object['kind'] !== 'StatefulSet') return [];
    const namespace = fieldAt(object, ['metadata', 'namespace']) ?? 'default';
    const zone = zones.get(`${String(namespace)}/${String(fieldAt(object, ['metadata', 'name']))}`);
    return zone === undefined ? [] : [{ index, zone, object }];
  });
}

function changedMember(member: Member, members: readonly Member[], change: WhatIf): readonly (readonly [number, ObjectContent])[] {
  switch (change.kind) {
    case 'replicas':
      return [[member.index, withField(member.object, ['spec', 'replicas'], change.replicas)]];
    case 'field':
      return [[member.index, withField(member.object, change.path, change.value)]];
    case 'image': {
      const containers = withImage(containersOf(member.object), change, isRunAnywhere(change, members));
      return containers === undefined ? [] : [[member.index, withField(member.object, containersPath, containers)]];
    }
  }
}

const containersPath: readonly string[] = ['spec', 'template', 'spec', 'containers'];

function containersOf(object: ObjectContent): readonly unknown[] {
  const containers = fieldAt(object, containersPath);
  return Array.isArray(containers) ? containers : [];
}

/** Reports whether some member already runs the repository: then only those containers change. */
function isRunAnywhere(change: { readonly image: string }, members: readonly Member[]): boolean {
  return members.some((member) => containersOf(member.object).some((container) => repositoryOf(container) === repository(change.image)));
}

/** Changes the named container, else the one with the repository, else the first one if no container has the repository. */
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

function withField(object: ObjectContent, [key = '', ...rest]: readonly string[], value: unknown): ObjectContent {
  if (rest.length === 0) return { ...object, [key]: value };
  const inner = object[key];
  return { ...object, [key]: withField(isRecord(inner) ? inner : {}, rest, value) };
}
