import { describe, expect, it } from 'vitest';
import { adopted, group } from '../../kit/groups.ts';
import { rounds } from '../../kit/share.ts';
import { budgetObject, podObject, statefulSetObject, zonesObjects } from './eviction-objects.ts';
import { evictionReview, evictionWorld, type Replica, type SharedLedger, sharedLedger } from './eviction-world.ts';

const healthy = [budgetObject(), ...zonesObjects()];
const configMaps = (world: ReturnType<typeof evictionWorld>) => world.api.list('configmaps', 'mimir');

describe('unknown facts', () => {
  it('deny for a while if budgets have not been listed', async () => {
    const world = evictionWorld({ objects: healthy, forbidden: ['list zoneawarepoddisruptionbudgets.rollout-operator.grafana.com'] });
    const replica = await world.start({ waits: false });
    expect(await replica.ask('ingester-zone-a-0')).toEqual({
      allowed: false,
      code: 429,
      reason: 'TooManyRequests',
      message: expect.stringMatching(/^disruption budgets could not be read: /),
    });
  });

  it('allow if the kind of budgets is not installed, because no budget can exist', async () => {
    const world = evictionWorld({ objects: zonesObjects(), kinds: [] });
    const replica = await world.start();
    expect(await replica.ask('ingester-zone-a-0')).toEqual({ allowed: true, code: 200 });
    expect(replica.outcomes).toEqual([{ reason: 'pod-not-in-scope', code: 200 }]);
  });

  it('deny under a budget that was never valid, and not elsewhere', async () => {
    const broken = budgetObject({ maxUnavailable: 1, maxUnavailablePercentage: 10 });
    const other = podObject('web', 0, { labels: { app: 'web' } });
    const world = evictionWorld({ objects: [broken, other, ...zonesObjects()] });
    const replica = await world.start();
    expect((await replica.ask('web-0')).allowed).toBe(true);
    expect(await replica.ask('ingester-zone-a-0')).toEqual({
      allowed: false,
      code: 400,
      reason: 'BadRequest',
      message:
        'ZoneAwarePodDisruptionBudget mimir/ingester-rollout: maxUnavailable and maxUnavailablePercentage are both set; repair or delete the budget',
    });
    expect(replica.outcomes.at(-1)?.reason).toBe('cfg-not-found');
  });

  it('deny without a request if no time is left', async () => {
    const world = evictionWorld({ objects: healthy });
    const { endpoint, outcomes } = await world.start();
    const before = world.env.requests.length;
    const call = { deadlineMs: world.env.clock.monotonicMs(), signal: new AbortController().signal };
    await expect(endpoint.handle(evictionReview('ingester-zone-a-0'), call)).rejects.toThrow('no time was left');
    expect(world.env.requests.length).toBe(before);
    expect(outcomes).toEqual([{ reason: 'err: internal', code: 500 }]);
    expect(endpoint.onFailure(evictionReview('ingester-zone-a-0'), 'it was late')).toMatchObject({ allowed: false, code: 500 });
  });

  it('create no claim for a client that has gone', async () => {
    const world = evictionWorld({ objects: healthy, latencyMs: 100 });
    const { endpoint } = await world.start();
    const gone = new AbortController();
    const call = { deadlineMs: world.env.clock.monotonicMs() + 9000, signal: gone.signal };
    const work = endpoint.handle(evictionReview('ingester-zone-a-0'), call).catch((error: unknown) => String(error));
    await world.env.advance(150);
    gone.abort();
    expect(await world.env.finish(work)).toContain('no time was left');
    expect(world.writes()).toEqual([]);
  });
});

describe('the location of a claim', () => {
  it('is the ledger if the StatefulSets of the budget are one group', async () => {
    const world = evictionWorld({ objects: healthy });
    const shared = sharedLedger(world, [adopted()]);
    const replica = await world.start({ guard: shared.guard() });
    expect((await replica.ask('ingester-zone-b-1')).allowed).toBe(true);
    expect(shared.claims()).toEqual([
      { verb: 'evictPod', zone: 'b', uid: world.uidOf('ingester-zone-b-1'), ordinal: 1, atMs: world.env.clock.nowMs(), user: 'somebody' },
    ]);
    expect(world.writes()).toEqual([]);
  });

  it('keeps its time for 30 s, so that a request of a repetition cannot arrive after the two minutes of the claim', async () => {
    const world = evictionWorld({ objects: healthy });
    const shared = sharedLedger(world, [adopted()]);
    const replica = await world.start({ guard: shared.guard() });
    const renewedAfter = async (ms: number): Promise<boolean> => {
      await replica.ask('ingester-zone-b-1');
      const [before] = shared.claims();
      await world.env.advance(ms);
      expect((await replica.ask('ingester-zone-b-1')).allowed).toBe(true);
      expect(shared.claims()).toHaveLength(1);
      return shared.claims()[0]?.atMs !== before?.atMs;
    };
    expect([await renewedAfter(29_000), await renewedAfter(10_000)]).toEqual([false, true]);
  });

  it('is a record of the budget if they are no group', async () => {
    const world = evictionWorld({ objects: healthy });
    const replica = await world.start();
    expect((await replica.ask('ingester-zone-b-1')).allowed).toBe(true);
    expect(configMaps(world).map(({ metadata, data }) => [metadata.name, metadata.labels, data])).toEqual([
      [
        'rollout-group-evictions-ingester-rollout',
        { 'rollout-group.dev/document': 'evictions' },
        { ledger: expect.stringContaining(world.uidOf('ingester-zone-b-1') ?? '') },
      ],
    ]);
  });

  it('is both if only some of them are one', async () => {
    const world = evictionWorld({ objects: healthy });
    const shared = sharedLedger(world, [group({ zones: ['a', 'b'] })]);
    const replica = await world.start({ guard: shared.guard() });
    expect((await replica.ask('ingester-zone-a-0')).allowed).toBe(true);
    expect(shared.claims().map(({ uid }) => uid)).toEqual([world.uidOf('ingester-zone-a-0')]);
    expect(configMaps(world)).toHaveLength(1);
    expect((await replica.ask('ingester-zone-c-0')).message).toBe('1 pod not ready in ingester-zone-a');
  });

  it('is known to a process that just started', async () => {
    for (const withGroup of [false, true]) {
      const world = evictionWorld({ objects: healthy });
      const shared = sharedLedger(world, [adopted()]);
      const options = withGroup ? { guard: shared.guard() } : {};
      expect((await (await world.start(options)).ask('ingester-zone-b-0')).allowed).toBe(true);
      const another = await world.start(options);
      expect((await another.ask('ingester-zone-a-0')).message).toBe('1 pod not ready in ingester-zone-b');
    }
  });

  it('contains the claims of the agent', async () => {
    const world = evictionWorld({ objects: healthy });
    const shared = sharedLedger(world, [adopted()]);
    const guard = shared.guard();
    const base = shared.ledger();
    const claim = {
      verb: 'deletePod' as const,
      zone: 'c',
      uid: world.uidOf('ingester-zone-c-2') ?? '',
      ordinal: 2,
      atMs: world.env.clock.nowMs(),
      epoch: 3,
    };
    await world.env.finish(guard.store({ namespace: 'mimir', name: 'ingester' }, base, { ...base, claims: [claim] }, 1000));
    const replica = await world.start({ guard });
    expect((await replica.ask('ingester-zone-a-0')).message).toBe('1 pod not ready in ingester-zone-c');
    // The agent asks for what it has announced itself: nothing is to be written.
    expect((await replica.ask('ingester-zone-c-2')).allowed).toBe(true);
    expect(shared.claims()).toEqual([claim]);
  });

  it('ends when the successor is available', async () => {
    const world = evictionWorld({ objects: healthy });
    const shared = sharedLedger(world, [adopted()]);
    const replica = await world.start({ guard: shared.guard() });
    await replica.ask('ingester-zone-b-0');
    world.api.remove('pods', 'mimir', 'ingester-zone-b-0');
    expect((await replica.ask('ingester-zone-a-0')).message).toBe('1 pod unknown in ingester-zone-b');
    world.put(podObject('ingester-zone-b', 0, { areContainersReady: false }));
    expect((await replica.ask('ingester-zone-a-0')).message).toBe('1 pod not ready in ingester-zone-b');
    world.api.remove('pods', 'mimir', 'ingester-zone-b-0');
    world.put(podObject('ingester-zone-b', 0));
    expect((await replica.ask('ingester-zone-a-0')).allowed).toBe(true);
    expect(shared.claims().map(({ uid }) => uid)).toEqual([world.uidOf('ingester-zone-a-0')]);
  });
});

describe('an eviction without a stored claim is denied', () => {
  const notRecorded = { allowed: false, code: 429, reason: 'TooManyRequests' };
  const outcome = { reason: 'err: eviction-not-recorded', code: 429 };

  it('if ConfigMaps are forbidden and other processes answer too', async () => {
    const world = evictionWorld({ objects: healthy, forbidden: ['* configmaps'] });
    const replica = await world.start();
    expect(await replica.ask('ingester-zone-a-0')).toMatchObject({ ...notRecorded, message: expect.stringContaining('grant get, create') });
    expect(replica.outcomes).toEqual([outcome]);
  });

  it('but a process that works alone keeps it in memory, and logs a warning', async () => {
    const world = evictionWorld({ objects: healthy, forbidden: ['* configmaps'] });
    const replica = await world.start({ isAlone: () => true });
    expect((await replica.ask('ingester-zone-a-0')).allowed).toBe(true);
    expect((await replica.ask('ingester-zone-b-0')).message).toBe('1 pod not ready in ingester-zone-a');
    expect(world.log).toEqual([{ level: 'error', message: 'announced evictions cannot be stored' }]);
    world.api.permit('* configmaps');
    expect((await replica.ask('ingester-zone-b-0')).message).toBe('1 pod not ready in ingester-zone-a');
  });

  it.each([['refuse' as const], ['lose' as const]])('if the ledger cannot be written (%s)', async (failStore) => {
    const world = evictionWorld({ objects: healthy });
    const replica = await world.start({ guard: sharedLedger(world, [adopted()], { failStore }).guard() });
    expect(await replica.ask('ingester-zone-a-0')).toMatchObject(notRecorded);
    expect(replica.outcomes).toEqual([outcome]);
  });

  it('if the ledger cannot be read, or policies are unknown', async () => {
    const world = evictionWorld({ objects: healthy });
    const unread = await world.start({ guard: sharedLedger(world, [adopted()], { problem: 'it is of a newer format' }).guard() });
    expect((await unread.ask('ingester-zone-a-0')).message).toContain('it is of a newer format');
    const guard = { ...sharedLedger(world, [adopted()]).guard(), isSettled: () => false };
    expect(await (await world.start({ guard })).ask('ingester-zone-a-0')).toMatchObject(notRecorded);
  });

  it('if the answer to the write is lost, and the next one too, because the claim may be stored', async () => {
    const world = evictionWorld({ objects: healthy });
    const replica = await world.start();
    let isLost = false;
    world.env.replaceServer((request) => {
      const served = world.api.serve(request);
      if (request.method !== 'POST' || isLost) return served;
      isLost = true;
      return { lost: 'reply' };
    });
    expect(await replica.ask('ingester-zone-a-0')).toMatchObject(notRecorded);
    expect((await replica.ask('ingester-zone-b-0')).message).toBe('1 pod not ready in ingester-zone-a');
    expect((await replica.ask('ingester-zone-a-0')).allowed).toBe(true);
  });

  it('if the record became invalid', async () => {
    const world = evictionWorld({ objects: healthy });
    const name = 'rollout-group-evictions-ingester-rollout';
    world.api.put('configmaps', { metadata: { name, namespace: 'mimir' }, data: { ledger: '{"format":"2.0"}' } });
    expect(await (await world.start()).ask('ingester-zone-a-0')).toMatchObject(notRecorded);
  });

  it('if a hundred claims are open and no claim has ended', async () => {
    const world = evictionWorld({ objects: [budgetObject({ maxUnavailable: 200 }), ...zonesObjects({ replicas: 101 })] });
    const shared = sharedLedger(world, [adopted()]);
    const replica = await world.start({ guard: shared.guard() });
    for (let ordinal = 0; ordinal < 100; ordinal += 1) await replica.ask(`ingester-zone-a-${ordinal}`);
    expect(shared.claims()).toHaveLength(100);
    expect((await replica.ask('ingester-zone-a-100')).message).toContain('100 disruptions of ingester are announced, the maximum');
    // None was carried out, and nobody is there to end them: after ten minutes they say nothing any more.
    await world.env.advance(601_000);
    expect((await replica.ask('ingester-zone-a-100')).allowed).toBe(true);
    expect(shared.claims()).toHaveLength(1);
  });
});

describe('S30: two processes over two connections', () => {
  interface Race {
    readonly world: ReturnType<typeof evictionWorld>;
    readonly replicas: readonly Replica[];
    readonly shared: SharedLedger;
  }

  async function race(seed: number, withGroup: boolean, spec: Readonly<Record<string, unknown>> = { maxUnavailable: 1 }): Promise<Race> {
    const world = evictionWorld({ objects: [budgetObject(spec), ...zonesObjects()], seed, latencyMs: 80 });
    const shared = sharedLedger(world, [adopted()], { seed, latencyMs: 80 });
    const options = () => (withGroup ? { guard: shared.guard() } : {});
    return { world, shared, replicas: [await world.start(options()), await world.start(options())] };
  }

  it.each([['in a record', false] as const, ['in a ledger', true] as const])(
    'grant the last permitted step once, in any order, %s',
    async (_place, withGroup) => {
      const winners = new Set<string>();
      for (let seed = 1; seed <= rounds(150, 50); seed += 1) {
        const { world, replicas } = await race(seed, withGroup);
        const pods = ['ingester-zone-a-0', 'ingester-zone-b-0'];
        const answers = await world.env.finish(Promise.all(replicas.map((replica, index) => replica.begin(pods[index] ?? ''))));
        const granted = pods.filter((_pod, index) => answers[index]?.allowed);
        expect(granted, `seed ${seed}`).toHaveLength(1);
        expect(answers.find(({ allowed }) => !allowed)?.code, `seed ${seed}`).toBe(429);
        winners.add(granted[0] ?? '');
      }
      // Otherwise the interleavings would all have been the same.
      expect(winners.size).toBe(2);
    },
  );

  it('grant evictions in one zone up to the limit, and no eviction in another zone', async () => {
    for (let seed = 1; seed <= rounds(40, 15); seed += 1) {
      const { world, replicas } = await race(seed, seed % 2 === 0, { maxUnavailable: 2 });
      const pods = ['a-0', 'b-0', 'a-1', 'c-0', 'a-2', 'b-1'].map((pod) => `ingester-zone-${pod}`);
      const answers = await world.env.finish(Promise.all(pods.map((pod, index) => replicas[index % 2]?.begin(pod))));
      const granted = pods.filter((_pod, index) => answers[index]?.allowed);
      expect(new Set(granted.map((pod) => pod.slice(0, -2))).size, `seed ${seed}`).toBe(1);
      expect(granted.length, `seed ${seed}`).toBeLessThanOrEqual(2);
    }
  });

  it('in one process wait in order, and the gauge counts the waiting requests', async () => {
    const { world, replicas } = await race(1, false);
    const [replica] = replicas;
    const pods = ['ingester-zone-a-0', 'ingester-zone-b-0', 'ingester-zone-c-0'];
    const answers = await world.env.finish(Promise.all(pods.map((pod) => replica?.begin(pod))));
    expect(answers.filter((answer) => answer?.allowed)).toHaveLength(1);
    expect(replica?.inFlight()).toEqual({ now: 0, most: 3 });
    expect(replica?.outcomes).toHaveLength(3);
  });
});

it('S29: a hundred dry runs write nothing and do not affect the next eviction', async () => {
  const world = evictionWorld({ objects: healthy });
  const replica = await world.start({ guard: sharedLedger(world, [adopted()]).guard() });
  for (let count = 0; count < 100; count += 1) {
    const zone = ['b', 'c'][count % 2];
    const said = count < 50 ? { dryRun: true } : { object: { deleteOptions: { dryRun: ['All'] } } };
    expect((await replica.ask(`ingester-zone-${zone}-${count % 3}`, said)).allowed).toBe(true);
  }
  expect(world.writes()).toEqual([]);
  expect((await replica.ask('ingester-zone-a-0')).allowed).toBe(true);
});

it('a budget over the whole namespace lists every StatefulSet', async () => {
  const objects = [budgetObject({ selector: { matchLabels: {} } }), ...zonesObjects(), statefulSetObject({ name: 'zoneless', labels: {} })];
  const replica = await evictionWorld({ objects }).start();
  expect((await replica.ask('ingester-zone-a-0')).message).toBe('3 pods unknown in zoneless');
});
