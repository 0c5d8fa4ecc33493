// Since when pods under disruption budgets have been ready, written on the pods themselves: the delay between zones counts from there.
import { type ClusterEnv, type Log, sleep } from '../../cluster/env.ts';
import { Backoff, soon } from '../../cluster/request/backoff.ts';
import { ApiFailure, isStatus } from '../../cluster/request/failure.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { patchObject } from '../../cluster/request/write.ts';
import { startReflector } from '../../cluster/watch/reflector.ts';
import { zoneBudgetsFor } from '../../engine/disruption/budget.ts';
import { observePod } from '../../engine/observe/objects.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import type { ZoneBudgets } from './zpdb.ts';

/** The annotation, an RFC 3339 instant in UTC. */
export const readyTimeAnnotation = 'grafana.com/ready-time';

export interface ReadyTimesOptions {
  readonly budgets: ZoneBudgets;
  /** Whether it is this process that writes. Of several replicas one may at a time; asked before each write. */
  readonly isActive: () => boolean;
  /** Every namespace when left out. */
  readonly namespaces?: readonly string[] | undefined;
  /** Of each write, in milliseconds: flag `-zpdb.pod-ready-annotation-patch-timeout`. */
  readonly patchTimeoutMs: number;
  readonly onPatch?: (result: 'set' | 'removed' | 'failed') => void;
}

export interface ReadyTimes {
  /** Ends it: nothing is written any more, and no timer and no watch is left. A write under way is not called back. */
  readonly stop: () => void;
}

/** What is kept of a pod. */
interface SeenPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Phase Running, not terminating, every container ready and running. */
  readonly isUp: boolean;
  readonly annotation: 'absent' | 'instant' | 'unreadable';
}

/** How soon a process that has become active notices it. */
const tickMs = 5000;
/** All pods are looked at again this often. */
const wholeMs = 300_000;

/**
 * Follows the pods and keeps the annotation of each that a budget selects: set once when it becomes ready, removed when it is ready no more. An
 * instant that cannot be read is replaced, where the original would never again take the pod for ready. Failures are logged and tried again.
 */
export function startReadyTimes(env: ClusterEnv & { readonly log: Log }, options: ReadyTimesOptions): ReadyTimes {
  const keeper = new Keeper(env, options);
  void keeper.run();
  return { stop: () => keeper.stop() };
}

class Keeper {
  readonly #env: ClusterEnv & { readonly log: Log };
  readonly #options: ReadyTimesOptions;
  readonly #following;
  readonly #ended: () => void;
  readonly #stopped = new AbortController();
  readonly #pause: Backoff;
  /** Pods to be looked at, as `namespace/name`, while this process is active. */
  readonly #due = new Set<string>();
  #wasActive = false;
  #wholeAtMs = Number.NEGATIVE_INFINITY;
  #wake = new AbortController();

  constructor(env: ClusterEnv & { readonly log: Log }, options: ReadyTimesOptions) {
    this.#env = env;
    this.#options = options;
    this.#pause = new Backoff(env.random, soon);
    this.#following = (options.namespaces ?? [undefined]).map((namespace) =>
      startReflector<SeenPod>({
        env,
        resource: resources.pods,
        namespace,
        project: seenPod,
        onChange: ({ view }) => this.#mark(view === undefined ? [] : [view]),
        site: 'readyTimes',
      }),
    );
    this.#ended = options.budgets.onChange((namespace) => this.#mark(this.#pods(namespace)));
  }

  stop(): void {
    this.#stopped.abort();
    this.#wake.abort();
    this.#ended();
    for (const following of this.#following) following.stop();
    this.#due.clear();
  }

  async run(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      this.#wake = new AbortController();
      const pauseMs = this.#options.isActive() ? await this.#turn() : this.#rest();
      if (this.#stopped.signal.aborted) return;
      // While the server asks for a pause, no change cuts it short.
      if (pauseMs > 0) await sleep(this.#env, pauseMs, this.#stopped.signal);
      else await sleep(this.#env, tickMs, this.#wake.signal);
    }
  }

  /** Another process writes now, so what was seen until it was this one's turn says nothing. */
  #rest(): number {
    this.#wasActive = false;
    this.#due.clear();
    return 0;
  }

  /** Looks at every pod that is due. Answers the pause that a failure asks for, 0 without one. */
  async #turn(): Promise<number> {
    const nowMs = this.#env.clock.monotonicMs();
    if (!this.#wasActive || nowMs - this.#wholeAtMs >= wholeMs) {
      this.#wholeAtMs = nowMs;
      this.#wasActive = true;
      this.#mark(this.#pods());
    }
    for (const key of [...this.#due]) {
      this.#due.delete(key);
      const pod = this.#podAt(key);
      if (pod === undefined || !this.#isSelected(pod)) continue;
      if (this.#stopped.signal.aborted || !this.#options.isActive()) return 0;
      const pauseMs = await this.#keep(pod);
      if (pauseMs > 0) {
        // At the end of the queue: one pod that cannot be written does not hold up the others.
        this.#due.add(key);
        return pauseMs;
      }
    }
    return 0;
  }

  async #keep(pod: SeenPod): Promise<number> {
    const value = wanted(pod, this.#env.clock.nowMs());
    if (value === undefined) return 0;
    const { namespace, name } = pod;
    const patch = { metadata: { annotations: { [readyTimeAnnotation]: value } } };
    try {
      await patchObject(this.#env, resources.pods, pod, { patch, site: 'readyTimes.patch', timeoutMs: this.#options.patchTimeoutMs });
      this.#pause.reset();
      this.#options.onPatch?.(value === null ? 'removed' : 'set');
      return 0;
    } catch (error) {
      // It has changed since, or is gone: the watch tells of it.
      if (isStatus(error, 404, 409)) return 0;
      this.#env.log.warn('ready time of a pod could not be written', {
        namespace,
        pod: name,
        problem: error instanceof Error ? error.message : String(error),
      });
      this.#options.onPatch?.('failed');
      // What the server refuses for good is tried again when all pods are looked at.
      if (error instanceof ApiFailure && error.status < 500 && error.status !== 429) return 0;
      return Math.max(this.#pause.nextMs(), error instanceof ApiFailure ? (error.retryAfterMs ?? 0) : 0);
    }
  }

  #mark(pods: readonly SeenPod[]): void {
    if (!this.#wasActive) return;
    for (const { namespace, name } of pods) this.#due.add(`${namespace}/${name}`);
    if (pods.length > 0) this.#wake.abort();
  }

  #isSelected({ namespace, labels }: SeenPod): boolean {
    const inForce = this.#options.budgets.inForce(namespace);
    return !isUnknown(inForce) && zoneBudgetsFor(inForce.usable, namespace, labels).length > 0;
  }

  #pods(namespace?: string): readonly SeenPod[] {
    return this.#following.flatMap(({ store }) => store.list(namespace));
  }

  #podAt(key: string): SeenPod | undefined {
    const [namespace = '', name = ''] = key.split('/');
    return this.#following.map(({ store }) => store.get(namespace, name)).find((pod) => pod !== undefined);
  }
}

/** What the annotation should become; null removes it, undefined leaves it. */
function wanted({ isUp, annotation }: SeenPod, nowMs: number): string | null | undefined {
  if (!isUp) return annotation === 'absent' ? undefined : null;
  return annotation === 'instant' ? undefined : `${new Date(nowMs).toISOString().slice(0, 19)}Z`;
}

/** Throws for a pod that cannot be understood, which is then left alone. */
function seenPod(object: KubernetesObject): SeenPod {
  const pod = observePod(object);
  if (isUnknown(pod)) throw new Error(pod.unknown);
  const { namespace, name, uid, resourceVersion, labels, phase, isTerminating, containersReady, readyTimeMs } = pod;
  const isThere = Object.hasOwn(object.metadata.annotations ?? {}, readyTimeAnnotation);
  return {
    namespace,
    name,
    uid,
    resourceVersion,
    labels,
    isUp: phase === 'Running' && !isTerminating && containersReady,
    annotation: readyTimeMs !== undefined ? 'instant' : isThere ? 'unreadable' : 'absent',
  };
}
