// Draws sequences of steps. Most of them let kubelets work between the changes, so that the controllers have something to do.
import { oneOf, type Random, streamOf, wholeBetween } from '../../../../simulation/random.ts';
import type { Created, PodState, Step, StepSequence, StrategyKind } from './step.ts';

interface Drawing {
  readonly random: Random;
  /** True for a control plane with the feature gate MaxUnavailableStatefulSet. */
  readonly hasMaxUnavailable: boolean;
}

/** Returns the sequence of that number among those of the seed. */
export function generateSteps(seed: number, number: number, { hasMaxUnavailable = false } = {}): StepSequence {
  const random = streamOf(seed, `steps ${number}`);
  const drawing = { random, hasMaxUnavailable };
  const first: Step = { kind: 'create', ...created(drawing, 1), isFixed: true };
  const rounds = Array.from({ length: wholeBetween(random, 0, 4) }, () => drawKubelets(drawing));
  const budget = random() < 0.4 ? [drawBudget(drawing)] : [];
  const count = wholeBetween(random, 5, 15);
  return { operations: [first, ...budget, ...rounds, ...Array.from({ length: count }, () => drawStep(drawing))] };
}

function created(drawing: Drawing, version: number): Created {
  const { random } = drawing;
  return {
    podManagementPolicy: oneOf(random, ['OrderedReady', 'OrderedReady', 'Parallel']),
    ...drawStrategy(drawing),
    replicas: oneOf(random, [0, 1, 2, 3, 3, 4, 4, 5, 6]),
    start: random() < 0.85 ? 0 : 2,
    minReadySeconds: random() < 0.7 ? 0 : 86_400,
    version,
  };
}

function drawStrategy({ random, hasMaxUnavailable }: Drawing): Pick<Created, 'strategy' | 'partition' | 'maxUnavailable'> {
  const strategy: StrategyKind = oneOf(random, ['RollingUpdate', 'RollingUpdate', 'RollingUpdate', 'OnDelete', 'withoutBlock']);
  const partition = oneOf(random, [0, 0, 0, 0, 1, 2, 3, 1_000_000]);
  return { strategy, partition, ...(hasMaxUnavailable ? { maxUnavailable: oneOf(random, [1, 2, 3, '50%']) } : {}) };
}

const budgetSpecs: readonly Readonly<Record<string, number | string>>[] = [
  { maxUnavailable: 1 },
  { maxUnavailable: 0 },
  { maxUnavailable: '50%' },
  { minAvailable: 2 },
  { minAvailable: '60%' },
];

function drawBudget({ random }: Drawing): Step {
  if (random() < 0.15) return { kind: 'budget' };
  const policy = random() < 0.25 ? { unhealthyPodEvictionPolicy: 'AlwaysAllow' } : {};
  return { kind: 'budget', spec: { ...oneOf(random, budgetSpecs), ...policy } };
}

function drawKubelets({ random }: Drawing): Step {
  return random() < 0.7 ? { kind: 'kubelets' } : { kind: 'kubelets', isDescending: true };
}

function ordinal(random: Random): number {
  return wholeBetween(random, 0, 5);
}

const draws: readonly (readonly [number, (drawing: Drawing) => Step])[] = [
  [9, drawKubelets],
  [2, ({ random }) => ({ kind: 'replicas', replicas: wholeBetween(random, 0, 6) })],
  [4, ({ random }) => ({ kind: 'template', version: wholeBetween(random, 1, 4) })],
  [2, (drawing) => ({ kind: 'strategy', ...drawStrategy(drawing) })],
  [1, ({ random }) => ({ kind: 'minReady', seconds: oneOf(random, [0, 86_400] as const) })],
  [0.5, ({ random }) => ({ kind: 'start', ordinal: wholeBetween(random, 0, 3) })],
  [0.7, () => ({ kind: 'orphan' })],
  [1.2, (drawing) => ({ kind: 'create', ...created(drawing, wholeBetween(drawing.random, 1, 4)) })],
  [1.5, ({ random }) => ({ kind: 'delete', ordinal: ordinal(random) })],
  [1.5, ({ random }) => ({ kind: 'evict', ordinal: ordinal(random) })],
  [2, ({ random }) => ({ kind: 'gone', ordinal: ordinal(random) })],
  [1.2, ({ random }) => ({ kind: 'finalizer', ordinal: ordinal(random), isSet: random() < 0.6 })],
  [1.5, ({ random }) => ({ kind: 'node', state: oneOf(random, ['lost', 'lost', 'evicting', 'back', 'back'] as const) })],
  [6, ({ random }) => ({ kind: 'pod', ordinal: ordinal(random), state: drawState(random) })],
  [1, drawBudget],
];

function drawState(random: Random): PodState {
  return oneOf(random, ['ready', 'ready', 'ready', 'young', 'young', 'unready', 'unready', 'failed', 'succeeded']);
}

function drawStep(drawing: Drawing): Step {
  let left = drawing.random() * draws.reduce((sum, [weight]) => sum + weight, 0);
  const found = draws.find(([weight]) => {
    left -= weight;
    return left < 0;
  });
  return found === undefined ? { kind: 'kubelets' } : found[1](drawing);
}
