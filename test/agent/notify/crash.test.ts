import { describe, expect, it } from 'vitest';
import { shareOf } from '../../kit/share.ts';
import { type ChannelName, type Fault, notifyWorld } from './notify-kit.ts';

const everyChannel: readonly ChannelName[] = ['slack', 'callback', 'github', 'gitlab'];

/** A run with a wait and an end, and one that fails. When the leader has died, another one leads after a while. */
async function play(fault: Fault) {
  const world = notifyWorld(everyChannel);
  const first = world.start('agent-1', fault);
  first.lead();
  const turns = [
    { updated: [3, 3], target: 'old' },
    { updated: [0, 0] },
    ...Array.from({ length: 6 }, () => ({ updated: [3, 0], paused: true })),
    { updated: [3, 0] },
    { updated: [3, 3] },
    { updated: [0, 0], target: 'newer' },
    { updated: [0, 0], target: 'newer', run: { outcome: 'failed' as const, failure: 'gate errors: 0.7', failedMs: 1_772_500_000_000 } },
  ];
  let second: ReturnType<typeof world.start> | undefined;
  for (const turn of turns) {
    await world.turn(turn, 31_000);
    if (first.isAlive() || second !== undefined) continue;
    second = world.start('agent-2');
    second.lead();
  }
  await world.env.advance(60_000);
  if (!first.isAlive() && second === undefined) {
    second = world.start('agent-2');
    second.lead();
  }
  await world.env.advance(240_000);
  return { ...world, first };
}

type World = Awaited<ReturnType<typeof play>>;

/** What reached the services, without what is different from run to run. */
function arrivals({ services }: World) {
  const first = (text: string): string => text.split('\n')[0] ?? '';
  return {
    slack: services.slack.messages.map(({ text, thread_ts }) => `${thread_ts === undefined ? '' : '  '}${first(text)}`).sort(),
    callback: services.callback.taken.map(({ body }) => JSON.parse(body).event),
    // A new leader may see a later state, and count a minute anew.
    github: services.github.statuses.map(({ state, description }) => `${state}: ${description.replace(/^\d+ %, /, '')}`),
    gitlab: services.gitlab.statuses.map(({ state }) => state),
  };
}

/** A receiver knows a repeat by its id. */
function withoutRepeats(world: World) {
  const { taken } = world.services.callback;
  const bodies = new Map<string, string>();
  for (const { id, body } of taken) {
    expect(bodies.get(id) ?? body).toBe(body);
    bodies.set(id, body);
  }
  return { ...arrivals(world), callback: [...bodies.values()].map((body) => JSON.parse(body).event) };
}

describe('the messages of two runs', () => {
  it('arrive once, in order, and the commit stays that of the first run', async () => {
    const world = await play(() => undefined);
    expect(arrivals(world)).toEqual({
      slack: [
        '  :double_vertical_bar: *mimir/ingester*: the rollout waits: paused: zone b is paused by its settings',
        '  :white_check_mark: *mimir/ingester*: the rollout is complete after 4m8s',
        '  :x: *mimir/ingester*: the rollout failed: gate errors: 0.7',
        '  Pods 1 to 6 of 6',
        '  Pods 1 to 6 of 6',
        ':white_check_mark: *mimir/ingester*: the rollout is complete',
        ':x: *mimir/ingester*: the rollout has failed',
      ],
      callback: ['started', 'waiting', 'completed', 'started', 'failed'],
      github: [
        'pending: the rollout began',
        'pending: the rollout waits: paused: zone b is paused by its settings',
        'success: the rollout is complete after 4m8s',
      ],
      gitlab: ['running', 'success'],
    });
  });

  it.each(['crash', 'lose'] as const)('arrive once after a %s at any call of the leader', { timeout: 600_000 }, async (what) => {
    let calls = 0;
    const expected = arrivals(
      await play((_site, moment) => {
        if (moment === 'beforeSend') calls += 1;
        return undefined;
      }),
    );
    expect(calls).toBeGreaterThan(50);
    const wrong: string[] = [];
    for (const index of shareOf(
      Array.from({ length: calls }, (_, before) => before + 1),
      8,
    )) {
      for (const when of what === 'crash' ? (['beforeSend', 'afterReply'] as const) : (['afterReply'] as const)) {
        let call = 0;
        let site = '';
        const world = await play((at, moment) => {
          if (moment === when) call += 1;
          if (call !== index || moment !== when || site !== '') return undefined;
          site = at;
          return what;
        });
        if (site === '') continue;
        const seen = withoutRepeats(world);
        if (JSON.stringify(seen) !== JSON.stringify(expected))
          wrong.push(`${what} ${when} call ${index} (${site}): ${JSON.stringify(seen)}`);
      }
    }
    expect(wrong).toEqual([]);
  });
});
