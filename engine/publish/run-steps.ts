// The steps of a record: actions of one kind in one zone, one after the other, are one step.

import { instantText } from '../../policies/instant.ts';
import type { RolloutRun } from '../../policies/schema/kinds.ts';
import { runLimits } from '../../policies/schema/rollout-run.ts';
import { ordinalRanges } from '../amount.ts';
import { type Action, replacedBy } from '../decision.ts';
import { actionText } from './action-text.ts';
import type { TakenAction } from './published.ts';

type Spec = RolloutRun['spec'];
type Step = Spec['steps'][number];

/** The record with what was done at an instant. Beyond 100 steps those in the middle are left out and counted. */
export function addSteps(spec: Spec, taken: readonly TakenAction[], atMs: number, wave: string | undefined): Spec {
  let steps = spec.steps;
  let { stepsOmitted = 0 } = spec;
  for (const one of taken) {
    const step = stepOf(one, atMs, wave);
    const last = steps.at(-1);
    steps = last !== undefined && isSameStep(last, step) ? [...steps.slice(0, -1), merged(last, step)] : [...steps, step];
    if (steps.length > runLimits.steps) {
      const middle = Math.floor(runLimits.steps / 2);
      steps = steps.filter((_, index) => index !== middle);
      stepsOmitted += 1;
    }
  }
  return { ...spec, steps, ...(stepsOmitted === 0 ? {} : { stepsOmitted }) };
}

const kinds: Readonly<Record<Action['kind'], Step['action']>> = {
  deletePod: 'replace',
  evictPod: 'replace',
  scaleStatefulSet: 'scale',
  setPartition: 'replace',
  callPods: 'prepare',
  writeBackReplicas: 'writeBack',
  advanceCurrentRevision: 'advanceRevision',
};

function stepOf({ action, result, message }: TakenAction, atMs: number, wave: string | undefined): Step {
  const isWithdrawal = action.kind === 'callPods' && action.method === 'DELETE';
  const ordinals = 'ordinals' in action ? action.ordinals : replacedBy(action).map(({ ordinal }) => ordinal);
  const at = instantText(atMs) ?? '1970-01-01T00:00:00Z';
  return {
    action: isWithdrawal ? 'withdraw' : kinds[action.kind],
    ...('zone' in action ? { zone: action.zone } : {}),
    ...(wave === undefined ? {} : { wave }),
    what: actionText(action).slice(0, 1024),
    ...(ordinals.length === 0 ? {} : { pods: shortRanges(ordinals) }),
    count: 1,
    ...(result === 'done' ? {} : { failures: 1, message: `${result}${message === undefined ? '' : `: ${message}`}`.slice(0, 256) }),
    startedAt: at,
    endedAt: at,
  };
}

function isSameStep(a: Step, b: Step): boolean {
  return a.action === b.action && a.zone === b.zone && a.wave === b.wave;
}

function merged(before: Step, next: Step): Step {
  const failures = (before.failures ?? 0) + (next.failures ?? 0);
  const pods = before.pods === undefined || next.pods === undefined ? (before.pods ?? next.pods) : joinRanges(before.pods, next.pods);
  const message = next.message ?? before.message;
  return {
    ...before,
    what: next.what,
    ...(pods === undefined ? {} : { pods }),
    count: before.count + next.count,
    ...(failures === 0 ? {} : { failures }),
    ...(message === undefined ? {} : { message }),
    endedAt: next.endedAt,
  };
}

/** The union of two texts of ranges. One that ends in dots was cut, and stays as it is. */
function joinRanges(a: string, b: string): string {
  if (a.endsWith('…') || b.endsWith('…')) return a;
  return shortRanges([...new Set([...ordinalsOf(a), ...ordinalsOf(b)])]);
}

function ordinalsOf(ranges: string): readonly number[] {
  return ranges.split(',').flatMap((range) => {
    const [first = 0, last = first] = range.split('-').map(Number);
    // Records are objects that anybody with the permission may have written.
    return Array.from({ length: Math.min(100_000, Math.max(0, last - first + 1)) }, (_, index) => first + index);
  });
}

function shortRanges(ordinals: readonly number[]): string {
  const ranges = ordinalRanges(ordinals);
  return ranges.length <= 1000 ? ranges : `${ranges.slice(0, 1000).replace(/,[^,]*$/, '')},…`;
}
