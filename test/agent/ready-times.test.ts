import { afterEach, describe, expect, it } from 'vitest';
import { ReadyTimes, type WriterTurn, writerTurn } from '../../agent/published/ready-times.ts';
import { followedIn } from '../kit/followed.ts';
import { status } from '../kit/virtual-env.ts';
import { budgetObject, podObject, zonesObjects } from '../webhook/compat/eviction-objects.ts';
import { type EvictionWorld, evictionWorld } from '../webhook/compat/eviction-world.ts';

const key = 'grafana.com/ready-time';
const running: { readonly stop: () => void }[] = [];
afterEach(() => {
  for (const one of running.splice(0)) one.stop();
});

function observe(world: EvictionWorld, turn: () => WriterTurn = () => 'now') {
  const env = world.webhookEnv();
  const followed = followedIn(env);
  const results: string[] = [];
  const times = new ReadyTimes(env, { followed, turn, patchTimeoutMs: 5000, onPatch: (result) => void results.push(result) });
  running.push(followed, times);
  return { times, results, followed };
}

const patches = ({ env }: EvictionWorld) =>
  env.requests.filter(({ method }) => method === 'PATCH').map(({ path, json }) => [path, json] as const);
const annotation = ({ api }: EvictionWorld, pod: string): unknown =>
  ((api.get('pods', 'mimir', pod)?.metadata['annotations'] ?? {}) as Readonly<Record<string, unknown>>)[key];
const one = (change: Parameters<typeof podObject>[2] = {}) => podObject('ingester-zone-a', 0, change);

describe('the ready time of a pod under a budget', () => {
  it('is written once when it is ready, to the second, with the state that was seen as precondition', async () => {
    const world = evictionWorld({ objects: [budgetObject(), one()] });
    observe(world);
    await world.env.advance(10_000);
    expect(patches(world)).toEqual([
      [
        '/api/v1/namespaces/mimir/pods/ingester-zone-a-0',
        {
          metadata: {
            annotations: { [key]: expect.stringMatching(/^2026-01-15T12:00:0\dZ$/) },
            uid: expect.any(String),
            resourceVersion: expect.any(String),
          },
        },
      ],
    ]);
    await world.env.advance(3_600_000);
    expect(patches(world)).toHaveLength(1);
  });

  it.each([
    ['not ready', { areContainersReady: false }],
    ['terminating', { isTerminating: true }],
    ['pending', { phase: 'Pending' }],
  ])('is removed when the pod is %s, and then not changed', async (_case, change) => {
    const world = evictionWorld({ objects: [budgetObject(), one({ readyTime: '2026-01-15T10:00:00Z', ...change })] });
    const { results } = observe(world);
    await world.env.advance(600_000);
    expect([results, annotation(world, 'ingester-zone-a-0')]).toEqual([['removed'], undefined]);
  });

  it('follows the readiness of the pod', async () => {
    const world = evictionWorld({ objects: [budgetObject(), one()] });
    const { results } = observe(world);
    await world.env.advance(10_000);
    world.put(one({ areContainersReady: false, readyTime: String(annotation(world, 'ingester-zone-a-0')) }));
    await world.env.advance(60_000);
    expect(annotation(world, 'ingester-zone-a-0')).toBeUndefined();
    world.put(one());
    await world.env.advance(5000);
    expect([results, annotation(world, 'ingester-zone-a-0')]).toEqual([
      ['set', 'removed', 'set'],
      expect.stringMatching(/^2026-01-15T12:01:/),
    ]);
  });

  it('is kept if present, and replaced if empty or invalid', async () => {
    const times = ['2026-01-15T10:00:00Z', '', 'yesterday'];
    const objects = [budgetObject(), ...times.map((readyTime, ordinal) => podObject('ingester-zone-a', ordinal, { readyTime }))];
    const world = evictionWorld({ objects });
    observe(world);
    await world.env.advance(10_000);
    expect([0, 1, 2].map((ordinal) => annotation(world, `ingester-zone-a-${ordinal}`))).toEqual([
      '2026-01-15T10:00:00Z',
      expect.stringContaining('2026-01-15T12:00:0'),
      expect.stringContaining('2026-01-15T12:00:0'),
    ]);
  });

  it('of a pod outside of every budget is not changed', async () => {
    const world = evictionWorld({ objects: [budgetObject(), podObject('web', 0, { labels: { app: 'web' } })] });
    observe(world);
    await world.env.advance(600_000);
    expect(patches(world)).toEqual([]);
  });

  it('is written when a budget starts to select the pod', async () => {
    const world = evictionWorld({ objects: zonesObjects() });
    observe(world);
    await world.env.advance(60_000);
    expect(patches(world)).toEqual([]);
    world.put(budgetObject());
    await world.env.advance(1000);
    expect(patches(world)).toHaveLength(9);
  });
});

describe('of several replicas', () => {
  it('is written by the active one only, and the next one adds the missing times', async () => {
    const world = evictionWorld({ objects: [budgetObject(), ...zonesObjects()] });
    let leader = 0;
    const replicas = [0, 1].map((index) => observe(world, () => (leader === index ? 'now' : 'never')));
    await world.env.advance(10_000);
    expect(replicas.map(({ results }) => results.length)).toEqual([9, 0]);
    leader = -1;
    world.put(podObject('ingester-zone-a', 0, { areContainersReady: false, readyTime: '2026-01-15T10:00:00Z' }));
    await world.env.advance(60_000);
    expect(replicas.map(({ results }) => results.length)).toEqual([9, 0]);
    leader = 1;
    for (const { times } of replicas) times.wake();
    await world.env.settle();
    expect(replicas.map(({ results }) => results)).toEqual([Array.from({ length: 9 }, () => 'set'), ['removed']]);
  });
});

it('is written at once by a process that begins to lead, for all pods at the same time', async () => {
  const world = evictionWorld({ objects: [budgetObject(), ...zonesObjects()] });
  world.env.replaceServer(async (request) => {
    const answer = await world.api.serve(request);
    return request.method === 'PATCH' && 'status' in answer ? { ...answer, delayMs: 1000 } : answer;
  });
  let turn: WriterTurn = 'never';
  const { times, results } = observe(world, () => turn);
  await world.env.advance(600_000);
  turn = 'now';
  times.wake();
  await world.env.settle();
  expect(patches(world)).toHaveLength(9);
  await world.env.advance(1000);
  expect(results).toEqual(Array(9).fill('set'));
});

it('is written at once by the leader, by no other agent, and later if the process only serves webhooks', () => {
  expect([true, false, undefined].map(writerTurn)).toEqual(['now', 'never', 'later']);
});

describe('of processes without a leader', () => {
  it('is written after a while if it is missing, with the same value in every process', async () => {
    const world = evictionWorld({ objects: [budgetObject(), ...zonesObjects()] });
    const replicas = [0, 1, 2].map(() => observe(world, () => 'later'));
    await world.env.advance(3000);
    expect(patches(world)).toEqual([]);
    await world.env.advance(20_000);
    expect(replicas.flatMap(({ results }) => results)).toEqual(Array.from({ length: 9 }, () => 'set'));
    expect(annotation(world, 'ingester-zone-a-0')).toMatch(/^2026-01-15T12:00:/);
    world.put(podObject('ingester-zone-a', 0, { areContainersReady: false, readyTime: '2026-01-15T10:00:00Z' }));
    await world.env.advance(20_000);
    expect(replicas.flatMap(({ results }) => results).filter((result) => result === 'removed')).toHaveLength(1);
  });

  it('is not written while a leader is present', async () => {
    const world = evictionWorld({ objects: [budgetObject(), ...zonesObjects()] });
    const leader = observe(world);
    const other = observe(world, () => 'later');
    await world.env.advance(60_000);
    expect([leader.results.length, other.results]).toEqual([9, []]);
  });
});

describe('a write that fails', () => {
  it('is logged and retried, and one pod does not delay the others', async () => {
    const world = evictionWorld({ objects: [budgetObject(), ...zonesObjects()] });
    world.env.replaceServer((request) => {
      const isBad = request.method === 'PATCH' && request.pathname.endsWith('ingester-zone-a-0');
      return isBad && world.env.clock.nowMs() < Date.UTC(2026, 0, 15, 12, 2) ? { lost: 'before-apply' } : world.api.serve(request);
    });
    const { results } = observe(world);
    await world.env.advance(30_000);
    expect(results.filter((result) => result === 'set')).toHaveLength(8);
    expect(world.log[0]).toEqual({ level: 'warn', message: 'ready time of a pod could not be written' });
    await world.env.advance(180_000);
    expect(results.filter((result) => result === 'set')).toHaveLength(9);
  });

  it('is retried only together with all others if it fails for good', async () => {
    const world = evictionWorld({ objects: [budgetObject(), ...zonesObjects()], forbidden: ['patch pods'] });
    const { results } = observe(world);
    await world.env.advance(290_000);
    expect(results).toHaveLength(9);
    await world.env.advance(20_000);
    expect(results).toHaveLength(18);
  });

  it('is no failure if the pod has changed', async () => {
    const world = evictionWorld({ objects: [budgetObject(), one()] });
    let conflicts = 0;
    world.env.replaceServer((request) => {
      if (request.method !== 'PATCH' || conflicts > 0) return world.api.serve(request);
      conflicts += 1;
      world.api.change('pods', 'mimir', 'ingester-zone-a-0', { metadata: { labels: { touched: 'yes' } } });
      return status(409, 'Conflict');
    });
    const { results } = observe(world);
    await world.env.advance(10_000);
    expect([results, conflicts, world.log]).toEqual([['set'], 1, []]);
  });
});

it('leaves no timer and no watch behind', async () => {
  const world = evictionWorld({ objects: [budgetObject(), ...zonesObjects()] });
  const { times, followed } = observe(world);
  await world.env.advance(10_000);
  times.stop();
  followed.stop();
  await world.env.advance(200_000);
  expect([world.env.timerCount(), world.env.openWatchCount()]).toEqual([0, 0]);
});
