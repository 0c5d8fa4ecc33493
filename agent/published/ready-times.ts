// Annotates each pod under a ZoneAwarePodDisruptionBudget with its ready time, from which rules measure the delay between zones.
import { type ClusterEnv, type Log, sleep } from '../../cluster/env.ts';
import { inParallel } from '../../cluster/pods.ts';
import { Backoff, soon } from '../../cluster/request/backoff.ts';
import { ApiFailure, askedPauseMs, isStatus } from '../../cluster/request/failure.ts';
import { resources } from '../../cluster/request/resource.ts';
import { patchObject } from '../../cluster/request/write.ts';
import type { ObservedPod } from '../../engine/observe/objects.ts';
import { messageOf } from '../../policies/error-message.ts';
import { matchesSelector } from '../../policies/label-selector.ts';
import type { SharedWatches } from '../watched/caches.ts';

/** The annotation of a pod with the time since which it has been ready (RFC 3339, UTC). */
const readyTimeAnnotation = 'grafana.com/ready-time';

interface ReadyTimesOptions {
  readonly followed: SharedWatches;
  /**
   * Returns when this process writes: `now` if it leads, `never` if another process leads. If the leader is unknown, it writes `later`:
   * after 4 to 8 s, if the value is still missing. Called before each write, and after `wake`. If several processes write, only the first
   * write succeeds.
   */
  readonly turn: () => WriterTurn;
  /** The timeout of each write in milliseconds: flag `-zpdb.pod-ready-annotation-patch-timeout`. */
  readonly patchTimeoutMs: number;
  readonly onPatch?: (result: 'set' | 'removed' | 'failed') => void;
}

export type WriterTurn = 'now' | 'later' | 'never';

/** Returns when a process writes. `isLeading` is undefined in a process that runs only webhooks. */
export function writerTurn(isLeading: boolean | undefined): WriterTurn {
  if (isLeading === undefined) return 'later';
  return isLeading ? 'now' : 'never';
}

/** The time that a `later` writer waits for a `now` writer. A random time of up to the same length is added. */
const laterPauseMs = 4000;
/** The interval of checks of all pods. */
const fullCheckMs = 300_000;

/**
 * Handles each pod that a budget selects: sets the annotation when the pod becomes ready, and removes it when the pod is no longer ready. An
 * invalid time is replaced, because grafana/rollout-operator would never count that pod as ready again. Failures are logged and retried.
 */
export class ReadyTimes {
  readonly #env: ClusterEnv & { readonly log: Log };
  readonly #options: ReadyTimesOptions;
  readonly #ended: readonly (() => void)[];
  readonly #stopped = new AbortController();
  readonly #pause: Backoff;
  /** The pods to check (`namespace/name`), with the time of the check (monotonic). */
  readonly #due = new Map<string, number>();
  #wasActive = false;
  #fullCheckAtMs = Number.NEGATIVE_INFINITY;
  #wake = new AbortController();

  constructor(env: ClusterEnv & { readonly log: Log }, options: ReadyTimesOptions) {
    this.#env = env;
    this.#options = options;
    this.#pause = new Backoff(env.random, soon);
    const { pods, zoneBudgets } = options.followed;
    this.#ended = [
      pods.onChange(({ view }) => this.#mark(view === undefined ? [] : [view])),
      zoneBudgets.onChange(({ namespace }) => this.#mark(pods.list(namespace))),
    ];
    void this.#run();
  }

  /** Checks at once whether this process writes now, and which annotations it must change. Must be called when the result of `turn` changes. */
  wake(): void {
    this.#wake.abort();
  }

  /** Stops the writes and timers, and no longer listens to the watches. A write in flight is not cancelled. */
  stop(): void {
    this.#stopped.abort();
    this.#wake.abort();
    for (const end of this.#ended) end();
    this.#due.clear();
  }

  async #run(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      this.#wake = new AbortController();
      const pauseMs = this.#options.turn() === 'never' ? this.#rest() : await this.#turn();
      if (this.#stopped.signal.aborted) return;
      // A pause after a failure is not shortened by a change of a pod.
      if (pauseMs > 0) await sleep(this.#env, pauseMs, this.#stopped.signal);
      else await sleep(this.#env, this.#idleMs(), this.#wake.signal);
    }
  }

  /** Forgets the queued pods while another process writes, because their state will be stale. */
  #rest(): number {
    this.#wasActive = false;
    this.#due.clear();
    return 0;
  }

  /** Returns the milliseconds until the next pod is due, or until the next check of all pods. */
  #idleMs(): number {
    const nowMs = this.#env.clock.monotonicMs();
    const fullCheckAtMs = (this.#wasActive ? this.#fullCheckAtMs : nowMs) + fullCheckMs;
    return Math.max(0, Math.min(fullCheckAtMs, ...this.#due.values()) - nowMs);
  }

  /** Checks the due pods, until a temporary failure. Returns the pause after the failure in milliseconds, else 0. */
  async #turn(): Promise<number> {
    const nowMs = this.#env.clock.monotonicMs();
    if (!this.#wasActive || nowMs - this.#fullCheckAtMs >= fullCheckMs) {
      this.#fullCheckAtMs = nowMs;
      this.#wasActive = true;
      this.#mark(this.#options.followed.pods.list());
    }
    const due = [...this.#due].flatMap(([key, dueMs]) => (dueMs > nowMs ? [] : [key]));
    let hasFailed = false;
    const askedMs = await inParallel(due, async (key) => {
      if (hasFailed || this.#stopped.signal.aborted || this.#options.turn() === 'never') return undefined;
      this.#due.delete(key);
      const [namespace = '', name = ''] = key.split('/');
      const pod = this.#options.followed.pods.get(namespace, name);
      const pauseMs = pod !== undefined && this.#isSelected(pod) ? await this.#keep(pod) : undefined;
      if (pauseMs === undefined) return undefined;
      hasFailed = true;
      // The pod moves to the end of the queue, so that it does not delay the other pods.
      this.#due.set(key, nowMs);
      return pauseMs;
    });
    return askedMs.length === 0 ? 0 : Math.max(this.#pause.nextMs(), ...askedMs);
  }

  /** Returns the pause after a temporary failure in milliseconds, as the API server requests it, else 0; undefined without such a failure. */
  async #keep(pod: ObservedPod): Promise<number | undefined> {
    const value = wanted(pod, this.#env.clock.nowMs());
    if (value === undefined) return undefined;
    const { namespace, name } = pod;
    const patch = { metadata: { annotations: { [readyTimeAnnotation]: value } } };
    try {
      await patchObject(this.#env, resources.pods, pod, { patch, site: 'readyTimes.patch', timeoutMs: this.#options.patchTimeoutMs });
      this.#pause.reset();
      this.#options.onPatch?.(value === null ? 'removed' : 'set');
      return undefined;
    } catch (error) {
      // The pod changed or was deleted. The watch reports the change.
      if (isStatus(error, 404, 409)) return undefined;
      this.#env.log.warn('ready time of a pod could not be written', {
        namespace,
        pod: name,
        problem: messageOf(error),
      });
      this.#options.onPatch?.('failed');
      // After a permanent error, the next check of all pods tries again.
      if (error instanceof ApiFailure && error.status < 500 && error.status !== 429) return undefined;
      return askedPauseMs(error) ?? 0;
    }
  }

  /** Queues the pods whose annotation must change. Other changes of pods are frequent and need no write. */
  #mark(pods: readonly ObservedPod[]): void {
    if (!this.#wasActive) return;
    const { clock, random } = this.#env;
    const outdated = pods.filter((pod) => wanted(pod, 0) !== undefined);
    for (const { namespace, name } of outdated) {
      const key = `${namespace}/${name}`;
      const waitMs = this.#options.turn() === 'later' ? laterPauseMs * (1 + random()) : 0;
      const dueMs = clock.monotonicMs() + waitMs;
      this.#due.set(key, Math.min(dueMs, this.#due.get(key) ?? dueMs));
    }
    if (outdated.length > 0) this.#wake.abort();
  }

  /** Returns whether a budget selects the pod. The newest version of a budget counts, even if it is invalid. */
  #isSelected({ namespace, labels }: ObservedPod): boolean {
    return this.#options.followed.zoneBudgets
      .list(namespace)
      .some(({ matchLabels }) => matchLabels !== undefined && matchesSelector({ matchLabels }, labels));
  }
}

/** Returns the value of the annotation: null removes it, undefined keeps it. */
function wanted({ phase, isTerminating, containersReady, ...pod }: ObservedPod, nowMs: number): string | null | undefined {
  const isAbsent = pod.readyTimeMs === undefined && pod.isReadyTimeUnreadable !== true;
  const isReady = phase === 'Running' && !isTerminating && containersReady;
  if (!isReady) return isAbsent ? undefined : null;
  return pod.readyTimeMs !== undefined ? undefined : `${new Date(nowMs).toISOString().slice(0, 19)}Z`;
}
