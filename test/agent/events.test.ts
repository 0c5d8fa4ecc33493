import { describe, expect, it } from 'vitest';
import { EventWriter } from '../../agent/published/events.ts';
import { GroupObjects } from '../../agent/published/group-objects.ts';
import type { TakenAction } from '../../engine/publish/published.ts';
import type { IntentView } from '../../engine/snapshot.ts';
import { group, wave } from '../kit/groups.ts';
import { kitNowMs } from '../kit/objects.ts';
import { exception, freeze, hourMs, ledgerOf, policy, policyRule } from '../kit/questions.ts';
import { status } from '../kit/virtual-env.ts';
import { type Turning, writersWorld } from './writers-kit.ts';

interface EventObject {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly [field: string]: unknown;
}

const eventsResource = 'events.events.k8s.io';

function setup(plurals: readonly string[] = ['rolloutgroups'], one = group({ zones: ['a', 'b'] })) {
  const world = writersWorld(plurals, one);
  const { env, server } = world;
  const results: string[] = [];
  const lease = { mode: 'auto', name: 'rollout-group-agent', durationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2000 } as const;
  const events = new EventWriter({
    env,
    config: { agentNamespace: 'ops', identity: 'me', kubernetesTimeoutMs: 5000, lease },
    objects: new GroupObjects(env, 5000),
    onWrite: (result) => results.push(result),
  });
  events.listener.leadershipChanged?.({ isLeader: true });
  const turn = async (turning: Turning, afterMs = 6000): Promise<void> => {
    events.listener.turnEnded(world.report(turning));
    await env.advance(afterMs);
  };
  const names: EventObject['metadata'][] = [];
  server.server.observe({
    committed: ({ type, resource, after }) => {
      if (resource === eventsResource && type === 'ADDED') names.push({ namespace: '', ...after.metadata });
    },
  });
  /** In the order in which they were created. */
  const all = (): readonly EventObject[] =>
    names.map(({ namespace, name }) => server.get(eventsResource, namespace, name) as unknown as EventObject);
  const reasons = (): readonly unknown[] => all().map((event) => event['reason']);
  return { ...world, events, turn, all, reasons, results };
}

describe('Kubernetes Events', () => {
  it('describe a rollout from start to end', async () => {
    const { turn, reasons, replaced } = setup();
    await turn({ updated: [3, 3], target: 'old' });
    expect(reasons()).toEqual([]);
    await turn({ updated: [0, 0], performed: [replaced('a', 0)] });
    await turn({ updated: [3, 0], performed: [replaced('b', 0), replaced('b', 1)] });
    await turn({ updated: [3, 3] });
    expect(reasons()).toEqual(['RolloutStarted', 'ZoneOpened', 'PodReplaced', 'ZoneOpened', 'PodReplaced', 'RolloutFinished']);
  });

  it('report once that pods run the new revision before their wave', async () => {
    const waves = [wave('canary', ['a'], { amount: { pods: 1 }, after: { soakMs: hourMs, gates: [] } }), wave('rest', ['a', 'b'])];
    const { turn, all, replaced } = setup(undefined, group({ zones: ['a', 'b'], rollout: { waves } }));
    await turn({ updated: [0, 0], performed: [replaced('a', 0)] });
    await turn({ updated: [1, 1] });
    await turn({ updated: [1, 1] });
    await turn({ updated: [1, 2] });
    const notes = all().flatMap((event) => (event['reason'] === 'UpdatedByRestart' ? [[event['type'], event['note']]] : []));
    expect(notes).toEqual([
      ['Warning', expect.stringContaining('zone b has 1 pod at revision new, but the waves so far include 0')],
      ['Warning', expect.stringContaining('zone b has 2 pods at revision new')],
    ]);
  });

  it('report once that updated pods started to crash, also if their containers start again', async () => {
    const { turn, all } = setup();
    const unready = (reason: string) => ({ updated: [2, 0], unready: { 'ingester-zone-a-1': reason, 'ingester-zone-a-2': reason } });
    for (const reason of ['', 'CrashLoopBackOff', '', 'CrashLoopBackOff']) await turn(unready(reason), 11 * 60_000);
    const notes = all().flatMap((event) => (event['reason'] === 'PodsCrashing' ? [[event['type'], event['note']]] : []));
    expect(notes).toEqual([['Warning', 'ingester-zone-a-1 crashes at the update revision: CrashLoopBackOff']]);
  });

  it('have every field that the API server requires, with microseconds', async () => {
    const { turn, all, replaced } = setup();
    await turn({ updated: [3, 3], target: 'old', performed: [replaced('a', 0)] });
    expect(all()).toEqual([
      expect.objectContaining({
        apiVersion: 'events.k8s.io/v1',
        kind: 'Event',
        metadata: expect.objectContaining({ namespace: 'mimir', name: expect.stringMatching(/^ingester-zone-a\.[0-9a-f]{16}$/) }),
        eventTime: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
        regarding: { apiVersion: 'apps/v1', kind: 'StatefulSet', namespace: 'mimir', name: 'ingester-zone-a', uid: expect.any(String) },
        type: 'Normal',
        reason: 'PodReplaced',
        action: 'Roll',
        note: 'replaced ingester-zone-a-0',
        reportingController: 'rollout-group.dev/agent',
        reportingInstance: 'me',
      }),
    ]);
  });

  it('are attached to the RolloutGroup if it exists', async () => {
    const { turn, all, replaced, server } = setup();
    const { uid } = server.put('rolloutgroups.rollout-group.dev', { metadata: { name: 'ingester', namespace: 'mimir' } }).metadata;
    await turn({ updated: [3, 3], target: 'old', performed: [replaced('b', 0)] });
    expect(all().map((event) => event['regarding'])).toEqual([
      { apiVersion: 'rollout-group.dev/v1alpha1', kind: 'RolloutGroup', namespace: 'mimir', name: 'ingester', uid },
    ]);
  });

  it('name a wait once for each fact and run, with the reason of its rule', async () => {
    const { turn, all } = setup(
      [],
      group({
        zones: [
          { name: 'a', paused: true },
          { name: 'b', paused: true },
        ],
      }),
    );
    const waits = () => all().filter((event) => event['reason'] === 'Paused');
    const ofZones = () =>
      ['a', 'b'].map((zone) => expect.objectContaining({ action: 'Wait', note: `paused: zone ${zone} is paused by its settings` }));
    for (let count = 0; count < 5; count += 1) await turn({ updated: [0, 0] });
    expect(waits()).toEqual(ofZones());
    await turn({ updated: [3, 3], target: 'old' });
    await turn({ updated: [0, 0] });
    expect(waits()).toHaveLength(4);
  });

  it('count repetitions only within one run', async () => {
    const { turn, all, replaced } = setup();
    await turn({ updated: [0, 0], performed: [replaced('a', 0)] });
    await turn({ updated: [0, 0], performed: [replaced('a', 0)] });
    await turn({ updated: [0, 0], target: 'newer', performed: [replaced('a', 0)] });
    const counts = all().flatMap((event) => (event['reason'] === 'PodReplaced' ? [Object(event['series']).count] : []));
    expect(counts).toEqual([2, undefined]);
  });

  it('name the user and reason of a retry after a rollback, although the run of the request has ended', async () => {
    const { events, env, report, all } = setup(['rolloutgroups'], group({ zones: ['a', 'b'], rollout: { strategy: 'pinned' } }));
    const turn = async (updated: number, intents: readonly IntentView[] = []) => {
      const now = report({ updated: [updated, updated], intents });
      events.listener.turnEnded(now);
      await env.advance(6000);
      return now.decision?.run?.id ?? '';
    };
    const asked = (action: 'abort' | 'retry', runId: string): IntentView => ({
      namespace: 'mimir',
      name: action,
      group: 'ingester',
      action,
      runId,
      reason: 'INC-441',
      rollback: true,
      requestedBy: { user: 'anna', groups: [], atMs: env.clock.nowMs() },
    });
    const aborted = [asked('abort', await turn(1))];
    await turn(1, aborted);
    await turn(1, aborted);
    const rollback = await turn(0, aborted);
    await turn(0, [...aborted, asked('retry', rollback)]);
    const notes = all().flatMap(({ reason, note }) => (reason === 'RolloutStarted' || reason === 'Retried' ? [note] : []));
    const started = ['rollout started', 'rollback started: aborted by anna (INC-441)'];
    expect(notes).toEqual([...started, 'the group is continued by anna (INC-441)', 'rollout started: retried by anna (INC-441)']);
  });

  it('name each failure of a run that was retried', async () => {
    const { turn, all, env, report } = setup();
    const intents: IntentView[] = [];
    const ask = async (action: 'abort' | 'retry', reason: string) => {
      const runId = report({ updated: [1, 1], intents }).decision?.run?.id ?? '';
      const requestedBy = { user: 'anna', groups: [], atMs: env.clock.nowMs() };
      intents.push({ namespace: 'mimir', name: `${action}-${reason}`, group: 'ingester', action, runId, reason, requestedBy });
      await turn({ updated: [1, 1], intents: [...intents] });
    };
    await turn({ updated: [1, 1] });
    await ask('abort', 'one');
    await ask('retry', 'two');
    await ask('abort', 'three');
    const notes = all().flatMap(({ reason, note }) => (reason === 'RolloutFailed' ? [note] : []));
    expect(notes).toEqual(['one', 'three'].map((reason) => `rollout failed: aborted by anna (${reason})`));
  });

  it('of a pause by another requester is another Event', async () => {
    const { events, env, report, all } = setup();
    const pausedBy = async (user: string) => {
      const spec = { namespace: 'mimir', name: 'pause.ingester', group: 'ingester', action: 'pause' as const };
      events.listener.turnEnded(
        report({ updated: [0, 0], intents: [{ ...spec, requestedBy: { user, groups: [], atMs: env.clock.nowMs() } }] }),
      );
      await env.advance(6000);
    };
    await pausedBy('bob');
    await pausedBy('alice');
    const notes = all().flatMap(({ reason, note }) => (reason === 'Paused' ? [note] : []));
    expect(notes).toEqual(
      ['paused: the group is paused by bob', 'the group is paused by alice'].map((note) => expect.stringContaining(note)),
    );
  });

  it('name a pause and its end while no step is due', async () => {
    const { turn, all } = setup();
    const pause = { namespace: 'mimir', name: 'pause.ingester', group: 'ingester', action: 'pause', reason: 'INC-441' } as const;
    const intents = [{ ...pause, requestedBy: { user: 'anna', groups: [], atMs: 1 } }];
    await turn({ updated: [3, 3], target: 'old' });
    await turn({ updated: [3, 3], target: 'old', intents });
    await turn({ updated: [0, 0], intents });
    await turn({ updated: [0, 0] });
    const notes = all().flatMap(({ reason, note }) => (reason === 'Paused' || reason === 'Resumed' ? [note] : []));
    expect(notes).toEqual(['the group is paused by anna (INC-441)', 'the pause of the group by anna (INC-441) ended']);
  });

  it.each([
    ['protect', ['a-1 is protected by anna (INC-441)', 'the protection of a-1 by anna (INC-441) ended']],
    ['undo', ['the undo of a-1 by anna (INC-441) ended']],
    [
      'cancel',
      ['the scale-down of a-1 is cancelled by anna (INC-441)', 'the cancellation of the scale-down of a-1 by anna (INC-441) ended'],
    ],
  ] as const)('name the end of the request %s', async (action, expected) => {
    const { turn, all } = setup();
    const request = { namespace: 'mimir', name: 'one', group: 'ingester', action, zone: 'a', ordinals: [1], reason: 'INC-441' };
    const intents = [{ ...request, requestedBy: { user: 'anna', groups: [], atMs: 1 } }];
    await turn({ updated: [3, 3], target: 'old' });
    await turn({ updated: [3, 3], target: 'old', intents });
    await turn({ updated: [3, 3], target: 'old' });
    expect(all().map(({ note }) => note)).toEqual(expected);
  });

  it('name the end of a rejection, and of an abort without a verified requester', async () => {
    const { turn, all } = setup();
    const request = { namespace: 'mimir', group: 'ingester' } as const;
    const requestedBy = { user: 'anna', groups: [], atMs: 1 };
    const abort = { ...request, name: 'abort', action: 'abort' } as const;
    const intents = [{ ...request, name: 'reject', action: 'reject', wave: 'canary', requestedBy } as const, abort];
    await turn({ updated: [3, 3], target: 'old', intents: [...intents, { ...abort, name: 'verified', requestedBy }] });
    await turn({ updated: [3, 3], target: 'old' });
    const ended = all().flatMap(({ reason, note }) => (/Ended|Resumed/.test(String(reason)) ? [[reason, note]] : []));
    expect(ended).toEqual([
      ['RejectionEnded', 'the rejection of wave canary by anna ended'],
      ['Resumed', expect.stringMatching(/^the abort of the group by .* ended$/)],
    ]);
  });

  it('name each exception once when a step passes because of it', async () => {
    const { turn, all } = setup();
    const policies = [policy({ rules: [policyRule({ name: 'moves', effect: 'hold', message: 'the storage moves' })] })];
    const exceptions = [exception('safety/moves', { requestedBy: { user: 'admin', atMs: 1 } })];
    await turn({ updated: [3, 3], target: 'old', policies, exceptions });
    for (const updated of [0, 1, 2]) await turn({ updated: [updated, 0], policies, exceptions });
    await turn({ updated: [2, 0], policies, exceptions: [exception('safety/moves', { expiresMs: kitNowMs + 2 * hourMs })] });
    const used = all().filter(({ reason }) => reason === 'ExceptionUsed');
    const permission = 'safety/moves: the storage moves; permitted by exception exception-1';
    expect(used.map(({ type, action, note, series }) => [type, action, note, series])).toEqual([
      ['Warning', 'Roll', `${permission} of admin for any amount in all zones until 2026-03-02T13:00:00.000Z (see CHG-1)`, undefined],
      ['Warning', 'Roll', `${permission} for any amount in all zones until 2026-03-02T14:00:00.000Z (see CHG-1)`, undefined],
    ]);
  });

  it('name each new exception once before a step needs it', async () => {
    const { turn, all } = setup();
    const open = exception('no-downscale', { zone: 'a', requestedBy: { user: 'anna', atMs: 1 } });
    const still = { updated: [3, 3], target: 'old' } as const;
    await turn({ ...still, exceptions: [exception('window')] });
    for (let count = 0; count < 2; count += 1) await turn({ ...still, exceptions: [exception('window'), open] });
    expect(all().map(({ type, reason, note }) => [type, reason, note])).toEqual([
      [
        'Warning',
        'ExceptionOpened',
        'no-downscale: exception exception-1 of anna permits any amount in zone a until 2026-03-02T13:00:00.000Z (see CHG-1); no step needs it now',
      ],
    ]);
  });

  it.each([
    ['WindowClosed', { windows: [freeze()] }, 'window: a deny window blocks rollout (freeze, policy.yaml:20)'],
    [
      'SafetyMoves',
      { rules: [policyRule({ name: 'moves', effect: 'hold', message: 'the storage moves' })] },
      'safety/moves: the storage moves',
    ],
  ] as const)('name the stop %s once before the first pod of a rollout', async (reason, blocking, note) => {
    const { turn, all } = setup();
    const policies = [policy(blocking)];
    await turn({ updated: [3, 3], target: 'old', policies });
    for (let count = 0; count < 3; count += 1) await turn({ updated: [0, 0], policies });
    expect(all().map((event) => [event['reason'], event['note']])).toEqual([
      ['RolloutStarted', 'rollout started'],
      [reason, note],
    ]);
  });

  it('skip a rule that blocks a group for a moment', async () => {
    const { turn, reasons } = setup(
      [],
      group({
        zones: [
          { name: 'a', paused: true },
          { name: 'b', paused: true },
        ],
      }),
    );
    await turn({ updated: [3, 3], target: 'old' });
    await turn({ updated: [0, 0] }, 4000);
    await turn({ updated: [3, 3] });
    expect(reasons()).not.toContain('Paused');
  });

  it('name each failure', async () => {
    const { turn, all, replaced } = setup();
    const call: TakenAction = {
      action: {
        kind: 'callPods',
        namespace: 'mimir',
        zone: 'a',
        statefulSet: 'ingester-zone-a',
        call: 'prepare',
        method: 'POST',
        ordinals: [2],
      },
      result: 'failed',
      message: 'ingester-zone-a-2: it answered 500',
    };
    await turn({ updated: [3, 3], target: 'old', performed: [call, { ...replaced('a', 1), result: 'refused', message: 'forbidden' }] });
    await turn({ updated: [3, 3], target: 'old', error: 'the decision violates S1: two zones' });
    expect(all().map((event) => [event['type'], event['reason'], event['note']])).toEqual([
      [
        'Warning',
        'PreparationFailed',
        'ingester-zone-a does not scale down: its pods are not prepared: ingester-zone-a-2: it answered 500',
      ],
      ['Warning', 'PodNotReplaced', 'ingester-zone-a-1 was not replaced: forbidden'],
      ['Warning', 'InvariantViolated', 'the decision violates S1: two zones'],
    ]);
  });

  it('name a superseded rollout, but not the start of a rollout that already ran', async () => {
    const { turn, reasons, report, env } = setup();
    report({ updated: [1, 0] });
    await env.advance(60_000);
    await turn({ updated: [1, 0] });
    expect(reasons()).toEqual([]);
    await turn({ updated: [0, 0], target: 'newer' });
    expect(reasons()).toEqual(expect.arrayContaining(['RolloutSuperseded', 'RolloutStarted']));
  });

  it('do not name a run that is not in the ledger yet', async () => {
    const { turn, reasons, events, report, env } = setup();
    await turn({ updated: [3, 3], target: 'old' });
    events.listener.turnEnded({ ...report({ updated: [0, 0] }), ledger: ledgerOf(), error: 'the watch cache is behind the API server' });
    await env.advance(60_000);
    expect(reasons()).toEqual([]);
    await turn({ updated: [0, 0], target: 'newer' });
    expect(reasons()).toEqual(['RolloutStarted', 'ZoneOpened']);
  });

  it('name a lost Lease and invalid policies, on the Lease', async () => {
    const { events, env, all } = setup();
    const wrong = {
      code: 'RG1001',
      severity: 'error',
      message: 'zone b is named twice',
      file: 'x.yaml',
      line: 3,
      column: 1,
      pointer: '',
    } as never;
    events.listener.groupsChanged?.([], [wrong, wrong]);
    await env.advance(1000);
    events.listener.leadershipChanged?.({ isLeader: false, holder: 'other' });
    await env.advance(1000);
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace: 'ops', name: 'rollout-group-agent' };
    expect(all().map((event) => [event['reason'], event['note'], event['regarding']])).toEqual([
      ['PolicyInvalid', 'RG1001: x.yaml:3: zone b is named twice', lease],
      ['LeaseLost', 'me no longer acts; other holds the Lease', lease],
    ]);
  });

  it('are written only by the leader, except about its requests, and a hand-over is no loss', async () => {
    const { events, env, turn, replaced, all } = setup();
    events.beginHandOver();
    events.listener.leadershipChanged?.({ isLeader: false });
    await turn({ updated: [0, 0], performed: [replaced('a', 0)] });
    await env.finish(events.close());
    expect(all().map((event) => event['note'])).toEqual(['replaced ingester-zone-a-0']);
  });

  it('are written as soon as they can be, with one warning until then', async () => {
    const { turn, replaced, server, results, warnings, all, env } = setup();
    server.fault = () => status(503, 'ServiceUnavailable');
    await turn({ updated: [0, 0], performed: [replaced('a', 0)] });
    await turn({ updated: [1, 0], performed: [replaced('a', 1)] });
    expect(warnings).toEqual(['event could not be written']);
    expect(new Set(results)).toEqual(new Set(['failed']));
    server.fault = () => undefined;
    await env.advance(60_000);
    expect(all().map((event) => event['note'])).toEqual(
      expect.arrayContaining(['replaced ingester-zone-a-0', 'replaced ingester-zone-a-1']),
    );
  });

  it('expire while they cannot be written', async () => {
    const { turn, replaced, server, results, all, env } = setup();
    server.fault = () => status(403, 'Forbidden');
    await turn({ updated: [3, 3], target: 'old', performed: [replaced('a', 0)] });
    await env.advance(2 * 3_600_000);
    expect([results.at(-1), results.filter((result) => result === 'dropped').length]).toEqual(['dropped', 1]);
    server.fault = () => undefined;
    await env.advance(600_000);
    expect(all()).toEqual([]);
  });

  it('count the replacements of one pod in one Event, and need no right to patch it', async () => {
    const { turn, replaced, server, all } = setup();
    const again = () => turn({ updated: [3, 3], target: 'old', performed: [replaced('a', 0)] }, 20_000);
    for (let count = 0; count < 3; count += 1) await again();
    expect(all()).toEqual([expect.objectContaining({ note: 'replaced ingester-zone-a-0', series: expect.objectContaining({ count: 3 }) })]);
    server.fault = ({ method }) => (method === 'PATCH' ? status(403, 'Forbidden') : undefined);
    await again();
    expect(all().map((event) => event['series'])).toEqual([expect.objectContaining({ count: 3 }), undefined]);
  });

  it('count further for hours, also when one write fails', async () => {
    const { turn, replaced, server, all, env } = setup();
    const again = () => turn({ updated: [3, 3], target: 'old', performed: [replaced('a', 0)] }, 500_000);
    for (let count = 0; count < 9; count += 1) await again();
    server.fault = () => status(503, 'ServiceUnavailable');
    await turn({ updated: [3, 3], target: 'old', performed: [replaced('a', 0)] }, 3000);
    server.fault = () => undefined;
    await env.advance(60_000);
    expect(all().map((event) => event['series'])).toEqual([expect.objectContaining({ count: 10 })]);
  });

  it('name every pod while the API server is slower than the rollout', async () => {
    const { events, env, report, replaced, results, all } = setup();
    for (let ordinal = 0; ordinal < 300; ordinal += 1)
      events.listener.turnEnded(report({ updated: [3, 3], target: 'old', performed: [replaced('a', ordinal)] }));
    await env.advance(60_000);
    expect(results.every((result) => result === 'done')).toBe(true);
    expect(all().at(-1)?.['note']).toBe('replaced 100 pods of ingester-zone-a: 200-299');
    expect(all()).toHaveLength(201);
  });

  it('name a replacement without an answer', async () => {
    const { turn, replaced, all } = setup();
    await turn({ updated: [3, 3], target: 'old', performed: [{ ...replaced('a', 1), result: 'unknown', message: 'timed out' }] });
    expect(all().map((event) => [event['type'], event['reason'], event['note']])).toEqual([
      ['Warning', 'PodReplaced', 'the replacement of ingester-zone-a-1 was requested, with unknown outcome: timed out'],
    ]);
  });

  it('do not delay the shutdown', async () => {
    const { events, env, report, replaced, server } = setup();
    server.fault = () => ({ lost: 'reply', forever: true });
    events.listener.turnEnded(report({ updated: [0, 0], performed: [replaced('a', 0)] }));
    const startedMs = env.clock.monotonicMs();
    await env.finish(events.close());
    expect(env.clock.monotonicMs() - startedMs).toBeLessThanOrEqual(5000);
  });
});
