// What other endpoints of the process are told before they act: the verdict of native enforcement, without a reservation.
import { describe, expect, it } from 'vitest';
import { evictionCache } from '../../../webhook/compat/eviction/eviction-cache.ts';
import { podEviction } from '../../../webhook/compat/eviction/pod-eviction.ts';
import { prepareDownscale } from '../../../webhook/compat/prepare/downscale.ts';
import type { ZoneBudgets } from '../../../webhook/compat/zpdb.ts';
import type { Answer, Call, Endpoint, Review } from '../../../webhook/review/review.ts';
import { deletionOf, type EnforceWorld, enforceWorld, evictionOf, scaleOf, type WebhookProcess } from './enforce-world.ts';

const spec = { protect: { noDownscale: true }, disruption: { maxUnavailable: 1 } };
const agent = { name: 'system:serviceaccount:rollout-group:rollout-group-agent', groups: [] };
const own = { namespace: 'rollout-group', names: ['rollout-group-agent'] };

function callOf({ env }: EnforceWorld): Call {
  return { deadlineMs: env.clock.monotonicMs() + 9_000, signal: new AbortController().signal };
}

function optIn({ api }: EnforceWorld): void {
  api.put('namespaces', { metadata: { name: 'mimir', labels: { 'rollout-group.dev/enforce': 'true' } } });
}

function preview(world: EnforceWorld, { endpoint }: WebhookProcess, review: Review): Promise<Answer | undefined> {
  return world.env.finish(endpoint.preview(review, callOf(world)));
}

describe('a preview', () => {
  it('is the answer of the endpoint in an opted-in namespace', async () => {
    const world = enforceWorld({ spec });
    optIn(world);
    const process = await world.start({ own });
    const review = scaleOf(world.set('a'), 2);
    const refused = await preview(world, process, review);
    expect(refused).toMatchObject({ allowed: false, code: 403, message: expect.stringContaining('denied by no-downscale') });
    expect(await world.env.finish(process.ask(review))).toEqual(refused);
    await world.env.settle();
    // People find the decision though nobody has asked the endpoint.
    expect(world.api.list('events.events.k8s.io')).toHaveLength(1);
  });

  it('stores no claim for an allowed request, and no removal from a group', async () => {
    const world = enforceWorld({ spec: { disruption: { maxUnavailable: 1 } } });
    optIn(world);
    const process = await world.start({ own });
    for (const review of [
      scaleOf(world.set('a'), 2),
      evictionOf(world.pod('b', 1)),
      deletionOf(world.pod('c', 1)),
      deletionOf(world.set('a')),
    ]) {
      expect(await preview(world, process, review)).toBeUndefined();
    }
    expect(world.ledger().claims).toEqual([]);
    expect(process.writes).toEqual([]);
    expect(await world.env.finish(process.ask(evictionOf(world.pod('b', 1))))).toMatchObject({ allowed: true });
    // Whoever has it announced already is the one who asks.
    expect(await preview(world, process, evictionOf(world.pod('b', 1)))).toBeUndefined();
    expect(await preview(world, process, evictionOf(world.pod('a', 1)))).toMatchObject({ code: 429 });
  });

  it('allows every request if enforcement is off or unknown', async () => {
    const world = enforceWorld({ spec });
    const process = await world.start({ own });
    expect(await preview(world, process, scaleOf(world.set('a'), 2))).toBeUndefined();
    optIn(world);
    world.api.forbid('get namespaces');
    expect(await preview(world, process, scaleOf(world.set('a'), 2))).toBeUndefined();
  });

  it('is skipped for the agent, whose requests are not sent to the endpoint', async () => {
    const world = enforceWorld({ spec });
    optIn(world);
    const process = await world.start({ own });
    expect(await preview(world, process, scaleOf(world.set('a'), 2, { user: agent }))).toBeUndefined();
  });

  it('denies without a verdict as the endpoint does', async () => {
    const world = enforceWorld({ spec: { disruption: { maxUnavailable: 1 } } });
    optIn(world);
    const process = await world.start({ own });
    world.api.forbid('get configmaps');
    expect(await preview(world, process, scaleOf(world.set('a'), 2))).toMatchObject({ allowed: false, code: 429 });
  });
});

const marked = {
  labels: { 'grafana.com/prepare-downscale': 'true' },
  annotations: { 'grafana.com/prepare-downscale-http-path': '/prepare', 'grafana.com/prepare-downscale-http-port': '80' },
};
const noScaleDown = {
  metadata: { name: 'safety', namespace: 'mimir' },
  spec: { targets: { groups: ['ingester'] }, rules: [{ name: 'not-now', actions: ['scaleDown', 'evict'], effect: 'deny' }] },
};

/** One pod at a time, of every StatefulSet there is. */
const budgets: ZoneBudgets = {
  inForce: () => ({ usable: [{ namespace: 'mimir', name: 'all', matchLabels: {}, maxUnavailable: 1, crossZoneDelayMs: 0 }], unusable: [] }),
  isSettled: () => true,
  stop: () => undefined,
};

function handle(world: EnforceWorld, endpoint: Endpoint, review: Review): Promise<Answer> {
  return world.env.finish(endpoint.handle(review, callOf(world)));
}

describe('both forms in one process', () => {
  const prepared = async (isOptedIn: boolean, hasPolicy = true) => {
    const world = enforceWorld({ kind: 'adopted', sets: marked });
    if (isOptedIn) optIn(world);
    if (hasPolicy) world.api.put('rolloutpolicies.rollout-group.dev', noScaleDown);
    const process = await world.start({ own, isPreparedElsewhere: true });
    const endpoint = prepareDownscale(process.env, { clusterDomain: 'cluster.local.', native: process.endpoint.preview });
    return { world, process, endpoint };
  };

  it('a downscale that native enforcement denies prepares no pod and records no time', async () => {
    const { world, process, endpoint } = await prepared(true);
    const answer = await handle(world, endpoint, scaleOf(world.set('a'), 2));
    expect(answer).toMatchObject({ allowed: false, code: 403, message: expect.stringContaining('denied by safety/not-now') });
    expect(process.podCalls).toEqual([]);
    expect(process.writes).toEqual([expect.stringMatching(/^POST .*events$/)]);
    expect(world.set('a').metadata['annotations']).toEqual(marked.annotations);
  });

  it('without native enforcement the decision is that of the original', async () => {
    const { world, process, endpoint } = await prepared(false);
    expect(await handle(world, endpoint, scaleOf(world.set('a'), 2))).toMatchObject({ allowed: true });
    expect(process.podCalls).toHaveLength(1);
    expect(world.set('a').metadata['annotations']).toHaveProperty(['grafana.com/last-downscale']);
  });

  it('a request that both allow is prepared once, and claimed by the last endpoint', async () => {
    const { world, process, endpoint } = await prepared(true, false);
    const review = scaleOf(world.set('a'), 2);
    expect(await handle(world, endpoint, review)).toMatchObject({ allowed: true });
    expect(process.podCalls).toHaveLength(1);
    expect(world.ledger().claims).toEqual([]);
    expect(await world.env.finish(process.ask(review))).toMatchObject({ allowed: true });
    expect(world.ledger().claims).toMatchObject([{ verb: 'scaleDown', zone: 'a' }]);
  });

  it.each([true, false])(
    'an eviction that native enforcement denies is not claimed, also after repetition: enforced %s',
    async (isOptedIn) => {
      const world = enforceWorld({ kind: 'adopted' });
      if (isOptedIn) optIn(world);
      world.api.put('rolloutpolicies.rollout-group.dev', noScaleDown);
      const process = await world.start({ own });
      const cache = evictionCache(process.env, { guard: process.admission.guard, isAlone: () => false });
      const endpoint = podEviction(process.env, { budgets, cache, native: process.endpoint.preview });
      for (let attempt = 0; attempt < 3; attempt += 1) {
        const answer = await handle(world, endpoint, evictionOf(world.pod('a', 1)));
        if (isOptedIn) expect(answer).toMatchObject({ allowed: false, code: 403, message: expect.stringContaining('safety/not-now') });
        else expect(answer).toMatchObject({ allowed: true, code: 200 });
        await world.env.advance(5_000);
      }
      expect(world.ledger().claims).toHaveLength(isOptedIn ? 0 : 1);
    },
  );
});
