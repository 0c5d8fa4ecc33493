// Reports once each deleted native group that is not released, and each member that left a group. Waits until every source of definitions
// was read completely.

import { decideRemoval, type FormerGroup, leftMembers } from '../../engine/release/removal.ts';
import type { Definitions, SourceState } from '../../engine/release/terms.ts';
import type { RunState } from '../../engine/run/run-state.ts';
import type { AgentConfig } from '../config.ts';
import type { AgentEnv } from '../env.ts';
import type { ActivePolicies, PolicySource } from '../policies/policies.ts';
import type { GroupRemovalReport } from '../report.ts';
import { type KnownParts, knownSnapshot } from '../turn/snapshot.ts';
import { groupKey } from '../wake-index.ts';
import type { Caches } from '../watched/caches.ts';

interface GroupRemovalsOptions extends Omit<KnownParts, 'env'> {
  readonly env: Pick<AgentEnv, 'clock' | 'timers' | 'log'>;
  readonly sourceStates: (policies: ActivePolicies) => Definitions['sources'];
  readonly isLeading: () => boolean;
  /** Returns the run of the group with this key, from the memory of its last turn. */
  readonly runOf: (key: string) => RunState | undefined;
  readonly onReport: (report: GroupRemovalReport) => void;
}

/** A group that was defined at an earlier check and is not defined now. */
interface MissingGroup extends FormerGroup {
  /** The time since which the group has no definition (monotonic). Absent while an unread source may contain the definition. */
  missingSinceMs?: number | undefined;
}

/** The longest pause before the next check while StatefulSets or pods cannot be read. */
const retryMs = 30_000;

/** Reports removed groups while this process leads. A group counts as removed only if an earlier check in the same leadership found it. */
export class GroupRemovals {
  readonly #options: GroupRemovalsOptions;
  #defined: ReadonlyMap<string, FormerGroup['group']> = new Map();
  readonly #missing = new Map<string, MissingGroup>();
  #cancelCheck = (): void => undefined;

  constructor(options: GroupRemovalsOptions) {
    this.#options = options;
  }

  /** Compares the defined groups with those of the last check. Call this before `runOf` forgets the groups without a definition. */
  checkRemovals(): void {
    this.#cancelCheck();
    const { env, policies, isLeading, runOf } = this.#options;
    const current = policies();
    if (current === undefined || !isLeading()) {
      this.clear();
      return;
    }
    const nowMs = env.clock.monotonicMs();
    const groups = new Map(current.groups.map((group) => [groupKey(group), group]));
    for (const [key, group] of this.#defined) {
      const left = leftMembers(group, groups.get(key)?.zones).map(({ statefulSet }) => statefulSet);
      if (left.length > 0) this.#missing.set([key, ...left].join(' '), { group, run: runOf(key) });
    }
    this.#defined = groups;
    const delaysMs = [...this.#missing].flatMap(([key, missing]) => this.#report(key, missing, current, nowMs) ?? []);
    if (delaysMs.length > 0) this.#cancelCheck = env.timers.after(Math.min(...delaysMs), () => this.checkRemovals());
  }

  clear(): void {
    this.#cancelCheck();
    this.#defined = new Map();
    this.#missing.clear();
  }

  /** Reports the group if it is certainly removed. Returns the delay until the next check; undefined if no timer is needed. */
  #report(key: string, missing: MissingGroup, current: ActivePolicies, nowMs: number): number | undefined {
    const { env, sourceStates, onReport } = this.#options;
    const snapshot = knownSnapshot(this.#options, missing.group.namespace, { fresh: undefined, unread: [] });
    const { group, run, missingSinceMs = nowMs } = missing;
    const removal = decideRemoval({ group, run, snapshot, sources: sourceStates(current), goneForMs: nowMs - missingSinceMs });
    missing.missingSinceMs = removal.kind === 'unsure' ? undefined : missingSinceMs;
    if (removal.kind === 'unsure') return undefined;
    if (removal.kind === 'wait') return removal.leftMs ?? retryMs;
    this.#missing.delete(key);
    if (removal.kind === 'none') return undefined;
    const { namespace, name } = group;
    for (const { statefulSet, isWarning, note } of removal.reports) {
      const log = isWarning ? env.log.warn : env.log.info;
      log('group is no longer defined', { namespace, group: name, statefulSet, note });
    }
    onReport({ group: { namespace, name }, snapshot, reports: removal.reports });
    return undefined;
  }
}

interface SourceParts {
  readonly config: Pick<AgentConfig, 'policySources'>;
  readonly hasDirectory: boolean;
  readonly caches: Pick<Caches, 'degradations'>;
  readonly policies: Pick<PolicySource, 'degradation'>;
}

/** Returns for each source of group definitions whether it exists, and whether these policies contain all of its definitions. */
export function sourceStates({ config, hasDirectory, caches, policies }: SourceParts, { unsure }: ActivePolicies): Definitions['sources'] {
  const { policySources } = config;
  const watchProblem = (id: string) => caches.degradations().find((degradation) => degradation.id === id);
  const ofGroups = watchProblem('watch/rolloutgroups');
  return {
    directory: stateOf(policySources.includes('directory') && hasDirectory, policies.degradation()?.message ?? unsure.directory),
    objects: stateOf(policySources.includes('objects') && ofGroups?.reason !== 'missing', ofGroups?.message ?? unsure.objects),
    adopted: stateOf(policySources.includes('adopted'), watchProblem('watch/statefulsets')?.message),
  };
}

function stateOf(exists: boolean, problem: string | undefined): SourceState {
  if (!exists) return 'none';
  return problem === undefined ? 'complete' : { unknown: problem };
}
