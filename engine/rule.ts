// Defines rules and their results: which results block a step, and which result comes first if several block.
import type { Source } from '../policies/definition.ts';
import { formatDuration } from '../policies/duration.ts';
import { instantText, preciseText } from '../policies/instant.ts';
import { defined } from '../policies/values/defined.ts';
import type { RuleOutcome, RuleResult } from './decision.ts';

/** One entry in the list of checks of a step. The same question always has the same answer. */
export interface Check<Question> {
  /** For a check with one result: the name of the rule, which messages show and exceptions use. */
  readonly id: string;
  /** Returns one result, several, or undefined if the check does not apply. */
  readonly evaluate: (question: Question) => RuleResult | readonly RuleResult[] | undefined;
}

export function resultsOf<Question>(check: Check<Question>, question: Question): readonly RuleResult[] {
  const answer = check.evaluate(question);
  if (answer === undefined) return [];
  return 'rule' in answer ? [answer] : answer;
}

interface ResultDetails {
  readonly limit?: string | undefined;
  readonly source?: Source | undefined;
  readonly earliestMs?: number | undefined;
  readonly digest?: string | undefined;
  readonly endsBy?: RuleResult['endsBy'] | undefined;
  readonly endsWith?: string | undefined;
  readonly age?: RuleResult['age'] | undefined;
}

/** Builds a result without undefined details. */
export function result(rule: string, outcome: RuleOutcome, fact: string, details?: ResultDetails): RuleResult {
  if (details === undefined) return { rule, outcome, fact };
  const { limit, source, earliestMs, digest, endsBy, endsWith, age } = details;
  return defined({ rule, outcome, fact, limit, source, earliestMs, digest, endsBy, endsWith, age });
}

type Age = NonNullable<RuleResult['age']>;

/** Returns an age in whole seconds as the part of a fact: `5m ago`, or `for 5m`. */
export function ageSince(form: 'ago' | 'for', fromMs: number, nowMs: number): Age {
  const words = formatDuration(Math.floor(Math.max(0, nowMs - fromMs) / 1000) * 1000);
  return { words: form === 'ago' ? `${words} ago` : `for ${words}`, fromMs };
}

/**
 * Returns the fact with its age at this instant. The age of a wait, such as a soak, grows only until `earliestMs`: only a decision can tell
 * what followed.
 */
export function factAt({ fact, age, outcome, earliestMs }: Omit<RuleResult, 'rule'>, nowMs: number): string {
  if (age === undefined) return fact;
  if (isPast(age)) return fact.replace(age.words, () => ageSince('ago', age.fromMs, nowMs).words);
  const untilMs = outcome === 'wait' && earliestMs !== undefined ? Math.min(earliestMs, nowMs) : nowMs;
  return fact.replace(age.words, () => ageSince('for', age.fromMs, untilMs).words);
}

/** Returns the result for a stored text, which is read later: with the instant `at ...` or `since ...` instead of the age. */
export function storedResult<Result extends RuleResult>(result: Result): Result {
  const { fact, age } = result;
  if (age === undefined) return result;
  const instant = instantText(Math.floor(age.fromMs / 1000) * 1000) ?? '';
  const words = `${isPast(age) ? 'at' : 'since'} ${instant}`;
  return { ...result, fact: fact.replace(age.words, () => words), age: { ...age, words } };
}

/** Reports whether the age is that of an event, and not of a state that lasts. */
function isPast({ words }: Age): boolean {
  return words.endsWith(' ago') || words.startsWith('at ');
}

/** Reports whether a result stops its step now. */
export function blocks({ outcome }: RuleResult): boolean {
  return outcome === 'wait' || outcome === 'no' || outcome === 'unknown';
}

/** The rules whose wait without a time ends only by a request or another template. */
const rulesOfPerson: ReadonlySet<string> = new Set(['pin-applied', 'rolled-back', 'undone']);

/** Reports whether the result blocks the update revision until a person acts. A pause does not count: it stops a group on purpose. */
export function isUntilPerson({ rule, outcome, earliestMs }: RuleResult): boolean {
  return outcome === 'no' || (outcome === 'wait' && earliestMs === undefined && rulesOfPerson.has(rule));
}

/** The outcomes by precedence. A person ends `no`, a successful read ends `unknown`, and time, progress or a request ends `wait`. */
const precedence: readonly RuleOutcome[] = ['no', 'unknown', 'wait', 'ok', 'skip'];

/** Compares two results for `sort`: by the precedence of the outcome, then `prepare-downscale` last. Equal results keep their order. */
export function byPrecedence(a: RuleResult, b: RuleResult): number {
  const byOutcome = precedence.indexOf(a.outcome) - precedence.indexOf(b.outcome);
  return byOutcome || Number(isPreparation(a)) - Number(isPreparation(b));
}

/** Reports whether the result is about asking pods to prepare for their removal. */
export function isPreparation({ rule }: RuleResult): boolean {
  return rule === 'prepare-downscale';
}

/** Returns the results that block, in the order in which every output names them. */
export function blockingResults<Result extends RuleResult>(results: readonly Result[]): readonly Result[] {
  return results.filter(blocks).sort(byPrecedence);
}

/** Returns the blocking result that every output names first; undefined if no result blocks. */
export function leadingResult<Result extends RuleResult>(results: readonly Result[]): Result | undefined {
  return blockingResults(results)[0];
}

/** The parts of a denial, in their order in the sentence. Only `limit` and `retry` may be empty. */
interface DenialParts {
  readonly rule: string;
  readonly fact: string;
  readonly limit: string;
  readonly retry: string;
}

/** Returns the parts of a denial, each with its punctuation, so that a short message can drop some parts. */
export function denialParts({ rule, fact, limit, earliestMs }: RuleResult): DenialParts {
  return {
    rule: ` is denied by ${rule}: `,
    fact,
    limit: limit === undefined ? '' : ` (limit: ${limit})`,
    retry: earliestMs === undefined ? '' : `; retry after ${preciseText(earliestMs)}`,
  };
}

/** Returns a denial as one sentence: request, rule, fact, limit and earliest retry. `what` names the request: `eviction of pod/x in …`. */
export function denialText(what: string, leading: RuleResult): string {
  const { rule, fact, limit, retry } = denialParts(leading);
  return `${what}${rule}${fact}${limit}${retry}`;
}

/** Reports whether a budget of 0 blocks the step. Neither time nor progress ends that. */
export function isLimitOfZero({ rule, outcome, limit }: RuleResult): boolean {
  return outcome === 'no' && limit === '0' && (rule === 'zone-budget' || rule === 'eviction-budget');
}

/** Returns the outcome of a step: `blocked` if a result is `no`, `wait` if another result blocks, otherwise `act`. */
export function stepOutcome(results: readonly RuleResult[]): 'act' | 'wait' | 'blocked' {
  if (results.some(({ outcome }) => outcome === 'no')) return 'blocked';
  return results.some(blocks) ? 'wait' : 'act';
}

/** Returns the earliest of the given times in milliseconds; undefined if no time is given. */
export function earliest(instants: readonly (number | undefined)[]): number | undefined {
  let first: number | undefined;
  for (const instant of instants) if (instant !== undefined && (first === undefined || instant < first)) first = instant;
  return first;
}

/** Returns the earliest of the given times that is in the future; undefined if there is no such time. */
export function earliestAfter(nowMs: number, instants: readonly (number | undefined)[]): number | undefined {
  return earliest(instants.filter((instant) => instant !== undefined && instant > nowMs));
}
