import { describe, expect, it } from 'vitest';
import { Contact } from '../../cluster/watch/reflector.ts';
import { virtualEnv } from '../kit/virtual-env.ts';
import { follow } from './following.ts';

describe('events of a watch are certain', () => {
  it('not before it has told everything once', async () => {
    const env = virtualEnv();
    const contact = new Contact(env.clock);
    contact.heard();
    contact.told();
    expect([contact.silentMs(), contact.ageMs()]).toEqual([0, Number.POSITIVE_INFINITY]);
    await env.advance(3000);
    contact.toldAll(env.clock.monotonicMs() - 2000);
    expect([contact.silentMs(), contact.ageMs()]).toEqual([3000, 2000]);
  });

  it('as of the word before the latest one, which may tell of the silence between them', async () => {
    const env = virtualEnv();
    const contact = new Contact(env.clock);
    contact.toldAll(env.clock.monotonicMs());
    await env.advance(40_000);
    contact.told();
    expect(contact.ageMs()).toBe(40_000);
    await env.advance(999);
    contact.told();
    // Lines so near to one another are one word.
    expect(contact.ageMs()).toBe(40_999);
    await env.advance(2000);
    contact.told();
    expect(contact.ageMs()).toBe(2000);
  });

  it('no later for signs of life that tell nothing', async () => {
    const { env, api, put, reflector } = follow({ before: ['a'] });
    await env.settle();
    await env.advance(20_000);
    // The same version as before: nobody knows whether the server has come further.
    api.sendBookmarks();
    await env.advance(2000);
    api.sendBookmarks();
    expect([reflector.silentMs(), reflector.ageMs()]).toEqual([0, 22_000]);
    api.cutWatches();
    await env.advance(3000);
    expect(reflector.ageMs()).toBe(25_000);
    put('a', '2');
    await env.advance(2000);
    put('a', '3');
    await env.settle();
    expect(reflector.ageMs()).toBe(2000);
  });
});
