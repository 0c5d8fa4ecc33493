// Extracts the end state of a group without times, to compare two runs of the same workload.
import type { Scene } from './oracles/oracle.ts';
import type { Json, ModelObject } from './server/request.ts';

const mirrored = ['replicatemplates.rollout-operator.grafana.com', 'rolloutgroups.rollout-group.dev'];

/** Returns each StatefulSet with its pods, and the replica counts of mirrored objects, by name. */
export function endStateOf(scene: Pick<Scene, 'namespace' | 'statefulSets' | 'list' | 'get'>): Readonly<Record<string, string>> {
  const state: Record<string, string> = {};
  for (const name of scene.statefulSets) {
    const set = scene.get('statefulsets.apps', scene.namespace, name);
    state[name] = set === undefined ? 'nothing' : statefulSetText(set, podsOf(scene, set));
  }
  for (const resource of mirrored) {
    for (const object of scene.list(resource, scene.namespace)) {
      const replicas = part(object, 'status')['replicas'];
      if (replicas !== undefined) state[`${object.kind} ${object.metadata.name}`] = `${replicas} replicas in its status`;
    }
  }
  return state;
}

function podsOf(scene: Pick<Scene, 'namespace' | 'list'>, set: ModelObject): readonly ModelObject[] {
  return scene
    .list('pods', scene.namespace)
    .filter(({ metadata }) => metadata.ownerReferences?.some(({ uid, controller }) => controller === true && uid === set.metadata.uid));
}

function statefulSetText(set: ModelObject, pods: readonly ModelObject[]): string {
  const spec = part(set, 'spec');
  const template = part(part(spec, 'template'), 'spec');
  const images = pods.map((pod) => imagesOf(part(pod, 'spec'))).sort();
  return `${spec['replicas']} replicas of ${imagesOf(template)}, ${pods.length} pods of ${[...new Set(images)].join(' and ') || 'nothing'}`;
}

function imagesOf(podSpec: Json): string {
  const containers = (podSpec['containers'] ?? []) as readonly { readonly image?: string }[];
  return containers.map(({ image }) => image ?? 'no image').join(' with ');
}

function part(value: Json, name: string): Json {
  return (value[name] ?? {}) as Json;
}
