// The ZoneAwarePodDisruptionBudgets in force: the last valid version of each that there is, as grafana/rollout-operator caches them.
import type { ClusterEnv, Log } from '../../cluster/env.ts';
import type { KubernetesObject, Resource } from '../../cluster/request/resource.ts';
import { type Change, type Reflector, type ReflectorState, startReflector } from '../../cluster/watch/reflector.ts';
import { observeZoneBudget } from '../../engine/observe/budget.ts';
import { reader } from '../../engine/observe/raw.ts';
import { isUnknown, type Known, type ZoneBudgetView } from '../../engine/snapshot.ts';
import { matchesSelector } from '../../policies/label-selector.ts';

export const zoneBudgetResource = {
  group: 'rollout-operator.grafana.com',
  version: 'v1',
  plural: 'zoneawarepoddisruptionbudgets',
  kind: 'ZoneAwarePodDisruptionBudget',
  isNamespaced: true,
} as const satisfies Resource;

/** What became of one version of a budget, as the metric `zpdb_configurations_observed_total` of grafana/rollout-operator labels it. */
export type ObservedConfiguration = 'updated' | 'deleted' | 'ignored' | 'delete-ignored' | 'invalid';

/** A budget of which no version that was seen is valid. */
export interface UnusableBudget {
  readonly name: string;
  /** What is wrong with it. */
  readonly problem: string;
  /** Absent when the selector is what cannot be read: it may be meant for every pod. */
  readonly matchLabels?: Readonly<Record<string, string>>;
}

export interface BudgetsInForce {
  readonly usable: readonly ZoneBudgetView[];
  readonly unusable: readonly UnusableBudget[];
}

export interface ZoneBudgets {
  /** The budgets of a namespace; unknown until they have been listed, and for a namespace that is not watched. */
  readonly inForce: (namespace: string) => Known<BudgetsInForce>;
  /** Whether `inForce` knows every namespace that is watched. */
  readonly isSettled: () => boolean;
  /** Calls back after each change of what is in force. The answer ends that. */
  readonly onChange: (listener: (namespace: string) => void) => () => void;
  readonly stop: () => void;
}

export interface ZoneBudgetsOptions {
  /** Every namespace when left out. */
  readonly namespaces?: readonly string[] | undefined;
  readonly onObserved?: (result: ObservedConfiguration) => void;
}

/** Few objects; a lost event of one is found within five minutes. */
const relistMs = 300_000;

/**
 * Follows the budgets. An update that is not valid leaves the version before it in force. A deleted budget is in force no more, also when its
 * event was lost: lists are compared whole. Where the kind is not installed there are no budgets, and nothing waits for it.
 */
export function startZoneBudgets(env: ClusterEnv & { readonly log: Log }, options: ZoneBudgetsOptions = {}): ZoneBudgets {
  const listeners = new Set<(namespace: string) => void>();
  const cache = new BudgetCache(env.log);
  const follow = (namespace: string | undefined): Reflector<BudgetVersion> =>
    startReflector({
      env,
      resource: zoneBudgetResource,
      namespace,
      project: versionOf,
      onChange: (change) => {
        const result = cache.take(change);
        options.onObserved?.(result);
        for (const listener of listeners) listener(change.namespace);
      },
      site: 'zoneBudgets',
      relistMs,
    });
  const everywhere = options.namespaces === undefined ? follow(undefined) : undefined;
  const followed = new Map(options.namespaces?.map((namespace) => [namespace, follow(namespace)]));
  const all = [...followed.values(), ...(everywhere === undefined ? [] : [everywhere])];
  return {
    inForce: (namespace) => {
      const following = everywhere ?? followed.get(namespace);
      if (following === undefined) return { unknown: `namespace ${namespace} is not watched for disruption budgets` };
      const state = following.state();
      if (isMissing(state)) return { usable: [], unusable: [] };
      return unknownBecause(state) ?? cache.inForce(namespace);
    },
    isSettled: () => all.every((following) => isMissing(following.state()) || unknownBecause(following.state()) === undefined),
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    stop: () => {
      listeners.clear();
      for (const following of all) following.stop();
    },
  };
}

/** The first unusable budget that selects, or may be meant to select, a pod with these labels. */
export function unusableFor({ unusable }: BudgetsInForce, labels: Readonly<Record<string, string>>): UnusableBudget | undefined {
  return unusable.find(({ matchLabels }) => matchLabels === undefined || matchesSelector({ matchLabels }, labels));
}

/** Without the CustomResourceDefinition nobody can have made a budget. */
function isMissing(state: ReflectorState): boolean {
  return state.kind === 'failing' && state.reason === 'missing';
}

/** What was once known stays in force while the server cannot be reached. */
function unknownBecause(state: ReflectorState): { readonly unknown: string } | undefined {
  if (state.kind === 'starting') return { unknown: 'they have not been listed yet' };
  return state.kind === 'failing' && !state.hasSynced ? { unknown: state.message } : undefined;
}

/** One version of a budget, valid or not. */
interface BudgetVersion {
  readonly generation: number;
  readonly view: Known<ZoneBudgetView>;
  readonly matchLabels?: Readonly<Record<string, string>>;
}

/** What is kept of an object; never throws, since what cannot be understood is kept as such. */
function versionOf(object: KubernetesObject): BudgetVersion {
  const fields = reader(object);
  const isReadable = fields.has('spec.selector.matchLabels');
  const matchLabels = fields.texts('spec.selector.matchLabels');
  return {
    generation: object.metadata.generation ?? 0,
    view: observeZoneBudget(object),
    ...(isReadable && fields.problem() === undefined ? { matchLabels } : {}),
  };
}

interface Kept {
  readonly valid?: { readonly generation: number; readonly view: ZoneBudgetView };
  /** Of the newest version, when it is not valid. */
  readonly unusable?: UnusableBudget;
}

/** The versions in force, by namespace and name. */
class BudgetCache {
  readonly #kept = new Map<string, Map<string, Kept>>();
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  inForce(namespace: string): BudgetsInForce {
    const kept = [...(this.#kept.get(namespace)?.values() ?? [])];
    return {
      usable: kept.flatMap(({ valid }) => (valid === undefined ? [] : [valid.view])),
      unusable: kept.flatMap(({ valid, unusable }) => (valid === undefined && unusable !== undefined ? [unusable] : [])),
    };
  }

  /** Takes in one change of the store. A budget that was made anew under the name comes as a deletion and an addition. */
  take({ kind, namespace, name, view: version }: Change<BudgetVersion>): ObservedConfiguration {
    const valid = this.#kept.get(namespace)?.get(name)?.valid;
    if (kind === 'deleted' || version === undefined) {
      this.#kept.get(namespace)?.delete(name);
      return valid === undefined ? 'delete-ignored' : 'deleted';
    }
    const { generation, view, matchLabels } = version;
    if (isUnknown(view)) {
      const unusable = { name, problem: view.unknown, ...(matchLabels === undefined ? {} : { matchLabels }) };
      this.#keep(namespace, name, { ...(valid === undefined ? {} : { valid }), unusable });
      const consequence =
        valid === undefined ? 'no pod that it selects is evicted until it is repaired' : 'the version before it stays in force';
      this.#log.error('zone-aware disruption budget is not valid', { namespace, budget: name, problem: view.unknown, consequence });
      return 'invalid';
    }
    // A change of labels or annotations makes no new generation.
    if (valid !== undefined && generation > 0 && generation <= valid.generation) return 'ignored';
    this.#keep(namespace, name, { valid: { generation, view } });
    return 'updated';
  }

  #keep(namespace: string, name: string, kept: Kept): void {
    const inside = this.#kept.get(namespace) ?? new Map<string, Kept>();
    this.#kept.set(namespace, inside.set(name, kept));
  }
}
