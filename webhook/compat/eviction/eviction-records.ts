// Stores evictions under a budget whose StatefulSets are not one group: a ConfigMap per budget, written by compare-and-swap.
import { isStatus } from '../../../cluster/request/failure.ts';
import { isJsonObject } from '../../../cluster/request/json.ts';
import { type KubernetesObject, resources } from '../../../cluster/request/resource.ts';
import { SharedObject } from '../../../cluster/shared/shared-object.ts';
import { decodeLedger, encodeLedger, ledgerKey, ledgerLabel } from '../../../engine/ledger/ledger-document.ts';
import { isUnknown, type Known, type Ledger } from '../../../engine/snapshot.ts';
import { hashText } from '../../../policies/values/hash.ts';
import type { WebhookEnv } from '../../env.ts';

/** Identifies a record. */
interface RecordIdentity {
  readonly namespace: string;
  /** Name of the ZoneAwarePodDisruptionBudget. */
  readonly budget: string;
}

/** A record is a ledger with claims only; its zones are StatefulSets. */
export interface EvictionRecords {
  /** Reads the stored record from the quorum. Rejects if it cannot be read or parsed. */
  readonly read: (identity: RecordIdentity) => Promise<Ledger>;
  /** Stores `next` if the record is still `base`. Returns false otherwise; rejects if the outcome is unknown. */
  readonly write: (identity: RecordIdentity, base: Ledger, next: Ledger) => Promise<boolean>;
}

interface RecordsOptions {
  readonly isAlone: () => boolean;
  readonly onDegraded?: ((message: string) => void) | undefined;
}

/** Value of the document label: a record is not the ledger of a group. */
const recordLabel = 'evictions';

/** Longest name of an object, in bytes. */
const longestName = 253;

/** Timeout of each request, shorter than the deadline of a handler, so that a second attempt fits. */
const timeoutMs = 4000;

class RecordChanged extends Error {
  override readonly name = 'RecordChanged';
}

/** Name of the ConfigMap that holds the record of a budget. */
function recordName(budget: string): string {
  const name = `rollout-group-evictions-${budget}`;
  return name.length <= longestName ? name : `rollout-group-evictions-${hashText(budget)}`;
}

/**
 * Returns the records. If ConfigMaps are forbidden and no other process answers evictions, records stay in memory, which is reported once.
 */
export function evictionRecords(env: WebhookEnv, { isAlone, onDegraded }: RecordsOptions): EvictionRecords {
  const shared = new Map<string, SharedObject<Ledger>>();
  const memory = new Map<string, Ledger>();
  let isDegraded = false;

  const objectOf = (identity: RecordIdentity): SharedObject<Ledger> => {
    const known = shared.get(keyOf(identity));
    if (known !== undefined) return known;
    const object = new SharedObject<Ledger>({
      env,
      resource: resources.configMaps,
      namespace: identity.namespace,
      name: recordName(identity.budget),
      decode: (stored) => orThrow(decode(stored, identity)),
      encode,
      // The requester repeats the eviction; a handler has no time for delays.
      retries: 0,
      timeoutMs,
      site: 'evictionRecord',
    });
    shared.set(keyOf(identity), object);
    return object;
  };

  const orMemory = async <Value>(attempt: () => Promise<Value>, inMemory: () => Value): Promise<Value> => {
    try {
      return await attempt();
    } catch (error) {
      if (!isStatus(error, 403) || !isAlone()) throw error;
      if (!isDegraded) {
        isDegraded = true;
        const message = `announced evictions are kept in memory and lost with this process; run only one replica: ${error.message}`;
        env.log.error('announced evictions cannot be stored', { problem: error.message, consequence: message });
        onDegraded?.(message);
      }
      return inMemory();
    }
  };

  return {
    read: (identity) =>
      orMemory(
        async () => {
          const { value } = await objectOf(identity).read();
          // Records kept in memory while the server refused are still true after it accepts writes.
          return joined(value, memory.get(keyOf(identity)));
        },
        () => memory.get(keyOf(identity)) ?? empty(identity),
      ),
    write: (identity, base, next) =>
      orMemory(
        async () => {
          const kept = memory.get(keyOf(identity));
          const isSame = await replaced(objectOf(identity), next, (current) => textOf(joined(current, kept)) === textOf(base));
          if (isSame) memory.delete(keyOf(identity));
          return isSame;
        },
        () => {
          const isSame = textOf(memory.get(keyOf(identity)) ?? empty(identity)) === textOf(base);
          if (isSame) memory.set(keyOf(identity), next);
          return isSame;
        },
      ),
  };
}

async function replaced(object: SharedObject<Ledger>, next: Ledger, isBase: (current: Ledger) => boolean): Promise<boolean> {
  try {
    await object.update((current) => {
      if (!isBase(current)) throw new RecordChanged('another process wrote the record');
      return next;
    });
    return true;
  } catch (error) {
    if (error instanceof RecordChanged) return false;
    throw error;
  }
}

function joined(record: Ledger, kept: Ledger | undefined): Ledger {
  if (kept === undefined) return record;
  const uids = new Set(record.claims.map(({ uid }) => uid));
  return { ...record, claims: [...record.claims, ...kept.claims.filter(({ uid }) => !uids.has(uid))] };
}

function keyOf({ namespace, budget }: RecordIdentity): string {
  return `${namespace}/${budget}`;
}

function empty({ namespace, budget }: RecordIdentity): Ledger {
  return { namespace, group: budget, claims: [], downscales: [], preparations: [] };
}

function decode(object: KubernetesObject | undefined, { namespace, budget }: RecordIdentity): Known<Ledger> {
  const data = object?.['data'];
  const text = isJsonObject(data) ? data[ledgerKey] : undefined;
  return decodeLedger(typeof text === 'string' ? text : undefined, { namespace, group: budget });
}

function encode(record: Ledger) {
  return { metadata: { labels: { [ledgerLabel.key]: recordLabel } }, data: { [ledgerKey]: textOf(record) } };
}

/** Returns the stored text; the order of lists does not matter. */
function textOf(record: Ledger): string {
  return orThrow(encodeLedger(record));
}

function orThrow<Value>(value: Known<Value>): Value {
  if (isUnknown(value)) throw new Error(value.unknown);
  return value;
}
