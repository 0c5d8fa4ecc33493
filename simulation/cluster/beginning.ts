// Creates the initial state: every object exists, and the pods of every StatefulSet have been ready for an hour.
import { between, streamOf } from '../random.ts';
import type { Actor, Json, ModelObject } from '../server/request.ts';
import { resourceOfKind } from './replica-origins.ts';
import { revisionName } from './revision.ts';
import { podOf, revisionOf } from './statefulset-controller.ts';
import { controllerActor, replicasOf, revisionResource, specOf, statefulSetResource } from './workload.ts';
import type { World } from './world.ts';

interface BeginningOptions extends Pick<World, 'server' | 'wallMs' | 'seed'> {
  readonly objects: readonly Json[];
  readonly namespace: string;
  /** Returns a node for the pod, given the nodes already assigned. */
  readonly placeFor: (pod: string, taken: readonly string[]) => string | undefined;
  /** Marks the pod as ready since that wall-clock time. */
  readonly adopt: (pod: ModelObject, sinceMs: number) => void;
}

const administrator: Actor = { user: 'kubernetes-admin' };

const hourMs = 3_600_000;

/** Creates all objects. Every resource must be served. */
export function begin(options: BeginningOptions): void {
  const { server, objects, namespace } = options;
  const taken: string[] = [];
  for (const object of objects) {
    const { status, metadata, ...rest } = object as Json & { readonly metadata: Json; readonly status?: Json };
    const place = { namespace, ...metadata };
    const resource = resourceOfKind(`${object['apiVersion']}`, `${object['kind']}`);
    const created = server.create(administrator, resource, { ...rest, metadata: place });
    if (resource === statefulSetResource) beginStatefulSet(created, taken, options);
    else if (status !== undefined)
      server.change(administrator, resource, created.metadata.namespace ?? '', created.metadata.name, { status }, 'status');
  }
}

function beginStatefulSet(set: ModelObject, taken: string[], { server, wallMs, seed, placeFor, adopt }: BeginningOptions): void {
  const { namespace = '', name } = set.metadata;
  const { ordinals, template = {} } = specOf(set);
  const revision = revisionName(set);
  const replicas = replicasOf(set);
  const first = ordinals?.start ?? 0;
  server.create(controllerActor, revisionResource, revisionOf(set, revision, 1));
  for (let ordinal = first; ordinal < first + replicas; ordinal += 1) {
    const pod = podOf(set, { ordinal, revision, template });
    const nodeName = placeFor(`${name}-${ordinal}`, taken);
    taken.push(nodeName ?? '');
    const created = server.create(controllerActor, 'pods', { ...pod, spec: { ...(pod['spec'] as Json), nodeName } });
    const ageMs = hourMs + between(streamOf(seed, `age of ${namespace}/${name}-${ordinal}`), 0, 600_000);
    adopt(created, wallMs() - ageMs);
  }
  const counts = { replicas, readyReplicas: replicas, availableReplicas: replicas, currentReplicas: replicas, updatedReplicas: replicas };
  const status = {
    observedGeneration: set.metadata.generation ?? 1,
    ...counts,
    currentRevision: revision,
    updateRevision: revision,
    collisionCount: 0,
  };
  server.change(controllerActor, statefulSetResource, namespace, name, { status }, 'status');
}
