import { describe, expect, it } from 'vitest';
import type { TurnReport } from '../../../agent/report.ts';
import { decideGroup } from '../../../engine/decide/decide.ts';
import type { RunState } from '../../../engine/run/run-state.ts';
import { emptyLedger } from '../../../engine/snapshot.ts';
import { runStartMs } from '../../../simulation/process/clock.ts';
import { outdatedStatefulSet } from '../../kit/objects.ts';
import { runOf } from '../../kit/questions.ts';
import { type SnapshotOverrides, snapshotOf } from '../../kit/snapshots.ts';
import { definition, History } from './history.ts';

interface Turn extends Pick<SnapshotOverrides, 'podChanges' | 'statefulSets'> {
  readonly before?: RunState;
  readonly run: RunState;
  readonly performed?: TurnReport['performed'];
}

/** What the judge says to a decision with this run, in which all pods are available and up to date by default. */
function saidTo({ before, run, performed = [], ...objects }: Turn): readonly string[] {
  const history = new History();
  const ledger = { ...emptyLedger(definition.namespace, definition.name), ...(before === undefined ? {} : { run: before }) };
  const snapshot = snapshotOf({ groups: [definition], nowMs: runStartMs + history.nowMs, ledgers: [ledger], ...objects });
  history.turn({ snapshot, performed, decision: { ...decideGroup(snapshot, definition), run } });
  return history.found('S37');
}

const down = { 'ing-c': { 1: { isReady: false } } };
const soaking = runOf({ id: 'run1', wave: 0, waveAvailableMs: runStartMs });
const completed = runOf({ id: 'run1', outcome: 'completed', completedMs: runStartMs });

describe('the judge of progress', () => {
  it("finds 'S37' if a wave soaks while a pod outside of it is not available", () => {
    expect(saidTo({ run: soaking })).toEqual([]);
    expect(saidTo({ run: soaking, podChanges: down })).toEqual(['a1 lets wave 0 soak although ing-c-1 is not available']);
    expect(saidTo({ run: soaking, podChanges: { 'ing-a': { 2: 'missing' } } })).toEqual([
      'a1 lets wave 0 soak although ing-a has only 2 pods',
    ]);
  });

  it('finds a wave or a run that ends while a pod is not available, or with an old status', () => {
    const next = runOf({ id: 'run1', wave: 1 });
    expect(saidTo({ before: soaking, run: next })).toEqual([]);
    expect(saidTo({ before: soaking, run: next, podChanges: down })).toEqual(['a1 ends wave 1 although ing-c-1 is not available']);
    const statefulSets = [outdatedStatefulSet({ name: 'ing-b', status: { observedGeneration: 1 } })];
    expect(saidTo({ before: next, run: completed, statefulSets })).toEqual([
      'a1 ends wave 0 although the status of ing-b is older than its spec',
    ]);
    expect(saidTo({ before: completed, run: completed, podChanges: down })).toEqual([]);
  });

  it('finds a finished zone that stays open, and a replacement in a zone that is not open', () => {
    const open = runOf({ id: 'run1', wave: 0, openZone: 'a' });
    expect(saidTo({ run: open })).toEqual(['a1 keeps zone a open although it is finished']);
    expect(saidTo({ run: open, statefulSets: [outdatedStatefulSet({ name: 'ing-a' })] })).toEqual([]);
    const action = { kind: 'deletePod', namespace: 'mimir', zone: 'b', statefulSet: 'ing-b', pod: 'ing-b-0', ordinal: 0 } as const;
    const replaced = (result: 'done' | 'refused' | 'conflict') =>
      saidTo({ run: open, performed: [{ action: { ...action, because: 'outdated', uid: 'u', resourceVersion: '1' }, result }] });
    expect(replaced('done')).toEqual(['a1 replaces ing-b-0, and the open zone of the run is a']);
    // The decision in the report is then another one.
    expect([...replaced('refused'), ...replaced('conflict')]).toEqual([]);
  });
});
