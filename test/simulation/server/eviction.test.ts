// Evictions and scales on the model of the API server.
import { describe, expect, it } from 'vitest';
import { type Asking, actor, asking, paths, pod, refusalOf, statefulSet } from './asking.ts';

const { pods, budgets, sets, groups } = paths;

function evict(
  { ask }: Asking,
  name: string,
  { deleteOptions, query = '' }: { readonly deleteOptions?: unknown; readonly query?: string } = {},
) {
  const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: 'one' }, deleteOptions };
  return ask('POST', `${pods}/${name}/eviction${query}`, body);
}

function readyPod({ ask, merge }: Asking, name: string, isReady = true) {
  ask('POST', pods, pod(name));
  return merge(`${pods}/${name}/status`, {
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }] },
  });
}

function budget({ ask, merge }: Asking, status: object, name = 'b') {
  ask('POST', budgets, { metadata: { name }, spec: { maxUnavailable: 1, selector: { matchLabels: { app: 'x' } } } });
  return merge(`${budgets}/${name}/status`, { status: { observedGeneration: 1, expectedPods: 3, ...status } });
}

const allowing = { disruptionsAllowed: 1, currentHealthy: 3, desiredHealthy: 2 };
const why = (reply: ReturnType<typeof evict>) => [reply.status, reply.body.details?.causes?.[0]?.['message'] ?? reply.body.message];

describe('an eviction', () => {
  it('spends the budget, says so in the pod and deletes it gracefully', () => {
    const world = asking();
    readyPod(world, 'p-0');
    budget(world, allowing);
    expect(evict(world, 'p-0')).toMatchObject({ status: 201, body: { status: 'Success', code: 201 } });
    const { status } = world.ask('GET', `${budgets}/b`).body;
    expect(status).toMatchObject({ disruptionsAllowed: 0, disruptedPods: { 'p-0': '2026-01-15T12:00:00Z' } });
    const evicted = world.ask('GET', `${pods}/p-0`).body;
    expect(evicted.metadata['deletionGracePeriodSeconds']).toBe(30);
    expect((evicted.status as { readonly conditions: unknown }).conditions).toMatchObject([
      { type: 'Ready' },
      { type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI' },
    ]);
  });

  it('is refused while the budget allows none, or has not been looked at', () => {
    const world = asking();
    readyPod(world, 'p-0');
    budget(world, { disruptionsAllowed: 0, currentHealthy: 2, desiredHealthy: 2 });
    expect(refusalOf(evict(world, 'p-0'))).toEqual([
      429,
      'TooManyRequests',
      "Cannot evict pod as it would violate the pod's disruption budget.",
    ]);
    expect(why(evict(world, 'p-0'))).toEqual([429, 'The disruption budget b needs 2 healthy pods and has 2 currently']);
    world.merge(`${budgets}/b`, { spec: { maxUnavailable: 2 } });
    const early = evict(world, 'p-0');
    expect(why(early)).toEqual([429, 'The disruption budget b is still being processed by the server.']);
    expect(early.headers['retry-after']).toBe('10');
  });

  it('needs no budget for a pod that is not ready to serve', () => {
    const world = asking();
    world.ask('POST', pods, pod('pending'));
    readyPod(world, 'going');
    world.ask('DELETE', `${pods}/going`);
    readyPod(world, 'unready', false);
    budget(world, { disruptionsAllowed: 0, currentHealthy: 2, desiredHealthy: 2 });
    expect(['pending', 'going', 'unready'].map((name) => evict(world, name).status)).toEqual([201, 201, 201]);
    expect(world.ask('GET', `${budgets}/b`).body.metadata.resourceVersion).toBe(
      String(world.commits.find(({ resource, type }) => resource.startsWith('podd') && type === 'MODIFIED')?.revision),
    );
  });

  it('of an unready pod waits while too few others are healthy', () => {
    const world = asking();
    readyPod(world, 'unready', false);
    budget(world, { disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 2 });
    expect(evict(world, 'unready').status).toBe(429);
    world.merge(`${budgets}/b`, { spec: { unhealthyPodEvictionPolicy: 'AlwaysAllow' } });
    expect(evict(world, 'unready').status).toBe(201);
  });

  it('has spent the budget when a precondition fails, and not in a dry run', () => {
    const world = asking();
    readyPod(world, 'p-0');
    budget(world, allowing);
    expect(evict(world, 'p-0', { query: '?dryRun=All' }).status).toBe(201);
    expect(world.ask('GET', `${budgets}/b`).body.status).toMatchObject({ disruptionsAllowed: 1 });
    expect(refusalOf(evict(world, 'p-0', { deleteOptions: { preconditions: { uid: 'other' } } })).slice(0, 2)).toEqual([409, 'Conflict']);
    expect(world.ask('GET', `${budgets}/b`).body.status).toMatchObject({ disruptionsAllowed: 0 });
    expect(world.ask('GET', `${pods}/p-0`).body.metadata['deletionTimestamp']).toBeUndefined();
  });

  it('is impossible under two budgets, for another name, or without a pod', () => {
    const world = asking();
    readyPod(world, 'p-0');
    budget(world, allowing);
    budget(world, allowing, 'c');
    expect(why(evict(world, 'p-0'))).toEqual([
      500,
      'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.',
    ]);
    expect(evict(world, 'nobody').status).toBe(404);
    expect(world.ask('POST', `${pods}/p-0/eviction`, { metadata: { name: 'p-1' } }).status).toBe(400);
    expect(world.ask('GET', `${pods}/p-0/eviction`).status).toBe(405);
  });

  it('works in process as in a request', () => {
    const world = asking();
    readyPod(world, 'p-0');
    readyPod(world, 'p-1');
    budget(world, allowing);
    const { server } = world;
    expect(['p-0', 'p-1', 'p-2'].map((name) => server.evict(actor, 'one', name))).toEqual([201, 429, 404]);
  });
});

describe('scale', () => {
  it('shows and changes the replicas of a StatefulSet', () => {
    const { ask, merge } = asking();
    ask('POST', sets, statefulSet('s'));
    merge(`${sets}/s/status`, { status: { replicas: 1 } });
    const { body } = ask('GET', `${sets}/s/scale`);
    expect([body.kind, body['apiVersion'], body.spec, body.status]).toEqual([
      'Scale',
      'autoscaling/v1',
      { replicas: 2 },
      { replicas: 1, selector: 'app=x' },
    ]);
    expect(merge(`${sets}/s/scale`, { spec: { replicas: 5 } }).body.spec).toEqual({ replicas: 5 });
    const { metadata, spec } = ask('GET', `${sets}/s`).body;
    expect([metadata.generation, spec?.['replicas']]).toEqual([2, 5]);
    const whole = { apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name: 's', namespace: 'one' }, spec: { replicas: 6 } };
    expect(ask('PUT', `${sets}/s/scale`, whole).body.spec).toEqual({ replicas: 6 });
  });

  it('keeps preconditions', () => {
    const { ask, merge } = asking();
    ask('POST', sets, statefulSet('s'));
    expect(merge(`${sets}/s/scale`, { metadata: { resourceVersion: '1' }, spec: { replicas: 5 } }).status).toBe(409);
    expect(merge(`${sets}/s/scale`, { metadata: { uid: 'other' }, spec: { replicas: 5 } }).status).toBe(409);
    expect(merge(`${sets}/s/scale?dryRun=All`, { spec: { replicas: 5 } }).body.spec).toEqual({ replicas: 5 });
    expect(ask('GET', `${sets}/s`).body.spec?.['replicas']).toBe(2);
  });

  it('refuses less than nothing, and other verbs', () => {
    const { ask, merge } = asking();
    ask('POST', sets, statefulSet('s'));
    expect(merge(`${sets}/s/scale`, { spec: { replicas: -1 } }).body.message).toBe(
      'Scale.autoscaling "s" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0',
    );
    expect([ask('DELETE', `${sets}/s/scale`).status, ask('GET', `${sets}/none/scale`).status]).toEqual([405, 404]);
  });

  it('of a custom kind is where its definition says', () => {
    const { ask, merge } = asking();
    ask('POST', groups, {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutGroup',
      metadata: { name: 'g' },
      spec: { paused: false },
    });
    expect(refusalOf(ask('GET', `${groups}/g/scale`)).slice(0, 2)).toEqual([500, 'InternalError']);
    expect(merge(`${groups}/g/scale`, { spec: { replicas: 4 } }).body).toMatchObject({ spec: { replicas: 4 }, status: { replicas: 0 } });
    expect(ask('GET', `${groups}/g`).body.spec).toEqual({ paused: false, replicas: { count: 4 } });
    expect(merge(`${groups}/g/scale`, { spec: { replicas: -4 } }).status).toBe(422);
  });
});
