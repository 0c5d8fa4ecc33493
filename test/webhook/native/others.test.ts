// What the API server takes to be nobody's is judged like everything else; only what cannot be told passes.
import { expect, it } from 'vitest';
import { deletionOf, enforceWorld, evictionOf, scaleOf } from './enforce-world.ts';

const call = (world: ReturnType<typeof enforceWorld>) => ({
  deadlineMs: world.env.clock.monotonicMs() + 4000,
  signal: new AbortController().signal,
});

it('a StatefulSet that became protected meanwhile is protected there too', async () => {
  const world = enforceWorld({ spec: { protect: { noDownscale: true } } });
  const { endpoint } = await world.start();
  expect(endpoint.others.path).toBe('/admission/enforce-others');
  expect(await world.env.finish(endpoint.others.handle(scaleOf(world.set('a'), 1), call(world)))).toMatchObject({
    allowed: false,
    code: 403,
  });
});

it('an unknown fact passes with a warning if the endpoint itself denies it', async () => {
  const world = enforceWorld({ kind: 'none' });
  const process = await world.start();
  world.api.hold();
  world.workloads.create({ name: 'later' });
  process.cutOff();
  const set = world.api.get('statefulsets.apps', 'mimir', 'later');
  const pod = world.api.get('pods', 'mimir', 'later-0');
  if (set === undefined || pod === undefined) throw new Error('it was not created');
  for (const review of [scaleOf(set, 0), deletionOf(set), evictionOf(pod)]) {
    expect(await world.env.finish(process.ask(review))).toMatchObject({ allowed: false, code: 429 });
    const answer = await world.env.finish(process.endpoint.others.handle(review, call(world)));
    expect(answer).toMatchObject({ allowed: true, warnings: [expect.stringContaining('was not judged')] });
    expect(process.endpoint.others.onFailure(review, 'no answer in time')).toMatchObject({ allowed: true });
  }
});

it('an unknown fact about a member is denied there too, because the API server may have read it before it was a member', async () => {
  const world = enforceWorld({});
  const process = await world.start();
  world.api.hold();
  await world.env.advance(20_000);
  process.cutOff();
  const answer = await world.env.finish(process.endpoint.others.handle(scaleOf(world.set('a'), 1), call(world)));
  const message = expect.stringContaining('when the agent read StatefulSet ingester-zone-a');
  expect(answer).toMatchObject({ allowed: false, code: 429, message });
});
