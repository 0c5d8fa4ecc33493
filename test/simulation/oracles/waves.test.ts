import { describe, expect, it } from 'vitest';
import { emptySnapshot } from '../../../engine/snapshot.ts';
import { runStartMs } from '../../../simulation/process/clock.ts';
import type { GroupShape, WaveShape } from '../../../simulation/scenario.ts';
import { definition, History } from './history.ts';

const canary: WaveShape = { zones: ['a'], pods: 1, soakSeconds: 30 };
const waves: readonly WaveShape[] = [canary, { zones: ['a'] }, { zones: ['b', 'c'] }];

/** A group at a new template `r3`, a minute after it. */
function rolling(shape: Partial<GroupShape> = {}): History {
  const history = new History({ waves: [...waves], ...shape });
  template(history, 'r3');
  return history.advance(60_000);
}

/** Writes the template. The ledger names its run, unless no agent has noticed it yet. */
function template(history: History, updateRevision: string, isNoticed = true): void {
  for (const set of ['ing-a', 'ing-b', 'ing-c'])
    history.change('statefulsets.apps', set, ({ status }) => ({ status: { ...(status as object), updateRevision } }));
  if (isNoticed) history.ledger('run1', 'running', updateRevision);
}

/** Replaces a pod, whose successor is available a second later, and then waits. */
function roll(history: History, pod: string, waitMs = 60_000, revision = 'r3'): void {
  history.announceAndTake(pod);
  history.advance(1_000).replace(pod, revision);
  history.advance(1_000).renew();
  history.advance(waitMs);
}

function answers(history: History, process: string, ...areGood: readonly boolean[]): void {
  for (const isGood of areGood) history.advance(1_000).gate(process, isGood);
}

describe('the judge of waves', () => {
  it('accepts the pods of each wave after the soak of the wave before', () => {
    const history = rolling();
    for (const pod of ['ing-a-2', 'ing-a-1', 'ing-a-0', 'ing-b-2', 'ing-b-1']) roll(history, pod);
    expect(history.found('S37')).toEqual([]);
  });

  it("finds 'S37' if a pod is replaced before the wave that includes it", () => {
    const history = rolling();
    roll(history, 'ing-a-2', 20_000);
    roll(history, 'ing-a-1');
    roll(history, 'ing-c-2');
    expect(history.found('S37')).toEqual([
      'a1 replaces ing-a-1 in wave-2, and the soak of wave-1 lasts 7500 ms longer',
      'a1 replaces ing-c-2 in wave-3, and wave-2 does not have its pods',
    ]);
  });

  it('accepts the replacement of an unavailable pod outside its wave, and a request from before the template', () => {
    const history = rolling();
    history.ready('ing-b-0', false);
    history.advance(20_000);
    roll(history, 'ing-b-0');
    template(history, 'r4', false);
    history.announceAndTake('ing-c-2');
    expect(history.found('S37')).toEqual([]);
  });

  it.each<[string, Partial<GroupShape>, string, number]>([
    ['skips soaks on a return to a revision that the zones had', {}, 'r1', 0],
    ['requires soaks on such a return with skipOnRollback: false', { soaksOnReturn: true }, 'r1', 2],
    ['requires soaks on a return to a revision that the zones never had', {}, 'r2', 1],
  ])('starts the waves again with a new template, and %s', (_, shape, revision, violations) => {
    const history = rolling(shape);
    roll(history, 'ing-a-2');
    roll(history, 'ing-a-1');
    template(history, revision);
    history.advance(1_000);
    roll(history, 'ing-a-2', 1_000, revision);
    roll(history, 'ing-a-1', 1_000, revision);
    expect(history.found('S37')).toHaveLength(violations);
  });

  it('accepts the return of a zone before the waves, but requires the soaks of the zones that continue the rollout', () => {
    const history = rolling();
    for (const pod of ['ing-a-2', 'ing-a-1', 'ing-a-0', 'ing-b-2']) roll(history, pod);
    const { status } = history.set('ing-b');
    history.change('statefulsets.apps', 'ing-b', () => ({ status: { ...(status as object), updateRevision: 'r1' } }));
    history.ledger('run2', 'running', 'r3', undefined, { target: { a: 'r3', b: 'r1', c: 'r3' } });
    history.advance(11_000);
    roll(history, 'ing-b-2', 1_000, 'r1');
    expect(history.found('S37')).toEqual([]);
    roll(history, 'ing-c-2', 40_000);
    roll(history, 'ing-c-1');
    expect(history.found('S37')).toEqual(['a1 replaces ing-c-2 in wave-3, and the soak of wave-2 lasts 14500 ms longer']);
  });

  it('accepts the return of zones while another zone keeps a pod from before the change', () => {
    const history = new History({ waves: [...waves] });
    template(history, 'r3', false);
    history.replace('ing-a-2', 'r3');
    history.ledger('run1');
    history.replace('ing-b-2', 'r3');
    for (const set of ['ing-b', 'ing-c'])
      history.change('statefulsets.apps', set, ({ status }) => ({ status: { ...(status as object), updateRevision: 'r1' } }));
    history.ledger('run2', 'running', 'r3', undefined, { target: { a: 'r3', b: 'r1', c: 'r1' } });
    history.advance(11_000);
    roll(history, 'ing-b-2', 1_000, 'r1');
    expect(history.found('S37')).toEqual([]);
  });

  it('accepts a soak that the clock of an agent makes shorter', () => {
    const history = rolling();
    history.clocks.set('a1', { rate: 1, wallErrorMs: 20_000 });
    roll(history, 'ing-a-2', 20_000);
    roll(history, 'ing-a-1');
    expect(history.found('S37')).toEqual([]);
  });

  it('counts pods that a partition exposes', () => {
    const history = rolling({ strategy: 'partition' });
    const lower = (partition: number): void => {
      history.change(
        'statefulsets.apps',
        'ing-a',
        ({ spec }) => ({ spec: { ...(spec as object), updateStrategy: { rollingUpdate: { partition } } } }),
        history.agent(),
      );
    };
    history.change('statefulsets.apps', 'ing-a', ({ spec }) => ({
      spec: { ...(spec as object), updateStrategy: { rollingUpdate: { partition: 100 } } },
    }));
    history.advance(20_000);
    lower(2);
    expect(history.found('S37')).toEqual([]);
    lower(1);
    expect(history.found('S37')).toEqual(['a1 replaces ing-a-1, ing-a-2 in wave-2, and wave-1 does not have its pods']);
  });

  it('needs time between the decisions that replace pods', () => {
    const history = rolling({ minIntervalSeconds: 10 });
    const decide = (pod: string): void => {
      const action = { kind: 'deletePod', pod, zone: 'a', uid: pod } as never;
      history.turn({ group: definition, snapshot: emptySnapshot(runStartMs + history.nowMs), performed: [{ action, result: 'done' }] });
    };
    decide('ing-a-2');
    history.advance(10_000);
    decide('ing-a-1');
    history.advance(5_000);
    decide('ing-a-0');
    expect(history.found('S37')).toEqual(['a1 replaces ing-a-0 5000 ms after the last replacement (minInterval)']);
  });
});

describe('the judge of gates', () => {
  const gated = (...gates: readonly ('before' | 'after')[]): History =>
    rolling({
      gate: 'passing',
      waves: [
        { zones: ['a'], gates: gates.filter((when) => when === 'after') },
        { zones: ['b'], gates: gates.filter((when) => when === 'before') },
      ],
    });
  const zoneA = (history: History): void => {
    for (const pod of ['ing-a-2', 'ing-a-1', 'ing-a-0']) roll(history, pod, 1_000);
    history.advance(3_000);
  };

  it.each(['after', 'before'] as const)('accepts a wave after three good answers in a row %s it', (when) => {
    const history = gated(when);
    zoneA(history);
    answers(history, 'a1', true, false, true, true, true);
    roll(history, 'ing-b-2');
    roll(history, 'ing-b-1');
    expect(history.found('S37')).toEqual([]);
  });

  it.each<[string, (history: History) => void]>([
    ['no answer', () => undefined],
    ['two answers', (history) => answers(history, 'a1', true, true)],
    ['an interrupted row', (history) => answers(history, 'a1', true, true, false, true, true)],
    [
      'a row of two processes',
      (history) => {
        answers(history, 'a1', true, true);
        answers(history, 'b1', true);
      },
    ],
  ])('finds a wave that begins after %s', (_what, hear) => {
    for (const when of ['after', 'before'] as const) {
      const history = gated(when);
      answers(history, 'a1', true, true, true);
      zoneA(history);
      history.gate('a1', false);
      hear(history);
      roll(history, 'ing-b-2');
      const which = when === 'after' ? 'after wave-1' : 'before wave-2';
      expect(history.found('S37')).toEqual([`a1 replaces ing-b-2 in wave-2, and the gate ${which} has not passed`]);
    }
  });

  it('asks no gate again after another template of a zone that no wave includes', () => {
    const asked = (zone: string) => {
      const history = gated('before');
      zoneA(history);
      answers(history, 'a1', true, true, true);
      history.change('statefulsets.apps', `ing-${zone}`, ({ status }) => ({ status: { ...(status as object), updateRevision: 'r4' } }));
      history.ledger('run1', 'running', 'r3', undefined, { target: { a: 'r3', b: 'r3', c: 'r3', [zone]: 'r4' } });
      history.advance(11_000);
      roll(history, 'ing-b-2');
      return history.found('S37');
    };
    expect([asked('c'), asked('b')]).toEqual([[], ['a1 replaces ing-b-2 in wave-2, and the gate before wave-2 has not passed']]);
  });

  it('judges no group without waves, and no group of a user', () => {
    const history = new History();
    history.announceAndTake('ing-b-2');
    expect(history.found('S37')).toEqual([]);
  });
});

describe('the judge of approvals', () => {
  const asking = (approvers?: number): History => {
    const history = rolling({
      waves: [
        { zones: ['a'], pods: 1, approvals: ['after'] },
        { zones: ['a'], approvals: ['before'], ...(approvers === undefined ? {} : { approvers }) },
        { zones: ['b', 'c'] },
      ],
    });
    return history;
  };

  it('accepts a wave after the approvals of this run, and its further pods without another approval', () => {
    const history = asking(2);
    roll(history, 'ing-a-2', 20_000);
    history.request('approve', 'run1', 'wave-1');
    history.request('approve', 'run1', 'wave-2');
    history.request('approve', 'run1', 'wave-2', 'bob');
    history.advance(20_000);
    roll(history, 'ing-a-1');
    roll(history, 'ing-a-0');
    expect(history.found('S37')).toEqual([]);
  });

  it.each<[string, string, (history: History) => void]>([
    ['no answer', 'the end of wave-1 is not approved', () => undefined],
    ['an approval of another run', 'the end of wave-1 is not approved', (history) => history.request('approve', 'run0', 'wave-1')],
    [
      'one approval of two',
      'wave-2 is not approved',
      (history) => {
        history.request('approve', 'run1', 'wave-1');
        for (const _ of [1, 2]) history.request('approve', 'run1', 'wave-2');
      },
    ],
    [
      'a rejection, also if the same person approves later',
      'wave-2 is not approved',
      (history) => {
        history.request('approve', 'run1', 'wave-1');
        history.request('reject', 'run1', 'wave-2', 'bob');
        for (const user of ['alice', 'bob', 'carol']) history.request('approve', 'run1', 'wave-2', user);
      },
    ],
  ])('finds a wave that begins after %s', (_what, missing, answer) => {
    const history = asking(2);
    roll(history, 'ing-a-2', 20_000);
    answer(history);
    history.advance(20_000);
    roll(history, 'ing-a-1');
    expect(history.found('S37')).toEqual([`a1 replaces ing-a-1 in wave-2, and ${missing}`]);
  });

  it('accepts a wave after the person who rejected it deletes the rejection and approves', () => {
    const history = asking(2);
    roll(history, 'ing-a-2', 20_000);
    history.request('approve', 'run1', 'wave-1');
    history.request('reject', 'run1', 'wave-2', 'bob');
    const intents = 'rolloutintents.rollout-group.dev';
    const rejection = history.scene.list(intents).find(({ metadata }) => metadata.name.startsWith('reject-'));
    for (const user of ['alice', 'bob']) history.request('approve', 'run1', 'wave-2', user);
    history.remove(intents, rejection?.metadata.name ?? '');
    history.advance(20_000);
    roll(history, 'ing-a-1');
    expect(history.found('S37')).toEqual([]);
  });

  it.each([
    ['accepts', 'that the run had left', 1, []],
    ['finds', 'of the run', 0, ['a1 replaces ing-a-1 in wave-2, and the end of wave-1 is not approved']],
  ])('%s a wave after a rejection of the wave before %s', (_does, _which, wave, found) => {
    const history = asking();
    roll(history, 'ing-a-2', 20_000);
    history.request('approve', 'run1', 'wave-1');
    history.ledger('run1', 'running', 'r3', undefined, { wave });
    history.request('reject', 'run1', 'wave-1', 'bob');
    history.request('approve', 'run1', 'wave-2');
    history.advance(20_000);
    roll(history, 'ing-a-1');
    expect(history.found('S37')).toEqual(found);
  });

  const notApproved = 'a1 replaces ing-a-1 in wave-2, and the end of wave-1 is not approved';
  it.each<[string, number, readonly string[]]>([
    ['accepts', 5_000, []],
    ['finds', 11_000, [notApproved]],
  ])('%s the end of a wave %i ms after a rejection', (_does, afterMs, found) => {
    const history = asking();
    roll(history, 'ing-a-2', 20_000);
    history.request('approve', 'run1', 'wave-1');
    history.request('approve', 'run1', 'wave-2');
    history.request('reject', 'run1', 'wave-1', 'bob');
    history.advance(afterMs);
    history.ledger('run1', 'running', 'r3', undefined, { wave: 1 });
    history.advance(20_000);
    roll(history, 'ing-a-1');
    expect(history.found('S37')).toEqual(found);
  });

  it.each<[string, number, readonly string[]]>([
    ['accepts', 5_000, []],
    ['finds', 11_000, [notApproved]],
  ])('%s the end of a wave %i ms after its approval was deleted', (_does, afterMs, found) => {
    const history = asking();
    roll(history, 'ing-a-2', 20_000);
    history.request('approve', 'run1', 'wave-1');
    const intents = 'rolloutintents.rollout-group.dev';
    history.remove(intents, history.scene.list(intents)[0]?.metadata.name ?? '');
    history.request('approve', 'run1', 'wave-2');
    history.advance(afterMs);
    history.ledger('run1', 'running', 'r3', undefined, { wave: 1 });
    history.advance(20_000);
    roll(history, 'ing-a-1');
    expect(history.found('S37')).toEqual(found);
  });

  it('needs no soak and no gate of a promoted wave', () => {
    const history = rolling();
    roll(history, 'ing-a-2', 1_000);
    history.request('promote', 'run1', 'wave-1');
    roll(history, 'ing-a-1');
    expect(history.found('S37')).toEqual([]);
  });

  it('finds an approval of the end of a wave from before its last replacement', () => {
    const history = asking();
    history.request('approve', 'run1', 'wave-1');
    history.request('approve', 'run1', 'wave-2');
    history.advance(20_000);
    roll(history, 'ing-a-2');
    roll(history, 'ing-a-1');
    expect(history.found('S37')).toEqual(['a1 replaces ing-a-1 in wave-2, and the end of wave-1 is not approved']);
  });

  describe('if the waves change during the run', () => {
    const groups = 'rolloutgroups.rollout-group.dev';
    const edit = (history: History, ...changed: readonly object[]): void => {
      history.change(groups, 'ing', ({ spec }) => ({ spec: { ...(spec as object), rollout: { maxUnavailable: 1, waves: changed } } }));
      history.advance(11_000);
    };
    const [canaryOfB, all] = [
      { zones: ['b'], pods: 1, after: { soak: '60s' } },
      { zones: ['a', 'b', 'c'], percent: 100 },
    ];

    it('requires the pods of the new earlier waves, and the soak of a wave that was not filled', () => {
      const history = rolling();
      for (const pod of ['ing-a-2', 'ing-a-1']) roll(history, pod);
      edit(history, canaryOfB, all);
      roll(history, 'ing-a-0');
      expect(history.found('S37')).toEqual(['a1 replaces ing-a-0 in wave-2, and wave-1 does not have its pods']);
      const inOrder = rolling();
      for (const pod of ['ing-a-2', 'ing-a-1']) roll(inOrder, pod);
      edit(inOrder, canaryOfB, all);
      roll(inOrder, 'ing-b-2', 10_000);
      roll(inOrder, 'ing-a-0');
      expect(inOrder.found('S37')).toEqual([expect.stringContaining('the soak of wave-1 lasts')]);
    });

    it('accepts a decision that may have seen the waves before, and waves that had their pods', () => {
      const history = rolling();
      roll(history, 'ing-a-2');
      history.change(groups, 'ing', ({ spec }) => ({ spec: { ...(spec as object), rollout: { waves: [canaryOfB, all] } } }));
      roll(history, 'ing-a-1');
      const filled = rolling();
      roll(filled, 'ing-a-2');
      edit(filled, { zones: ['a'], pods: 1, after: { soak: '600s' } }, all);
      roll(filled, 'ing-b-2');
      expect([...history.found('S37'), ...filled.found('S37')]).toEqual([]);
    });

    it('requires an approval of the new waves, but not of waves that the group had before', () => {
      const approved = (...later: readonly (readonly object[])[]) => {
        const history = rolling({
          waves: [
            { zones: ['a'], pods: 1 },
            { zones: ['a', 'b', 'c'], approvals: ['before'] },
          ],
        });
        roll(history, 'ing-a-2');
        history.request('approve', 'run1', 'wave-2');
        for (const changed of later) edit(history.advance(5_000), ...changed);
        roll(history, 'ing-a-1');
        return history.found('S37');
      };
      const asked = { ...all, before: { approval: { count: 1 } } };
      const other = [{ zones: ['a'], percent: 30 }, asked];
      const same = [{ zones: ['a'], pods: 1 }, asked];
      expect([approved(), approved(other), approved(other, same)]).toEqual([
        [],
        ['a1 replaces ing-a-1 in wave-2, and wave-2 is not approved'],
        [],
      ]);
    });
  });
});
