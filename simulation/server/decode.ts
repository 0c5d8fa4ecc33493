// Rejects built-in objects with values of a wrong type, where a user may write them by mistake.
import { isObject, objectOf } from './json.ts';
import { resourceOf, type ServedKind } from './kinds.ts';
import type { Json } from './request.ts';

/** Times of Leases have six fractional digits; others are invalid. */
const microTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(?:Z|[+-]\d\d:\d\d)$/;

/** Returns why the object cannot be decoded, as the server says it; undefined if it can. */
export function misfitOf(kind: ServedKind, object: Json): string | undefined {
  if (kind.isCustom) return undefined;
  const metadata = objectOf(object['metadata']);
  return (
    texts('ObjectMeta.metadata.labels', metadata['labels']) ??
    texts('ObjectMeta.metadata.annotations', metadata['annotations']) ??
    misfits[resourceOf(kind)]?.(object)
  );
}

const misfits: Readonly<Record<string, (object: Json) => string | undefined>> = {
  configmaps: (object) => texts('ConfigMap.data', object['data']),
  'statefulsets.apps': ({ spec, status }) =>
    number('StatefulSetSpec.spec.replicas', objectOf(spec)['replicas']) ??
    number('StatefulSetStatus.status.replicas', objectOf(status)['replicas']),
  'leases.coordination.k8s.io': ({ spec }) => {
    const { acquireTime, renewTime, leaseDurationSeconds } = objectOf(spec);
    const duration = number('LeaseSpec.spec.leaseDurationSeconds', leaseDurationSeconds);
    return time(acquireTime) ?? duration ?? time(renewTime);
  },
};

function texts(field: string, value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) return `json: cannot unmarshal ${typeOf(value)} into Go struct field ${field} of type map[string]string`;
  const wrong = Object.values(value).find((one) => typeof one !== 'string' && one !== null);
  return wrong === undefined ? undefined : `json: cannot unmarshal ${typeOf(wrong)} into Go struct field ${field} of type string`;
}

function number(field: string, value: unknown): string | undefined {
  if (value === undefined || value === null || Number.isInteger(value)) return undefined;
  const shown = typeof value === 'number' ? `number ${value}` : typeOf(value);
  return `json: cannot unmarshal ${shown} into Go struct field ${field} of type int32`;
}

function time(value: unknown): string | undefined {
  if (value === undefined || value === null || (typeof value === 'string' && microTime.test(value))) return undefined;
  return `parsing time ${JSON.stringify(JSON.stringify(value))} as "\\"2006-01-02T15:04:05.000000Z07:00\\""`;
}

function typeOf(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  return typeof value === 'boolean' ? 'bool' : typeof value;
}
