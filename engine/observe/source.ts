// Reads the number of replicas of a mirrored object, from its scale subresource, an autoscaler's status, or a field.

import { defined, extended } from '../../policies/values/defined.ts';
import type { Known, ReplicaSourceView } from '../snapshot.ts';
import { fieldAt, type Reader, reader } from './raw.ts';

/** The object to read, and the field of the number. */
export interface ReplicaSourceReference {
  readonly namespace: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly read: 'scale' | 'desiredReplicas' | 'fieldPath';
  readonly fieldPath?: readonly string[] | undefined;
}

/** Kinds whose `spec.replicas` is 1 if the field is absent. */
const replicasDefaultToOne: ReadonlySet<string> = new Set(['ReplicaTemplate', 'StatefulSet', 'Deployment', 'ReplicaSet']);

/** Returns a replica source. `raw` is the object, its Scale (`autoscaling/v1`), or undefined if the object does not exist. */
export function observeReplicaSource(reference: ReplicaSourceReference, raw: unknown): ReplicaSourceView {
  const { namespace, apiVersion, kind, name } = reference;
  const identity = { namespace, apiVersion, kind, name };
  if (raw === undefined) return { ...identity, replicas: { unknown: `${kind} ${namespace}/${name} does not exist` } };
  const fields = reader(raw);
  const replicas = readReplicas(reference, raw, fields);
  const statusReplicas = reference.read === 'scale' ? (fields.whole('status.replicas') ?? 0) : undefined;
  return extended(identity, defined({ replicas, statusReplicas }));
}

function readReplicas(reference: ReplicaSourceReference, raw: unknown, fields: Reader): Known<number> {
  const path = pathOf(reference);
  const found = fieldAt(raw, path) ?? (reference.read === 'scale' ? replicasLeftOut(reference.kind, fields) : undefined);
  const object = `${reference.kind} ${reference.namespace}/${reference.name}`;
  if (found === undefined) return { unknown: `${object} has no ${path.join('.')}` };
  if (typeof found !== 'number' || !Number.isSafeInteger(found) || found < 0) {
    return { unknown: `${path.join('.')} of ${object} is not a whole number of 0 or more` };
  }
  return found;
}

function pathOf(reference: ReplicaSourceReference): readonly string[] {
  if (reference.read === 'desiredReplicas') return ['status', 'desiredReplicas'];
  if (reference.read === 'fieldPath') return reference.fieldPath ?? [];
  return ['spec', 'replicas'];
}

function replicasLeftOut(kind: string, fields: Reader): number | undefined {
  // JSON of a Scale omits a number of 0.
  if (fields.text('kind') === 'Scale') return 0;
  return replicasDefaultToOne.has(kind) ? 1 : undefined;
}
