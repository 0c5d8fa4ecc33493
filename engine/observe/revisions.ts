// Gives manifests of running StatefulSets an update revision, for plans: a manifest has no status, and only Kubernetes names revisions.
import type { ZoneDefinition } from '../../policies/definition.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { isRecord } from '../../policies/values/is-record.ts';
import { fieldDiff, type ObjectContent } from '../diff/field-diff.ts';
import { type Known, ledgerOf, type Snapshot, setNamed } from '../snapshot.ts';
import { controllerOf } from './objects.ts';
import { fieldAt, objectKey, reader } from './raw.ts';

/**
 * Returns the desired objects. A StatefulSet gets the update revision that it would have in the cluster: that of an equal present template or
 * ControllerRevision, else the name that Kubernetes computes. Without a running StatefulSet whose revision proves that name, a changed
 * StatefulSet gets no status, and a created one stays unchanged.
 */
export function withRevisions(
  asked: readonly ObjectContent[],
  running: readonly unknown[],
  revisions: readonly unknown[] = [],
): readonly ObjectContent[] {
  const sets = running.filter(isStatefulSet);
  const byName = new Map(sets.map((object) => [objectKey(object), object]));
  // A hash of each template takes long, so it is computed only for a revision that has no other name.
  let proven: boolean | undefined;
  const isProven = (): boolean => {
    proven ??= sets.some((object) => updateRevisionOf(object) === computedRevision(object));
    return proven;
  };
  return asked.map((object) => {
    const present = byName.get(objectKey(object));
    const isNamed = isStatefulSet(object) && (present === undefined ? isProven() : updateRevisionOf(present) !== undefined);
    if (!isNamed) return object;
    if (present !== undefined && hasSameTemplate(fieldAt(present, template), fieldAt(object, template)))
      return { ...object, status: present['status'] };
    const { status: _status, ...rest } = object;
    const known = present && revisionOf(present, fieldAt(object, template), revisions);
    const updateRevision = known ?? (isProven() ? computedRevision({ ...rest, status: present?.['status'] }) : undefined);
    return updateRevision === undefined ? rest : { ...rest, status: { updateRevision } };
  });
}

const template: readonly string[] = ['spec', 'template'];

function hasSameTemplate(before: unknown, after: unknown): boolean {
  const part = (value: unknown): ObjectContent => ({ kind: 'StatefulSet', spec: { template: value } });
  return fieldDiff(part(before), part(after)).length === 0;
}

function updateRevisionOf(set: ObjectContent): unknown {
  return fieldAt(set, ['status', 'updateRevision']);
}

/** The digits of names that Kubernetes generates (`rand.SafeEncodeString`). */
const safeDigits = 'bcdfghjklmnpqrstvwxz2456789';

/**
 * Returns the name that Kubernetes gives to the ControllerRevision of a template: the name of the StatefulSet with the FNV-1 hash (32 bits) of
 * the stored patch as Go writes its JSON, followed by the number of collisions.
 */
function computedRevision(object: ObjectContent): string {
  const wanted = fieldAt(object, template);
  const patch = canonicalJson({ spec: { template: { ...(isRecord(wanted) ? wanted : {}), $patch: 'replace' } } });
  const json = patch.replace(/[<>&\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(`${json}${fieldAt(object, ['status', 'collisionCount']) ?? 0}`))
    hash = Math.imul(hash, 0x01000193) ^ byte;
  const digits = [...String(hash >>> 0)].map((char) => safeDigits[char.charCodeAt(0) % safeDigits.length]);
  return `${String(fieldAt(object, ['metadata', 'name'])).slice(0, 223)}-${digits.join('')}`;
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
