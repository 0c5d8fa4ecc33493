import { describe, expect, it, vi } from 'vitest';
import { sleep } from '../../../cluster/env.ts';
import { ledgerKey, ledgerName } from '../../../engine/ledger/ledger-document.ts';
import type { Review } from '../../../webhook/review/review.ts';
import { deletionOf, type EnforceWorld, enforceWorld, evictionOf, scaleOf, updateOf, withLabels, withSpec } from './enforce-world.ts';

const disruptions: Readonly<Record<string, (world: EnforceWorld) => Review>> = {
  'a scale-down': ({ set }) => scaleOf(set('a'), 2),
  'an update that shrinks': ({ set }) => updateOf(set('a'), withSpec({ replicas: 2 })),
  'the deletion of a StatefulSet': ({ set }) => deletionOf(set('a')),
  'an eviction': ({ pod }) => evictionOf(pod('a', 0)),
};

/** What cannot be had, and how it comes to that before anything is asked. */
const faults: Readonly<Record<string, (world: EnforceWorld) => void>> = {
  'the ledger is forbidden': ({ api }) => api.forbid('get configmaps'),
  'the ledger cannot be written': ({ api }) => api.forbid('create configmaps'),
  'the ledger is not understood': ({ api }) =>
    void api.put('configmaps', {
      metadata: { name: ledgerName('ingester'), namespace: 'mimir' },
      data: { [ledgerKey]: '{"format":"7.0"}' },
    }),
  'the ledger is full': ({ api, env }) => {
    const atMs = env.clock.nowMs();
    const claims = Array.from({ length: 100 }, (_, to) => ({ verb: 'scaleDown', zone: 'former', uid: 'u', from: 200, to, atMs }));
    const ledger = { format: '1.0', namespace: 'mimir', group: 'ingester', claims, downscales: [], preparations: [] };
    void api.put('configmaps', {
      metadata: { name: ledgerName('ingester'), namespace: 'mimir' },
      data: { [ledgerKey]: JSON.stringify(ledger) },
    });
  },
};

describe('unknown facts deny requests about protected objects (S31)', () => {
  for (const [fault, break_] of Object.entries(faults)) {
    for (const [what, review] of Object.entries(disruptions)) {
      it(`${what} when ${fault}`, async () => {
        const world = enforceWorld({ spec: { disruption: { maxUnavailable: 1 } } });
        break_(world);
        const process = await world.start();
        const answer = await world.env.finish(process.ask(review(world)));
        expect(answer).toMatchObject({ allowed: false, code: 429 });
        expect(answer.message).not.toMatch(/\.ts|at Object|undefined/);
      });
    }
  }

  for (const [what, review] of Object.entries(disruptions)) {
    it(`${what} if the API server is gone, except objects without a policy`, async () => {
      const world = enforceWorld({ spec: { disruption: { maxUnavailable: 1 } } });
      world.workloads.create({ name: 'other' });
      const process = await world.start();
      await world.env.advance(1000);
      process.cutOff();
      const asked = review(world);
      const denied = await world.env.finish(process.ask(asked));
      expect(denied).toMatchObject({ allowed: false, code: 429, retryAfterSeconds: 5 });
      expect(denied.message).toMatch(/allows it: the API server did not answer when the agent read (Pod|StatefulSet) ingester-zone-a/);
      const free = JSON.parse(JSON.stringify(asked).replaceAll('ingester-zone-a', 'other')) as Review;
      expect(await world.env.finish(process.ask(free))).toMatchObject({ allowed: true });
      process.mend();
      expect(await world.env.finish(process.ask(asked))).toMatchObject({ allowed: true });
    });

    it(`${what} while the agent may not get the object, and name the command that shows the missing permission`, async () => {
      const world = enforceWorld({ spec: { disruption: { maxUnavailable: 1 } } });
      const process = await world.start();
      await world.env.advance(1000);
      world.api.forbid('get pods', 'get statefulsets.apps');
      const { message } = await world.env.finish(process.ask(review(world)));
      expect(message).toMatch(/the agent may not get (pods|statefulsets) in mimir\. Run: kubectl rollout-group doctor -n mimir$/);
    });

    it(`${what} while StatefulSets are unknown`, async () => {
      const world = enforceWorld({ kind: 'none' });
      world.api.forbid('list statefulsets.apps', 'watch statefulsets.apps');
      const process = await world.start();
      expect(await world.env.finish(process.ask(review(world)))).toMatchObject({ allowed: false, code: 429 });
    });

    it(`${what} of a member that is not a member in the caches yet`, async () => {
      const world = enforceWorld({ kind: 'none' });
      const process = await world.start();
      world.api.hold();
      world.api.put('statefulsets.apps', withLabels({ 'grafana.com/no-downscale': 'true' })(world.set('a')) as never);
      const answer = await world.env.finish(process.ask(review(world)));
      if (what === 'an eviction') expect(answer).toMatchObject({ allowed: true });
      else expect(answer).toMatchObject({ allowed: false, code: 429 });
      world.api.release();
      await world.env.advance(1000);
      if (what !== 'the deletion of a StatefulSet' && what !== 'an eviction') {
        expect(await world.env.finish(process.ask(review(world)))).toMatchObject({ allowed: false, code: 403 });
      }
    });
  }

  it('the deletion of a pod passes with any unknown fact', async () => {
    const world = enforceWorld({ spec: { disruption: { maxUnavailable: 1 } } });
    const process = await world.start();
    const review = deletionOf(world.pod('a', 0));
    process.cutOff();
    const answer = await world.env.finish(process.ask(review));
    expect(answer).toMatchObject({ allowed: true });
    expect(answer.warnings?.[0]).toContain('was not judged');
    expect(process.endpoint.onFailure(review, 'no answer in time').allowed).toBe(true);
  });

  it('the deletion of a pod passes with a warning while the watch of pods is broken', async () => {
    const world = enforceWorld({ spec: { disruption: { maxUnavailable: 1 } } });
    const process = await world.start();
    await world.env.advance(1000);
    world.api.forbid('list pods', 'watch pods');
    world.api.cutWatches();
    await world.env.advance(3000);
    const answer = await world.env.finish(process.ask(deletionOf(world.pod('a', 0))));
    expect(answer).toMatchObject({ allowed: true });
    expect(answer.warnings?.[0]).toContain('was not judged: the pods of ingester-zone-a could not be read');
    expect(answer.isUnjudged).toBe(true);
  });

  it('a member does not count as an object without a group while RolloutGroups cannot be listed', async () => {
    const world = enforceWorld({ spec: { disruption: { maxUnavailable: 1 } } });
    world.api.forbid('list rolloutgroups.rollout-group.dev');
    const process = await world.start();
    await world.env.advance(1000);
    const evicted = await world.env.finish(process.ask(evictionOf(world.pod('a', 0))));
    expect(evicted).toMatchObject({ allowed: false, code: 429 });
    expect(evicted.message).toContain('the group of StatefulSet ingester-zone-a could not be read');
    const deleted = await world.env.finish(process.ask(deletionOf(world.pod('a', 0))));
    expect(deleted).toMatchObject({ allowed: true, isUnjudged: true });
  });

  for (const right of ['list', 'get']) {
    it(`a member does not count as an object without a group if the agent also may not ${right} pods`, async () => {
      const world = enforceWorld({ spec: { disruption: { maxUnavailable: 1 } } });
      world.api.forbid('list rolloutgroups.rollout-group.dev', `${right} pods`);
      const process = await world.start();
      await world.env.advance(1000);
      expect(await world.env.finish(process.ask(evictionOf(world.pod('a', 0))))).toMatchObject({ allowed: false, code: 429 });
      const deleted = await world.env.finish(process.ask(deletionOf(world.pod('a', 0))));
      expect(deleted).toMatchObject({ allowed: true, isUnjudged: true });
    });
  }

  it('the deletion of a pod passes with a warning if the watch of StatefulSets breaks during the review', async () => {
    const world = enforceWorld({ spec: { disruption: { maxUnavailable: 1 } } });
    const process = await world.start();
    await world.env.advance(1000);
    const { guard } = process.admission;
    const snapshot = guard.snapshot.bind(guard);
    vi.spyOn(guard, 'snapshot').mockImplementation(async (namespace, groups, timeoutMs) => {
      // The group of the StatefulSet is known by now, and its ledger is read next.
      if (groups.length > 0) {
        world.api.forbid('list statefulsets.apps', 'watch statefulsets.apps');
        world.api.cutWatches();
        await sleep(world.env, 1500);
      }
      return await snapshot(namespace, groups, timeoutMs);
    });
    const answer = await world.env.finish(process.ask(deletionOf(world.pod('a', 0))));
    expect(answer).toMatchObject({ allowed: true });
    expect(answer.warnings?.[0]).toContain('was not judged: StatefulSet ingester-zone-a could not be read');
    expect(answer.auditAnnotations).toBeUndefined();
  });

  it('the deletion of a pod passes if no ledger is available', async () => {
    for (const verb of ['get', 'create']) {
      const world = enforceWorld({ spec: { disruption: { maxUnavailable: 1 } } });
      world.api.forbid(`${verb} configmaps`);
      const process = await world.start();
      const answer = await world.env.finish(process.ask(deletionOf(world.pod('a', 0))));
      expect(answer.allowed, verb).toBe(true);
      expect(answer.warnings?.[0]).toContain('was not judged');
    }
  });

  it('every request in a namespace during its deletion passes, although no claim can be stored there', async () => {
    const world = enforceWorld({ spec: { disruption: { maxUnavailable: 1 } } });
    world.endNamespace();
    world.api.forbid('create configmaps');
    const process = await world.start();
    for (const review of Object.values(disruptions)) {
      expect(await world.env.finish(process.ask(review(world)))).toEqual({ allowed: true });
    }
  });

  it('our workloads, and namespaces without an agent, pass if no request can be judged', async () => {
    const world = enforceWorld();
    const own = await world.start({ own: { namespace: 'mimir', names: ['ingester-zone-a'] } });
    expect(own.endpoint.onFailure(scaleOf(world.set('a'), 0), 'there is too much to do')).toEqual({ allowed: true });
    expect(own.endpoint.onFailure(scaleOf(world.set('b'), 0), 'there is too much to do')).toMatchObject({ allowed: false });
    const elsewhere = await world.start({ namespaces: ['loki'] });
    expect(elsewhere.endpoint.onFailure(scaleOf(world.set('b'), 0), 'there is too much to do')).toEqual({ allowed: true });
  });

  it('a scale-up passes with any unknown fact', async () => {
    const world = enforceWorld({ spec: { scaling: { down: { betweenZones: '1h' } } } });
    const process = await world.start();
    const grown = [scaleOf(world.set('a'), 4), updateOf(world.set('a'), withSpec({ replicas: 4 }))];
    const more = updateOf(world.set('a'), (object) =>
      withLabels({ 'rollout-group': 'x' })(withSpec({ replicas: 4, template: {} })(object)),
    );
    process.cutOff();
    for (const review of grown) expect(await world.env.finish(process.ask(review))).toMatchObject({ allowed: true });
    expect(await world.env.finish(process.ask(more))).toMatchObject({ allowed: false });
    process.mend();
    world.api.forbid('* configmaps');
    for (const review of grown) expect(await world.env.finish(process.ask(review))).toMatchObject({ allowed: true });
  });

  it('an update that removes a member from its group, if the removal cannot be recorded', async () => {
    const world = enforceWorld({ kind: 'adopted' });
    world.api.forbid('create configmaps');
    const process = await world.start();
    const answer = await world.env.finish(process.ask(updateOf(world.set('a'), withLabels({ 'rollout-group': undefined }))));
    expect(answer).toMatchObject({ allowed: false, code: 429 });
  });

  it('requests after their deadline, or in a form that no API server sends', async () => {
    const world = enforceWorld();
    const process = await world.start();
    expect(process.endpoint.onFailure(scaleOf(world.set('a'), 2), 'late')).toMatchObject({ allowed: false, code: 429 });
    expect(process.endpoint.onFailure(scaleOf(world.set('a'), 3), 'late')).toEqual({ allowed: true });
    const before = process.requests.length;
    const malformed = [
      scaleOf(world.set('a'), 2, { name: '' }),
      updateOf(world.set('a'), withSpec({ replicas: 'two' })),
      updateOf(world.set('a'), withSpec({ replicas: -1 })),
      scaleOf(world.set('a'), 2, { subresource: 'scales' }),
      { ...scaleOf(world.set('a'), 2), object: undefined } as unknown as Review,
      evictionOf(world.pod('a', 0), { name: '', object: {} }),
    ].map((review) => (review.name === '' ? { ...review, object: {}, oldObject: {} } : review));
    for (const review of malformed) expect(await world.env.finish(process.ask(review))).toMatchObject({ allowed: false, code: 403 });
    expect(process.requests.length).toBe(before);
  });

  it('a dry run writes nothing and notifies no client (S29)', async () => {
    const world = enforceWorld({ spec: { protect: { noDownscale: true, noEviction: true } } });
    const process = await world.start();
    for (let drain = 0; drain < 100; drain += 1) {
      const answer = await world.env.finish(process.ask(evictionOf(world.pod('b', 0), { dryRun: true })));
      expect(answer).toMatchObject({ allowed: false, code: 403 });
    }
    expect(process.writes).toEqual([]);
  });
});
