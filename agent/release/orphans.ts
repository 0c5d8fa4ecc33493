// Finds groups without a definition whose ledgers announce a release, for the turns that release their StatefulSets.
import { isStatus } from '../../cluster/request/failure.ts';
import { listProjected } from '../../cluster/request/read.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { ledgerLabel, ledgerName, releaseLabel } from '../../engine/ledger/ledger-document.ts';
import type { StatefulSetView } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { messageOf } from '../../policies/error-message.ts';
import type { AgentEnv } from '../env.ts';
import type { Degradation } from '../report.ts';
import type { LedgerIdentity } from '../turn/ledgers.ts';
import { groupKey } from '../wake-index.ts';
import type { Caches } from '../watched/caches.ts';

/** A group without a definition that may have to be released, with the state of this process during one leadership. */
export interface Orphan extends LedgerIdentity {
  /** The epoch of the leadership under which the agent writes the ledger of the group. */
  epoch?: number;
  /** The time since which the group has no definition (monotonic). Absent while the group may have a definition. */
  goneSinceMs?: number | undefined;
  waitsFor?: string | undefined;
  /** The time since which the release has waited for something without a known end, such as other zones (monotonic). */
  blockedSinceMs?: number | undefined;
}

interface OrphansOptions {
  readonly env: AgentEnv;
  readonly caches: Pick<Caches, 'statefulSets'>;
  /** Returns the defined groups; undefined while unknown. */
  readonly groups: () => readonly GroupDefinition[] | undefined;
  readonly isLeading: () => boolean;
  readonly timeoutMs: number;
  readonly onChange: () => void;
}

const retryMs = 30_000;

/** The found groups. A search lists ledgers only in namespaces with a StatefulSet that belongs to no group. */
export class OrphanSearch {
  readonly #options: OrphansOptions;
  readonly #found = new Map<string, Orphan>();
  /** The StatefulSets without a group (`namespace/name`) whose namespace was searched during this leadership. */
  readonly #searched = new Set<string>();
  #isSearching = false;
  #isSearchDue = false;
  #forbidden: string | undefined;
  #cancelRetry = (): void => undefined;

  constructor(options: OrphansOptions) {
    this.#options = options;
  }

  /** Searches. Call this when the defined groups or the leader may have changed. Calls during a search cause one further search. */
  search(): void {
    this.#cancelRetry();
    this.#isSearchDue = this.#isSearching;
    const defined = this.#options.groups();
    for (const group of defined ?? []) this.#found.delete(groupKey(group));
    if (this.#isSearching || defined === undefined || !this.#options.isLeading()) return;
    this.#isSearching = true;
    void this.#searchNow(defined).then((isDone) => {
      this.#isSearching = false;
      if (this.#isSearchDue) this.search();
      else if (!isDone) this.#cancelRetry = this.#options.env.timers.after(retryMs, () => this.search());
    });
  }

  get(key: string): Orphan | undefined {
    return this.#found.get(key);
  }

  keys(): readonly string[] {
    return [...this.#found.keys()];
  }

  settle(key: string): void {
    this.#found.delete(key);
    // If the StatefulSets of the group join and leave another group before the next search, that search must list the ledgers again.
    this.#searched.clear();
  }

  /** Forgets all groups after the loss of leadership; the next leader searches again. */
  clear(): void {
    this.#cancelRetry();
    this.#found.clear();
    this.#searched.clear();
  }

  degradation(): Degradation | undefined {
    if (this.#forbidden === undefined) return undefined;
    const consequence = 'StatefulSets of deleted groups keep their partition, even with onPolicyDeleted: release';
    return { id: 'release', reason: 'forbidden', message: `ledgers cannot be listed (${this.#forbidden}): ${consequence}` };
  }

  async #searchNow(defined: readonly GroupDefinition[]): Promise<boolean> {
    const named = new Set(defined.map(groupKey));
    const ungrouped = ungroupedStatefulSets(this.#options.caches.statefulSets(), defined);
    for (const set of this.#searched) if (!ungrouped.has(set)) this.#searched.delete(set);
    const unsearched = [...ungrouped.keys()].filter((set) => !this.#searched.has(set));
    const hasPartition = [...ungrouped.values()].some((isPartitioned) => isPartitioned);
    let refusal: string | undefined;
    let isDone = true;
    for (const namespace of new Set(unsearched.map((set) => set.slice(0, set.indexOf('/'))))) {
      const problem = await this.#listIn(namespace, named);
      // Without a partition above 0 no StatefulSet needs a release.
      if (problem === undefined || (problem.isForbidden && !hasPartition)) {
        this.#noteSearched(namespace, unsearched);
        continue;
      }
      this.#options.env.log.warn('deleted groups cannot be listed', { namespace, problem: problem.message });
      if (problem.isForbidden) refusal = problem.message;
      isDone = false;
    }
    this.#forbidden = refusal;
    this.#options.onChange();
    return isDone;
  }

  #noteSearched(namespace: string, sets: readonly string[]): void {
    for (const set of sets) if (set.startsWith(`${namespace}/`)) this.#searched.add(set);
  }

  /** Lists the ledgers of the namespace and adds the groups without a definition. Returns the problem if the list fails. */
  async #listIn(namespace: string, named: ReadonlySet<string>) {
    const labelSelector = `${ledgerLabel.key}=${ledgerLabel.value},${releaseLabel.key}=${releaseLabel.value}`;
    try {
      const options = { namespace, labelSelector, project: groupOf, site: 'release.ledgers', timeoutMs: this.#options.timeoutMs };
      const { items } = await listProjected(this.#options.env, resources.configMaps, options);
      for (const name of items) {
        const key = groupKey({ namespace, name });
        if (name !== '' && !named.has(key) && !this.#found.has(key)) this.#found.set(key, { namespace, name });
      }
      return undefined;
    } catch (error) {
      const message = messageOf(error);
      return { message, isForbidden: isStatus(error, 403) };
    }
  }
}

function groupOf({ metadata: { name } }: KubernetesObject): string {
  const prefix = ledgerName('');
  return name.startsWith(prefix) ? name.slice(prefix.length) : '';
}

/** Returns the ungrouped StatefulSets (`namespace/name`) with update strategy RollingUpdate, and whether each has a partition above 0. */
function ungroupedStatefulSets(sets: readonly StatefulSetView[], groups: readonly GroupDefinition[]): ReadonlyMap<string, boolean> {
  const members = new Set(groups.flatMap(({ namespace, zones }) => zones.map(({ statefulSet }) => `${namespace}/${statefulSet}`)));
  return new Map(
    sets
      .filter(({ namespace, name, updateStrategy }) => updateStrategy === 'RollingUpdate' && !members.has(`${namespace}/${name}`))
      .map(({ namespace, name, partition }) => [`${namespace}/${name}`, partition > 0]),
  );
}
