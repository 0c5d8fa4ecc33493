import { describe, expect, it } from 'vitest';
import { recordedKind } from '../../../engine/run/origin.ts';
import { advanceRun } from '../../../engine/run/run.ts';
import type { RunState } from '../../../engine/run/run-state.ts';
import { completeRun } from '../../../engine/run/states.ts';
import { group } from '../../kit/groups.ts';
import { kitNowMs, newRevision, oldRevision, statefulSet } from '../../kit/objects.ts';
import { contextWith, intent, ledgerOf, runOf } from '../../kit/questions.ts';

const definition = group({ zones: ['a', 'b'] });

interface Zone {
  readonly revision?: string;
  readonly cause?: string;
  readonly commit?: string;
  readonly isStale?: boolean;
  /** The commit that a GitOps tool applied. */
  readonly applied?: string;
}

const setOf = (name: string, { revision = oldRevision, cause, commit, isStale = false, applied }: Zone) => {
  const written = statefulSet({
    name: `ingester-zone-${name}`,
    annotations: {
      ...(cause === undefined ? {} : { 'kubernetes.io/change-cause': cause }),
      ...(commit === undefined ? {} : { 'rollout-group.dev/commit': commit }),
    },
    status: { updateRevision: revision },
    ...(applied === undefined ? {} : { commit: applied }),
  });
  return isStale ? { ...written, generation: written.status.observedGeneration + 1 } : written;
};

/** The run after the observation of the two zones. */
function afterTurn(run: RunState | undefined, a: Zone, b: Zone = a): RunState {
  const statefulSets = [setOf('a', a), setOf('b', b)];
  const ledgers = run === undefined ? [] : [ledgerOf({ run })];
  const next = advanceRun(contextWith(definition, { statefulSets, ledgers }))?.run;
  if (next === undefined) throw new Error('the test expected a run');
  return next;
}

const first = afterTurn(undefined, { revision: 'rev-2', cause: 'two', commit: 'c2' });
const ended = completeRun(first, first.startedMs);

describe('the origin of a run', () => {
  it('is that of the annotations that came with it', () => {
    expect(first.origin).toEqual({ cause: 'two', commit: 'c2' });
    expect(afterTurn(first, { revision: 'rev-3', cause: 'three', commit: 'c2' }).origin).toMatchObject({ cause: 'three' });
  });

  it('is not that of annotations from an earlier change', () => {
    const next = afterTurn(ended, { revision: 'rev-3', cause: 'two', commit: 'c3' });
    expect(next.origin).toEqual({ commit: 'c3' });
    expect(afterTurn(completeRun(next, 0), { revision: 'rev-4', cause: 'two', commit: 'c3' }).origin).toBeUndefined();
  });

  it('comes from the first zone that is written, and stays with the others', () => {
    const old = { revision: 'rev-2', cause: 'two', commit: 'c2' };
    const three = { revision: 'rev-3', cause: 'three', commit: 'c3' };
    const begun = afterTurn(ended, three, old);
    expect(afterTurn(begun, three).origin).toEqual({ cause: 'three', commit: 'c3' });
  });

  it('has the commit that a GitOps tool applied, unless an annotation came with the change', () => {
    const begun = afterTurn(ended, { revision: 'rev-3', applied: 'g3' });
    expect(begun.origin).toEqual({ commit: 'g3' });
    expect(afterTurn(begun, { revision: 'rev-3', applied: 'g4' }).origin).toEqual({ commit: 'g3' });
    expect(afterTurn(ended, { revision: 'rev-3', applied: 'g3', commit: 'c3' }).origin).toEqual({ commit: 'c3' });
    expect(afterTurn(ended, { revision: 'rev-3', applied: 'g3', commit: 'c2' }).origin).toEqual({ commit: 'g3' });
  });

  it('has no commit that a GitOps tool applied long after the start', () => {
    const begun = afterTurn(ended, { revision: 'rev-3' });
    const late = { ...begun, startedMs: begun.startedMs - 3_600_000 };
    expect(afterTurn(begun, { revision: 'rev-3', applied: 'g3' }).origin).toEqual({ commit: 'g3' });
    expect(afterTurn(late, { revision: 'rev-3', applied: 'g3' }).origin).toBeUndefined();
  });

  it('waits for the controller, which has not observed the template of the new annotations yet', () => {
    const stale = afterTurn(ended, { revision: 'rev-2', cause: 'three', isStale: true });
    expect([stale.origin, stale.seen]).toEqual([first.origin, first.seen]);
    expect(afterTurn(stale, { revision: 'rev-3', cause: 'three' }).origin).toEqual({ cause: 'three' });
  });
});

describe('a return from an undo', () => {
  const both = (revision: string) => ({ a: revision, b: revision });
  const origin = { isUndo: true, cause: 'undo by kim' } as const;
  const undo = runOf({ target: both(newRevision), previous: both(oldRevision), from: both(oldRevision), origin });
  const undone = ['a', 'b'].map((zone) => ({ zone, revision: oldRevision, to: newRevision }));
  const podChanges = { 'ingester-zone-a': { 0: 'missing' } } as const;

  /** The run after the zones of `back` got their template from before the undo. */
  function returned(run: RunState, back: readonly string[]) {
    const statefulSets = ['a', 'b'].map((name) => setOf(name, { revision: back.includes(name) ? oldRevision : newRevision }));
    const context = contextWith(definition, {
      statefulSets,
      podChanges,
      intents: [intent({ action: 'undo', undone })],
      ledgers: [ledgerOf({ run })],
    });
    const after = advanceRun(context)?.run;
    if (after === undefined) throw new Error('the test expected a run');
    return after;
  }

  it('belongs to the change of the undo while the zones return one by one, before a pod was replaced', () => {
    const joined = { id: undo.id, startedMs: undo.startedMs };
    const first = returned(undo, ['a']);
    expect(first).toMatchObject({ joined, origin: { isUndo: true } });
    const second = returned(first, ['a', 'b']);
    expect([second.joined, second.origin?.isUndo]).toEqual([joined, undefined]);
  });

  it('is another change if the undo has replaced a pod', () => {
    const first = { ...returned(undo, ['a']), lastDisruptionMs: kitNowMs };
    expect(returned(first, ['a', 'b']).joined).toBeUndefined();
  });
});

describe('the undo of one zone of a rollout', () => {
  const rollout = { ...first, lastDisruptionMs: kitNowMs };
  const undone = (zone: string) => intent({ name: `undo-${zone}`, action: 'undo', undone: [{ zone, revision: 'rev-2', to: oldRevision }] });

  /** The run after these undos, of which only the zones of `written` have got their template. */
  function afterUndo(zones: readonly string[], written = zones): RunState {
    const statefulSets = ['a', 'b'].map((zone) => setOf(zone, { revision: written.includes(zone) ? oldRevision : 'rev-2' }));
    const podChanges = { 'ingester-zone-b': { 0: { revision: 'rev-2' } } };
    const after = advanceRun(
      contextWith(definition, { statefulSets, podChanges, intents: zones.map(undone), ledgers: [ledgerOf({ run: rollout })] }),
    )?.run;
    if (after === undefined) throw new Error('the test expected a run');
    return after;
  }

  it('makes no rollback of the rollout of the other zone, which keeps its cause and commit', () => {
    const after = afterUndo(['b']);
    expect([recordedKind(after), after.origin]).toEqual(['rollout', { cause: 'two', commit: 'c2' }]);
  });

  it('is a rollback if the other zone is undone too, also before its template is written', () => {
    for (const written of [['a', 'b'], ['b']]) {
      const after = afterUndo(['a', 'b'], written);
      expect([recordedKind(after), after.origin?.isUndo]).toEqual(['rollback', true]);
    }
  });
});
