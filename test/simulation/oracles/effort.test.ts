import { describe, expect, it } from 'vitest';
import { History } from './history.ts';

/** So many requests, evenly over the time. */
function ask(history: History, count: number, withinMs: number, process = 'a1'): void {
  for (let index = 0; index < count; index += 1) history.advance(withinMs / count).send(process);
}

describe('L13', () => {
  // Three zones of three pods.
  const requests = 890;
  const turns = 395;

  it('finds reads without a pause', () => {
    const history = new History();
    ask(history, requests, 50_000);
    expect(history.found('L13')).toEqual([]);
    ask(history, 100, 5_000);
    expect(history.found('L13')).toEqual([expect.stringMatching(/^a1 has made 891 requests within \d+ ms$/)]);
  });

  it('finds a watch that asks again before the pause that the API server asked for', () => {
    const history = new History();
    history.denied('watch.pods.watch', 10);
    history.advance(9_000).send('b1', 'watch.pods.list');
    expect(history.found('L13')).toEqual([]);
    history.send('a1', 'watch.pods.list');
    history.advance(1_000).send('a1', 'watch.pods.list');
    expect(history.found('L13')).toEqual(['a1 sends watch.pods.list 1000 ms before the pause that the API server asked for ends']);
  });

  it('starts again with each minute, and with each process', () => {
    const history = new History();
    for (let minute = 0; minute < 5; minute += 1) ask(history, requests, 61_000);
    for (const process of ['b1', 'a2', 'c1']) ask(history, requests, 1_000, process);
    expect(history.found('L13')).toEqual([]);
  });

  it('finds turns without a pause, although each of them asks for nothing', () => {
    const history = new History();
    for (let count = 0; count < turns; count += 1) history.advance(100).turn({});
    expect(history.found('L13')).toEqual([]);
    for (let count = 0; count < 50; count += 1) history.advance(100).turn({});
    expect(history.found('L13')).toEqual([expect.stringMatching(/^a1 has made 396 turns within \d+ ms$/)]);
  });

  it('finds them also when the pods become fewer while it counts, and says so once', () => {
    const history = new History();
    for (let count = 0; count < turns; count += 1) history.advance(100).turn({});
    for (const pod of ['ing-a-0', 'ing-b-0', 'ing-c-0']) history.remove('pods', pod);
    for (let count = 0; count < 50; count += 1) history.advance(100).turn({});
    expect(history.found('L13')).toEqual([expect.stringMatching(/^a1 has made 396 turns within \d+ ms$/)]);
  });

  it('gives more in a minute in which pods were deleted, and in no other', () => {
    const history = new History();
    const replaced = 50;
    for (let count = 0; count < replaced; count += 1) history.replace('ing-a-0');
    for (let count = 0; count < turns; count += 1) history.turn({});
    for (let count = 0; count < replaced; count += 1) history.replace('ing-a-0');
    for (let count = 0; count < 5 * replaced; count += 1) history.turn({});
    expect(history.found('L13')).toEqual([]);
    history.turn({});
    expect(history.found('L13')).toEqual(['a1 has made 646 turns within 0 ms']);
    history.advance(61_000);
    for (let count = 0; count <= turns; count += 1) history.turn({});
    expect(history.found('L13').slice(1)).toEqual(['a1 has made 396 turns within 0 ms']);
  });

  it('gives a large group more', () => {
    const history = new History({ podsPerZone: 20 });
    ask(history, requests + 500, 50_000);
    expect(history.found('L13')).toEqual([]);
  });
});
