// Parses the conditions of `status --for`, and checks whether a group meets them.

import { isAtRest } from '../../engine/decision.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { isRolledBack, type PersonNeeded, personNeeded } from '../../engine/publish/status.ts';
import { isRunOfOlderTemplate } from '../../engine/publish/template-change.ts';
import { type ExitCode, exitCodes, usageFailure } from '../failure.ts';

type Condition =
  | { readonly kind: 'complete' | 'paused' }
  | { readonly kind: 'zone'; readonly zone: string }
  | { readonly kind: 'wave'; readonly wave: string };

/** Parses a condition. Throws Failure if the text is not a condition. */
export function parseCondition(text: string): Condition {
  if (text === 'complete' || text === 'paused') return { kind: text };
  const [key, value = '', ...rest] = text.split('=');
  if (value !== '' && rest.length === 0 && key === 'zone') return { kind: 'zone', zone: value };
  if (value !== '' && rest.length === 0 && key === 'wave') return { kind: 'wave', wave: value };
  throw usageFailure(`--for ${text} is not a condition`, 'write complete, paused, zone=NAME or wave=NAME');
}

/** Returns the condition for messages: `complete` or `wave rest`. */
export function conditionText(condition: Condition): string {
  if (condition.kind === 'zone') return `zone ${condition.zone}`;
  return condition.kind === 'wave' ? `wave ${condition.wave}` : condition.kind;
}

/** The facts of a group from which a condition is evaluated. */
export interface Judged {
  readonly decision: PublishedDecision;
  /** The names of the waves in their order; empty if the definition cannot be read. */
  readonly waves: readonly string[];
  /** True if a member changed since the decision. */
  readonly isOutdated: boolean;
  /** True if a stop began or ended since the decision. */
  readonly areStopsOutdated: boolean;
}

/** Reports whether the group meets the condition. Throws Failure if the group has no such zone or wave. */
function isMet(condition: Condition, judged: Judged): boolean {
  const { decision, isOutdated, areStopsOutdated } = judged;
  // After a rollback, pods count as updated at the revision that they keep, not at the requested revision.
  const isCurrent = !isOutdated && !isRolledBack(decision);
  switch (condition.kind) {
    case 'complete':
      return isCurrent && isOver(decision) && decision.zones.every(areWavesDone);
    case 'paused':
      return !areStopsOutdated && isPaused(decision);
    case 'zone':
      return isZoneUpdated(zoneIn(decision, condition.zone)) && isCurrent;
    case 'wave':
      return isWaveDone(condition.wave, judged) && isCurrent && !isRunOfOlderTemplate(decision);
  }
}

function isPaused({ phase, waits, stops = [] }: PublishedDecision): boolean {
  return (
    phase === 'Paused' ||
    stops.some(({ rule }) => rule === 'paused') ||
    waits.some(({ rule, outcome }) => rule === 'paused' && outcome === 'wait')
  );
}

/** Reports whether the rollout is over. Cleanup that replaces no pod may follow. */
function isOver({ outcome, phase }: PublishedDecision): boolean {
  return outcome === 'done' || isAtRest({ phase });
}

type Zone = PublishedDecision['zones'][number];

/** Reports whether the waves have no pod of the zone left to replace, and every pod is available. The phase of the group does not show this. */
function areWavesDone({ replicas, updated, available, unread, podsInNoWave = 0 }: Zone): boolean {
  return unread === undefined && updated + podsInNoWave === replicas && available >= replicas;
}

/** Reports whether every pod of the zone is available at the update revision. */
function isZoneUpdated(zone: Zone): boolean {
  return areWavesDone(zone) && zone.podsInNoWave === undefined;
}

function zoneIn({ zones, namespace, group }: PublishedDecision, name: string): Zone {
  const zone = zones.find((candidate) => candidate.zone === name || candidate.statefulSet === name);
  if (zone !== undefined) return zone;
  throw usageFailure(`${namespace}/${group} has no zone ${name}`, `its zones: ${zones.map((one) => one.zone).join(', ')}`);
}

/** Reports whether a wave is over: a later wave is in progress, or the run is complete. */
function isWaveDone(wanted: string, { decision, waves }: Judged): boolean {
  const { wave, namespace, group } = decision;
  const count = waves.length === 0 ? wave?.count : waves.length;
  const index = /^\d+$/.test(wanted) ? Number(wanted) - 1 : waves.indexOf(wanted);
  if (index >= (count ?? Number.POSITIVE_INFINITY) || (index < 0 && waves.length > 0)) {
    throw usageFailure(
      `${namespace}/${group} has no wave ${wanted}`,
      waves.length === 0 ? 'wave numbers start at 1' : `its waves: ${waves.join(', ')}`,
    );
  }
  if (isOver(decision) && decision.zones.every(areWavesDone)) return true;
  if (index < 0 && wave?.name !== wanted) {
    throw usageFailure(
      `the waves of ${namespace}/${group} are not readable here, so wave ${wanted} cannot be found`,
      'give the number of the wave',
    );
  }
  return wave !== undefined && index >= 0 && wave.index > index;
}

/** Reports whether the rollback of the failed run follows. A failed run is a stop only if no rollback follows. */
function isAboutToRollBack({ run, stops }: PublishedDecision): boolean {
  return run?.outcome === 'failed' && stops?.every(({ rule }) => rule !== 'run-failed') === true;
}

/** Reports whether the waves are done with the zone, but leave some of its pods outdated. */
function isInNoWave(zone: Zone): boolean {
  return areWavesDone(zone) && zone.podsInNoWave !== undefined;
}

export interface VerdictOptions {
  readonly condition: Condition;
  /** True if waiting ends when a person must act. */
  readonly failOnPause: boolean;
}

/**
 * Returns the exit code if waiting ends: the condition is met, the run failed or was aborted, or no wave updates the zone of the condition.
 * With `failOnPause`, waiting also ends if a person must act.
 */
export function verdictOn(judged: Judged, { condition, failOnPause }: VerdictOptions): ExitCode | undefined {
  const { decision, isOutdated, areStopsOutdated } = judged;
  if (isMet(condition, judged)) return exitCodes.done;
  if (isOutdated) return undefined;
  if (isAboutToRollBack(decision)) return undefined;
  if (decision.phase === 'Failed' || decision.run?.outcome === 'failed' || isRolledBack(decision)) return exitCodes.failed;
  // An unverified abort only pauses the group. It also ends the wait, because the group does not continue by itself.
  if (!areStopsOutdated && decision.stops?.some(({ isAbort }) => isAbort === true) === true) return exitCodes.failed;
  // The waves are done with the zone, so only a change of the waves can meet the condition.
  if (condition.kind === 'zone' && isInNoWave(zoneIn(decision, condition.zone))) return exitCodes.waiting;
  return failOnPause && !areStopsOutdated && personNeeded(decision) !== undefined ? exitCodes.waiting : undefined;
}

/** Returns why the group is blocked until a person acts; undefined if the group makes progress or the decision is outdated. */
export function standstillOf({ decision, isOutdated, areStopsOutdated }: Judged): PersonNeeded | undefined {
  return isOutdated || areStopsOutdated ? undefined : personNeeded(decision);
}
