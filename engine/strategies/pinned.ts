// Implements the strategy `pinned`: the ledger pins pods to a revision, and the webhook on pod creation gives new pods that revision.

import { formatDuration } from '../../policies/duration.ts';
import { holdingPartition } from '../../policies/strategies.ts';
import type { GroupContext } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import type { ZoneView } from '../observe/view.ts';
import { profileOf } from '../profiles.ts';
import { result } from '../rule.ts';
import { isBelowPartition } from '../rules/pod-state.ts';
import type { RollQuestion } from '../rules/roll.ts';
import { requestsFor } from '../run/requests.ts';
import type { RunState } from '../run/run-state.ts';
import { isUnknown, isWithinClockSkew, type Pin, type PodView, type StatefulSetView } from '../snapshot.ts';
import { choosePods, queuePods, replacePods } from './on-delete.ts';
import { partitionSource, restartWarnings, type SetPartition, setPartition, settleZones } from './partition.ts';
import { templateOf } from './pinned/pins.ts';
import type { Allowance, ChosenPod, Strategy } from './strategy.ts';

/** The most attempts to bring one pod to one revision. Each attempt is a replacement. After the last attempt a person must act. */
const maxPlacements = 2;

/** The pause between two replacements of one pod, in milliseconds: long enough for a new or restarted webhook to answer. */
const pauseMs = 30_000;

/** The time until a revision that could not be read is read again, in milliseconds. */
const rereadMs = 5_000;

export const pinned: Strategy = {
  queuePods: (question) => queuePods(question, misplacedPods(question.context, question.zone.view)),
  choosePods: chooseAgainFirst,
  withoutDenied: (_chosen, allowed) => allowed,
  // The StatefulSet controller creates every pod at the current revision, so the action names the revision of the successor.
  replacePods: (context, view, chosen) => replacePods(context, view, chosen, view.desiredRevision),
  checkStep: (question) => [...partitionHeld(question.zone.view), ...pinWebhook(question), revisionKnown(question), pinApplied(question)],
  settlePartitions: (context) => settleZones(context, holdPartition),
  warnOfRestarts: (context, run) => restartWarnings(context, run, (view, set) => otherStart(context, run, view, set)),
};

/**
 * Returns a clause if the StatefulSet controller creates pods of a rolled-back zone at another revision than that of the zone, because every
 * pod of the zone ran this revision before. Pins bring such a pod to its revision only if the webhook answers.
 */
function otherStart(
  { group }: GroupContext,
  run: RunState | undefined,
  { zone, desiredRevision }: ZoneView,
  { status: { currentRevision, updateRevision } }: StatefulSetView,
): string | undefined {
  const failed = run?.rolledBack?.revisions[zone.name];
  const isRolledBack = desiredRevision !== updateRevision || failed === currentRevision;
  if (!isRolledBack || currentRevision === desiredRevision || currentRevision === '') return undefined;
  const undo = `kubectl rollout-group undo ${group.namespace}/${group.name} --zone ${zone.name} --to-revision ${desiredRevision}`;
  const why = failed === currentRevision ? 'which was rolled back' : `not at ${desiredRevision}`;
  return `while no webhook answers, new and restarted pods of zone ${zone.name} start at ${currentRevision}, ${why}; return the template in Git to ${desiredRevision}, or run: ${undo}`;
}

/** Returns the write that raises the partition to 1000000. Pods that do not run the current revision are pinned and keep their revision. */
function holdPartition(context: GroupContext, view: ZoneView, { partition }: StatefulSetView): readonly SetPartition[] {
  return partition === holdingPartition ? [] : setPartition(context, view, { to: holdingPartition, because: 'pinned' });
}

/** Blocks while a partition lets the StatefulSet controller replace pods by itself. */
function partitionHeld({ pods, surplus, set }: ZoneView): readonly RuleResult[] {
  if (set === undefined || set.updateStrategy !== 'RollingUpdate') return [];
  const details = { limit: `${holdingPartition}`, source: partitionSource(set) };
  const free = pods.filter((pod) => pod.revision !== set.status.updateRevision && !surplus.includes(pod) && !isBelowPartition(set, pod));
  if (free.length === 0) return [result('partition-kept', 'ok', `the partition is ${set.partition}`, details)];
  const names = free.map(({ name }) => name).join(', ');
  return [result('partition-kept', 'wait', `partition ${set.partition} lets the StatefulSet controller replace ${names}`, details)];
}

/** Chooses pods as `onDelete` does, but only misplaced pods if the zone has any. Another pod could come back at the wrong revision too. */
function chooseAgainFirst(question: RollQuestion, queue: readonly PodView[], allowance: Allowance): readonly ChosenPod[] {
  const picked = choosePods(question, queue, allowance);
  const again = misplacedPods(question.context, question.zone.view);
  const isByOrdinal = !profileOf(question.context.group).replacesUnreadyPodsFirst;
  return again.length === 0 || isByOrdinal ? picked : picked.filter(({ pod }) => again.includes(pod));
}

interface Misplaced {
  readonly pod: PodView;
  readonly pin: Pin;
}

function misplaced({ view }: Pick<GroupContext, 'view'>, { zone, desiredRevision, pods, claims }: ZoneView): readonly Misplaced[] {
  return (view.ledger.pins ?? []).flatMap((pin): readonly Misplaced[] => {
    if (pin.zone !== zone.name || pin.revision !== desiredRevision) return [];
    const pod = pods.find(({ ordinal, isTerminating }) => ordinal === pin.ordinal && !isTerminating);
    const isPlaced = pod === undefined || pod.revision === pin.revision || pod.uid === pin.replaces;
    return isPlaced || claims.some(({ uid }) => uid === pod.uid) ? [] : [{ pod, pin }];
  });
}

/** Returns the pods that did not come back at the revision of the run, for example because the webhook could not be reached. */
function misplacedPods(context: Pick<GroupContext, 'view'>, zone: ZoneView): readonly PodView[] {
  return misplaced(context, zone).map(({ pod }) => pod);
}

/** Blocks unless the webhook on pod creation is known to be registered. A plan from manifests reads no webhook configuration. */
function pinWebhook({ context: { snapshot } }: RollQuestion): readonly RuleResult[] {
  if (snapshot.webhookProblems === undefined) return [];
  const { pins, coverage } = snapshot.webhookProblems;
  const because = (why: string): string => `no pod is replaced without the webhook on pod creation: ${why}`;
  if (isUnknown(pins)) return [result('pin-webhook', 'unknown', because(pins.unknown))];
  if (pins !== undefined) return [result('pin-webhook', 'no', because(pins))];
  if (coverage !== undefined) return [result('pin-webhook', 'wait', because(coverage))];
  return [result('pin-webhook', 'ok', 'the webhook on pod creation is registered')];
}

/**
 * Blocks for 30 s after the replacement of a pod that came back at the wrong revision, as when the webhook does not answer. After two
 * attempts for one pod a person must act; `retry` allows new attempts.
 */
function pinApplied({ context, run, zone }: RollQuestion): RuleResult {
  const limit = `${maxPlacements} attempts`;
  const describe = (found: readonly Misplaced[]): string => found.map(({ pod }) => `${pod.name} at ${pod.revision}`).join(', ');
  const lasting = context.view.zones.flatMap((view) => misplaced(context, view)).filter((one) => isLasting(context, run, one));
  if (lasting.length > 0) {
    const wanted = [...new Set(lasting.map(({ pin }) => pin.revision))];
    const fact = `${describe(lasting)} came back ${maxPlacements} times, but not at ${wanted.join(', ')}: the webhook on pod creation was not called or did not answer`;
    const source = { object: `ControllerRevision ${context.group.namespace}/${wanted[0]}` };
    return result('pin-applied', 'wait', fact, { limit, source });
  }
  const wrong = misplaced(context, zone.view);
  if (wrong.length === 0) return result('pin-applied', 'ok', 'every pinned pod runs its revision');
  const fact = `${describe(wrong)} came back without the webhook and ${wrong.length === 1 ? 'is' : 'are'} replaced again`;
  const againMs = Math.max(...wrong.map(({ pin: { atMs = 0 } }) => (isWithinClockSkew(context, atMs) ? atMs + pauseMs : 0)));
  if (againMs <= context.nowMs) return result('pin-applied', 'ok', fact, { limit });
  return result('pin-applied', 'wait', fact, { limit: `${formatDuration(pauseMs)} between attempts`, earliestMs: againMs });
}

/** Reports whether all attempts of a pod are used up. An attempt that a fast clock dated in the future counts as old. */
function isLasting(context: GroupContext, run: RunState, { pin }: Misplaced): boolean {
  const { placements, atMs = 0 } = pin;
  if (placements < maxPlacements) return false;
  const sinceMs = isWithinClockSkew(context, atMs) ? atMs : 0;
  return !requestsFor(context, run, 'retry').some(({ requestedBy }) => requestedBy.atMs > sinceMs);
}

/**
 * Blocks until the template of the target revision is known. If a rollback has lost this template, then the run fails. A plan from manifests
 * reads no ControllerRevisions and skips the rule.
 */
function revisionKnown({ context, zone: { view } }: RollQuestion): RuleResult {
  const { set, zone, desiredRevision: name } = view;
  const { revisions } = context.snapshot;
  if (set === undefined || revisions === undefined) return result('revision-known', 'skip', 'no ControllerRevision is needed');
  if (name === set.status.currentRevision) return result('revision-known', 'ok', `${name} is the current revision of ${set.name}`);
  const template = templateOf(context.view, context.snapshot, { zone: zone.name, statefulSet: set.name, name });
  const source = { object: `ControllerRevision ${context.group.namespace}/${name}` };
  const details = { source, earliestMs: context.nowMs + rereadMs };
  if (template === undefined) {
    const isMissing = revisions.some((one) => one.statefulSet === set.name && one.name === name);
    if (isMissing && name !== set.status.updateRevision) {
      const fact = `zone ${zone.name} cannot return to ${name}: its ControllerRevision no longer exists. Apply the pod template of ${name} again`;
      return result('revision-known', 'no', fact, { source });
    }
    const why = isMissing ? 'does not exist' : 'was not read yet';
    return result('revision-known', 'unknown', `the ControllerRevision ${name} ${why}`, details);
  }
  if (isUnknown(template))
    return result('revision-known', 'unknown', `the ControllerRevision ${name} could not be read: ${template.unknown}`, details);
  return result('revision-known', 'ok', `the template of ${name} is known`, { source });
}
