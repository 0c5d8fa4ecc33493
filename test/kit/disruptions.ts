// Asks the disruption budget about a pod of zone a, in a group with three zones of three pods.
import { type DisruptionQuestion, type DisruptionVerdict, disruptionVerdict } from '../../engine/disruption/disruption.ts';
import type { Claim, Known, PodView, StatefulSetView, ZoneBudgetView } from '../../engine/snapshot.ts';
import { knownPods, type PodChanges, type StatefulSetOverrides, statefulSet } from './objects.ts';
import { snapshotOf } from './snapshots.ts';

export const zoneSets = ['ingester-zone-a', 'ingester-zone-b', 'ingester-zone-c'];
export const partition = { pattern: 'ingester-zone-[a-z]-([0-9]+)', group: 1 };

export const zpdb: ZoneBudgetView = {
  namespace: 'mimir',
  name: 'zpdb',
  matchLabels: { 'rollout-group': 'ingester' },
  maxUnavailable: 1,
  crossZoneDelayMs: 0,
};

export interface DisruptionCase {
  readonly budgets?: Known<readonly ZoneBudgetView[]>;
  readonly sets?: readonly StatefulSetView[];
  readonly set?: StatefulSetOverrides;
  readonly pods?: Readonly<Record<string, PodChanges>>;
  readonly claims?: readonly Claim[];
  readonly ordinal?: number;
  readonly group?: DisruptionQuestion['group'];
  readonly override?: number;
  readonly unreadable?: string;
  /** `rollout` if there is an override; a case may set another reason. */
  readonly requester?: DisruptionQuestion['requester'];
}

/** Returns the verdict on a pod of zone a. Default: three zones of three pods. */
export function askDisruption(given: DisruptionCase): DisruptionVerdict {
  const sets = given.sets ?? zoneSets.map((name) => statefulSet({ name, ...given.set }));
  const { unreadable } = given;
  const unread = unreadable === undefined ? [] : [{ namespace: 'mimir', statefulSet: unreadable, pods: { unknown: 'forbidden' } }];
  const snapshot = snapshotOf({
    statefulSets: sets,
    zoneBudgets: given.budgets ?? [zpdb],
    podChanges: given.pods ?? {},
    pods: unread,
  });
  const set = sets[0];
  const pod = knownPods(snapshot.pods.find((view) => view.statefulSet === set?.name)).find(
    ({ ordinal }) => ordinal === (given.ordinal ?? 0),
  );
  if (pod === undefined) throw new Error('the test expected a pod to ask about');
  const optional = { ...(given.group && { group: given.group }), ...(given.override !== undefined && { override: given.override }) };
  const requester = given.requester ?? (given.override === undefined ? 'eviction' : 'rollout');
  return disruptionVerdict({ snapshot, set, pod, claims: given.claims ?? [], requester, ...optional });
}

export const unready: Partial<PodView> = { isReady: false, containersReady: false };
