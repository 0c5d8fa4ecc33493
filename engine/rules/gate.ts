// Evaluates a gate from its readings. A gate never passes while it has no reading, or only an old one.
import { evaluateCondition } from '../../policies/condition/condition.ts';
import type { GateDefinition } from '../../policies/definition.ts';
import { formatDuration } from '../../policies/duration.ts';
import { type GroupContext, sourceOf } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import { ageSince, result } from '../rule.ts';
import type { GateReading } from '../snapshot.ts';

interface GateVerdict {
  readonly answer: RuleResult;
  /** True if an enforced gate reached its failure limit. */
  readonly hasFailed: boolean;
  readonly fromMs: number;
}

type Judged = 'success' | 'failure' | 'neutral';

const stalePeriods = 3;

/** The end of the fact about a gate that was not read yet. */
export const noReading = 'has no reading yet';

/** Returns the verdict on one gate from the readings since `sinceMs` plus the initial delay of the gate. */
export function gateVerdict(context: GroupContext, gate: GateDefinition, sinceMs: number): GateVerdict {
  const rule = 'gate';
  const fromMs = sinceMs + gate.initialDelayMs;
  const source = sourceOf(context, `gates.${gate.name}`);
  const failing = isLimited(gate) ? `; ${gate.failureLimit} ${gate.failureLimit === 1 ? 'failure fails' : 'failures fail'} the run` : '';
  const limit = `${gate.consecutive} in a row, every ${formatDuration(gate.everyMs)}${failing}`;
  const readings = readingsOf(context, gate).filter((reading) => reading.atMs >= fromMs && reading.atMs <= context.nowMs);
  const judged = judgedByInstant(gate, readings, context.nowMs);
  const failures = judged.filter((verdict) => verdict === 'failure').length;
  const streak = judged.length - 1 - judged.findLastIndex((verdict) => verdict !== 'success');
  const last = readings.at(-1);
  const hasFailed = isLimited(gate) && failures >= gate.failureLimit;
  const fact = `${gate.name} ${describeReading(last)}; ${streak} of ${gate.consecutive} successes in a row, ${failures} failed`;
  const verdict = (answer: RuleResult): GateVerdict => ({ answer, hasFailed, fromMs });
  if (hasFailed) return verdict(result(rule, 'no', fact, { limit: `fewer than ${gate.failureLimit} failures`, source }));
  // Only as many further readings as are still missing in a row can pass the gate.
  const passesAfter = (firstMs: number): number | undefined => ahead(context, firstMs + (gate.consecutive - streak - 1) * gate.everyMs);
  if (last === undefined)
    return verdict(result(rule, 'wait', `${gate.name} ${noReading}`, { limit, source, earliestMs: passesAfter(fromMs) }));
  if (context.nowMs - last.atMs > stalePeriods * gate.everyMs) {
    const age = ageSince('ago', last.atMs, context.nowMs);
    return verdict(result(rule, 'unknown', `${gate.name} was last read ${age.words}`, { limit, source, age }));
  }
  const outcome = streak >= gate.consecutive ? 'ok' : last.result === 'error' ? 'unknown' : 'wait';
  const earliestMs = outcome === 'wait' ? passesAfter(last.atMs + gate.everyMs) : undefined;
  return verdict(result(rule, outcome, fact, { limit, source, earliestMs }));
}

/** Reports whether failed readings of the gate fail the run. */
function isLimited({ mode, failureLimit }: GateDefinition): boolean {
  return mode === 'enforce' && failureLimit > 0;
}

/** The number of failures that are kept for display, if the failure limit does not need more. */
const shownFailures = 10;

/** Returns the readings, oldest first, that can change a verdict: the newest `consecutive` ones and the counted failures before them. */
export function countedReadings(gate: GateDefinition, readings: readonly GateReading[]): readonly GateReading[] {
  const begin = Math.max(0, readings.length - gate.consecutive);
  const newest = readings.slice(begin);
  const isFailure = (reading: GateReading): boolean => judgeReading(gate, reading, reading.atMs) === 'failure';
  const failures = readings.slice(0, begin).filter(isFailure);
  return [...failures.slice(-Math.max(gate.failureLimit, shownFailures)), ...newest];
}

/** Returns the instant if it is in the future. An overdue reading may arrive at any moment, so it gives no instant. */
function ahead({ nowMs }: GroupContext, instant: number): number | undefined {
  return instant > nowMs ? instant : undefined;
}

function readingsOf(context: GroupContext, gate: GateDefinition): readonly GateReading[] {
  const found = context.snapshot.gateReadings.find(
    (candidate) =>
      candidate.namespace === context.group.namespace && candidate.group === context.group.name && candidate.gate === gate.name,
  );
  return [...(found?.readings ?? [])].sort((a, b) => a.atMs - b.atMs || (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

/** Returns one verdict per instant, the worst of its readings, so that a reading stored twice counts once. */
function judgedByInstant(gate: GateDefinition, readings: readonly GateReading[], nowMs: number): readonly Judged[] {
  const badness = { success: 0, neutral: 1, failure: 2 };
  const verdicts = new Map<number, Judged>();
  for (const reading of readings) {
    const verdict = judgeReading(gate, reading, nowMs);
    const before = verdicts.get(reading.atMs);
    if (before === undefined || badness[verdict] > badness[before]) verdicts.set(reading.atMs, verdict);
  }
  return [...verdicts.values()];
}

/** Returns the verdict on one reading, evaluated at `nowMs`. */
export function judgeReading(gate: GateDefinition, reading: GateReading, nowMs: number): Judged {
  const onError = gate.onError === 'fail' ? 'failure' : 'neutral';
  const onNoData = gate.noData === 'fail' ? 'failure' : 'neutral';
  if (reading.result === 'noData') return gate.noData === 'pass' ? 'success' : onNoData;
  if (reading.result === 'error') return onError;
  // A value that is not a finite number counts as no data, but never as a success.
  if (reading.result === 'notFinite' || !Number.isFinite(reading.value)) return onNoData;
  const answer = evaluateCondition(gate.pass, { value: reading.value }, nowMs);
  if (answer.kind === 'unknown') return onError;
  return answer.isTrue ? 'success' : 'failure';
}

function describeReading(reading: GateReading | undefined): string {
  if (reading === undefined) return 'has no reading';
  if (reading.result === 'value' || reading.result === 'notFinite') return `is ${reading.value}`;
  return reading.result === 'noData' ? 'has no data' : `could not be read: ${reading.message}`;
}
