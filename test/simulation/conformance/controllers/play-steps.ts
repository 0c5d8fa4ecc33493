// Plays a sequence on the model and on another side, step by step, and compares them whenever the controllers are at rest.
import { isDeepStrictEqual } from 'node:util';
import type { ModelSide } from './model-side.ts';
import type { SingleStep, Step, StepSequence } from './step.ts';
import { type ComparedPod, type Side, Workload, type WorkloadState } from './workload.ts';

export interface StepDifference {
  readonly index: number;
  /** The part of the step that showed the difference. */
  readonly part: SingleStep;
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
 * Returns the first step after which the two sides differ for good; undefined if they never do. The model is at rest after each part of a
 * step. The other side is at rest when it has the state of the model, and at the end it must keep this state.
 */
export async function differAt({ operations }: StepSequence, sides: Sides, namespace: string): Promise<StepDifference | undefined> {
  const workloads = { one: new Workload(sides.model, namespace), other: new Workload(sides.real, namespace) };
  await Promise.all([workloads.one.prepare(), workloads.other.prepare()]);
  let state: Pick<WorkloadState, 'pods' | 'isNodeLost'> = { pods: [], isNodeLost: false };
  let last: Omit<StepDifference, 'model' | 'real'> | undefined;
  for (const [index, step] of operations.entries())
    for (const part of partsOf(step, state)) {
      last = { index, part };
      const found = await playPart(part, workloads, sides);
      if ('model' in found) return { ...last, ...found };
      state = found;
    }
  const end = await workloads.one.read(true);
  await sides.wait(lastLook);
  const real = await reach(workloads.other, end, async () => false);
  return last === undefined || real === undefined ? undefined : { ...last, model: end, real };
}

/**
 * Returns the requests of a step for the pods that exist before it. The kubelets of two pods write in any order, and the result may depend
 * on it: the step fixes the order, and the controllers rest after each request.
 */
export function partsOf(step: Step, { pods, isNodeLost }: Pick<WorkloadState, 'pods' | 'isNodeLost'>): readonly SingleStep[] {
  if (step.kind === 'node') return (step.state === 'lost') === isNodeLost ? [] : [step];
  if (isNodeLost && (step.kind === 'gone' || step.kind === 'pod' || step.kind === 'kubelets')) return [];
  // A pod that terminates and is gone in one step would be a race of the real controller with its caches.
  if (step.kind === 'gone') return pods.some((pod) => pod.ordinal === step.ordinal && pod.isTerminating) ? [step] : [];
  if (step.kind !== 'kubelets') return [step];
  const parts = pods.flatMap(kubeletOf);
  return step.isDescending === true ? parts.reverse() : parts;
}

/** Returns what a kubelet does with a pod. */
function kubeletOf({ ordinal, isTerminating, readiness, phase }: ComparedPod): readonly SingleStep[] {
  if (isTerminating) return [{ kind: 'gone', ordinal }];
  return phase === 'Failed' || phase === 'Succeeded' || readiness === 'ready' ? [] : [{ kind: 'pod', ordinal, state: 'ready' }];
}

/** Plays a part on both sides. Returns the state of both at rest, or how they differ. */
async function playPart(
  part: SingleStep,
  { one, other }: { readonly one: Workload; readonly other: Workload },
  { model, wait }: Sides,
): Promise<WorkloadState | Pick<StepDifference, 'model' | 'real'>> {
  const [expected, found] = await Promise.all([one.play(part), other.play(part)]);
  if (expected !== found) return { model: { answer: expected }, real: { answer: found } };
  await model.settle();
  await one.touchBudget();
  await model.settle();
  const state = await one.read(true);
  const real = await reach(other, state, wait);
  return real === undefined ? state : { model: state, real };
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
export function tellSteps({ operations }: StepSequence, { index, part, model, real }: StepDifference): string {
  const steps = operations.slice(0, index + 1).map((step: Step, at) => `${at === index ? '>' : ' '} ${at} ${JSON.stringify(step)}`);
  const at = operations[index] === part ? '' : `after ${JSON.stringify(part)} `;
  const lines = differences('', model, real).map((line) => `    ${line}`);
  return [...steps, `  ${at}they differ in (model | real):`, ...lines].join('\n');
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
