import { describe, expect, it } from 'vitest';
import type { Assumptions } from '../../../engine/plan/document.ts';
import { type ForwardOptions, runForward, type Turn } from '../../../engine/plan/forward.ts';
import { actionText } from '../../../engine/publish/published.ts';
import type { Claim, GateReading, Preparation } from '../../../engine/snapshot.ts';
import type { GroupDefinition } from '../../../policies/definition.ts';
import { holdingPartition } from '../../../policies/strategies.ts';
import { gate, group, wave } from '../../kit/groups.ts';
import { kitNowMs, newRevision, oldRevision } from '../../kit/objects.ts';
import {
  ago,
  freeze,
  hourMs,
  intent,
  ledgerOf,
  minuteMs,
  outdatedSets,
  policy,
  policyRule,
  runOf,
  secondMs,
  updatedPods,
} from '../../kit/questions.ts';
import type { SnapshotOverrides } from '../../kit/snapshots.ts';
import { line, worldOf } from '../../kit/worlds.ts';

interface Given {
  readonly group?: GroupDefinition;
  readonly state?: SnapshotOverrides;
  readonly assumptions?: Partial<Assumptions>;
  readonly options?: ForwardOptions;
}

/** A run forward of zones that are all outdated, with what each decision did, at its second. */
function run({ group: of = group({ zones: ['a'] }), state = {}, assumptions = {}, options = {} }: Given) {
  const statefulSets = outdatedSets(of.zones.map(({ name }) => name));
  const story: string[] = [];
  const onTurn = (turn: Turn): void => {
    const did = turn.decision.actions.map(actionText).join(', ');
    if (did !== '') story.push(`${(turn.nowMs - kitNowMs) / secondMs}: ${did}`);
  };
  const forward = runForward(worldOf({ groups: [of], statefulSets, ...state }, assumptions), of, { onTurn, ...options });
  const seconds = (forward.last.nowMs - kitNowMs) / secondMs;
  const holding = forward.last.decision.waits.map(({ rule, outcome }) => `${rule} ${outcome}`);
  return { ...forward, seconds, story, holding };
}

const short = ({ end, seconds, holding }: ReturnType<typeof run>) => ({ end, seconds, holding });

describe('a run forward', () => {
  it('replaces pod after pod until no pod is outdated, and ends with the completed run', () => {
    const done = run({});
    expect(done.story).toEqual([
      '0: delete pod ingester-zone-a-2',
      '90: delete pod ingester-zone-a-1',
      '180: delete pod ingester-zone-a-0',
    ]);
    expect(short(done)).toEqual({ end: 'done', seconds: 270, holding: [] });
    expect(line(done.world)).toBe('0:rev-2 ready, 1:rev-2 ready, 2:rev-2 ready');
    expect(done.world.snapshot.ledgers[0]?.run).toMatchObject({ outcome: 'completed', completedMs: kitNowMs + 270 * secondMs });
  });

  it('counts its decisions, and shows each with its state', () => {
    const instants: number[] = [];
    const counted = run({ options: { onTurn: (turn, world) => instants.push(turn.nowMs - world.snapshot.nowMs) } });
    expect(counted.turns).toBe(instants.length);
    expect(new Set(instants)).toEqual(new Set([0]));
  });

  it('decides twice for each pod if a minimum interval blocks the next one: at the replacement, and when the successor is ready', () => {
    const paced = run({ group: group({ zones: ['a'], rollout: { minIntervalMs: 5 * minuteMs } }) });
    expect(paced.story).toEqual([
      '0: delete pod ingester-zone-a-2',
      '300: delete pod ingester-zone-a-1',
      '600: delete pod ingester-zone-a-0',
    ]);
    expect(paced.turns).toBe(6);
  });

  it('replaces the next pod at the end of a minimum interval that is shorter than the start of a pod', () => {
    const zones = [{ name: 'a', maxUnavailable: 2 }];
    const paced = run({ group: group({ zones, rollout: { minIntervalMs: minuteMs } }) });
    expect(paced.story.slice(0, 2)).toEqual(['0: delete pod ingester-zone-a-2', '60: delete pod ingester-zone-a-1']);
  });

  it('ends at once without work', () => {
    expect(run({ state: { statefulSets: [] } })).toMatchObject({ turns: 1, end: 'done', seconds: 0 });
  });

  it('waits for pending changes before it ends', () => {
    const starting = { 'ingester-zone-a': { ...updatedPods(), 1: 'missing' } } as const;
    expect(short(run({ state: { podChanges: starting } }))).toEqual({ end: 'done', seconds: 60, holding: [] });
  });

  it('waits for a pod that starts later than usual, up to three times the p90 start time', () => {
    const unready = (seconds: number) => ({
      'ingester-zone-a': { ...updatedPods(), 1: { revision: newRevision, isReady: false, readyChangedMs: kitNowMs - seconds * secondMs } },
    });
    const started = (seconds: number) => short(run({ state: { podChanges: unready(seconds) } }));
    expect([20, 100, 540].map(started).map(({ end, seconds }) => [end, seconds])).toEqual([
      ['done', 40],
      ['done', 15],
      ['done', 15],
    ]);
    expect(started(541).seconds).toBe(0);
  });

  it('does not change other groups and their ledgers', () => {
    const other = { namespace: 'mimir', group: 'other', claims: [], downscales: [], preparations: [] };
    expect(run({ state: { ledgers: [other] } }).world.snapshot.ledgers.filter((one) => one.group === 'other')).toEqual([other]);
  });
});

describe('an open claim', () => {
  const claimed = (claim: Partial<Claim>) =>
    short(
      run({
        state: { ledgers: [ledgerOf({ claims: [{ verb: 'evictPod', zone: 'a', uid: 'left', atMs: kitNowMs - minuteMs, ...claim }] })] },
      }),
    );

  it('ends in the model as in a turn of the agent', () => {
    const scaled = { verb: 'scaleDown', uid: 'uid-ingester-zone-a', from: 4, to: 3 } as const;
    expect(claimed(scaled)).toEqual({ end: 'done', seconds: 270, holding: [] });
    // A change that scales up again leaves no claim to wait for.
    expect(claimed({ ...scaled, to: 2, resourceVersion: '1' })).toEqual({ end: 'done', seconds: 270, holding: [] });
    expect(claimed({ ordinal: 1 })).toEqual({ end: 'done', seconds: 270, holding: [] });
  });

  it('blocks until it expires if its action did not happen', () => {
    expect(claimed({ uid: 'uid-ingester-zone-a-1', ordinal: 1 })).toEqual({ end: 'done', seconds: 60.001 + 270, holding: [] });
  });
});

describe('an event', () => {
  const podDies = { kind: 'podDies', namespace: 'mimir', pod: 'ingester-zone-a-0' } as const;
  const fails = { kind: 'podFails', namespace: 'mimir', pod: 'ingester-zone-a-0' } as const;
  const at = (seconds: number, input: typeof podDies | typeof fails) => ({ atMs: kitNowMs + seconds * secondMs, input });

  it('happens at its time, in any order of the list', () => {
    const seen: string[] = [];
    const onTurn = (turn: Turn, world: Parameters<NonNullable<ForwardOptions['onTurn']>>[1]): void => {
      seen.push(`${(turn.nowMs - kitNowMs) / secondMs} ${line(world)}`);
    };
    run({ options: { onTurn, events: [at(200, podDies), at(20, fails)] } });
    expect(seen.find((text) => text.startsWith('20 '))).toBe('20 0:rev-1 starting, 1:rev-1 ready, 2:rev-1 leaving');
    expect(seen.find((text) => text.startsWith('200 '))).toContain('0:rev-2 starting');
  });

  it('delays the end of the forecast although the group is done', () => {
    const late = run({ options: { events: [at(1000, podDies)] } });
    expect(short(late)).toEqual({ end: 'done', seconds: 1060, holding: [] });
  });
});

describe('the end of a run', () => {
  it('is blocked if no further event can happen', () => {
    const deny = { policies: [policy({ rules: [policyRule()] })] };
    expect(short(run({ state: deny }))).toEqual({ end: 'held', seconds: 0, holding: ['safety/rule no'] });
    const paused = { intents: [intent({ action: 'pause' as const })] };
    expect(short(run({ state: paused }))).toEqual({ end: 'held', seconds: 0, holding: ['paused wait'] });
  });

  it('is blocked at once by a status that is older than its spec, although the gate of the wave is read every minute', () => {
    const of = group({
      zones: ['a', 'b'],
      gates: [gate()],
      rollout: { waves: [wave('one', ['a'], { after: { soakMs: minuteMs, gates: ['errors'] } }), wave('two', ['b'])] },
    });
    const [a, b] = [
      outdatedSets(['a']),
      outdatedSets(['b'], { generation: 2, status: { observedGeneration: 1, updateRevision: newRevision } }),
    ];
    const state = { statefulSets: [...a, ...b], podChanges: { 'ingester-zone-a': updatedPods() } };
    const blocked = run({ group: of, state });
    expect([blocked.end, blocked.holding, blocked.turns < 5]).toEqual(['held', ['view-complete wait'], true]);
  });

  it('is blocked at once by a pause, although a window opens and closes every day', () => {
    const schedule = { cron: '0 2 * * *', durationMs: 2 * hourMs, timeZone: 'UTC' };
    const { ranges: _ranges, ...nightly } = freeze({ kind: 'allow', schedule });
    const paused = { intents: [intent({ action: 'pause' as const })], policies: [policy({ windows: [nightly] })] };
    expect(short(run({ state: paused }))).toEqual({ end: 'held', seconds: 0, holding: ['paused wait', 'window wait'] });
  });

  it('waits for a window if only the window blocks', () => {
    expect(run({ state: { policies: [policy({ windows: [freeze()] })] } }).story[0]).toBe('3600: delete pod ingester-zone-a-2');
  });

  it('continues when the block ends', () => {
    const paused = { intents: [intent({ action: 'pause' as const, expiresMs: kitNowMs + minuteMs })] };
    expect(run({ state: paused }).story[0]).toBe('60: delete pod ingester-zone-a-2');
  });

  it('is a limit at the instant until which it may run', () => {
    expect(run({ options: { untilMs: kitNowMs + 100 * secondMs } })).toMatchObject({
      end: 'limit',
      story: ['0: delete pod ingester-zone-a-2', '90: delete pod ingester-zone-a-1'],
    });
    expect(run({ options: { untilMs: kitNowMs + 270 * secondMs } }).end).toBe('done');
  });

  it('is a limit if an action has no effect and repeats without end', () => {
    const following = group({ zones: ['a', { name: 'b', follows: 'a' }], rollout: { strategy: 'pinned' } });
    const sets = outdatedSets(['a', 'b']).map((set, index) => ({ ...set, replicas: 3 + index }));
    const stuck = run({
      group: following,
      state: {
        statefulSets: sets,
        pods: sets.map((set) => ({ namespace: 'mimir', statefulSet: set.name, pods: { unknown: 'forbidden' } })),
      },
    });
    expect(stuck.end).toBe('held');
  });
});

describe('approvals', () => {
  const oncall = { count: 2, from: ['oncall'] };
  const asking = group({
    zones: ['a'],
    rollout: {
      waves: [wave('all', ['a'], { before: { approval: oncall, gates: [] }, after: { soakMs: 0, approval: oncall, gates: [] } })],
    },
  });
  const reviewed = { policies: [policy({ rules: [policyRule({ effect: 'requireApproval', approval: { count: 1, from: [] } })] })] };

  it('are given at once if assumed, as many as required, from the required groups', () => {
    const given = run({ group: asking });
    expect(short(given)).toEqual({ end: 'done', seconds: 270, holding: [] });
    expect(given.world.snapshot.intents).toMatchObject([
      { action: 'approve', wave: 'all', group: 'ingester', requestedBy: { user: 'person 1', groups: ['oncall'], atMs: kitNowMs } },
      { action: 'approve', wave: 'all', requestedBy: { user: 'person 2', atMs: kitNowMs } },
      { action: 'approve', wave: 'all', requestedBy: { user: 'person 1', atMs: kitNowMs + 270_000 } },
      { action: 'approve', wave: 'all', requestedBy: { user: 'person 2', atMs: kitNowMs + 270_000 } },
    ]);
  });

  it('are also given for policies, by the name of the rule', () => {
    const given = run({ state: reviewed });
    expect(short(given)).toEqual({ end: 'done', seconds: 270, holding: [] });
    expect(given.world.snapshot.intents).toMatchObject([{ rule: 'safety/rule', requestedBy: { groups: [] } }]);
  });

  it('are not given if assumed, which blocks the group', () => {
    const assumptions = { approvals: 'missing' } as const;
    expect(short(run({ group: asking, assumptions }))).toEqual({ end: 'held', seconds: 0, holding: ['approval wait'] });
    expect(short(run({ state: reviewed, assumptions }))).toEqual({ end: 'held', seconds: 0, holding: ['safety/rule wait'] });
  });

  it('are not given if no client could read them', () => {
    expect(short(run({ group: asking, state: { intents: { unknown: 'forbidden' } } })).end).toBe('held');
  });

  it('are not given behind a rule that no approval ends', () => {
    const both = { policies: [policy({ rules: [policyRule({ name: 'no' }), policyRule({ effect: 'requireApproval' })] })] };
    expect(short(run({ state: both }))).toEqual({ end: 'held', seconds: 0, holding: ['safety/no no', 'safety/rule wait'] });
  });
});

describe('gates', () => {
  const gated = (overrides: object = {}) =>
    group({
      zones: ['a'],
      gates: [gate({ consecutive: 3, everyMs: minuteMs, initialDelayMs: 2 * minuteMs, ...overrides })],
      rollout: { waves: [wave('all', ['a'], { after: { soakMs: 0, gates: ['errors'] } })] },
    });

  it('are read every period after their delay', () => {
    expect(short(run({ group: gated() }))).toEqual({ end: 'done', seconds: 270 + 120 + 120, holding: [] });
  });

  it('are read before a wave too', () => {
    const before = { ...gated(), rollout: { ...gated().rollout, waves: [wave('all', ['a'], { before: { gates: ['errors'] } })] } };
    expect(run({ group: before }).story[0]).toBe('240: delete pod ingester-zone-a-2');
  });

  it('end no wait for an approval after they pass', () => {
    const before = { ...gated(), rollout: { ...gated().rollout, waves: [wave('all', ['a'], { before: { gates: ['errors'] } })] } };
    const paused = run({ group: before, state: { intents: [intent({ action: 'pause' })] } });
    expect(short(paused)).toEqual({ end: 'held', seconds: 240, holding: ['paused wait'] });
  });

  it('fail the run if assumed', () => {
    const failed = run({ group: gated(), assumptions: { gates: 'fail' } });
    expect(short(failed)).toEqual({ end: 'held', seconds: 390, holding: ['run-failed no', 'gate no'] });
    expect(failed.world.snapshot.ledgers[0]?.run).toMatchObject({ outcome: 'failed' });
  });

  it('with a failed last reading keep that result until another run reads them again', () => {
    const waves = [wave('all', ['a'], { before: { gates: ['errors'] } })];
    const of = { ...gated({ failureLimit: 4, initialDelayMs: 0 }), rollout: { ...gated().rollout, waves } };
    const ledgers = [
      ledgerOf({
        run: runOf({
          target: { a: newRevision },
          previous: { a: oldRevision },
          startedMs: ago(10 * minuteMs),
          waveStartedMs: ago(10 * minuteMs),
        }),
      }),
    ];
    const endWith = (last: GateReading, overrides: Omit<Given, 'group'> = {}) => {
      const readings = [{ atMs: ago(2 * minuteMs), result: 'value' as const, value: 0 }, last];
      const gateReadings = [{ namespace: 'mimir', group: 'ingester', gate: 'errors', readings }];
      const { end, holding } = run({ group: of, state: { ledgers, gateReadings, ...overrides.state }, ...overrides });
      return [end, ...holding];
    };
    const failure = { atMs: ago(minuteMs), result: 'value', value: 9 } as const;
    expect(endWith({ ...failure, value: 0 })).toEqual(['done']);
    expect(endWith(failure)).toEqual(['held', 'gate wait']);
    expect(endWith({ atMs: ago(minuteMs), result: 'error', message: 'connection refused' })).toEqual(['held', 'gate unknown']);
    expect(endWith(failure, { assumptions: { gates: 'fail' } })).toEqual(['held', 'run-failed no', 'gate no']);
    expect(endWith({ ...failure, atMs: ago(20 * minuteMs) })).toEqual(['done']);
  });

  it('that never fail a run block it until the limit', () => {
    const held = run({ group: gated({ failureLimit: 0 }), assumptions: { gates: 'fail' }, options: { untilMs: kitNowMs + hourMs } });
    expect([held.end, held.holding]).toEqual(['limit', ['gate wait']]);
  });
});

describe('metrics', () => {
  const queue = { source: 'prod', query: 'max(queue)', noData: 'unknown', maxAgeMs: minuteMs } as const;
  const watching = (when: unknown) => ({ policies: [policy({ metrics: { queue }, rules: [policyRule({ when })] })] });
  const over = (limit: number) => ({ '>': [{ var: 'inputs.metrics.queue' }, limit] });

  it('keep a reading of the cluster for the whole run, and stay unknown if it is too old now', () => {
    const reading = { namespace: 'mimir', policy: 'safety', input: 'queue', value: 50 };
    const endWith = (atMs: number) => run({ state: { ...watching(over(100)), metrics: [{ ...reading, atMs }] } }).end;
    expect([endWith(kitNowMs - queue.maxAgeMs), endWith(kitNowMs - queue.maxAgeMs - 1)]).toEqual(['done', 'held']);
  });

  it('have a value at which the policy passes, for the whole run', () => {
    expect(run({ state: watching(over(100)) }).end).toBe('done');
    expect(run({ state: watching({ '<': [{ var: 'inputs.metrics.queue' }, 50] }) }).end).toBe('done');
    expect(run({ state: watching({ '<': [{ var: 'inputs.metrics.queue' }, 500_000] }) }).end).toBe('done');
    expect(run({ state: watching({ '>=': [{ var: 'inputs.metrics.queue' }, 0] }) }).end).toBe('done');
  });

  it('have the assumed or the measured value', () => {
    expect(short(run({ state: watching(over(100)), assumptions: { metrics: { 'safety/queue': 200 } } }))).toMatchObject({
      end: 'held',
      holding: ['safety/rule no'],
    });
    const measured = {
      ...watching(over(100)),
      metrics: [{ namespace: 'mimir', policy: 'safety', input: 'queue', value: 200, atMs: kitNowMs }],
    };
    expect(short(run({ state: measured }))).toMatchObject({ end: 'held', holding: ['safety/rule no'] });
  });

  it('of another policy, namespace or input are ignored', () => {
    const metric = { namespace: 'mimir', policy: 'safety', input: 'queue', value: 200, atMs: kitNowMs };
    const others = [
      { ...metric, policy: 'other' },
      { ...metric, namespace: 'loki' },
      { ...metric, input: 'lag' },
    ];
    for (const other of others) expect(run({ state: { ...watching(over(100)), metrics: [other] } }).end).toBe('done');
  });

  it('that were measured stay if a policy of the same name in the namespace of the agent has no reading', () => {
    const [own = policy()] = watching(over(100)).policies;
    const shared = { ...own, namespace: 'rollout-group', targets: { all: true as const, namespaces: ['mimir'] }, rules: [] };
    const metrics = [{ namespace: 'mimir', policy: 'safety', input: 'queue', value: 200, atMs: kitNowMs }];
    const state = { policies: [own, shared], agentNamespace: 'rollout-group', metrics };
    expect(short(run({ state }))).toMatchObject({ end: 'held', holding: ['safety/rule no'] });
  });

  it('are unknown if no value passes', () => {
    const always = { or: [over(0), { '<=': [{ var: 'inputs.metrics.queue' }, 0] }] };
    expect(short(run({ state: watching(always) }))).toMatchObject({ end: 'held', holding: ['safety/rule unknown'] });
  });

  it('of rules that need only them are not confused with others', () => {
    const others = {
      policies: [
        policy({ metrics: { queue, queues: queue }, rules: [policyRule({ when: { '>': [{ var: 'inputs.metrics.queues' }, 100] } })] }),
      ],
    };
    expect(run({ state: others }).end).toBe('done');
  });
});

describe('a downscale', () => {
  it('prepares pods, waits for the delay and continues', () => {
    const endpoint = { scheme: 'http', port: 80, path: '/prepare', timeout: '5s' } as const;
    const shrinking = group({
      zones: [
        {
          name: 'a',
          replicas: { kind: 'count', count: 2 },
          delayed: { afterMs: hourMs, endpoint, onUnreachable: 'hold' },
          prepare: { endpoint, onFailure: 'deny' },
        },
      ],
    });
    const settled = { statefulSets: [], podChanges: {} };
    const done = run({ group: shrinking, state: settled });
    expect(done.story).toEqual([
      '0: ask ingester-zone-a 2 to prepare for a delayed downscale',
      // Once more for the delay, then for the removal.
      '3600: ask ingester-zone-a 2 to prepare for a delayed downscale',
      '3600: ask ingester-zone-a 2 to prepare to leave',
      '3600: scale ingester-zone-a from 3 to 2',
    ]);
    expect(short(done)).toEqual({ end: 'done', seconds: 3630, holding: [] });
    expect(line(done.world)).toBe(`0:${oldRevision} ready, 1:${oldRevision} ready`);
    const failing = run({ group: shrinking, state: settled, assumptions: { preparations: 'fail' } });
    expect(failing.end).toBe('held');
    expect(failing.holding).toEqual(['delayed-downscale wait']);
    const planned = (agoMs: number, answer: Pick<Preparation, 'state'> & Partial<Preparation>) => {
      const failed = { zone: 'a', ordinal: 2, podUid: 'uid-ingester-zone-a-2', call: 'delayed', ...answer } as const;
      const ledger = { namespace: 'mimir', group: 'ingester', claims: [], downscales: [] };
      const preparations = [{ ...failed, seenMs: kitNowMs - agoMs }];
      return run({ group: shrinking, state: { ...settled, ledgers: [{ ...ledger, preparations }] } });
    };
    const factsOf = ({ last }: ReturnType<typeof run>) => last.decision.waits.map(({ fact }) => fact);
    // The agent calls again every 30 s. A plan does not assume that somebody mends the endpoint.
    for (const agoMs of [5000, 40_000, 10 * minuteMs])
      expect(factsOf(planned(agoMs, { state: 'failed', message: '500' }))).toEqual(['ingester-zone-a-2 failed to prepare: 500']);
    expect(factsOf(planned(5000, { state: 'asked' }))).toEqual(['ingester-zone-a-2 failed to prepare: the last call has no answer yet']);
    expect(planned(0, { state: 'asked' }).end).toBe('done');
    expect(planned(5000, { state: 'failed', message: '500', isWithdrawn: true }).end).toBe('done');
  });

  it('completes in a zone while the endpoint of another zone fails', () => {
    const endpoint = { scheme: 'http', port: 80, path: '/prepare', timeout: '5s' } as const;
    const count = { replicas: { kind: 'count', count: 2 }, delayed: { afterMs: hourMs, endpoint, onUnreachable: 'hold' } } as const;
    const shrinking = group({ zones: ['a', 'b'].map((name) => ({ name, ...count })) });
    const entry = (zone: string) => ({ zone, ordinal: 2, podUid: `uid-ingester-zone-${zone}-2`, call: 'delayed' }) as const;
    const preparations = [
      { ...entry('a'), state: 'failed', seenMs: kitNowMs - 5000 } as const,
      { ...entry('b'), state: 'prepared', seenMs: kitNowMs - 10 * minuteMs, reportedMs: kitNowMs - 10 * minuteMs } as const,
    ];
    const ledgers = [{ namespace: 'mimir', group: 'ingester', claims: [], downscales: [], preparations }];
    const ended = run({ group: shrinking, state: { statefulSets: [], podChanges: {}, ledgers } });
    expect(ended.story.filter((line) => line.includes('scale '))).toEqual(['3000: scale ingester-zone-b from 3 to 2']);
    expect([ended.end, ended.last.decision.waits.map(({ fact }) => fact)]).toEqual([
      'held',
      ['ingester-zone-a-2 failed to prepare: preparations are assumed to fail'],
    ]);
  });

  it('does not end before the automatic rollback of a failed run, although the endpoint fails', () => {
    const endpoint = { scheme: 'http', port: 80, path: '/prepare', timeout: '5s' } as const;
    const delayed = { afterMs: hourMs, endpoint, onUnreachable: 'hold' } as const;
    const shrinking = group({
      zones: [{ name: 'a', replicas: { kind: 'count', count: 2 }, delayed }, 'b'],
      rollout: { strategy: 'pinned', onFailure: 'rollback' },
    });
    const names = ['a', 'b'];
    const revisions = (revision: string) => Object.fromEntries(names.map((name) => [name, revision]));
    const failed = runOf({ target: revisions(newRevision), previous: revisions(oldRevision), outcome: 'failed', failedMs: kitNowMs });
    const podChanges = { 'ingester-zone-b': { 2: { revision: newRevision } } };
    const ledgers = [ledgerOf({ run: failed })];
    const statefulSets = outdatedSets(names, { updateStrategy: 'RollingUpdate', partition: holdingPartition });
    const ended = run({ group: shrinking, state: { statefulSets, podChanges, ledgers }, assumptions: { preparations: 'fail' } });
    expect(ended.story).toContainEqual(expect.stringMatching(/delete pod ingester-zone-b-2/));
    expect([ended.end, ended.last.decision.run?.kind]).toEqual(['held', 'rollback']);
  });
});
