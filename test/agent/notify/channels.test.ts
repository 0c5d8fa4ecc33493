import { describe, expect, it } from 'vitest';
import type { PolicySourceName } from '../../../agent/config.ts';
import type { AgentEnv, PolicyDirectory } from '../../../agent/env.ts';
import { ChannelQueue, type Step } from '../../../agent/notify/channel-queue.ts';
import { channelSource } from '../../../agent/notify/channels.ts';
import { channelOf, channelSecretKeys, isLoopback } from '../../../policies/integrations/channel.ts';
import { schemas } from '../../../policies/schema/kinds.ts';
import { ObjectsServer } from '../../kit/objects-server.ts';
import { virtualEnv } from '../../kit/virtual-env.ts';

function manifest(url: string, namespace?: string): string {
  const where = namespace === undefined ? '' : `, namespace: ${namespace}`;
  return `apiVersion: rollout-group.dev/v1alpha1
kind: NotificationChannel
metadata: { name: sre${where} }
spec: { callback: { url: "${url}" }, usableFrom: { namespaces: [mimir] } }
`;
}

function setup(text: string | undefined, policySources: readonly PolicySourceName[] = ['directory', 'objects', 'adopted']) {
  const virtual = virtualEnv();
  const server = new ObjectsServer(virtual, ['notificationchannels']);
  let current = text;
  let changed = (): void => undefined;
  const policyDirectory: PolicyDirectory = {
    read: async () => (current === undefined ? [] : [{ name: 'channels.yaml', text: current }]),
    watch: (onChange) => {
      changed = onChange;
      return () => undefined;
    },
  };
  const nothing = (): void => undefined;
  const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
  const env: AgentEnv = { ...virtual, log, pods: { call: () => Promise.reject(new Error('no pods')) }, policyDirectory };
  const channels = channelSource(env, { agentNamespace: 'rollout-group', policySources }, 5000);
  const put = (url: string): void =>
    void server.put('notificationchannels.rollout-group.dev', {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'NotificationChannel',
      metadata: { name: 'sre', namespace: 'rollout-group' },
      spec: { callback: { url }, usableFrom: { namespaces: ['mimir'] } },
    });
  const find = async (namespace = 'mimir'): Promise<string> => {
    const found = await channels.find('sre', namespace);
    return 'problem' in found ? found.problem : found.url;
  };
  const change = (next: string): void => {
    current = next;
    changed();
  };
  return { put, find, change, env: virtual };
}

describe('a channel is found', () => {
  it('in the policy directory before it is among objects', async () => {
    const { put, find, env } = setup(manifest('https://file'));
    put('https://object');
    expect(await find()).toBe('https://file');
    expect(env.requests).toEqual([]);
  });

  it('as an object, and again after half a minute', async () => {
    const { put, find, env } = setup(undefined);
    put('https://object');
    expect(await find()).toBe('https://object');
    put('https://changed');
    expect(await find()).toBe('https://object');
    await env.advance(30_000);
    expect(await find()).toBe('https://changed');
  });

  it('again after a change of the files', async () => {
    const { find, change } = setup(manifest('https://file'));
    await find();
    change(manifest('https://changed', 'rollout-group'));
    expect(await find()).toBe('https://changed');
  });

  it.each<[string, ReturnType<typeof setup>, string]>([
    ['in a file of another namespace', setup(manifest('https://file', 'mimir')), 'there is no NotificationChannel rollout-group/sre'],
    ['where objects do not count', setup(undefined, ['directory']), 'is not defined in the policy directory'],
    ['where files do not count', setup(manifest('https://file'), ['objects']), 'there is no NotificationChannel rollout-group/sre'],
    ['without https elsewhere', setup(manifest('http://hooks.example.com')), 'has an http address'],
  ])('not %s', async (_where, { find }, problem) => {
    expect(await find()).toContain(problem);
  });

  it('only for the namespaces in its policy', async () => {
    const { find } = setup(manifest('https://file'));
    expect(await find('loki')).toBe('the channel sre is not available to namespace loki');
  });
});

describe('an address', () => {
  it.each([
    ['http://127.0.0.1:8080/x', true],
    ['http://localhost', true],
    ['http://LOCALHOST:1', true],
    ['http://[::1]:80/', true],
    ['http://127.0.0.1.example.com/', false],
    ['http://localhost.example.com', false],
    ['http://10.0.0.1', false],
    ['http://[fe80::1]', false],
    ['http://example.com/127.0.0.1', false],
  ])('%s is local: %s', (url, expected) => {
    expect(isLoopback(url)).toBe(expected);
  });

  it.each([
    'https://user:pass@example.com/',
    'https://user@example.com',
    'ftp://example.com',
    'https://exa mple.com',
    'https:///x',
    'https://a\\@b',
  ])('%s is rejected by the schema', (url) => {
    const document = {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'NotificationChannel',
      metadata: { name: 'sre', namespace: 'rollout-group' },
      spec: { callback: { url }, usableFrom: { namespaces: ['mimir'] } },
    };
    expect(schemas.NotificationChannel.safeParse(document).success).toBe(false);
  });
});

describe('the text of a channel', () => {
  const key = (name: string) => ({ name, key: 'k' });
  const document = (spec: object) =>
    schemas.NotificationChannel.parse({
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'NotificationChannel',
      metadata: { name: 'sre' },
      spec: { ...spec, usableFrom: { namespaces: ['mimir'] } },
    });

  it.each<[object, string, readonly string[]]>([
    [{ slack: { token: key('slack'), channel: 'C0123456789', ca: key('ca') } }, 'https://slack.com/api', ['slack', 'ca']],
    [{ callback: { url: 'https://x/hook?a=b', signingKey: key('hook') } }, 'https://x/hook?a=b', ['hook']],
    [{ github: { url: 'https://ghe/api/v3/', repository: 'a/b', token: key('git') } }, 'https://ghe/api/v3', ['git']],
    [{ gitlab: { project: 'a/b', token: key('git') } }, 'https://gitlab.com/api/v4', ['git']],
  ])('is where it goes and which Secrets it needs', (spec, url, secrets) => {
    const read = document(spec);
    expect(channelOf(read)?.url).toBe(url);
    expect(channelSecretKeys(read.spec).map(({ name }) => name)).toEqual(secrets);
  });
});

describe('the queue of a channel', () => {
  function queueOf(steps: Readonly<Record<string, Step[]>>, urgent: readonly string[] = []) {
    const env = virtualEnv();
    const taken: string[] = [];
    const queue = new ChannelQueue({
      env,
      paceMs: 1000,
      step: async (group) => {
        taken.push(`${group}@${env.clock.monotonicMs() - 1_000_000}`);
        return steps[group]?.shift() ?? { kind: 'idle' };
      },
      isUrgent: (group) => urgent.includes(group),
    });
    return { env, queue, taken };
  }

  const sent: Step = { kind: 'done', isSent: true };

  it('limits its rate, and serves each group in turn', async () => {
    const { env, queue, taken } = queueOf({ a: [sent, sent], b: [sent] });
    queue.queueGroup('a');
    queue.queueGroup('b');
    await env.advance(10_000);
    expect(taken).toEqual(['a@0', 'b@1000', 'a@2000', 'b@3000', 'a@3000']);
    expect(env.timerCount()).toBe(0);
  });

  it('sends notifications before updates of the display', async () => {
    const { env, queue, taken } = queueOf({ a: [sent], b: [sent], c: [sent] }, ['c']);
    for (const group of ['a', 'b', 'c']) queue.queueGroup(group);
    await env.advance(10_000);
    // The first began before the others were there.
    expect(taken.slice(0, 2).map((one) => one[0])).toEqual(['a', 'c']);
  });

  it('pauses all messages if the channel fails, for longer each time and for the requested time', async () => {
    const later: Step = { kind: 'later', who: 'channel' };
    const { env, queue, taken } = queueOf({ a: [later, later, later, { kind: 'later', who: 'channel', afterMs: 60_000 }, sent] });
    queue.queueGroup('a');
    await env.advance(300_000);
    const times = taken.map((one) => Number(one.slice(2)));
    const pauses = times.slice(1).map((time, index) => time - (times[index] ?? 0));
    expect(pauses[1]).toBeGreaterThan(pauses[0] ?? 0);
    expect(pauses[2]).toBeGreaterThan(pauses[1] ?? 0);
    expect(pauses[3]).toBe(60_000);
  });

  it('delays one group without the others', async () => {
    const { env, queue, taken } = queueOf({ a: [{ kind: 'later', who: 'group', afterMs: 50_000 }], b: [sent] }, ['a']);
    queue.queueGroup('a');
    queue.queueGroup('b');
    await env.advance(40_000);
    expect(taken.map((one) => one[0])).toEqual(['a', 'b', 'b']);
  });
});
