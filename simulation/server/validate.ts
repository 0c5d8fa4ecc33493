// Validates objects as the API server does: the types of fields in built-in kinds, and the rules for metadata, spec and status.

import { isObject, isSame, objectOf } from './json.ts';
import { resourceOf, type ServedKind } from './kinds.ts';
import { type Cause, invalid } from './refusal.ts';
import type { Json } from './request.ts';
import { matchesSelector } from './selector.ts';

const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const subdomainRule =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an " +
  "alphanumeric character (e.g. 'example.com', regex used for validation is " +
  "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/** Validates an object. Throws Refusal 422 with every cause. `before` is absent for a new object. */
export function validate(kind: ServedKind, object: Json, before?: Json): void {
  const causes = [
    ...metadataCauses(objectOf(object['metadata'])),
    ...(before === undefined
      ? nameCauses(kind, objectOf(object['metadata']))
      : changedMetadata(objectOf(object['metadata']), objectOf(before['metadata']))),
    ...(causesOf[resourceOf(kind)]?.(object, before) ?? []),
  ];
  if (causes.length > 0) throw invalid(kind, String(objectOf(object['metadata'])['name'] ?? ''), causes);
}

const labelValue = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/;
const labelRule =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric " +
  "character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

function metadataCauses({ labels }: Json): readonly Cause[] {
  const values = Object.values(objectOf(labels)).filter(
    (value) => typeof value !== 'string' || value.length > 63 || !labelValue.test(value),
  );
  return values.map((value) => wrong('metadata.labels', value, labelRule));
}

function nameCauses(kind: ServedKind, { name }: Json): readonly Cause[] {
  if (name === undefined) {
    const message = 'Required value: name or generateName is required';
    return [{ reason: 'FieldValueRequired', message, field: 'metadata.name' }];
  }
  // The API server does not validate the names of PodDisruptionBudgets.
  if (resourceOf(kind) === 'poddisruptionbudgets.policy') return [];
  if (typeof name === 'string' && name.length <= 253 && subdomain.test(name)) return [];
  return [wrong('metadata.name', name, subdomainRule)];
}

/** Returns the causes for forbidden changes of metadata, each twice, because the API server validates the metadata of an update twice. */
function changedMetadata(metadata: Json, before: Json): readonly Cause[] {
  const causes: Cause[] = [];
  for (const field of ['uid', 'deletionTimestamp', 'deletionGracePeriodSeconds']) {
    if (metadata[field] !== before[field]) causes.push(wrong(`metadata.${field}`, metadata[field], 'field is immutable'));
  }
  if (before['deletionTimestamp'] !== undefined) {
    const known = Array.isArray(before['finalizers']) ? before['finalizers'] : [];
    const added = (Array.isArray(metadata['finalizers']) ? metadata['finalizers'] : []).filter((one) => !known.includes(one));
    const list = added.map((one) => JSON.stringify(one)).join(', ');
    if (added.length > 0) {
      const message = `Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{${list}}`;
      causes.push({ reason: 'FieldValueForbidden', message, field: 'metadata.finalizers' });
    }
  }
  return [...causes, ...causes];
}

const causesOf: Readonly<Record<string, (object: Json, before: Json | undefined) => readonly Cause[]>> = {
  pods: podCauses,
  'statefulsets.apps': (object, before) => [
    ...statefulSetCauses(objectOf(object['spec'])),
    ...(before === undefined ? [] : fixedSpecCauses(objectOf(object['spec']), objectOf(before['spec']))),
    ...statusCauses(objectOf(object['status'])),
    ...collisionCauses(objectOf(object['status']), objectOf(before?.['status'])),
  ],
  'poddisruptionbudgets.policy': (object) => [
    ...budgetCauses(objectOf(object['spec'])),
    ...countsOfBudgets.flatMap((field) => notNegative(`status.${field}`, objectOf(object['status'])[field])),
  ],
  'controllerrevisions.apps': (object, before) => {
    const isChanged = before !== undefined && !isSame(object['data'], before['data']);
    return [...(isChanged ? [wrong('data', object['data'], 'field is immutable')] : []), ...notNegative('revision', object['revision'])];
  },
  'leases.coordination.k8s.io': (object) => {
    const { leaseDurationSeconds: duration, leaseTransitions: transitions } = objectOf(object['spec']);
    return [
      ...(typeof duration === 'number' && duration <= 0 ? [wrong('spec.leaseDurationSeconds', duration, 'must be greater than 0')] : []),
      ...notNegative('spec.leaseTransitions', transitions),
    ];
  },
  configmaps: (object) =>
    ['data', 'binaryData'].flatMap((field) =>
      Object.keys(objectOf(object[field]))
        .filter((key) => !/^[-._a-zA-Z0-9]+$/.test(key) || key.length > 253)
        .map((key) => wrong(`${field}[${key}]`, key, configKeyRule)),
    ),
};

const configKeyRule =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex " +
  "used for validation is '[-._a-zA-Z0-9]+')";

const podRule =
  'Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,' +
  '`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it ' +
  'to be set to 1 if it was previously negative)';

function podCauses(object: Json, before: Json | undefined): readonly Cause[] {
  const spec = objectOf(object['spec']);
  const { containers } = spec;
  const known = objectOf(before?.['spec'])['containers'];
  if (!Array.isArray(containers) || containers.length === 0) {
    const field = 'spec.containers';
    const missing: Cause = { reason: 'FieldValueRequired', message: 'Required value', field };
    const message = 'Forbidden: pod updates may not add or remove containers';
    return known === undefined ? [missing] : [missing, { reason: 'FieldValueForbidden', message, field }];
  }
  if (before === undefined || before['spec'] === spec) return [];
  const causes = deadlineCauses(spec['activeDeadlineSeconds'], objectOf(before['spec'])['activeDeadlineSeconds']);
  if (isSame(fixedPart(spec), fixedPart(objectOf(before['spec'])))) return causes;
  // The API server adds the difference as text, which the model leaves out.
  return [...causes, { reason: 'FieldValueForbidden', message: podRule, field: 'spec' }];
}

/** Returns the cause for a deadline that was removed or extended. */
function deadlineCauses(seconds: unknown, before: unknown): readonly Cause[] {
  if (typeof before !== 'number') return [];
  const field = 'spec.activeDeadlineSeconds';
  if (typeof seconds !== 'number') return [wrong(field, seconds ?? null, 'must not update from a positive integer to nil value')];
  return seconds > before ? [wrong(field, seconds, 'must be less than or equal to previous value')] : [];
}

/** Returns the immutable fields of a pod spec. */
function fixedPart(spec: Json): Json {
  const { activeDeadlineSeconds: _deadline, tolerations: _tolerations, containers, initContainers, ...rest } = spec;
  const withoutImage = (list: unknown): unknown =>
    Array.isArray(list) ? list.map((one) => ({ ...objectOf(one), image: undefined })) : undefined;
  return { ...rest, containers: withoutImage(containers), initContainers: withoutImage(initContainers) };
}

function statefulSetCauses(spec: Json): readonly Cause[] {
  const { replicas, podManagementPolicy, selector, minReadySeconds } = spec;
  const strategy = objectOf(spec['updateStrategy']);
  const labels = objectOf(objectOf(objectOf(spec['template'])['metadata'])['labels']) as Readonly<Record<string, string>>;
  const causes: Cause[] = [];
  if (podManagementPolicy !== 'OrderedReady' && podManagementPolicy !== 'Parallel') {
    causes.push(wrong('spec.podManagementPolicy', podManagementPolicy, "must be 'OrderedReady' or 'Parallel'"));
  }
  if (strategy['type'] === 'OnDelete') {
    const { rollingUpdate } = strategy;
    const shown = isObject(rollingUpdate) && {
      Partition: rollingUpdate['partition'],
      MaxUnavailable: rollingUpdate['maxUnavailable'] ?? null,
    };
    const field = 'spec.updateStrategy.rollingUpdate';
    if (shown) causes.push(wrong(field, shown, "only allowed for updateStrategy 'RollingUpdate'"));
  } else if (strategy['type'] !== 'RollingUpdate') {
    causes.push(wrong('spec.updateStrategy', strategy, "must be 'RollingUpdate' or 'OnDelete'"));
  } else {
    causes.push(...notNegative('spec.updateStrategy.rollingUpdate.partition', objectOf(strategy['rollingUpdate'])['partition']));
  }
  causes.push(...notNegative('spec.replicas', replicas), ...notNegative('spec.minReadySeconds', minReadySeconds));
  if (selector === undefined) causes.push({ reason: 'FieldValueRequired', message: 'Required value', field: 'spec.selector' });
  if (!matchesSelector(selector, labels)) {
    causes.push(wrong('spec.template.metadata.labels', labels, '`selector` does not match template `labels`'));
  }
  return causes;
}

/** The mutable fields of a StatefulSet spec (kubernetes/kubernetes pkg/apis/apps/validation, ValidateStatefulSetUpdate). */
export const mutableFields: readonly string[] = [
  'replicas',
  'ordinals',
  'template',
  'updateStrategy',
  'revisionHistoryLimit',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
];
const fixedSpecRule =
  "Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', " +
  "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

function fixedSpecCauses(spec: Json, before: Json): readonly Cause[] {
  if (spec === before) return [];
  const rest = (all: Json): Json => Object.fromEntries(Object.entries(all).filter(([key]) => !mutableFields.includes(key)));
  return isSame(rest(spec), rest(before)) ? [] : [{ reason: 'FieldValueForbidden', message: fixedSpecRule, field: 'spec' }];
}

const partsOfReplicas = ['readyReplicas', 'currentReplicas', 'updatedReplicas', 'availableReplicas'];

function statusCauses(status: Json): readonly Cause[] {
  const count = (field: string): number => Number(status[field] ?? 0);
  const negative = ['replicas', ...partsOfReplicas, 'observedGeneration'].flatMap((field) => notNegative(`status.${field}`, status[field]));
  const above = partsOfReplicas
    .filter((field) => count(field) > count('replicas'))
    .map((field) => wrong(`status.${field}`, count(field), 'cannot be greater than status.replicas'));
  return [...negative, ...above];
}

const countsOfBudgets = ['disruptionsAllowed', 'currentHealthy', 'desiredHealthy', 'expectedPods'];
const percentRule =
  "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is " +
  "'[0-9]+%')";

function collisionCauses({ collisionCount: count }: Json, { collisionCount: known }: Json): readonly Cause[] {
  if (typeof known !== 'number' || (typeof count === 'number' && count >= known)) return [];
  return [wrong('status.collisionCount', count ?? null, 'cannot be decremented')];
}

function budgetCauses(spec: Json): readonly Cause[] {
  const { minAvailable, maxUnavailable } = spec;
  if (minAvailable !== undefined && maxUnavailable !== undefined) {
    const shown = {
      MinAvailable: minAvailable,
      Selector: spec['selector'] ?? null,
      MaxUnavailable: maxUnavailable,
      UnhealthyPodEvictionPolicy: spec['unhealthyPodEvictionPolicy'] ?? null,
    };
    return [wrong('spec', shown, 'minAvailable and maxUnavailable cannot be both set')];
  }
  return Object.entries({ minAvailable, maxUnavailable }).flatMap(([field, value]) =>
    typeof value === 'string' && !/^[0-9]+%$/.test(value)
      ? [wrong(`spec.${field}`, value, percentRule)]
      : notNegative(`spec.${field}`, value),
  );
}

function notNegative(field: string, value: unknown): readonly Cause[] {
  return typeof value === 'number' && value < 0 ? [wrong(field, value, 'must be greater than or equal to 0')] : [];
}

function wrong(field: string, value: unknown, why: string): Cause {
  return { reason: 'FieldValueInvalid', message: `Invalid value: ${JSON.stringify(value)}: ${why}`, field };
}

/** The format of times in Leases, which must have six fractional digits. */
const microTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(?:Z|[+-]\d\d:\d\d)$/;

/** Returns the message of the API server if the object cannot be decoded; else undefined. */
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
