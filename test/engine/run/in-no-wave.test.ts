import { describe, expect, it } from 'vitest';
import { decideGroup } from '../../../engine/decide/decide.ts';
import type { RunState } from '../../../engine/run/run-state.ts';
import { holdingPartition } from '../../../policies/strategies.ts';
import { group, wave } from '../../kit/groups.ts';
import { kitNowMs, newRevision, oldRevision, type PodChanges } from '../../kit/objects.ts';
import { ago, hourMs, intent, ledgerOf, minuteMs, outdatedSets, type RunFields, runOf, updatedPods } from '../../kit/questions.ts';
import { podsIn } from '../../kit/rolls.ts';
import { snapshotOf } from '../../kit/snapshots.ts';

const zones = ['a', 'b', 'c'];
const revisions = (a: string, b = a, c = a) => ({ a, b, c });
/** Zone a completely, two of three pods of zone b, and no pod of zone c. */
const partial = group({ rollout: { waves: [wave('a', ['a']), wave('half', ['b'], { amount: { percent: 50 } })] } });
const done = runOf({
  target: revisions(newRevision),
  previous: revisions(oldRevision),
  wave: 2,
  outcome: 'completed',
  completedMs: ago(minuteMs),
});
const filled = { a: updatedPods(), b: { 1: { revision: newRevision }, 2: { revision: newRevision } } };

interface State {
  readonly run?: RunState;
  readonly of?: typeof partial;
  readonly revision?: Readonly<Record<string, string>>;
  readonly pods?: Readonly<Record<string, PodChanges>>;
  readonly intents?: readonly ReturnType<typeof intent>[];
}

function decided({ run, of = partial, revision = {}, pods = filled, intents = [] }: State) {
  const held = of.rollout.strategy === 'pinned' ? { updateStrategy: 'RollingUpdate' as const, partition: holdingPartition } : {};
  const statefulSets = zones.flatMap((zone) =>
    outdatedSets([zone], { ...held, status: { updateRevision: revision[zone] ?? newRevision } }),
  );
  const ledgers = run === undefined ? [] : [ledgerOf({ run })];
  return decideGroup(snapshotOf({ groups: [of], statefulSets, ledgers, intents, ...podsIn(pods) }), of);
}

function running(fields: RunFields = {}): RunState {
  return runOf({ target: revisions(newRevision), previous: revisions(oldRevision), wave: 1, startedMs: ago(hourMs), ...fields });
}

describe('pods that no wave includes', () => {
  it('stay outdated when the run is completed', () => {
    const decision = decided({ run: running({ waveStartedMs: ago(minuteMs) }) });
    expect(decision).toMatchObject({ phase: 'Done', outcome: 'done', run: { outcome: 'completed' }, steps: [] });
    expect(decision.goal).toBe('5 of 9 pods updated, 4 in no wave');
    expect(decision.zones.map(({ podsInNoWave }) => podsInNoWave)).toEqual([undefined, 1, 3]);
    expect(decision.warnings.map(({ rule, fact }) => `${rule}: ${fact}`)).toEqual([
      'in-no-wave: 1 pod of zone b stays outdated: no wave includes it',
      'in-no-wave: 3 pods of zone c stay outdated: no wave includes them',
    ]);
  });

  it('begin no run: after a completed run, in a group without a run, and for a zone that joins', () => {
    const { c: _c, ...known } = done.target;
    for (const run of [done, undefined, { ...done, target: known }]) {
      const decision = decided(run === undefined ? {} : { run });
      expect([decision.outcome, decision.run?.id]).toEqual(['done', run?.id]);
    }
  });

  it('begin a run as soon as a wave includes one of them', () => {
    const whole = group({ rollout: { waves: [wave('all', zones)] } });
    const decision = decided({ run: done, of: whole });
    expect(decision.run).toMatchObject({ kind: 'rollout', outcome: 'running', previous: revisions(oldRevision) });
    expect(decision.zones.every(({ podsInNoWave }) => podsInNoWave === undefined)).toBe(true);
  });

  it('end a run whose waves become shorter', () => {
    const whole = running({ wave: 2 });
    expect(decided({ run: whole })).toMatchObject({ outcome: 'done', run: { id: whole.id, outcome: 'completed' } });
  });
});

describe('longer waves after a rollback and a rollout to another template', () => {
  const soak = { soakMs: hourMs, gates: [] };
  const approval = { count: 1, from: [] };
  const canary = wave('canary', ['a'], { amount: { pods: 1 }, after: soak });
  const rest = (names: readonly string[]) => wave('rest', names, { before: { gates: [], approval } });
  const strategy = 'pinned' as const;
  const short = group({ rollout: { strategy, waves: [canary, rest(['a', 'b'])] } });
  const whole = group({ rollout: { strategy, waves: [canary, rest(zones)] } });
  const at = (revision: string): PodChanges => Object.fromEntries([0, 1, 2].map((ordinal) => [ordinal, { revision }]));
  const rolledBack = runOf({
    kind: 'rollback',
    target: revisions(oldRevision),
    previous: revisions('broken'),
    restores: revisions(oldRevision),
    rolledBack: { revisions: revisions('broken'), because: 'gate errors' },
    outcome: 'completed',
    completedMs: ago(minuteMs),
  });
  const all = (revision: string) => ({ a: at(revision), b: at(revision), c: at(revision) });
  /** The run after the templates of a and b, then that of c, were written. */
  function rolledOut(c: string): RunState | undefined {
    const first = decided({ run: rolledBack, of: short, revision: revisions(newRevision, newRevision, 'broken'), pods: all(oldRevision) });
    const { run } = decided({
      run: first.run as RunState,
      of: short,
      revision: revisions(newRevision, newRevision, c),
      pods: all(oldRevision),
    });
    return (
      run &&
      decided({
        run: { ...run, wave: 2 } as RunState,
        of: short,
        revision: revisions(newRevision, newRevision, c),
        pods: { ...all(newRevision), c: at(oldRevision) },
      }).run
    );
  }

  it('wait for the soak and the approval like every rollout', () => {
    const before = rolledOut(newRevision);
    expect(before).toMatchObject({ kind: 'rollout', outcome: 'completed' });
    const pods = { ...all(newRevision), c: at(oldRevision) };
    const after = decided({ run: before as RunState, of: whole, pods });
    expect(after.run).toMatchObject({ kind: 'rollout', outcome: 'running', wave: 0 });
    expect([after.actions, after.steps.map(({ id, outcome }) => `${id} ${outcome}`)]).toEqual([[], ['after/canary wait']]);
    const soaked = { ...after.run, waveAvailableMs: ago(hourMs) } as RunState;
    const next = decided({ run: soaked, of: whole, pods });
    expect([next.actions, next.steps.map(({ results }) => results.find(({ rule }) => rule === 'approval')?.outcome)]).toEqual([
      [],
      ['wait'],
    ]);
  });

  it('do not make a rollout a rollback, if another zone keeps its rolled-back revision', () => {
    const revision = revisions(newRevision, newRevision, 'broken');
    const before = rolledOut('broken');
    expect(before).toMatchObject({ outcome: 'completed', rolledBack: { revisions: { c: 'broken' } } });
    const outdated = { ...all(newRevision), b: at(oldRevision), c: at(oldRevision) };
    expect(decided({ run: before as RunState, of: whole, revision, pods: outdated }).run).toMatchObject({ kind: 'rollout' });
    const created = { ...all(newRevision), c: { ...at(oldRevision), 2: { revision: 'broken' } } };
    expect(decided({ run: before as RunState, of: whole, revision, pods: created }).run).toMatchObject({ kind: 'rollback' });
  });
});

describe('another template of a zone in no wave', () => {
  const revision = { c: 'rev-3' };

  it('neither begins a run nor starts the waves of the run over', () => {
    const run = running({ wave: 1, waveStartedMs: ago(minuteMs) });
    const decision = decided({ run, revision, pods: { a: updatedPods() } });
    expect(decision.run).toMatchObject({ id: run.id, wave: 1, target: revisions(newRevision, newRevision, 'rev-3') });
    expect(decided({ run: done, revision }).run).toMatchObject({ id: done.id, outcome: 'completed' });
    const failed = running({ outcome: 'failed', failure: 'gate', failedMs: ago(minuteMs) });
    expect(decided({ run: failed, revision, pods: { a: updatedPods() } }).run).toMatchObject({ id: failed.id, outcome: 'failed' });
  });

  it('does not keep a failed run, if the other zones get another template', () => {
    const failed = running({ outcome: 'failed', failure: 'gate', failedMs: ago(minuteMs) });
    const fixed = decided({ run: failed, revision: { a: 'rev-3', b: 'rev-3' } });
    expect(fixed.run).toMatchObject({ kind: 'rollout', outcome: 'running', target: revisions('rev-3', 'rev-3', newRevision) });
  });
});

describe('a return of the zones in waves', () => {
  it('is a rollback, although a zone in no wave stays outdated, and takes every pod of these zones', () => {
    const back = { revision: oldRevision };
    const pods = { a: { 0: back, 1: back, 2: { revision: newRevision } }, b: { 2: { revision: newRevision } } };
    const decision = decided({ run: done, revision: { a: oldRevision, b: oldRevision }, pods });
    expect(decision.run).toMatchObject({ kind: 'rollback', outcome: 'running' });
    expect(decision.zones.map(({ podsInNoWave }) => podsInNoWave)).toEqual([undefined, undefined, 3]);
    const next = decided({
      run: { ...decision.run, wave: 1 } as RunState,
      revision: { a: oldRevision, b: oldRevision },
      pods: { b: pods.b },
    });
    expect(next.actions).toMatchObject([{ kind: 'deletePod', zone: 'b', ordinal: 2 }]);
  });
});

describe('a return replaces only pods that run a revision which it reverts', () => {
  const pinnedBy = (...waves: ReturnType<typeof wave>[]) => group({ rollout: { strategy: 'pinned', waves } });
  type Pods = Readonly<Record<number, { readonly revision: string }>>;
  const [r1, r2, r3] = [oldRevision, newRevision, 'rev-3'];
  const at = (...ran: readonly string[]): Pods => Object.fromEntries(ran.map((revision, ordinal) => [ordinal, { revision }]));
  const some = pinnedBy(wave('some', ['a', 'b']));
  const half = pinnedBy(wave('half', zones, { amount: { percent: 50 } }));
  const whole = pinnedBy(wave('all', zones));
  const begun = { ...running(), id: 'r2' } as RunState;
  const completedRun = { ...done, wave: 1 } as RunState;

  interface Change {
    readonly run: RunState;
    readonly of: typeof partial;
    /** Longer waves, which begin a run before the next templates. */
    readonly later?: typeof partial;
    readonly pods: Readonly<Record<string, Pods>>;
    readonly templates?: Readonly<Record<string, string>>;
    /** The pods when the run fails or is undone. */
    readonly after: Readonly<Record<string, Pods>>;
    readonly to: Readonly<Record<string, string>>;
    readonly going: readonly number[];
  }

  const left = ({ zones: decidedZones, run }: ReturnType<typeof decided>, after: Change['after']) =>
    decidedZones.map(({ zone, podsInNoWave = 0 }) => {
      const all = Object.values(after[zone] ?? {}).filter((pod) => pod.revision !== run?.target[zone]);
      return all.length - podsInNoWave;
    });

  it.each<[string, Change]>([
    [
      'after a completed run without zone c',
      {
        run: completedRun,
        of: some,
        pods: { a: at(r2, r2, r2), b: at(r2, r2, r2), c: at(r1, r1, r1) },
        after: { a: at(r2, r2, r3), b: at(r2, r2, r2), c: at(r1, r1, r1) },
        to: revisions(r2, r2, r1),
        going: [1, 0, 0],
      },
    ],
    [
      'after a completed run without zone c, if zone c keeps its template',
      {
        run: completedRun,
        of: some,
        pods: { a: at(r2, r2, r2), b: at(r2, r2, r2), c: at(r1, r1, r1) },
        templates: revisions(r3, r2, r2),
        after: { a: at(r2, r2, r3), b: at(r2, r2, r2), c: at(r1, r1, r1) },
        to: revisions(r2),
        going: [1, 0, 0],
      },
    ],
    [
      'after a completed run without zone c, if waves with zone c come with the templates',
      {
        run: completedRun,
        of: whole,
        pods: { a: at(r2, r2, r2), b: at(r2, r2, r2), c: at(r1, r1, r1) },
        after: { a: at(r2, r2, r3), b: at(r2, r2, r2), c: at(r1, r1, r3) },
        to: revisions(r2, r2, r1),
        going: [1, 0, 1],
      },
    ],
    [
      'after a completed run without zone c and waves that then include it',
      {
        run: completedRun,
        of: whole,
        later: whole,
        pods: { a: at(r2, r2, r2), b: at(r2, r2, r2), c: at(r1, r1, r1) },
        after: { a: at(r2, r2, r3), b: at(r2, r2, r2), c: at(r1, r1, r2) },
        to: revisions(r2, r2, r1),
        going: [1, 0, 1],
      },
    ],
    [
      'after a completed run to half of each zone',
      {
        run: completedRun,
        of: half,
        pods: { a: at(r1, r2, r2), b: at(r1, r2, r2), c: at(r1, r2, r2) },
        after: { a: at(r1, r2, r3), b: at(r1, r2, r2), c: at(r3, r2, r2) },
        to: revisions(r2),
        going: [1, 0, 1],
      },
    ],
    [
      'after a completed run to half of each zone and longer waves',
      {
        run: completedRun,
        of: half,
        later: whole,
        pods: { a: at(r1, r2, r2), b: at(r1, r2, r2), c: at(r1, r2, r2) },
        after: { a: at(r3, r2, r2), b: at(r1, r2, r2), c: at(r1, r2, r2) },
        to: revisions(r2),
        going: [1, 0, 0],
      },
    ],
    [
      'also the pods of a superseded run',
      {
        run: begun,
        of: whole,
        pods: { a: at(r2, r2, r2), b: at(r1, r1, r2), c: at(r1, r1, r1) },
        after: { a: at(r2, r2, r3), b: at(r1, r1, r2), c: at(r1, r1, r1) },
        to: revisions(r1),
        going: [3, 1, 0],
      },
    ],
  ])('%s', (_, { run, of, later = of, pods, templates = revisions(r3), after, to, going }) => {
    const rest = later === of ? run : (decided({ run, of: later, pods }).run ?? run);
    const next = decided({ run: rest, of: later, revision: templates, pods }).run as RunState;
    const failed = { ...next, outcome: 'failed', failure: 'gate', failedMs: ago(minuteMs), onFailure: 'rollback' } as RunState;
    const back = decided({ run: failed, of: later, revision: templates, pods: after });
    expect([back.run?.kind, back.run?.target, left(back, after)]).toEqual(['rollback', to, going]);
    const undone = decided({ run: next, of: later, revision: to, pods: after });
    expect([undone.run?.kind, left(undone, after)]).toEqual(['rollback', going]);
    // A run that is completed first returns the same pods.
    const isOver = { ...completedRun, ...next, outcome: 'completed' } as RunState;
    expect(left(decided({ run: isOver, of: later, revision: to, pods: after }), after)).toEqual(going);
    const replaced = undone.actions.flatMap((action) => ('pod' in action ? [after[action.zone]?.[action.ordinal]?.revision] : []));
    expect(replaced).not.toContain(r1);
    expect(replaced.length).toBeGreaterThan(0);
  });
});

describe('a return leaves a pod of an earlier revision', () => {
  const at = (...ran: readonly string[]): PodChanges => Object.fromEntries(ran.map((revision, ordinal) => [ordinal, { revision }]));
  const [r1, r2, r3] = [oldRevision, newRevision, 'rev-3'];
  const of = group({ rollout: { strategy: 'pinned', waves: [wave('first', ['a']), wave('all', zones)] } });
  const others = { b: at(r2, r2, r2), c: at(r2, r2, r2) };
  const fails = (run: RunState | undefined) =>
    ({ ...run, outcome: 'failed', failure: 'gate', failedMs: ago(minuteMs), onFailure: 'rollback' }) as RunState;

  it.each<[string, RunState | undefined, string]>([
    ['also in a wave that is not the last one of its zone', { ...done, wave: 1 } as RunState, r1],
    ['also after the first run of the group', undefined, r1],
  ])('%s', (_, run, kept) => {
    const before = { a: at(kept, r2, r2), ...others };
    const revision = revisions(r3);
    const next = decided({ ...(run && { run }), of, revision, pods: before }).run;
    const back = decided({ run: fails(next), of, revision, pods: { ...before, a: at(kept, r2, r3) } });
    expect(back.actions).toMatchObject([{ zone: 'a', ordinal: 2 }]);
    const over = decided({ run: back.run as RunState, of, revision, pods: before });
    expect([over.actions, over.run]).toMatchObject([[], { kind: 'rollback', outcome: 'completed' }]);
  });

  it('and starts a rollout of it soon after an undo, whose template the pod does not have', () => {
    const pods = { a: at(r1, r2, r2), ...others };
    const undo = { kind: 'rollback', target: revisions(r2), previous: revisions(r2), restores: revisions(r2), kept: { a: [r1] } } as const;
    const over = decided({ run: runOf({ ...undo, from: revisions(r2, r3), wave: 1 }), of, pods });
    expect(over).toMatchObject({ actions: [], run: { outcome: 'completed' }, wakeAtMs: kitNowMs + 1000 });
    expect(over.steps[0]?.results[0]).toMatchObject({
      rule: 'zones-returned',
      fact: 'the previous templates are restored; the pods of zone a with an earlier template start at the first wave',
    });
    const rest = decided({ run: over.run as RunState, of, pods });
    expect(rest).toMatchObject({ actions: [{ zone: 'a', ordinal: 0 }], run: { kind: 'rollout' } });
  });

  it('keeps the template of a zone in no wave, and does not block it', () => {
    const some = group({ rollout: { strategy: 'pinned', waves: [wave('some', ['a', 'b'])] } });
    const pods = { ...others, a: at(r2, r2, r2), c: at(r1, r1, r1) };
    const first = decided({ run: { ...done, wave: 1 } as RunState, of: some, revision: revisions(r3, r2, r2), pods }).run as RunState;
    const back = decided({ run: fails(first), of: some, revision: revisions(r3, r2, r2), pods: { ...pods, a: at(r2, r2, r3) } });
    expect(back.run?.rolledBack?.revisions).toEqual({ a: r3 });
    // Then the zone gets the template too, and a wave includes it.
    const second = decided({ run: first, of, revision: revisions(r3, r2, r3), pods }).run;
    expect(second?.previous).toEqual(revisions(r2, r2, r1));
  });
});

describe('a run after an undo returns to what the undo restored, not to what it undid', () => {
  const at = (...ran: readonly string[]): PodChanges => Object.fromEntries(ran.map((revision, ordinal) => [ordinal, { revision }]));
  const [r0, r1, r2, r3] = ['rev-0', oldRevision, newRevision, 'rev-3'];
  const of = group({ rollout: { strategy: 'pinned', onFailure: 'rollback', waves: [wave('all', zones)] } });
  const undo = { kind: 'rollback', target: revisions(r1), previous: revisions(r2), restores: revisions(r1) } as const;
  const completed = { outcome: 'completed', completedMs: ago(minuteMs), wave: 1 } as const;
  const failed = (run: RunState | undefined) => ({ ...run, outcome: 'failed', failure: 'gate', failedMs: ago(minuteMs) }) as RunState;

  it('if a pod came back at an earlier revision', () => {
    const pods = { a: at(r0, r1, r1), b: at(r1, r1, r1), c: at(r0, r0, r0) };
    const { run } = decided({ run: runOf({ ...undo, ...completed }), of, revision: revisions(r1), pods });
    expect(run).toMatchObject({ kind: 'rollout', target: revisions(r1), previous: revisions(r1, r1, r0) });
    const back = decided({ run: failed(run), of, revision: revisions(r1), pods: { ...pods, c: at(r0, r0, r1) } }).run;
    expect(back).toMatchObject({ kind: 'rollback', target: revisions(r1, r1, r0), rolledBack: { revisions: { c: r1 } } });
  });

  it('if the rollback of another zone keeps its failed template', () => {
    const rolledBack = { revisions: { b: r2 }, because: 'gate' };
    const known = runOf({ ...undo, ...completed, previous: revisions(r1, r2, r1), rolledBack });
    const pods = { a: at(r0, r1, r1), b: at(r1, r1, r1), c: at(r1, r1, r1) };
    const { run } = decided({ run: known, of, revision: revisions(r1, r2, r1), pods });
    expect(run).toMatchObject({ kind: 'rollout', previous: revisions(r1), rolledBack });
  });

  it('if another template comes before the undo is over', () => {
    const pods = { a: at(r1, r1, r1), b: at(r1, r2, r2), c: at(r2, r2, r2) };
    const { run } = decided({ run: runOf(undo), of, revision: revisions(r3), pods });
    expect(run).toMatchObject({ kind: 'rollout', target: revisions(r3), previous: revisions(r1) });
  });
});

describe('a pause', () => {
  it('holds the group if it covers every zone with a pod to replace', () => {
    const pause = intent({ action: 'pause', zone: 'b' });
    const decision = decided({ run: running(), pods: { a: updatedPods() }, intents: [pause] });
    expect(decision.stops).toMatchObject([{ rule: 'paused', zones: ['b'], endsBy: 'person' }]);
  });
});
