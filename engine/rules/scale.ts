// The rules that a change of replicas must pass, upwards and downwards.
import { pods } from '../amount.ts';
import { type GroupContext, limitSource, protectSource, sourceOf, zoneNamed } from '../context.ts';
import { describeReadiness, type ZoneView } from '../observe/view.ts';
import { profileOf } from '../profiles.ts';
import { type Rule, result } from '../rule.ts';
import type { RunState } from '../snapshot.ts';
import { shortfall } from './prepared-rows.ts';
import { oldStatus, pausedByPerson } from './roll.ts';
import { zoneGap } from './zone-gap.ts';

export interface ScaleQuestion {
  readonly context: GroupContext;
  readonly zone: ZoneView;
  readonly from: number;
  readonly to: number;
  /** A person forced this number of replicas. */
  readonly isForced: boolean;
  readonly run: RunState | undefined;
  /** `agent` for writes of the agent, `admission` for writes of other clients. */
  readonly asker: 'agent' | 'admission';
}

const viewComplete: Rule<ScaleQuestion> = {
  id: 'view-complete',
  evaluate: ({ context, zone, from, to }) => {
    const unread = zone.unknown ?? context.view.zones.find((view) => view.unknown !== undefined)?.unknown;
    if (unread !== undefined) return result('view-complete', 'unknown', unread);
    return (to < from ? oldStatus(context) : undefined) ?? result('view-complete', 'ok', 'every zone was read');
  },
};

const mayScale: Rule<ScaleQuestion> = {
  id: 'scaling-hold',
  evaluate: ({ context, zone, from, to, asker }) => {
    const { name, scalingHold, scaleDownHold } = zone.zone;
    const why = (asker === 'agent' ? scalingHold : undefined) ?? (to < from ? scaleDownHold : undefined);
    if (why === undefined) return result('scaling-hold', 'ok', 'no setting blocks scaling');
    return result('scaling-hold', 'no', why, { source: sourceOf(context, `zones.${name}.scaling`, 'scaling') });
  },
};

const leaderReady: Rule<ScaleQuestion> = {
  id: 'leader-ready',
  evaluate: ({ context, zone }) => {
    const source = sourceOf(context, `zones.${zone.zone.name}.scaling`, 'scaling.up');
    const leader = zoneNamed(context, zone.zone.follows);
    if (leader?.set === undefined || zone.zone.followersWaitFor === 'nothing')
      return result('leader-ready', 'skip', 'the zone waits for no leader', { source });
    const ready = profileOf(context.group).countsPodsFromStatus
      ? leader.set.status.readyReplicas
      : leader.replicas - leader.unavailable.size;
    const fact = `leader zone ${leader.zone.name} has ${ready} of ${leader.replicas} pods ready`;
    return result('leader-ready', ready === leader.replicas ? 'ok' : 'wait', fact, {
      limit: 'all ready',
      source,
      earliestMs: leader.availableAtMs,
    });
  },
};

const noPodInFlight: Rule<ScaleQuestion> = {
  id: 'rollout-in-progress',
  evaluate: ({ context, zone, run }) => {
    const source = sourceOf(context, `zones.${zone.zone.name}.scaling`, 'scaling.duringRollout');
    if (zone.zone.duringRollout === 'allow') return result('rollout-in-progress', 'ok', 'the zone may grow during a rollout', { source });
    const open = run?.outcome === 'running' ? zoneNamed(context, run.openZone) : undefined;
    const rolling = open !== undefined && open.inFlight > 0 ? open : undefined;
    if (rolling === undefined) return result('rollout-in-progress', 'ok', 'no pod is being replaced', { source });
    return result('rollout-in-progress', 'wait', `pods of zone ${rolling.zone.name} are being replaced`, { source });
  },
};

const noDownscale: Rule<ScaleQuestion> = {
  id: 'no-downscale',
  evaluate: ({ context, zone }) => {
    const source = protectSource(context, zone.zone.name, 'noDownscale');
    if (!zone.zone.noDownscale) return result('no-downscale', 'ok', 'the zone may shrink');
    // Users search for the label, and scripts match it.
    const limit = profileOf(context.group).noDownscaleLimit;
    return result('no-downscale', 'no', `zone ${zone.zone.name} must not shrink`, { limit, source });
  },
};

const scaleFloor: Rule<ScaleQuestion> = {
  id: 'scale-floor',
  evaluate: ({ context, zone, to, isForced }) => {
    if (isForced) return result('scale-floor', 'skip', 'replicas are forced');
    const floor = Math.max(profileOf(context.group).leastReplicas, zone.zone.bounds.min ?? 0, context.limits.minReplicas ?? 0);
    if (floor === 0) return result('scale-floor', 'skip', 'no floor is set');
    const source =
      floor === context.limits.minReplicas
        ? limitSource(context, 'minReplicas')
        : sourceOf(context, `zones.${zone.zone.name}.replicas`, 'replicas');
    return result('scale-floor', to >= floor ? 'ok' : 'no', `zone ${zone.zone.name} would have ${to} replicas`, {
      limit: `at least ${floor}`,
      source,
    });
  },
};

/** Blocks growth beyond the bounds. People and autoscalers that scale a leader do not know them. */
export const scaleCeiling: Rule<ScaleQuestion> = {
  id: 'scale-ceiling',
  evaluate: ({ context, zone, to, isForced }) => {
    const ceiling = Math.min(zone.zone.bounds.max ?? Number.POSITIVE_INFINITY, context.limits.maxReplicas ?? Number.POSITIVE_INFINITY);
    if (isForced) return result('scale-ceiling', 'skip', 'replicas are forced');
    if (!Number.isFinite(ceiling)) return result('scale-ceiling', 'skip', 'no ceiling is set');
    const source =
      ceiling === context.limits.maxReplicas
        ? limitSource(context, 'maxReplicas')
        : sourceOf(context, `zones.${zone.zone.name}.replicas`, 'replicas');
    return result('scale-ceiling', to <= ceiling ? 'ok' : 'no', `zone ${zone.zone.name} would have ${to} replicas`, {
      limit: `at most ${ceiling}`,
      source,
    });
  },
};

const leaderFloor: Rule<ScaleQuestion> = {
  id: 'leader-floor',
  evaluate: ({ context, zone, to, isForced }) => {
    const leader = zoneNamed(context, zone.zone.follows);
    if (leader?.set === undefined || isForced || !profileOf(context.group).checksEveryDownscale)
      return result('leader-floor', 'skip', 'the zone follows no zone');
    const floor = Math.max(leader.replicas, leader.pods.length);
    const fact = `leader zone ${leader.zone.name} has ${leader.replicas} replicas and ${leader.pods.length} pods`;
    return result('leader-floor', to >= floor ? 'ok' : 'wait', fact, {
      limit: `at least ${floor}`,
      source: sourceOf(context, `zones.${zone.zone.name}.follows`),
    });
  },
};

const otherZonesReady: Rule<ScaleQuestion> = {
  id: 'other-zones-ready',
  evaluate: ({ context, zone, isForced }) => {
    const checksAll = profileOf(context.group).checksEveryDownscale;
    // A forced number of an adopted zone is prepared like any other number, so the other zones must be ready.
    if (checksAll ? isForced : zone.zone.prepare === undefined)
      return result('other-zones-ready', 'skip', 'the downscale does not wait for other zones');
    for (const view of context.view.zones) {
      if (view.zone.name === zone.zone.name) continue;
      const short = !checksAll && view.set !== undefined ? shortfall(view.set.status, view.pods) : undefined;
      if (short !== undefined) {
        const fact = `zone ${view.zone.name} has ${pods(short.notReady)} not ready and ${short.notUpdated} not updated`;
        return result('other-zones-ready', 'wait', fact, { limit: 'all ready and updated' });
      }
      // An announced downscale may arrive at any moment, so the StatefulSet may still show the old number.
      const isShrinking = view.claims.some(({ verb }) => verb === 'scaleDown');
      if (checksAll && (!view.isReady || isShrinking)) {
        return result('other-zones-ready', 'wait', describeReadiness(view), { limit: 'all available', earliestMs: view.availableAtMs });
      }
    }
    return result('other-zones-ready', 'ok', 'all pods of every other zone are available');
  },
};

const rolloutOver: Rule<ScaleQuestion> = {
  id: 'rollout-in-progress',
  evaluate: ({ context, zone, run, isForced }) => {
    const source = sourceOf(context, `zones.${zone.zone.name}.scaling`, 'scaling.duringRollout');
    if (isForced || !profileOf(context.group).checksEveryDownscale)
      return result('rollout-in-progress', 'skip', 'the downscale does not wait for a rollout', { source });
    const isRunning = run !== undefined && run.outcome === 'running';
    if (!isRunning) return result('rollout-in-progress', 'ok', 'no rollout runs', { source });
    if (zone.zone.duringRollout === 'wait') return result('rollout-in-progress', 'wait', 'a rollout runs', { source });
    const elsewhere = run.openZone !== undefined && run.openZone !== zone.zone.name;
    return result(
      'rollout-in-progress',
      elsewhere ? 'wait' : 'ok',
      elsewhere ? `a rollout replaces pods of zone ${run.openZone}` : 'no rollout replaces pods of another zone',
      {
        source,
      },
    );
  },
};

const gap: Rule<ScaleQuestion> = {
  id: 'zone-gap',
  evaluate: zoneGap,
};

const notPaused: Rule<ScaleQuestion> = {
  id: 'paused',
  evaluate: ({ context, zone, asker }) =>
    asker === 'agent' ? pausedByPerson(context, zone.zone.name) : result('paused', 'skip', 'a pause blocks only the agent'),
};

const replicasOwned: Rule<ScaleQuestion> = {
  id: 'replicas-owned',
  evaluate: ({ context, zone, to, asker }) => {
    const { replicas } = zone.zone;
    if (asker === 'agent' || !profileOf(context.group).ownsReplicas)
      return result('replicas-owned', 'skip', 'the group does not own the replicas');
    const source = sourceOf(context, `zones.${zone.zone.name}.replicas`, 'replicas');
    const announced = zone.claims.some((claim) => claim.verb === 'scaleDown' && claim.to === to);
    if (announced) return result('replicas-owned', 'ok', 'the agent opened a claim for this decrease', { source });
    if (zone.zone.follows !== undefined)
      return result('replicas-owned', 'no', `zone ${zone.zone.name} follows zone ${zone.zone.follows}; scale that zone instead`, {
        source,
      });
    if (replicas.kind === 'count')
      return result('replicas-owned', 'no', `the group sets the replicas; scale RolloutGroup ${context.group.name} instead`, {
        source,
      });
    if (replicas.kind === 'mirror')
      return result('replicas-owned', 'no', `the replicas are mirrored; scale ${replicas.resourceKind} ${replicas.name} instead`, {
        source,
      });
    return result('replicas-owned', 'ok', 'the replicas are written directly', { source });
  },
};

/** The rules of growth. A paused group still grows, because more pods endanger no data. */
export const scaleUpRules: readonly Rule<ScaleQuestion>[] = [viewComplete, mayScale, scaleCeiling, leaderReady, noPodInFlight];

/** The rules of a downscale before any pod is asked to prepare. */
export const scaleDownRules: readonly Rule<ScaleQuestion>[] = [
  viewComplete,
  mayScale,
  notPaused,
  replicasOwned,
  noDownscale,
  scaleFloor,
  leaderFloor,
  rolloutOver,
  otherZonesReady,
  gap,
];

/** The rules of the deletion of a StatefulSet with its pods. */
export const setLeavesRules: readonly Rule<ScaleQuestion>[] = [viewComplete, rolloutOver, otherZonesReady, gap];
