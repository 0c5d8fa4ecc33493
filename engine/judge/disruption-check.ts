// The disruption budget of an eviction, or of a deletion that the group's budget covers.
import type { GroupDefinition } from '../../policies/definition.ts';
import { disruptionVerdict } from '../disruption/disruption.ts';
import { viewGroup } from '../observe/view.ts';
import { profileOf } from '../profiles.ts';
import { result } from '../rule.ts';
import { type Claim, isUnknown, type PodView, type Snapshot, type StatefulSetView } from '../snapshot.ts';
import { releasedClaims } from '../strategies/partition/writes.ts';
import { groupOf } from './admission-claims.ts';
import type { Verdict } from './judge.ts';

interface OwnedPod {
  readonly set: StatefulSetView;
  readonly pod: PodView;
}

/** Blocks the eviction of a pod whose name is that of a member with unread pods, because a budget may protect it. */
export function checkUnreadPod(snapshot: Snapshot, { namespace, pod }: { readonly namespace: string; readonly pod: string }): Verdict {
  const statefulSet = /^(.+)-\d+$/.exec(pod)?.[1];
  const group = statefulSet === undefined ? undefined : groupOf(snapshot, namespace, statefulSet);
  const zone = group === undefined ? undefined : viewGroup(snapshot, group).zones.find((view) => view.zone.statefulSet === statefulSet);
  return zone?.unknown === undefined ? { results: [] } : { results: [result('view-complete', 'unknown', zone.unknown)], code: 500 };
}

/** Returns the disruption budget's verdict, counting announced disruptions as if they had happened. */
export function checkDisruptionBudget(snapshot: Snapshot, group: GroupDefinition | undefined, { set, pod }: OwnedPod): Verdict {
  if (isUnknown(snapshot.zoneBudgets)) {
    return {
      results: [result('disruption-budget', 'unknown', `disruption budgets could not be read: ${snapshot.zoneBudgets.unknown}`)],
      code: 500,
    };
  }
  const claims = group === undefined ? [] : announcedPods(snapshot, group);
  const verdict = disruptionVerdict({ snapshot, set, pod, claims, requester: 'eviction', ...(group === undefined ? {} : { group }) });
  const source = verdict.budget === undefined ? group?.sources['disruption'] : { object: verdict.budget };
  const details = { source, earliestMs: verdict.earliestMs, ...(verdict.limit === undefined ? {} : { limit: `${verdict.limit}` }) };
  return {
    results: [result('disruption-budget', verdict.allowed ? 'ok' : verdict.code === 429 ? 'wait' : 'no', verdict.message, details)],
    code: verdict.code,
  };
}

/** Returns the claims, with one for each pod that an announced downscale removes or that the StatefulSet controller may replace. */
function announcedPods(snapshot: Snapshot, group: GroupDefinition): readonly Claim[] {
  const view = viewGroup(snapshot, group);
  if (!profileOf(group).checksEveryDownscale) return view.ledger.claims;
  const leaving = view.zones.flatMap(({ zone, claims, set, pods: members }) =>
    claims
      .filter((claim) => claim.verb === 'scaleDown')
      .flatMap(({ to = 0 }) => members.filter((pod) => pod.ordinal >= (set?.firstOrdinal ?? 0) + to))
      .map(({ uid, ordinal }): Claim => ({ verb: 'deletePod', zone: zone.name, uid, ordinal, atMs: snapshot.nowMs })),
  );
  return [...view.ledger.claims, ...leaving, ...releasedClaims({ view, nowMs: snapshot.nowMs })];
}
