// Records departures for the webhooks: StatefulSets that left their group or lost a protective label. Each namespace has one ConfigMap.

import type { Clock } from '../../cluster/env.ts';
import { asJsonObject, parseJson } from '../../cluster/request/json.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { type EncodedObject, SharedObject } from '../../cluster/shared/shared-object.ts';
import { groupOf } from '../../engine/judge/admission-claims.ts';
import { departureMs, joinedDepartures, protectiveLabels } from '../../engine/judge/protection.ts';
import { ledgerLabel } from '../../engine/ledger/ledger-document.ts';
import { type Departure, isUnknown, type Known, type Snapshot } from '../../engine/snapshot.ts';
import { getOrCreate } from '../../policies/values/map.ts';
import type { AgentEnv } from '../env.ts';

/** The name of the ConfigMap. The name of a ledger has a dash after `rollout-group`, so no ledger can have this name. */
export const departuresName = 'rollout-group.departures';
const key = 'departures';
const document = 'departures';
/** The most departures of a namespace. Further departures are rejected until earlier ones expire. */
const maxDepartures = 500;
/** The time for which an expired departure is kept, because the clocks of processes differ. */
const graceMs = 60_000;

export class Departures {
  readonly #env: AgentEnv;
  readonly #timeoutMs: number;
  readonly #shared = new Map<string, SharedObject<readonly Departure[]>>();

  constructor(env: AgentEnv, timeoutMs: number) {
    this.#env = env;
    this.#timeoutMs = timeoutMs;
  }

  /** Returns the departures that have not expired, from a quorum read. Rejects if they cannot be read or parsed. */
  async read(namespace: string): Promise<readonly Departure[]> {
    const { value } = await this.#objectOf(namespace).read();
    return value.filter(({ untilMs }) => untilMs > this.#env.clock.nowMs());
  }

  /** Adds these departures to the stored departures. Rejects if the write fails. */
  async keep(namespace: string, departures: readonly Departure[]): Promise<void> {
    const nowMs = this.#env.clock.nowMs();
    await this.#objectOf(namespace).update((stored) => added(stored, departures, nowMs));
  }

  #objectOf(namespace: string): SharedObject<readonly Departure[]> {
    const options = { env: this.#env, timeoutMs: this.#timeoutMs, site: 'departures', decode, encode };
    const place = { resource: resources.configMaps, namespace, name: departuresName };
    return getOrCreate(this.#shared, namespace, () => new SharedObject<readonly Departure[]>({ ...options, ...place }));
  }
}

/** Merges departures. Two departures of the same StatefulSet, group and label become one, which ends at the later of both times. */
function added(stored: readonly Departure[], departures: readonly Departure[], nowMs: number): readonly Departure[] {
  const kept = new Map<string, Departure>();
  for (const departure of [...stored, ...departures]) {
    const { uid, group = '', label = '', untilMs } = departure;
    const name = JSON.stringify([uid, group, label]);
    if (untilMs + graceMs <= nowMs) continue;
    const known = kept.get(name);
    if (known !== undefined && known.untilMs > nowMs) kept.set(name, joinedDepartures(known, departure));
    else if (untilMs >= (known?.untilMs ?? 0)) kept.set(name, departure);
  }
  if (kept.size > maxDepartures) throw new Error(`more than ${maxDepartures} departures of one namespace have not expired`);
  return [...kept.values()];
}

function decode(object: KubernetesObject | undefined): readonly Departure[] {
  const text = asJsonObject(object?.['data'])[key];
  if (object === undefined || text === undefined) return [];
  const list: unknown = typeof text === 'string' ? parseJson(text) : undefined;
  if (!Array.isArray(list)) throw new Error(`ConfigMap ${object.metadata.namespace}/${departuresName} contains no list of departures`);
  return list.map((entry: unknown) => {
    const { statefulSet, uid, group, label, value, untilMs } = asJsonObject(entry);
    if (typeof statefulSet !== 'string' || typeof uid !== 'string' || typeof untilMs !== 'number') {
      throw new Error(`ConfigMap ${object.metadata.namespace}/${departuresName} contains an invalid departure`);
    }
    return {
      statefulSet,
      uid,
      untilMs,
      ...(typeof group === 'string' ? { group } : {}),
      ...(typeof label === 'string' ? { label } : {}),
      ...(typeof value === 'string' ? { value } : {}),
    };
  });
}

function encode(departures: readonly Departure[], existing: KubernetesObject | undefined): EncodedObject {
  const labels = { ...existing?.metadata.labels, [ledgerLabel.key]: document };
  return { metadata: { labels }, data: { ...asJsonObject(existing?.['data']), [key]: JSON.stringify(departures) } };
}

interface UnprotectedSet {
  readonly sinceMs: number;
  /** True if it is certain that the StatefulSet has not left a group recently. */
  readonly isCertain: boolean;
}

/** Remembers since when each StatefulSet has had neither a group nor a protective label, by namespace and UID. */
export class UnprotectedSets {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #known = new Map<string, ReadonlyMap<string, UnprotectedSet>>();

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  /**
   * Records the StatefulSets of a namespace that have no group and no protective label. Returns the UIDs of those that certainly have not
   * left a group recently. `departures` must have been read before `seen`.
   */
  update(namespace: string, seen: Pick<Snapshot, 'groups' | 'statefulSets'>, departures: Known<readonly Departure[]>): readonly string[] {
    const nowMs = this.#clock.monotonicMs();
    const before = this.#known.get(namespace);
    const isNotNamed = (uid: string): boolean => !isUnknown(departures) && !departures.some((departure) => departure.uid === uid);
    const free = seen.statefulSets
      .filter((set) => set.namespace === namespace && !protectiveLabels.some((label) => set.labels[label] !== undefined))
      .filter(({ name }) => groupOf(seen, namespace, name) === undefined)
      .map(({ uid }): readonly [string, UnprotectedSet] => {
        const last = before?.get(uid);
        // A StatefulSet that left its group between the two reads is neither in `departures` nor in a group, so it is not certain yet.
        if (last === undefined) return [uid, { sinceMs: nowMs, isCertain: false }];
        return [uid, { ...last, isCertain: last.isCertain || isNotNamed(uid) || nowMs - last.sinceMs > departureMs }];
      });
    this.#known.set(namespace, new Map(free));
    return free.filter(([, { isCertain }]) => isCertain).map(([uid]) => uid);
  }
}
