// Models the nodes of each zone: assigns pods to nodes, and evicts or deletes pods if a node is drained or lost.
import { secondText } from '../../policies/instant.ts';
import { field, readyCondition } from '../objects.ts';
import { between, oneOf, type Random, streamOf, wholeBetween } from '../random.ts';
import type { Actor, Commit, ModelObject } from '../server/request.ts';
import { type Admit, evictionOf } from './admitted.ts';
import { type Condition, type PodStatus, podFacts } from './workload.ts';
import type { World } from './world.ts';

export interface NodesOptions extends World {
  readonly zones: readonly string[];
  /** Returns the zone of a pod by its name; the first zone if unknown. */
  readonly zoneOf: (pod: string) => string;
  readonly isBack: (node: string) => void;
  readonly admit: Admit;
  /** Default: a random number from 1 to 3. */
  readonly nodesPerZone?: number;
  /** Default: 300,000. */
  readonly evictedAfterMs?: number;
}

const schedulerActor: Actor = { user: 'system:kube-scheduler' };
const controllerActor: Actor = { user: 'system:serviceaccount:kube-system:node-controller' };
const drainActor: Actor = { user: 'kubernetes-admin' };

/** The time until pods on a node with unknown readiness are deleted (kubernetes.io, Taints and Tolerations, taint based evictions). */
const usualEvictedAfterMs = 300_000;
/** The pause after which `kubectl drain` repeats a denied eviction. */
const retryEvictionMs = 5000;
/** The time until a drained node is schedulable again. */
const maintenanceMs = 20_000;

export class Nodes {
  readonly #options: NodesOptions;
  readonly #random: Random;
  readonly #nodesOfZone = new Map<string, readonly string[]>();
  readonly #lost = new Map<string, number>();
  readonly #drains = new Map<string, () => void>();
  readonly #waiting = new Map<string, string>();

  constructor(options: NodesOptions) {
    this.#options = options;
    this.#random = streamOf(options.seed, 'nodes');
    for (const zone of options.zones) {
      const count = options.nodesPerZone ?? wholeBetween(streamOf(options.seed, `nodes of ${zone}`), 1, 3);
      const names = Array.from({ length: count }, (_, index) => `node-${zone}-${index + 1}`);
      this.#nodesOfZone.set(zone, names);
      for (const name of names) this.#createNode(name, zone);
    }
  }

  /** Returns the schedulable node of the zone with the fewest pods. */
  placeFor(zone: string, taken: readonly string[]): string | undefined {
    const names = (this.#nodesOfZone.get(zone) ?? this.#nodesOfZone.get(this.#options.zones[0] ?? '') ?? []).filter((name) =>
      this.#mayPlace(name),
    );
    const count = (name: string): number => taken.filter((node) => node === name).length;
    return names.reduce<string | undefined>((best, name) => (best === undefined || count(name) < count(best) ? name : best), undefined);
  }

  /** Disconnects a node of the zone until the returned function is called. */
  lose(zone: string): () => void {
    const name = this.#someNode(zone);
    const life = (this.#lost.get(name) ?? 0) + 1;
    this.#lost.set(name, life);
    let isOver = false;
    // The node controller marks a lost node after 40 s or 50 s by default, depending on the version, and earlier in some clusters.
    this.#options.scheduler.after(between(this.#random, 10_000, 50_000), () => {
      if (isOver) return;
      this.#setNodeReady(name, 'Unknown');
      this.#markUnready(name);
      this.#options.scheduler.after(this.#options.evictedAfterMs ?? usualEvictedAfterMs, () => {
        if (!isOver) this.#evictAll(name);
      });
    });
    return () => {
      isOver = true;
      const left = (this.#lost.get(name) ?? 1) - 1;
      if (left > 0) {
        this.#lost.set(name, left);
        return;
      }
      this.#lost.delete(name);
      if (!readyCondition(this.#options.server.get('nodes', '', name)).isTrue) this.#setNodeReady(name, 'True');
      this.#options.isBack(name);
      this.#bindWaiting();
    };
  }

  /** Evicts the pods of a node one after the other, then makes it schedulable again. */
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
        this.#options.scheduler.after(maintenanceMs, () => {
          if (!isOver) this.#drains.get(name)?.();
        });
        return;
      }
      const { namespace, name: podName, isTerminating } = podFacts(pod);
      const next = (isRetry: boolean): void =>
        void this.#options.scheduler.after(isRetry ? retryEvictionMs : between(this.#random, 500, 1500), step);
      if (isTerminating) {
        next(false);
        return;
      }
      this.#options.admit(evictionOf({ namespace, name: podName, uid: pod.metadata.uid }, drainActor), (verdict) =>
        next(!verdict.isAllowed || this.#options.server.evict(verdict.actor, namespace, podName) === 429),
      );
    };
    step();
    return name;
  }

  hear({ resource, type, after }: Commit): void {
    if (resource !== 'pods' || type !== 'ADDED' || podFacts(after).node !== '') return;
    const { uid, namespace, name } = podFacts(after);
    this.#options.scheduler.after(between(this.#random, 5, 100), () => this.#bind(uid, namespace, name));
  }

  isLost(node: string): boolean {
    return this.#lost.has(node);
  }

  uncordon(): void {
    for (const end of [...this.#drains.values()]) end();
  }

  #mayPlace(name: string): boolean {
    const node = this.#options.server.get('nodes', '', name);
    return readyCondition(node).isTrue && field(node, 'spec', 'unschedulable') !== true;
  }

  #bind(uid: string, namespace: string, name: string): void {
    const pod = this.#options.server.get('pods', namespace, name);
    if (pod?.metadata.uid !== uid || podFacts(pod).node !== '') return;
    const taken = this.#options.server.list('pods').map((other) => podFacts(other).node);
    const nodeName = this.placeFor(this.#options.zoneOf(name), taken);
    if (nodeName === undefined) {
      this.#waiting.set(uid, `${namespace}/${name}`);
      return;
    }
    this.#waiting.delete(uid);
    this.#options.server.change(schedulerActor, { resource: 'pods', namespace, name }, { spec: { nodeName } }, 'binding');
  }

  #bindWaiting(): void {
    for (const [uid, key] of [...this.#waiting]) {
      const [namespace = '', name = ''] = key.split('/');
      this.#waiting.delete(uid);
      this.#options.scheduler.after(between(this.#random, 10, 300), () => this.#bind(uid, namespace, name));
    }
  }

  #someNode(zone: string): string {
    return oneOf(this.#random, this.#nodesOfZone.get(zone) ?? ['']);
  }

  #setNodeReady(name: string, status: 'True' | 'Unknown'): void {
    const at = secondText(this.#options.wallMs());
    const reason = status === 'True' ? 'KubeletReady' : 'NodeStatusUnknown';
    const conditions = [{ type: 'Ready', status, reason, lastHeartbeatTime: at, lastTransitionTime: at }];
    this.#options.server.change(controllerActor, { resource: 'nodes', namespace: '', name }, { status: { conditions } }, 'status');
  }

  #podsOn(name: string): readonly ModelObject[] {
    return this.#options.server.list('pods').filter((pod) => podFacts(pod).node === name);
  }

  #markUnready(name: string): void {
    for (const pod of this.#podsOn(name)) {
      const { namespace, name: podName, isReady } = podFacts(pod);
      if (!isReady) continue;
      const conditions = unready(pod, secondText(this.#options.wallMs()));
      this.#options.server.change(controllerActor, { resource: 'pods', namespace, name: podName }, { status: { conditions } }, 'status');
    }
  }

  /** Deletes the pods of a node, as the taint eviction controller does. */
  #evictAll(name: string): void {
    for (const pod of this.#podsOn(name)) {
      const { namespace, name: podName } = podFacts(pod);
      const conditions = disrupted(pod, secondText(this.#options.wallMs()));
      this.#options.server.change(controllerActor, { resource: 'pods', namespace, name: podName }, { status: { conditions } }, 'status');
      this.#options.server.terminate(controllerActor, namespace, podName);
    }
  }

  #cordon(name: string, isUnschedulable: boolean): void {
    this.#options.server.change(
      drainActor,
      { resource: 'nodes', namespace: '', name },
      { spec: { unschedulable: isUnschedulable ? true : null } },
    );
    if (!isUnschedulable) this.#bindWaiting();
  }

  /** Adds a node to the zone, because its last schedulable node is drained. */
  #addNode(zone: string): void {
    const names = this.#nodesOfZone.get(zone) ?? [];
    const name = `node-${zone}-${names.length + 1}`;
    this.#createNode(name, zone);
    this.#nodesOfZone.set(zone, [...names, name]);
    this.#bindWaiting();
  }

  #createNode(name: string, zone: string): void {
    const { server, wallMs } = this.#options;
    const at = secondText(wallMs() - 7_200_000);
    const labels = { 'kubernetes.io/hostname': name, 'topology.kubernetes.io/zone': `zone-${zone}` };
    const actor: Actor = { user: `system:node:${name}` };
    server.create(actor, 'nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name, labels }, spec: {} });
    const conditions = [{ type: 'Ready', status: 'True', reason: 'KubeletReady', lastHeartbeatTime: at, lastTransitionTime: at }];
    server.change(actor, { resource: 'nodes', namespace: '', name }, { status: { conditions } }, 'status');
  }
}

/** Returns the pod conditions with Ready false, as the node controller writes them: it changes neither ContainersReady nor the reason. */
function unready(pod: ModelObject, at: string): readonly Condition[] {
  return conditionsOf(pod).map((condition) =>
    condition.type === 'Ready' ? { ...condition, status: 'False', lastTransitionTime: at } : condition,
  );
}

/** Returns the pod conditions with DisruptionTarget. */
function disrupted(pod: ModelObject, at: string): readonly Condition[] {
  const target = { type: 'DisruptionTarget', status: 'True', lastTransitionTime: at, reason: 'DeletionByTaintManager' };
  return [...conditionsOf(pod).filter(({ type }) => type !== target.type), target];
}

function conditionsOf(pod: ModelObject): readonly Condition[] {
  return ((pod['status'] ?? {}) as PodStatus).conditions ?? [];
}
