// The ledgers of all groups: one ConfigMap each, written by compare-and-swap; in memory where ConfigMaps are forbidden.
import { isStatus } from '../../cluster/request/failure.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { SharedObject } from '../../cluster/shared/shared-object.ts';
import { emptyLedger } from '../../engine/ledger/ledger.ts';
import { decodeLedger, encodeLedger, ledgerKey, ledgerLabel, ledgerName, releaseLabel } from '../../engine/ledger/ledger-document.ts';
import { isUnknown, type Ledger } from '../../engine/snapshot.ts';
import type { AgentEnv } from '../env.ts';
import type { Degradation } from '../report.ts';
import { groupKey } from '../wake-index.ts';

/** Another process wrote the ledger since it was read, so the decision is void. */
export class LedgerChanged extends Error {
  override readonly name = 'LedgerChanged';
}

/** The stored ledger has an unknown format, or would exceed the size limit. */
export class LedgerUnusable extends Error {
  override readonly name = 'LedgerUnusable';
}

export interface LedgerIdentity {
  readonly namespace: string;
  readonly name: string;
}

interface LedgersOptions {
  /** Timeout of each request in milliseconds. */
  readonly timeoutMs: number;
  /** Reports whether a ledger in memory is better than none: only for an agent that acts without a Lease, or may do so. */
  readonly mayUseMemory: () => boolean;
  /** Asked before each write is sent. */
  readonly mayWrite: () => boolean;
  readonly onDegraded: () => void;
}

/** The store of ledgers. */
export class Ledgers {
  readonly #env: AgentEnv;
  readonly #options: LedgersOptions;
  readonly #shared = new Map<string, SharedObject<Ledger>>();
  readonly #memory = new Map<string, Ledger>();
  #forbidden: string | undefined;

  constructor(env: AgentEnv, options: LedgersOptions) {
    this.#env = env;
    this.#options = options;
  }

  /** As it is stored now, read from the quorum. Rejects when it cannot be read; with LedgerUnusable when it is not understood. */
  read(group: LedgerIdentity): Promise<Ledger> {
    return this.#orMemory(
      async () => {
        const { value } = await this.#objectOf(group).read();
        // A ledger kept in memory while the server denied access is still true afterwards.
        return this.#memory.get(groupKey(group)) ?? value;
      },
      () => this.#memory.get(groupKey(group)) ?? emptyLedger(group.namespace, group.name),
    );
  }

  /** Stores `next` if the ledger is still `base`. Rejects with LedgerChanged when it is not. */
  write(group: LedgerIdentity, base: Ledger, next: Ledger): Promise<void> {
    return this.#orMemory(
      async () => {
        const expected = this.#memory.has(groupKey(group)) ? undefined : textOf(base);
        await this.#objectOf(group).update((current) => {
          if (expected !== undefined && textOf(current) !== expected) throw new LedgerChanged('another process wrote the ledger');
          return next;
        });
        this.#memory.delete(groupKey(group));
      },
      () => void this.#memory.set(groupKey(group), next),
    );
  }

  /** Forgets what is held for other groups than these, but for ledgers that are nowhere else and still say something. */
  keep(groups: readonly LedgerIdentity[]): void {
    const keys = new Set(groups.map(groupKey));
    for (const key of this.#shared.keys()) if (!keys.has(key)) this.#shared.delete(key);
    for (const [key, { claims, preparations, downscales }] of this.#memory) {
      if (!keys.has(key) && claims.length + preparations.length + downscales.length === 0) this.#memory.delete(key);
    }
  }

  degradation(): Degradation | undefined {
    if (this.#forbidden === undefined) return undefined;
    const consequence = this.#options.mayUseMemory()
      ? 'disruption claims are kept in memory and lost on restart; run only one process'
      : 'no action is taken, because the next leader could not read the disruption claims';
    return { id: 'ledger', reason: 'forbidden', message: `ledgers cannot be stored in ConfigMaps (${this.#forbidden}): ${consequence}` };
  }

  #objectOf(group: LedgerIdentity): SharedObject<Ledger> {
    const key = groupKey(group);
    const known = this.#shared.get(key);
    if (known !== undefined) return known;
    const name = ledgerName(group.name);
    const site = 'ledger';
    const codec = { decode: (object: KubernetesObject | undefined) => decode(object, group), encode };
    const created = new SharedObject<Ledger>({
      env: this.#env,
      resource: resources.configMaps,
      namespace: group.namespace,
      name,
      ...codec,
      mayWrite: this.#options.mayWrite,
      // A turn that waits here waits with its place among all turns; the loop makes its pauses.
      retries: 0,
      timeoutMs: this.#options.timeoutMs,
      site,
    });
    this.#shared.set(key, created);
    return created;
  }

  /** Uses memory if the API server forbids ConfigMaps and `mayUseMemory` permits it. */
  async #orMemory<Value>(attempt: () => Promise<Value>, inMemory: () => Value): Promise<Value> {
    try {
      const value = await attempt();
      if (this.#forbidden !== undefined) {
        this.#forbidden = undefined;
        this.#options.onDegraded();
      }
      return value;
    } catch (error) {
      if (!isStatus(error, 403)) throw error;
      const isNews = this.#forbidden === undefined;
      this.#forbidden = error.message;
      if (isNews) {
        this.#env.log.error('ledger cannot be stored', { problem: error.message });
        this.#options.onDegraded();
      }
      if (!this.#options.mayUseMemory()) throw error;
      return inMemory();
    }
  }
}

function decode(object: KubernetesObject | undefined, { namespace, name }: LedgerIdentity): Ledger {
  const data = object?.['data'];
  const text: unknown = typeof data === 'object' && data !== null ? Reflect.get(data, ledgerKey) : undefined;
  const ledger = decodeLedger(typeof text === 'string' ? text : undefined, { namespace, group: name });
  if (isUnknown(ledger)) throw new LedgerUnusable(ledger.unknown);
  return ledger;
}

function encode(ledger: Ledger, existing: KubernetesObject | undefined) {
  const text = textOf(ledger);
  const data = existing?.['data'];
  const before = existing?.metadata.labels;
  // An omitted label would stay, so a label that no longer applies gets another value.
  const follows = ledger.release !== undefined ? releaseLabel.value : before?.[releaseLabel.key] && releaseLabel.otherwise;
  const labels = { ...before, ...(follows === undefined ? {} : { [releaseLabel.key]: follows }), [ledgerLabel.key]: ledgerLabel.value };
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { labels },
    data: { ...(typeof data === 'object' ? data : {}), [ledgerKey]: text },
  };
}

/** Returns the text to store, which does not depend on the order of lists. */
function textOf(ledger: Ledger): string {
  const text = encodeLedger(ledger);
  if (isUnknown(text)) throw new LedgerUnusable(text.unknown);
  return text;
}
