import { describe, expect, it } from 'vitest';
import { sleep } from '../../../cluster/env.ts';
import type { Answer, Review } from '../../../webhook/review/review.ts';
import { rounds } from '../../kit/share.ts';
import { seededRandom } from '../../kit/virtual-env.ts';
import {
  deletionOf,
  type EnforceWorld,
  enforceWorld,
  evictionOf,
  scaleOf,
  updateOf,
  type WebhookProcess,
  withLabels,
  withSpec,
} from './enforce-world.ts';

/** One of these in two zones at once is one too many. */
const disruptions: readonly ((world: EnforceWorld, zone: string) => Review)[] = [
  ({ set }, zone) => scaleOf(set(zone), 2),
  ({ set }, zone) => updateOf(set(zone), withSpec({ replicas: 1 })),
  ({ pod }, zone) => evictionOf(pod(zone, 2)),
  ({ pod }, zone) => deletionOf(pod(zone, 1)),
  ({ set }, zone) => deletionOf(set(zone)),
];
const spec = { disruption: { maxUnavailable: 1 } };
const pairs = rounds(1_000, 150);

async function twoProcesses(world: EnforceWorld): Promise<readonly [WebhookProcess, WebhookProcess]> {
  return [
    await world.start({ name: 'webhook-1', latencyMs: 40, seed: 11 }),
    await world.start({ name: 'webhook-2', latencyMs: 40, seed: 23 }),
  ];
}

/** Only an eviction is denied with the code after which clients repeat it. */
const denialCode = ({ operation }: { readonly operation: string }) => (operation === 'CREATE' ? 429 : 403);

function allowedIn(answers: readonly Answer[]): number {
  return answers.filter(({ allowed }) => allowed).length;
}

describe('two requests for the last permitted step, in two processes (S30)', () => {
  it(`are never both allowed, over ${pairs} pairs`, async () => {
    const world = enforceWorld({ spec });
    const processes = await twoProcesses(world);
    const random = seededRandom(7);
    const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item;
    const granted = [0, 0, 0];
    for (let pair = 0; pair < pairs; pair += 1) {
      const [first, second] = pair % 2 === 0 ? ['a', 'b'] : ['c', 'a'];
      const reviews = [pick(disruptions)(world, first ?? ''), pick(disruptions)(world, second ?? '')] as const;
      const startsMs = random() * 60;
      const answers = await world.env.finish(
        Promise.all([
          processes[0].ask(reviews[0]),
          sleep(world.env, startsMs).then(() => processes[pair % 3 === 0 ? 0 : 1].ask(reviews[1])),
        ]),
      );
      const count = allowedIn(answers);
      granted[count] = (granted[count] ?? 0) + 1;
      const refused = answers.findIndex(({ allowed }) => !allowed);
      expect(answers[refused], `pair ${pair}`).toMatchObject({ code: denialCode(reviews[refused === 0 ? 0 : 1]) });
      expect(world.ledger().claims, `pair ${pair}`).toHaveLength(1);
      world.dropLedger();
    }
    expect(granted).toEqual([0, pairs, 0]);
  }, 120_000);

  it.each([
    ['left its group', 'adopted', ['rollout-group', 'grafana.com/no-downscale']],
    ['lost its label', 'none', ['grafana.com/no-downscale']],
  ] as const)('never shrink a StatefulSet that has %s a moment before, in another process', async (_what, kind, labels) => {
    const random = seededRandom(29);
    let relabelled = 0;
    for (let seed = 0; seed < rounds(40, 10); seed += 1) {
      const world = enforceWorld({ kind, sets: { labels: { 'grafana.com/no-downscale': 'true' } } });
      const [first, second] = await twoProcesses(world);
      const without = withLabels(Object.fromEntries(labels.map((label) => [label, undefined])))(world.set('a'));
      const relabel = async (): Promise<void> => {
        const answer = await first.ask(updateOf(world.set('a'), () => without));
        expect(answer, `seed ${seed}`).toMatchObject({ allowed: true });
        await sleep(world.env, random() * 20);
        world.api.put('statefulsets.apps', without as never);
        relabelled += 1;
      };
      const shrink = async (): Promise<void> => {
        for (let time = 0; time < 4; time += 1) {
          await sleep(world.env, random() * 120);
          expect(await second.ask(scaleOf(world.set('a'), 2)), `seed ${seed}, time ${time}`).toMatchObject({ allowed: false });
        }
      };
      await world.env.finish(Promise.all([relabel(), shrink()]));
    }
    expect(relabelled).toBe(rounds(40, 10));
  });

  it('block while the grant is carried out, and continue afterwards', async () => {
    const world = enforceWorld({ spec });
    const [first, second] = await twoProcesses(world);
    for (let round = 0; round < 20; round += 1) {
      const [one, other] = round % 2 === 0 ? ['a', 'b'] : ['b', 'c'];
      const answers = await world.env.finish(
        Promise.all([first.ask(evictionOf(world.pod(one ?? '', 1))), second.ask(evictionOf(world.pod(other ?? '', 1)))]),
      );
      expect(allowedIn(answers), `round ${round}`).toBe(1);
      const zone = (answers[0]?.allowed === true ? one : other) ?? '';
      const pod = world.pod(zone, 1).metadata;
      world.api.terminate('mimir', pod.name);
      await world.env.advance(3500);
      const next = zone === one ? other : one;
      expect(await world.env.finish(second.ask(evictionOf(world.pod(next ?? '', 1))))).toMatchObject({ allowed: false, code: 429 });
      await world.env.until(() => (world.api.get('pods', 'mimir', pod.name)?.metadata.uid ?? pod.uid) !== pod.uid);
      await world.env.advance(5000);
    }
    expect(world.maxDown()).toEqual({ zones: 1, pods: 1 });
  });

  it('three processes and many pods: a zone is drained within its budget', async () => {
    const world = enforceWorld({ spec: { disruption: { maxUnavailable: 2 } }, sets: { replicas: 6 } });
    const processes = [...(await twoProcesses(world)), await world.start({ name: 'webhook-3', latencyMs: 40, seed: 41 })];
    const asked = [0, 1, 2, 3, 4, 5].flatMap((ordinal) =>
      ['a', 'b'].map((zone, index) => processes[(ordinal + index) % 3]?.ask(evictionOf(world.pod(zone, ordinal)))),
    );
    const answers = await world.env.finish(Promise.all(asked));
    expect(answers.filter((answer) => answer?.allowed).length).toBe(2);
    const zones = new Set(world.ledger().claims.map(({ zone }) => zone));
    expect(zones.size).toBe(1);
  });
});

describe('a process that dies between the grant and the write', () => {
  for (const diesAfter of ['ledger.create', 'ledger.read']) {
    it(`after ${diesAfter}: never a second grant in addition to the first, and no request is blocked forever`, async () => {
      const world = enforceWorld({ spec });
      const dying = await world.start({ name: 'webhook-1', diesAfter });
      const other = await world.start({ name: 'webhook-2', latencyMs: 30, seed: 5 });
      expect(await world.env.finish(dying.ask(scaleOf(world.set('a'), 2)))).toMatchObject({ allowed: false, code: 429 });
      const isStored = diesAfter === 'ledger.create';
      expect(world.ledger().claims).toHaveLength(isStored ? 1 : 0);
      const answer = await world.env.finish(other.ask(scaleOf(world.set('b'), 2)));
      expect(answer.allowed).toBe(!isStored);
      if (!isStored) return;
      expect(answer.message).toContain('zone a shrinks from 3 to 2 replicas');
      await world.env.advance(121_000);
      expect(await world.env.finish(other.ask(scaleOf(world.set('b'), 2)))).toMatchObject({ allowed: true });
      expect(world.ledger().claims).toMatchObject([{ zone: 'b' }]);
    });
  }

  it('over many pairs with a kill at a seeded request', async () => {
    const sites = ['enforce.statefulsets', 'ledger.read', 'ledger.create', 'departures.read'];
    let grants = 0;
    for (let seed = 0; seed < rounds(100, 25); seed += 1) {
      const world = enforceWorld({ spec });
      const dying = await world.start({ name: 'webhook-1', latencyMs: 40, seed, diesAfter: sites[seed % sites.length] ?? '' });
      const other = await world.start({ name: 'webhook-2', latencyMs: 40, seed: seed + 1000 });
      const answers = await world.env.finish(Promise.all([dying.ask(scaleOf(world.set('a'), 2)), other.ask(scaleOf(world.set('b'), 2))]));
      expect(allowedIn(answers), `seed ${seed}`).toBeLessThanOrEqual(1);
      // Whatever was allowed stands in the ledger, and so may what nobody heard of.
      const zones = world.ledger().claims.map(({ zone }) => zone);
      expect(zones.length, `seed ${seed}`).toBeLessThanOrEqual(1);
      if (answers[1]?.allowed) expect(zones, `seed ${seed}`).toEqual(['b']);
      grants += allowedIn(answers);
    }
    expect(grants).toBeGreaterThan(rounds(10, 2));
  }, 120_000);
});

describe('without any agent', () => {
  it('a downscale counts for the interval between zones, for as long as it lasts', async () => {
    const world = enforceWorld({ spec: { ...spec, scaling: { down: { betweenZones: '1h' } } } });
    const [first, second] = await twoProcesses(world);
    expect(await world.env.finish(first.ask(scaleOf(world.set('a'), 2)))).toMatchObject({ allowed: true });
    world.scaleTo('a', 2);
    for (const waitMs of [1_000, 121_000, 600_000]) {
      await world.env.advance(waitMs);
      const answer = await world.env.finish(second.ask(scaleOf(world.set('b'), 2)));
      expect(answer, `after ${waitMs} ms`).toMatchObject({ allowed: false, code: 403 });
      expect(answer.message).toMatch(/denied by (zone-gap|other-zones-ready|replica-write-in-flight)/);
    }
    expect(await world.env.finish(second.ask(scaleOf(world.set('a'), 1)))).toMatchObject({ allowed: true });
    world.scaleTo('a', 1);
    await world.env.advance(3_500_000);
    expect(await world.env.finish(second.ask(scaleOf(world.set('b'), 2)))).toMatchObject({ allowed: false });
    // It counts from when it may have arrived at the latest.
    await world.env.advance(250_000);
    expect(await world.env.finish(first.ask(scaleOf(world.set('b'), 2)))).toMatchObject({ allowed: true });
  });

  it('a downscale still counts after the zone has grown again', async () => {
    const world = enforceWorld({ spec: { ...spec, scaling: { down: { betweenZones: '1h' } } } });
    const [first, second] = await twoProcesses(world);
    expect(await world.env.finish(first.ask(scaleOf(world.set('a'), 2)))).toMatchObject({ allowed: true });
    world.scaleTo('a', 2);
    await world.env.advance(10_000);
    expect(await world.env.finish(second.ask(scaleOf(world.set('a'), 3)))).toMatchObject({ allowed: true });
    expect(world.ledger()).toMatchObject({ claims: [], downscales: [{ zone: 'a', from: 3, to: 2 }] });
    world.scaleTo('a', 3);
    await world.env.advance(600_000);
    const answer = await world.env.finish(first.ask(scaleOf(world.set('b'), 2)));
    expect(answer.message).toContain('denied by zone-gap');
  });

  it('without the pods of one zone, the second zone is denied after two minutes', async () => {
    const world = enforceWorld({ spec });
    const [first, second] = await twoProcesses(world);
    world.workloads.breakNext('ingester-zone-a-1');
    expect(await world.env.finish(first.ask(evictionOf(world.pod('a', 1))))).toMatchObject({ allowed: true });
    world.api.terminate('mimir', 'ingester-zone-a-1');
    await world.env.advance(130_000);
    expect(await world.env.finish(second.ask(evictionOf(world.pod('b', 1))))).toMatchObject({ allowed: false, code: 429 });
    expect(await world.env.finish(second.ask(scaleOf(world.set('b'), 2)))).toMatchObject({ allowed: false, code: 403 });
    expect(await world.env.finish(first.ask(evictionOf(world.pod('b', 1))))).toMatchObject({ allowed: false, code: 429 });
  });

  it('an unused grant expires after two minutes, although a client retries', async () => {
    for (const review of [({ pod }: EnforceWorld) => evictionOf(pod('a', 1)), ({ set }: EnforceWorld) => scaleOf(set('a'), 2)]) {
      const world = enforceWorld({ spec });
      const process = await world.start();
      const atMs = world.env.clock.nowMs();
      const answers: Answer[] = [];
      // Something after us refuses each try: a PodDisruptionBudget, a quota, the endpoint of somebody else.
      while (world.env.clock.nowMs() - atMs < 120_000) {
        answers.push(await world.env.finish(process.ask(review(world))));
        expect(await world.env.finish(process.ask(evictionOf(world.pod('b', 1))))).toMatchObject({ allowed: false, code: 429 });
        await world.env.advance(5_000);
      }
      expect(answers.slice(0, 5).every(({ allowed }) => allowed)).toBe(true);
      const code = denialCode(review(world));
      expect(answers.at(-1)).toMatchObject({ allowed: false, code });
      expect(answers.at(-1)?.message).toContain('denied by granted-before');
      await world.env.advance(1_000);
      expect(await world.env.finish(process.ask(evictionOf(world.pod('b', 1))))).toMatchObject({ allowed: true });
      expect(world.ledger().claims).toMatchObject([{ zone: 'b' }]);
      expect(await world.env.finish(process.ask(review(world)))).toMatchObject({ allowed: false, code });
    }
  });
});
