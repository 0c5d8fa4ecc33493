// Writes facts as Kubernetes Events for `EventWriter`: repetitions count in one Event. If many Events wait, facts of one kind are combined.
import { isNamespaceGone, isStatus } from '../../cluster/request/failure.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { createObject, microTime, patchObject, type Target, targetOf } from '../../cluster/request/write.ts';
import { messageOf } from '../../policies/error-message.ts';
import { eventNote } from '../../policies/text/shorten.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { hashText } from '../../policies/values/hash.ts';
import type { AgentEnv } from '../env.ts';
import { combinedFact, type EventFact } from './event-facts.ts';
import { WriteQueue } from './write-queue.ts';

export interface Regarding {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid?: string;
}

export interface Observed {
  /** The group as `namespace/name`; empty for the agent. */
  readonly subject: string;
  readonly fact: EventFact;
  /** The id of the run; equal facts of several runs are separate Events. */
  readonly run?: string | undefined;
  readonly atMs: number;
  readonly regarding: () => Regarding | Promise<Regarding>;
}

/** The state of one Event: a fact and its repetitions. */
interface Series {
  /** The group, the run, the reason and the zone. Facts of one kind can be combined. */
  readonly kind: string;
  readonly isCombined: boolean;
  readonly regarding: Observed['regarding'];
  fact: EventFact;
  firstMs: number;
  lastMs: number;
  /** The time of the last repetition (monotonic). */
  seenMs: number;
  count: number;
  /** The part of `count` that was written to the Event. */
  writtenCount: number;
  /** The last seen state of the stored Event; undefined if unknown. */
  stored: Target | undefined;
  isWriting: boolean;
}

interface SeriesOptions {
  readonly env: AgentEnv;
  readonly identity: string;
  readonly timeoutMs: number;
  readonly onWrite?: ((result: 'done' | 'failed' | 'dropped') => void) | undefined;
}

/** The maximum time since the last repetition. A later repetition causes a new Event. */
const repeatMs = 600_000;
/** The minimum time between two writes of one Event. */
const everyMs = 5_000;
/** If this many Events wait, new facts of one kind are combined into one Event. */
const maxWaiting = 200;
/** The number of remembered Events. Above it, written Events are forgotten, beginning with the Event that repeated the longest time ago. */
const maxRemembered = 2000;
/** The age after which a failed write is not repeated. The API server keeps Events for an hour by default. */
const expiryMs = 3_600_000;
const controller = 'rollout-group.dev/agent';

/** Writes each fact to an Event. Retries a failed write until the Event would have expired, unless the API server rejects the content. */
export class EventSeries {
  readonly #options: SeriesOptions;
  readonly #series = new Map<string, Series>();
  readonly #waiting = new Set<string>();
  readonly #writes: WriteQueue;
  #combinedCount = 0;
  #hasWarned = false;

  constructor(options: SeriesOptions) {
    this.#options = options;
    this.#writes = new WriteQueue({
      env: options.env,
      everyMs,
      write: (key) => this.#write(key),
      // An Event replaces no Event of another process.
      mayWrite: () => true,
      onWritten: () => options.onWrite?.('done'),
      onFailure: (key, error) => this.#failed(key, error),
    });
  }

  observe(one: Observed): void {
    const { subject, fact, run = '', atMs } = one;
    const seenMs = this.#options.env.clock.monotonicMs();
    const kind = `${subject} ${run} ${fact.reason} ${fact.zone ?? ''}`;
    const key = `${kind} ${fact.identity ?? fact.note}`;
    const known = this.#series.get(key);
    if (known !== undefined && (this.#waiting.has(key) || seenMs - known.seenMs < repeatMs)) {
      Object.assign(known, { count: known.count + 1, lastMs: atMs, seenMs });
      this.#queue(key, known);
    } else if (this.#waiting.size < maxWaiting) {
      this.#queue(key, begin(one, { kind, seenMs, isCombined: false }));
    } else {
      this.#combine(one, kind, seenMs);
    }
  }

  /** Writes every waiting Event once, until `giveUp` is called. */
  close(): Promise<void> {
    return this.#writes.close();
  }

  giveUp(): void {
    this.#series.clear();
  }

  #combine(one: Observed, kind: string, seenMs: number): void {
    for (const key of this.#waiting) {
      const open = this.#series.get(key);
      if (open?.kind !== kind || !open.isCombined || open.isWriting || open.writtenCount > 0) continue;
      // A combined fact about pods names all of them. Other combined facts are only counted.
      const count = open.count + (one.fact.pods === undefined ? 1 : 0);
      Object.assign(open, { fact: combinedFact(open.fact, one.fact), count, lastMs: one.atMs, seenMs });
      return;
    }
    this.#combinedCount += 1;
    this.#queue(`${kind} combined ${this.#combinedCount}`, begin(one, { kind, seenMs, isCombined: true }));
  }

  #queue(key: string, series: Series): void {
    this.#series.delete(key);
    this.#series.set(key, series);
    this.#waiting.add(key);
    for (const oldest of this.#series.keys()) {
      if (this.#series.size <= maxRemembered) break;
      if (!this.#waiting.has(oldest)) this.#series.delete(oldest);
    }
    this.#writes.queueWrite(key);
  }

  async #write(key: string): Promise<'written' | 'unchanged'> {
    const series = this.#series.get(key);
    if (series === undefined || series.count === series.writtenCount) return 'unchanged';
    series.isWriting = true;
    try {
      series.writtenCount = (await this.#repeat(series)) ?? (await this.#create(series));
      if (series.count === series.writtenCount) this.#waiting.delete(key);
      return 'written';
    } finally {
      series.isWriting = false;
    }
  }

  /** Writes the repetitions into the stored Event and returns the count. Returns undefined if an Event must be created. */
  async #repeat(series: Series): Promise<number | undefined> {
    const { env, timeoutMs } = this.#options;
    const { count, stored } = series;
    if (series.writtenCount === 0) return undefined;
    if (stored !== undefined) {
      try {
        const options = { patch: { series: repetitions(series) }, site: 'events.repeat', timeoutMs };
        series.stored = targetOf(await patchObject(env, resources.events, stored, options));
        return count;
      } catch (error) {
        // The Event expired or changed, or the Role does not permit `patch`.
        if (!isStatus(error, 403, 404, 409)) throw error;
      }
    }
    Object.assign(series, { count: series.count - series.writtenCount, writtenCount: 0, firstMs: series.lastMs, stored: undefined });
    return undefined;
  }

  async #create(series: Series): Promise<number> {
    const { env, identity, timeoutMs } = this.#options;
    const regarding = await series.regarding();
    const { fact, firstMs, count } = series;
    const { type, reason, action, note } = fact;
    // The name depends on the content, so a repeated request after a lost response creates no second Event.
    const hash = hashText(canonicalJson({ regarding, firstMs, fact, by: identity })).slice(0, 16);
    const event: KubernetesObject = {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { namespace: regarding.namespace, name: `${regarding.name.slice(0, 200)}.${hash}` },
      eventTime: microTime(firstMs),
      regarding,
      type,
      reason,
      action,
      note: eventNote(note),
      reportingController: controller,
      reportingInstance: identity.slice(0, 128),
      ...(count > 1 ? { series: repetitions(series) } : {}),
    };
    try {
      series.stored = targetOf(await createObject(env, resources.events, event, { site: 'events.create', timeoutMs }));
    } catch (error) {
      if (!isStatus(error, 409)) throw error;
    }
    return count;
  }

  #failed(key: string, error: unknown): void {
    const { env, onWrite } = this.#options;
    const series = this.#series.get(key);
    const isExpired = series === undefined || env.clock.nowMs() - series.lastMs > expiryMs;
    // In a namespace that is being deleted, no later request can succeed.
    const isRefused = isStatus(error, 400, 413, 422) || isNamespaceGone(error);
    onWrite?.(isExpired || isRefused ? 'dropped' : 'failed');
    if (isExpired || isRefused) {
      this.#series.delete(key);
      this.#waiting.delete(key);
      this.#writes.forget(key);
    }
    if (!this.#hasWarned) env.log.warn('event could not be written', { error: messageOf(error) });
    this.#hasWarned = true;
  }
}

function begin({ fact, atMs, regarding }: Observed, { kind, seenMs, isCombined }: Pick<Series, 'kind' | 'seenMs' | 'isCombined'>): Series {
  const times = { firstMs: atMs, lastMs: atMs, seenMs };
  return { kind, isCombined, regarding, fact, ...times, count: 1, writtenCount: 0, stored: undefined, isWriting: false };
}

function repetitions({ count, lastMs }: Series) {
  return { count, lastObservedTime: microTime(lastMs) };
}
