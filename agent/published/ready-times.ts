// Since when pods under disruption budgets have been ready, written on the pods themselves: the delay between zones counts from there.
import { type ClusterEnv, type Log, sleep } from '../../cluster/env.ts';
import { Backoff, soon } from '../../cluster/request/backoff.ts';
import { ApiFailure, isStatus } from '../../cluster/request/failure.ts';
import { resources } from '../../cluster/request/resource.ts';
import { patchObject } from '../../cluster/request/write.ts';
import type { ObservedPod } from '../../engine/observe/objects.ts';
import { messageOf } from '../../policies/error-message.ts';
import { matchesSelector } from '../../policies/label-selector.ts';
import type { SharedWatches } from '../watched/caches.ts';

/** The annotation, an RFC 3339 instant in UTC. */
const readyTimeAnnotation = 'grafana.com/ready-time';

interface ReadyTimesOptions {
  readonly followed: SharedWatches;
  /**
   * Returns when this process writes: `now` as the leader, `later` (values still missing after 4 to 8 s) if the leader is unknown, `never`
   * if another process writes. Called before each write. Each write names the version of the pod, so one of several equal writes succeeds.
   */
  readonly turn: () => WriterTurn;
  /** Timeout of each write in milliseconds: flag `-zpdb.pod-ready-annotation-patch-timeout`. */
  readonly patchTimeoutMs: number;
  readonly onPatch?: (result: 'set' | 'removed' | 'failed') => void;
}

export type WriterTurn = 'now' | 'later' | 'never';

/** Returns the turn of a process with an agent, which leads or not, or of a process with webhooks only (undefined). */
export function writerTurn(isLeading: boolean | undefined): WriterTurn {
  if (isLeading === undefined) return 'later';
  return isLeading ? 'now' : 'never';
}

/** States how soon a process that has come to its turn notices it. */
const tickMs = 5000;
/** A `later` writer waits this long for a `now` writer, and up to as long again at random. */
const patienceMs = 4000;
/** Interval of the check of all pods. */
const wholeMs = 300_000;

/**
 * Keeps the annotation of each pod that a budget selects: set when the pod becomes ready, removed when it is no longer ready. An unreadable
 * instant is replaced; grafana/rollout-operator would never count that pod as ready again. Failures are logged and tried again.
 */
export class ReadyTimes {
  readonly #env: ClusterEnv & { readonly log: Log };
  readonly #options: ReadyTimesOptions;
  readonly #ended: readonly (() => void)[];
  readonly #stopped = new AbortController();
  readonly #pause: Backoff;
  /** Pods to check, as `namespace/name`, and when (monotonic), while this process writes. */
  readonly #due = new Map<string, number>();
  #wasActive = false;
  #wholeAtMs = Number.NEGATIVE_INFINITY;
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

  /** Ends it: nothing is written any more, and no timer and no watch is left. A write under way is not called back. */
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
      // While the server asks for a pause, no change cuts it short.
      if (pauseMs > 0) await sleep(this.#env, pauseMs, this.#stopped.signal);
      else await sleep(this.#env, this.#idleMs(), this.#wake.signal);
    }
  }

  /** Stops while another process writes, and forgets the observed pods, because they will have changed. */
  #rest(): number {
    this.#wasActive = false;
    this.#due.clear();
    return 0;
  }

  /** Returns the milliseconds until the next pod is due. */
  #idleMs(): number {
    const nextMs = Math.min(...this.#due.values()) - this.#env.clock.monotonicMs();
    return Math.max(0, Math.min(tickMs, nextMs));
  }

  /** Looks at every pod that is due. Answers the pause that a failure asks for, 0 without one. */
  async #turn(): Promise<number> {
    const nowMs = this.#env.clock.monotonicMs();
    if (!this.#wasActive || nowMs - this.#wholeAtMs >= wholeMs) {
      this.#wholeAtMs = nowMs;
      this.#wasActive = true;
      this.#mark(this.#options.followed.pods.list());
    }
    for (const [key, dueMs] of [...this.#due]) {
      if (dueMs > nowMs) continue;
      this.#due.delete(key);
      const [namespace = '', name = ''] = key.split('/');
      const pod = this.#options.followed.pods.get(namespace, name);
      if (pod === undefined || !this.#isSelected(pod)) continue;
      if (this.#stopped.signal.aborted || this.#options.turn() === 'never') return 0;
      const pauseMs = await this.#keep(pod);
      if (pauseMs > 0) {
        // At the end of the queue: one pod that cannot be written does not hold up the others.
        this.#due.set(key, nowMs);
        return pauseMs;
      }
    }
    return 0;
  }

  async #keep(pod: ObservedPod): Promise<number> {
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
      // The pod has changed or is gone. The watch reports it.
      if (isStatus(error, 404, 409)) return 0;
      this.#env.log.warn('ready time of a pod could not be written', {
        namespace,
        pod: name,
        problem: messageOf(error),
      });
      this.#options.onPatch?.('failed');
      // A permanent error is retried at the next full scan.
      if (error instanceof ApiFailure && error.status < 500 && error.status !== 429) return 0;
      return Math.max(this.#pause.nextMs(), error instanceof ApiFailure ? (error.retryAfterMs ?? 0) : 0);
    }
  }

  /** Queues the pods whose annotation must change. Other changes of pods are frequent and need no write. */
  #mark(pods: readonly ObservedPod[]): void {
    if (!this.#wasActive) return;
    const { clock, random } = this.#env;
    const lacking = pods.filter((pod) => wanted(pod, 0) !== undefined);
    for (const { namespace, name } of lacking) {
      const key = `${namespace}/${name}`;
      const waitMs = this.#options.turn() === 'later' ? patienceMs * (1 + random()) : 0;
      const dueMs = clock.monotonicMs() + waitMs;
      this.#due.set(key, Math.min(dueMs, this.#due.get(key) ?? dueMs));
    }
    if (lacking.length > 0) this.#wake.abort();
  }

  /** Reports whether a budget selects the pod. The newest version of a budget counts, even if it is invalid. */
  #isSelected({ namespace, labels }: ObservedPod): boolean {
    return this.#options.followed.zoneBudgets
      .list(namespace)
      .some(({ matchLabels }) => matchLabels !== undefined && matchesSelector({ matchLabels }, labels));
  }
}

/** Returns the value of the annotation: null removes it, undefined keeps it. */
function wanted({ phase, isTerminating, containersReady, ...pod }: ObservedPod, nowMs: number): string | null | undefined {
  const isAbsent = pod.readyTimeMs === undefined && pod.isReadyTimeUnreadable !== true;
  const isUp = phase === 'Running' && !isTerminating && containersReady;
  if (!isUp) return isAbsent ? undefined : null;
  return pod.readyTimeMs !== undefined ? undefined : `${new Date(nowMs).toISOString().slice(0, 19)}Z`;
}
