// Checks the properties that every decision must have. The agent checks those with S, for safety, before each destructive action.

import type { GroupDefinition } from '../../policies/definition.ts';
import { preciseText } from '../../policies/instant.ts';
import { exceptionFor } from '../../policies/join.ts';
import { traitsOf } from '../../policies/strategies.ts';
import { unavailableLimit } from '../amount.ts';
import { contextOf, type GroupContext, zoneNamed } from '../context.ts';
import { isNewAnswer } from '../decide/preparations.ts';
import { boundedReplicas } from '../decide/replicas.ts';
import { type Action, type GroupDecision, type ReplacedPod, replacedBy } from '../decision.ts';
import { isCrashing, partitionOrdinal, type ZoneView } from '../observe/view.ts';
import { profileOf } from '../profiles.ts';
import { leavingPods } from '../rules/leaving.ts';
import { inFlightBefore, isMixed } from '../rules/pod-state.ts';
import { withRollback } from '../run/run.ts';
import type { PodView, Snapshot } from '../snapshot.ts';

interface Decided {
  readonly context: GroupContext;
  readonly decision: GroupDecision;
}

interface Invariant {
  /** A stable id, such as S1 in docs/simulation.md. */
  readonly id: string;
  readonly title: string;
  /** `native`: does not apply to the drop-in profile, because grafana/rollout-operator breaks the invariant by design. */
  readonly scope: 'all' | 'native';
  readonly violations: (decided: Decided) => readonly string[];
}

type Scale = Extract<Action, { kind: 'scaleStatefulSet' }>;

function replacements(decision: GroupDecision): readonly ReplacedPod[] {
  return decision.actions.flatMap(replacedBy);
}

function decreases(decision: GroupDecision): readonly Scale[] {
  return decision.actions.filter((action): action is Scale => action.kind === 'scaleStatefulSet' && action.to < action.from);
}

/** Reports whether an exception in force allows what one of these rules would block. */
function isExcepted({ exceptions, group, nowMs }: GroupContext, zone: string, ...rules: readonly string[]): boolean {
  return rules.some((rule) => exceptionFor(exceptions, rule, { group: group.name, zone }, nowMs).kind === 'one');
}

const oneZone: Invariant = {
  id: 'S1',
  title: 'a pod is disrupted only while every other zone is ready',
  scope: 'all',
  violations: ({ context, decision }) => {
    const zones = [...new Set(replacements(decision).map((action) => action.zone))];
    const scaled = profileOf(context.group).checksEveryDownscale ? decreases(decision).map((action) => action.zone) : [];
    const forced = new Set(context.group.zones.filter((zone) => zone.forceReplicas !== undefined).map((zone) => zone.name));
    const all = [...new Set([...zones, ...scaled.filter((zone) => !forced.has(zone))])];
    const several = zones.length > 1 ? [`zones ${zones.join(' and ')} are disrupted at the same time`] : [];
    // In grafana/rollout-operator a paused zone with unready pods blocks no other zone if every other zone is ready.
    const lenient = profileOf(context.group).ignoresPausedZone && context.view.zones.filter((view) => !view.isReady).length <= 1;
    const bound = all.filter((zone) => !isExcepted(context, zone, 'other-zones-ready') && !isSingleRepair(context, decision, zone));
    const broken = bound.flatMap((zone) =>
      context.view.zones
        .filter((view) => view.zone.name !== zone && !view.isReady && !(lenient && view.zone.paused))
        .map((view) => `zone ${zone} is disrupted while zone ${view.zone.name} is not ready`),
    );
    return [...several, ...broken];
  },
};

/**
 * Reports whether exactly one pod of the zone is replaced and is stuck, no zone shrinks, no other zone is unknown, and each claimed pod of
 * another zone already has an outdated successor.
 */
function isSingleRepair(context: GroupContext, decision: GroupDecision, zone: string): boolean {
  const [repaired, ...more] = replacements(decision).filter((action) => action.zone === zone);
  const view = zoneNamed(context, zone);
  if (repaired === undefined || view === undefined || more.length > 0 || decreases(decision).length > 0) return false;
  const isSettled = context.view.zones.every(
    (other) =>
      other === view ||
      (other.unknown === undefined &&
        other.claims.every((claim) => other.outdated.some(({ ordinal, uid }) => ordinal === claim.ordinal && uid !== claim.uid))),
  );
  return (
    repaired.because === 'stuck' && !isHealthy(view, repaired.ordinal) && isSettled && profileOf(context.group).repairsStuckPodsAcrossZones
  );
}

const zoneBudget: Invariant = {
  id: 'S2',
  title: 'the replacement of an available pod keeps the unavailable pods of the zone within the budget',
  scope: 'all',
  violations: ({ context, decision }) =>
    context.view.zones.flatMap((view) => {
      const replaced = replacements(decision).filter((action) => action.zone === view.zone.name);
      const healthy = replaced.filter((action) => isHealthy(view, action.ordinal));
      const limit = budgetOf(context, view);
      if (healthy.length === 0 || limit === undefined) return [];
      const down = view.unavailableCount + healthy.length;
      return down > limit ? [`zone ${view.zone.name} would have ${down} unavailable pods with a limit of ${limit}`] : [];
    }),
};

function isHealthy(view: ZoneView, ordinal: number): boolean {
  return view.available.has(ordinal);
}

/** Returns the limit of the zone; undefined if a PodDisruptionBudget sets the limit, or if an exception removes it. */
function budgetOf(context: GroupContext, view: ZoneView): number | undefined {
  const { maxUnavailable } = view.zone;
  if (maxUnavailable === 'fromBudget' || isExcepted(context, view.zone.name, 'zone-budget')) return undefined;
  const caps = context.policies.flatMap(({ limits }) =>
    limits.maxUnavailable === undefined ? [] : [unavailableLimit(limits.maxUnavailable, view.replicas)],
  );
  return Math.min(unavailableLimit(maxUnavailable, view.replicas), ...caps);
}

const knownOnly: Invariant = {
  id: 'S4',
  title: 'no pod is disrupted while a zone is unknown, and no pod is replaced while a status is older than its spec',
  scope: 'all',
  violations: ({ context, decision }) => {
    if (replacements(decision).length + decreases(decision).length === 0) return [];
    const unread = context.view.zones.filter((view) => view.unknown !== undefined).map((view) => view.unknown ?? '');
    if (!profileOf(context.group).waitsForObservedGeneration) return replacements(decision).length === 0 ? [] : unread;
    const old = context.view.zones.filter(({ set }) => set !== undefined && set.status.observedGeneration < set.generation);
    const rolled = replacements(decision).length > 0;
    return [...unread, ...(rolled ? old.map((view) => `the status of ${view.zone.statefulSet} is older than its spec`) : [])];
  },
};

const rightTarget: Invariant = {
  id: 'S6',
  title: 'only an outdated pod is replaced, and the request has the UID of the observed pod',
  scope: 'all',
  violations: ({ context, decision }) =>
    replacements(decision).flatMap((action) => {
      const view = zoneNamed(context, action.zone);
      const pod = view?.pods.find((candidate) => candidate.name === action.pod);
      if (pod === undefined) return [`${action.pod} does not exist`];
      const wrong = pod.revision === view?.desiredRevision ? [`${action.pod} is at the update revision`] : [];
      const other = pod.uid === action.uid ? [] : [`${action.pod} has another UID`];
      return [...wrong, ...other];
    }),
};

const rightPartition: Invariant = {
  id: 'S6p',
  title: 'a partition exposes only the chosen pods, and no updated pod falls below a raised partition and loses its update',
  scope: 'native',
  violations: ({ context, decision }) =>
    decision.actions.flatMap((action) => {
      if (action.kind !== 'setPartition') return [];
      const view = zoneNamed(context, action.zone);
      const set = view?.set;
      if (view === undefined || set === undefined) return [`the StatefulSet of zone ${action.zone} is unknown`];
      const outdated = view.outdated.filter((pod) => pod.ordinal >= set.firstOrdinal + action.to && !view.exposedByPartition.includes(pod));
      const others = outdated
        .filter((pod) => !action.pods.some(({ uid }) => uid === pod.uid))
        .map((pod) => `${pod.name} would be replaced without being chosen`);
      // Pinned pods come back at their own revision at any partition.
      const isReverting = !traitsOf(context.group).pinsPods && set.status.currentRevision !== set.status.updateRevision;
      const reverted = view.pods.filter(
        (pod) =>
          isReverting &&
          pod.revision === set.status.updateRevision &&
          pod.ordinal >= partitionOrdinal(set) &&
          pod.ordinal < set.firstOrdinal + Math.min(action.to, set.replicas),
      );
      return [...others, ...reverted.map((pod) => `${pod.name} would come back at ${set.status.currentRevision}`)];
    }),
};

const replacedOnce: Invariant = {
  id: 'S7',
  title: 'no pod is replaced twice',
  scope: 'all',
  violations: ({ context, decision }) => {
    const uids = replacements(decision).map((action) => action.uid);
    const twice = uids.filter((uid, index) => uids.indexOf(uid) !== index).map((uid) => `${uid} is replaced twice`);
    const terminating = replacements(decision)
      .filter((action) => zoneNamed(context, action.zone)?.pods.find((pod) => pod.uid === action.uid)?.isTerminating)
      .map((action) => `${action.pod} is already terminating`);
    return [...twice, ...terminating];
  },
};

const settled: Invariant = {
  id: 'S8',
  title: 'a zone starts only if the previous zone is ready again',
  scope: 'native',
  violations: ({ context, decision }) => {
    const before = context.view.ledger.run?.openZone;
    const open = zoneNamed(context, before);
    const begun = replacements(decision).find(
      ({ zone }) => zone !== before && !isExcepted(context, zone, 'other-zones-ready') && !isSingleRepair(context, decision, zone),
    );
    return begun !== undefined && open !== undefined && !open.isReady ? [`zone ${begun.zone} starts before zone ${before} is ready`] : [];
  },
};

const unhealthyFirst: Invariant = {
  id: 'S9',
  title: 'only an unavailable pod is replaced regardless of the budget, and the pods in flight stay within the limit',
  scope: 'native',
  violations: ({ context, decision }) =>
    context.view.zones.flatMap((view) => {
      const limit = budgetOf(context, view);
      const replaced = replacements(decision).filter((action) => action.zone === view.zone.name);
      if (limit === undefined || replaced.length === 0) return [];
      const repaired = view.pods.find((pod) => replaced.some(({ uid }) => uid === pod.uid));
      const isRepair = replaced.every(({ because }) => because === 'stuck');
      const atOnce = replaced.length + (isRepair && repaired !== undefined ? inFlightBefore(view, repaired) : view.inFlight);
      const most = view.set?.podManagementPolicy === 'OrderedReady' ? 1 : limit;
      const over = atOnce > Math.max(1, most) ? [`${atOnce} pods of zone ${view.zone.name} would be in flight`] : [];
      const stuck = replaced
        .filter((action) => action.because === 'stuck' && isHealthy(view, action.ordinal))
        .map((action) => `${action.pod} is available, not stuck`);
      const early = replaced.flatMap((action) => {
        const pod = view.pods.find((candidate) => candidate.uid === action.uid);
        const isNew =
          pod !== undefined &&
          action.because === 'stuck' &&
          !isCrashing(pod) &&
          context.nowMs - pod.readyChangedMs < context.group.rollout.replaceUnready.afterMs;
        return isNew ? [`${action.pod} is replaced before it counts as stuck`] : [];
      });
      return [...over, ...stuck, ...early];
    }),
};

const delayWindow: Invariant = {
  id: 'S11',
  title: 'a pod is removed only after it has been prepared for the whole delay',
  scope: 'all',
  violations: ({ context, decision }) =>
    decreases(decision).flatMap((action) => {
      const view = zoneNamed(context, action.zone);
      const delayed = view?.zone.delayed;
      const applies = profileOf(context.group).checksEveryDownscale
        ? view?.zone.forceReplicas === undefined
        : view?.zone.replicas.kind === 'mirror' && view.zone.follows === undefined;
      if (view === undefined || delayed === undefined || !applies || isExcepted(context, action.zone, 'delayed-downscale')) return [];
      const { pods, lost } = leavingPods(view, context.view.ledger, action);
      const early = pods.flatMap((pod) => delayViolations(context, pod, delayed.afterMs));
      if (lost === undefined) return early;
      return [...early, `ordinal ${lost} of zone ${action.zone} is removed while it has no pod that could prepare`];
    }),
};

/** Returns the violations of the delay `afterMs`, in milliseconds, by a pod that leaves. */
function delayViolations(context: GroupContext, pod: PodView, afterMs: number): readonly string[] {
  const entry = context.view.ledger.preparations.find((candidate) => candidate.podUid === pod.uid && candidate.call === 'delayed');
  const since =
    profileOf(context.group).delayStart === 'reported'
      ? entry?.reportedMs
      : Math.max(entry?.seenMs ?? 0, (entry?.reportedMs ?? 0) <= context.nowMs ? (entry?.reportedMs ?? 0) : 0);
  const isRipe = entry?.state === 'prepared' && since !== undefined && context.nowMs - since >= afterMs;
  if (!isRipe) return [`${pod.name} is removed before it has been prepared for the whole delay`];
  return isNewAnswer(entry, { nowMs: context.nowMs, ripeMs: since + afterMs })
    ? []
    : [`${pod.name} is removed without a recent confirmation`];
}

const zoneGapKept: Invariant = {
  id: 'S12',
  title: 'the required time passes between decreases of two zones',
  scope: 'native',
  violations: ({ context, decision }) =>
    decreases(decision).flatMap((action) => {
      const view = zoneNamed(context, action.zone);
      const gapMs = Math.max(view?.zone.betweenZonesMs ?? 0, context.limits.betweenZonesMs ?? 0);
      if (view?.zone.forceReplicas !== undefined || isExcepted(context, action.zone, 'zone-gap')) return [];
      const claims = context.view.ledger.claims.filter((claim) => claim.verb === 'scaleDown');
      return [...context.view.ledger.downscales, ...claims]
        .filter((record) => record.zone !== action.zone && record.atMs <= context.nowMs && context.nowMs - record.atMs < gapMs)
        .map((record) => `zone ${action.zone} shrinks too soon after zone ${record.zone}`);
    }),
};

const followerFloor: Invariant = {
  id: 'S13',
  title: 'a follower never shrinks below its leader, and grows before its leader is ready only if policy allows it',
  scope: 'native',
  violations: ({ context, decision }) =>
    decision.actions.flatMap((action) => (action.kind === 'scaleStatefulSet' ? followerViolations(context, action) : [])),
};

function followerViolations(context: GroupContext, action: Scale): readonly string[] {
  const view = zoneNamed(context, action.zone);
  const leader = zoneNamed(context, view?.zone.follows);
  if (view === undefined || leader === undefined || view.zone.forceReplicas !== undefined) return [];
  if (isExcepted(context, action.zone, action.to < action.from ? 'leader-floor' : 'leader-ready')) return [];
  if (action.to < action.from) return action.to < leader.replicas ? [`zone ${action.zone} shrinks below its leader`] : [];
  return view.zone.followersWaitFor === 'leaderReady' && leader.unavailable > 0
    ? [`zone ${action.zone} grows before its leader is ready`]
    : [];
}

const floor: Invariant = {
  id: 'S14',
  title: 'a zone never shrinks to zero and never grows outside its bounds',
  scope: 'native',
  violations: ({ context, decision }) =>
    decision.actions.flatMap((action) => {
      const view = action.kind === 'scaleStatefulSet' ? zoneNamed(context, action.zone) : undefined;
      if (action.kind !== 'scaleStatefulSet' || view === undefined || view.zone.forceReplicas !== undefined) return [];
      if (isExcepted(context, action.zone, 'scale-floor', 'scale-ceiling')) return [];
      if (action.to < action.from && action.to < 1) return [`zone ${action.zone} is scaled to zero`];
      if (view.zone.follows !== undefined || action.to < action.from) return [];
      return boundedReplicas(action.to, view.zone.bounds, context.limits) === action.to
        ? []
        : [`zone ${action.zone} grows outside its bounds`];
    }),
};

const noMixing: Invariant = {
  id: 'S15',
  title: 'no pod is replaced while a zone shrinks, and no zone shrinks during the rollout of another zone',
  scope: 'native',
  violations: ({ context, decision }) => {
    const both = replacements(decision).length > 0 && decision.actions.some((action) => action.kind === 'scaleStatefulSet');
    const bound = replacements(decision).filter(({ zone }) => !isExcepted(context, zone, 'replica-write-in-flight'));
    const shrinking = context.view.zones.filter((view) => bound.some((replaced) => isMixed(context, view, replaced)));
    const forced = new Set(context.group.zones.filter((zone) => zone.forceReplicas !== undefined).map((zone) => zone.name));
    const { run } = decision;
    const rolling = decreases(decision).filter(
      ({ zone }) =>
        !forced.has(zone) &&
        !isExcepted(context, zone, 'rollout-in-progress') &&
        run?.outcome === 'running' &&
        run.openZone !== undefined &&
        run.openZone !== zone,
    );
    return [
      ...(both ? ['pods are replaced and replicas are written in one turn'] : []),
      ...shrinking.map((view) => `pods are replaced while zone ${view.zone.name} shrinks`),
      ...rolling.map((action) => `zone ${action.zone} shrinks during the rollout of zone ${run?.openZone}`),
    ];
  },
};

const explained: Invariant = {
  id: 'L9',
  title: 'a group that waits reports why, and never waits for a time in the past',
  scope: 'all',
  violations: ({ context, decision }) => {
    const past = decision.waits
      .filter(({ earliestMs }) => earliestMs !== undefined && earliestMs <= context.nowMs)
      .map(({ rule, earliestMs }) => `${rule} waits for ${preciseText(earliestMs ?? 0)}, which has passed`);
    if (decision.outcome !== 'wait' && decision.outcome !== 'blocked') return past;
    return decision.waits.length > 0 ? past : ['the group waits without a reason'];
  },
};

export const decisionInvariants: readonly Invariant[] = [
  oneZone,
  zoneBudget,
  knownOnly,
  rightTarget,
  rightPartition,
  replacedOnce,
  settled,
  unhealthyFirst,
  delayWindow,
  zoneGapKept,
  followerFloor,
  floor,
  noMixing,
  explained,
];

interface DecidedGroup {
  readonly snapshot: Snapshot;
  readonly group: GroupDefinition;
  readonly decision: GroupDecision;
}

/** Returns every violation of a decision as `id: text`. */
export function violationsOf({ snapshot, group, decision }: DecidedGroup): readonly string[] {
  const context = withRollback(contextOf(snapshot, group));
  return decisionInvariants
    .filter((invariant) => invariant.scope === 'all' || profileOf(group).checksNativeInvariants)
    .flatMap((invariant) => invariant.violations({ context, decision }).map((what) => `${invariant.id}: ${what}`));
}
