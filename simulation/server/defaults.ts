// What the API server makes of an object before it stores it: fields that it does not know go, and those that it knows a default for come.
import { isObject, objectOf } from './json.ts';
import { apiVersionOf, resourceOf, type ServedKind } from './kinds.ts';
import type { Json } from './request.ts';

/** Fields of kinds that have more than `spec` and `status`. */
const fieldsOf: Readonly<Record<string, readonly string[]>> = {
  configmaps: ['immutable', 'data', 'binaryData'],
  'controllerrevisions.apps': ['data', 'revision'],
  events: [
    ...[
      'involvedObject',
      'reason',
      'message',
      'source',
      'firstTimestamp',
      'lastTimestamp',
      'count',
      'type',
      'eventTime',
      'series',
      'action',
    ],
    ...['related', 'reportingComponent', 'reportingInstance'],
  ],
  'events.events.k8s.io': [
    ...['eventTime', 'series', 'reportingController', 'reportingInstance', 'action', 'reason', 'regarding', 'related', 'note', 'type'],
    ...['deprecatedSource', 'deprecatedFirstTimestamp', 'deprecatedLastTimestamp', 'deprecatedCount'],
  ],
};

const metadataFields = [
  'name',
  'generateName',
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

/** The metadata as the server keeps it: nothing empty, nothing unknown. Who changed which field (managedFields) is not modelled. */
export function cleanMetadata(metadata: Json): Json {
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

/** The object with the fields of its kind only, and their defaults. */
export function prepared(kind: ServedKind, object: Json): Json {
  const metadata = cleanMetadata(objectOf(object['metadata']));
  const known: Record<string, unknown> = { kind: kind.kind, apiVersion: apiVersionOf(kind), metadata };
  for (const field of fieldsOf[resourceOf(kind)] ?? (kind.hasStatus ? ['spec', 'status'] : ['spec'])) {
    const value = object[field];
    if (value !== undefined && value !== null) known[field] = kind.isCustom || isReady(kind, value) ? value : withoutNulls(value);
  }
  if (kind.isCustom) return known;
  const { spec, status } = known;
  const result = defaulted[resourceOf(kind)]?.(known) ?? known;
  // What comes out of here goes in again with the next change of another part of the object: then it is left as it is.
  return { ...result, ...kept(kind, 'spec', spec, result), ...kept(kind, 'status', status, result) };
}

const readyFor = new WeakMap<object, string>();

function isReady(kind: ServedKind, value: unknown): boolean {
  return typeof value === 'object' && value !== null && readyFor.get(value) === resourceOf(kind);
}

function kept(kind: ServedKind, field: 'spec' | 'status', before: unknown, result: Json): Json {
  if (isReady(kind, before)) return { [field]: before };
  const after = result[field];
  if (typeof after === 'object' && after !== null) readyFor.set(after, resourceOf(kind));
  return {};
}

/** `null` is the same as absent in Kubernetes' own kinds. Times of pod conditions are the exception: there it is written. */
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

const defaulted: Readonly<Record<string, (object: Json) => Json>> = {
  configmaps: (object) => without(object, ['data', 'binaryData'], isEmpty),
  pods: (object) => ({ ...object, spec: podSpec(objectOf(object['spec']), true), status: podStatus(objectOf(object['status'])) }),
  'statefulsets.apps': (object) => ({
    ...object,
    spec: statefulSetSpec(objectOf(object['spec'])),
    status: statefulSetStatus(objectOf(object['status'])),
  }),
  'poddisruptionbudgets.policy': (object) => ({
    ...object,
    status: without(
      filled(objectOf(object['status']), { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 }),
      ['observedGeneration', 'disruptedPods', 'conditions'],
      isNothing,
    ),
  }),
  'leases.coordination.k8s.io': (object) => filled(object, { spec: {} }),
  namespaces: (object) => filled(object, { spec: { finalizers: ['kubernetes'] }, status: { phase: 'Active' } }),
  services: (object) => filled(object, { status: { loadBalancer: {} } }),
};

function isNothing(value: unknown): boolean {
  return value === 0 || value === '' || isEmpty(value);
}

/** The object with the fields that it lacks. */
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

/** `isPod`: with what admission adds to pods and not to templates; the volume with the account's token is not modelled. */
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
  const strategy = filled(objectOf(spec['updateStrategy']), { type: 'RollingUpdate' });
  const rolling = filled(objectOf(strategy['rollingUpdate']), { partition: 0 });
  return filled(
    {
      ...without(spec, ['minReadySeconds'], isNothing),
      template: { ...template, metadata: cleanMetadata(objectOf(template['metadata'])), spec: podSpec(objectOf(template['spec']), false) },
      updateStrategy: strategy['type'] === 'RollingUpdate' ? { ...strategy, rollingUpdate: rolling } : strategy,
    },
    {
      replicas: 1,
      podManagementPolicy: 'OrderedReady',
      revisionHistoryLimit: 10,
      persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
    },
  );
}

const countsOfSets = ['observedGeneration', 'readyReplicas', 'currentReplicas', 'updatedReplicas', 'currentRevision', 'updateRevision'];

function statefulSetStatus(status: Json): Json {
  return without(filled(status, { replicas: 0, availableReplicas: 0 }), [...countsOfSets, 'conditions'], isNothing);
}

/** What a pod's status is when the pod is created, whatever the request says. */
export function newPodStatus(spec: Json): Json {
  const resources = listOf(spec['containers']).map((one) => objectOf(objectOf(one)['resources']));
  const isBestEffort = resources.every(({ requests, limits }) => isEmpty(objectOf(requests)) && isEmpty(objectOf(limits)));
  return { phase: 'Pending', qosClass: isBestEffort ? 'BestEffort' : isGuaranteed(resources) ? 'Guaranteed' : 'Burstable' };
}

function isGuaranteed(resources: readonly Json[]): boolean {
  return resources.every(({ requests, limits }) =>
    ['cpu', 'memory'].every((name) => {
      const limit = objectOf(limits)[name];
      return limit !== undefined && (objectOf(requests)[name] ?? limit) === limit;
    }),
  );
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
