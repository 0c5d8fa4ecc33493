// Whatever the objects of a review hold, the endpoints come to an answer, and deny only what makes a marked workload smaller.
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../cluster/request/json.ts';
import { noDownscale } from '../../../webhook/compat/no-downscale.ts';
import { prepareDownscale } from '../../../webhook/compat/prepare/downscale.ts';
import { replicaChange } from '../../../webhook/compat/replicas.ts';
import type { Review } from '../../../webhook/review/review.ts';
import { seededRandom } from '../../kit/virtual-env.ts';
import { scenarioWorld } from './scenarios/world.ts';

const rounds = 3_000;

/** Objects that are nearly right, each with something else wrong. */
function drawn(random: () => number): JsonObject | undefined {
  const pick = (...items: readonly unknown[]): unknown => items[Math.floor(random() * items.length)];
  if (random() < 0.03) return undefined;
  const marks = { 'grafana.com/no-downscale': 'true', 'grafana.com/prepare-downscale': 'true' };
  return {
    apiVersion: pick('apps/v1', 'apps/v1', 'apps/v1', 'autoscaling/v1', 'v1', 'apps/v1beta1', '', null, 7),
    kind: pick('StatefulSet', 'StatefulSet', 'Deployment', 'ReplicaSet', 'Scale', 'Pod', 'DaemonSet', 'toString', null, []),
    metadata: pick(
      { name: 'zone-a', labels: marks },
      { name: 'zone-a', labels: marks },
      { labels: {} },
      { labels: [] },
      { labels: null },
      null,
      'x',
    ),
    spec: pick({ replicas: 3 }, { replicas: 2 }, { replicas: 0 }, { replicas: null }, { replicas: 1.5 }, { replicas: '3' }, {}, null, []),
  };
}

function reviewOf(random: () => number): Review {
  const object = drawn(random);
  const oldObject = drawn(random);
  const resource = ['statefulsets', 'deployments', 'constructor', ''][Math.floor(random() * 4)] ?? '';
  return {
    apiVersion: 'admission.k8s.io/v1',
    uid: 'u',
    kind: { group: '', version: '', kind: '' },
    resource: { group: 'apps', version: 'v1', resource },
    subresource: '',
    operation: 'UPDATE',
    namespace: random() < 0.9 ? 'one' : '',
    name: random() < 0.9 ? 'zone-a' : '',
    user: { name: 'jane', groups: [] },
    ...(object !== undefined && { object }),
    ...(oldObject !== undefined && { oldObject }),
    dryRun: false,
  };
}

describe('reviews of every kind', () => {
  it('have the same answers with and without the handlers, and only a downscale is denied', async () => {
    const random = seededRandom(11);
    const world = scenarioWorld();
    const endpoints = [noDownscale(world.env), prepareDownscale(world.env, { clusterDomain: 'cluster.local.' })];
    const kinds = new Map<string, number>();
    for (let round = 0; round < rounds; round++) {
      const review = reviewOf(random);
      const change = replicaChange(review);
      kinds.set(change.kind, (kinds.get(change.kind) ?? 0) + 1);
      for (const endpoint of endpoints) {
        const answers = [await endpoint.handle(review, world.newCall()), endpoint.onFailure(review, 'it failed')];
        for (const answer of answers) {
          if (change.kind !== 'shrinkage') expect(answer.allowed).toBe(true);
          expect(answer.code).toBeUndefined();
          expect((answer.warnings ?? []).length).toBeLessThanOrEqual(1);
        }
      }
    }
    expect([...kinds.keys()].sort()).toEqual(['countless', 'growth', 'null', 'same', 'shrinkage', 'unreadable']);
    expect(world.calls.filter(({ call }) => !call.startsWith('GET ')).length).toBe(0);
  });

  it('respect the range of replicas in Kubernetes', () => {
    const object = (replicas: number): JsonObject => ({ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: {}, spec: { replicas } });
    expect(replicaChange({ oldObject: object(2_147_483_648), object: object(0) })).toMatchObject({ kind: 'unreadable', side: 'old' });
    expect(replicaChange({ oldObject: object(2_147_483_647), object: object(0) })).toMatchObject({ kind: 'shrinkage' });
  });
});
