// Tracks whether this process may act: as holder of the Lease, or without a Lease.

import { Lease, type LeaseProblem } from '../cluster/lease/lease.ts';
import { ApiFailure, isStatus } from '../cluster/request/failure.ts';
import { isJsonObject, parseJson } from '../cluster/request/json.ts';
import { getObject } from '../cluster/request/read.ts';
import { resources } from '../cluster/request/resource.ts';
import { defined } from '../policies/values/defined.ts';
import type { AgentConfig } from './config.ts';
import type { AgentEnv } from './env.ts';
import type { Degradation, TurnListener } from './report.ts';

interface LeadershipListener {
  /** Called when this process gets or loses the right to act. */
  readonly onChange: (isLeader: boolean) => void;
  /** Called when the holder or the problem changed. */
  readonly onState: () => void;
}

/** The pause before Leases count as forbidden: a starting API server denies requests that it allows later. */
const proofPauseMs = 5_000;

/** Competes for the Lease. In mode `off`, and in `auto` if Leases are forbidden or not served, the process acts alone. */
export class Leadership {
  readonly #env: AgentEnv;
  readonly #config: AgentConfig;
  readonly #listener: LeadershipListener;
  #lease: Lease | undefined;
  #problem: LeaseProblem | undefined;
  #isAlone: boolean;
  /** True after this process saw a holder of the Lease or acquired the Lease. Then Leases do not count as forbidden. */
  #isUsable = false;
  #isOver = false;
  #cancelProof: (() => void) | undefined;

  constructor(env: AgentEnv, config: AgentConfig, listener: LeadershipListener) {
    this.#env = env;
    this.#config = config;
    this.#listener = listener;
    this.#isAlone = this.#config.lease.mode === 'off';
    if (this.#config.lease.mode !== 'off') {
      this.#lease = new Lease({
        env: this.#env,
        namespace: config.agentNamespace,
        identity: config.identity,
        ...config.lease,
        onAcquired: (epoch) => {
          this.#isUsable = true;
          this.#isAlone = false;
          this.#env.log.info('leadership acquired', { epoch });
          this.#listener.onChange(true);
          this.#listener.onState();
        },
        onLost: (reason) => {
          this.#isAlone = false;
          this.#env.log.warn('leadership lost', { reason });
          this.#listener.onChange(false);
          this.#listener.onState();
        },
        onHolder: (holder) => {
          this.#isUsable = true;
          // Another process holds the Lease, so Leases can be used.
          if (this.#isAlone && holder !== undefined && holder !== this.#config.identity) {
            this.#isAlone = false;
            this.#listener.onChange(false);
          }
          this.#listener.onState();
        },
        onProblem: (current) => this.#noteProblem(current),
      });
    } else {
      // As with a Lease, the listener is called only after the constructor returned.
      void Promise.resolve().then(() => {
        if (this.#isOver) return;
        this.#listener.onChange(true);
        this.#listener.onState();
      });
    }
  }

  /** Returns whether a request that takes up to `timeoutMs` may be sent now. Call this method immediately before each request. */
  mayAct(timeoutMs: number): boolean {
    return !this.#isOver && (this.#isAlone || this.#lease?.mayAct(timeoutMs) === true);
  }

  /** Returns how many milliseconds a request sent now may take: 0 or less if no request may be sent, infinite if the process acts alone. */
  leftMs(): number {
    return this.#isOver ? 0 : this.#isAlone ? Number.POSITIVE_INFINITY : (this.#lease?.leftMs() ?? 0);
  }

  /** Returns the epoch, which grows with each change of holder; 0 if this process acts alone, undefined while it may not act. */
  epoch(): number | undefined {
    return this.#isOver ? undefined : this.#epoch();
  }

  state(): Parameters<NonNullable<TurnListener['leadershipChanged']>>[0] {
    const epoch = this.#epoch();
    const holder = this.#isAlone ? this.#config.identity : this.#lease?.holder();
    return defined({ isLeader: epoch !== undefined, epoch, holder });
  }

  degradation(): Degradation | undefined {
    if (this.#problem === undefined) return undefined;
    const { reason, message } = this.#problem;
    const consequence = this.#isAlone
      ? 'the agent acts without a Lease; run only one process'
      : 'no action is taken until a process holds it';
    return { id: 'lease', reason, message: `the Lease cannot be used (${message}); ${consequence}` };
  }

  /** Releases the Lease. No write may be in flight. */
  async release(): Promise<void> {
    this.#isOver = true;
    this.#cancelProof?.();
    await this.#lease?.release();
  }

  /** Ends without releasing the Lease, as a crash would: the Lease expires. */
  stop(): void {
    this.#isOver = true;
    this.#cancelProof?.();
    this.#lease?.stop();
  }

  #noteProblem(current: LeaseProblem | undefined): void {
    this.#problem = current;
    if (this.#needsProof() && this.#cancelProof === undefined) this.#proveLater();
    this.#listener.onState();
  }

  #needsProof(): boolean {
    return this.#config.lease.mode === 'auto' && isUnusable(this.#problem) && !this.#isAlone && !this.#isUsable && !this.#isOver;
  }

  /** Acts alone only if access to the Lease is still forbidden after a pause. */
  #proveLater(): void {
    this.#cancelProof = this.#env.timers.after(proofPauseMs, () => void this.#prove());
  }

  async #prove(): Promise<void> {
    const isRefused = await areLeasesRefused(this.#env, { namespace: this.#config.agentNamespace, name: this.#config.lease.name });
    this.#cancelProof = undefined;
    if (!this.#needsProof()) return;
    if (!isRefused) return this.#proveLater();
    this.#isAlone = true;
    this.#env.log.warn('agent acts without a Lease: Leases are forbidden or not served', { problem: this.#problem?.message });
    this.#listener.onChange(true);
    this.#listener.onState();
  }

  #epoch(): number | undefined {
    return this.#isAlone ? 0 : this.#lease?.epoch();
  }
}

function isUnusable(problem: LeaseProblem | undefined): boolean {
  return problem?.reason === 'forbidden' || problem?.reason === 'missing';
}

type LeaseName = Readonly<Record<'namespace' | 'name', string>>;
type Port = Pick<AgentEnv, 'kubernetes'>;

const verbs = ['get', 'create', 'update'] as const;
const proofTimeoutMs = 5_000;

/** Returns true only if the server forbids or lacks Leases. Returns false if it does not answer: another process may be leading. */
async function areLeasesRefused(env: Port, lease: LeaseName): Promise<boolean> {
  let isReadRefused = false;
  try {
    await getObject(env, resources.leases, lease, { site: 'leaseProof.read', timeoutMs: proofTimeoutMs });
  } catch (error) {
    // Leases are not served, or the namespace does not exist: no process can hold one.
    if (isStatus(error, 404)) return true;
    if (!isStatus(error, 403)) return false;
    isReadRefused = true;
  }
  try {
    for (const verb of verbs) if (!(await isPermitted(env, verb, lease))) return true;
    return false;
  } catch (error) {
    return isReadRefused && isStatus(error, 403, 404);
  }
}

/** Returns whether the API server permits the verb. Throws ApiFailure and TransportFailure. */
async function isPermitted({ kubernetes }: Port, verb: (typeof verbs)[number], { namespace, name }: LeaseName): Promise<boolean> {
  const { group, plural: resource } = resources.leases;
  const site = 'leaseProof.review';
  const response = await kubernetes.request({
    method: 'POST',
    path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    body: JSON.stringify({
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: { namespace, verb, group, resource, ...(verb === 'create' ? {} : { name }) } },
    }),
    timeoutMs: proofTimeoutMs,
    site,
  });
  if (response.status !== 200 && response.status !== 201) throw new ApiFailure(response, site);
  const answer = parseJson(response.body);
  const status = isJsonObject(answer) ? answer['status'] : undefined;
  // Only a clear answer counts as a denial.
  return !isJsonObject(status) || status['allowed'] !== false;
}
