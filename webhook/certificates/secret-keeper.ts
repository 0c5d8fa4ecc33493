// Keeps the server's certificate in a Secret that all replicas share: makes it, renews it, and serves what clients trust.

import { Backoff, soon } from '../../cluster/request/backoff.ts';
import { askedPauseMs, isStatus } from '../../cluster/request/failure.ts';
import { resources } from '../../cluster/request/resource.ts';
import { SharedObject } from '../../cluster/shared/shared-object.ts';
import { type Reflector, startReflector } from '../../cluster/watch/reflector.ts';
import { messageOf } from '../../policies/error-message.ts';
import type { WebhookEnv } from '../env.ts';
import { issuePair } from './authority.ts';
import type { Pair } from './pair.ts';
import { ForeignSecret, isSamePair, type Moment, planSecret, renewalMs, type ServedPair } from './secret-plan.ts';
import { instantOf, type SecretState, secretOf, secretStateOf, type UsableCertificates } from './secret-state.ts';
import { type CertificateSource, Listeners, type ServedCertificate, type SourceProblem } from './source.ts';

const requestTimeoutMs = 10_000;
/** The Secret is read this often although a watch says nothing; and when there is no watch, as with a Role that permits `get` and `update` only. */
const watchedPollMs = 600_000;
const pollMs = 60_000;
/** Renewed at two thirds of its life, by the first replica; the others find it done. */
const renewShare = 2 / 3;
const renewJitter = 0.05;
/** An authority that all configurations have is known to all API servers after this long. */
const settleMs = 30_000;
/** Where nobody can tell what clients trust, a new authority has this long to get to them. */
const carryMs = 86_400_000;
/** A certificate is not dropped from the Secret sooner after this process ceased to serve it: other replicas do not cease at the same instant. */
const switchedMs = 600_000;
/** While another certificate than the current is served, clients' trust is asked about this often. */
const askMs = 30_000;
/** Between two writes, doubled from one to the next while they follow each other: somebody may undo them, and not only once. */
const pace = { firstMs: 1000, lastMs: 120_000 };
const calmMs = 600_000;

export interface SecretKeeperOptions {
  readonly env: WebhookEnv;
  readonly namespace: string;
  /** The Secret's name. */
  readonly name: string;
  /** All names of a new certificate, and those without which one is replaced. */
  readonly names: readonly string[];
  readonly neededNames: readonly string[];
  readonly organization: string;
  readonly lifetimeMs: number;
  /** That many random bytes, from a source fit for cryptography. */
  readonly randomBytes: (count: number) => Uint8Array;
  /**
   * Whether all clients that are known trust this authority (PEM); undefined when that cannot be told. A new certificate is served when they do.
   * Left out: after a day.
   */
  readonly isTrusted?: (authority: string) => boolean | undefined;
}

export interface SecretKeeper extends CertificateSource {
  /** Reads the Secret, and mends it where it must be. Rejects when that is not possible now; what is served stays. */
  readonly refresh: () => Promise<void>;
  /** What clients trust may have changed. */
  readonly reconsider: () => void;
  /** Why the Secret cannot be read, written or used; absent while all is well. */
  readonly problem: () => SourceProblem | undefined;
  /** Ends it: no timer and no watch is left. What was served last stays. */
  readonly stop: () => void;
}

/** Starts at once, never throws, and never gives up. */
export function keepSecret(options: SecretKeeperOptions): SecretKeeper {
  const keeper = new Keeper(options);
  keeper.start();
  return {
    current: () => keeper.current(),
    caBundle: () => keeper.caBundle(),
    onChange: (listener) => keeper.listeners.add(listener),
    refresh: () => keeper.refresh(),
    reconsider: () => keeper.reconsider(),
    problem: () => keeper.problem(),
    stop: () => keeper.stop(),
  };
}

class Keeper {
  readonly listeners = new Listeners();
  readonly #options: SecretKeeperOptions;
  readonly #secret: SharedObject<SecretState>;
  readonly #backoff: Backoff;
  readonly #pace: Backoff;
  /** Both on the monotonic clock; no look of our own is sooner than the second. */
  #writtenMs = Number.NEGATIVE_INFINITY;
  #nextLookMs = 0;
  readonly #renewShare: number;
  #watch: Reflector<string> | undefined;
  #seenVersion: string | undefined;
  #stored: UsableCertificates | undefined;
  #served: ServedPair | undefined;
  /** On the monotonic clock. */
  #servedSinceMs = 0;
  #trusted: { readonly pair: Pair; readonly sinceMs: number } | undefined;
  #problem: SourceProblem | undefined;
  #cancelLook: () => void = () => undefined;
  #cancelAsk: () => void = () => undefined;
  #isStopped = false;

  constructor(options: SecretKeeperOptions) {
    const { env, namespace, name } = options;
    this.#options = options;
    this.#backoff = new Backoff(env.random, soon);
    this.#pace = new Backoff(env.random, pace);
    this.#renewShare = renewShare - renewJitter * env.random();
    this.#secret = new SharedObject<SecretState>({
      env,
      namespace,
      name,
      resource: resources.secrets,
      site: 'certificates.secret',
      timeoutMs: requestTimeoutMs,
      // The pauses are kept here, so that what is served can change meanwhile.
      retries: 0,
      decode: (secret) => secretStateOf(secret, env.clock.nowMs()),
      encode: (state, existing) => (state.kind === 'usable' ? secretOf(state, existing) : {}),
    });
  }

  start(): void {
    const { env, namespace, name } = this.#options;
    this.#watch = startReflector<string>({
      env,
      namespace,
      resource: resources.secrets,
      site: 'certificates.secret',
      fieldSelector: `metadata.name=${name}`,
      // Only that it has changed: what it holds is read from the quorum.
      project: ({ metadata }) => metadata.resourceVersion ?? '',
      onChange: ({ view }) => {
        if (view === undefined || view !== this.#seenVersion) this.#lookAfter(0);
      },
    });
    this.#lookAfter(0);
  }

  current(): ServedCertificate | undefined {
    const served = this.#served;
    return served === undefined ? undefined : { cert: served.pair.cert, key: served.pair.key, ca: served.ca };
  }

  caBundle(): string | undefined {
    return this.#stored?.ca;
  }

  problem(): SourceProblem | undefined {
    return this.#problem;
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelLook();
    this.#cancelAsk();
    this.#watch?.stop();
  }

  reconsider(): void {
    if (!this.#isStopped) this.#choose();
  }

  async refresh(): Promise<void> {
    const { env, namespace, name } = this.#options;
    let reason: string | undefined;
    try {
      const { value, resourceVersion } = await this.#secret.update((state) => {
        const plan = planSecret(state, this.#moment(state));
        reason = plan.reason;
        return plan.state;
      });
      if (this.#isStopped || value.kind !== 'usable') return;
      this.#seenVersion = resourceVersion;
      this.#stored = value;
      if (reason !== undefined) {
        this.#wrote();
        const notAfter = instantOf(value.current.notAfterMs);
        env.log.info('the certificate in the Secret was written', { secret: `${namespace}/${name}`, reason, notAfter });
      }
      this.#succeed();
    } catch (error) {
      this.#fail(error);
      throw error;
    }
    this.#choose();
  }

  #wrote(): void {
    const nowMs = this.#options.env.clock.monotonicMs();
    if (nowMs - this.#writtenMs >= calmMs) this.#pace.reset();
    this.#writtenMs = nowMs;
    this.#nextLookMs = nowMs + this.#pace.nextMs();
  }

  #moment(state: SecretState): Moment {
    const { env, neededNames, names, organization, lifetimeMs, randomBytes } = this.#options;
    const nowMs = env.clock.nowMs();
    const served = this.#served;
    const isServed = state.kind === 'usable' && served !== undefined && isSamePair(served.pair, state.current);
    return {
      nowMs,
      names,
      needed: neededNames,
      renewShare: this.#renewShare,
      served,
      keepsServed: state.kind === 'usable' && served !== undefined && !isServed && !this.#maySwitch(served.pair, state),
      isSettled: isServed && env.clock.monotonicMs() - this.#servedSinceMs >= switchedMs,
      issue: (all) => issuePair({ names: all, organization, nowMs, lifetimeMs, randomBytes }),
    };
  }

  /** Serves the current certificate, or still the one before. */
  #choose(): void {
    const stored = this.#stored;
    if (stored === undefined) return;
    this.#cancelAsk();
    const { env } = this.#options;
    const { previous } = stored;
    const before = this.#served?.pair ?? previous;
    const isKept = before !== undefined && !isSamePair(before, stored.current) && !this.#maySwitch(before, stored);
    const pair = isKept ? before : stored.current;
    if (isKept) this.#cancelAsk = env.timers.after(askMs, () => this.#choose());
    this.#serve({ pair, ca: stored.ca });
  }

  #serve(next: ServedPair): void {
    const { env } = this.#options;
    const last = this.#served;
    const isOther = last === undefined || !isSamePair(last.pair, next.pair);
    if (isOther) {
      this.#servedSinceMs = env.clock.monotonicMs();
      env.log.info('another certificate is served', { notAfter: instantOf(next.pair.notAfterMs), isFirst: last === undefined });
    }
    this.#served = next;
    if (!isOther && last.ca === next.ca) return;
    const failure = this.listeners.call();
    if (failure !== undefined) env.log.error('a listener of the certificate failed', { error: messageOf(failure) });
  }

  /** Whether clients trust the current certificate, or the one before is of no use any more. */
  #maySwitch(before: Pair, { current, authority }: UsableCertificates): boolean {
    const { env, isTrusted } = this.#options;
    if (before.notAfterMs <= env.clock.nowMs()) return true;
    const answer = isTrusted?.(authority);
    if (answer === undefined) return env.clock.nowMs() >= current.notBeforeMs + carryMs;
    if (!answer) {
      this.#trusted = undefined;
      return false;
    }
    const nowMs = env.clock.monotonicMs();
    if (this.#trusted === undefined || !isSamePair(this.#trusted.pair, current)) this.#trusted = { pair: current, sinceMs: nowMs };
    return nowMs - this.#trusted.sinceMs >= settleMs;
  }

  #lookAfter(delayMs: number): void {
    if (this.#isStopped) return;
    this.#cancelLook();
    const { clock, timers } = this.#options.env;
    const atLeastMs = this.#nextLookMs - clock.monotonicMs();
    this.#cancelLook = timers.after(Math.max(delayMs, atLeastMs), () => {
      // What went wrong is kept, logged, and has planned the next look.
      void this.refresh().catch(() => undefined);
    });
  }

  #succeed(): void {
    const { env } = this.#options;
    this.#backoff.reset();
    if (this.#problem !== undefined) env.log.info('the Secret of the certificate is in order again', this.#fields());
    this.#problem = undefined;
    const periodMs = (this.#watch?.state().kind === 'synced' ? watchedPollMs : pollMs) * (0.9 + 0.2 * env.random());
    const dueMs = this.#stored === undefined ? 0 : renewalMs(this.#stored, this.#renewShare) - env.clock.nowMs();
    this.#lookAfter(Math.max(1000, Math.min(periodMs, dueMs)));
  }

  #fail(error: unknown): void {
    if (this.#isStopped) return;
    const { env } = this.#options;
    const message = this.#explained(error);
    if (this.#problem?.message !== message) {
      const isServed = this.#served !== undefined;
      env.log.error('the certificate in the Secret cannot be used or kept', { ...this.#fields(), problem: message, isServed });
      this.#problem = { message, sinceMs: this.#problem?.sinceMs ?? env.clock.nowMs() };
    }
    this.#lookAfter(Math.max(this.#backoff.nextMs(), askedPauseMs(error) ?? 0));
  }

  /** What, where, why, and what to do. */
  #explained(error: unknown): string {
    const { namespace, name } = this.#options;
    const secret = `Secret ${namespace}/${name}`;
    if (error instanceof ForeignSecret) {
      return `${secret} belongs to somebody else: ${error.message}; name another Secret, or serve its files as certificate and key`;
    }
    if (isStatus(error, 403)) return `${secret}: ${error.message}; grant create on secrets, and get and update on this one`;
    if (isStatus(error, 422)) return `${secret}: ${error.message}; delete it if it is immutable`;
    return `${secret}: ${messageOf(error)}`;
  }

  #fields() {
    return { secret: `${this.#options.namespace}/${this.#options.name}` };
  }
}
