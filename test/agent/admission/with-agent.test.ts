import { describe, expect, it } from 'vitest';
import { sleep } from '../../../cluster/env.ts';
import { narrowed } from '../../../install/narrowing.ts';
import type { ModelObject } from '../../../simulation/server/request.ts';
import type { Answer } from '../../../webhook/review/review.ts';
import { startProcess } from '../../kit/agent-process.ts';
import { groups, rolled, sets } from '../../kit/cluster.ts';
import { shareOf } from '../../kit/share.ts';
import { type Serve, type ServedRequest, seededRandom, status } from '../../kit/virtual-env.ts';
import { mutating } from '../../webhook/certificates/world.ts';
import {
  deletionOf,
  type EnforceWorld,
  enforceWorld,
  evictionOf,
  scaleOf,
  type WebhookProcess,
} from '../../webhook/native/enforce-world.ts';

const none = Promise.resolve(undefined);
const person = { name: 'kim', groups: ['system:authenticated'] };

/** The server asks the webhooks in turn before it lets a pod go or a StatefulSet shrink, whoever asks for it. */
function admitting(world: EnforceWorld, webhooks: readonly WebhookProcess[]): readonly string[] {
  const denied: string[] = [];
  const { serve } = world.api;
  let turn = 0;
  const asked = async (request: ServedRequest): Promise<Answer | undefined> => {
    const [, plural, name = '', subresource] =
      /\/namespaces\/mimir\/(pods|statefulsets)\/([^/]+)(?:\/([^/]+))?$/.exec(request.pathname) ?? [];
    const object = plural === undefined ? undefined : world.api.get(plural === 'pods' ? plural : sets, 'mimir', name);
    if (object === undefined || request.method === 'GET') return undefined;
    const review = reviewOf(request, object, subresource);
    turn += 1;
    return review === undefined ? undefined : await webhooks[turn % webhooks.length]?.ask(review);
  };
  const admit: Serve = async (request) => {
    const answer = await asked(request);
    if (answer === undefined || answer.allowed) return serve(request);
    denied.push(`${request.site}: ${answer.message}`);
    return status(answer.code ?? 403, answer.reason ?? 'Forbidden', answer.message);
  };
  world.env.replaceServer(admit);
  return denied;
}

function reviewOf({ method, json }: ServedRequest, object: ModelObject, subresource: string | undefined) {
  if (method === 'DELETE') return deletionOf(object, { user: person });
  if (subresource === 'eviction') return evictionOf(object, { user: person });
  const { replicas } = ((json as { readonly spec?: { readonly replicas?: number } }).spec ?? {}) as { readonly replicas?: number };
  return object['kind'] === 'StatefulSet' && replicas !== undefined ? scaleOf(object, replicas, { user: person }) : undefined;
}

describe('an agent and webhooks over one group (S30)', () => {
  it('never have two zones down at once, whichever client deletes pods, and the rollout completes', async () => {
    let taken = 0;
    for (const seed of shareOf([1, 2, 3, 4, 5, 6], 3)) {
      const world = enforceWorld({ spec: { disruption: { maxUnavailable: 1 } } });
      const { env, api } = world;
      const webhooks = [
        await world.start({ name: 'webhook-1', latencyMs: 30, seed }),
        await world.start({ name: 'webhook-2', latencyMs: 30, seed: seed + 100 }),
      ];
      const deniedByServer = admitting(world, webhooks);
      startProcess({ env });
      await env.advance(5_000);
      world.rollTo('app:2');
      const random = seededRandom(seed);
      const drain = async (): Promise<void> => {
        for (let round = 0; round < 60; round += 1) {
          await sleep(env, 300 + random() * 2_000);
          const pods = api.list('pods', 'mimir').filter(({ metadata }) => metadata.deletionTimestamp === undefined);
          const pod = pods[Math.floor(random() * pods.length)];
          if (pod === undefined) continue;
          const path = `/api/v1/namespaces/mimir/pods/${pod.metadata.name}`;
          const eviction = { metadata: { name: pod.metadata.name }, deleteOptions: {} };
          const request =
            random() < 0.5
              ? { method: 'DELETE' as const, path, body: '{}' }
              : { method: 'POST' as const, path: `${path}/eviction`, body: JSON.stringify(eviction) };
          const response = await env.kubernetes.request({ ...request, timeoutMs: 10_000, site: 'person' });
          if (response.status < 300) taken += 1;
        }
      };
      await env.finish(drain(), 3_600_000);
      await env.until(() => rolled(world, 'app:2'), 3_600_000);
      expect(world.maxDown(), `seed ${seed}`).toEqual({ zones: 1, pods: 1 });
      await env.advance(20_000);
      // Whoever reads the ledger next sees that everything is over.
      const seen = await env.finish(
        webhooks[0]?.admission.guard.snapshot('mimir', [{ namespace: 'mimir', name: 'ingester' }], 1000) ?? none,
      );
      expect(seen?.ledgers[0]?.claims, `seed ${seed}`).toEqual([]);
      expect(deniedByServer.some((message) => message.startsWith('person'))).toBe(true);
      expect(deniedByServer.filter((message) => message.startsWith('act.'))).toEqual([]);
    }
    expect(taken).toBeGreaterThan(0);
  }, 120_000);

  it('only the agent lowers a replica count of the group through the webhook', async () => {
    const world = enforceWorld({ spec: { replicas: { count: 2 } } });
    const webhook = await world.start();
    const denied = admitting(world, [webhook]);
    const { agent } = startProcess({ env: world.env });
    await world.env.advance(120_000);
    const sizes = world.api.list('statefulsets.apps', 'mimir').map(({ spec }) => (spec as { readonly replicas: number }).replicas);
    expect(sizes).toEqual([2, 2, 2]);
    expect(denied).toEqual([]);
    expect(await world.env.finish(webhook.ask(scaleOf(world.set('a'), 1)))).toMatchObject({ allowed: false, code: 403 });
    // A webhook in the agent's own process judges by the same.
    expect(agent.guard.isSettled()).toBe(true);
    const own = await world.env.finish(agent.guard.snapshot('mimir', [{ namespace: 'mimir', name: 'ingester' }], 1000));
    expect(own).toMatchObject({ groups: [{ name: 'ingester' }], ledgers: [{ claims: [] }] });
  });
});

describe('the guard of an agent', () => {
  const group = (name: string) => ({ namespace: 'mimir', name });

  it('reports the uncovered StatefulSets of both groups of the strategy pinned that a request concerns', async () => {
    const world = enforceWorld({ spec: { rollout: { strategy: 'pinned' } } });
    world.workloads.create({ name: 'store' });
    const spec = { members: { zones: [{ name: 'only', statefulSet: 'store' }] }, rollout: { strategy: 'pinned' } };
    world.api.put(groups, { metadata: group('store'), spec });
    const row = { name: 'pinned.rollout-group.dev', clientConfig: { caBundle: 'eA==' } };
    const members = ['a', 'b', 'c'].map((zone) => ({ namespace: 'mimir', statefulSet: `ingester-zone-${zone}` }));
    const name = '0-rollout-group-pinned-mimir';
    world.api.put(mutating, { metadata: { name }, webhooks: narrowed([row], members.slice(1)) });
    const { agent } = startProcess({ env: world.env });
    await world.env.advance(5_000);
    const seen = () => world.env.finish(agent.guard.snapshot('mimir', [group('ingester'), group('store')], 1000));
    const coverage = `MutatingWebhookConfiguration ${name} does not cover mimir/ingester-zone-a, mimir/store yet`;
    expect((await seen()).webhookProblems).toEqual({ coverage });
  });
});
