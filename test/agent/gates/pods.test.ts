import { describe, expect, it } from 'vitest';
import type { PodRequest, PodResponse } from '../../../agent/env.ts';
import { availabilityClient, type GatedPodsOptions, probeClient } from '../../../agent/gates/pods.ts';
import { viewGroup } from '../../../engine/observe/view.ts';
import { advanceRun } from '../../../engine/run/run.ts';
import type { RunState } from '../../../engine/run/run-state.ts';
import { group } from '../../kit/groups.ts';
import { kitNowMs, newRevision, outdatedStatefulSet, type PodChanges } from '../../kit/objects.ts';
import { contextWith, ledgerOf, runOf } from '../../kit/questions.ts';
import { snapshotOf } from '../../kit/snapshots.ts';
import { virtualEnv } from '../../kit/virtual-env.ts';

const ingester = group({ zones: ['a', 'b'] });
const target = { a: newRevision, b: newRevision };
const endpoint = { scheme: 'http', port: 8080, path: '/ready?deep=1', timeout: '5s' } as const;
const up: PodResponse = { status: 200, body: '' };

type Answer = (request: PodRequest) => Promise<PodResponse>;

function world(answer: Answer, { replicas = 3, updated = 3, ageMs = 0, isUnread = false } = {}) {
  const env = virtualEnv();
  const asked: PodRequest[] = [];
  const sets = ['a', 'b'].map((zone) => outdatedStatefulSet({ name: `ingester-zone-${zone}`, replicas }));
  const changes: PodChanges = Object.fromEntries(Array.from({ length: updated }, (_, ordinal) => [ordinal, { revision: newRevision }]));
  const pods = isUnread ? [{ namespace: 'mimir', statefulSet: 'ingester-zone-b', pods: { unknown: 'forbidden' } }] : [];
  const snapshot = snapshotOf({ groups: [ingester], statefulSets: sets, podChanges: { 'ingester-zone-a': changes }, pods });
  const options: GatedPodsOptions = {
    env: {
      clock: env.clock,
      pods: {
        call: (request) => {
          asked.push(request);
          return answer(request);
        },
      },
    },
    clusterDomain: 'cluster.local.',
    seen: () => ({ view: viewGroup(snapshot, ingester), ageMs }),
    run: (): RunState => ({ ...runOf(), target, previous: {}, waveAvailableMs: kitNowMs }),
  };
  return { env, asked, options };
}

const asked = { atMs: kitNowMs, timeoutMs: 60_000 };

/** The reading, or the problem. */
async function read(given: ReturnType<typeof world>, timeoutMs = asked.timeoutMs): Promise<unknown> {
  const reading = probeClient(endpoint, given.options).query({ ...asked, timeoutMs });
  return await given.env.finish(reading.catch((error: Error) => error.message));
}

describe('a probe of the pods', () => {
  it('calls every updated pod once, and counts the pods that do not answer 2xx', async () => {
    const given = world(
      async ({ url }) => {
        if (url.includes('-a-0.')) return { status: 503, body: 'not now' };
        if (url.includes('-a-1.')) return { status: 302, body: '' };
        if (url.includes('-a-2.')) throw new Error('connect ECONNREFUSED');
        return { status: 204, body: '' };
      },
      { replicas: 5, updated: 4 },
    );
    expect(await read(given)).toEqual({ atMs: kitNowMs, result: 'value', value: 3 });
    expect(given.asked.map(({ method, url }) => `${method} ${url}`)).toEqual(
      [0, 1, 2, 3].map((ordinal) => `GET http://ingester-zone-a-${ordinal}.ingester-zone-a.mimir.svc.cluster.local.:8080/ready?deep=1`),
    );
    expect(given.asked[0]).toMatchObject({ timeoutMs: 5_000, site: 'gate.probe' });
  });

  it('is 0 when all of them do', async () => {
    expect(await read(world(async () => up))).toEqual({ atMs: kitNowMs, result: 'value', value: 0 });
  });

  it('has no data while no pod is updated', async () => {
    const given = world(async () => up, { updated: 0 });
    expect(await read(given)).toEqual({ atMs: kitNowMs, result: 'noData' });
    expect(given.asked).toEqual([]);
  });

  it('gives each call a time limit, and is an error if a pod could not be called', async () => {
    let given: ReturnType<typeof world> | undefined;
    const hang: Answer = ({ timeoutMs }) =>
      new Promise((_, reject) => given?.env.timers.after(timeoutMs, () => reject(new Error('no whole answer'))));
    given = world(hang, { replicas: 100, updated: 100 });
    // 32 at a time, 5 s each: the last four begin after 15 s.
    expect(await read(given)).toEqual({ atMs: kitNowMs, result: 'value', value: 100 });
    given = world(hang, { replicas: 100, updated: 100 });
    expect(await read(given, 15_000)).toBe('4 pods of 100 could not be called within 15s');
    // A short period leaves each pod half of it.
    given = world(hang);
    expect(await read(given, 2_000)).toEqual({ atMs: kitNowMs, result: 'value', value: 3 });
    expect(given.asked.map(({ timeoutMs }) => timeoutMs)).toEqual([1_000, 1_000, 1_000]);
  });

  it('calls the pods that returned from an unfinished run', async () => {
    const unfinished = runOf({ target: { a: 'rev-3', b: 'rev-3' }, previous: target, lastDisruptionMs: kitNowMs - 1 });
    const statefulSets = ['a', 'b'].map((zone) => outdatedStatefulSet({ name: `ingester-zone-${zone}` }));
    const run = advanceRun(contextWith(ingester, { statefulSets, ledgers: [ledgerOf({ run: unfinished })] }))?.run;
    expect(run?.kind).toBe('rollback');
    const given = world(async () => up);
    const reading = await read({ ...given, options: { ...given.options, run: () => run } });
    expect([reading, given.asked.length]).toEqual([{ atMs: kitNowMs, result: 'value', value: 0 }, 3]);
  });

  it('is an error while the pods are unknown, or the watch was silent for too long', async () => {
    expect(await read(world(async () => up, { isUnread: true }))).toBe('the pods of ingester-zone-b could not be read: forbidden');
    expect(await read(world(async () => up, { ageMs: 120_001 }))).toBe('the last update of the pods is older than 2m');
    const unseen = world(async () => up);
    expect(await read({ ...unseen, options: { ...unseen.options, seen: () => undefined } })).toBe('the pods are unknown');
    expect(await read({ ...unseen, options: { ...unseen.options, run: () => undefined } })).toBe('the pods are unknown');
  });

  it('counts a pod without an address as failed', async () => {
    const given = world(async () => up, { updated: 1 });
    const probe = probeClient({ ...endpoint, path: '/%zz' }, given.options).query(asked);
    expect(await given.env.finish(probe)).toEqual({ atMs: kitNowMs, result: 'value', value: 1 });
    expect(given.asked).toEqual([]);
  });
});

describe('the availability of the pods', () => {
  it('is read from the cache, without a call', async () => {
    const given = world(async () => up, { updated: 2 });
    const ask = (minReadySeconds: number) => availabilityClient({ minReadySeconds }, given.options).query(asked);
    expect(await ask(0)).toEqual({ atMs: kitNowMs, result: 'value', value: 0 });
    expect(await ask(86_400 * 8)).toEqual({ atMs: kitNowMs, result: 'value', value: 2 });
    expect(given.asked).toEqual([]);
  });

  it('is an error if the watch of pods was silent for too long', async () => {
    const given = world(async () => up, { ageMs: 180_000 });
    await expect(availabilityClient({ minReadySeconds: 0 }, given.options).query(asked)).rejects.toThrow(
      'the last update of the pods is older than 2m',
    );
  });
});
