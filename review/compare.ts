// Compares the answers of both sides to one question: which rules block only on one side, and by how much a wait differs.
import type { RuleResult } from '../engine/decision.ts';
import type { Answer } from '../engine/policy-test/answer.ts';
import { blocks } from '../engine/rule.ts';
import { compareText } from '../policies/values/compare-text.ts';
import type { Direction } from './document.ts';
import type { Question } from './questions.ts';

/** The answer of one side, at the instant of the question. */
export type Answered = Pick<Answer, 'decision' | 'results' | 'warned' | 'pods' | 'inNoWave' | 'replicas'>;

/** A rule that blocks more on one side than on the other, and its results. `changed`: no rule does, but the agent replaces other pods. */
export interface Flip {
  readonly question: Question;
  readonly direction: Direction;
  /** Empty if no rule makes the difference: for `changed`, and for another number of pods that no budget limits. */
  readonly rule: string;
  readonly before: RuleResult | undefined;
  readonly after: RuleResult | undefined;
  readonly answers: { readonly before: Answered; readonly after: Answered };
}

/** A difference that a rule makes. */
export type RuleFlip = Flip & { readonly direction: 'loosened' | 'tightened' };

export function isOfRule(flip: Flip): flip is RuleFlip {
  return flip.direction !== 'changed';
}

/** Returns the side that blocks more, and the other side. */
export function strictFirst(direction: Direction): readonly ['before' | 'after', 'before' | 'after'] {
  return direction === 'loosened' ? ['before', 'after'] : ['after', 'before'];
}

/** Returns the rules that make the difference. Exchanged sides give the same rules with the other direction. */
export function compareAnswers(question: Question, before: Answered, after: Answered): readonly Flip[] {
  const flip = (direction: Flip['direction'], rule: string): Flip => ({
    question,
    direction,
    rule,
    answers: { before, after },
    before: strongest(before, rule),
    after: strongest(after, rule),
  });
  const isOfWaves = leavesOthers({ before, after });
  const others = isOfWaves || replacesOthers(before, after) ? [flip('changed', '')] : [];
  // The change leaves one side nothing to do, so no rule of this side is comparable.
  if ((before.decision === 'done') !== (after.decision === 'done')) return others;
  const ruled = [
    ...lostRules(question, before, after).map((rule) => flip('loosened', rule)),
    ...lostRules(question, after, before).map((rule) => flip('tightened', rule)),
  ];
  return ruled.length > 0 && !isOfWaves ? ruled : [...ruled, ...others];
}

/** Reports whether the waves of the sides leave pods of different StatefulSets outdated. */
export function leavesOthers({ before, after }: Flip['answers']): boolean {
  return (before.inNoWave ?? []).join() !== (after.inNoWave ?? []).join();
}

/** Reports whether both sides act or are done, and replace pods of different StatefulSets. */
function replacesOthers(before: Answered, after: Answered): boolean {
  const isFree = [before, after].every(({ decision }) => decision === 'act' || decision === 'done');
  return isFree && setsOf(before).join() !== setsOf(after).join();
}

/** Returns the StatefulSets whose pods are replaced. */
export function setsOf({ pods }: Pick<Answered, 'pods'>): readonly string[] {
  return [...new Set(pods.map((pod) => pod.replace(/-\d+$/, '')))].sort(compareText);
}

/** Returns the rules that block or warn in `from`, and block less in `to`. */
function lostRules({ nowMs }: Question, from: Answered, to: Answered): readonly string[] {
  const overall = severity(from, nowMs) - severity(to, nowMs);
  const names = [...new Set([...from.results.filter(blocks).map(({ rule }) => rule), ...from.warned.filter(isOfPolicy)])];
  const lost = names.filter((rule) => {
    // A rule that was not evaluated blocks nothing if the whole answer is no stricter. Preparations are evaluated last.
    if (!to.warned.includes(rule) && strongest(to, rule) === undefined) return isLate(rule) ? overall > 0 : overall >= 0;
    return strengthIn(from, rule, nowMs) > strengthIn(to, rule, nowMs);
  });
  if (lost.length > 0 || overall <= 0) return lost;
  return [fullBudget(from, to) ?? ''];
}

function strengthIn(answer: Answered, rule: string, nowMs: number): number {
  return strength(strongest(answer, rule), nowMs) + (isOfPolicy(rule) && answer.warned.includes(rule) ? 1 : 0);
}

/** Reports whether the rule is a rule of a policy. Warnings of the engine are about the state of a question, and say nothing about policies. */
export function isOfPolicy(rule: string): boolean {
  return rule.includes('/');
}

function isLate(rule: string): boolean {
  return rule === 'prepare-downscale' || rule === 'delayed-downscale';
}

/** The rules that limit the number of pods that are replaced at once. */
export const ofBudgets: ReadonlySet<string> = new Set(['eviction-budget', 'disruption-budget', 'zone-budget']);

/**
 * Returns the budget that has another limit on the other side, and lets no further pod be replaced. Every other rule answers alike on both
 * sides, so it explains no other number of pods. A wave can also end before a budget is full.
 */
function fullBudget(from: Answered, to: Answered): string | undefined {
  const isOther = ({ rule, limit }: RuleResult): boolean =>
    limit !== undefined && to.results.some((one) => one.rule === rule && one.limit !== limit);
  const isFull = ({ rule, limit }: RuleResult): boolean => rule !== 'zone-budget' || from.pods.length >= Number(limit);
  return from.results.find((one) => ofBudgets.has(one.rule) && isOther(one) && isFull(one))?.rule;
}

function strongest({ results }: Answered, rule: string): RuleResult | undefined {
  const own = results.filter((one) => one.rule === rule);
  return own.reduce<RuleResult | undefined>(
    (best, one) => (best === undefined || strength(one, 0) > strength(best, 0) ? one : best),
    undefined,
  );
}

/** The order of the answers, from the loosest. The agent and admission have different answers. */
const order: Readonly<Record<string, number>> = {
  allow: 0,
  warn: 1,
  requireApproval: 2,
  hold: 3,
  deny: 4,
  act: 0,
  done: 0,
  wait: 3,
  blocked: 4,
};

const never = 1e15;

/** Returns a number that is higher for a stricter answer: first by the decision, then by its wait, then by the pods that may be replaced. */
function severity({ decision, results, pods }: Answered, nowMs: number): number {
  const waitMs = results.filter(blocks).reduce((longest, one) => Math.max(longest, waitOf(one, nowMs)), 0);
  return (order[decision] ?? 0) * 4 * never + waitMs - pods.length / 1000;
}

/** Reports whether the whole answer differs: the decision, its wait, or the number of pods. */
export function isOtherAnswer(before: Answered, after: Answered, nowMs: number): boolean {
  return severity(before, nowMs) !== severity(after, nowMs);
}

/** Returns 0 for a result that does not block, and otherwise a number that is higher for a block that is harder to end. */
function strength(result: RuleResult | undefined, nowMs: number): number {
  if (result === undefined || !blocks(result)) return 0;
  const kind = { wait: 1, unknown: 2, no: 3, ok: 0, skip: 0 }[result.outcome];
  return kind * 2 * never + waitOf(result, nowMs);
}

/** Returns the time until the result can pass without any event, in milliseconds; very long if only an event ends it. */
export function waitOf({ earliestMs }: RuleResult, nowMs: number): number {
  return earliestMs === undefined ? never : Math.max(0, earliestMs - nowMs);
}

/** Reports whether time alone ends every block of an answer. */
export function endsByTime({ results }: Answered): boolean {
  return results.filter(blocks).every(({ earliestMs }) => earliestMs !== undefined);
}
