// Reads and writes the ledger of each group in a ConfigMap by compare-and-swap, or in memory if ConfigMaps are forbidden.
import { isStatus } from '../../cluster/request/failure.ts';
import { asJsonObject } from '../../cluster/request/json.ts';
import { dataText, type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { SharedObject } from '../../cluster/shared/shared-object.ts';
import { decodeLedger, encodeLedger, ledgerKey, ledgerLabel, ledgerName, releaseLabel } from '../../engine/ledger/ledger-document.ts';
import { emptyLedger, isUnknown, type Ledger } from '../../engine/snapshot.ts';
import { getOrCreate, keptByObject } from '../../policies/values/map.ts';
import type { AgentEnv } from '../env.ts';
import type { Degradation } from '../report.ts';
import { groupKey, removedKeys } from '../wake-index.ts';

/** The error after which a decision is void, because another process wrote the ledger since it was read. */
export class LedgerChanged extends Error {
  override readonly name = 'LedgerChanged';
}

/** The error for a ledger with an unknown format or above the size limit. */
export class LedgerUnusable extends Error {
  override readonly name = 'LedgerUnusable';
}

export interface LedgerIdentity {
  readonly namespace: string;
  readonly name: string;
}

interface LedgersOptions {
  readonly timeoutMs: number;
  /** Returns whether a ledger in memory may replace a forbidden ConfigMap. Only an agent that may act without a Lease permits it. */
  readonly mayUseMemory: () => boolean;
  /** Returns whether this process may write. Called before each write. */
  readonly mayWrite: () => boolean;
  readonly onDegraded: () => void;
}

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

  /** Returns the stored ledger from a quorum read. Rejects if the read fails, and with LedgerUnusable if the text cannot be parsed. */
  read(group: LedgerIdentity): Promise<Ledger> {
    return this.#orMemory(
      async () => {
        const { value } = await this.#objectOf(group).read();
        // A ledger that was kept in memory while access was forbidden is newer than the stored ledger.
        return this.#memory.get(groupKey(group)) ?? value;
      },
      () => this.#memory.get(groupKey(group)) ?? emptyLedger(group.namespace, group.name),
    );
  }

  /** Stores `next` if the stored ledger still equals `base`. Rejects with LedgerChanged if not. */
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

  /** Forgets the groups that are not in `groups`. A ledger in memory stays if it has claims, preparations or downscales. */
  keep(groups: readonly LedgerIdentity[]): void {
    for (const key of removedKeys(this.#shared.keys(), groups)) this.#shared.delete(key);
    for (const key of removedKeys(this.#memory.keys(), groups)) {
      const { claims = [], preparations = [], downscales = [] } = this.#memory.get(key) ?? {};
      if (claims.length + preparations.length + downscales.length === 0) this.#memory.delete(key);
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
    const create = (): SharedObject<Ledger> =>
      new SharedObject<Ledger>({
        env: this.#env,
        resource: resources.configMaps,
        namespace: group.namespace,
        name: ledgerName(group.name),
        decode: (object) => decode(object, group),
        encode,
        mayWrite: this.#options.mayWrite,
        timeoutMs: this.#options.timeoutMs,
        site: 'ledger',
      });
    return getOrCreate(this.#shared, groupKey(group), create);
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
  const ledger = decodeLedger(dataText(object, ledgerKey), { namespace, group: name });
  if (isUnknown(ledger)) throw new LedgerUnusable(ledger.unknown);
  return ledger;
}

function encode(ledger: Ledger, existing: KubernetesObject | undefined) {
  const text = textOf(ledger);
  const before = existing?.metadata.labels;
  // A label that is left out would keep its value, so a label that no longer applies gets another value.
  const mark = ledger.release !== undefined ? releaseLabel.value : before?.[releaseLabel.key] && releaseLabel.otherwise;
  const labels = { ...before, ...(mark === undefined ? {} : { [releaseLabel.key]: mark }), [ledgerLabel.key]: ledgerLabel.value };
  return { metadata: { labels }, data: { ...asJsonObject(existing?.['data']), [ledgerKey]: text } };
}

/** Returns the text of a ledger. The ledger that one turn stores is the one that the next turn expects to find. */
const textOf = keptByObject((ledger: Ledger): string => {
  const text = encodeLedger(ledger);
  if (isUnknown(text)) throw new LedgerUnusable(text.unknown);
  return text;
});
