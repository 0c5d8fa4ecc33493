// Gives manifests of running StatefulSets an update revision, for plans: a manifest has no status, and only Kubernetes names revisions.
import type { ZoneDefinition } from '../../policies/definition.ts';
import { isRecord } from '../../policies/values/is-record.ts';
import { fieldDiff, type ObjectContent } from '../diff/field-diff.ts';
import { type Known, ledgerOf, type Snapshot, setNamed } from '../snapshot.ts';
import { controllerOf } from './objects.ts';
import { fieldAt, objectKey, reader } from './raw.ts';

/**
 * Returns the desired objects. A running StatefulSet gets the update revision that it would have in the cluster. The revision is known if the
 * template equals the present template or that of a ControllerRevision. Otherwise the StatefulSet gets no status.
 */
export function withRevisions(
  asked: readonly ObjectContent[],
  running: readonly unknown[],
  revisions: readonly unknown[] = [],
): readonly ObjectContent[] {
  const byName = new Map(running.filter(isStatefulSet).map((object) => [objectKey(object), object]));
  return asked.map((object) => {
    const present = isStatefulSet(object) ? byName.get(objectKey(object)) : undefined;
    if (present === undefined || fieldAt(present, ['status', 'updateRevision']) === undefined) return object;
    if (hasSameTemplate(fieldAt(present, template), fieldAt(object, template))) return { ...object, status: present['status'] };
    const { status: _status, ...rest } = object;
    const known = revisionOf(present, fieldAt(object, template), revisions);
    return known === undefined ? rest : { ...rest, status: { updateRevision: known } };
  });
}

const template: readonly string[] = ['spec', 'template'];

function hasSameTemplate(before: unknown, after: unknown): boolean {
  const part = (value: unknown): ObjectContent => ({ kind: 'StatefulSet', spec: { template: value } });
  return fieldDiff(part(before), part(after)).length === 0;
}

/** A ControllerRevision (`apps/v1`) of which only the ledger has the template. Kubernetes numbers its revisions from 1. */
interface LedgerRevision extends ObjectContent {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace: string; readonly ownerReferences: readonly { readonly uid: string }[] };
  readonly data: object;
  readonly revision: 0;
}

/**
 * Returns the templates of the ledger as ControllerRevisions of the present StatefulSets. A StatefulSet that was deleted and created again has
 * lost its ControllerRevisions, but Kubernetes gives an equal template the same name again.
 */
export function ledgerRevisions(
  snapshot: Pick<Snapshot, 'ledgers' | 'statefulSets'>,
  group: { readonly namespace: string; readonly name: string; readonly zones: readonly Pick<ZoneDefinition, 'name' | 'statefulSet'>[] },
): readonly LedgerRevision[] {
  const { namespace, zones } = group;
  const { templates = [] } = ledgerOf(snapshot, group);
  return templates.flatMap(({ zone, revision: name, template: kept }) => {
    const { statefulSet } = zones.find((one) => one.name === zone) ?? {};
    const set = statefulSet === undefined ? undefined : setNamed(snapshot, namespace, statefulSet);
    if (set === undefined) return [];
    const metadata = { name, namespace, ownerReferences: [{ uid: set.uid, controller: true }] };
    return [{ kind: 'ControllerRevision', metadata, data: { spec: { template: kept } }, revision: 0 }];
  });
}

/** Returns the template of a ControllerRevision, without the patch directive. Unknown without a template or with another controller. */
export function observeTemplate(revision: ObjectContent, controllerUid: string): Known<ObjectContent> {
  if (controllerOf(reader(revision))?.text('uid') !== controllerUid) return { unknown: 'it belongs to another object' };
  return templateOf(revision) ?? { unknown: 'it has no pod template' };
}

/** Returns the pod template of a ControllerRevision, which Kubernetes stores as a patch. */
function templateOf(revision: unknown): ObjectContent | undefined {
  const found = fieldAt(revision, ['data', ...template]);
  if (!isRecord(found)) return undefined;
  const { $patch: _patch, ...rest } = found;
  return rest;
}

/** Returns the template of the ControllerRevision of a StatefulSet; undefined if `revisions` does not contain it. */
export function templateOfRevision(set: ObjectContent, name: string, revisions: readonly unknown[]): ObjectContent | undefined {
  const isIt = (revision: unknown): boolean => fieldAt(revision, ['metadata', 'name']) === name && isOwnedBy(revision, set);
  return templateOf(revisions.find(isIt));
}

function revisionOf(set: ObjectContent, asked: unknown, revisions: readonly unknown[]): string | undefined {
  const found = revisions.find((revision) => isOwnedBy(revision, set) && hasSameTemplate(templateOf(revision), asked));
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
