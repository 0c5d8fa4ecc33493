// A model server with the models around it, without agents: what tests make happen there, and what they look at.
import { generated } from '../../../scripts/soak/generated.ts';
import type { Admit } from '../../../simulation/cluster/admitted.ts';
import { type ClusterModel, startCluster } from '../../../simulation/cluster/cluster.ts';
import { type PodFacts, podFacts, type StatefulSetStatus, specOf, statusOf } from '../../../simulation/cluster/workload.ts';
import { runStartMs } from '../../../simulation/process/clock.ts';
import type { GivenGroup, GroupShape } from '../../../simulation/scenario.ts';
import { createScheduler } from '../../../simulation/scheduler.ts';
import { projectKinds, type ServedKind } from '../../../simulation/server/kinds.ts';
import type { Commit, ModelObject } from '../../../simulation/server/request.ts';
import { ModelServer } from '../../../simulation/server/server.ts';

export const defaultShape: GroupShape = {
  kind: 'native',
  zones: 3,
  podsPerZone: 3,
  maxUnavailable: 1,
  minReadySeconds: 0,
  podManagementPolicy: 'Parallel',
  rotateBy: 'delete',
  replicas: 'own',
  delaySeconds: 0,
  betweenZonesSeconds: 0,
  drainMs: 3000,
  startMs: 4000,
};

export interface World {
  readonly cluster: ClusterModel;
  readonly server: ModelServer;
  readonly commits: readonly Commit[];
  readonly told: readonly string[];
  readonly nowMs: () => number;
  readonly eventCount: () => number;
  /** Lets time pass, in milliseconds. */
  readonly run: (ms: number) => Promise<void>;
  /** Lets time pass until it is so; fails after ten minutes. */
  readonly until: (isSo: () => boolean) => Promise<void>;
  /** A pod of the zone; fails when there is none. */
  readonly pod: (zone: string, ordinal: number) => PodFacts;
  readonly pods: (zone: string) => readonly PodFacts[];
  readonly set: (zone: string) => ModelObject;
  readonly status: (zone: string) => StatefulSetStatus;
  readonly image: (zone: string) => string | undefined;
  /** Pods of the zone that are ready and stay. */
  readonly readyCount: (zone: string) => number;
}

export function newWorld(
  shape: Partial<GroupShape> = {},
  seed = 1,
  given?: GivenGroup,
  { kinds = projectKinds, ask }: { readonly kinds?: readonly ServedKind[]; readonly ask?: Admit } = {},
): World {
  const scheduler = createScheduler(seed);
  const wallMs = (): number => runStartMs + scheduler.nowMs();
  const server = new ModelServer({ scheduler, wallMs, seed, kinds });
  const group = { ...defaultShape, ...shape };
  const times = { safetyMs: 600_000, healingMs: 600_000, events: [], rates: {}, faults: [] };
  const scenario = { seed, group, agents: 1, ...times, ...(given === undefined ? {} : { given }) };
  const told: string[] = [];
  const cluster = startCluster({
    server,
    scheduler,
    wallMs,
    scenario,
    ...(ask === undefined ? {} : { admission: { ask, setDelay: () => undefined } }),
    generated,
    report: (who, what) => void told.push(`${who}: ${what}`),
  });
  const commits: Commit[] = [];
  server.observe({ committed: (commit) => void commits.push(commit) });
  const name = (zone: string): string => cluster.statefulSets[zone.charCodeAt(0) - 97] ?? '';
  const pods = (zone: string): readonly PodFacts[] =>
    server
      .list('pods', cluster.namespace)
      .map(podFacts)
      .filter((pod) => pod.name.startsWith(`${name(zone)}-`));
  const set = (zone: string): ModelObject => {
    const found = server.get('statefulsets.apps', cluster.namespace, name(zone));
    if (found === undefined) throw new Error(`${name(zone)} is not there`);
    return found;
  };
  const run = (ms: number): Promise<void> => scheduler.runUntil(scheduler.nowMs() + ms);
  return {
    cluster,
    server,
    commits,
    told,
    run,
    pods,
    set,
    nowMs: scheduler.nowMs,
    eventCount: scheduler.eventCount,
    until: async (isSo) => {
      const endMs = scheduler.nowMs() + 600_000;
      while (!isSo()) {
        if (scheduler.nowMs() >= endMs) throw new Error('it did not become so within ten minutes');
        await run(100);
      }
    },
    pod: (zone, ordinal) => {
      const found = pods(zone).find((pod) => pod.ordinal === ordinal);
      if (found === undefined) throw new Error(`${name(zone)}-${ordinal} is not there`);
      return found;
    },
    status: (zone) => statusOf(set(zone)),
    image: (zone) => specOf(set(zone)).template?.spec?.containers?.[0]?.image,
    readyCount: (zone) => pods(zone).filter((pod) => pod.isReady && !pod.isTerminating).length,
  };
}

/** The conditions of a pod, as `type=status`. */
export function conditionsOf(pod: ModelObject | undefined): readonly string[] {
  const { conditions = [] } = (pod?.['status'] ?? {}) as {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
  return conditions.map(({ type, status }) => `${type}=${status}`);
}

/** What the containers of a pod do. */
export function containerStateOf(pod: ModelObject | undefined): string {
  const { containerStatuses = [] } = (pod?.['status'] ?? {}) as {
    readonly containerStatuses?: readonly { readonly state: Readonly<Record<string, { readonly reason?: string }>> }[];
  };
  return containerStatuses.flatMap(({ state }) => Object.entries(state).map(([kind, { reason }]) => reason ?? kind)).join(' ');
}
