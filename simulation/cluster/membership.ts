// Models how a StatefulSet leaves its group and returns, and how the group is paused: by labels and annotations, or by objects.
import type { Actor, Json, ModelObject } from '../server/request.ts';
import type { ClusterApi } from './api.ts';
import { statefulSetResource } from './workload.ts';

interface MembershipOptions {
  readonly server: ClusterApi;
  readonly actor: Actor;
  readonly namespace: string;
  readonly group: string;
  /** In the order of the zones. */
  readonly statefulSets: readonly string[];
}

interface Membership {
  /** Returns whether it could be removed: a group in a file does not change, and the last member stays. */
  readonly leave: (statefulSet: string) => boolean;
  readonly comeBack: (statefulSet: string) => void;
  readonly pause: () => void;
  readonly resume: () => void;
  /** The StatefulSet was recreated from an earlier manifest; updates it to the current state. */
  readonly apply: (statefulSet: string) => void;
}

interface Zone extends Json {
  readonly statefulSet: string;
}

const groupResource = 'rolloutgroups.rollout-group.dev';
const intentResource = 'rolloutintents.rollout-group.dev';
const groupLabel = 'rollout-group';
const pausedAnnotation = 'grafana.com/rollout-paused';

export function createMembership({ server, actor, namespace, group, statefulSets }: MembershipOptions): Membership {
  /** Labels of a StatefulSet before it left. */
  const takenLabels = new Map<string, Readonly<Record<string, string>>>();
  /** The member in the RolloutGroup before it left. */
  const takenZones = new Map<string, Zone>();
  let isPaused = false;

  const object = (): ModelObject | undefined => server.get(groupResource, namespace, group);
  const zones = (): readonly Zone[] => membersOf(object()).zones ?? [];
  const setZones = (next: readonly Zone[]): void => {
    server.change(actor, groupResource, namespace, group, { spec: { members: { zones: next } } });
  };
  const placeOf = (zone: Zone): number => statefulSets.indexOf(zone.statefulSet);
  const change = (statefulSet: string, metadata: Json): void => {
    server.change(actor, statefulSetResource, namespace, statefulSet, { metadata });
  };
  const isByLabels = (): boolean =>
    object() === undefined && statefulSets.some((name) => labelsOf(server, namespace, name)[groupLabel] !== undefined);

  const leave = (statefulSet: string): boolean => {
    const zone = zones().find((candidate) => candidate.statefulSet === statefulSet);
    if (zone !== undefined) {
      if (zones().length === 1) return false;
      takenZones.set(statefulSet, zone);
      setZones(zones().filter((other) => other !== zone));
      return true;
    }
    const selected = Object.keys(membersOf(object()).selector?.matchLabels ?? { [groupLabel]: '' });
    const labels = labelsOf(server, namespace, statefulSet);
    const taken = Object.fromEntries(selected.filter((key) => labels[key] !== undefined).map((key) => [key, labels[key] ?? '']));
    if (Object.keys(taken).length === 0) return false;
    takenLabels.set(statefulSet, taken);
    apply(statefulSet);
    return true;
  };
  const comeBack = (statefulSet: string): void => {
    const taken = takenZones.get(statefulSet);
    const isThere = zones().some((zone) => zone.statefulSet === statefulSet);
    if (taken !== undefined && !isThere) setZones([...zones(), taken].sort((a, b) => placeOf(a) - placeOf(b)));
    takenZones.delete(statefulSet);
    const labels = takenLabels.get(statefulSet);
    takenLabels.delete(statefulSet);
    if (labels !== undefined) change(statefulSet, { labels });
  };
  const apply = (statefulSet: string): void => {
    const taken = Object.keys(takenLabels.get(statefulSet) ?? {});
    if (taken.length > 0) change(statefulSet, { labels: Object.fromEntries(taken.map((key) => [key, null])) });
    const hasMark = annotationsOf(server, namespace, statefulSet)[pausedAnnotation] !== undefined;
    const isMarked = isPaused && isByLabels();
    if (isMarked !== hasMark) change(statefulSet, { annotations: { [pausedAnnotation]: isMarked ? 'true' : null } });
  };

  const intent = `pause-${group}`;
  return {
    leave,
    comeBack,
    pause: () => {
      if (isPaused) return;
      isPaused = true;
      if (isByLabels()) for (const name of statefulSets) apply(name);
      else
        server.create(actor, intentResource, {
          apiVersion: 'rollout-group.dev/v1alpha1',
          kind: 'RolloutIntent',
          metadata: { name: intent, namespace },
          spec: { group, action: 'pause', reason: 'an incident' },
        });
    },
    resume: () => {
      if (!isPaused) return;
      isPaused = false;
      if (server.get(intentResource, namespace, intent) !== undefined) server.remove(actor, intentResource, namespace, intent);
      else for (const name of statefulSets) apply(name);
    },
    apply,
  };
}

function membersOf(object: ModelObject | undefined): {
  readonly zones?: readonly Zone[];
  readonly selector?: { readonly matchLabels?: Readonly<Record<string, string>> };
} {
  return (object?.['spec'] as { readonly members?: object } | undefined)?.members ?? {};
}

function labelsOf(server: ClusterApi, namespace: string, statefulSet: string): Readonly<Record<string, string>> {
  return server.get(statefulSetResource, namespace, statefulSet)?.metadata.labels ?? {};
}

function annotationsOf(server: ClusterApi, namespace: string, statefulSet: string): Readonly<Record<string, string>> {
  return server.get(statefulSetResource, namespace, statefulSet)?.metadata.annotations ?? {};
}
