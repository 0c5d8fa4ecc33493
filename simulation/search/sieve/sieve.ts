// Plans made from a run without faults, after the three patterns of Sieve (Sun et al., OSDI 2022): what a controller can miss or leave half done.
import type { PlacedFault } from '../../faults/fault.ts';
import { draw } from '../../random.ts';
import type { Scenario } from '../../scenario.ts';
import type { RecordedLine, RecordedWrite, Recording, Says } from './record.ts';

export const sievePatterns = ['intermediate', 'stale', 'unobserved'] as const;
/**
 * `intermediate`: the process dies when a write was applied, before or after it learns of it. `stale`: after a line that contradicts one that led
 * to a write, the process sees the world as it was with the former, having died or only lost its watch. `unobserved`: a change and its undoing
 * are hidden.
 */
export type SievePattern = (typeof sievePatterns)[number];

export interface SievePlan {
  /** Unique within a recording. */
  readonly name: string;
  readonly pattern: SievePattern;
  readonly fault: PlacedFault;
  /** What the fault waits for, in words that hold on any server. */
  readonly trigger: SieveTrigger;
}

type SieveTrigger =
  /** The so manieth request of the place, from 1. */
  | { readonly kind: 'write'; readonly site: string; readonly count: number; readonly moment: 'afterApply' | 'afterReply' }
  /** What lines say of one object (RecordedLine): at first `was`, then `is`. */
  | { readonly kind: 'change'; readonly object: string; readonly aspect: string; readonly was: string; readonly is: string };

/** The scenario of the recording with what the plan does to it. */
export function scenarioOfPlan(scenario: Scenario, { fault }: SievePlan): Scenario {
  return { ...scenario, faults: [fault] };
}

/** All of them, in the order of the places at which they strike. */
export function plansOf(recording: Recording): readonly SievePlan[] {
  return [...intermediatePlans(recording), ...stalePlans(recording), ...unobservedPlans(recording)];
}

/** At most so many, spread evenly over the whole; which ones of each stretch, the seed decides. */
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

/** Whoever begins anew has to wait for the Lease of who died (15 s) and is to act in the past. */
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
      // Whoever acts otherwise for not having seen it may keep the end of it from coming as soon.
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

/** The agent acts in turns: what it has seen by one turn it acts upon in that turn, or in the next one. */
function mayHaveLedTo(line: RecordedLine, write: RecordedWrite): boolean {
  return line.process === write.process && line.order < write.order && write.turn - line.turn <= 1;
}

function isActedUpon(lines: readonly RecordedLine[], writes: readonly RecordedWrite[]): boolean {
  return lines.some((line) => writes.some((write) => mayHaveLedTo(line, write)));
}

/** What changes pods and StatefulSets, not what tells of it. */
function isOnWorkload({ site }: RecordedWrite): boolean {
  return site.startsWith('act.') || site.startsWith('pods.') || site.startsWith('revoke.');
}

function isOfSame(line: RecordedLine, other: RecordedLine): boolean {
  return line.process === other.process && line.object === other.object;
}

/** Of what the former speaks and the later says otherwise. */
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
