// Derives plans from a run without faults by the three patterns of Sieve (Sun et al., OSDI 2022): missed events, stale views and
// interrupted work.
import type { PlacedFault } from '../../../simulation/faults/fault.ts';
import { draw } from '../../../simulation/random.ts';
import type { Scenario } from '../../../simulation/scenario.ts';
import type { RecordedLine, RecordedWrite, Recording, Says } from './record.ts';

export const sievePatterns = ['intermediate', 'stale', 'unobserved'] as const;
/**
 * `intermediate`: the process dies after a write, before or after it learns the result. `stale`: after a line that contradicts an earlier
 * one, the process sees the earlier state again, after a restart or a new watch. `unobserved`: a change and its revert are hidden.
 */
export type SievePattern = (typeof sievePatterns)[number];

export interface SievePlan {
  /** Unique within a recording. */
  readonly name: string;
  readonly pattern: SievePattern;
  readonly fault: PlacedFault;
  /** The trigger of the fault, independent of the server. */
  readonly trigger: SieveTrigger;
}

type SieveTrigger =
  /** The n-th request of the place, from 1. */
  | { readonly kind: 'write'; readonly site: string; readonly count: number; readonly moment: 'afterApply' | 'afterReply' }
  /** Facts of one object (RecordedLine): first `was`, then `is`. */
  | { readonly kind: 'change'; readonly object: string; readonly aspect: string; readonly was: string; readonly is: string };

/** Returns the scenario of the recording with the fault of the plan. */
export function scenarioOfPlan(scenario: Scenario, { fault }: SievePlan): Scenario {
  return { ...scenario, faults: [fault] };
}

/** Returns all plans in the order of their places. */
export function plansOf(recording: Recording): readonly SievePlan[] {
  return [...intermediatePlans(recording), ...stalePlans(recording), ...unobservedPlans(recording)];
}

/** Returns at most this many, spread evenly; the seed decides within each part. */
export function sampleOf(plans: readonly SievePlan[], most: number, seed: number): readonly SievePlan[] {
  if (plans.length <= most) return plans;
  return Array.from({ length: most }, (_, index) => {
    const [from, to] = [(index * plans.length) / most, ((index + 1) * plans.length) / most];
    return plans[Math.floor(from + draw(seed, `plan ${index}`) * (to - from))];
  }).flatMap((plan) => plan ?? []);
}

const restartAfterMs = 1000;

function intermediatePlans({ writes }: Recording): readonly SievePlan[] {
  return writes.flatMap(({ at, what, site }) =>
    (['afterApply', 'afterReply'] as const).map((moment) => ({
      name: `crash ${moment} at ${at} (${what})`,
      trigger: { kind: 'write' as const, site, count: Number(at.replace(/^.*#/, '')), moment },
      pattern: 'intermediate' as const,
      fault: { at, port: 'request' as const, fault: { class: 'F11' as const, kind: 'crash' as const, moment, restartAfterMs } },
    })),
  );
}

/** A new process waits for the Lease of the dead one (15 s) and should act in the past. */
const pastMs = 45_000;

function stalePlans({ writes, lines }: Recording): readonly SievePlan[] {
  const causes = new Set(writes.filter(isOnWorkload).flatMap((write) => lines.filter((line) => mayHaveLedTo(line, write))));
  const plans: SievePlan[] = [];
  for (const [index, cause] of lines.entries()) {
    if (!causes.has(cause)) continue;
    const later = lines.slice(index + 1).find((line) => isOfSame(line, cause) && aspectsOf(cause.says, line.says).length > 0);
    if (later === undefined) continue;
    const trigger = triggerOf(cause.object, cause.says, later.says);
    const name = `after ${later.at} the world as of ${cause.at} (${textOf(trigger)})`;
    const show = { class: 'F10', kind: 'showVersion', revision: cause.revision, forMs: pastMs } as const;
    plans.push({
      name: `${name}, restarted`,
      pattern: 'stale',
      trigger,
      fault: { at: later.at, port: 'line', fault: { ...show, restartAfterMs } },
    });
    plans.push({ name: `${name}, reconnected`, pattern: 'stale', trigger, fault: { at: later.at, port: 'line', fault: show } });
  }
  return plans;
}

function unobservedPlans({ writes, lines }: Recording): readonly SievePlan[] {
  const plans: SievePlan[] = [];
  const known = new Set<string>();
  for (const [index, from] of lines.entries()) {
    const after = lines.slice(index + 1).filter((line) => isOfSame(line, from));
    for (const aspect of aspectsOf(from.before, from.says)) {
      const to = after.findIndex((line) => line.says[aspect] === from.before[aspect]);
      const last = after[to];
      if (last === undefined || known.has(`${from.at} ${to}`) || !isActedUpon([from, ...after.slice(0, to + 1)], writes)) continue;
      known.add(`${from.at} ${to}`);
      const trigger = triggerOf(from.object, from.before, from.says, aspect);
      const name = `from ${from.at} until ${last.at} (${textOf(trigger)} → back)`;
      // A process that acts differently may delay the end of the hidden interval.
      const forMs = Math.ceil(2 * (last.atMs - from.atMs)) + 10_000;
      plans.push({
        name,
        pattern: 'unobserved',
        trigger,
        fault: { at: from.at, port: 'line', fault: { class: 'F8', kind: 'hide', lines: to + 1, forMs } },
      });
    }
  }
  return plans;
}

/** The agent acts in turns: on an observation in the same turn, or in the next one. */
function mayHaveLedTo(line: RecordedLine, write: RecordedWrite): boolean {
  return line.process === write.process && line.order < write.order && write.turn - line.turn <= 1;
}

function isActedUpon(lines: readonly RecordedLine[], writes: readonly RecordedWrite[]): boolean {
  return lines.some((line) => writes.some((write) => mayHaveLedTo(line, write)));
}

/** Writes that change pods and StatefulSets, without status writes. */
function isOnWorkload({ site }: RecordedWrite): boolean {
  return site.startsWith('act.') || site.startsWith('pods.') || site.startsWith('revoke.');
}

function isOfSame(line: RecordedLine, other: RecordedLine): boolean {
  return line.process === other.process && line.object === other.object;
}

/** Facts of the earlier line that the later one contradicts. */
function aspectsOf(says: Says, later: Says): readonly string[] {
  const isOther = says['exists'] !== later['exists'];
  const aspects = isOther ? ['exists', 'isReady', 'readyReplicas'] : Object.keys(says);
  return aspects.filter((aspect) => aspect in says && says[aspect] !== later[aspect]);
}

type Change = Extract<SieveTrigger, { readonly kind: 'change' }>;

function triggerOf(object: string, says: Says, later: Says, aspect = aspectsOf(says, later)[0] ?? 'exists'): Change {
  return { kind: 'change', object, aspect, was: says[aspect] ?? 'nothing', is: later[aspect] ?? 'nothing' };
}

function textOf({ object, aspect, was, is }: Change): string {
  return `${object}: ${aspect} ${short(was)} → ${short(is)}`;
}

function short(value: string): string {
  return value.length > 40 ? `${value.slice(0, 40)}…` : value;
}
