// Models the kubelets: pods start, become ready, break, restart, drain and leave, each in several small status writes.
import { between, type Random, streamOf } from '../random.ts';
import type { Scheduler } from '../scheduler.ts';
import type { Commit, ModelObject } from '../server/request.ts';
import type { ClusterApi } from './api.ts';
import { type PodCondition, podStatus } from './pod-status.ts';
import { podFacts } from './workload.ts';

interface KubeletOptions {
  readonly server: ClusterApi;
  readonly scheduler: Scheduler;
  readonly wallMs: () => number;
  readonly seed: number;
  /** Approximate time until a pod is ready, and for its drain, in milliseconds. */
  readonly startMs: number;
  readonly drainMs: number;
  /** Returns whether the node is cut off. */
  readonly isNodeLost: (node: string) => boolean;
  /** The container restarted, or the pod is gone. */
  readonly restarted: (namespace: string, pod: string) => void;
}

export interface Kubelets {
  readonly hear: (commit: Commit) => void;
  /** Adopts a pod that has been ready since that wall-clock time, and writes its status. */
  readonly adopt: (pod: ModelObject, sinceMs: number) => void;
  /** Fails the readiness probe until the returned function is called. */
  readonly fail: (namespace: string, pod: string) => (() => void) | undefined;
  /** Ends the container, which is restarted; or the pod, which stays until it is deleted. */
  readonly die: (namespace: string, pod: string) => boolean;
  /** Keeps the pod after its drain until the returned function is called. */
  readonly stick: (namespace: string, pod: string) => (() => void) | undefined;
  readonly setPace: (startFactor: number, drainFactor: number) => void;
  /** Reports what could not be reported while the node was lost. */
  readonly nodeIsBack: (node: string) => void;
  /** Returns the UID of the pod if its container runs and is reachable. */
  readonly listens: (namespace: string, pod: string) => string | undefined;
  /** Like `listens`, for a ready pod. */
  readonly isReady: (uid: string) => boolean;
}

interface Running extends Omit<PodCondition, 'phase'> {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly random: Random;
  phase: PodCondition['phase'];
  container: PodCondition['container'];
  node: string;
  isReady: boolean;
  readyChangedMs: number;
  scheduledMs: number;
  startedMs: number | undefined;
  endedMs: number | undefined;
  restartCount: number;
  address: string | undefined;
  /** True if the container would be ready without failing probes. */
  isUp: boolean;
  failures: number;
  sticks: number;
  isTerminating: boolean;
  hasDrained: boolean;
  /** Pending transitions of an earlier state are dropped. */
  life: number;
}

const brokenImage = /^broken\//;
/** Back-off of a crashing container, doubled each time (kubernetes.io, Pod Lifecycle, restart policy). */
const backOff = { firstMs: 10_000, mostMs: 300_000 };

/** Begins without pods; existing ones are adopted. */
export function startKubelets(options: KubeletOptions): Kubelets {
  const { server, scheduler, wallMs, seed, isNodeLost, restarted } = options;
  const pods = new Map<string, Running>();
  const byName = new Map<string, Running>();
  let startFactor = 1;
  let drainFactor = 1;
  let addresses = 0;

  const recordOf = (object: ModelObject): Running => {
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
      readyChangedMs: wallMs(),
      scheduledMs: wallMs(),
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
      // Draws by place and count, so that events elsewhere change nothing here.
      random: streamOf(seed, `pod ${namespace}/${name} ${incarnationOf(namespace, name)}`),
    };
    pods.set(uid, pod);
    byName.set(`${namespace}/${name}`, pod);
    return pod;
  };
  const incarnations = new Map<string, number>();
  const incarnationOf = (namespace: string, name: string): number => {
    const count = (incarnations.get(`${namespace}/${name}`) ?? 0) + 1;
    incarnations.set(`${namespace}/${name}`, count);
    return count;
  };

  /** Schedules within this life of the pod. */
  const later = (pod: Running, delayMs: number, callback: () => void): void => {
    const { life } = pod;
    scheduler.after(delayMs, () => {
      if (pods.get(pod.uid) === pod && pod.life === life) callback();
    });
  };
  const write = (pod: Running): void => {
    if (isNodeLost(pod.node) || server.get('pods', pod.namespace, pod.name)?.metadata.uid !== pod.uid) return;
    server.change({ user: `system:node:${pod.node}` }, 'pods', pod.namespace, pod.name, { status: podStatus(pod) }, 'status');
  };
  const setReady = (pod: Running): void => {
    const isReady = pod.isUp && pod.failures === 0;
    if (isReady === pod.isReady) return;
    pod.isReady = isReady;
    pod.readyChangedMs = wallMs();
    write(pod);
  };

  const start = (pod: Running): void => {
    pod.scheduledMs = wallMs();
    pod.readyChangedMs = wallMs();
    const durationMs = Math.max(200, options.startMs * startFactor * between(pod.random, 0.6, 1.5));
    later(pod, between(pod.random, 5, 80), () => write(pod));
    later(pod, Math.max(90, durationMs * between(pod.random, 0.1, 0.4)), () => {
      addresses += 1;
      pod.address = `10.0.${Math.floor(addresses / 250)}.${(addresses % 250) + 1}`;
      run(pod);
    });
    if (!isBroken(pod)) later(pod, durationMs, () => becomeUp(pod));
  };
  const run = (pod: Running): void => {
    pod.phase = 'Running';
    pod.container = 'running';
    pod.startedMs = wallMs();
    write(pod);
    if (isBroken(pod)) later(pod, between(pod.random, 500, 2000), () => crash(pod));
  };
  const becomeUp = (pod: Running): void => {
    pod.isUp = true;
    setReady(pod);
  };
  const crash = (pod: Running): void => {
    pod.container = 'backOff';
    pod.restartCount += 1;
    write(pod);
    later(pod, Math.min(backOff.firstMs * 2 ** (pod.restartCount - 1), backOff.mostMs), () => run(pod));
  };

  const breakOff = (pod: Running): void => {
    if (pod.isReady) pod.readyChangedMs = wallMs();
    pod.isUp = false;
    pod.isReady = false;
    pod.container = 'ended';
    pod.endedMs = wallMs();
    pod.restartCount += 1;
    write(pod);
  };

  const terminate = (pod: Running, graceSeconds: number): void => {
    if (pod.isTerminating) return;
    pod.isTerminating = true;
    pod.life += 1;
    const reactionMs = between(pod.random, 10, 150);
    const drainMs = options.drainMs * drainFactor * between(pod.random, 0.6, 1.5);
    const isRunning = pod.container === 'running' && pod.phase === 'Running';
    const endsMs = reactionMs + (isRunning ? Math.max(100, Math.min(drainMs, graceSeconds * 1000)) : between(pod.random, 50, 300));
    // Some pods report unready at once, others when they end.
    const isHonest = pod.random() < 0.6;
    if (isRunning && isHonest) later(pod, reactionMs + between(pod.random, 0, 0.5) * (endsMs - reactionMs), () => beUnready(pod));
    later(pod, endsMs, () => drained(pod));
  };
  const beUnready = (pod: Running): void => {
    pod.isUp = false;
    setReady(pod);
  };
  const drained = (pod: Running): void => {
    pod.hasDrained = true;
    if (pod.sticks > 0 || isNodeLost(pod.node)) return;
    end(pod, 'Succeeded');
    later(pod, between(pod.random, 10, 200), () => release(pod));
  };
  const release = (pod: Running): void => {
    if (isNodeLost(pod.node) || server.get('pods', pod.namespace, pod.name)?.metadata.uid !== pod.uid) return;
    server.remove({ user: `system:node:${pod.node}` }, 'pods', pod.namespace, pod.name);
  };
  const end = (pod: Running, phase: 'Succeeded' | 'Failed'): void => {
    const wasReady = pod.isReady;
    pod.isUp = false;
    pod.isReady = false;
    if (wasReady) pod.readyChangedMs = wallMs();
    pod.phase = phase;
    pod.container = 'ended';
    pod.endedMs = wallMs();
    write(pod);
  };

  const modified = (pod: Running, object: ModelObject): void => {
    const { node, isTerminating, graceSeconds } = podFacts(object);
    if (pod.node === '' && node !== '') {
      pod.node = node;
      if (!isNodeLost(node)) start(pod);
    }
    if (isTerminating && !isNodeLost(pod.node)) terminate(pod, graceSeconds);
  };
  const forget = (pod: Running): void => {
    pods.delete(pod.uid);
    const key = `${pod.namespace}/${pod.name}`;
    if (byName.get(key) === pod) byName.delete(key);
  };
  const named = (namespace: string, name: string): Running | undefined => byName.get(`${namespace}/${name}`);

  return {
    hear: ({ resource, type, after }) => {
      if (resource !== 'pods') return;
      const known = pods.get(after.metadata.uid);
      if (type === 'DELETED') {
        if (known !== undefined) forget(known);
        restarted(after.metadata.namespace ?? '', after.metadata.name);
      } else if (known === undefined) {
        const pod = recordOf(after);
        if (pod.node !== '') start(pod);
      } else modified(known, after);
    },
    adopt: (object, sinceMs) => {
      const pod = pods.get(object.metadata.uid) ?? recordOf(object);
      pod.life += 1;
      addresses += 1;
      Object.assign(pod, { phase: 'Running', container: 'running', isUp: true, isReady: true, address: `10.0.0.${addresses}` });
      Object.assign(pod, { readyChangedMs: sinceMs, scheduledMs: sinceMs - 60_000, startedMs: sinceMs - 30_000 });
      write(pod);
    },
    fail: (namespace, name) => {
      const pod = named(namespace, name);
      if (pod === undefined) return undefined;
      pod.failures += 1;
      setReady(pod);
      return once(() => {
        pod.failures -= 1;
        if (pods.get(pod.uid) === pod) setReady(pod);
      });
    },
    die: (namespace, name) => {
      const pod = named(namespace, name);
      if (pod === undefined || pod.isTerminating || pod.phase !== 'Running') return false;
      pod.life += 1;
      restarted(pod.namespace, pod.name);
      if (pod.random() < 0.4) {
        end(pod, 'Failed');
        return true;
      }
      breakOff(pod);
      later(pod, between(pod.random, 500, 2000), () => run(pod));
      if (!isBroken(pod)) {
        const durationMs = options.startMs * startFactor * between(pod.random, 0.6, 1.5);
        later(pod, 2000 + durationMs, () => becomeUp(pod));
      }
      return true;
    },
    stick: (namespace, name) => {
      const pod = named(namespace, name);
      if (pod === undefined) return undefined;
      pod.sticks += 1;
      return once(() => {
        pod.sticks -= 1;
        if (pods.get(pod.uid) === pod && pod.hasDrained) drained(pod);
      });
    },
    setPace: (start, drain) => {
      startFactor = start;
      drainFactor = drain;
    },
    nodeIsBack: (node) => {
      for (const pod of [...pods.values()].filter((candidate) => candidate.node === node)) {
        const object = server.get('pods', pod.namespace, pod.name);
        if (object?.metadata.uid !== pod.uid) continue;
        const { isTerminating, graceSeconds, isReady } = podFacts(object);
        if (pod.isReady && !isReady) pod.readyChangedMs = wallMs();
        const hasBegun = pod.phase !== 'Pending' || pod.address !== undefined || pod.isTerminating;
        if (hasBegun) write(pod);
        else start(pod);
        if (pod.hasDrained) drained(pod);
        else if (isTerminating) terminate(pod, graceSeconds);
      }
    },
    listens: (namespace, name) => {
      const pod = named(namespace, name);
      return pod !== undefined && pod.container === 'running' && !isNodeLost(pod.node) ? pod.uid : undefined;
    },
    isReady: (uid) => pods.get(uid)?.isReady === true,
  };
}

function isBroken({ containers }: Running): boolean {
  return containers.some(({ image = '' }) => brokenImage.test(image));
}

function once(callback: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    callback();
  };
}
