// Watches and front ends on the model of the API server: order, lag, bookmarks, ends.
import { describe, expect, it } from 'vitest';
import { actor, asking, configMap, paths, pod } from './asking.ts';

const { configMaps } = paths;
const soon = 100;

describe('a watch', () => {
  it('from a version tells what has happened since, and then what happens', async () => {
    const { ask, merge, watch, advance } = asking();
    ask('POST', configMaps, configMap('a'));
    const { resourceVersion } = ask('GET', configMaps).body.metadata;
    merge(`${configMaps}/a`, { data: { key: '2' } });
    await advance(soon);
    const { told, events } = watch(`${configMaps}?watch=1&resourceVersion=${resourceVersion}`);
    expect(told()).toEqual([]);
    await advance(soon);
    expect(told()).toEqual(['MODIFIED a']);
    ask('POST', configMaps, configMap('b'));
    ask('DELETE', `${configMaps}/a`);
    await advance(soon);
    expect(told()).toEqual(['MODIFIED a', 'ADDED b', 'DELETED a']);
    expect(events.map(({ object }) => object.metadata.resourceVersion)).toEqual(['1002', '1003', '1004']);
  });

  it('without a version begins with what is there', async () => {
    const { ask, watch, advance } = asking();
    ask('POST', configMaps, configMap('b'));
    ask('POST', configMaps, configMap('a'));
    await advance(soon);
    const { told } = watch(`${configMaps}?watch=true`);
    await advance(soon);
    expect(told()).toEqual(['ADDED a', 'ADDED b']);
  });

  it('that takes bookmarks is told where the beginning ends', async () => {
    const { ask, watch, advance } = asking();
    ask('POST', configMaps, configMap('a'));
    const { events, told } = watch(`${configMaps}?watch=1&allowWatchBookmarks=true`);
    await advance(soon);
    expect(told()).toEqual(['ADDED a', 'BOOKMARK']);
    expect(events[1]?.object.metadata).toEqual({ resourceVersion: '1001', annotations: { 'k8s.io/initial-events-end': 'true' } });
  });

  it('takes changes of what it selects for additions and deletions', async () => {
    const { ask, merge, watch, advance } = asking();
    for (const [name, label] of [
      ['in', 'x'],
      ['out', 'y'],
    ] as const) {
      ask('POST', configMaps, configMap(name, { key: '1' }, { label }));
    }
    await advance(soon);
    const { told, events } = watch(`${configMaps}?watch=1&resourceVersion=1002&labelSelector=label%3Dx`);
    merge(`${configMaps}/in`, { metadata: { labels: { label: 'y' } } });
    merge(`${configMaps}/out`, { metadata: { labels: { label: 'x' } } });
    merge(`${configMaps}/out`, { data: { key: '2' } });
    merge(`${configMaps}/in`, { data: { key: '2' } });
    await advance(soon);
    expect(told()).toEqual(['DELETED in', 'ADDED out', 'MODIFIED out']);
    // The object as it was while it was selected, with the version of the change that ended that.
    expect(events[0]?.object.metadata).toMatchObject({ labels: { label: 'x' }, resourceVersion: '1003' });
  });

  it('of one namespace hears nothing of another', async () => {
    const { server, watch, advance } = asking();
    const { told } = watch(`${configMaps}?watch=1&resourceVersion=1000`);
    server.create(actor, 'configmaps', { metadata: { name: 'far', namespace: 'two' } });
    server.create(actor, 'configmaps', { metadata: { name: 'near', namespace: 'one' } });
    await advance(soon);
    expect(told()).toEqual(['ADDED near']);
  });

  it('is sent bookmarks about every minute and shortly before its end, and ends in time', async () => {
    const { ask, watch, advance, scheduler } = asking();
    const { events, ends, told } = watch(`${configMaps}?watch=1&resourceVersion=1000&allowWatchBookmarks=true&timeoutSeconds=100`);
    await advance(61_000);
    expect(told()).toEqual(['BOOKMARK']);
    ask('POST', configMaps, configMap('a'));
    await advance(37_500);
    expect(told()).toEqual(['BOOKMARK', 'ADDED a', 'BOOKMARK']);
    expect(events[2]?.object).toEqual({ kind: 'ConfigMap', apiVersion: 'v1', metadata: { resourceVersion: '1001' } });
    expect(ends).toEqual([]);
    await advance(2000);
    expect([ends.length, scheduler.pendingCount()]).toEqual([1, 0]);
  });

  it('of the future waits for it', async () => {
    const { ask, watch, advance } = asking();
    const { told } = watch(`${configMaps}?watch=1&resourceVersion=1002`);
    for (const name of ['a', 'b', 'c']) ask('POST', configMaps, configMap(name));
    await advance(soon);
    expect(told()).toEqual(['ADDED c']);
  });

  it('of a past that is compacted away says so and ends', async () => {
    const { server, ask, watch, advance } = asking();
    for (const name of ['a', 'b']) ask('POST', configMaps, configMap(name));
    const before = watch(`${configMaps}?watch=1&resourceVersion=1000`);
    await advance(soon);
    server.restartFrontEnd(0, { isCompacted: true });
    expect(before.ends).toEqual(['the API server restarted']);
    const { events, ends } = watch(`${configMaps}?watch=1&resourceVersion=1001`);
    const current = watch(`${configMaps}?watch=1&resourceVersion=1002`);
    await advance(soon);
    expect(events).toMatchObject([
      { type: 'ERROR', object: { code: 410, reason: 'Expired', message: 'too old resource version: 1001 (1002)' } },
    ]);
    expect([ends.length, current.ends.length]).toEqual([1, 0]);
  });

  it('is closed without a word by who opened it', async () => {
    const { ask, watch, advance, scheduler } = asking();
    const following = watch(`${configMaps}?watch=1&resourceVersion=1000&allowWatchBookmarks=true`);
    await advance(soon);
    following.close();
    ask('POST', configMaps, configMap('a'));
    await advance(120_000);
    expect([following.events, following.ends, scheduler.pendingCount()]).toEqual([[], [], 0]);
  });

  it('refuses what makes no sense', () => {
    const { watch } = asking();
    const queries = ['resourceVersion=abc', 'timeoutSeconds=abc', 'labelSelector=a%3D%3D%3D'];
    expect(queries.map((query) => watch(`${configMaps}?watch=1&${query}`).refusal?.status)).toEqual([500, 400, 400]);
  });
});

describe('front ends', () => {
  it('show their watches the same, each a little after the storage', async () => {
    const { ask, watch, scheduler } = asking({ frontEnds: 2 });
    const both = [watch(`${configMaps}?watch=1&resourceVersion=1000`, 0), watch(`${configMaps}?watch=1&resourceVersion=1000`, 1)];
    for (let index = 0; index < 20; index += 1) ask('POST', configMaps, configMap(`m-${index}`));
    await scheduler.runUntil(4);
    expect(both.map(({ events }) => events.length)).toEqual([0, 0]);
    await scheduler.runUntil(50);
    expect(both.map(({ events }) => events.map(({ object }) => Number(object.metadata.resourceVersion)))).toEqual([
      Array.from({ length: 20 }, (_, index) => 1001 + index),
      Array.from({ length: 20 }, (_, index) => 1001 + index),
    ]);
  });

  it('that lag show the past to watches and lists of any version, and the truth to all other reads', async () => {
    const { server, ask, merge, watch, advance } = asking({ frontEnds: 2 });
    ask('POST', configMaps, configMap('a'));
    await advance(soon);
    const { told } = watch(`${configMaps}?watch=1&resourceVersion=1001`);
    server.lagFrontEnd(0, 5000);
    merge(`${configMaps}/a`, { data: { key: '2' } });
    await advance(soon);
    const value = (path: string, frontEnd = 0) => {
      const { body } = ask('GET', path, undefined, { frontEnd });
      return body.items === undefined ? body['data'] : body.items[0]?.['data'];
    };
    expect(value(`${configMaps}?resourceVersion=0`)).toEqual({ key: '1' });
    expect(value(`${configMaps}?resourceVersion=0`, 1)).toEqual({ key: '2' });
    expect(value(configMaps)).toEqual({ key: '2' });
    expect(value(`${configMaps}/a`)).toEqual({ key: '2' });
    expect(told()).toEqual([]);
    const late = watch(`${configMaps}?watch=1&resourceVersion=0&allowWatchBookmarks=true`);
    await advance(soon);
    expect(late.events.map(({ object }) => object.metadata.resourceVersion)).toEqual(['1001', '1001']);
    await advance(5000);
    expect([told(), late.told()]).toEqual([['MODIFIED a'], ['ADDED a', 'BOOKMARK', 'MODIFIED a']]);
    server.lagFrontEnd(0, 3_600_000);
    merge(`${configMaps}/a`, { data: { key: '3' } });
    await advance(soon);
    server.endLag();
    await advance(soon);
    expect(told()).toEqual(['MODIFIED a', 'MODIFIED a']);
  });

  it('that go back show the past again, then all later events, and repeat no event', async () => {
    const { server, ask, merge, watch, advance } = asking();
    ask('POST', configMaps, configMap('a'));
    const before = watch(`${configMaps}?watch=1&resourceVersion=1001`);
    merge(`${configMaps}/a`, { data: { key: '2' } });
    merge(`${configMaps}/a`, { data: { key: '3' } });
    await advance(soon);
    server.goBackFrontEnd(0, 1002, 6000);
    const { items = [] } = ask('GET', `${configMaps}?resourceVersion=0`).body;
    expect(items.map((item) => item['data'])).toEqual([{ key: '2' }]);
    expect(ask('GET', `${configMaps}/a`).body['data']).toEqual({ key: '3' });
    const late = watch(`${configMaps}?watch=1&resourceVersion=1002`);
    await advance(1000);
    merge(`${configMaps}/a`, { data: { key: '4' } });
    await advance(1000);
    expect([before.told(), late.told()]).toEqual([['MODIFIED a', 'MODIFIED a'], []]);
    await advance(6000);
    expect([before.told(), late.told()]).toEqual([
      ['MODIFIED a', 'MODIFIED a', 'MODIFIED a'],
      ['MODIFIED a', 'MODIFIED a'],
    ]);
  });

  it('forget what is long past, but for the newest hundred events of a resource', async () => {
    const { ask, merge, watch, advance } = asking();
    ask('POST', configMaps, configMap('a'));
    for (let count = 0; count < 150; count += 1) merge(`${configMaps}/a`, { data: { count: String(count) } });
    await advance(400_000);
    merge(`${configMaps}/a`, { data: { count: 'last' } });
    await advance(400_000);
    merge(`${configMaps}/a`, { data: { count: 'very last' } });
    await advance(soon);
    const old = watch(`${configMaps}?watch=1&resourceVersion=1010`);
    const recent = watch(`${configMaps}?watch=1&resourceVersion=1100`);
    await advance(soon);
    expect([old.told().length, old.events[0]?.type, recent.told().length]).toEqual([1, 'ERROR', 53]);
  });
});

describe('chance', () => {
  it('is the same for the same seed, and another one for another', async () => {
    const run = async (seed: number) => {
      const { server, watch, advance, scheduler } = asking({ seed });
      const times: number[] = [];
      const { close, events } = watch('/api/v1/pods?watch=1&resourceVersion=1000');
      for (let index = 0; index < 5; index += 1) {
        server.create(actor, 'pods', pod(`p-${index}`));
        while (events.length <= index) await advance(1);
        times.push(scheduler.nowMs());
      }
      close();
      return JSON.stringify([times, server.list('pods')]);
    };
    expect(await run(1)).toBe(await run(1));
    expect(await run(1)).not.toBe(await run(2));
  });
});
