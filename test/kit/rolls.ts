// Decides the next pod replacements of a group, and renders them as short texts.
import { decideRoll, type RollDecision } from '../../engine/decide/roll.ts';
import { advanceRun } from '../../engine/run/run.ts';
import type { RunState } from '../../engine/run/run-state.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import type { PodChanges } from './objects.ts';
import { contextWith, ledgerOf, outdatedSets } from './questions.ts';
import type { SnapshotOverrides } from './snapshots.ts';

/** Returns the decision for a ledger with this run. All pods are outdated unless `overrides` says otherwise. */
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

/** Returns the pods to replace, such as `a-2 a-1`. An action without a pod appears as its kind. */
export function replacedPods({ actions }: RollDecision): string {
  return actions.map((action) => ('pod' in action ? action.pod.replace('ingester-zone-', '') : action.kind)).join(' ');
}

/** Returns each step with its outcome and the rules that block it, such as `roll/a wait: paused`. */
export function blockedSteps({ steps }: RollDecision): readonly string[] {
  return steps.map(({ id, outcome, results }) => {
    const rules = results.filter((answer) => answer.outcome !== 'ok' && answer.outcome !== 'skip').map(({ rule }) => rule);
    return `${id} ${outcome}: ${rules.join(' ')}`;
  });
}

/** Returns the overrides for pods that differ from the default, by zone and ordinal. */
export function podsIn(zones: Readonly<Record<string, PodChanges>>): SnapshotOverrides {
  return { podChanges: Object.fromEntries(Object.entries(zones).map(([zone, pods]) => [`ingester-zone-${zone}`, pods])) };
}
