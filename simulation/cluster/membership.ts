// Models how people remove a StatefulSet from its group and add it again, and pause the group: by labels and annotations, or by objects.
import { field, groupResource, intentResource, listAt } from '../objects.ts';
import type { Actor, Json, ModelObject } from '../server/request.ts';
import { statefulSetResource } from './workload.ts';
import type { ClusterApi } from './world.ts';

interface MembershipOptions {
  readonly server: ClusterApi;
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
      this.#setZones(this.#zones().filter((other) => other !== zone));
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
    const isMember = this.#zones().some((zone) => zone.statefulSet === statefulSet);
    if (removed !== undefined && !isMember) this.#setZones([...this.#zones(), removed].sort((a, b) => this.#placeOf(a) - this.#placeOf(b)));
    this.#removedZones.delete(statefulSet);
    const labels = this.#removedLabels.get(statefulSet);
    this.#removedLabels.delete(statefulSet);
    if (labels !== undefined) this.#change(statefulSet, { labels });
  }

  /** Sets the labels and annotations of the StatefulSet to the current state, also after it was recreated from an earlier manifest. */
  apply(statefulSet: string): void {
    const removed = Object.keys(this.#removedLabels.get(statefulSet) ?? {});
    if (removed.length > 0) this.#change(statefulSet, { labels: Object.fromEntries(removed.map((key) => [key, null])) });
    const hasMark = this.#metadata(statefulSet)?.annotations?.[pausedAnnotation] !== undefined;
    const isMarked = this.#isPaused && this.#isByLabels();
    if (isMarked !== hasMark) this.#change(statefulSet, { annotations: { [pausedAnnotation]: isMarked ? 'true' : null } });
  }

  pause(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    if (this.#isByLabels()) for (const name of this.#options.statefulSets) this.apply(name);
    else
      this.#options.server.create(this.#options.actor, intentResource, {
        apiVersion: 'rollout-group.dev/v1alpha1',
        kind: 'RolloutIntent',
        metadata: { name: this.#intent, namespace: this.#options.namespace },
        spec: { group: this.#options.group, action: 'pause', reason: 'an incident' },
      });
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    if (this.#options.server.get(intentResource, this.#options.namespace, this.#intent) !== undefined)
      this.#options.server.remove(this.#options.actor, {
        resource: intentResource,
        namespace: this.#options.namespace,
        name: this.#intent,
      });
    else for (const name of this.#options.statefulSets) this.apply(name);
  }

  #object(): ModelObject | undefined {
    return this.#options.server.get(groupResource, this.#options.namespace, this.#options.group);
  }

  #metadata(statefulSet: string): ModelObject['metadata'] | undefined {
    return this.#options.server.get(statefulSetResource, this.#options.namespace, statefulSet)?.metadata;
  }

  #zones(): readonly Zone[] {
    return listAt(this.#object(), 'spec', 'members', 'zones') as readonly Zone[];
  }

  #setZones(next: readonly Zone[]): void {
    const { server, actor, namespace, group } = this.#options;
    server.change(actor, { resource: groupResource, namespace, name: group }, { spec: { members: { zones: next } } });
  }

  #placeOf(zone: Zone): number {
    return this.#options.statefulSets.indexOf(zone.statefulSet);
  }

  #change(statefulSet: string, metadata: Json): void {
    const { server, actor, namespace } = this.#options;
    server.change(actor, { resource: statefulSetResource, namespace, name: statefulSet }, { metadata });
  }

  #isByLabels(): boolean {
    return (
      this.#object() === undefined && this.#options.statefulSets.some((name) => this.#metadata(name)?.labels?.[groupLabel] !== undefined)
    );
  }
}
