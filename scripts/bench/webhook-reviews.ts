// The reviews that the load on the webhook is made of, each with the verdict that it must get, and the objects that they are about.

type Json = Readonly<Record<string, unknown>>;

/** `reviews` are writes of StatefulSets that reserve nothing; `evictions` are answered by a reservation each. */
export type Scenario = 'reviews' | 'evictions';

/** One request, but for its uid, which stands between the two parts. */
export interface AskedReview {
  readonly path: string;
  readonly before: Buffer;
  readonly after: Buffer;
  readonly isAllowed: boolean;
}

export const namespace = 'mimir';
export const zones = ['a', 'b', 'c'] as const;
/** `evictions` goes through those of one zone, one after the other, so that each has come back when its turn comes again. */
export const podsPerZone = 20;
/** Uids of big reviews begin so. */
export const bigPrefix = 'big-';
/** And so those that are asked before anything is measured. */
export const warmPrefix = 'warm-';

/** What `kubectl apply` leaves behind makes the StatefulSets of databases as long as they are. */
const appliedBytes = 9_000;
const bigBytes = 3 * 2 ** 20;

export function zoneName(zone: string): string {
  return `ingester-zone-${zone}`;
}

export function longAnnotations(bytes: number = appliedBytes): Readonly<Record<string, string>> {
  return { 'kubectl.kubernetes.io/last-applied-configuration': 'x'.repeat(bytes) };
}

/** The label that no-downscale heeds. */
export const guardedLabels: Readonly<Record<string, string>> = { 'grafana.com/no-downscale': 'true' };

/** What is asked in turn. `areBig` gives bodies of 3 MiB, which only writes of StatefulSets can have. */
export function reviewsOf(scenario: Scenario, { areBig = false }: { readonly areBig?: boolean } = {}): readonly AskedReview[] {
  if (scenario === 'evictions') return Array.from({ length: podsPerZone }, (_, ordinal) => evictionOf(`${zoneName('a')}-${ordinal}`));
  const bytes = areBig ? bigBytes / 2 : appliedBytes;
  const [fewer, more] = [podsPerZone - 1, podsPerZone + 1];
  const zone = (replicas: number): Pair => pairOf(zoneName('b'), { replicas, labels: {}, bytes });
  const cache = pairOf('cache', { replicas: fewer, labels: guardedLabels, bytes });
  const writes = [
    asked('/admission/no-downscale', statefulSetReview(cache), false),
    asked('/admission/no-downscale', statefulSetReview(zone(fewer)), true),
    // The policy of the group says that it must not shrink.
    asked('/admission/enforce', statefulSetReview(zone(fewer)), false),
    asked('/admission/enforce', statefulSetReview(zone(more)), true),
    // Most of what is written changes nothing that anybody asks about.
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

/** The StatefulSet with other replicas than it has. */
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

/** As long as the others, though a Scale has no such annotations. */
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
