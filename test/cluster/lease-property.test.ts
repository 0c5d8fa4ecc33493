import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ModelApi } from '../kit/model-server.ts';
import { rounds } from '../kit/share.ts';
import { type Serve, seededRandom, type VirtualEnv, virtualEnv } from '../kit/virtual-env.ts';
import { type Process, startProcess } from './contending.ts';

const stepMs = 100;

/** Answers take up to 20 ms; some are lost, some requests take effect late. */
function network(api: ModelApi, env: VirtualEnv, random: () => number, share: () => number): Serve {
  const wait = (delayMs: number) => new Promise<void>((resolve) => void env.timers.after(delayMs, resolve));
  return async (request) => {
    await wait(random() * 10);
    if (random() >= share()) return { ...(await api.serve(request)), delayMs: random() * 10 };
    switch (Math.floor(random() * 4)) {
      case 0:
        return { lost: 'before-apply' };
      case 1:
        await api.serve(request);
        return { lost: 'reply', delayMs: random() * 4000 };
      case 2:
        await wait(random() * 40_000);
        return api.serve(request);
      default:
        return { ...(await api.serve(request)), delayMs: random() * 4000 };
    }
  };
}

function world(seed: number, faults: number, rates: readonly number[]) {
  const env = virtualEnv({ seed });
  const random = seededRandom(seed);
  let share = faults;
  env.replaceServer(network(new ModelApi({ env, seed }), env, random, () => share));
  const processes = rates.map((rate, index) => startProcess(env, { identity: `p${index}`, rate, seed: seed + index }));
  const calm = (): void => {
    share = 0;
  };
  return { random, env, processes, calm };
}

const acting = (processes: readonly Process[]): readonly Process[] =>
  processes.filter(({ lease, isPaused }) => !isPaused() && lease.mayAct(0));

describe('processes that contend for a Lease', () => {
  it('S17, S18: never act at the same time, and change holders only with a larger epoch, with any pauses, networks and clocks', async () => {
    const rate = fc.double({ min: 0.85, max: 1.15, noNaN: true });
    await fc.assert(
      fc.asyncProperty(fc.integer(), fc.array(rate, { minLength: 2, maxLength: 3 }), async (seed, rates) => {
        const { random, env, processes } = world(seed, 0.2, rates);
        const epochs = new Map<number, Process>();
        let largest = 0;
        for (let step = 0; step < 1200; step++) {
          await env.advance(stepMs);
          const now = acting(processes);
          expect(now.length).toBeLessThanOrEqual(1);
          for (const process of now) {
            const epoch = process.lease.epoch() ?? -1;
            expect(epoch).toBeGreaterThanOrEqual(largest);
            expect(epochs.get(epoch) ?? process).toBe(process);
            epochs.set(epoch, process);
            largest = epoch;
          }
          const [one] = processes.filter(() => random() < 0.01);
          if (random() < 0.5) one?.pause(random() * 40_000);
          else one?.setNetwork(random() < 0.5);
        }
        for (const { lease } of processes) lease.stop();
      }),
      { numRuns: rounds(40, 12) },
    );
  });

  it('L3: a new holder acts within the duration and 1.2 retry periods after a crash', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer(), fc.integer({ min: 0, max: 6000 }), async (seed, whenMs) => {
        const { env, processes } = world(seed, 0, [1, 1]);
        await env.advance(5000 + whenMs);
        const [holder] = acting(processes);
        holder?.lease.stop();
        const others = processes.filter((process) => process !== holder);
        const crashedMs = env.clock.monotonicMs();
        await env.until(() => acting(others).length === 1, 60_000);
        expect(env.clock.monotonicMs() - crashedMs).toBeLessThanOrEqual(15_000 + 2400 + 100);
      }),
      { numRuns: 60 },
    );
  });

  it('L3: a new holder acts within 1.2 retry periods after a release', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer(), fc.integer({ min: 0, max: 6000 }), async (seed, whenMs) => {
        const { env, processes } = world(seed, 0, [1, 1]);
        await env.advance(5000 + whenMs);
        const [holder] = acting(processes);
        const others = processes.filter((process) => process !== holder);
        await env.finish(holder?.lease.release() ?? Promise.reject(new Error('nobody holds it')));
        const releasedMs = env.clock.monotonicMs();
        await env.until(() => acting(others).length === 1, 60_000);
        expect(env.clock.monotonicMs() - releasedMs).toBeLessThanOrEqual(2400 + 100);
      }),
      { numRuns: 60 },
    );
  });

  it('have a holder again after every failure ends', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer(), async (seed) => {
        const { random, env, processes, calm } = world(seed, 0.2, [1, 1, 1]);
        for (let step = 0; step < 20; step++) {
          await env.advance(2000);
          processes[Math.floor(random() * 3)]?.pause(random() * 20_000);
        }
        calm();
        await env.advance(120_000);
        expect(processes.filter(({ lease }) => lease.epoch() !== undefined).length).toBe(1);
      }),
      { numRuns: 20 },
    );
  });
});
