// Keeps the server certificate in a Secret that all replicas share: creates it, renews it, and serves a certificate that clients trust.
import { Backoff, soon } from '../../cluster/request/backoff.ts';
import { askedPauseMs, isStatus } from '../../cluster/request/failure.ts';
import { resources } from '../../cluster/request/resource.ts';
import { SharedObject } from '../../cluster/shared/shared-object.ts';
import { Reflector } from '../../cluster/watch/reflector.ts';
import { messageOf } from '../../policies/error-message.ts';
import type { WebhookEnv } from '../env.ts';
import { type IssueOptions, issuePair } from './authority.ts';
import type { Pair } from './pair.ts';
import {
  ForeignSecret,
  instantOf,
  isSamePair,
  type PlanInput,
  planSecret,
  renewalMs,
  type SecretState,
  type ServedPair,
  secretOf,
  secretStateOf,
  type UsableCertificates,
} from './secret-plan.ts';
import { type CertificateSource, Listeners, type TlsMaterial } from './source.ts';

const requestTimeoutMs = 10_000;
/** Poll interval with a watch, because a watch may miss changes. */
const watchedPollMs = 600_000;
/** Poll interval without a watch, for example if a Role permits only `get` and `update`. */
const pollMs = 60_000;
/** Renewal is due after 62 to 67 % of the lifetime. With jitter, one replica renews first, and the others read its result. */
const renewShare = 2 / 3;
const renewJitter = 0.05;
/** Time that API servers need to read a CA certificate after all configurations contain it. */
const settleMs = 30_000;
/** Time after which clients probably trust a new CA certificate. It counts only if `isTrusted` returns undefined. */
const assumedTrustMs = 86_400_000;
/** Minimum time between our switch to a certificate and the removal of the previous one: other replicas may switch later. */
const switchedMs = 600_000;
/** Interval of the trust check while the previous certificate is served. */
const askMs = 30_000;
/** Delays between two writes. They double with each write, because another tool may undo the writes repeatedly. */
const pace = { firstMs: 1000, lastMs: 120_000 };
/** After this time without a write, the delays start at `firstMs` again. */
const calmMs = 600_000;

export interface SecretKeeperOptions extends Omit<IssueOptions, 'nowMs'> {
  readonly env: WebhookEnv;
  readonly namespace: string;
  /** The name of the Secret. */
  readonly name: string;
  /** Returns whether all clients trust this CA certificate (PEM). Returns undefined if unknown; then a new certificate waits a day. */
  readonly isTrusted?: (authority: string) => boolean | undefined;
}

/** Creates the Secret if it is missing, then repairs and renews it until `stop`. Retries failures without limit; only `refresh` rejects. */
export class SecretKeeper implements CertificateSource {
  readonly #listeners = new Listeners();
  readonly #options: SecretKeeperOptions;
  readonly #secret: SharedObject<SecretState>;
  readonly #backoff: Backoff;
  readonly #pace: Backoff;
  /** Time of the last write, on the monotonic clock. */
  #writtenMs = Number.NEGATIVE_INFINITY;
  /** Earliest time of the next read, on the monotonic clock. */
  #nextReadMs = 0;
  readonly #renewShare: number;
  readonly #watch: Reflector<string>;
  #seenVersion: string | undefined;
  #stored: UsableCertificates | undefined;
  #served: ServedPair | undefined;
  /** On the monotonic clock. */
  #servedSinceMs = 0;
  #trusted: { readonly pair: Pair; readonly sinceMs: number } | undefined;
  #problem: string | undefined;
  #cancelRead: () => void = () => undefined;
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
      decode: (secret) => secretStateOf(secret, env.clock.nowMs()),
      encode: (state, existing) => (state.kind === 'usable' ? secretOf(state, existing) : {}),
    });
    this.#watch = new Reflector<string>({
      env,
      namespace,
      resource: resources.secrets,
      site: 'certificates.secret',
      fieldSelector: `metadata.name=${name}`,
      // The watch only signals a change; `refresh` reads the content with a quorum read.
      project: ({ metadata }) => metadata.resourceVersion ?? '',
      onChange: ({ view }) => {
        if (view === undefined || view !== this.#seenVersion) this.#readAfter(0);
      },
    });
    this.#readAfter(0);
  }

  readonly current = (): TlsMaterial | undefined => {
    const served = this.#served;
    return served === undefined ? undefined : { cert: served.pair.cert, key: served.pair.key, ca: served.ca };
  };

  readonly caBundle = (): string | undefined => this.#stored?.ca;

  readonly onChange = this.#listeners.add;

  readonly problem = (): string | undefined => this.#problem;

  /** Stops all timers and watches. The last certificate stays in use. */
  readonly stop = (): void => {
    this.#isStopped = true;
    this.#cancelRead();
    this.#cancelAsk();
    this.#watch.stop();
  };

  /** Chooses the served certificate again, because the trust of clients may have changed. */
  readonly reconsider = (): void => {
    if (!this.#isStopped) this.#choose();
  };

  /** Reads the Secret and repairs it. Rejects if the read or the repair fails; the served certificate stays. */
  readonly refresh = async (): Promise<void> => {
    const { env, namespace, name } = this.#options;
    let reason: string | undefined;
    try {
      const { value, resourceVersion } = await this.#secret.update((state) => {
        const plan = planSecret(state, this.#planInput(state));
        reason = plan.reason;
        return plan.state;
      });
      if (this.#isStopped || value.kind !== 'usable') return;
      this.#seenVersion = resourceVersion;
      this.#stored = value;
      if (reason !== undefined) {
        this.#noteWrite();
        const notAfter = instantOf(value.current.notAfterMs);
        env.log.info('wrote the certificate to its Secret', { secret: `${namespace}/${name}`, reason, notAfter });
      }
      this.#succeed();
    } catch (error) {
      this.#fail(error);
      throw error;
    }
    this.#choose();
  };

  #noteWrite(): void {
    const nowMs = this.#options.env.clock.monotonicMs();
    if (nowMs - this.#writtenMs >= calmMs) this.#pace.reset();
    this.#writtenMs = nowMs;
    this.#nextReadMs = nowMs + this.#pace.nextMs();
  }

  #planInput(state: SecretState): PlanInput {
    const { env, names, organization, lifetimeMs, randomBytes } = this.#options;
    const nowMs = env.clock.nowMs();
    const served = this.#served;
    const isServed = state.kind === 'usable' && served !== undefined && isSamePair(served.pair, state.current);
    return {
      nowMs,
      names,
      renewShare: this.#renewShare,
      served,
      keepsServed: state.kind === 'usable' && served !== undefined && !isServed && !this.#maySwitch(served.pair, state),
      isSettled: isServed && env.clock.monotonicMs() - this.#servedSinceMs >= switchedMs,
      issue: (all) => issuePair({ names: all, organization, nowMs, lifetimeMs, randomBytes }),
    };
  }

  /** Serves the current certificate, or the previous one while clients may not trust the current one. */
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
      env.log.info('switched to another certificate', { notAfter: instantOf(next.pair.notAfterMs), isFirst: last === undefined });
    }
    this.#served = next;
    if (!isOther && last.ca === next.ca) return;
    const failure = this.#listeners.call();
    if (failure !== undefined) env.log.error('a listener of the certificate failed', { error: messageOf(failure) });
  }

  /** Returns whether the keeper may serve the current certificate: clients trust it, or the certificate `before` has expired. */
  #maySwitch(before: Pair, { current, authority }: UsableCertificates): boolean {
    const { env, isTrusted } = this.#options;
    if (before.notAfterMs <= env.clock.nowMs()) return true;
    const answer = isTrusted?.(authority);
    if (answer === undefined) return env.clock.nowMs() >= current.notBeforeMs + assumedTrustMs;
    if (!answer) {
      this.#trusted = undefined;
      return false;
    }
    const nowMs = env.clock.monotonicMs();
    if (this.#trusted === undefined || !isSamePair(this.#trusted.pair, current)) this.#trusted = { pair: current, sinceMs: nowMs };
    return nowMs - this.#trusted.sinceMs >= settleMs;
  }

  #readAfter(delayMs: number): void {
    if (this.#isStopped) return;
    this.#cancelRead();
    const { clock, timers } = this.#options.env;
    const atLeastMs = this.#nextReadMs - clock.monotonicMs();
    this.#cancelRead = timers.after(Math.max(delayMs, atLeastMs), () => {
      // `refresh` has stored and logged the failure, and scheduled the next read.
      void this.refresh().catch(() => undefined);
    });
  }

  #succeed(): void {
    const { env } = this.#options;
    this.#backoff.reset();
    if (this.#problem !== undefined) env.log.info('the Secret of the certificate is valid again', this.#fields());
    this.#problem = undefined;
    const periodMs = (this.#watch.state().kind === 'synced' ? watchedPollMs : pollMs) * (0.9 + 0.2 * env.random());
    const dueMs = this.#stored === undefined ? 0 : renewalMs(this.#stored, this.#renewShare) - env.clock.nowMs();
    this.#readAfter(Math.max(1000, Math.min(periodMs, dueMs)));
  }

  #fail(error: unknown): void {
    if (this.#isStopped) return;
    const { env } = this.#options;
    const message = this.#problemText(error);
    if (this.#problem !== message) {
      const isServed = this.#served !== undefined;
      env.log.error('the certificate in the Secret cannot be used or stored', { ...this.#fields(), problem: message, isServed });
      this.#problem = message;
    }
    this.#readAfter(Math.max(this.#backoff.nextMs(), askedPauseMs(error) ?? 0));
  }

  #problemText(error: unknown): string {
    const { namespace, name } = this.#options;
    const secret = `Secret ${namespace}/${name}`;
    if (error instanceof ForeignSecret) {
      return `${secret} contains other data: ${error.message}; name another Secret, or mount this one and pass its files as certificate and key`;
    }
    if (isStatus(error, 403)) return `${secret}: ${error.message}; grant create on secrets, and get and update on this one`;
    if (isStatus(error, 422)) return `${secret}: ${error.message}; delete it if it is immutable`;
    return `${secret}: ${messageOf(error)}`;
  }

  #fields() {
    return { secret: `${this.#options.namespace}/${this.#options.name}` };
  }
}
