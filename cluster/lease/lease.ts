// Contends for a Lease as client-go does, and tells the holder for how long it may write.
import { messageOf } from '../../policies/error-message.ts';
import type { ClusterEnv } from '../env.ts';
import { isStatus, TransportFailure } from '../request/failure.ts';
import { isJsonObject, type JsonObject } from '../request/json.ts';
import { getObject } from '../request/read.ts';
import { type KubernetesObject, resources } from '../request/resource.ts';
import { createObject, microTime, replaceObject } from '../request/write.ts';
import { LeaseClock } from './lease-clock.ts';

/** The interval of renewals while it is uncertain whether this process holds the Lease. */
const doubtPauseMs = 100;
/** The longest timeout of a request: a second attempt must fit before the deadline. */
const longestRequestMs = 5000;
/** The maximum number of attempts to write the Lease while other processes write it at the same time. */
const conflictLimit = 3;

export interface LeaseOptions {
  readonly env: ClusterEnv;
  readonly namespace: string;
  readonly name: string;
  /** A name that is unique for each process and restart. */
  readonly identity: string;
  /** The time for which other contenders wait after the last renewal that they saw; usually 15 s. */
  readonly durationMs: number;
  /** The time for which the holder may act after it sent the last successful renewal; usually 10 s, less than `durationMs`. */
  readonly renewDeadlineMs: number;
  /** The interval of renewals, and of reads while another process holds the Lease; usually 2 s. */
  readonly retryPeriodMs: number;
  /** The version of this process, which the annotation `holderVersionAnnotation` names. */
  readonly version?: string;
  readonly onAcquired: (epoch: number) => void;
  /** Runs when the Lease is lost. `mayAct` may be false before, and is false until `onAcquired` runs again. */
  readonly onLost: (reason: string) => void;
  /** Runs when the holder changes: to another process, to no process (undefined), or to this process. */
  readonly onHolder?: (holder: string | undefined) => void;
  /** Receives a problem of reading or writing the Lease, and undefined when the problem ends. */
  readonly onProblem?: (problem: LeaseProblem | undefined) => void;
}

export interface LeaseProblem {
  readonly reason: 'forbidden' | 'missing' | 'unreachable';
  readonly message: string;
}

/** The annotation of a Lease with the version of its holder: `VERSION HOLDER`. A holder without a version leaves that of another holder. */
export const holderVersionAnnotation = 'rollout-group.dev/holder-version';

/** Starts to contend for the Lease until `stop` or `release`. Never throws. */
export class Lease {
  readonly #options: LeaseOptions;
  readonly #clock: LeaseClock;
  readonly #timeoutMs: number;
  /** The object as last read or written; undefined if it does not exist or a write may have changed it. */
  #object: KubernetesObject | undefined;
  #record: LeaseRecord | undefined;
  /** The monotonic time of the last observed change of the record. */
  #observedMs = 0;
  #leading: { readonly epoch: number } | undefined;
  #highestEpoch = 0;
  #problem: LeaseProblem | undefined;
  #turn: Promise<void> = Promise.resolve();
  #isTurning = false;
  #isEnded = false;
  #cancelTurn: () => void = () => undefined;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#timeoutMs = Math.min(longestRequestMs, options.renewDeadlineMs / 2);
    this.#clock = new LeaseClock({
      ...options,
      onDoubt: () => this.#schedule(0),
      onExpired: () => this.#lose(`the Lease was not renewed for ${options.renewDeadlineMs} ms`),
    });
    this.#schedule(0);
  }

  /** Returns whether a request of up to `requestTimeoutMs` ends before another process can get the Lease. Callers ask before each write. */
  readonly mayAct = (requestTimeoutMs: number): boolean => this.#leading !== undefined && this.#clock.mayAct(requestTimeoutMs);

  /** Returns the longest timeout of a request sent now, in milliseconds; 0 or less if no request may be sent. */
  readonly leftMs = (): number => (this.#leading === undefined ? 0 : this.#clock.leftMs());

  /** Returns leaseTransitions, which grows with each change of holder; undefined while this process does not hold the Lease. */
  readonly epoch = (): number | undefined => this.#leading?.epoch;

  /** Returns the last seen holder; undefined if it is empty or unknown. */
  readonly holder = (): string | undefined => this.#record?.holder || undefined;

  readonly problem = (): LeaseProblem | undefined => this.#problem;

  /** Ends without a release, like a crash. */
  readonly stop = (reason = 'stopped'): void => {
    this.#isEnded = true;
    this.#cancelTurn();
    this.#lose(reason);
  };

  /** Releases the Lease and ends. The caller must first wait for its writes to end. Never rejects. */
  readonly release = async (): Promise<void> => {
    if (this.#isEnded) return;
    this.stop('released');
    await this.#turn;
    for (let attempt = 0; attempt < conflictLimit && this.#record?.holder === this.#options.identity; attempt++) {
      try {
        const object = this.#object ?? (await this.#read());
        if (object === undefined || this.#record?.holder !== this.#options.identity) return;
        // A duration of one second, as client-go writes it, so that no contender waits for a holder that left.
        const record = { holder: '', durationMs: 1000, transitions: this.#record.transitions, isRenewal: false };
        await this.#write(object, record, 'lease.release');
        return;
      } catch {
        // Without a release, the Lease expires by itself.
        this.#object = undefined;
      }
    }
  };

  #schedule(delayMs: number): void {
    this.#cancelTurn();
    if (this.#isEnded || this.#isTurning) return;
    this.#cancelTurn = this.#options.env.timers.after(delayMs, () => {
      this.#isTurning = true;
      this.#turn = this.#takeTurn();
    });
  }

  async #takeTurn(): Promise<void> {
    const startMs = this.#options.env.clock.monotonicMs();
    try {
      await (this.#leading === undefined ? this.#contend() : this.#renew(this.#leading.epoch));
      this.#setProblem(undefined);
    } catch (error) {
      this.#object = undefined;
      this.#setProblem(problemOf(error));
    }
    this.#isTurning = false;
    this.#schedule(this.#pauseMs(startMs));
  }

  #pauseMs(startMs: number): number {
    const { env, retryPeriodMs } = this.#options;
    const nowMs = env.clock.monotonicMs();
    if (this.#leading !== undefined) {
      return this.#clock.isInDoubt() && this.#problem === undefined ? doubtPauseMs : startMs + retryPeriodMs - nowMs;
    }
    const pauseMs = startMs + retryPeriodMs * (1 + 0.2 * env.random()) - nowMs;
    // Reads again at the moment at which the Lease of a dead holder expires.
    const expiresInMs = this.#isForeign() ? this.#expiresMs() - nowMs : Number.POSITIVE_INFINITY;
    return expiresInMs > 0 ? Math.min(pauseMs, expiresInMs) : pauseMs;
  }

  async #contend(): Promise<void> {
    for (let attempt = 0; attempt < conflictLimit && !this.#isEnded; attempt++) {
      const object = await this.#read();
      const nowMs = this.#options.env.clock.monotonicMs();
      // A deleted Lease blocks until it would have expired: its holder may not know of the deletion.
      if (this.#isEnded || (this.#isForeign() && nowMs < this.#expiresMs())) return;
      const transitions = this.#nextEpoch(object);
      const record = object === undefined ? undefined : leaseRecordOf(object);
      const isRenewal = record?.holder === this.#options.identity && record.transitions === transitions;
      if (await this.#writeHolder(object, { transitions, isRenewal })) return;
    }
  }

  /** Returns the epoch to write. A record of this process keeps its epoch: no other process has held the Lease since. */
  #nextEpoch(object: KubernetesObject | undefined): number {
    const record = object === undefined ? undefined : leaseRecordOf(object);
    const known = this.#highestEpoch;
    return record?.holder === this.#options.identity && record.transitions > 0 && record.transitions >= known
      ? record.transitions
      : known + 1;
  }

  async #renew(epoch: number): Promise<void> {
    for (let attempt = 0; attempt < conflictLimit; attempt++) {
      const object = this.#object ?? (await this.#read());
      if (this.#leading === undefined) return;
      const reason = this.#lossReason(object, epoch);
      if (reason !== undefined) return this.#lose(reason);
      if (await this.#writeHolder(object, { transitions: epoch, isRenewal: true })) return;
    }
  }

  #lossReason(object: KubernetesObject | undefined, epoch: number): string | undefined {
    if (object === undefined) return 'the Lease was deleted';
    const { holder, transitions } = leaseRecordOf(object);
    if (holder === '') return 'the holder was removed from the Lease';
    if (holder !== this.#options.identity) return `${holder} holds the Lease`;
    return transitions === epoch ? undefined : `the Lease was edited: leaseTransitions is ${transitions}, not ${epoch}`;
  }

  /** Writes this process as the holder. Returns false if another process wrote first; the object must then be read again. */
  async #writeHolder(
    existing: KubernetesObject | undefined,
    { transitions, isRenewal }: Pick<NewRecord, 'transitions' | 'isRenewal'>,
  ): Promise<boolean> {
    const { identity, durationMs } = this.#options;
    const sent = this.#clock.beforeSending();
    try {
      const record = { holder: identity, durationMs, transitions, isRenewal };
      await this.#write(existing, record, isRenewal ? 'lease.renew' : 'lease.acquire');
    } catch (error) {
      if (!isStatus(error, 409) && !(isStatus(error, 404) && existing !== undefined)) throw error;
      this.#object = undefined;
      return false;
    }
    if (this.#isEnded) return true;
    this.#clock.renewed(sent);
    if (this.#leading === undefined && this.#clock.mayAct(0)) {
      this.#leading = { epoch: transitions };
      call(() => this.#options.onAcquired(transitions));
    }
    return true;
  }

  async #read(): Promise<KubernetesObject | undefined> {
    const { env, namespace, name } = this.#options;
    const object = await getObject(env, resources.leases, { namespace, name }, { site: 'lease.read', timeoutMs: this.#timeoutMs });
    this.#observe(object);
    return object;
  }

  async #write(
    existing: KubernetesObject | undefined,
    record: Omit<NewRecord, 'nowMs'>,
    site: 'lease.acquire' | 'lease.renew' | 'lease.release',
  ): Promise<void> {
    const { env, namespace, name, identity, version } = this.#options;
    const spec = leaseSpec(existing, { ...record, nowMs: env.clock.nowMs() });
    const annotations = { ...existing?.metadata.annotations, ...(version && { [holderVersionAnnotation]: `${version} ${identity}` }) };
    const metadata = { namespace, ...existing?.metadata, name, ...(version && { annotations }) };
    const options = { site, timeoutMs: this.#timeoutMs };
    // The state of the object is unknown until the response arrives.
    this.#object = undefined;
    const written =
      existing === undefined
        ? await createObject(env, resources.leases, { ...typed, metadata, spec }, options)
        : await replaceObject(env, resources.leases, { ...existing, metadata, spec }, options);
    this.#observe(written);
  }

  /** Keeps the object and its record. If the Lease was deleted, the previous record stays. */
  #observe(object: KubernetesObject | undefined): void {
    this.#object = object;
    if (object === undefined) return;
    const record = leaseRecordOf(object);
    const before = this.#record;
    if (record.fingerprint === before?.fingerprint) return;
    this.#record = record;
    this.#observedMs = this.#options.env.clock.monotonicMs();
    this.#highestEpoch = Math.max(this.#highestEpoch, record.transitions);
    if (record.holder !== (before?.holder ?? '') && !this.#isEnded) call(() => this.#options.onHolder?.(record.holder || undefined));
  }

  #isForeign(): boolean {
    return this.#record !== undefined && this.#record.holder !== '' && this.#record.holder !== this.#options.identity;
  }

  /** Returns the time of expiry, measured by our clock from the last observed change: clocks of two machines are never compared. */
  #expiresMs(): number {
    return this.#observedMs + Math.max(this.#options.durationMs, this.#record?.durationMs ?? 0);
  }

  #lose(reason: string): void {
    this.#clock.stop();
    if (this.#leading === undefined) return;
    this.#leading = undefined;
    call(() => this.#options.onLost(reason));
  }

  #setProblem(problem: LeaseProblem | undefined): void {
    if (problem?.reason === this.#problem?.reason && problem?.message === this.#problem?.message) return;
    this.#problem = problem;
    if (!this.#isEnded) call(() => this.#options.onProblem?.(problem));
  }
}

const typed = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' };

function problemOf(error: unknown): LeaseProblem {
  const message = messageOf(error);
  if (isStatus(error, 403)) return { reason: 'forbidden', message };
  if (isStatus(error, 404) && !(error instanceof TransportFailure)) return { reason: 'missing', message };
  return { reason: 'unreachable', message };
}

/** Calls a listener whose exceptions must not lose the Lease. */
function call(listener: () => void): void {
  try {
    listener();
  } catch {
    // A failure of the listener changes nothing about the Lease.
  }
}

interface LeaseRecord {
  /** Empty after a release. */
  readonly holder: string;
  /** The duration that the holder announced, in milliseconds; 0 if invalid. */
  readonly durationMs: number;
  readonly transitions: number;
  /** A text that changes with the record, but not with labels. */
  readonly fingerprint: string;
}

/** The longest duration that counts, so that an edited Lease cannot block other processes for longer. */
const longestDurationMs = 600_000;

function leaseRecordOf(object: KubernetesObject): LeaseRecord {
  const spec = isJsonObject(object['spec']) ? object['spec'] : {};
  const { holderIdentity, leaseDurationSeconds, leaseTransitions, renewTime, acquireTime } = spec;
  const isCount = (value: unknown): value is number => typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
  return {
    holder: typeof holderIdentity === 'string' ? holderIdentity : '',
    durationMs: isCount(leaseDurationSeconds) ? Math.min(leaseDurationSeconds * 1000, longestDurationMs) : 0,
    transitions: isCount(leaseTransitions) ? leaseTransitions : 0,
    fingerprint: JSON.stringify([holderIdentity, leaseDurationSeconds, leaseTransitions, renewTime, acquireTime]),
  };
}

interface NewRecord {
  readonly holder: string;
  readonly durationMs: number;
  readonly transitions: number;
  /** The wall clock in milliseconds. Contenders only notice that it changes, and never compare it with a clock. */
  readonly nowMs: number;
  /** True if the acquire time stays. */
  readonly isRenewal: boolean;
}

/** Returns the spec with the record; other fields stay. */
function leaseSpec(existing: KubernetesObject | undefined, { holder, durationMs, transitions, nowMs, isRenewal }: NewRecord): JsonObject {
  const spec = isJsonObject(existing?.['spec']) ? existing['spec'] : {};
  const now = microTime(nowMs);
  return {
    ...spec,
    holderIdentity: holder,
    leaseDurationSeconds: Math.max(1, Math.ceil(durationMs / 1000)),
    acquireTime: isRenewal ? (spec['acquireTime'] ?? now) : now,
    renewTime: now,
    leaseTransitions: transitions,
  };
}
