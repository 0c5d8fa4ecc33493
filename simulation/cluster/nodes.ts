// Models the nodes: one or two per zone, the assignment of pods, and what happens to pods if a node is lost or drained.
import { between, oneOf, type Random, streamOf, wholeBetween } from '../random.ts';
import type { Scheduler } from '../scheduler.ts';
import type { Actor, Commit, ModelObject } from '../server/request.ts';
import type { ClusterApi } from './api.ts';
import { type Condition, instantText, type PodStatus, podFacts } from './workload.ts';

interface NodesOptions {
  readonly server: ClusterApi;
  readonly scheduler: Scheduler;
  readonly wallMs: () => number;
  readonly seed: number;
  /** The letters of the zones. */
  readonly zones: readonly string[];
  /** Returns the zone of a pod by its name; the first one if unknown. */
  readonly zoneOf: (pod: string) => string;
  readonly isBack: (node: string) => void;
}

export interface Nodes {
  readonly hear: (commit: Commit) => void;
  /** Returns the node for a further pod of the zone, given those assigned. */
  readonly placeFor: (zone: string, taken: readonly string[]) => string | undefined;
  /** Returns whether the node is cut off. */
  readonly isLost: (node: string) => boolean;
  /** Cuts off a node of the zone until the returned function is called. */
  readonly lose: (zone: string) => () => void;
  /** Evicts the pods of a node one after the other, then makes it schedulable again. */
  readonly drain: (zone: string) => string;
  /** Ends all drains. */
  readonly uncordon: () => void;
}

const schedulerActor: Actor = { user: 'system:kube-scheduler' };
const controllerActor: Actor = { user: 'system:serviceaccount:kube-system:node-controller' };
const drainActor: Actor = { user: 'kubernetes-admin' };

/** Delay until pods on a lost node are deleted (kubernetes.io, Taints and Tolerations, taint based evictions). */
const evictedAfterMs = 300_000;
/** Delay after which kubectl drain repeats a refused eviction. */
const retryEvictionMs = 5000;
/** Time until a drained node is replaced under its name. */
const maintenanceMs = 20_000;

/** Creates the nodes. */
export function startNodes({ server, scheduler, wallMs, seed, zones, zoneOf, isBack }: NodesOptions): Nodes {
  const random: Random = streamOf(seed, 'nodes');
  const nodesOfZone = new Map<string, readonly string[]>();
  const lost = new Map<string, number>();
  const drains = new Map<string, () => void>();
  const waiting = new Map<string, string>();

  for (const zone of zones) {
    const count = wholeBetween(streamOf(seed, `nodes of ${zone}`), 1, 3);
    const names = Array.from({ length: count }, (_, index) => `node-${zone}-${index + 1}`);
    nodesOfZone.set(zone, names);
    for (const name of names) createNode(server, { name, zone, wallMs: wallMs() });
  }

  const mayPlace = (name: string): boolean => {
    const node = server.get('nodes', '', name);
    return node !== undefined && isNodeReady(node) && (node['spec'] as { unschedulable?: boolean } | undefined)?.unschedulable !== true;
  };
  /** Returns the schedulable node with the fewest pods. */
  const placeFor = (zone: string, taken: readonly string[]): string | undefined => {
    const names = (nodesOfZone.get(zone) ?? nodesOfZone.get(zones[0] ?? '') ?? []).filter(mayPlace);
    const count = (name: string): number => taken.filter((node) => node === name).length;
    return names.reduce<string | undefined>((best, name) => (best === undefined || count(name) < count(best) ? name : best), undefined);
  };
  const bind = (uid: string, namespace: string, name: string): void => {
    const pod = server.get('pods', namespace, name);
    if (pod?.metadata.uid !== uid || podFacts(pod).node !== '') return;
    const taken = server.list('pods').map((other) => podFacts(other).node);
    const nodeName = placeFor(zoneOf(name), taken);
    if (nodeName === undefined) {
      waiting.set(uid, `${namespace}/${name}`);
      return;
    }
    waiting.delete(uid);
    server.change(schedulerActor, 'pods', namespace, name, { spec: { nodeName } }, 'binding');
  };
  const bindWaiting = (): void => {
    for (const [uid, key] of [...waiting]) {
      const [namespace = '', name = ''] = key.split('/');
      waiting.delete(uid);
      scheduler.after(between(random, 10, 300), () => bind(uid, namespace, name));
    }
  };

  const someNode = (zone: string): string => oneOf(random, nodesOfZone.get(zone) ?? ['']);
  const setNodeReady = (name: string, status: 'True' | 'Unknown'): void => {
    const at = instantText(wallMs());
    const reason = status === 'True' ? 'KubeletReady' : 'NodeStatusUnknown';
    const conditions = [{ type: 'Ready', status, reason, lastHeartbeatTime: at, lastTransitionTime: at }];
    server.change(controllerActor, 'nodes', '', name, { status: { conditions } }, 'status');
  };
  const podsOn = (name: string): readonly ModelObject[] => server.list('pods').filter((pod) => podFacts(pod).node === name);
  const markUnready = (name: string): void => {
    for (const pod of podsOn(name)) {
      const { namespace, name: podName, isReady } = podFacts(pod);
      if (!isReady) continue;
      const conditions = unready(pod, instantText(wallMs()));
      server.change(controllerActor, 'pods', namespace, podName, { status: { conditions } }, 'status');
    }
  };
  const lose = (zone: string): (() => void) => {
    const name = someNode(zone);
    const life = (lost.get(name) ?? 0) + 1;
    lost.set(name, life);
    let isOver = false;
    const isStill = (): boolean => !isOver;
    // The node controller waits 40 s in most clusters, and less in some.
    scheduler.after(between(random, 10_000, 50_000), () => {
      if (!isStill()) return;
      setNodeReady(name, 'Unknown');
      markUnready(name);
      scheduler.after(evictedAfterMs, () => {
        if (isStill()) for (const pod of podsOn(name)) server.terminate(controllerActor, podFacts(pod).namespace, podFacts(pod).name);
      });
    });
    return () => {
      if (isOver) return;
      isOver = true;
      const left = (lost.get(name) ?? 1) - 1;
      if (left > 0) {
        lost.set(name, left);
        return;
      }
      lost.delete(name);
      if (!isNodeReady(server.get('nodes', '', name))) setNodeReady(name, 'True');
      isBack(name);
      bindWaiting();
    };
  };

  const cordon = (name: string, isUnschedulable: boolean): void => {
    server.change(drainActor, 'nodes', '', name, { spec: { unschedulable: isUnschedulable ? true : null } });
    if (!isUnschedulable) bindWaiting();
  };
  /** Before the last node of a zone is drained, another one is added. */
  const addNode = (zone: string): void => {
    const names = nodesOfZone.get(zone) ?? [];
    const name = `node-${zone}-${names.length + 1}`;
    createNode(server, { name, zone, wallMs: wallMs() });
    nodesOfZone.set(zone, [...names, name]);
    bindWaiting();
  };
  const drain = (zone: string): string => {
    const name = someNode(zone);
    if (drains.has(name)) return name;
    cordon(name, true);
    if (placeFor(zone, []) === undefined) addNode(zone);
    let isOver = false;
    drains.set(name, () => {
      isOver = true;
      drains.delete(name);
      cordon(name, false);
    });
    const step = (): void => {
      if (isOver) return;
      const [pod] = podsOn(name);
      if (pod === undefined) {
        scheduler.after(maintenanceMs, () => {
          if (!isOver) drains.get(name)?.();
        });
        return;
      }
      const { namespace, name: podName, isTerminating } = podFacts(pod);
      const status = isTerminating ? 201 : server.evict(drainActor, namespace, podName);
      scheduler.after(status === 429 ? retryEvictionMs : between(random, 500, 1500), step);
    };
    step();
    return name;
  };

  return {
    hear: ({ resource, type, after }) => {
      if (resource !== 'pods' || type !== 'ADDED' || podFacts(after).node !== '') return;
      const { uid, namespace, name } = podFacts(after);
      scheduler.after(between(random, 5, 100), () => bind(uid, namespace, name));
    },
    placeFor,
    isLost: (node) => lost.has(node),
    lose,
    drain,
    uncordon: () => {
      for (const end of [...drains.values()]) end();
    },
  };
}

function createNode(server: ClusterApi, { name, zone, wallMs }: { readonly name: string; readonly zone: string; readonly wallMs: number }) {
  const at = instantText(wallMs - 7_200_000);
  const labels = { 'kubernetes.io/hostname': name, 'topology.kubernetes.io/zone': `zone-${zone}` };
  const actor: Actor = { user: `system:node:${name}` };
  server.create(actor, 'nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name, labels }, spec: {} });
  const conditions = [{ type: 'Ready', status: 'True', reason: 'KubeletReady', lastHeartbeatTime: at, lastTransitionTime: at }];
  server.change(actor, 'nodes', '', name, { status: { conditions } }, 'status');
}

function isNodeReady(node: ModelObject | undefined): boolean {
  const { conditions = [] } = (node?.['status'] ?? {}) as { readonly conditions?: readonly Condition[] };
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
}

/** Returns the pod conditions with Ready false, as the node controller writes them: it does not change ContainersReady. */
function unready(pod: ModelObject, at: string): readonly Condition[] {
  const { conditions = [] } = (pod['status'] ?? {}) as PodStatus;
  return conditions.map((condition) =>
    condition.type === 'Ready' ? { ...condition, status: 'False', lastTransitionTime: at, reason: 'NodeNotReady' } : condition,
  );
}
