// Plays a sequence on the model and on another side, step by step, and compares them whenever the controllers are at rest.
import { isDeepStrictEqual } from 'node:util';
import type { ModelSide } from './model-side.ts';
import type { Step, StepSequence } from './step.ts';
import { type Side, Workload, type WorkloadState } from './workload.ts';

export interface StepDifference {
  readonly index: number;
  readonly model: unknown;
  readonly real: unknown;
}

export interface Sides {
  readonly model: ModelSide;
  readonly real: Side;
  /** Waits until the other side may have changed. Returns false if it has had enough time. */
  readonly wait: (attempt: number) => Promise<boolean>;
}

/**
 * Returns the first step after which the two sides differ for good; undefined if they never do. The model is at rest after each step. The
 * other side is at rest when it has the state of the model, and at the end it must keep this state.
 */
export async function differAt(
  { operations }: StepSequence,
  { model, real, wait }: Sides,
  namespace: string,
): Promise<StepDifference | undefined> {
  const [one, other] = [new Workload(model, namespace), new Workload(real, namespace)];
  await Promise.all([one.prepare(), other.prepare()]);
  for (const [index, step] of operations.entries()) {
    const [expected, found] = await Promise.all([one.play(step), other.play(step)]);
    if (!isDeepStrictEqual(expected, found)) return { index, model: { answers: expected }, real: { answers: found } };
    await model.settle();
    await one.touchBudget();
    await model.settle();
    const state = await one.read(true);
    const last = await reach(other, state, wait);
    if (last !== undefined) return { index, model: state, real: last };
  }
  const state = await one.read(true);
  await wait(lastLook);
  const last = await reach(other, state, async () => false);
  return last === undefined ? undefined : { index: operations.length - 1, model: state, real: last };
}

/** The attempt whose wait is long enough for a controller that still has something to do. */
const lastLook = 8;

/** Returns undefined as soon as the workload has the state, or its last state if it never has. */
async function reach(workload: Workload, state: WorkloadState, wait: Sides['wait']): Promise<WorkloadState | undefined> {
  for (let attempt = 0; ; attempt += 1) {
    const found = await workload.read(false);
    if (isDeepStrictEqual(found, state)) {
      await workload.read(true);
      return undefined;
    }
    await workload.touchBudget();
    if (!(await wait(attempt))) return found;
  }
}

/** Describes a difference: the steps up to it, and the values that differ. */
export function tellSteps({ operations }: StepSequence, { index, model, real }: StepDifference): string {
  const steps = operations.slice(0, index + 1).map((step: Step, at) => `${at === index ? '>' : ' '} ${at} ${JSON.stringify(step)}`);
  const lines = differences('', model, real).map((line) => `    ${line}`);
  return [...steps, '  they differ in (model | real):', ...lines].join('\n');
}

function differences(path: string, one: unknown, other: unknown): readonly string[] {
  if (isDeepStrictEqual(one, other)) return [];
  if (!isFilled(one) || !isFilled(other)) return [`${path}: ${JSON.stringify(one)} | ${JSON.stringify(other)}`];
  const keys = [...new Set([...Object.keys(one), ...Object.keys(other)])].sort();
  return keys.flatMap((key) => differences(`${path}.${key}`, one[key], other[key]));
}

function isFilled(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
