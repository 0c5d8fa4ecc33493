// One evaluation of a condition: what it may still spend, what it has read, and how it ends early as unknown.
import { messageOf } from '../error-message.ts';

/** What evaluation ended with when it could not be decided. */
interface Undecided {
  /** The variable that was read and is not known; empty when the evaluation itself was at fault. */
  readonly paths: readonly string[];
  readonly reason: string;
}

interface Evaluation {
  readonly nowMs: number;
  readonly reads: Set<string>;
  /** Steps left. */
  fuel: number;
  undecided?: Undecided;
}

/** What one evaluation may cost, so that no condition holds up an admission request: a step is about a microsecond. */
const fuelPerEvaluation = 20_000;

/** Thrown through json-logic-js, which knows no other way out, and caught in `evaluating`. */
const stopSignal = Symbol('undecided');

// json-logic-js hands operators their data and nothing else. Evaluation is synchronous, so one variable can hold what belongs to it.
let current: Evaluation | undefined;

type Outcome<Value> =
  | { readonly kind: 'value'; readonly value: Value; readonly reads: readonly string[] }
  | ({ readonly kind: 'undecided' } & Undecided);

/**
 * Runs `evaluate` as an evaluation of its own at the instant `nowMs`. Anything that it throws means *undecided*: json-logic-js throws a
 * TypeError where JavaScript cannot convert a value, and an error in the dialect must not read as permission.
 */
export function evaluating<Value>(nowMs: number, evaluate: () => Value): Outcome<Value> {
  const outer = current;
  const evaluation: Evaluation = { nowMs, reads: new Set(), fuel: fuelPerEvaluation };
  current = evaluation;
  try {
    const value = evaluate();
    return { kind: 'value', value, reads: [...evaluation.reads].sort() };
  } catch (error) {
    if (error === stopSignal && evaluation.undecided) return { kind: 'undecided', ...evaluation.undecided };
    const text = messageOf(error);
    return { kind: 'undecided', paths: [], reason: `the condition cannot be evaluated: ${text}` };
  } finally {
    current = outer;
  }
}

/** Ends the evaluation as unknown. */
export function stop(reason: string, path?: string): never {
  if (current) current.undecided = { paths: path === undefined ? [] : [path], reason };
  throw stopSignal;
}

/** Pays for work about to be done, or ends the evaluation. */
export function spend(steps: number): void {
  if (!current) return;
  current.fuel -= steps;
  if (current.fuel < 0) stop(`the condition takes more than ${fuelPerEvaluation} steps`);
}

/** Pays for a value of this many characters: one step for each 64. */
export function spendText(length: number): void {
  spend(1 + (length >> 6));
}

/** Pays for a search, whose worst case grows with both lengths. */
export function spendSearch(textLength: number, patternLength: number): void {
  spend(1 + Math.ceil((textLength * patternLength) / 4096));
}

/** Remembers that the answer depends on a variable. */
export function noteRead(path: string): void {
  current?.reads.add(path);
}

/** The instant of the evaluation. */
export function evaluationNowMs(): number {
  return current?.nowMs ?? Number.NaN;
}
