// Models how people remove a StatefulSet from its group and add it again, and pause the group: by labels and annotations, or by objects.
import { field, groupResource, intentResource, listAt } from '../objects.ts';
import type { Actor, Json, ModelObject } from '../server/request.ts';
import { type Client, repeatMs } from './client.ts';
import { statefulSetResource } from './workload.ts';
import type { ClusterApi, World } from './world.ts';

interface MembershipOptions {
  readonly server: ClusterApi;
  readonly client: Client;
  readonly scheduler: World['scheduler'];
  readonly actor: Actor;
  readonly namespace: string;
  readonly group: string;
  readonly statefulSets: readonly string[];
}

interface Zone extends Json {
  readonly statefulSet: string;
}

const groupLabel = 'rollout-group';
const pausedAnnotation = 'grafana.com/rollout-paused';

/** Removes StatefulSets from the group and restores them; pauses and resumes the group. */
export class Membership {
  /** The labels that were removed from each StatefulSet. */
  readonly #removedLabels = new Map<string, Readonly<Record<string, string>>>();
  /** The members that were removed from the RolloutGroup, by StatefulSet. */
  readonly #removedZones = new Map<string, Zone>();
  #isPaused = false;
  readonly #options: MembershipOptions;
  readonly #intent: string;

  constructor(options: MembershipOptions) {
    this.#options = options;
    this.#intent = `pause-${options.group}`;
  }

  /** Removes the StatefulSet from the group. Returns false if it must stay: a group in a file does not change, and the last zone stays. */
  leave(statefulSet: string): boolean {
    const zone = this.#zones().find((candidate) => candidate.statefulSet === statefulSet);
    if (zone !== undefined) {
      if (this.#zones().length === 1) return false;
      this.#removedZones.set(statefulSet, zone);
      this.#setZones((zones) => zones.filter((other) => other.statefulSet !== statefulSet));
      return true;
    }
    const selected = Object.keys(field(this.#object(), 'spec', 'members', 'selector', 'matchLabels') ?? { [groupLabel]: '' });
    const labels = this.#metadata(statefulSet)?.labels ?? {};
    const removed = Object.fromEntries(selected.filter((key) => labels[key] !== undefined).map((key) => [key, labels[key] ?? '']));
    if (Object.keys(removed).length === 0) return false;
    this.#removedLabels.set(statefulSet, removed);
    this.apply(statefulSet);
    return true;
  }

  comeBack(statefulSet: string): void {
    const removed = this.#removedZones.get(statefulSet);
    const isMember = (zones: readonly Zone[]): boolean => zones.some((zone) => zone.statefulSet === statefulSet);
    if (removed !== undefined)
      this.#setZones((zones) => (isMember(zones) ? zones : [...zones, removed].sort((a, b) => this.#placeOf(a) - this.#placeOf(b))));
    this.#removedZones.delete(statefulSet);
    const labels = this.#removedLabels.get(statefulSet);
    this.#removedLabels.delete(statefulSet);
    if (labels !== undefined) this.#change(statefulSet, () => (this.#removedLabels.has(statefulSet) ? {} : { labels }));
  }

  /** Sets the labels and annotations of the StatefulSet to the current state, also after it was recreated from an earlier manifest. */
  apply(statefulSet: string): void {
    this.#change(statefulSet, () => {
      const removed = this.#removedLabels.get(statefulSet);
      return removed === undefined ? {} : { labels: Object.fromEntries(Object.keys(removed).map((key) => [key, null])) };
    });
    this.#change(statefulSet, ({ metadata: { annotations } }) => {
      const hasMark = annotations?.[pausedAnnotation] !== undefined;
      const isMarked = this.#isPaused && this.#isByLabels();
      return isMarked === hasMark ? {} : { annotations: { [pausedAnnotation]: isMarked ? 'true' : null } };
    });
  }

  pause(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    if (this.#isByLabels()) for (const name of this.#options.statefulSets) this.apply(name);
    else
      this.#options.client.create(this.#options.actor, intentResource, this.#pauseIntent(), {
        done: () => {
          // A person who resumed the group while the request was reviewed deletes it.
          if (!this.#isPaused) this.#removeIntent();
        },
      });
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    if (!this.#removeIntent()) for (const name of this.#options.statefulSets) this.apply(name);
  }

  #removeIntent(): boolean {
    const { server, actor, namespace } = this.#options;
    return server.remove(actor, { resource: intentResource, namespace, name: this.#intent });
  }

  #pauseIntent(): Json {
    const { namespace, group } = this.#options;
    return {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutIntent',
      metadata: { name: this.#intent, namespace },
      spec: { group, action: 'pause', reason: 'an incident' },
    };
  }

  #object(): ModelObject | undefined {
    return this.#options.server.get(groupResource, this.#options.namespace, this.#options.group);
  }

  #metadata(statefulSet: string): ModelObject['metadata'] | undefined {
    return this.#options.server.get(statefulSetResource, this.#options.namespace, statefulSet)?.metadata;
  }

  #zones(): readonly Zone[] {
    return zonesOf(this.#object());
  }

  #setZones(nextOf: (zones: readonly Zone[]) => readonly Zone[]): void {
    const { client, actor, namespace, group } = this.#options;
    client.change(actor, { resource: groupResource, namespace, name: group }, (stored) => ({
      spec: { members: { zones: nextOf(zonesOf(stored)) } },
    }));
  }

  #placeOf(zone: Zone): number {
    return this.#options.statefulSets.indexOf(zone.statefulSet);
  }

  /** Changes the metadata. After a denial, people repeat the last changes of the StatefulSet. */
  #change(statefulSet: string, metadataOf: (stored: ModelObject) => Json): void {
    const { client, scheduler, actor, namespace } = this.#options;
    client.change(actor, { resource: statefulSetResource, namespace, name: statefulSet }, (stored) => ({ metadata: metadataOf(stored) }), {
      denied: () => void scheduler.after(repeatMs, () => this.#change(statefulSet, metadataOf)),
    });
  }

  #isByLabels(): boolean {
    return (
      this.#object() === undefined && this.#options.statefulSets.some((name) => this.#metadata(name)?.labels?.[groupLabel] !== undefined)
    );
  }
}

function zonesOf(group: ModelObject | undefined): readonly Zone[] {
  return listAt(group, 'spec', 'members', 'zones') as readonly Zone[];
}
