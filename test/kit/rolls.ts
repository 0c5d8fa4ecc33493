// Decides the next replacements for a run in the ledger, and shows them in one line.
import { decideRoll, type RollDecision } from '../../engine/decide/roll.ts';
import { advanceRun } from '../../engine/run/run.ts';
import type { RunState } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import type { PodChanges } from './objects.ts';
import { contextWith, ledgerOf, outdatedSets } from './questions.ts';
import type { SnapshotOverrides } from './snapshots.ts';

/** Decides the replacements. Default: all zones are outdated. `run` is the run in the ledger. */
export function roll(
  definition: GroupDefinition,
  run: RunState | undefined,
  overrides: SnapshotOverrides = {},
  isScaling = false,
): RollDecision {
  const ledgers = run === undefined ? [] : [ledgerOf({ run })];
  const statefulSets = outdatedSets(definition.zones.map(({ name }) => name));
  const context = contextWith(definition, { statefulSets, ledgers, ...overrides });
  return decideRoll(context, advanceRun(context), isScaling);
}

/** Shows the replaced pods, such as `a-2 a-1`, and other actions by their kind. */
export function going({ actions }: RollDecision): string {
  return actions.map((action) => ('pod' in action ? action.pod.replace('ingester-zone-', '') : action.kind)).join(' ');
}

/** Shows each step with its outcome and the rules that block it, such as `roll/a wait: paused`. */
export function holding({ steps }: RollDecision): readonly string[] {
  return steps.map(({ id, outcome, results }) => {
    const rules = results.filter((answer) => answer.outcome !== 'ok' && answer.outcome !== 'skip').map(({ rule }) => rule);
    return `${id} ${outcome}: ${rules.join(' ')}`;
  });
}

/** Pods that differ from the default, by zone and ordinal. */
export function podsIn(zones: Readonly<Record<string, PodChanges>>): SnapshotOverrides {
  return { podChanges: Object.fromEntries(Object.entries(zones).map(([zone, pods]) => [`ingester-zone-${zone}`, pods])) };
}
