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
export function startNodes(options: NodesOptions): Nodes {
  const nodes = new ClusterNodes(options);
  return {
    hear: (given) => nodes.hear(given),
    placeFor: (zone, taken) => nodes.placeFor(zone, taken),
    isLost: (node) => nodes.isLost(node),
    lose: (zone) => nodes.lose(zone),
    drain: (zone) => nodes.drain(zone),
    uncordon: () => nodes.uncordon(),
  };
}

/** Owns the nodes of each zone: binds pods to them, loses them and drains them. */
class ClusterNodes {
  readonly #server: NodesOptions['server'];
  readonly #scheduler: NodesOptions['scheduler'];
  readonly #wallMs: NodesOptions['wallMs'];
  readonly #seed: NodesOptions['seed'];
  readonly #zones: NodesOptions['zones'];
  readonly #zoneOf: NodesOptions['zoneOf'];
  readonly #isBack: NodesOptions['isBack'];
  readonly #random: Random;
  readonly #nodesOfZone = new Map<string, readonly string[]>();
  readonly #lost = new Map<string, number>();
  readonly #drains = new Map<string, () => void>();
  readonly #waiting = new Map<string, string>();

  constructor({ server, scheduler, wallMs, seed, zones, zoneOf, isBack }: NodesOptions) {
    this.#server = server;
    this.#scheduler = scheduler;
    this.#wallMs = wallMs;
    this.#seed = seed;
    this.#zones = zones;
    this.#zoneOf = zoneOf;
    this.#isBack = isBack;
    this.#random = streamOf(this.#seed, 'nodes');
    for (const zone of this.#zones) {
      const count = wholeBetween(streamOf(this.#seed, `nodes of ${zone}`), 1, 3);
      const names = Array.from({ length: count }, (_, index) => `node-${zone}-${index + 1}`);
      this.#nodesOfZone.set(zone, names);
      for (const name of names) createNode(this.#server, { name, zone, wallMs: this.#wallMs() });
    }
  }

  /** Returns the schedulable node with the fewest pods. */
  placeFor(zone: string, taken: readonly string[]): string | undefined {
    const names = (this.#nodesOfZone.get(zone) ?? this.#nodesOfZone.get(this.#zones[0] ?? '') ?? []).filter((name) => this.#mayPlace(name));
    const count = (name: string): number => taken.filter((node) => node === name).length;
    return names.reduce<string | undefined>((best, name) => (best === undefined || count(name) < count(best) ? name : best), undefined);
  }

  lose(zone: string): () => void {
    const name = this.#someNode(zone);
    const life = (this.#lost.get(name) ?? 0) + 1;
    this.#lost.set(name, life);
    let isOver = false;
    const isStill = (): boolean => !isOver;
    // The node controller waits 40 s in most clusters, and less in some.
    this.#scheduler.after(between(this.#random, 10_000, 50_000), () => {
      if (!isStill()) return;
      this.#setNodeReady(name, 'Unknown');
      this.#markUnready(name);
      this.#scheduler.after(evictedAfterMs, () => {
        if (isStill())
          for (const pod of this.#podsOn(name)) this.#server.terminate(controllerActor, podFacts(pod).namespace, podFacts(pod).name);
      });
    });
    return () => {
      if (isOver) return;
      isOver = true;
      const left = (this.#lost.get(name) ?? 1) - 1;
      if (left > 0) {
        this.#lost.set(name, left);
        return;
      }
      this.#lost.delete(name);
      if (!isNodeReady(this.#server.get('nodes', '', name))) this.#setNodeReady(name, 'True');
      this.#isBack(name);
      this.#bindWaiting();
    };
  }

  drain(zone: string): string {
    const name = this.#someNode(zone);
    if (this.#drains.has(name)) return name;
    this.#cordon(name, true);
    if (this.placeFor(zone, []) === undefined) this.#addNode(zone);
    let isOver = false;
    this.#drains.set(name, () => {
      isOver = true;
      this.#drains.delete(name);
      this.#cordon(name, false);
    });
    const step = (): void => {
      if (isOver) return;
      const [pod] = this.#podsOn(name);
      if (pod === undefined) {
        this.#scheduler.after(maintenanceMs, () => {
          if (!isOver) this.#drains.get(name)?.();
        });
        return;
      }
      const { namespace, name: podName, isTerminating } = podFacts(pod);
      const status = isTerminating ? 201 : this.#server.evict(drainActor, namespace, podName);
      this.#scheduler.after(status === 429 ? retryEvictionMs : between(this.#random, 500, 1500), step);
    };
    step();
    return name;
  }

  hear({ resource, type, after }: Commit): void {
    if (resource !== 'pods' || type !== 'ADDED' || podFacts(after).node !== '') return;
    const { uid, namespace, name } = podFacts(after);
    this.#scheduler.after(between(this.#random, 5, 100), () => this.#bind(uid, namespace, name));
  }

  isLost(node: string): boolean {
    return this.#lost.has(node);
  }

  uncordon(): void {
    for (const end of [...this.#drains.values()]) end();
  }

  #mayPlace(name: string): boolean {
    const node = this.#server.get('nodes', '', name);
    return node !== undefined && isNodeReady(node) && (node['spec'] as { unschedulable?: boolean } | undefined)?.unschedulable !== true;
  }

  #bind(uid: string, namespace: string, name: string): void {
    const pod = this.#server.get('pods', namespace, name);
    if (pod?.metadata.uid !== uid || podFacts(pod).node !== '') return;
    const taken = this.#server.list('pods').map((other) => podFacts(other).node);
    const nodeName = this.placeFor(this.#zoneOf(name), taken);
    if (nodeName === undefined) {
      this.#waiting.set(uid, `${namespace}/${name}`);
      return;
    }
    this.#waiting.delete(uid);
    this.#server.change(schedulerActor, 'pods', namespace, name, { spec: { nodeName } }, 'binding');
  }

  #bindWaiting(): void {
    for (const [uid, key] of [...this.#waiting]) {
      const [namespace = '', name = ''] = key.split('/');
      this.#waiting.delete(uid);
      this.#scheduler.after(between(this.#random, 10, 300), () => this.#bind(uid, namespace, name));
    }
  }

  #someNode(zone: string): string {
    return oneOf(this.#random, this.#nodesOfZone.get(zone) ?? ['']);
  }

  #setNodeReady(name: string, status: 'True' | 'Unknown'): void {
    const at = instantText(this.#wallMs());
    const reason = status === 'True' ? 'KubeletReady' : 'NodeStatusUnknown';
    const conditions = [{ type: 'Ready', status, reason, lastHeartbeatTime: at, lastTransitionTime: at }];
    this.#server.change(controllerActor, 'nodes', '', name, { status: { conditions } }, 'status');
  }

  #podsOn(name: string): readonly ModelObject[] {
    return this.#server.list('pods').filter((pod) => podFacts(pod).node === name);
  }

  #markUnready(name: string): void {
    for (const pod of this.#podsOn(name)) {
      const { namespace, name: podName, isReady } = podFacts(pod);
      if (!isReady) continue;
      const conditions = unready(pod, instantText(this.#wallMs()));
      this.#server.change(controllerActor, 'pods', namespace, podName, { status: { conditions } }, 'status');
    }
  }

  #cordon(name: string, isUnschedulable: boolean): void {
    this.#server.change(drainActor, 'nodes', '', name, { spec: { unschedulable: isUnschedulable ? true : null } });
    if (!isUnschedulable) this.#bindWaiting();
  }

  /** Before the last node of a zone is drained, another one is added. */
  #addNode(zone: string): void {
    const names = this.#nodesOfZone.get(zone) ?? [];
    const name = `node-${zone}-${names.length + 1}`;
    createNode(this.#server, { name, zone, wallMs: this.#wallMs() });
    this.#nodesOfZone.set(zone, [...names, name]);
    this.#bindWaiting();
  }
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
