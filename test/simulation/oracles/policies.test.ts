import { describe, expect, it } from 'vitest';
import { templateDigest } from '../../../engine/diff/field-diff.ts';
import type { GroupShape, PolicyState, RuleShape, WindowShape } from '../../../simulation/scenario.ts';
import { History } from './history.ts';

/** A window that denies rollouts from 1,100 s to 1,200 s. A history begins at 1,000 s. */
const deny: WindowShape = { kind: 'deny', actions: ['rollout'], inFlight: 'finishPod', ranges: [{ from: 1100, to: 1200 }] };

function inWindow(window: Partial<WindowShape> = {}, more: Partial<GroupShape> = {}): History {
  const history = new History({ ...more, windows: [{ ...deny, ...window }] });
  history.ledger('run1');
  return history.advance(130_000);
}

function override(history: History, forMs: number, spec: object = {}, name = 'override'): void {
  const expires = new Date(Date.UTC(2026, 0, 15, 12) + history.nowMs + forMs).toISOString();
  history.write('rolloutexceptions.rollout-group.dev', {
    metadata: { name },
    spec: { rule: 'window', target: { group: 'ing' }, allow: { anything: true }, expires, ...spec },
  });
}

function withRule(rule: Partial<RuleShape> & Pick<RuleShape, 'kind'>): History {
  const history = new History({ rules: [{ effect: 'deny', until: 2000, ...rule }] });
  history.ledger('run1');
  return history.advance(20_000);
}

/** The violations of a group with this rule whose pod of zone a is replaced. */
function underRule(rule: Partial<RuleShape> & Pick<RuleShape, 'kind'>, before: (history: History) => void = () => undefined) {
  const history = withRule(rule);
  before(history);
  history.announceAndTake('ing-a-2');
  return history.found('S41');
}

describe('the judge of policies', () => {
  it("finds 'S40' if a pod is replaced in a deny window, but not within the age of a decision after its start", () => {
    const history = new History({ windows: [deny] });
    history.ledger('run1');
    history.advance(108_000).announceAndTake('ing-a-2');
    expect(history.found('S40')).toEqual([]);
    history.advance(6_000).announceAndTake('ing-a-1');
    expect(history.found('S40')).toEqual(['a1 disrupts ing-a-1 at 1115500 ms by its clock, outside of the windows']);
  });

  it('finds a pod that is replaced while no allow window is open', () => {
    const [closed, open] = [1100, 1200].map((to) => inWindow({ kind: 'allow', ranges: [{ from: 0, to }] }));
    for (const history of [closed, open]) history?.announceAndTake('ing-a-2');
    expect([closed?.found('S40').length, open?.found('S40').length]).toEqual([1, 0]);
  });

  it('knows the minutes at which a schedule opens', () => {
    const found = [250, 275, 295].map((atSeconds) => {
      const history = new History({ windows: [{ ...deny, schedule: { everyMinutes: 2, seconds: 45 } }] });
      history.nowMs = atSeconds * 1000;
      history.announceAndTake('ing-a-2');
      return history.found('S40').length;
    });
    expect(found).toEqual([0, 1, 0]);
  });

  it('judges by the clock of the sender', () => {
    const history = inWindow();
    history.clocks.set('a1', { rate: 1, wallErrorMs: 100_000 });
    history.advance(20_000).announceAndTake('ing-a-2');
    expect(history.found('S40')).toEqual([]);
  });

  it('finds a smaller number of replicas only if a window names it', () => {
    const downscale = (actions: WindowShape['actions']) => {
      const history = inWindow({ actions });
      history.scale('ing-a', 2, history.agent());
      return history.found('S40');
    };
    expect([downscale(['rollout']).length, downscale(['rollout', 'scaleDown']).length]).toEqual([0, 1]);
  });

  it('lets an exception in force permit the step, for its zone and its number of pods, until it expires', () => {
    const found = (spec: object, waitMs = 0) => {
      const history = inWindow();
      override(history, 20_000, spec);
      history.advance(waitMs).announceAndTake('ing-a-2');
      return history.found('S40').length;
    };
    expect([found({}), found({}, 32_000)]).toEqual([0, 1]);
    expect([found({ target: { group: 'ing', zone: 'a' } }), found({ target: { group: 'ing', zone: 'b' } })]).toEqual([0, 1]);
    expect(found({ allow: { podsAtMost: 1 } })).toBe(0);
  });

  it('lets the zone or the run in progress finish only if the window does', () => {
    const found = (inFlight: WindowShape['inFlight'], pod: string) => {
      const history = inWindow({ inFlight });
      history.ledger('run1', 'running', 'r3', undefined, { startedMs: 1, lastDisruptionMs: 2, openZone: 'a' });
      history.advance(20_000).announceAndTake(pod);
      return history.found('S40').length;
    };
    expect([found('finishPod', 'ing-a-2'), found('finishZone', 'ing-a-2'), found('finishAll', 'ing-a-2')]).toEqual([1, 0, 0]);
    expect([found('finishZone', 'ing-b-2'), found('finishAll', 'ing-b-2')]).toEqual([1, 0]);
  });

  it("finds 'S41' if a rule blocks the step until its time, and not in another zone", () => {
    expect([underRule({ kind: 'early' }), underRule({ kind: 'early', zone: 'a' })]).toEqual([
      ['a1 disrupts ing-a-2, which the rule guard/early blocks until 2000 s'],
      ['a1 disrupts ing-a-2, which the rule guard/early blocks until 2000 s'],
    ]);
    expect(
      [underRule({ kind: 'early', zone: 'b' }), underRule({ kind: 'early', until: 1005 }), underRule({ kind: 'floor' })].flat(),
    ).toEqual([]);
  });

  it('finds a rollout of a zone while another zone has outdated pods', () => {
    const order = { kind: 'order', zone: 'a', other: 'b' } as const;
    const updated = (history: History): void => {
      for (const ordinal of [0, 1, 2]) history.replace(`ing-b-${ordinal}`);
      history.advance(20_000);
    };
    expect([underRule(order).length, underRule(order, updated).length]).toEqual([1, 0]);
  });

  it('finds a scale-down below the number of a rule', () => {
    const history = withRule({ kind: 'floor', replicas: 2 });
    history.scale('ing-a', 2, history.agent());
    expect(history.found('S41')).toEqual([]);
    history.scale('ing-a', 1, history.agent());
    expect(history.found('S41')).toHaveLength(1);
  });

  it('accepts a rollout whose zones have the templates of their approved plans', () => {
    const name = (isOther: boolean) => (history: History) => {
      for (const set of ['ing-a', 'ing-b', 'ing-c']) {
        const template = isOther && set === 'ing-b' ? 'other' : templateDigest(history.set(set));
        const annotations = { 'rollout-group.dev/approved-plan': JSON.stringify({ template }) };
        history.change('statefulsets.apps', set, () => ({ metadata: { annotations } }));
      }
      history.advance(20_000);
    };
    expect([underRule({ kind: 'plan' }, name(false)), underRule({ kind: 'plan' }, name(true))]).toEqual([[], [expect.any(String)]]);
  });

  it('accepts an approval in the run, and an exception from the rule', () => {
    const approve = (runId: string) => (history: History) => {
      const spec = { action: 'approve', rule: 'guard/ask', runId, requestedBy: { user: 'alice' } };
      history.write('rolloutintents.rollout-group.dev', { metadata: { name: 'approve' }, spec });
    };
    expect([underRule({ kind: 'ask' }), underRule({ kind: 'ask' }, approve('run0')), underRule({ kind: 'ask' }, approve('run1'))]).toEqual([
      [expect.any(String)],
      [expect.any(String)],
      [],
    ]);
    const approvePlan = (history: History) => {
      const spec = { action: 'approve', rule: 'guard/plan', runId: 'run1', requestedBy: { user: 'alice' } };
      history.write('rolloutintents.rollout-group.dev', { metadata: { name: 'approve' }, spec });
    };
    expect([underRule({ kind: 'plan' }).length, underRule({ kind: 'plan' }, approvePlan)]).toEqual([1, []]);
    const except = (rule: string) => (history: History) => override(history, 60_000, { rule });
    const found = ['guard/early', 'window'].map((rule) => underRule({ kind: 'early' }, except(rule)).length);
    expect(found).toEqual([0, 1]);
  });

  describe('while Git changes', () => {
    const policies = 'rolloutpolicies.rollout-group.dev';
    const store = (history: History, rule: object = { name: 'early' }): void =>
      void history.write(policies, { metadata: { name: 'guard' }, spec: { rules: [rule] } });

    it("finds 'S26' under a policy that has an error now, and 'S41' except after a valid change that removed the policy", () => {
      const broken = withRule({ kind: 'early' });
      store(broken);
      store(broken, { name: 'early', when: { noSuchOperator: [1, 2] } });
      broken.advance(20_000).announceAndTake('ing-a-2');
      const removed = (agoMs: number) =>
        underRule({ kind: 'early' }, (history) => {
          store(history);
          history.remove(policies, 'guard');
          history.advance(agoMs);
        });
      const restored = (agoMs: number) =>
        underRule({ kind: 'early' }, (history) => {
          store(history);
          history.remove(policies, 'guard');
          history.advance(60_000);
          store(history);
          history.advance(agoMs);
        });
      expect([broken.found('S26').length, removed(20_000).length, restored(5_000).length, restored(11_000).length]).toEqual([1, 0, 0, 1]);
    });

    it('follows a policy directory, whose errors end no policy', () => {
      const found = (...states: readonly PolicyState[]) => {
        const history = new History({ hasPolicyDirectory: true, rules: [{ kind: 'early', effect: 'deny', until: 2000 }] });
        history.ledger('run1');
        for (const state of states) history.advance(60_000).directory(state);
        history.advance(41_000).announceAndTake('ing-a-2');
        return history.broken().filter((id) => id !== 'S17');
      };
      const errors = ['invalid', 'truncated', 'unreadable'] as const;
      expect([found(), found('removed'), found('removed', 'whole')]).toEqual([['S41'], [], ['S41']]);
      expect([...errors.map((one) => found(one)), found('removed', 'invalid')]).toEqual([['S26'], ['S26'], ['S26'], []]);
    });
  });
});
