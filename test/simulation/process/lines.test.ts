import { describe, expect, it } from 'vitest';
import type { KubernetesStream } from '../../../cluster/env.ts';
import type { PlacedFault, WatchFault } from '../../../simulation/faults/fault.ts';
import { Transport } from '../../../simulation/process/transport.ts';
import { lifeWith, nowOnly, type OpenWatch } from './lives.ts';

const request = { method: 'GET', path: '/api/v1/pods?watch=1', timeoutMs: 10_000, site: 'watch.pods.watch' } as const;
const at = (fault: WatchFault, count = 1): PlacedFault => ({ at: `a1/watch.pods.watch#${count}`, port: 'line', fault });
const lineOf = (name: string, version: number): string =>
  JSON.stringify({ type: 'MODIFIED', object: { metadata: { namespace: 'mimir', name, resourceVersion: `${version}` } } });

async function watching(...placed: readonly PlacedFault[]) {
  const world = lifeWith(...placed);
  const { life, server, scheduler } = world;
  const past: number[] = [];
  const frozenFrontEnd = (behindMs: number): number => past.push(behindMs) + 40;
  const shown: (readonly [number, number])[] = [];
  const showVersion = (revision: number, forMs: number): void => {
    shown.push([revision, forMs]);
  };
  const touch = (): void => undefined;
  const options = { life, server, user: 'agent', frontEnds: 1, touch, frozenFrontEnd, ...nowOnly, showVersion };
  const http = new Transport(options, 'acting');
  const heard: { readonly atMs: number; readonly line: string }[] = [];
  const ends: string[] = [];
  const open = async (): Promise<{ readonly stream: KubernetesStream; readonly watch: OpenWatch }> => {
    let stream: KubernetesStream | undefined;
    void http
      .stream(request, (line) => heard.push({ atMs: scheduler.nowMs(), line }))
      .then((opened) => {
        stream = opened;
        void opened.ended.then((reason) => ends.push(reason));
      });
    await scheduler.runUntil(scheduler.nowMs() + 5_000, () => stream !== undefined);
    return { stream: stream as KubernetesStream, watch: world.watches.at(-1) as OpenWatch };
  };
  return { ...world, http, heard, ends, open, past, shown, lines: () => heard.map(({ line }) => line) };
}

describe('a watch through the network', () => {
  it('delivers lines in their order, some milliseconds later, and its end', async () => {
    const { open, scheduler, lines, ends, life, heard } = await watching();
    const { watch, stream } = await open();
    expect([stream.status, watch.request.actor, life.open.watches]).toEqual([
      200,
      {
        user: 'agent',
        process: 'a1',
        site: 'watch.pods.watch',
        point: 'a1/watch.pods.watch#1',
        sentAtMs: 0,
        sentWallMs: Date.UTC(2026, 0, 15, 12),
      },
      1,
    ]);
    const sent = Array.from({ length: 50 }, (_, index) => lineOf('p', index));
    const beganMs = scheduler.nowMs();
    for (const line of sent) watch.sink.line(line);
    watch.sink.end('the server shuts down');
    await scheduler.runUntil(scheduler.nowMs() + 5_000);
    expect(lines()).toEqual(sent);
    expect(heard[0]?.atMs).toBeGreaterThan(beganMs);
    expect(ends).toEqual(['the server shuts down']);
    expect([life.open.watches, scheduler.pendingCount()]).toEqual([0, 0]);
  });

  it('delivers what the server sent before the process heard that it is open', async () => {
    const world = lifeWith();
    const { life, scheduler } = world;
    const server = {
      ...world.server,
      watch: (...args: Parameters<typeof world.server.watch>) => {
        args[1].line(lineOf('early', 1));
        return world.server.watch(...args);
      },
    };
    const http = new Transport(
      { life, server, user: 'agent', frontEnds: 1, touch: () => undefined, frozenFrontEnd: () => 0, ...nowOnly },
      'acting',
    );
    const heard: string[] = [];
    void http.stream(request, (line) => heard.push(line));
    await scheduler.runUntil(10_000);
    expect(heard).toEqual([lineOf('early', 1)]);
  });

  it('delivers nothing after it was closed, and the server closes it', async () => {
    const { open, scheduler, lines, ends, life } = await watching();
    const { watch, stream } = await open();
    watch.sink.line(lineOf('p', 1));
    stream.close();
    await scheduler.runUntil(10_000);
    expect([lines(), ends, watch.isClosed, life.open.watches]).toEqual([[], ['closed by the client'], true, 0]);
  });

  it('closes at the server when its process dies', async () => {
    const { open, scheduler, lines, life } = await watching();
    const { watch } = await open();
    watch.sink.line(lineOf('p', 1));
    life.crash(0);
    watch.sink.line(lineOf('p', 2));
    await scheduler.runUntil(10_000);
    expect([lines(), watch.isClosed, life.onEnd.size]).toEqual([[], true, 0]);
  });

  it('waits while its process stands still', async () => {
    const { open, scheduler, heard, life } = await watching();
    const { watch } = await open();
    life.time.pause(20_000);
    watch.sink.line(lineOf('p', 1));
    watch.sink.line(lineOf('p', 2));
    await scheduler.runUntil(15_000);
    expect(heard).toEqual([]);
    await scheduler.runUntil(40_000);
    expect(heard.map(({ line }) => line)).toEqual([lineOf('p', 1), lineOf('p', 2)]);
  });

  it('is refused as the server refuses it', async () => {
    const world = lifeWith();
    const { life, scheduler } = world;
    const server = { ...world.server, watch: () => ({ status: 403, headers: {}, body: 'no' }) };
    const http = new Transport(
      { life, server, user: 'agent', frontEnds: 1, touch: () => undefined, frozenFrontEnd: () => 0, ...nowOnly },
      'acting',
    );
    let stream: KubernetesStream | undefined;
    void http
      .stream(request, () => undefined)
      .then((opened) => {
        stream = opened;
      });
    await scheduler.runUntil(10_000);
    expect([stream?.status, stream?.body, life.open.watches, life.onEnd.size]).toEqual([403, 'no', 0, 0]);
  });
});

describe('the opening of a watch', () => {
  const opening = (fault: Extract<PlacedFault, { port: 'request' }>['fault']): PlacedFault => ({
    at: 'a1/watch.pods.watch#1',
    port: 'request',
    fault,
  });

  it('whose answer is lost leaves no watch behind at the server', async () => {
    const { http, scheduler, watches } = await watching(opening({ class: 'F2', kind: 'replyLost', isSilent: true }));
    let error: unknown;
    http
      .stream(request, () => undefined)
      .catch((failure: unknown) => {
        error = failure;
      });
    await scheduler.runUntil(20_000);
    expect(error).toMatchObject({ message: 'no answer within 10000 ms' });
    expect(watches.map(({ isClosed }) => isClosed)).toEqual([true]);
  });

  it('that comes too late leaves no watch behind either', async () => {
    const { http, scheduler, watches } = await watching(opening({ class: 'F3', kind: 'held', delayMs: 30_000 }));
    http.stream(request, () => undefined).catch(() => undefined);
    await scheduler.runUntil(60_000);
    expect(watches.map(({ isClosed }) => isClosed)).toEqual([true]);
  });

  it('that is answered with an expired version says so', async () => {
    const { http, scheduler } = await watching(opening({ class: 'F6', kind: 'expired' }));
    let status = 0;
    void http
      .stream(request, () => undefined)
      .then((stream) => {
        status = stream.status;
      });
    await scheduler.runUntil(20_000);
    expect(status).toBe(410);
  });

  it('that a proxy answers with a page is a stream of nonsense which is over', async () => {
    const { http, scheduler, heard, ends } = await watching(opening({ class: 'F5', kind: 'answer', what: 'malformed', isApplied: false }));
    void http.stream(request, (line) => heard.push({ atMs: 0, line })).then(({ ended }) => ended.then((reason) => ends.push(reason)));
    await scheduler.runUntil(20_000);
    expect([heard.length, ends.length]).toEqual([1, 1]);
    expect(() => JSON.parse(heard[0]?.line ?? '')).toThrow();
  });
});

describe('a fault of a line', () => {
  const three = [lineOf('p', 1), lineOf('q', 2), lineOf('p', 3)];
  const afterThree = async (fault: WatchFault, count = 1, ms = 1_000) => {
    const world = await watching(at(fault, count));
    const { watch, stream } = await world.open();
    for (const line of three) watch.sink.line(line);
    await world.scheduler.runUntil(world.scheduler.nowMs() + ms);
    return { ...world, watch, stream };
  };

  it('F6: the watch ends with the word that its version is gone', async () => {
    const { lines, ends, watch } = await afterThree({ class: 'F6', kind: 'gone' }, 2);
    expect(lines().slice(0, 1)).toEqual(three.slice(0, 1));
    expect(JSON.parse(lines()[1] ?? '')).toMatchObject({ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } });
    expect([lines().length, ends.length, watch.isClosed]).toEqual([2, 1, true]);
  });

  it('F7: nothing arrives for a while, without an error, then all of it', async () => {
    const { lines, ends, scheduler, heard, life } = await afterThree({ class: 'F7', kind: 'stall', durationMs: 60_000 }, 2, 30_000);
    expect([lines(), ends, life.open.watches]).toEqual([three.slice(0, 1), [], 1]);
    await scheduler.runUntil(70_000);
    expect(lines()).toEqual(three);
    expect(heard[1]?.atMs).toBeGreaterThanOrEqual(60_000);
  });

  it('F7: it comes at once when faults are over', async () => {
    const { lines, scheduler, holds } = await afterThree({ class: 'F7', kind: 'stall', durationMs: 600_000 });
    expect(lines()).toEqual([]);
    holds.release();
    await scheduler.runUntil(5_000);
    expect(lines()).toEqual(three);
  });

  it('F7: a stalled watch that is closed is forgotten', async () => {
    const { lines, scheduler, stream, ends } = await afterThree({ class: 'F7', kind: 'stall', durationMs: 60_000 });
    stream.close();
    await scheduler.runUntil(100_000);
    expect([lines(), ends]).toEqual([[], ['closed by the client']]);
  });

  it('F7: nothing comes by a dead watch, also when faults are over, until it is closed', async () => {
    const { lines, scheduler, holds, stream, life, ends, watch } = await afterThree({ class: 'F7', kind: 'dead' }, 2);
    expect([lines(), life.open.dead]).toEqual([three.slice(0, 1), 1]);
    holds.release();
    watch.sink.end('the server ended it');
    await scheduler.runUntil(1_000_000);
    expect([lines(), ends, life.open.watches]).toEqual([three.slice(0, 1), [], 1]);
    stream.close();
    await scheduler.runUntil(1_100_000);
    expect([ends, life.open.watches, life.open.dead]).toEqual([['closed by the client'], 0, 0]);
  });

  it('F8: a line comes twice', async () => {
    const { lines } = await afterThree({ class: 'F8', kind: 'duplicate' }, 2);
    expect(lines()).toEqual([three[0], three[1], three[1], three[2]]);
  });

  it('F8: of two lines about one object only the last is seen, and the order stays', async () => {
    const { lines } = await afterThree({ class: 'F8', kind: 'coalesce' });
    expect(lines()).toEqual([three[1], three[2]]);
  });

  it('F8: an event that the next one would replace waits for it, and arrives without a next one', async () => {
    const world = await watching(at({ class: 'F8', kind: 'coalesce' }), at({ class: 'F8', kind: 'coalesce' }, 2));
    const { watch } = await world.open();
    watch.sink.line(three[0] ?? '');
    await world.scheduler.runUntil(1_000);
    expect(world.lines()).toEqual([]);
    watch.sink.line(three[1] ?? '');
    watch.sink.line(three[2] ?? '');
    await world.scheduler.runUntil(3_000);
    // The second waits now in its turn, and nothing replaces it.
    expect(world.lines()).toEqual([]);
    await world.scheduler.runUntil(20_000);
    expect(world.lines()).toEqual([three[1], three[2]]);
  });

  it('F8: the stream ends, and the next one is served by a server of the past', async () => {
    const { lines, ends, open, watches, past } = await afterThree({ class: 'F8', kind: 'reconnectToPast', behindMs: 9_000 }, 2);
    expect([lines(), ends, past]).toEqual([three.slice(0, 1), ['the connection was closed'], []]);
    await open();
    await open();
    expect(past).toEqual([9_000]);
    expect(watches.map(({ frontEnd }) => frontEnd)).toEqual([0, 41, 0]);
  });

  it('F9: one line is lost and nothing else', async () => {
    const { lines, ends } = await afterThree({ class: 'F9', kind: 'lose' }, 2);
    expect([lines(), ends]).toEqual([[three[0], three[2]], []]);
  });

  it('passes over the lines of one object until what they led to, and only theirs', async () => {
    const { open, scheduler, lines, life } = await watching(at({ class: 'F8', kind: 'hide', lines: 2, forMs: 60_000 }, 2));
    const { watch } = await open();
    const sent = [lineOf('p', 1), lineOf('p', 2), lineOf('q', 3), lineOf('p', 4), lineOf('p', 5), lineOf('p', 6)];
    for (const line of sent) watch.sink.line(line);
    await scheduler.runUntil(scheduler.nowMs() + 5_000);
    expect(lines()).toEqual([sent[0], sent[2], sent[4], sent[5]]);
    expect([life.open.watches, scheduler.pendingCount()]).toEqual([1, 0]);
  });

  it('says that the version is gone when nothing follows what was passed over', async () => {
    const { open, scheduler, lines, ends } = await watching(at({ class: 'F8', kind: 'hide', lines: 3, forMs: 20_000 }));
    const { watch } = await open();
    for (const version of [1, 2]) watch.sink.line(lineOf('p', version));
    await scheduler.runUntil(scheduler.nowMs() + 15_000);
    expect(lines()).toEqual([]);
    await scheduler.runUntil(scheduler.nowMs() + 10_000);
    expect([lines(), ends]).toEqual([[expect.stringContaining('"code":410')], ['the server closed the watch']]);
  });

  it('delivers a line, shows the world of a version and ends, or lets the process die', async () => {
    const fault = { class: 'F10', kind: 'showVersion', revision: 7, forMs: 30_000 } as const;
    const { open, scheduler, lines, ends, shown } = await watching(at(fault));
    const { watch } = await open();
    watch.sink.line(lineOf('p', 9));
    await scheduler.runUntil(scheduler.nowMs() + 5_000);
    expect([lines(), ends, shown]).toEqual([[lineOf('p', 9)], ['the connection was closed'], [[7, 30_000]]]);
    const dying = await watching(at({ ...fault, restartAfterMs: 1000 }));
    (await dying.open()).watch.sink.line(lineOf('p', 9));
    await dying.scheduler.runUntil(dying.scheduler.nowMs() + 5_000);
    expect([dying.changes, dying.shown]).toEqual([[expect.stringMatching(/^died at \d+ for 1000$/)], [[7, 30_000]]]);
  });
});
