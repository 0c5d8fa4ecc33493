// Reports once when the definition of a group is deleted. Only a completely known source can prove that.

import { decideRemoval, type FormerGroup } from '../../engine/release/removal.ts';
import type { Definitions, SourceState } from '../../engine/release/terms.ts';
import type { RunState } from '../../engine/snapshot.ts';
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
  /** Returns the run of the group with this key while it is remembered. */
  readonly runOf: (key: string) => RunState | undefined;
  readonly onReport: (report: GroupRemovalReport) => void;
}

interface Former extends FormerGroup {
  /** Monotonic: since when it has been gone for sure; absent while something may define it. */
  goneSinceMs?: number | undefined;
}

/** Objects that could not be read may be readable again without a word. */
const unreadMs = 30_000;

/** Knows of no group until the first check while this process leads. */
export class GroupRemovals {
  readonly #options: GroupRemovalsOptions;
  /** The groups of the last check. */
  #defined: ReadonlyMap<string, FormerGroup['group']> = new Map();
  readonly #gone = new Map<string, Former>();
  #cancelCheck = (): void => undefined;

  constructor(options: GroupRemovalsOptions) {
    this.#options = options;
  }

  /** Compares the defined groups with those of the last check. Call it before the memories of groups are deleted. */
  checkRemovals(): void {
    this.#cancelCheck();
    const { env, policies, isLeading, runOf } = this.#options;
    const now = policies();
    if (now === undefined || !isLeading()) {
      this.clear();
      return;
    }
    const nowMs = env.clock.monotonicMs();
    const groups = new Map(now.groups.map((group) => [groupKey(group), group]));
    for (const [key, group] of this.#defined) if (!groups.has(key)) this.#gone.set(key, { group, run: runOf(key) });
    this.#defined = groups;
    const leftMs = [...this.#gone].flatMap(([key, former]) => this.#judge(key, former, now, nowMs) ?? []);
    if (leftMs.length > 0) this.#cancelCheck = env.timers.after(Math.min(...leftMs), () => this.checkRemovals());
  }

  /** Forgets all groups after the loss of leadership; the next leader reports deletions. */
  clear(): void {
    this.#cancelCheck();
    this.#defined = new Map();
    this.#gone.clear();
  }

  /** Reports the group if it is certainly removed. Returns the milliseconds until the next check if time alone decides. */
  #judge(key: string, former: Former, now: ActivePolicies, nowMs: number): number | undefined {
    const { env, sourceStates, onReport } = this.#options;
    const snapshot = knownSnapshot(this.#options, former.group.namespace, { fresh: undefined, unread: [] });
    const { group, run, goneSinceMs = nowMs } = former;
    const removal = decideRemoval({ group, run, snapshot, sources: sourceStates(now), goneForMs: nowMs - goneSinceMs });
    former.goneSinceMs = removal.kind === 'unsure' ? undefined : goneSinceMs;
    if (removal.kind === 'unsure') return undefined;
    if (removal.kind === 'wait') return removal.leftMs ?? unreadMs;
    this.#gone.delete(key);
    if (removal.kind === 'none') return undefined;
    const { namespace, name } = group;
    for (const { statefulSet, isWarning, note } of removal.reports) {
      const write = isWarning ? env.log.warn : env.log.info;
      write('group is no longer defined', { namespace, group: name, statefulSet, note });
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

/** Returns the state of each source for these policies. */
export function sourceStates({ config, hasDirectory, caches, policies }: SourceParts, { unsure }: ActivePolicies): Definitions['sources'] {
  const { policySources: followed } = config;
  const watch = (id: string) => caches.degradations().find((degradation) => degradation.id === id);
  const objects = watch('watch/rolloutgroups');
  return {
    directory: stateOf(followed.includes('directory') && hasDirectory, policies.degradation()?.message ?? unsure.directory),
    objects: stateOf(followed.includes('objects') && objects?.reason !== 'missing', objects?.message ?? unsure.objects),
    adopted: stateOf(followed.includes('adopted'), watch('watch/statefulsets')?.message),
  };
}

function stateOf(isThere: boolean, problem: string | undefined): SourceState {
  if (!isThere) return 'none';
  return problem === undefined ? 'whole' : { unknown: problem };
}
