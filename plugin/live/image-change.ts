// The image changes of a running rollout, from pods of both revisions.
import type { KubernetesObject } from '../../cluster/request/resource.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { valueAt } from '../../policies/schema/schema-walk.ts';
import { itemsOf, type Listing } from '../cluster-snapshot/listing.ts';
import { isUnderWay } from './read.ts';

/** The images of one container before and after. */
export interface ImageChange {
  readonly from: string;
  readonly to: string;
}

/** Returns each image change once; none when no rollout is running, no image differs or pods were not read. */
export function imageChanges(decision: PublishedDecision, listing: Listing): readonly ImageChange[] {
  if (!isUnderWay(decision)) return [];
  const sets = itemsOf(listing.statefulSets).filter(({ metadata }) => metadata.namespace === decision.namespace);
  const pods = itemsOf(listing.pods).filter(({ metadata }) => metadata.namespace === decision.namespace);
  const changes = decision.zones.flatMap(({ zone, statefulSet }) => {
    const set = sets.find(({ metadata }) => metadata.name === statefulSet);
    if (set === undefined) return [];
    // The target of a finished run is not that of the next one.
    const running = decision.run?.outcome === 'running' ? decision.run.target[zone] : undefined;
    const target = running ?? valueAt(set, ['status', 'updateRevision']);
    return changesOf(set, podsOf(pods, statefulSet), target);
  });
  return [...new Map(changes.map((change) => [`${change.from} ${change.to}`, change])).values()];
}

/** Returns the changes of one StatefulSet. Containers that other writers injected into pods are ignored. */
function changesOf(set: KubernetesObject, pods: readonly KubernetesObject[], target: unknown): readonly ImageChange[] {
  const [updated] = pods.filter((pod) => revisionOf(pod) === target);
  const wanted = imagesIn(valueAt(set, ['spec', 'template', 'spec', 'containers']));
  const made = updated === undefined ? undefined : imagesIn(valueAt(updated, ['spec', 'containers']));
  if (made === undefined && !isTemplateOf(set, target)) return [];
  return [...wanted].flatMap(([container, image]) => {
    const to = made === undefined ? image : made.get(container);
    return pods
      .filter((pod) => revisionOf(pod) !== target)
      .flatMap((pod) => {
        const from = imagesIn(valueAt(pod, ['spec', 'containers'])).get(container);
        if (from === undefined || to === undefined || from === to) return [];
        // A webhook may give pods another registry than the template names.
        return made === undefined && partsOf(from).repository !== partsOf(to).repository ? [] : [{ from, to }];
      });
  });
}

/** Reports whether the template belongs to this revision, in the controller's latest status. */
function isTemplateOf(set: KubernetesObject, target: unknown): boolean {
  const observed = valueAt(set, ['status', 'observedGeneration']);
  return valueAt(set, ['status', 'updateRevision']) === target && observed === valueAt(set, ['metadata', 'generation']);
}

function podsOf(pods: readonly KubernetesObject[], statefulSet: string): readonly KubernetesObject[] {
  return pods.filter(({ metadata }) =>
    metadata.ownerReferences?.some((one) => one['kind'] === 'StatefulSet' && one['controller'] === true && one['name'] === statefulSet),
  );
}

function revisionOf({ metadata }: KubernetesObject): string | undefined {
  return metadata.labels?.['controller-revision-hash'];
}

/** Returns images by name of the container. */
function imagesIn(containers: unknown): ReadonlyMap<string, string> {
  if (!Array.isArray(containers)) return new Map();
  return new Map(
    containers.flatMap((one: unknown): readonly (readonly [string, string])[] => {
      const [name, image] = [valueAt(one, ['name']), valueAt(one, ['image'])];
      return typeof name === 'string' && typeof image === 'string' ? [[name, image]] : [];
    }),
  );
}

interface ImageParts {
  /** `grafana/mimir`. */
  readonly repository: string;
  readonly tag?: string;
  /** Without its algorithm. */
  readonly digest?: string;
}

/** Splits `REPOSITORY[:TAG][@ALGORITHM:DIGEST]`. A port before a slash belongs to the repository. */
export function partsOf(image: string): ImageParts {
  const [named = image, hash] = image.split('@');
  const [, repository = named, tag] = /^(.*):([^:/]+)$/.exec(named) ?? [];
  const digest = hash?.split(':').at(-1);
  return { repository, ...(tag === undefined ? {} : { tag }), ...(digest === undefined ? {} : { digest }) };
}
