// Models the kubelets: pods start, become ready, fail, restart, drain and end, each in several small status writes.

import { secondText } from '../../policies/instant.ts';
import { between, type Random, streamOf } from '../random.ts';
import type { Commit, ModelObject } from '../server/request.ts';
import { type Container, type PodStatus, podFacts } from './workload.ts';
import type { World } from './world.ts';

interface KubeletOptions extends World {
  /** The approximate times in milliseconds until a created pod is ready, and until a deleted pod is gone. */
  readonly startMs: number;
  readonly drainMs: number;
  /** True if containers with a broken image run without becoming ready, instead of crashing. */
  readonly hangs?: boolean;
  readonly isNodeLost: (node: string) => boolean;
  /** Called when an accident ends the container of a pod, or when the pod is removed. */
  readonly restarted: (namespace: string, pod: string) => void;
}

interface Running {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly containers: readonly Container[];
  readonly random: Random;
  phase: 'Pending' | 'Running' | 'Succeeded' | 'Failed';
  container: 'creating' | 'running' | 'backOff' | 'ended';
  node: string;
  isReady: boolean;
  readyChangedMs: number;
  scheduledMs: number;
  /** The wall-clock times of the start and the end of the container. */
  startedMs: number | undefined;
  endedMs: number | undefined;
  restartCount: number;
  address: string | undefined;
  /** True if the container would be ready if no accident failed its probe. */
  isUp: boolean;
  /** The number of accidents that fail the readiness probe now. */
  failures: number;
  /** The number of accidents that keep the pod after its drain now. */
  sticks: number;
  isTerminating: boolean;
  hasDrained: boolean;
  /** A counter that grows when the pod dies or begins to terminate. Transitions that were pending before are then dropped. */
  life: number;
}

const brokenImage = /^broken\//;
/** The back-off of a crashing container, doubled each time (kubernetes.io, Pod Lifecycle, restart policy). */
const backOff = { firstMs: 10_000, maxMs: 300_000 };

/** Runs the pods of all nodes and writes their status. */
export class Kubelets {
  readonly #options: KubeletOptions;
  readonly #pods = new Map<string, Running>();
  readonly #byName = new Map<string, Running>();
  #startFactor = 1;
  #drainFactor = 1;
  #addresses = 0;
  readonly #incarnations = new Map<string, number>();

  constructor(options: KubeletOptions) {
    this.#options = options;
  }

  hear({ resource, type, after }: Commit): void {
    if (resource !== 'pods') return;
    const known = this.#pods.get(after.metadata.uid);
    if (type === 'DELETED') {
      if (known !== undefined) this.#forget(known);
      this.#options.restarted(after.metadata.namespace ?? '', after.metadata.name);
    } else if (known === undefined) {
      const pod = this.#recordOf(after);
      if (pod.node !== '') this.#start(pod);
    } else this.#modified(known, after);
  }

  /** Adopts a pod that has been ready since `sinceMs` (wall clock), and writes its status. */
  adopt(object: ModelObject, sinceMs: number): void {
    const pod = this.#pods.get(object.metadata.uid) ?? this.#recordOf(object);
    pod.life += 1;
    this.#addresses += 1;
    Object.assign(pod, { phase: 'Running', container: 'running', isUp: true, isReady: true, address: `10.0.0.${this.#addresses}` });
    Object.assign(pod, { readyChangedMs: sinceMs, scheduledMs: sinceMs - 60_000, startedMs: sinceMs - 30_000 });
    this.#write(pod);
  }

  /** Fails the readiness probe until the returned function is called, which must be called once. */
  fail(namespace: string, name: string): (() => void) | undefined {
    const pod = this.#named(namespace, name);
    if (pod === undefined) return undefined;
    pod.failures += 1;
    this.#setReady(pod);
    return () => {
      pod.failures -= 1;
      if (this.#pods.get(pod.uid) === pod) this.#setReady(pod);
    };
  }

  /** Ends the container, which then restarts, or the whole pod, which then has the phase Failed. Returns false if the pod does not run. */
  die(namespace: string, name: string): boolean {
    const pod = this.#named(namespace, name);
    if (pod === undefined || pod.isTerminating || pod.phase !== 'Running') return false;
    pod.life += 1;
    this.#options.restarted(pod.namespace, pod.name);
    if (pod.random() < 0.4) {
      this.#end(pod, 'Failed');
      return true;
    }
    this.#breakOff(pod);
    this.#later(pod, between(pod.random, 500, 2000), () => this.#run(pod));
    if (!isBroken(pod)) {
      const durationMs = this.#options.startMs * this.#startFactor * between(pod.random, 0.6, 1.5);
      this.#later(pod, 2000 + durationMs, () => this.#becomeUp(pod));
    }
    return true;
  }

  /** Keeps the pod after its drain until the returned function is called, which must be called once. */
  stick(namespace: string, name: string): (() => void) | undefined {
    const pod = this.#named(namespace, name);
    if (pod === undefined) return undefined;
    pod.sticks += 1;
    return () => {
      pod.sticks -= 1;
      if (this.#pods.get(pod.uid) === pod && pod.hasDrained) this.#drained(pod);
    };
  }

  setPace(start: number, drain: number): void {
    this.#startFactor = start;
    this.#drainFactor = drain;
  }

  /** Writes the status changes that could not be written while the node was lost. */
  nodeIsBack(node: string): void {
    for (const pod of [...this.#pods.values()].filter((candidate) => candidate.node === node)) {
      const object = this.#options.server.get('pods', pod.namespace, pod.name);
      if (object?.metadata.uid !== pod.uid) continue;
      const { isTerminating, graceSeconds, isReady } = podFacts(object);
      if (pod.isReady && !isReady) pod.readyChangedMs = this.#options.wallMs();
      const hasBegun = pod.phase !== 'Pending' || pod.address !== undefined || pod.isTerminating;
      if (hasBegun) this.#write(pod);
      else this.#start(pod);
      if (pod.hasDrained) this.#drained(pod);
      else if (isTerminating) this.#terminate(pod, graceSeconds);
    }
  }

  /** Returns the UID of the pod if its container runs and is reachable. */
  listens(namespace: string, name: string): string | undefined {
    const pod = this.#named(namespace, name);
    return pod !== undefined && pod.container === 'running' && !this.#options.isNodeLost(pod.node) ? pod.uid : undefined;
  }

  isReady(uid: string): boolean {
    return this.#pods.get(uid)?.isReady === true;
  }

  #recordOf(object: ModelObject): Running {
    const { namespace, name, uid, containers, node } = podFacts(object);
    const pod: Running = {
      namespace,
      name,
      uid,
      containers,
      node,
      phase: 'Pending',
      container: 'creating',
      isReady: false,
      readyChangedMs: this.#options.wallMs(),
      scheduledMs: this.#options.wallMs(),
      startedMs: undefined,
      endedMs: undefined,
      restartCount: 0,
      address: undefined,
      isUp: false,
      failures: 0,
      sticks: 0,
      isTerminating: false,
      hasDrained: false,
      life: 0,
      // The random numbers depend on the seed, the name of the pod and its number of predecessors, not on other pods.
      random: streamOf(this.#options.seed, `pod ${namespace}/${name} ${this.#incarnationOf(namespace, name)}`),
    };
    this.#pods.set(uid, pod);
    this.#byName.set(`${namespace}/${name}`, pod);
    return pod;
  }

  #incarnationOf(namespace: string, name: string): number {
    const count = (this.#incarnations.get(`${namespace}/${name}`) ?? 0) + 1;
    this.#incarnations.set(`${namespace}/${name}`, count);
    return count;
  }

  /** Calls back after the delay, unless the pod was removed, died or began to terminate. */
  #later(pod: Running, delayMs: number, callback: () => void): void {
    const { life } = pod;
    this.#options.scheduler.after(delayMs, () => {
      if (this.#pods.get(pod.uid) === pod && pod.life === life) callback();
    });
  }

  #write(pod: Running): void {
    if (this.#options.isNodeLost(pod.node) || this.#options.server.get('pods', pod.namespace, pod.name)?.metadata.uid !== pod.uid) return;
    this.#options.server.change(
      { user: `system:node:${pod.node}` },
      { resource: 'pods', namespace: pod.namespace, name: pod.name },
      { status: podStatus(pod) },
      'status',
    );
  }

  #setReady(pod: Running): void {
    const isReady = pod.isUp && pod.failures === 0;
    if (isReady === pod.isReady) return;
    pod.isReady = isReady;
    pod.readyChangedMs = this.#options.wallMs();
    this.#write(pod);
  }

  #start(pod: Running): void {
    pod.scheduledMs = this.#options.wallMs();
    pod.readyChangedMs = this.#options.wallMs();
    const durationMs = Math.max(200, this.#options.startMs * this.#startFactor * between(pod.random, 0.6, 1.5));
    this.#later(pod, between(pod.random, 5, 80), () => this.#write(pod));
    this.#later(pod, Math.max(90, durationMs * between(pod.random, 0.1, 0.4)), () => {
      this.#addresses += 1;
      pod.address = `10.0.${Math.floor(this.#addresses / 250)}.${(this.#addresses % 250) + 1}`;
      this.#run(pod);
    });
    if (!isBroken(pod)) this.#later(pod, durationMs, () => this.#becomeUp(pod));
  }

  #run(pod: Running): void {
    pod.phase = 'Running';
    pod.container = 'running';
    pod.startedMs = this.#options.wallMs();
    this.#write(pod);
    if (isBroken(pod) && this.#options.hangs !== true) this.#later(pod, between(pod.random, 500, 2000), () => this.#crash(pod));
  }

  #becomeUp(pod: Running): void {
    pod.isUp = true;
    this.#setReady(pod);
  }

  #crash(pod: Running): void {
    pod.container = 'backOff';
    pod.restartCount += 1;
    this.#write(pod);
    this.#later(pod, Math.min(backOff.firstMs * 2 ** (pod.restartCount - 1), backOff.maxMs), () => this.#run(pod));
  }

  #breakOff(pod: Running): void {
    if (pod.isReady) pod.readyChangedMs = this.#options.wallMs();
    pod.isUp = false;
    pod.isReady = false;
    pod.container = 'ended';
    pod.endedMs = this.#options.wallMs();
    pod.restartCount += 1;
    this.#write(pod);
  }

  #terminate(pod: Running, graceSeconds: number): void {
    if (pod.isTerminating) return;
    pod.isTerminating = true;
    pod.life += 1;
    const reactionMs = between(pod.random, 10, 150);
    const drainMs = this.#options.drainMs * this.#drainFactor * between(pod.random, 0.6, 1.5);
    const isRunning = pod.container === 'running' && pod.phase === 'Running';
    const endsMs = reactionMs + (isRunning ? Math.max(100, Math.min(drainMs, graceSeconds * 1000)) : between(pod.random, 50, 300));
    // Some pods become unready during their drain, others at its end.
    const becomesUnready = pod.random() < 0.6;
    if (isRunning && becomesUnready)
      this.#later(pod, reactionMs + between(pod.random, 0, 0.5) * (endsMs - reactionMs), () => {
        pod.isUp = false;
        this.#setReady(pod);
      });
    this.#later(pod, endsMs, () => this.#drained(pod));
  }

  #drained(pod: Running): void {
    pod.hasDrained = true;
    if (pod.sticks > 0 || this.#options.isNodeLost(pod.node)) return;
    this.#end(pod, 'Succeeded');
    this.#later(pod, between(pod.random, 10, 200), () => this.#release(pod));
  }

  #release(pod: Running): void {
    if (this.#options.isNodeLost(pod.node) || this.#options.server.get('pods', pod.namespace, pod.name)?.metadata.uid !== pod.uid) return;
    this.#options.server.remove({ user: `system:node:${pod.node}` }, { resource: 'pods', namespace: pod.namespace, name: pod.name });
  }

  #end(pod: Running, phase: 'Succeeded' | 'Failed'): void {
    const wasReady = pod.isReady;
    pod.isUp = false;
    pod.isReady = false;
    if (wasReady) pod.readyChangedMs = this.#options.wallMs();
    pod.phase = phase;
    pod.container = 'ended';
    pod.endedMs = this.#options.wallMs();
    this.#write(pod);
  }

  #modified(pod: Running, object: ModelObject): void {
    const { node, isTerminating, graceSeconds } = podFacts(object);
    if (pod.node === '' && node !== '') {
      pod.node = node;
      if (!this.#options.isNodeLost(node)) this.#start(pod);
    }
    if (isTerminating && !this.#options.isNodeLost(pod.node)) this.#terminate(pod, graceSeconds);
  }

  #forget(pod: Running): void {
    this.#pods.delete(pod.uid);
    const key = `${pod.namespace}/${pod.name}`;
    if (this.#byName.get(key) === pod) this.#byName.delete(key);
  }

  #named(namespace: string, name: string): Running | undefined {
    return this.#byName.get(`${namespace}/${name}`);
  }
}

function isBroken({ containers }: Running): boolean {
  return containers.some(({ image = '' }) => brokenImage.test(image));
}

function podStatus(pod: Running): PodStatus {
  const { phase, isReady, readyChangedMs, scheduledMs, address, containers } = pod;
  const scheduled = secondText(scheduledMs);
  const changed = secondText(readyChangedMs);
  const reason = phase === 'Succeeded' || phase === 'Failed' ? 'PodCompleted' : 'ContainersNotReady';
  const readiness = isReady
    ? { status: 'True', lastTransitionTime: changed }
    : { status: 'False', lastTransitionTime: changed, reason, message: `containers with unready status: [${names(containers)}]` };
  return {
    phase,
    startTime: scheduled,
    ...(address === undefined ? {} : { podIP: address, podIPs: [{ ip: address }] }),
    conditions: [
      { type: 'PodScheduled', status: 'True', lastTransitionTime: scheduled },
      { type: 'Initialized', status: 'True', lastTransitionTime: scheduled },
      { type: 'ContainersReady', ...readiness },
      { type: 'Ready', ...readiness },
    ],
    containerStatuses: containers.map(({ name, image = '' }) => ({
      name,
      image,
      ready: isReady,
      started: pod.container === 'running',
      restartCount: pod.restartCount,
      state: containerState(pod),
    })),
  };
}

function containerState({ container, startedMs, endedMs }: Running) {
  const startedAt = secondText(startedMs ?? 0);
  switch (container) {
    case 'creating':
      return { waiting: { reason: 'ContainerCreating' } };
    case 'running':
      return { running: { startedAt } };
    case 'backOff':
      return { waiting: { reason: 'CrashLoopBackOff', message: 'back-off restarting failed container' } };
    case 'ended':
      return { terminated: { exitCode: 137, reason: 'Error', startedAt, finishedAt: secondText(endedMs ?? startedMs ?? 0) } };
  }
}

function names(containers: readonly Container[]): string {
  return containers.map(({ name }) => name).join(' ');
}
