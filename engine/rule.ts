// What a rule is, and the five ways in which it answers.
import type { Source } from '../policies/definition.ts';
import type { RuleOutcome, RuleResult } from './decision.ts';

/** One question about one step. A rule is pure: the same question has the same answer. */
export interface Rule<Question> {
  /** kebab-case; what people see and name in exceptions. */
  readonly id: string;
  /** What the rule holds, in a few words, for the list of rules. */
  readonly title: string;
  readonly evaluate: (question: Question) => RuleResult;
}

/** The optional parts of a result; undefined ones are left out of it. */
interface ResultDetails {
  readonly limit?: string | undefined;
  readonly source?: Source | undefined;
  readonly earliestMs?: number | undefined;
  readonly digest?: string | undefined;
}

/** A result with only those details that are there. */
export function result(rule: string, outcome: RuleOutcome, fact: string, details: ResultDetails = {}): RuleResult {
  return {
    rule,
    outcome,
    fact,
    ...(details.limit === undefined ? {} : { limit: details.limit }),
    ...(details.source === undefined ? {} : { source: details.source }),
    ...(details.earliestMs === undefined ? {} : { earliestMs: details.earliestMs }),
    ...(details.digest === undefined ? {} : { digest: details.digest }),
  };
}

/** Whether a result keeps a step from being taken now. */
export function blocks(answer: RuleResult): boolean {
  return answer.outcome === 'wait' || answer.outcome === 'no' || answer.outcome === 'unknown';
}

/** Whether a budget holds because its limit is nothing, which neither time nor progress changes. */
export function isLimitOfZero({ rule, outcome, limit }: RuleResult): boolean {
  return outcome === 'no' && limit === '0' && (rule === 'zone-budget' || rule === 'eviction-budget');
}

/** The outcome of a step whose rules answered like this: one `no` blocks it, anything else that holds makes it wait. */
export function stepOutcome(results: readonly RuleResult[]): 'act' | 'wait' | 'blocked' {
  if (results.some((answer) => answer.outcome === 'no')) return 'blocked';
  return results.some(blocks) ? 'wait' : 'act';
}

/** The earliest of the given instants; undefined when there is none. */
export function earliest(instants: readonly (number | undefined)[]): number | undefined {
  let first: number | undefined;
  for (const instant of instants) if (instant !== undefined && (first === undefined || instant < first)) first = instant;
  return first;
}
