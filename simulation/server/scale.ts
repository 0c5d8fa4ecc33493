// Implements the subresource scale: another object form over replica numbers.
import { isObject, mergePatch, objectOf } from './json.ts';
import { resourceOf, type ScalePaths, type ServedKind } from './kinds.ts';
import { badRequest, type Cause, conflict, internal, invalid, modified, notFound, Refusal } from './refusal.ts';
import type { Json, ModelObject } from './request.ts';
import { type Core, type Target, update, type WriteOptions } from './write.ts';

/** Returns the Scale of the object. Throws Refusal. */
export function readScale(core: Core, target: Target): Json {
  return scaleOf(target.kind, stored(core, target), false);
}

interface ScaleOptions extends WriteOptions {
  /** By PATCH; otherwise by PUT. */
  readonly isPatch: boolean;
}

/** Sets the replicas to the result of `make` on the Scale. Throws Refusal. */
export function writeScale(core: Core, target: Target, make: (scale: Json) => unknown, options: ScaleOptions): Json {
  const { kind, name } = target;
  const before = stored(core, target);
  // Without replicas, a Scale for writing begins at 0.
  const scale = make(scaleOf(kind, before, true));
  if (!isObject(scale)) throw badRequest('the patch does not make an object');
  const metadata = objectOf(scale['metadata']);
  const given = metadata['name'] ?? '';
  if (given !== '' && given !== name) throw badRequest(`the name of the object (${given}) does not match the name on the URL (${name})`);
  const { uid, resourceVersion } = metadata;
  const replicas = objectOf(scale['spec'])['replicas'] ?? 0;
  if (!Number.isInteger(replicas)) throw badRequest(`replicas are no whole number: ${JSON.stringify(replicas)}`);
  const isOther = typeof uid === 'string' && uid !== '' && uid !== before.metadata.uid;
  // A PUT checks the uid first, a PATCH after validation of the Scale; custom kinds never do.
  if (isOther && !options.isPatch) throw otherUid(kind, before, uid, options);
  if (!kind.isCustom) refuseNegative(kind, name, Number(replicas));
  if (isOther && !kind.isCustom) throw otherUid(kind, before, uid, options);
  const version = typeof resourceVersion === 'string' ? resourceVersion : '';
  if (version !== '' && version !== before.metadata.resourceVersion) throw modified(kind, name);
  refuseNegative(kind, name, Number(replicas));
  const after = withReplicas(kind, before, Number(replicas));
  return scaleOf(kind, update(core, target, before, after, { ...options, subresource: '' }), true);
}

function stored(core: Core, { kind, namespace, name }: Target): ModelObject {
  const object = core.storage.collection(resourceOf(kind)).get(namespace, name);
  if (object === undefined) throw notFound(kind, name);
  return object;
}

function otherUid(kind: ServedKind, { metadata }: ModelObject, uid: string, { isPatch }: ScaleOptions): Refusal {
  const why = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${metadata.uid}`;
  return conflict(isPatch ? { ...kind, plural: `${kind.plural}/scale` } : kind, metadata.name, why);
}

function refuseNegative(kind: ServedKind, name: string, replicas: number): void {
  if (replicas < 0) throw negative(kind, name, replicas, pathsOf(kind).specReplicas);
}

function withReplicas(kind: ServedKind, before: ModelObject, replicas: number): Json {
  const { specReplicas } = pathsOf(kind);
  const keys = keysOf(specReplicas);
  const patch = keys.reduceRight<unknown>((value, key) => ({ [key]: value }), replicas);
  return mergePatch(before, patch) as Json;
}

function negative(kind: ServedKind, name: string, replicas: number, path: string): Refusal {
  const cause = (field: string, why: string): Cause => ({
    reason: 'FieldValueInvalid',
    message: `Invalid value: ${replicas}: ${why}`,
    field,
  });
  if (!kind.isCustom) {
    return invalid({ group: 'autoscaling', kind: 'Scale' }, name, [cause('spec.replicas', 'must be greater than or equal to 0')]);
  }
  const field = path.slice(1);
  const schema = cause(field, `${field} in body should be greater than or equal to 0`);
  return invalid(kind, name, [schema, cause(path, 'should be a non-negative integer')]);
}

function scaleOf(kind: ServedKind, object: ModelObject, mayLackReplicas: boolean): Json {
  const { specReplicas, statusReplicas, labelSelector } = pathsOf(kind);
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const replicas = valueAt(object, specReplicas);
  if (replicas === undefined && !mayLackReplicas && kind.isCustom) {
    const message = `the spec replicas field ${JSON.stringify(specReplicas)} does not exist`;
    throw new Refusal(500, 'InternalError', `Internal error occurred: ${message}`, { details: { causes: [{ message }] } });
  }
  const selector = kind.isCustom ? labelSelector && valueAt(object, labelSelector) : selectorText(valueAt(object, '.spec.selector'));
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name, ...(namespace !== undefined && { namespace }), uid, resourceVersion, creationTimestamp },
    spec: replicas === undefined || replicas === 0 ? {} : { replicas },
    status: { replicas: valueAt(object, statusReplicas) ?? 0, ...(typeof selector === 'string' && selector !== '' && { selector }) },
  };
}

function pathsOf({ scale, kind }: ServedKind): ScalePaths {
  if (scale === undefined) throw internal(`a ${kind} has no scale`);
  return scale;
}

function keysOf(path: string): readonly string[] {
  return path.slice(1).split('.');
}

function valueAt(object: unknown, path: string): unknown {
  return keysOf(path).reduce<unknown>((value, key) => objectOf(value)[key], object);
}

/** Returns a LabelSelector as text: equality first, sorted by key. */
function selectorText(selector: unknown): string {
  const { matchLabels, matchExpressions } = objectOf(selector);
  const equal = Object.entries(objectOf(matchLabels)).map(([key, value]) => [key, `${key}=${value}`] as const);
  const others = (Array.isArray(matchExpressions) ? matchExpressions : []).map(objectOf).map(({ key, operator, values }) => {
    const list = Array.isArray(values) ? `(${[...values].sort().join(',')})` : '';
    const texts: Readonly<Record<string, string>> = {
      In: `${key} in ${list}`,
      NotIn: `${key} notin ${list}`,
      Exists: `${key}`,
      DoesNotExist: `!${key}`,
    };
    return [String(key), texts[String(operator)] ?? ''] as const;
  });
  return [...equal, ...others]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, text]) => text)
    .join(',');
}
