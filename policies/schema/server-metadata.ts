// Fields that the API server adds to every object and that do not belong in a policy file.
import { kinds } from './kinds.ts';
import { isRecord } from './schema-walk.ts';

/** Fields of `metadata` that the API server keeps, or that tie an object to others in the cluster. */
const serverFields: ReadonlySet<string> = new Set([
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'selfLink',
  'managedFields',
  'ownerReferences',
  'finalizers',
  'generateName',
]);

/**
 * A document of one of our kinds without what the API server adds, so that `kubectl get -o yaml` prints policies that lint takes: those fields
 * of `metadata`, and `status` where the kind has one. The value itself when nothing is to be left out.
 */
export function withoutServerMetadata(value: unknown): unknown {
  if (!isRecord(value)) return value;
  const { metadata, kind } = value;
  const hasStatus = value['status'] !== undefined && typeof kind === 'string' && Object.hasOwn(statuses, kind);
  const isTouched = isRecord(metadata) && Object.keys(metadata).some((key) => serverFields.has(key));
  if (!hasStatus && !isTouched) return value;
  const { status, ...withoutStatus } = value;
  return {
    ...(hasStatus ? withoutStatus : value),
    ...(isRecord(metadata) && { metadata: Object.fromEntries(Object.entries(metadata).filter(([key]) => !serverFields.has(key))) }),
  };
}

const statuses = Object.fromEntries(Object.entries(kinds).filter(([, info]) => info.status !== undefined));
