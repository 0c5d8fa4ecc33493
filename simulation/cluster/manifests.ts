// Models a GitOps tool that applies the manifests of StatefulSets by server-side apply, and so resets the fields that it owns.
import { between, type Random, streamOf } from '../random.ts';
import type { EventFields } from '../scenario.ts';
import type { Actor, Json, ModelObject } from '../server/request.ts';
import type { Client } from './client.ts';
import { type Container, replicasOf, specOf, statefulSetResource } from './workload.ts';
import type { World } from './world.ts';

/** The part of an applied manifest that changes the requested state. */
export interface AppliedChange {
  readonly images: readonly string[] | undefined;
  readonly replicas: number | undefined;
}

interface ManifestsOptions extends Pick<World, 'scheduler' | 'seed'> {
  readonly client: Client;
  readonly actor: Actor;
  readonly namespace: string;
  /** The StatefulSets at the start, by name. Their manifests are in Git. */
  readonly initial: ReadonlyMap<string, ModelObject | undefined>;
  /** Returns the requested images and the update strategy of a StatefulSet. */
  readonly requested: (name: string) => { readonly images: readonly string[]; readonly strategyNow: Json } | undefined;
  /** Called after an apply. */
  readonly applied: (name: string, change: AppliedChange) => void;
}

type Reapply = Pick<EventFields<'reapply'>, 'image' | 'owns' | 'isForced'>;

/** The manager of server-side applies of Argo CD. */
const manager = 'argocd-controller';

/** The manifests of a group. A denied apply, or one with a conflict, changes nothing: the next one repeats it. */
export class Manifests {
  readonly #options: ManifestsOptions;
  readonly #random: Random;

  constructor(options: ManifestsOptions) {
    this.#options = options;
    this.#random = streamOf(options.seed, 'manifests');
  }

  /** Applies the manifests one after the other. Returns whether there is one. */
  apply(names: readonly string[], what: Reapply): boolean {
    let delayMs = 0;
    for (const name of names) {
      this.#options.scheduler.after(delayMs, () => this.#applyOne(name, what));
      delayMs += between(this.#random, 20, 800);
    }
    return names.length > 0;
  }

  #applyOne(name: string, what: Reapply): void {
    const { client, actor, namespace, applied, initial, requested } = this.#options;
    const [set, want] = [initial.get(name), requested(name)];
    if (set === undefined || want === undefined) return;
    const images = what.image === undefined ? undefined : want.images.map(() => what.image ?? '');
    const replicas = what.owns.includes('replicas') ? replicasOf(set) : undefined;
    const object = manifestOf(set, { images: images ?? want.images, type: want.strategyNow['type'], replicas, what });
    const reference = { resource: statefulSetResource, namespace, name };
    client.apply(actor, reference, { object, manager, isForced: what.isForced }, { done: () => applied(name, { images, replicas }) });
  }
}

interface Content {
  readonly images: readonly string[];
  readonly type: unknown;
  readonly replicas: number | undefined;
  readonly what: Reapply;
}

/** Returns the manifest of a StatefulSet in Git. Its labels and annotations are not in there, because people change these by hand. */
function manifestOf({ apiVersion, kind, metadata: { name, namespace }, ...set }: ModelObject, content: Content): Json {
  const { replicas: _, updateStrategy, template = {}, ...rest } = specOf(set as ModelObject);
  const containers = (template.spec?.containers ?? []).map(
    (container, index): Container => ({ ...container, image: content.images[index] ?? container.image ?? '' }),
  );
  const { type, replicas } = content;
  const { partition } = updateStrategy?.rollingUpdate ?? {};
  const hasPartition = content.what.owns.includes('partition') && partition !== undefined && type === 'RollingUpdate';
  return {
    apiVersion,
    kind,
    metadata: { name, namespace },
    spec: {
      ...rest,
      ...(replicas === undefined ? {} : { replicas }),
      updateStrategy: { type, ...(hasPartition ? { rollingUpdate: { partition } } : {}) },
      template: { ...template, spec: { ...template.spec, containers } },
    },
  };
}
