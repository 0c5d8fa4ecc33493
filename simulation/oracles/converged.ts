// Finds the first difference between a group and its requested state, for the end of a simulation.

import type { WantedStatefulSet } from '../cluster/cluster.ts';
import {
  areContainersReady,
  configMapResource,
  controllerOf,
  groupResource,
  imagesOf,
  isTerminating,
  numberAt,
  placeOf,
  podResource,
  readyCondition,
  revisionLabelOf,
  statefulSetResource,
  textAt,
} from '../objects.ts';
import { letterOf, wavesOfShape } from '../scenario.ts';
import type { ModelObject } from '../server/request.ts';
import { isLedger, isOpenClaim, readLedger, stayingPods } from './documents.ts';
import type { Scene } from './oracle.ts';
import { targetOf, wavesIn } from './stored-waves.ts';

/** The requested state of a StatefulSet. `images` has one image per container; `image` is the image of containers beyond this list. */
type RequestedSet = Omit<WantedStatefulSet, 'images'> & Partial<WantedStatefulSet>;

type SceneView = Pick<
  Scene,
  'namespace' | 'list' | 'get' | 'group' | 'nowMs' | 'claimKnownMs' | 'hasRemovedClaim' | 'statefulSets' | 'groupName'
>;

/** Returns the first difference or open work as part of a sentence; undefined if the group has reached its requested state. */
export function firstDifference(scene: SceneView, wanted: readonly RequestedSet[]): string | undefined {
  for (const { statefulSet, image, images = [], replicas } of wanted) {
    const set = scene.get(statefulSetResource, scene.namespace, statefulSet);
    if (set === undefined) return `the StatefulSet ${statefulSet} does not exist`;
    const current = numberAt(set, 'spec', 'replicas') ?? 1;
    if (current !== replicas) return `${statefulSet} has ${current} replicas, not ${replicas}`;
    const isOther = (pod: ModelObject): boolean => imagesOf(pod).some((one, index) => one !== (images[index] ?? image));
    const pods = podsOf(scene, set).filter((pod) => !isTerminating(pod));
    const [other, ...others] = pods.filter(isOther);
    if (other !== undefined && pods.length - others.length - 1 < goalOf(scene, statefulSet, replicas))
      return `${other.metadata.name} runs ${imagesOf(other).join(', ')}, not ${images.length > 1 ? images.join(', ') : image}`;
  }
  return openWork(
    scene,
    wanted.map(({ statefulSet }) => statefulSet),
  );
}

/** Reports whether the waves of the group update every pod. Otherwise a zone keeps outdated pods, and the pins of its updated pods. */
export function updatesEveryPod(scene: SceneView): boolean {
  return scene.statefulSets.every((name) => goalOf(scene, name, 1_000) === 1_000);
}

/** Returns how many pods of the StatefulSet the waves update. A run ends when its waves are done, so the other pods may stay outdated. */
function goalOf({ group, groupName, list, namespace, statefulSets }: SceneView, statefulSet: string, replicas: number): number {
  const shaped = group.kind === 'adopted' ? undefined : wavesOfShape(group);
  if (shaped === undefined) return replicas;
  // People change the waves of a stored group.
  const stored = list(groupResource, namespace).find(({ metadata }) => groupName === undefined || metadata.name === groupName);
  const found = stored === undefined ? [] : wavesIn(stored);
  const waves = found.length === 0 ? shaped : found;
  const zone = letterOf(statefulSets.indexOf(statefulSet));
  return Math.max(0, ...waves.filter(({ zones }) => zones.includes(zone)).map((wave) => targetOf(wave, replicas)));
}

/** Returns the first open work of the group: a missing, surplus, outdated or unavailable pod, different replicas, a claim or a pin. */
export function openWork(scene: SceneView, statefulSets: readonly string[]): string | undefined {
  for (const name of statefulSets) {
    const set = scene.get(statefulSetResource, scene.namespace, name);
    const left = set === undefined ? `the StatefulSet ${name} does not exist` : openWorkOf(scene, set);
    if (left !== undefined) return left;
  }
  return followerBehind(scene, statefulSets) ?? openWorkInLedgers(scene);
}

function openWorkInLedgers(scene: SceneView): string | undefined {
  for (const map of scene.list(configMapResource, scene.namespace)) {
    if (!isLedger(map)) continue;
    const ledger = readLedger(map);
    if (ledger === undefined) return `the ledger ${map.metadata.name} cannot be read`;
    const claims = [...ledger.claims.values()].filter((claim) => isOpenClaim(claim, scene));
    if (claims.length > 0) return `the ledger ${map.metadata.name} announces ${claims.length} disruptions`;
    if (ledger.pins.size > 0 && updatesEveryPod(scene)) return `the ledger ${map.metadata.name} pins ${ledger.pins.size} pods`;
    const staying = stayingPods(ledger, scene);
    if (staying.length > 0) return `the ledger ${map.metadata.name} names ${staying.join(', ')} as prepared to leave`;
  }
  return scene.hasRemovedClaim?.() === true ? 'the leader waits for the end of a claim that a webhook has removed' : undefined;
}

/** Reports, as part of a sentence, the first zone whose replicas differ from the replicas of the leader or of the mirrored object. */
function followerBehind(scene: SceneView, statefulSets: readonly string[]): string | undefined {
  const [leader = '', ...followers] = statefulSets;
  switch (scene.group.replicas) {
    case 'own':
      return undefined;
    case 'leader':
      return behind(scene, followers, replicasOf(scene.get(statefulSetResource, scene.namespace, leader)), leader);
    default: {
      const [source] = scene.list(templateResource, scene.namespace);
      return source === undefined ? undefined : behind(scene, statefulSets, replicasOf(source), `ReplicaTemplate ${source.metadata.name}`);
    }
  }
}

function behind(
  { get, namespace }: SceneView,
  statefulSets: readonly string[],
  wanted: number | undefined,
  by: string,
): string | undefined {
  const other = statefulSets.find((name) => replicasOf(get(statefulSetResource, namespace, name)) !== wanted);
  return other === undefined ? undefined : `${other} does not have the ${wanted} replicas of ${by}`;
}

function replicasOf(object: ModelObject | undefined): number | undefined {
  return numberAt(object, 'spec', 'replicas');
}

const templateResource = 'replicatemplates.rollout-operator.grafana.com';

function openWorkOf(scene: SceneView, set: ModelObject): string | undefined {
  const { name, generation = 0 } = set.metadata;
  if ((numberAt(set, 'status', 'observedGeneration') ?? 0) < generation) return `the status of ${name} is older than its spec`;
  const replicas = numberAt(set, 'spec', 'replicas') ?? 1;
  const first = numberAt(set, 'spec', 'ordinals', 'start') ?? 0;
  const target = textAt(set, 'status', 'updateRevision') ?? '';
  const pods = new Map(podsOf(scene, set).map((pod) => [placeOf(pod.metadata.name)?.ordinal ?? -1, pod]));
  const updated = [...pods].filter(([ordinal, pod]) => ordinal < first + replicas && revisionLabelOf(pod) === target).length;
  const isDone = updated >= goalOf(scene, name, replicas);
  for (let ordinal = first; ordinal < first + replicas; ordinal += 1) {
    const pod = pods.get(ordinal);
    if (pod === undefined) return `${name}-${ordinal} does not exist`;
    if (revisionLabelOf(pod) !== target && !isDone) return `${name}-${ordinal} is at ${revisionLabelOf(pod)}, not at ${target}`;
    if (!isAvailable(scene, pod, set)) return `${name}-${ordinal} is not available`;
    pods.delete(ordinal);
  }
  const [surplus] = pods.values();
  return surplus === undefined ? undefined : `${surplus.metadata.name} is still there`;
}

/** Returns the pods that the StatefulSet owns. */
export function podsOf({ list, namespace }: Pick<Scene, 'list' | 'namespace'>, { metadata }: ModelObject): readonly ModelObject[] {
  return list(podResource, namespace).filter((pod) => controllerOf(pod) === metadata.uid);
}

function isAvailable({ group, nowMs }: SceneView, pod: ModelObject, set: ModelObject): boolean {
  if (isTerminating(pod) || textAt(pod, 'status', 'phase') !== 'Running') return false;
  if (group.kind === 'adopted') return areContainersReady(pod);
  const { isTrue, sinceMs = 0 } = readyCondition(pod);
  return isTrue && nowMs() >= sinceMs + (numberAt(set, 'spec', 'minReadySeconds') ?? 0) * 1000;
}
