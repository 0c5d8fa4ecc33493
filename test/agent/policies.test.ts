import { expect, it } from 'vitest';
import { PolicySource } from '../../agent/policies/policies.ts';
import { cachedStatefulSet, concernsPolicies } from '../../agent/watched/caches.ts';
import { virtualEnv } from '../kit/virtual-env.ts';

it('policies that take long to resolve leave most of the time to other work', async () => {
  const env = virtualEnv();
  let workMs = 0;
  let count = 0;
  const clock = { nowMs: env.clock.nowMs, monotonicMs: () => env.clock.monotonicMs() + workMs };
  const silent = () => undefined;
  const source = new PolicySource({
    env: {
      ...env,
      clock,
      pods: { call: () => Promise.reject(new Error('no pod listens')) },
      log: { debug: silent, info: silent, warn: silent, error: silent },
    },
    config: { policySources: ['objects'], agentNamespace: 'mimir', namespaces: undefined },
    caches: {
      isSettled: () => true,
      manifests: () => [],
      policyObjects: () => {
        workMs += 500;
        // Something else each time, or nothing would be worked out.
        return { objects: [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `object-${workMs}` } }], unread: [] };
      },
    },
    onChange: () => (count += 1),
    onState: silent,
  });
  source.refresh();
  await env.settle();
  expect(count).toBe(1);
  for (let change = 0; change < 100; change += 1) {
    source.refresh();
    await env.advance(100);
  }
  // 500 ms of work in each 5 s.
  expect(count).toBe(3);
  await env.advance(10_000);
  expect(count).toBe(4);
  source.refresh();
  await env.advance(10_000);
  source.stop();
  source.refresh();
  await env.advance(10_000);
  expect(count).toBe(5);
  expect(env.timerCount()).toBe(0);
});

it('policies that cannot be resolved keep their previous state, and a listener hears of it', async () => {
  const env = virtualEnv();
  let isBroken = false;
  let states = 0;
  const silent = () => undefined;
  const source = new PolicySource({
    env: {
      ...env,
      pods: { call: () => Promise.reject(new Error('no pod listens')) },
      log: { debug: silent, info: silent, warn: silent, error: silent },
    },
    config: { policySources: ['objects'], agentNamespace: 'mimir', namespaces: undefined },
    caches: {
      isSettled: () => true,
      manifests: () => [],
      policyObjects: () => {
        if (isBroken) throw new Error('a defect');
        return { objects: [], unread: [] };
      },
    },
    onChange: silent,
    onState: () => (states += 1),
  });
  source.refresh();
  await env.settle();
  const before = source.current();
  isBroken = true;
  source.refresh();
  await env.advance(1000);
  expect(source.current()).toBe(before);
  expect(source.degradation()).toMatchObject({ id: 'policies', message: expect.stringContaining('a defect') });
  expect(states).toBe(1);
  isBroken = false;
  source.refresh();
  await env.advance(1000);
  expect([source.degradation(), states]).toEqual([undefined, 2]);
  source.stop();
});

it('policies are resolved again only if their sources change', async () => {
  const env = virtualEnv();
  const silent = () => undefined;
  let objects: readonly { readonly apiVersion: string; readonly kind: string; readonly metadata: { readonly name: string } }[] = [];
  const told: unknown[] = [];
  const source = new PolicySource({
    env: {
      ...env,
      pods: { call: () => Promise.reject(new Error('no pod listens')) },
      log: { debug: silent, info: silent, warn: silent, error: silent },
    },
    config: { policySources: ['objects'], agentNamespace: 'mimir', namespaces: undefined },
    caches: { isSettled: () => true, manifests: () => [], policyObjects: () => ({ objects: [...objects], unread: [] }) },
    onChange: (now) => told.push(now),
    onState: silent,
  });
  for (let time = 0; time < 3; time += 1) {
    source.refresh();
    await env.advance(1000);
  }
  expect(told).toEqual([source.current()]);
  objects = [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'one-more' } }];
  source.refresh();
  await env.advance(1000);
  expect(told.length).toBe(2);
  // Whoever must know now does not wait for it, and nothing is worked out twice.
  objects = [...objects, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'and-another' } }];
  source.refresh();
  expect([source.upToDate(), told.length]).toEqual([source.current(), 3]);
  await env.advance(1000);
  expect(told.length).toBe(3);
  source.stop();
});

it('an intent names its requester only where a webhook records it', async () => {
  const env = virtualEnv();
  const silent = () => undefined;
  const requestedBy = { user: 'jane', groups: ['oncall'], at: '2026-01-15T11:00:00Z' };
  const intent = {
    apiVersion: 'rollout-group.dev/v1alpha1',
    kind: 'RolloutIntent',
    metadata: { name: 'go', namespace: 'mimir' },
    spec: { group: 'ingester', action: 'pause', reason: 'an incident', requestedBy },
  };
  const users: unknown[] = [];
  for (const stamped of [{}, { areIntentsStamped: true }]) {
    const source = new PolicySource({
      env: {
        ...env,
        pods: { call: () => Promise.reject(new Error('no pod listens')) },
        log: { debug: silent, info: silent, warn: silent, error: silent },
      },
      config: { policySources: ['objects'], agentNamespace: 'mimir', namespaces: undefined, ...stamped },
      caches: { isSettled: () => true, manifests: () => [], policyObjects: () => ({ objects: [intent], unread: [] }) },
      onChange: silent,
      onState: silent,
    });
    source.refresh();
    await env.settle();
    const intents = source.current()?.intents;
    users.push(Array.isArray(intents) ? intents.map((one) => one.requestedBy?.user) : intents);
    source.stop();
  }
  expect(users).toEqual([[undefined], ['jane']]);
});

it('a change of the partition does not resolve the policies again, another update strategy does', () => {
  const cached = (updateStrategy: object) =>
    cachedStatefulSet({
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { namespace: 'mimir', name: 'zone-a', uid: 'a', resourceVersion: '1' },
      spec: { replicas: 3, selector: { matchLabels: { name: 'zone-a' } }, updateStrategy },
    });
  const before = cached({ type: 'RollingUpdate', rollingUpdate: { partition: 3 } });
  const concerns = (updateStrategy: object): boolean => {
    const view = cached(updateStrategy);
    return concernsPolicies({ kind: 'statefulSet', change: { kind: 'modified', namespace: 'mimir', name: 'zone-a', view, before } });
  };
  expect(concerns({ type: 'RollingUpdate', rollingUpdate: { partition: 2 } })).toBe(false);
  expect(concerns({ type: 'OnDelete' })).toBe(true);
});
