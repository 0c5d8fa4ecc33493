// State of one evaluation of a condition: remaining steps, variables read, and the early end as unknown.
import { messageOf } from '../error-message.ts';

/** The reason why an evaluation is undecided. */
interface Undecided {
  /** The unknown variable that was read; empty if the evaluation itself was at fault. */
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

/** Limit of steps of one evaluation, so that no condition delays an admission request. One step takes about a microsecond. */
const fuelPerEvaluation = 20_000;

/** Thrown through json-logic-js, which has no other early exit, and caught in `evaluating`. */
const stopSignal = Symbol('undecided');

// json-logic-js passes only the data to operators. Evaluation is synchronous, so one variable can hold the current evaluation.
let current: Evaluation | undefined;

type Outcome<Value> =
  | { readonly kind: 'value'; readonly value: Value; readonly reads: readonly string[] }
  | ({ readonly kind: 'undecided' } & Undecided);

/**
 * Runs `evaluate` as a separate evaluation at the instant `nowMs`. Any error means *undecided*: json-logic-js throws a TypeError if
 * JavaScript cannot convert a value, and an error must not count as permission.
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

/** Subtracts steps before the work starts, or ends the evaluation if too few steps are left. */
export function spend(steps: number): void {
  if (!current) return;
  current.fuel -= steps;
  if (current.fuel < 0) stop(`the condition needs more than ${fuelPerEvaluation} steps`);
}

/** Subtracts the steps for a value of this many characters: one step for each 64. */
export function spendText(length: number): void {
  spend(1 + (length >> 6));
}

/** Subtracts the steps for a search. The worst case of a search grows with both lengths. */
export function spendSearch(textLength: number, patternLength: number): void {
  spend(1 + Math.ceil((textLength * patternLength) / 4096));
}

/** Records that the answer depends on a variable. */
export function noteRead(path: string): void {
  current?.reads.add(path);
}

/** Returns the instant of the evaluation in milliseconds since 1970. */
export function evaluationNowMs(): number {
  return current?.nowMs ?? Number.NaN;
}
