import { describe, expect, it } from 'vitest';
import { type NotedEvent, notesLimits } from '../../../engine/notify/notes.ts';
import { type ChannelName, channelSpecs, notifyWorld } from './notify-kit.ts';
import { callbackKey, gitToken, slackToken } from './services.ts';

type Options = Parameters<typeof notifyWorld>[1];

function setup(told: readonly ChannelName[], options: Options = {}) {
  const world = notifyWorld(told, options);
  const leader = world.start('agent-1');
  leader.lead();
  return { ...world, leader };
}

/** A rollout from its first look to its end. */
async function rollOut({ turn }: ReturnType<typeof setup>): Promise<void> {
  await turn({ updated: [3, 3], target: 'old' });
  await turn({ updated: [0, 0] });
  await turn({ updated: [3, 0] });
  await turn({ updated: [3, 3] });
}

describe('a rollout in Slack', () => {
  it('is one message that is edited, with pages and the end in its thread', async () => {
    const world = setup(['slack']);
    await rollOut(world);
    const [main, page, end, ...more] = world.services.slack.messages;
    expect(more).toEqual([]);
    expect(main?.thread_ts).toBeUndefined();
    expect(main?.editedMs.length).toBeGreaterThan(0);
    expect(main?.text).toContain('*mimir/ingester*: the rollout is complete');
    expect(page).toMatchObject({ thread_ts: main?.ts, text: expect.stringContaining('new      ingester-zone-b-2') });
    expect(end).toMatchObject({ thread_ts: main?.ts, isBroadcast: false, text: expect.stringContaining('is complete after 1m') });
  });

  it('is not announced if it completed before the process knew the group', async () => {
    const world = setup(['slack', 'callback']);
    await world.turn({ updated: [3, 3], target: 'old' });
    await world.turn({ updated: [3, 3], target: 'old' });
    expect(world.results).toEqual([]);
  });

  it('of 1,000 pods has 20 pages of 50, each at its place', async () => {
    const world = setup(['slack'], { replicas: 500 });
    await world.turn({ updated: [0, 0] }, 60_000);
    const pages = world.services.slack.messages.filter(({ text }) => text.startsWith('Pods '));
    expect(pages.map(({ text }) => text.split('\n')[0])).toEqual(
      Array.from({ length: 20 }, (_, page) => `Pods ${50 * page + 1} to ${50 * page + 50} of 1000`),
    );
    expect(pages[10]?.text).toContain('old      ingester-zone-b-0\n');
    for (const { text } of pages) expect(text.length).toBeLessThan(4000);
  });

  it('is edited at most once a second at any speed, and every message ends with the final state', async () => {
    const world = setup(['slack'], { replicas: 100 });
    for (let updated = 0; updated < 100; updated += 2) await world.turn({ updated: [updated, 0] }, 200);
    await world.turn({ updated: [100, 50] }, 60_000);
    for (const { editedMs } of world.services.slack.messages) {
      for (const [index, atMs] of editedMs.entries()) expect(atMs - (editedMs[index - 1] ?? 0)).toBeGreaterThanOrEqual(1000);
    }
    const calls = world.services.slack.asked.length;
    expect(calls).toBeLessThan(60);
    const texts = world.services.slack.messages.map(({ text }) => text).join('\n');
    expect(texts.match(/^new /gm)).toHaveLength(150);
    expect(texts).toContain('75 % done: 150 of 200 pods updated');
  });

  it('names a long wait that does not end by itself once, in the channel', async () => {
    const world = setup(['slack']);
    await world.turn({ updated: [0, 0] });
    await world.turn({ updated: [3, 0], paused: true });
    expect(world.services.slack.messages).toHaveLength(2);
    for (let count = 0; count < 10; count += 1) await world.turn({ updated: [3, 0], paused: true });
    const waits = world.services.slack.messages.filter(({ isBroadcast }) => isBroadcast);
    expect(waits.map(({ text }) => text)).toEqual([expect.stringContaining('waits: paused: zone b is paused by its settings')]);
    expect(world.services.slack.messages[0]?.text).toContain('Blocked by paused: zone b is paused');
  });

  it('reports pods that did not come back after ten minutes', async () => {
    const world = setup(['callback'], { events: ['waiting'] });
    const pods = { 'ingester-zone-a': { 0: { isReady: false, waitingReasons: ['CrashLoopBackOff'] } } };
    await world.turn({ updated: [0, 0] }, 300_000);
    await world.turn({ updated: [1, 0], pods }, 590_000);
    await world.turn({ updated: [1, 0], pods }, 5_000);
    expect(world.services.callback.taken).toEqual([]);
    await world.turn({ updated: [1, 0], pods }, 60_000);
    expect(world.services.callback.taken.map(({ body }) => JSON.parse(body).reason)).toEqual([expect.stringContaining('zone')]);
  });

  it('that is superseded ends with a message, and the next one has a separate message', async () => {
    const world = setup(['slack']);
    await world.turn({ updated: [0, 0] });
    await world.turn({ updated: [1, 0], target: 'newer' }, 90_000);
    const mains = world.services.slack.messages.filter(({ thread_ts }) => thread_ts === undefined);
    expect(mains.map(({ text }) => text.split('\n')[0])).toEqual([
      ':fast_forward: *mimir/ingester*: the rollout ended early: another run replaced it',
      ':arrows_counterclockwise: *mimir/ingester*: the rollout is under way',
    ]);
  });

  it('continues in a new message if the thread is gone, so the end is announced too', async () => {
    const world = setup(['slack']);
    await world.turn({ updated: [0, 0] });
    world.services.slack.messages.splice(0);
    await world.turn({ updated: [3, 3] }, 60_000);
    expect(world.services.slack.messages.map(({ text, thread_ts }) => [thread_ts, text.includes('is complete after')])).toEqual([
      [undefined, true],
    ]);
  });

  it('escapes Slack markup in foreign text', async () => {
    const world = setup(['slack']);
    await world.turn({ updated: [0, 0] });
    const run = { outcome: 'failed' as const, failure: '<!channel> `x` & *y*\n:x: forged', failedMs: 1 };
    await world.turn({ updated: [0, 0], run });
    const failed = world.services.slack.messages.find(({ text }) => text.includes('failed:'))?.text ?? '';
    expect(failed).toContain("&lt;!channel&gt; 'x' &amp; *y* :x: forged\n");
  });
});

describe('a callback', () => {
  it('is sent for each requested event, in order, with the data that the receiver needs', async () => {
    const world = setup(['callback'], { events: ['completed', 'failed'] });
    await rollOut(world);
    await world.turn({ updated: [1, 0], target: 'newer' });
    await world.turn({ updated: [1, 0], target: 'newer', run: { outcome: 'failed', failure: 'gate errors: 0.7', failedMs: 5 } });
    expect(world.services.callback.taken.map(({ body }) => JSON.parse(body))).toEqual([
      expect.objectContaining({
        format: 'rollout-group.dev/notification/v1',
        event: 'completed',
        result: 'completed',
        percent: 100,
        reason: 'the rollout is complete after 1m',
        group: { namespace: 'mimir', name: 'ingester' },
        run: expect.objectContaining({ kind: 'rollout', id: expect.any(String), commit: expect.stringMatching(/^[0-9a-f]{40}$/) }),
        counts: { pods: 6, updated: 6, available: 6 },
      }),
      expect.objectContaining({ event: 'failed', result: 'failed', reason: 'gate errors: 0.7', percent: 16 }),
    ]);
    expect(world.services.callback.taken.map(({ id }) => id)).toEqual(world.services.callback.taken.map(({ body }) => JSON.parse(body).id));
  });
});

describe('commit statuses', () => {
  it('follow the run at GitHub and at GitLab', async () => {
    const world = setup(['github', 'gitlab']);
    await rollOut(world);
    expect(world.services.github.statuses.map(({ state, name, description }) => [state, name, description])).toEqual([
      ['pending', 'rollout-group/mimir/ingester', '0 %, the rollout began'],
      ['success', 'rollout-group/mimir/ingester', 'the rollout is complete after 1m'],
    ]);
    expect(world.services.gitlab.statuses.map(({ state }) => state)).toEqual(['running', 'success']);
  });

  it('are skipped with a note if the run names no commit', async () => {
    const world = setup(['github']);
    const turn = world.report({ updated: [0, 0] });
    const { decision } = turn;
    if (decision?.run === undefined) throw new Error('the kit always has a run');
    world.leader.hear({ ...turn, decision: { ...decision, run: { ...decision.run, origin: { commit: 'main' } } } });
    await world.env.advance(10_000);
    expect(world.services.github.asked).toEqual([]);
    expect(world.results).toEqual(['github refused']);
    expect(world.notesText()).toContain('the change has no full commit id');
  });
});

describe('a service that fails', () => {
  it('gets no request during its requested pause, and then gets the message', async () => {
    const world = setup(['slack']);
    world.services.slack.fault = () => ({ status: 429, headers: { 'Retry-After': '120' }, body: { ok: false, error: 'ratelimited' } });
    await world.turn({ updated: [0, 0] }, 100_000);
    expect(world.services.slack.asked).toHaveLength(1);
    world.services.slack.fault = undefined;
    await world.env.advance(30_000);
    expect(world.services.slack.messages).toHaveLength(2);
  });

  it('is retried after growing pauses, and a callback has the same bytes each time', async () => {
    const world = setup(['callback'], { events: ['started'] });
    world.services.callback.fault = () => ({ status: 503 });
    await world.turn({ updated: [0, 0] }, 3_600_000);
    const times = world.services.callback.asked.map(({ atMs }) => atMs);
    expect(times.length).toBeGreaterThan(8);
    expect(times.length).toBeLessThan(30);
    expect(new Set(world.services.callback.asked.map(({ body }) => body)).size).toBe(1);
    world.services.callback.fault = undefined;
    await world.env.advance(310_000);
    expect(world.services.callback.taken).toHaveLength(1);
  });

  it('is not retried after a permanent error, and the status shows this', async () => {
    const world = setup(['callback'], { events: ['started', 'completed'] });
    world.services.callback.fault = () => ({ status: 422 });
    await world.turn({ updated: [0, 0] }, 600_000);
    expect(world.services.callback.asked).toHaveLength(1);
    expect(JSON.parse(JSON.parse(world.notesText()).data.notifications).problems).toEqual({
      callback: { text: 'the service answered 422', sinceMs: expect.any(Number) },
    });
    world.services.callback.fault = undefined;
    await world.turn({ updated: [3, 3] }, 600_000);
    expect(world.services.callback.taken).toHaveLength(1);
    expect(JSON.parse(JSON.parse(world.notesText()).data.notifications).problems).toEqual({});
  });

  it.each([
    ['a redirect', { status: 302, headers: { Location: 'http://127.0.0.1:1/callback' } }],
    ['no permission', { status: 403 }],
  ])('with %s is retried every few minutes until a setting changes', async (_what, answer) => {
    const world = setup(['callback'], { events: ['started'] });
    world.services.callback.fault = () => answer;
    await world.turn({ updated: [0, 0] }, 1_000_000);
    expect(world.services.callback.asked.length).toBeGreaterThan(2);
    expect(world.services.callback.asked.length).toBeLessThan(6);
    world.services.callback.fault = undefined;
    await world.env.advance(400_000);
    expect(world.services.callback.taken).toHaveLength(1);
  });

  it('is dropped one day after the end', async () => {
    const world = setup(['callback'], { events: ['completed'] });
    world.services.callback.fault = () => ({ status: 503 });
    await world.turn({ updated: [0, 0] });
    await world.turn({ updated: [3, 3] }, 25 * 3_600_000);
    const asked = world.services.callback.asked.length;
    expect(world.results.at(-1)).toBe('callback refused');
    await world.env.advance(3_600_000);
    expect(world.services.callback.asked).toHaveLength(asked);
  });

  it('delays no other one', async () => {
    const world = setup(['slack', 'callback']);
    world.services.slack.fault = () => ({ status: 500 });
    await rollOut(world);
    expect(world.services.callback.taken.map(({ body }) => JSON.parse(body).event)).toEqual(['started', 'completed']);
  });
});

describe('a channel', () => {
  it.each<[string, (world: ReturnType<typeof setup>) => void, string]>([
    [
      'that does not exist',
      ({ server }) => server.remove('notificationchannels.rollout-group.dev', 'rollout-group', 'callback'),
      'there is no NotificationChannel rollout-group/callback',
    ],
    [
      'of other namespaces',
      ({ channel }) => channel('callback', channelSpecs.callback, ['loki']),
      'the channel callback is not available to namespace mimir',
    ],
    [
      'without https that is not on this machine',
      ({ channel }) => channel('callback', { callback: { ...channelSpecs.callback.callback, url: 'http://10.0.0.1/x' } }),
      'has an http address',
    ],
    ['whose Secret is not there', ({ secret }) => secret('hook', { other: 'x' }), 'the Secret of the channel does not have the named key'],
    ['whose Secret is no token', ({ secret }) => secret('hook', { key: 'two words' }), 'is not a token'],
  ])('%s is not used, and says why, until it is mended', async (_what, spoil, why) => {
    const world = setup(['callback'], { events: ['started'] });
    spoil(world);
    await world.turn({ updated: [0, 0] }, 100_000);
    expect(world.services.callback.asked).toEqual([]);
    expect(world.notesText()).toContain(why);
    world.channel('callback', channelSpecs.callback);
    world.secret('hook', { key: callbackKey });
    await world.env.advance(700_000);
    expect(world.services.callback.taken).toHaveLength(1);
  });

  it('keeps its secrets out of everything that is written, logged or counted', async () => {
    const world = setup(['slack', 'callback', 'github', 'gitlab']);
    await world.turn({ updated: [0, 0] });
    world.services.slack.fault = ({ headers }) => ({ status: 400, body: { ok: false, error: headers['authorization'] } });
    world.services.github.fault = ({ headers }) => ({ status: 500, body: { message: headers['authorization'] } });
    await world.turn({ updated: [3, 3] }, 600_000);
    const stored = ['configmaps', 'notificationchannels.rollout-group.dev'].map((one) => JSON.stringify(world.server.list(one)));
    const everything = [...world.logs, ...world.results, ...stored].join('\n');
    for (const secret of [slackToken, callbackKey, gitToken]) expect(everything).not.toContain(secret);
  });
});

describe('the notes', () => {
  it('are written only after an event, not during the progress of the group', async () => {
    const world = setup(['callback']);
    await world.turn({ updated: [0, 0] }, 60_000);
    const writes = world.server.writes().length;
    const requests = world.env.requests.length;
    for (let count = 0; count < 20; count += 1) await world.turn({ updated: [1, 0] });
    expect(world.server.writes()).toHaveLength(writes);
    expect(world.env.requests).toHaveLength(requests);
  });

  it('block all messages if they cannot be stored, and no message is lost', async () => {
    const world = setup(['callback']);
    world.server.fault = ({ method, pathname }) => (pathname.includes('configmaps') && method !== 'GET' ? { status: 503 } : undefined);
    await world.turn({ updated: [0, 0] });
    await world.turn({ updated: [3, 3] });
    expect(world.services.callback.asked).toEqual([]);
    world.server.fault = undefined;
    await world.env.advance(120_000);
    expect(world.services.callback.taken.map(({ body }) => JSON.parse(body).event)).toEqual(['started', 'completed']);
  });

  it('are bounded: waits above the limit are not announced, the end is', async () => {
    const world = setup(['callback']);
    await world.turn({ updated: [0, 0] });
    for (let count = 0; count < notesLimits.events + 10; count += 1) {
      const one = world.report({ updated: [1, 0], paused: true });
      const decision = one.decision && { ...one.decision, phase: 'Waiting' as const, outcome: 'wait' as const };
      const waits = [{ rule: `policy/rule-${count}`, outcome: 'no' as const, fact: 'somebody has to look' }];
      world.leader.hear({ ...one, ...(decision && { decision: { ...decision, waits } }) });
      await world.env.advance(61_000);
    }
    await world.turn({ updated: [3, 3] }, 120_000);
    const kinds = world.services.callback.taken.map(({ body }): NotedEvent['kind'] => JSON.parse(body).event);
    expect(kinds.filter((kind) => kind === 'waiting')).toHaveLength(notesLimits.events - 1);
    expect(kinds.at(-1)).toBe('completed');
  });

  it('of another writer stay unchanged', async () => {
    const world = setup(['callback']);
    world.server.put('configmaps', { metadata: { name: 'rollout-notify-ingester', namespace: 'mimir' }, data: {} });
    await world.turn({ updated: [0, 0] }, 60_000);
    expect(world.services.callback.asked).toEqual([]);
    expect(world.server.writes()).toEqual([]);
    expect(world.logs.join()).toContain('is not managed by the agent');
  });
});

describe('the leader', () => {
  it('sends the messages; other processes send no request', async () => {
    const world = notifyWorld(['callback']);
    world.start('agent-1');
    await world.turn({ updated: [0, 0] });
    expect(world.env.requests).toEqual([]);
  });

  it('passes its observations on, and the next leader sends the messages', async () => {
    const world = setup(['callback']);
    await world.turn({ updated: [0, 0] });
    world.leader.notifier.beginHandOver();
    await world.turn({ updated: [3, 3] }, 0);
    world.leader.notifier.listener.leadershipChanged?.({ isLeader: false });
    await world.env.finish(world.leader.notifier.close());
    expect(world.services.callback.taken).toHaveLength(1);
    world.start('agent-2').lead();
    await world.env.advance(30_000);
    expect(world.services.callback.taken.map(({ body }) => JSON.parse(body).event)).toEqual(['started', 'completed']);
    expect(world.env.timerCount()).toBe(0);
  });

  it('starts no request after it has lost the Lease', async () => {
    const world = setup(['callback']);
    world.services.callback.fault = () => ({ status: 503 });
    await world.turn({ updated: [0, 0] });
    world.leader.notifier.listener.leadershipChanged?.({ isLeader: false });
    const asked = world.services.callback.asked.length;
    await world.env.advance(3_600_000);
    expect(world.services.callback.asked).toHaveLength(asked);
    expect(world.env.timerCount()).toBe(0);
  });
});
