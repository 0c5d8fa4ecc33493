// The conditions of `status --for`, and whether a group fulfils them.

import type { PublishedDecision } from '../../engine/publish/published.ts';
import { type PersonNeeded, personNeeded } from '../../engine/publish/status.ts';
import { type ExitCode, exitCodes, usageFailure } from '../failure.ts';

export type Condition =
  | { readonly kind: 'complete' | 'paused' }
  | { readonly kind: 'zone'; readonly zone: string }
  | { readonly kind: 'wave'; readonly wave: string };

/** Parses a condition. Throws Failure when the text is not a condition. */
export function parseCondition(text: string): Condition {
  if (text === 'complete' || text === 'paused') return { kind: text };
  const [key, value = '', ...rest] = text.split('=');
  if (value !== '' && rest.length === 0 && key === 'zone') return { kind: 'zone', zone: value };
  if (value !== '' && rest.length === 0 && key === 'wave') return { kind: 'wave', wave: value };
  throw usageFailure(`--for ${text} is not a condition`, 'write complete, paused, zone=NAME or wave=NAME');
}

/** `complete`, or `wave rest`, for messages. */
export function conditionText(condition: Condition): string {
  if (condition.kind === 'zone') return `zone ${condition.zone}`;
  return condition.kind === 'wave' ? `wave ${condition.wave}` : condition.kind;
}

/** A group with everything that its condition is evaluated from. */
export interface Judged {
  readonly decision: PublishedDecision;
  /** Names of the waves in their order; empty when the definition cannot be read. */
  readonly waves: readonly string[];
  /** Members changed since the decision was made, so that the decision is not about their current spec. */
  readonly isOutdated: boolean;
  /** A pause, a protection or an undo began or ended since the decision was made. */
  readonly areStopsOutdated: boolean;
}

/** Reports whether the group fulfils the condition. Throws Failure when it has no such zone or wave. */
function isMet(condition: Condition, judged: Judged): boolean {
  const { decision, isOutdated, areStopsOutdated } = judged;
  switch (condition.kind) {
    case 'complete':
      return !isOutdated && isOver(decision) && isWhole(decision);
    case 'paused':
      return !areStopsOutdated && isPaused(decision);
    case 'zone':
      return isZoneDone(condition.zone, decision) && !isOutdated;
    case 'wave':
      return isWaveDone(condition.wave, judged) && !isOutdated;
  }
}

function isPaused({ phase, waits, stops = [] }: PublishedDecision): boolean {
  return (
    phase === 'Paused' ||
    stops.some(({ rule }) => rule === 'paused') ||
    waits.some(({ rule, outcome }) => rule === 'paused' && outcome === 'wait')
  );
}

/** Reports whether only cleanup is left, such as touching pods to revoke old deletes: the rollout does not wait for cleanup. */
function isOver({ outcome, phase }: PublishedDecision): boolean {
  return outcome === 'done' || phase === 'Done';
}

/** Reports whether every pod is available at the newest revision. The phase alone does not count. */
function isWhole({ zones }: PublishedDecision): boolean {
  return zones.every(isZoneWhole);
}

function isZoneWhole({ replicas, updated, available }: PublishedDecision['zones'][number]): boolean {
  return updated === replicas && available >= replicas;
}

function isZoneDone(name: string, { zones, namespace, group }: PublishedDecision): boolean {
  const zone = zones.find((candidate) => candidate.zone === name || candidate.statefulSet === name);
  if (zone !== undefined) return isZoneWhole(zone);
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
      waves.length === 0 ? 'count from 1' : `its waves: ${waves.join(', ')}`,
    );
  }
  if (isOver(decision) && isWhole(decision)) return true;
  if (index < 0 && wave?.name !== wanted) {
    throw usageFailure(
      `the waves of ${namespace}/${group} are not readable here, so wave ${wanted} cannot be found`,
      'give the number of the wave',
    );
  }
  return wave !== undefined && index >= 0 && wave.index > index;
}

export interface VerdictOptions {
  readonly condition: Condition;
  /** Stops waiting when a person is needed. */
  readonly failOnPause: boolean;
}

/** Returns the exit code when waiting ends: condition fulfilled, run failed or, if requested, a person is needed. */
export function verdictOn(judged: Judged, { condition, failOnPause }: VerdictOptions): ExitCode | undefined {
  const { decision, isOutdated, areStopsOutdated } = judged;
  if (isMet(condition, judged)) return exitCodes.done;
  if (isOutdated) return undefined;
  if (decision.phase === 'Failed' || decision.run?.outcome === 'failed') return exitCodes.failed;
  return failOnPause && !areStopsOutdated && personNeeded(decision) !== undefined ? exitCodes.waiting : undefined;
}

/** Returns why the group is blocked until a person acts; undefined while it makes progress or the decision is outdated. */
export function standstillOf({ decision, isOutdated, areStopsOutdated }: Judged): PersonNeeded | undefined {
  return isOutdated || areStopsOutdated ? undefined : personNeeded(decision);
}
