// The reviews of the webhook load, each with its expected verdict, and the objects in them.

type Json = Readonly<Record<string, unknown>>;

/** `reviews`: writes of StatefulSets that reserve nothing. `evictions`: each answer makes a reservation. */
export type Scenario = 'reviews' | 'evictions';

/** One request without its uid. The uid stands between the two parts. */
export interface AskedReview {
  readonly path: string;
  readonly before: Buffer;
  readonly after: Buffer;
  readonly isAllowed: boolean;
}

export const namespace = 'mimir';
export const zones = ['a', 'b', 'c'] as const;
/** `evictions` iterates over the pods of one zone, so that each pod is back when it is evicted again. */
export const podsPerZone = 20;
/** Prefix of the uids of big reviews. */
export const bigPrefix = 'big-';
/** Prefix of the uids of reviews before the measurement. */
export const warmPrefix = 'warm-';

/** The annotation of `kubectl apply` makes StatefulSets of databases as long as in a real cluster. */
const appliedBytes = 9_000;
const bigBytes = 3 * 2 ** 20;

export function zoneName(zone: string): string {
  return `ingester-zone-${zone}`;
}

export function longAnnotations(bytes: number = appliedBytes): Readonly<Record<string, string>> {
  return { 'kubectl.kubernetes.io/last-applied-configuration': 'x'.repeat(bytes) };
}

/** The label that no-downscale reads. */
export const guardedLabels: Readonly<Record<string, string>> = { 'grafana.com/no-downscale': 'true' };

/** Returns the reviews in turn. With `areBig` they have bodies of 3 MiB, which only writes of StatefulSets can have. */
export function reviewsOf(scenario: Scenario, { areBig = false }: { readonly areBig?: boolean } = {}): readonly AskedReview[] {
  if (scenario === 'evictions') return Array.from({ length: podsPerZone }, (_, ordinal) => evictionOf(`${zoneName('a')}-${ordinal}`));
  const bytes = areBig ? bigBytes / 2 : appliedBytes;
  const [fewer, more] = [podsPerZone - 1, podsPerZone + 1];
  const zone = (replicas: number): Pair => pairOf(zoneName('b'), { replicas, labels: {}, bytes });
  const cache = pairOf('cache', { replicas: fewer, labels: guardedLabels, bytes });
  const writes = [
    asked('/admission/no-downscale', statefulSetReview(cache), false),
    asked('/admission/no-downscale', statefulSetReview(zone(fewer)), true),
    // The policy of the group denies a smaller number of replicas.
    asked('/admission/enforce', statefulSetReview(zone(fewer)), false),
    asked('/admission/enforce', statefulSetReview(zone(more)), true),
    // Most writes do not change a field that a rule reads.
    asked('/admission/enforce', statefulSetReview(zone(podsPerZone)), true),
    asked('/admission/no-downscale', statefulSetReview(zone(podsPerZone)), true),
    asked('/admission/no-downscale', statefulSetReview(zone(more)), true),
  ];
  return areBig ? writes : [...writes, asked('/admission/no-downscale', scaleReview('cache', fewer), false)];
}

interface Pair {
  readonly name: string;
  readonly object: Json;
  readonly oldObject: Json;
}

interface Write {
  readonly replicas: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly bytes: number;
}

/** Returns the StatefulSet before and after a write of its replicas. */
function pairOf(name: string, { replicas, labels, bytes }: Write): Pair {
  const object = (count: number): Json => ({
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name, namespace, uid: '1f', resourceVersion: '1001', labels, annotations: longAnnotations(bytes) },
    spec: {
      replicas: count,
      serviceName: name,
      podManagementPolicy: 'Parallel',
      updateStrategy: { type: 'OnDelete' },
      selector: { matchLabels: { name } },
      template: { metadata: { labels: { name } }, spec: { containers: [{ name: 'app', image: 'app:1' }] } },
    },
  });
  return { name, object: object(replicas), oldObject: object(podsPerZone) };
}

function statefulSetReview({ name, object, oldObject }: Pair): Json {
  return {
    kind: { group: 'apps', version: 'v1', kind: 'StatefulSet' },
    resource: { group: 'apps', version: 'v1', resource: 'statefulsets' },
    name,
    operation: 'UPDATE',
    object,
    oldObject,
  };
}

/** Returns a review of a Scale, as long as the other reviews although a Scale has no such annotations. */
function scaleReview(name: string, to: number): Json {
  const scale = (replicas: number): Json => ({
    apiVersion: 'autoscaling/v1',
    kind: 'Scale',
    metadata: { name, namespace, annotations: longAnnotations() },
    spec: { replicas },
  });
  return {
    kind: { group: 'autoscaling', version: 'v1', kind: 'Scale' },
    resource: { group: 'apps', version: 'v1', resource: 'statefulsets' },
    subResource: 'scale',
    name,
    operation: 'UPDATE',
    object: scale(to),
    oldObject: scale(podsPerZone),
  };
}

function evictionOf(name: string): AskedReview {
  const review = {
    kind: { group: 'policy', version: 'v1', kind: 'Eviction' },
    resource: { group: '', version: 'v1', resource: 'pods' },
    subResource: 'eviction',
    name,
    operation: 'CREATE',
    object: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } },
  };
  return asked('/admission/enforce', review, true);
}

function asked(path: string, request: Json, isAllowed: boolean): AskedReview {
  const uid = '%uid%';
  const review = {
    kind: 'AdmissionReview',
    apiVersion: 'admission.k8s.io/v1',
    request: { uid, namespace, dryRun: false, userInfo: { username: 'ada', groups: ['system:authenticated'] }, ...request },
  };
  const [before = '', after = ''] = JSON.stringify(review).split(uid);
  return { path: `${path}?timeout=5s`, before: Buffer.from(before), after: Buffer.from(after), isAllowed };
}
