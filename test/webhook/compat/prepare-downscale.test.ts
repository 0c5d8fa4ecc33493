// prepare-downscale over several requests: repeated, at the same time, too slow, not to the end.
import { describe, expect, it } from 'vitest';
import { type PrepareDownscaleConfig, prepareDownscale } from '../../../webhook/compat/prepare/downscale.ts';
import type { Answer, Endpoint } from '../../../webhook/review/review.ts';
import { annotates, at, endpoint as marks, podAt, podsOf, rescale, shrankAt, statefulSet, update, waits, zone } from './scenarios/given.ts';
import { readText, reviewText } from './scenarios/play.ts';
import type { Json, ScenarioRequest } from './scenarios/scenario.ts';
import { scenarioWorld, type World, type WorldOptions } from './scenarios/world.ts';

const config: PrepareDownscaleConfig = { clusterDomain: 'cluster.local.' };
const zones = ['zone-a', 'zone-b'].map((name) => zone(name));
const waiting = ['zone-a', 'zone-b'].map((name) => zone(name, { labels: waits('12h') }));

function given(sets: readonly Json[] = zones, options: WorldOptions = {}) {
  const world = scenarioWorld({ state: { 'statefulsets.apps': sets, pods: [...podsOf('zone-a'), ...podsOf('zone-b')] }, ...options });
  return { world, endpoint: prepareDownscale(world.env, config) };
}

function begin(world: World, endpoint: Endpoint, request: ScenarioRequest): Promise<Answer> {
  return endpoint.handle(readText(reviewText(world, request)), world.newCall());
}

function ask(world: World, endpoint: Endpoint, request: ScenarioRequest): Promise<Answer> {
  return world.virtual.finish(begin(world, endpoint, request));
}

function lines(world: World, method: string): readonly string[] {
  return world.calls.map(({ call }) => call).filter((call) => call.startsWith(`${method} `));
}

const annotation = (world: World): unknown => world.get('statefulsets.apps', 'zone-a')?.['metadata'];
const dated = (instant: string) => ({ annotations: { ...marks, ...shrankAt(instant) } });

it('denies a negative number of replicas and calls no pod, before the validation of the API server', async () => {
  const { world, endpoint } = given();
  const answer = await ask(world, endpoint, update('zone-a', -1));
  expect(answer).toMatchObject({ allowed: false, message: expect.stringContaining('spec.replicas must not be negative') });
  expect(lines(world, 'POST')).toEqual([]);
});

/** The longest pause of an agent before it repeats a rejected write (agent/turn/refusals.ts). */
const longestAgentPauseMs = 60_000;

describe('a repeated step', () => {
  it('prepares its pods again and keeps the recorded time, so the object stays as the client saw it', async () => {
    const { world, endpoint } = given();
    expect((await ask(world, endpoint, update('zone-a', 2))).allowed).toBe(true);
    await world.virtual.advance(longestAgentPauseMs + 5_000);
    expect((await ask(world, endpoint, update('zone-a', 2))).allowed).toBe(true);
    expect(lines(world, 'PATCH')).toHaveLength(1);
    expect(lines(world, 'POST')).toEqual([`POST ${podAt('zone-a-2')}`, `POST ${podAt('zone-a-2')}`]);
    expect(annotation(world)).toMatchObject(dated('2026-01-15T12:00:00Z'));
  });

  it('is a new step two minutes later', async () => {
    const { world, endpoint } = given();
    await ask(world, endpoint, update('zone-a', 2));
    await world.virtual.advance(120_000);
    await ask(world, endpoint, update('zone-a', 2));
    expect(annotation(world)).toMatchObject(dated('2026-01-15T12:02:00Z'));
  });

  it('is a new step if its numbers differ', async () => {
    const { world, endpoint } = given();
    await ask(world, endpoint, update('zone-a', 2));
    world.change('statefulsets.apps', 'zone-a', { spec: { replicas: 2 } });
    await world.virtual.advance(5_000);
    await ask(world, endpoint, update('zone-a', 1));
    expect(annotation(world)).toMatchObject(dated('2026-01-15T12:00:05Z'));
  });

  it('is a new step if another client wrote another time', async () => {
    const { world, endpoint } = given();
    await ask(world, endpoint, update('zone-a', 2));
    world.change('statefulsets.apps', 'zone-a', { metadata: { annotations: shrankAt('2026-01-01T00:00:00Z') } });
    await world.virtual.advance(5_000);
    await ask(world, endpoint, update('zone-a', 2));
    expect(annotation(world)).toMatchObject(dated('2026-01-15T12:00:05Z'));
  });

  it('is denied if another zone shrank since, and keeps its time, because it may have been carried out', async () => {
    const { world, endpoint } = given(waiting);
    expect((await ask(world, endpoint, update('zone-a', 2))).allowed).toBe(true);
    world.change('statefulsets.apps', 'zone-b', { metadata: { annotations: shrankAt('2026-01-15T12:00:00Z') } });
    expect((await ask(world, endpoint, update('zone-a', 2))).message).toContain('zone-b was scaled down at');
    expect(lines(world, 'PATCH')).toHaveLength(1);
    expect(annotation(world)).toMatchObject(dated('2026-01-15T12:00:00Z'));
  });
});

it('does not call terminating pods while the StatefulSet grows, because their successors start again', async () => {
  const { world, endpoint } = given(zones, { state: { 'statefulsets.apps': zones, pods: podsOf('zone-a', 5) } });
  world.server.terminate({ user: 'statefulset-controller' }, 'one', 'zone-a-4', 30);
  expect(await ask(world, endpoint, update('zone-a', 5))).toEqual({ allowed: true });
  expect(lines(world, 'DELETE')).toEqual([`DELETE ${podAt('zone-a-3')}`]);
});

describe('two zones of a group at the same time', () => {
  const slow = { 'POST zone-a-2': { status: 200, delayMs: 1_000 } };

  it('run one after the other in one process if zones wait for one another', async () => {
    const { world, endpoint } = given(waiting, { pods: slow });
    const first = begin(world, endpoint, update('zone-a', 2));
    await world.virtual.settle();
    const second = await ask(world, endpoint, update('zone-b', 2));
    expect(second).toMatchObject({ allowed: false, message: expect.stringContaining('zone-a of the same group is being scaled down') });
    expect((await world.virtual.finish(first)).allowed).toBe(true);
    expect((await ask(world, endpoint, update('zone-b', 2))).message).toContain('zone-a was scaled down at 2026-01-15 12:00:0');
  });

  it('both pass if no zone waits for another', async () => {
    const { world, endpoint } = given(zones, { pods: slow });
    const first = begin(world, endpoint, update('zone-a', 2));
    await world.virtual.settle();
    expect((await ask(world, endpoint, update('zone-b', 2))).allowed).toBe(true);
    expect((await world.virtual.finish(first)).allowed).toBe(true);
  });

  it('pass the turn to the next one after a denial', async () => {
    const { world, endpoint } = given(waiting, { pods: { 'POST zone-a-2': 500 } });
    expect((await ask(world, endpoint, update('zone-a', 2))).allowed).toBe(false);
    expect((await ask(world, endpoint, update('zone-b', 2))).allowed).toBe(true);
  });

  it.each([
    ['annotations', config],
    ['the zone tracker', { ...config, zoneTracker: { configMapName: 'tracker' } }],
  ])('never both pass in two processes, in any order: %s', async (_, settings) => {
    const passes: number[] = [];
    for (let seed = 1; seed <= 150; seed++) {
      let state = seed;
      const latencyMs = (): number => {
        state = (state * 48_271) % 2_147_483_647;
        return state % 40;
      };
      const old = JSON.stringify({ lastDownscaled: '2026-01-01T00:00:00Z' });
      const tracker = { metadata: { namespace: 'one', name: 'tracker' }, data: { 'zone-a': old, 'zone-b': old } };
      const { world } = given(waiting, {
        latencyMs,
        state: { 'statefulsets.apps': waiting, pods: [...podsOf('zone-a'), ...podsOf('zone-b')], configmaps: [tracker] },
      });
      const answers = ['zone-a', 'zone-b'].map((name) => begin(world, prepareDownscale(world.env, settings), update(name, 2)));
      const passed = (await world.virtual.finish(Promise.all(answers))).filter(({ allowed }) => allowed).length;
      expect(passed, `seed ${seed}`).toBeLessThanOrEqual(1);
      passes.push(passed);
    }
    // Otherwise nothing would have been raced for.
    expect(passes.filter((passed) => passed === 1).length).toBeGreaterThan(0);
  });
});

describe('calls that take long', () => {
  const wide = zone('zone-a', { replicas: 100 });

  it('are cancelled before the deadline', async () => {
    const pods = Object.fromEntries(
      Array.from({ length: 100 }, (_, ordinal) => [`POST zone-a-${ordinal}`, { status: 200, delayMs: 4_900 }]),
    );
    const { world, endpoint } = given([wide], { pods });
    const call = world.newCall();
    const review = readText(reviewText(world, update('zone-a', 0)));
    const answer = await world.virtual.finish(endpoint.handle(review, call));
    expect(answer).toMatchObject({ allowed: false, message: expect.stringContaining('one or more pods failed to prepare') });
    expect(world.virtual.clock.monotonicMs()).toBeLessThan(call.deadlineMs);
    expect(lines(world, 'DELETE')).toHaveLength(100);
  });

  it('are 32 at a time, and stop after a failure', async () => {
    const { world, endpoint } = given([wide], { pods: { 'POST zone-a-99': { status: 500, delayMs: 10 }, ...slowPods(98, 68) } });
    await ask(world, endpoint, update('zone-a', 0));
    expect(lines(world, 'POST')).toHaveLength(32);
    expect(lines(world, 'DELETE')).toHaveLength(100);
  });

  it('do not outlive a list without an answer', async () => {
    const { world, endpoint } = given(zones, { faults: [{ on: `GET ${at.sets}`, answer: 'silent' }] });
    const call = world.newCall();
    const answer = await world.virtual.finish(endpoint.handle(readText(reviewText(world, update('zone-a', 2))), call));
    expect(answer).toMatchObject({ allowed: false, message: expect.stringContaining('finding other StatefulSets failed') });
    expect(world.virtual.clock.monotonicMs()).toBeLessThan(call.deadlineMs);
  });

  it('delay a scale-up for two seconds at most', async () => {
    const pods = { 'DELETE zone-a-3': 'silent' as const };
    const { world, endpoint } = given(zones, { pods, state: { 'statefulsets.apps': zones, pods: podsOf('zone-a', 4) } });
    const startMs = world.virtual.clock.monotonicMs();
    expect(await ask(world, endpoint, update('zone-a', 4))).toEqual({ allowed: true });
    expect(lines(world, 'DELETE')).toEqual([`DELETE ${podAt('zone-a-3')}`]);
    expect(world.virtual.clock.monotonicMs() - startMs).toBeLessThanOrEqual(2_000);
  });
});

function slowPods(from: number, to: number): Record<string, { readonly status: number; readonly delayMs: number }> {
  return Object.fromEntries(
    Array.from({ length: from - to + 1 }, (_, index) => [`POST zone-a-${from - index}`, { status: 200, delayMs: 100 }]),
  );
}

describe('a request that no API server sends', () => {
  it('does not bypass the other zones by naming another group', async () => {
    const { world, endpoint } = given([
      zone('zone-a'),
      zone('zone-b', { labels: waits('12h'), annotations: shrankAt('2026-01-15T11:59:00Z') }),
    ]);
    const shown = statefulSet('zone-a', { labels: { 'grafana.com/prepare-downscale': 'true' }, annotations: marks });
    const uid = world.get('statefulsets.apps', 'zone-a')?.['metadata'];
    const oldObject = { ...shown, metadata: { ...(shown['metadata'] as Json), uid: (uid as Json)['uid'] } };
    const answer = await ask(world, endpoint, update('zone-a', 2, { oldObject }));
    expect(answer).toMatchObject({ allowed: false, message: expect.stringContaining('the StatefulSet differs from the request') });
    expect([...lines(world, 'POST'), ...lines(world, 'PATCH')]).toEqual([]);
  });

  it('does not call pods at the address in its own object', async () => {
    const { world, endpoint } = given();
    const stored = world.get('statefulsets.apps', 'zone-a') as Json;
    const oldObject = { ...stored, spec: { ...(stored['spec'] as Json), serviceName: 'elsewhere' } };
    await ask(world, endpoint, update('zone-a', 2, { oldObject }));
    expect(lines(world, 'POST')).toEqual([`POST ${podAt('zone-a-2')}`]);
  });

  it('stores no times of a missing StatefulSet', async () => {
    const { world } = given();
    const endpoint = prepareDownscale(world.env, { ...config, zoneTracker: { configMapName: 'tracker' } });
    for (const labels of [{}, { 'rollout-group': 'made-up' }]) {
      const oldObject = statefulSet('nowhere', { labels: { ...labels, 'grafana.com/prepare-downscale': 'true' }, annotations: marks });
      const answer = await ask(world, endpoint, update('zone-a', 2, { name: 'nowhere', oldObject }));
      expect(answer).toMatchObject({ allowed: false, message: expect.stringContaining('it was not found') });
    }
    expect([...lines(world, 'POST'), ...lines(world, 'PUT'), ...lines(world, 'PATCH')]).toEqual([]);
  });

  it('is not for another StatefulSet of the same name', async () => {
    const { world, endpoint } = given();
    const stored = world.get('statefulsets.apps', 'zone-a') as Json;
    const oldObject = { ...stored, metadata: { ...(stored['metadata'] as Json), uid: 'another' } };
    expect((await ask(world, endpoint, update('zone-a', 2, { oldObject }))).allowed).toBe(false);
    expect(lines(world, 'POST')).toEqual([]);
  });
});

describe('prepare-downscale without a decision', () => {
  const onFailure = (request: ScenarioRequest, sets = zones): Answer => {
    const { world, endpoint } = given(sets);
    return endpoint.onFailure(readText(reviewText(world, request)), 'too much is going on');
  };

  it('denies a labelled StatefulSet, and a Scale of unknown effect', () => {
    expect(onFailure(update('zone-a', 2))).toMatchObject({ allowed: false, message: expect.stringContaining('too much is going on') });
    expect(onFailure(rescale('zone-a', 3, 2))).toMatchObject({ allowed: false, message: expect.stringContaining('too much is going on') });
  });

  it('allows all other requests', () => {
    expect(onFailure(update('zone-a', 2, { dryRun: true }))).toEqual({ allowed: true });
    expect(onFailure(update('zone-a', 4))).toEqual({ allowed: true });
    expect(onFailure(update('zone-a', 2), [statefulSet('zone-a')])).toEqual({ allowed: true });
    expect(onFailure(rescale('web', 3, 2, { resource: 'deployments' }))).toMatchObject({ allowed: true });
  });
});

describe('next to native enforcement', () => {
  const denial: Answer = { allowed: false, code: 403, reason: 'Forbidden', message: 'denied by safety/not-now' };
  const beside = (answer: Answer | undefined, sets: readonly Json[] = zones, options: WorldOptions = {}) => {
    const { world } = given(sets, options);
    let asked = 0;
    const native = async (): Promise<Answer | undefined> => {
      asked += 1;
      return answer;
    };
    return { world, endpoint: prepareDownscale(world.env, { ...config, native }), asked: () => asked };
  };

  it('a denial of native enforcement has the text of native enforcement, before any pod is called', async () => {
    const { world, endpoint } = beside(denial);
    expect(await ask(world, endpoint, update('zone-a', 2))).toEqual(denial);
    expect([...lines(world, 'POST'), ...lines(world, 'PATCH'), ...lines(world, 'DELETE')]).toEqual([]);
    // The turn of the group is over.
    expect(await ask(world, endpoint, update('zone-b', 2))).toEqual(denial);
  });

  it('a denial of the original has the text of the original, and a request that the original ignores is not judged', async () => {
    const unready = beside(denial, [
      zone('zone-a'),
      zone('zone-b', { labels: waits('12h'), annotations: shrankAt('2026-01-15T11:59:00Z') }),
    ]);
    const { message } = await ask(unready.world, unready.endpoint, update('zone-a', 2));
    expect(message).toContain('zone-b was scaled down at');
    const { world, endpoint, asked } = beside(denial);
    expect(await ask(world, endpoint, update('zone-a', 2, { dryRun: true }))).toEqual({ allowed: true });
    expect(await ask(world, endpoint, update('zone-a', 3))).toEqual({ allowed: true });
    expect([unready.asked(), asked()]).toEqual([0, 0]);
  });

  it('a request that it allows is prepared and recorded as without it', async () => {
    const { world, endpoint } = beside(undefined);
    expect((await ask(world, endpoint, update('zone-a', 2))).allowed).toBe(true);
    expect(lines(world, 'POST')).toEqual([`POST ${podAt('zone-a-2')}`]);
    expect(annotation(world)).toMatchObject(dated('2026-01-15T12:00:00Z'));
  });

  it('pods are cancelled only if the scale-up that keeps them passes', async () => {
    for (const [answer, count] of [
      [denial, 0],
      [undefined, 1],
    ] as const) {
      const { world, endpoint } = beside(answer, zones, { state: { 'statefulsets.apps': zones, pods: podsOf('zone-a', 4) } });
      expect(await ask(world, endpoint, update('zone-a', 4))).toEqual({ allowed: true });
      expect(lines(world, 'DELETE')).toHaveLength(count);
    }
  });
});

it('writes exactly the annotation, with the version that was read', async () => {
  const { world, endpoint } = given();
  const { uid, resourceVersion } = (world.get('statefulsets.apps', 'zone-a') as { metadata: Json }).metadata;
  await ask(world, endpoint, update('zone-a', 2));
  const wanted = annotates('zone-a');
  const annotations = shrankAt('2026-01-15T12:00:00Z');
  expect(world.calls.at(-1)).toEqual({
    call: typeof wanted === 'string' ? wanted : wanted.call,
    body: { metadata: { annotations, uid, resourceVersion } },
  });
});
