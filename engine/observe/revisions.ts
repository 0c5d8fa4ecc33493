// Derives the update revision of a manifest whose StatefulSet runs already: a manifest has no status, and Kubernetes names revisions.
import { fieldDiff, isMap, type ObjectContent } from '../diff/field-diff.ts';
import type { Known } from '../snapshot.ts';
import { fieldAt } from './raw.ts';

/**
 * The asked objects with the revision that the cluster would give each StatefulSet: the one in force when the template means the same, that of
 * a ControllerRevision with the same template when there is one, and none that is known otherwise. Templates are compared by meaning, so that
 * a default which the API server filled in is no new revision. Only StatefulSets that run, and whose status names a revision, are touched.
 */
export function withRevisions(
  asked: readonly ObjectContent[],
  running: readonly unknown[],
  revisions: readonly unknown[] = [],
): readonly ObjectContent[] {
  const byName = new Map(running.filter(isStatefulSet).map((object) => [keyOf(object), object]));
  return asked.map((object) => {
    const present = isStatefulSet(object) ? byName.get(keyOf(object)) : undefined;
    if (present === undefined || fieldAt(present, ['status', 'updateRevision']) === undefined) return object;
    if (hasSameTemplate(fieldAt(present, template), fieldAt(object, template))) return { ...object, status: present['status'] };
    const { status: _status, ...rest } = object;
    const known = revisionOf(present, fieldAt(object, template), revisions);
    return known === undefined ? rest : { ...rest, status: { updateRevision: known } };
  });
}

const template: readonly string[] = ['spec', 'template'];

/** Reports whether two pod templates are equal after defaulting. */
function hasSameTemplate(before: unknown, after: unknown): boolean {
  const part = (value: unknown): ObjectContent => ({ kind: 'StatefulSet', spec: { template: value } });
  return fieldDiff(part(before), part(after)).length === 0;
}

/**
 * `data.spec.template` of a ControllerRevision (`apps/v1`), without the mark by which the StatefulSet controller applies it as a patch. Unknown when
 * the StatefulSet of the UID does not control it: names of revisions are known to everybody, and anybody may have made one.
 */
export function observeTemplate(revision: ObjectContent, controllerUid: string): Known<ObjectContent> {
  const owners = fieldAt(revision, ['metadata', 'ownerReferences']);
  const isOwn =
    Array.isArray(owners) && owners.some((owner) => fieldAt(owner, ['uid']) === controllerUid && fieldAt(owner, ['controller']) === true);
  if (!isOwn) return { unknown: 'it belongs to another object' };
  const found = fieldAt(revision, ['data', ...template]);
  if (!isMap(found)) return { unknown: 'it has no pod template' };
  const { $patch: _patch, ...rest } = found;
  return rest;
}

function revisionOf(set: ObjectContent, asked: unknown, revisions: readonly unknown[]): string | undefined {
  const found = revisions.find((revision) => isOwnedBy(revision, set) && hasSameTemplate(fieldAt(revision, ['data', ...template]), asked));
  const name = fieldAt(found, ['metadata', 'name']);
  return typeof name === 'string' ? name : undefined;
}

function isOwnedBy(revision: unknown, set: ObjectContent): boolean {
  const owners = fieldAt(revision, ['metadata', 'ownerReferences']);
  const uid = fieldAt(set, ['metadata', 'uid']);
  return uid !== undefined && Array.isArray(owners) && owners.some((owner) => fieldAt(owner, ['uid']) === uid);
}

function isStatefulSet(object: unknown): object is ObjectContent {
  return fieldAt(object, ['kind']) === 'StatefulSet';
}

function keyOf(object: unknown): string {
  return `${String(fieldAt(object, ['metadata', 'namespace']) ?? 'default')}/${String(fieldAt(object, ['metadata', 'name']) ?? '')}`;
}
