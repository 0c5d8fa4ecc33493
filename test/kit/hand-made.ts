// Builds decisions by hand and returns their violations.
import { decideGroup } from '../../engine/decide/decide.ts';
import type { Action, GroupDecision } from '../../engine/decision.ts';
import { violationsOf } from '../../engine/invariants/invariants.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { group } from './groups.ts';
import type { PodChanges } from './objects.ts';
import { outdatedSets } from './questions.ts';
import { type SnapshotOverrides, snapshotOf } from './snapshots.ts';

const native = group();

/** Returns the violations of a decision built by hand. */
export function violated(
  actions: readonly Action[],
  overrides: SnapshotOverrides = {},
  definition: GroupDefinition = native,
  more: Partial<GroupDecision> = {},
) {
  const snapshot = snapshotOf({ groups: [definition], statefulSets: outdatedSets(), ...overrides });
  const decision: GroupDecision = { ...decideGroup(snapshot, definition), outcome: 'act', waits: [], actions, ...more };
  return violationsOf({ snapshot, group: definition, decision });
}

export const replace = (zone: string, ordinal: number, because: 'outdated' | 'stuck' = 'outdated', more: object = {}): Action => ({
  kind: 'deletePod',
  namespace: 'mimir',
  zone,
  statefulSet: `ingester-zone-${zone}`,
  pod: `ingester-zone-${zone}-${ordinal}`,
  ordinal,
  uid: `uid-ingester-zone-${zone}-${ordinal}`,
  resourceVersion: '100',
  because,
  ...more,
});
export const podsIn = (zones: Readonly<Record<string, PodChanges>>): SnapshotOverrides => ({
  podChanges: Object.fromEntries(Object.entries(zones).map(([zone, pods]) => [`ingester-zone-${zone}`, pods])),
});
