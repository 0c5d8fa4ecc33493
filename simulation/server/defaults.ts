// Prepares objects for the storage, as the API server does: drops unknown fields and adds defaults.
import { apiVersionOf } from '../../cluster/request/resource.ts';
import { listOf } from '../../policies/values/list-of.ts';
import { isObject, objectOf } from './json.ts';
import { resourceOf, type ServedKind } from './kinds.ts';
import type { Json } from './request.ts';

/** The fields of kinds with other fields than `spec` and `status`. */
const fieldsOf: Readonly<Record<string, readonly string[]>> = {
  configmaps: ['immutable', 'data', 'binaryData'],
  'controllerrevisions.apps': ['data', 'revision'],
  'events.events.k8s.io': [
    ...['eventTime', 'series', 'reportingController', 'reportingInstance', 'action', 'reason', 'regarding', 'related', 'note', 'type'],
    ...['deprecatedSource', 'deprecatedFirstTimestamp', 'deprecatedLastTimestamp', 'deprecatedCount'],
  ],
};

const metadataFields = [
  'name',
  'namespace',
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'labels',
  'annotations',
  'ownerReferences',
  'finalizers',
];

/** Returns the metadata without empty and unknown fields. A request does not set managers (managed-fields.ts). */
function cleanMetadata(metadata: Json): Json {
  const clean: Record<string, unknown> = {};
  for (const field of metadataFields) {
    const value = metadata[field];
    if (value !== undefined && value !== null && value !== '' && !isEmpty(value)) clean[field] = value;
  }
  return clean;
}

function isEmpty(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  for (const _ in value) return false;
  return true;
}

/** Reports whether the definition of the kind has a default for its status (deploy/crds/rolloutgroups.yaml). */
export function hasDefaultStatus(kind: ServedKind): boolean {
  return resourceOf(kind) === 'rolloutgroups.rollout-group.dev';
}

/** Returns the object with only the fields of its kind, and with their defaults. */
export function prepared(kind: ServedKind, object: Json): Json {
  const resource = resourceOf(kind);
  const metadata = cleanMetadata(objectOf(object['metadata']));
  const known: Record<string, unknown> = { kind: kind.kind, apiVersion: apiVersionOf(kind), metadata };
  for (const field of kind.fields ?? fieldsOf[resource] ?? (kind.hasStatus ? ['spec', 'status'] : ['spec'])) {
    const value = kind.isCustom ? object[field] : fieldOf(resource, field, object[field]);
    if (value !== undefined && value !== null) known[field] = value;
  }
  if (hasDefaultStatus(kind)) known['status'] ??= { observedGeneration: -1 };
  return known;
}

/** The fields that already have their defaults. A change of another part of the object passes them here again. */
const ready = new WeakMap<object, string>();

function fieldOf(resource: string, field: string, value: unknown): unknown {
  const make = defaulted[resource]?.[field];
  if (typeof value !== 'object' || value === null) return value === undefined || value === null ? make?.({}) : value;
  const key = `${resource} ${field}`;
  if (ready.get(value) === key) return value;
  const clean = withoutNulls(value);
  const made = make === undefined || !isObject(clean) ? clean : make(clean);
  if (typeof made === 'object' && made !== null) ready.set(made, key);
  return made;
}

/** Removes `null`, which in built-in kinds means an absent field, except for times of pod conditions. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) {
    const items = value.map(withoutNulls);
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  if (!isObject(value)) return value;
  let result: Record<string, unknown> | undefined;
  for (const [key, item] of Object.entries(value)) {
    const next = item === null ? undefined : withoutNulls(item);
    if (next === item || (item === null && key.startsWith('last'))) continue;
    result ??= { ...value };
    if (next === undefined) delete result[key];
    else result[key] = next;
  }
  return result ?? value;
}

function unlessEmpty(value: Json): Json | undefined {
  return isEmpty(value) ? undefined : value;
}

/** The functions that add defaults, by resource and field. An absent field is passed as an empty object. */
const defaulted: Readonly<Record<string, Readonly<Record<string, (value: Json) => Json | undefined>>>> = {
  configmaps: { data: unlessEmpty, binaryData: unlessEmpty },
  pods: { spec: (spec) => podSpec(spec, true), status: podStatus },
  'statefulsets.apps': { spec: statefulSetSpec, status: statefulSetStatus },
  'poddisruptionbudgets.policy': { spec: (spec) => spec, status: budgetStatus },
  'leases.coordination.k8s.io': { spec: (spec) => spec },
  namespaces: {
    spec: (spec) => filled(spec, { finalizers: ['kubernetes'] }),
    status: (status) => filled(status, { phase: 'Active' }),
  },
  services: { status: (status) => filled(status, { loadBalancer: {} }) },
};

function budgetStatus(status: Json): Json {
  const counted = filled(status, { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 });
  return without(counted, ['observedGeneration', 'disruptedPods', 'conditions'], isNothing);
}

function isNothing(value: unknown): boolean {
  return value === 0 || value === '' || isEmpty(value);
}

function filled(object: Json, defaults: Json): Json {
  for (const key in defaults) if (object[key] === undefined) return { ...defaults, ...object };
  return object;
}

function without(object: Json, keys: readonly string[], isLeftOut: (value: unknown) => boolean): Json {
  const gone = keys.filter((key) => object[key] !== undefined && isLeftOut(object[key]));
  if (gone.length === 0) return object;
  return Object.fromEntries(Object.entries(object).filter(([key]) => !gone.includes(key)));
}

const tolerations = ['not-ready', 'unreachable'].map((taint) => ({
  key: `node.kubernetes.io/${taint}`,
  operator: 'Exists',
  effect: 'NoExecute',
  tolerationSeconds: 300,
}));

/** Adds the defaults of a pod spec. `isPod` also adds the fields that pods get and templates do not. */
function podSpec(spec: Json, isPod: boolean): Json {
  const containers = listOf(spec['containers']).map(container);
  const initContainers = listOf(spec['initContainers']).map(container);
  return filled(
    { ...spec, ...(spec['containers'] !== undefined && { containers }), ...(initContainers.length > 0 && { initContainers }) },
    {
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'ClusterFirst',
      securityContext: {},
      schedulerName: 'default-scheduler',
      ...(isPod && {
        serviceAccountName: 'default',
        serviceAccount: 'default',
        tolerations,
        priority: 0,
        enableServiceLinks: true,
        preemptionPolicy: 'PreemptLowerPriority',
      }),
    },
  );
}

function container(value: unknown): unknown {
  const image = String(objectOf(value)['image'] ?? '');
  const isFloating = !/[:@][^/]*$/.test(image) || image.endsWith(':latest');
  const ports = listOf(objectOf(value)['ports']).map((port) => filled(objectOf(port), { protocol: 'TCP' }));
  return filled(
    { ...objectOf(value), ...(ports.length > 0 && { ports }) },
    {
      resources: {},
      terminationMessagePath: '/dev/termination-log',
      terminationMessagePolicy: 'File',
      imagePullPolicy: isFloating ? 'Always' : 'IfNotPresent',
    },
  );
}

function podStatus(status: Json): Json {
  const conditions = listOf(status['conditions']).map((one) => filled(objectOf(one), { lastProbeTime: null, lastTransitionTime: null }));
  return { ...without(status, ['conditions', 'containerStatuses'], isEmpty), ...(conditions.length > 0 && { conditions }) };
}

function statefulSetSpec(spec: Json): Json {
  const template = objectOf(spec['template']);
  return filled(
    {
      ...without(spec, ['minReadySeconds'], isNothing),
      template: { ...template, metadata: cleanMetadata(objectOf(template['metadata'])), spec: podSpec(objectOf(template['spec']), false) },
      updateStrategy: updateStrategy(objectOf(spec['updateStrategy'])),
    },
    {
      replicas: 1,
      podManagementPolicy: 'OrderedReady',
      revisionHistoryLimit: 10,
      persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
    },
  );
}

/** Only a strategy without a type gets the block `rollingUpdate`, and only a block gets a partition. */
function updateStrategy(strategy: Json): Json {
  const { type = 'RollingUpdate' } = strategy;
  const { rollingUpdate = strategy['type'] === undefined ? {} : undefined } = strategy;
  if (type !== 'RollingUpdate' || rollingUpdate === undefined || rollingUpdate === null) return { ...strategy, type };
  return { type, rollingUpdate: filled(objectOf(rollingUpdate), { partition: 0 }) };
}

const countsOfSets = ['observedGeneration', 'readyReplicas', 'currentReplicas', 'updatedReplicas', 'currentRevision', 'updateRevision'];

function statefulSetStatus(status: Json): Json {
  return without(filled(status, { replicas: 0, availableReplicas: 0 }), [...countsOfSets, 'conditions'], isNothing);
}
