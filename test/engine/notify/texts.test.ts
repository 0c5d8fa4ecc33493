import { describe, expect, it } from 'vitest';
import { decideGroup } from '../../../engine/decide/decide.ts';
import { type Delivery, type DeliveryState, isSettled, nextDelivery, undelivered } from '../../../engine/notify/deliveries.ts';
import { podLines, runFacts } from '../../../engine/notify/facts.ts';
import type { ChannelNotes, NotedEvent, RunNotes } from '../../../engine/notify/notes.ts';
import {
  callbackBody,
  commitStatus,
  escaped,
  eventMessage,
  mainMessage,
  pageCount,
  pageMessage,
  signedText,
} from '../../../engine/notify/texts.ts';
import { cut } from '../../../policies/text/shorten.ts';
import { group } from '../../kit/groups.ts';
import { snapshotOf } from '../../kit/snapshots.ts';

const name = { namespace: 'mimir', group: 'ingester' };
const progress = { percent: 34, pods: 300, updated: 102, available: 297, wave: { name: 'rest', place: 2, count: 3 } };
const startedMs = Date.parse('2026-11-02T09:00:00Z');

function event(kind: NotedEvent['kind'], more: Partial<NotedEvent> = {}): NotedEvent {
  return { id: `id-${kind}`, kind, atMs: startedMs + 60_000, progress, to: ['sre'], ...more };
}

function run(more: Partial<RunNotes> = {}): RunNotes {
  return {
    key: 'r1',
    id: 'r1',
    kind: 'rollout',
    target: {},
    previous: {},
    startedMs,
    outcome: 'running',
    goal: '40 of 300 pods updated',
    events: [event('started')],
    channels: {},
    ...more,
  };
}

const waiting = event('waiting', { hold: { rule: 'approval', fact: 'wave rest has 0 of 1 approvals', limit: '1 of oncall' } });
const failed = event('failed', { failure: 'gate errors: 0.7' });
const sha = 'a1b2c3d4e5f60718293a4b5c6d7e8f9012345678';

describe('the texts of messages', () => {
  it.each<[NotedEvent, Partial<RunNotes>, readonly string[]]>([
    [
      waiting,
      {},
      [
        ':double_vertical_bar: *mimir/ingester*: the rollout waits: approval: wave rest has 0 of 1 approvals (1 of oncall)',
        '34 % done: 102 of 300 pods updated, 297 available, wave rest (2 of 3)',
        'The run continues after approval.',
        '`kubectl rollout-group explain ingester -n mimir`',
      ],
    ],
    [
      event('waiting', { hold: { rule: 'pods-in-flight', fact: 'ingester-zone-b-1 is not available' } }),
      {},
      [
        ':double_vertical_bar: *mimir/ingester*: the rollout waits: pods-in-flight: ingester-zone-b-1 is not available',
        '34 % done: 102 of 300 pods updated, 297 available, wave rest (2 of 3)',
        'The wait has no known end. A person may have to act.',
        '`kubectl rollout-group explain ingester -n mimir`',
      ],
    ],
    [
      failed,
      { outcome: 'failed' },
      [
        ':x: *mimir/ingester*: the rollout failed: gate errors: 0.7',
        '34 % done: 102 of 300 pods updated, 297 available, wave rest (2 of 3)',
        'No further pod is replaced until a person acts, unless the group rolls back or continues a rollback.',
        '`kubectl rollout-group explain ingester -n mimir`',
      ],
    ],
    [
      event('completed'),
      { kind: 'rollback', outcome: 'completed', endedMs: startedMs + 2_400_000 },
      [
        ':white_check_mark: *mimir/ingester*: the rollback is complete after 40m',
        '34 % done: 102 of 300 pods updated, 297 available, wave rest (2 of 3)',
      ],
    ],
  ])('name the event, the progress and the next step: $kind', (one, of, lines) => {
    expect(eventMessage(name, run(of), one).split('\n')).toEqual(lines);
  });

  it('of the message of a run name the cause of a failure, its time and its origin', () => {
    const text = mainMessage(
      name,
      run({ outcome: 'failed', endedMs: startedMs + 60_000, events: [failed], commit: sha, cause: 'v2' }),
      undefined,
    );
    expect(text.split('\n')).toEqual([
      ':x: *mimir/ingester*: the rollout has failed',
      '34 % done: 102 of 300 pods updated, 297 available, wave rest (2 of 3)',
      'Why: gate errors: 0.7',
      `Started 2026-11-02 09:00 UTC, ended 2026-11-02 09:01 UTC · commit ${sha} · v2`,
      '`kubectl rollout-group explain ingester -n mimir`',
    ]);
  });

  it('stay within the limits of Slack for any content', () => {
    const long = '<&>`\n'.repeat(500);
    const noisy = run({ goal: long, cause: long, commit: long, events: [event('failed', { failure: long })], outcome: 'failed' });
    const lines = Array.from({ length: 120 }, (_, index) => ({ pod: `${'p'.repeat(240)}-${index}`, state: 'crashing' as const }));
    const pods = { lines, count: 120 };
    for (const text of [
      mainMessage(name, noisy, undefined),
      eventMessage(name, noisy, event('failed', { failure: long })),
      pageMessage(pods, 1),
    ]) {
      expect(text.length).toBeLessThan(4000);
      expect(text).not.toContain('<');
    }
    expect(pageMessage(pods, 1)).toContain('p-49');
    expect(escaped('<!here> `x` & y')).toBe("&lt;!here&gt; 'x' &amp; y");
    expect(cut('ab😀cd', 4)).toBe('ab…');
  });
});

describe('pages', () => {
  const lines = Array.from({ length: 101 }, (_, index) => ({ pod: `p-${index}`, state: 'old' as const }));
  const pods = { lines, count: 101 };

  it.each([
    [0, 0],
    [1, 1],
    [50, 1],
    [51, 2],
    [1000, 20],
    [1_000_000, 100],
  ])('of %i pods are %i', (count, pages) => {
    expect(pageCount(count, 100)).toBe(pages);
  });

  it('have 50 pods each, in order, and the last page says so', () => {
    expect(pageMessage(pods, 2).split('\n').slice(0, 3)).toEqual(['Pods 51 to 100 of 101', '```', 'old      p-50']);
    expect(pageMessage(pods, 3).split('\n')).toEqual(['Pods 101 to 101 of 101', '```', 'old      p-100', '```']);
    expect(pageMessage({ lines: lines.slice(0, 60), count: 60 }, 3)).toBe('Pods from 101 on were removed: the group has 60 pods.');
  });
});

describe('the status of a commit', () => {
  it.each<[NotedEvent['kind'], string, string]>([
    ['started', 'pending', 'running'],
    ['waiting', 'pending', 'running'],
    ['completed', 'success', 'success'],
    ['failed', 'failure', 'failed'],
    ['superseded', 'error', 'canceled'],
  ])('of %s is %s at GitHub and %s at GitLab', (kind, github, gitlab) => {
    const of = run({ commit: sha.toUpperCase() });
    expect(commitStatus('github', name, of, event(kind))).toMatchObject({ sha, state: github, name: 'rollout-group/mimir/ingester' });
    expect(commitStatus('gitlab', name, of, event(kind))?.state).toBe(gitlab);
  });

  it.each(['main', 'a1b2c3d', '', `${sha}/../x`, `${sha}0`])('cannot be sent to %s', (commit) => {
    expect(commitStatus('github', name, run({ commit }), event('started'))).toBeUndefined();
  });

  it('has a description within the limits of each service', () => {
    const one = event('failed', { failure: 'x'.repeat(400) });
    expect(commitStatus('github', name, run({ commit: sha }), one)?.description).toHaveLength(140);
    expect(commitStatus('gitlab', name, run({ commit: sha }), one)?.description).toHaveLength(255);
  });
});

describe('the body of a callback', () => {
  it('is the same for the same event, also if the run has continued since', () => {
    const before = callbackBody(name, run(), waiting);
    expect(callbackBody(name, run({ outcome: 'completed', endedMs: 5 }), waiting)).toBe(before);
    expect(JSON.parse(before)).toMatchObject({ result: 'running', rule: 'approval', wave: { name: 'rest', place: 2, count: 3 } });
    expect(signedText('17', before)).toBe(`17.${before}`);
  });
});

describe('the next message', () => {
  const lines = Array.from({ length: 60 }, (_, index) => ({ pod: `p-${index}`, state: 'old' as const }));
  const pods = { lines, count: 60 };
  const facts = { ...name, ...progress, run: {} as never, goal: 'g', zones: [], isPatient: false };

  function telling(of: RunNotes, more: Partial<DeliveryState> = {}): DeliveryState {
    return { name, run: of, channel: 'sre', manner: 'messages', live: { facts, pods }, isPast: false, isShown: () => false, ...more };
  }

  function kindOf(delivery: Delivery | undefined): string {
    return delivery === undefined ? 'nothing' : `${delivery.kind} ${delivery.key}`;
  }

  function saying(known: Partial<ChannelNotes>, more: Partial<RunNotes> = {}): RunNotes {
    return run({ events: [event('started'), waiting], channels: { sre: { done: [], handles: {}, ...known } }, ...more });
  }

  const main = { done: ['main'], handles: { main: '1.1' } };
  const told = { done: ['main', 'id-waiting', 'page-1', 'page-2'], handles: { main: '1.1', 'page-1': '1.2', 'page-2': '1.3' } };
  const shown = (keys: readonly string[]) => ({ isShown: (key: string) => keys.includes(key) });

  it.each<[string, RunNotes, Partial<DeliveryState>, string]>([
    ['the message of the run first', saying({}), {}, 'post main'],
    ['then what happened', saying(main), {}, 'post id-waiting'],
    ['then how the run stands', saying({ ...main, done: ['main', 'id-waiting'] }), {}, 'edit main'],
    ['then pages, one after the other', saying({ ...main, done: ['main', 'id-waiting'] }), shown(['main']), 'post page-1'],
    ['then pages that have changed', saying(told), shown(['main', 'page-1']), 'edit page-2'],
    ['nothing when all is shown', saying(told), shown(['main', 'page-1', 'page-2']), 'nothing'],
    ['nothing before somebody has looked', saying(told), { live: undefined }, 'nothing'],
    ['the end of a run that is shown', saying(told, { outcome: 'completed' }), shown(['main', 'page-1', 'page-2']), 'close id-waiting'],
    ['nothing of a run that is closed', saying({ ...told, closedBy: 'id-waiting' }, { outcome: 'completed' }), {}, 'nothing'],
    [
      'the last word on a run that another one followed',
      saying(told, { outcome: 'superseded' }),
      { isPast: true, live: undefined },
      'edit main',
    ],
    ['nothing to a channel that is told of nothing', saying({}), { channel: 'other' }, 'nothing'],
    ['what happened without a thread when there is none', saying({ done: ['main'] }), {}, 'post id-waiting'],
    ['each event in its order', saying({}), { manner: 'events' }, 'tell id-started'],
    ['the next event', saying({ done: ['id-started'] }), { manner: 'events' }, 'tell id-waiting'],
    ['no event twice', saying({ done: ['id-started', 'id-waiting'] }), { manner: 'events' }, 'nothing'],
  ])('is %s', (_what, of, more, expected) => {
    expect(kindOf(nextDelivery(telling(of, more)))).toBe(expected);
  });

  it('is shown in the channel if a user must see it, and only with a thread', () => {
    expect(nextDelivery(telling(saying(main)))).toMatchObject({ thread: '1.1', isBroadcast: true });
    const alone = nextDelivery(telling(saying({ done: ['main'] })));
    expect(alone).toMatchObject({ isBroadcast: false });
    expect(alone).not.toHaveProperty('thread');
  });

  it('contains undelivered messages, and is absent if no message can follow', () => {
    expect(undelivered(saying({}), 'sre').map(({ kind }) => kind)).toEqual(['started', 'waiting']);
    expect(undelivered(saying(main), 'sre').map(({ kind }) => kind)).toEqual(['waiting']);
    expect(isSettled(saying(told), 'sre')).toBe(false);
    expect(isSettled(saying({ done: ['id-started', 'id-waiting'] }), 'sre')).toBe(true);
    expect(isSettled(saying({ ...told, closedBy: 'id-waiting' }, { outcome: 'completed' }), 'sre')).toBe(true);
  });
});

describe('a turn in the message of a run', () => {
  const one = group({ zones: ['a', 'b'] });
  const snapshot = snapshotOf({
    groups: [one],
    everySet: {
      replicas: 3,
      firstOrdinal: 5,
      annotations: { 'rollout-group.dev/commit': sha },
      status: { updateRevision: 'new' } as never,
    },
    podChanges: {
      'ingester-zone-a': { 5: { revision: 'new' }, 6: { revision: 'new', isReady: false }, 7: 'missing' },
      'ingester-zone-b': { 5: { isTerminating: true }, 6: { isReady: false, waitingReasons: ['CrashLoopBackOff'] }, 7: { isReady: false } },
    },
  });

  it('counts pods, and lists every pod in order with its state', () => {
    const decision = decideGroup(snapshot, one);
    expect(runFacts({ group: one, snapshot, decision })).toMatchObject({ percent: 33, pods: 6, updated: 2, available: 1, commit: sha });
    const { lines, count } = podLines({ group: one, snapshot }, 100);
    expect(count).toBe(6);
    expect(podLines({ group: one, snapshot }, 4)).toEqual({ lines: lines.slice(0, 4), count: 6 });
    expect(lines.map(({ pod, state }) => `${pod} ${state}`)).toEqual([
      'ingester-zone-a-5 new',
      'ingester-zone-a-6 starting',
      'ingester-zone-a-7 missing',
      'ingester-zone-b-5 leaving',
      'ingester-zone-b-6 crashing',
      'ingester-zone-b-7 unready',
    ]);
  });
});
