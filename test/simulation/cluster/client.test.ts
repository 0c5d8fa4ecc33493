import { expect, it } from 'vitest';
import { hasError, policyObjects } from '../../../scripts/soak/groups/group-objects.ts';
import { Policies } from '../../../scripts/soak/groups/policies.ts';
import type { ReviewedRequest, Verdict } from '../../../simulation/cluster/admitted.ts';
import { Client } from '../../../simulation/cluster/client.ts';
import { policyResource } from '../../../simulation/objects.ts';
import type { GroupShape, WindowShape } from '../../../simulation/scenario.ts';
import { createScheduler } from '../../../simulation/scheduler.ts';
import { projectKinds } from '../../../simulation/server/kinds.ts';
import type { Json } from '../../../simulation/server/request.ts';
import { ModelServer } from '../../../simulation/server/server.ts';
import { defaultShape } from './world.ts';

const alice = { user: 'alice' };
const reference = { resource: 'configmaps', namespace: 'mimir', name: 'one' };

/** A client whose reviews wait until the test decides them. */
function world() {
  const scheduler = createScheduler(1);
  const server = new ModelServer({ scheduler, wallMs: () => 0, seed: 1, kinds: projectKinds });
  server.create(alice, 'configmaps', { metadata: { name: 'one', namespace: 'mimir' }, data: { count: '0' } });
  const reviews: { readonly request: ReviewedRequest; readonly decide: (verdict: Verdict) => void }[] = [];
  const client = new Client(server, (request, decide) => void reviews.push({ request, decide }));
  const allow = (): void => {
    const { request, decide } = reviews.shift() ?? {};
    if (request !== undefined) decide?.({ isAllowed: true, actor: request.actor, object: request.object ?? {} });
  };
  const count = (): unknown => (server.get('configmaps', 'mimir', 'one')?.['data'] as { readonly count?: string } | undefined)?.count;
  return { scheduler, server, client, reviews, allow, count };
}

const set = (count: string) => () => ({ data: { count } });

it('sends the requests for one object one after the other', () => {
  const { client, reviews, allow, count } = world();
  client.change(alice, reference, set('1'));
  client.change(alice, reference, ({ data }) => ({ data: { count: `2 after ${(data as Json)['count']}` } }));
  expect(reviews).toHaveLength(1);
  allow();
  expect(count()).toBe('1');
  allow();
  expect(count()).toBe('2 after 1');
});

it('reviews a patch again if the object changed meanwhile, and reports a denial', () => {
  const { server, client, reviews, allow, count } = world();
  const told: string[] = [];
  client.change(alice, reference, set('1'), { denied: () => told.push('denied'), done: () => told.push('done') });
  server.change({ user: 'bob' }, reference, { data: { other: 'x' } });
  allow();
  expect([count(), reviews.length]).toEqual(['0', 1]);
  reviews.shift()?.decide({ isAllowed: false, status: 403, message: 'no' });
  expect([count(), told]).toEqual(['0', ['denied']]);
});

it('reviews no change without an effect, and writes at once without webhooks', () => {
  const { server, client, reviews, count } = world();
  client.change(alice, reference, set('0'));
  expect(reviews).toEqual([]);
  new Client(server, undefined).change(alice, reference, set('3'));
  expect(count()).toBe('3');
});

it('restores policies whose creation with an error still waits for its review', () => {
  const { scheduler, server, client, reviews, allow } = world();
  const window: WindowShape = { kind: 'allow', actions: ['rollout'], inFlight: 'finishPod', ranges: [{ from: 0, to: 60 }] };
  const shape: GroupShape = { ...defaultShape, windows: [window] };
  const group = { namespace: 'mimir', group: 'ingester' };
  const policies = new Policies({ ...group, shape, client, server, scheduler, actor: alice, report: () => {}, directoryChanged: () => {} });
  policies.change({ to: 'invalid', forMs: 60_000 });
  policies.restore();
  while (reviews.length > 0) allow();
  const [stored, ...others] = server.list(policyResource, 'mimir');
  expect([others, hasError(stored)]).toEqual([[], false]);
  expect(stored?.['spec']).toEqual(policyObjects(shape, { namespace: 'mimir', name: 'ingester' })[0]?.['spec']);
});
