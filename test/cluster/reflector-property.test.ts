import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareResourceVersions, resources } from '../../cluster/request/resource.ts';
import { type Change, Reflector } from '../../cluster/watch/reflector.ts';
import { ModelApi } from '../kit/model-server.ts';
import { type Serve, type Served, seededRandom, status, type VirtualEnv, VirtualWatch, virtualEnv } from '../kit/virtual-env.ts';
import { type View, viewOf } from './following.ts';

/** Does to lists and watches what networks, proxies and servers that lag behind do. Events are never swallowed: that only a list can heal. */
function unreliable(api: ModelApi, env: VirtualEnv, random: () => number, share: () => number): Serve {
  let past: Served | undefined;
  return async (request) => {
    await new Promise<void>((resolve) => void env.timers.after(random() * 50, resolve));
    const served = await api.serve(request);
    if (random() < share()) {
      const failures: readonly Served[] = [
        { lost: 'reply' },
        { lost: 'reply', forever: true },
        status(410, 'Expired'),
        status(503, 'ServiceUnavailable'),
        status(429, 'TooManyRequests'),
        status(403, 'Forbidden'),
      ];
      const failure = failures[Math.floor(random() * failures.length)];
      if (failure !== undefined) {
        if ('watch' in served) served.watch.end();
        return failure;
      }
    }
    if ('watch' in served) return { watch: disturbed(served.watch, random, share) };
    if (random() < share() && past !== undefined && !request.query.has('continue')) return past;
    if (!request.query.has('continue') && 'body' in served && !JSON.stringify(served.body).includes('"continue"')) past = served;
    return served;
  };
}

/** The same lines, some late, twice, out of order or cut, on a stream that stalls or breaks. */
function disturbed(inner: VirtualWatch, random: () => number, share: () => number): VirtualWatch {
  const outer = new VirtualWatch();
  const earlier: string[] = [];
  let isStalled = false;
  const stream = inner.connect((line) => {
    if (isStalled) return;
    if (random() >= share()) outer.send(line);
    else {
      switch (Math.floor(random() * 5)) {
        case 0:
          outer.send(line);
          outer.send(line);
          break;
        case 1:
          outer.send(line.slice(0, Math.floor(random() * line.length)) || '{');
          break;
        case 2:
          outer.send(line);
          outer.send(earlier[Math.floor(random() * earlier.length)] ?? line);
          break;
        case 3:
          isStalled = true;
          break;
        default:
          outer.send(line);
          outer.end('reset');
      }
    }
    earlier.push(line);
  });
  outer.onOver(() => stream.close());
  inner.onOver(() => outer.end());
  return outer;
}

describe('a reflector on an unreliable server', () => {
  it('S21: never goes back, reports changes that add up, and in the end equals the server', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer(), fc.integer({ min: 1, max: 60 }), async (seed, steps) => {
        const env = virtualEnv({ seed });
        const api = new ModelApi({ env, seed });
        const random = seededRandom(seed);
        let share = 0.25;
        env.replaceServer(unreliable(api, env, random, () => share));
        const told = new Map<string, View>();
        const reflector = new Reflector<View>({
          env,
          resource: resources.configMaps,
          namespace: 'ns',
          project: viewOf,
          onChange: (change) => take(told, change),
          site: 'test',
        });
        let mark = '0';
        for (let step = 0; step < steps; step++) {
          const name = `o-${Math.floor(random() * 6)}`;
          const roll = random();
          if (roll < 0.25) api.remove('configmaps', 'ns', name);
          else if (roll < 0.3) api.compact();
          else if (roll < 0.35) api.cutWatches();
          else if (roll < 0.4) api.server.lagFrontEnd(0, env.clock.monotonicMs() + random() * 20_000);
          else api.put('configmaps', { metadata: { namespace: 'ns', name }, data: { value: String(step) } });
          await env.advance(random() < 0.1 ? random() * 200_000 : random() * 2000);
          const now = reflector.resourceVersion() ?? '0';
          expect(compareResourceVersions(now, mark)).toBeGreaterThanOrEqual(0);
          mark = now;
        }
        share = 0;
        // A refusal is asked about again after 5 minutes at most, a silent watch after 90 seconds.
        await env.advance(600_000);
        const stored = (views: readonly View[]) =>
          views.map(({ name, uid, version, value }) => [name, uid, version, value].join(' ')).sort();
        const expected = stored(api.list('configmaps').map((object) => viewOf(object)));
        expect(stored(reflector.store.list())).toEqual(expected);
        expect(stored([...told.values()])).toEqual(expected);
        expect(reflector.state().kind).toBe('synced');
        reflector.stop();
        // A watch that is being opened is closed when its answer arrives, after 50 ms at most.
        await env.advance(100);
        expect([env.timerCount(), env.openWatchCount()]).toEqual([0, 0]);
      }),
      { numRuns: 200 },
    );
  });
});

/** What is told must fit together: nothing is added twice, nothing unknown changes or goes, no object becomes older. */
function take(told: Map<string, View>, { kind, name, view, before }: Change<View>): void {
  const known = told.get(name);
  expect([kind, before]).toEqual([known === undefined ? 'added' : kind === 'added' ? 'modified' : kind, known]);
  if (view === undefined) told.delete(name);
  else {
    if (known !== undefined)
      expect([view.uid, (compareResourceVersions(view.version, known.version) ?? -1) > 0]).toEqual([known.uid, true]);
    told.set(name, view);
  }
}
