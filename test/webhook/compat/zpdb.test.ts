import { afterEach, describe, expect, it } from 'vitest';
import { isUnknown } from '../../../engine/snapshot.ts';
import { type ObservedConfiguration, startZoneBudgets, unusableFor, type ZoneBudgets } from '../../../webhook/compat/zpdb.ts';
import { followedBudgets } from '../../kit/followed.ts';
import { budgetObject } from './eviction-objects.ts';
import { type EvictionWorld, evictionWorld } from './eviction-world.ts';

const started: { readonly stop: () => void }[] = [];
afterEach(() => {
  for (const budgets of started.splice(0)) budgets.stop();
});

function follow(world: EvictionWorld, namespaces?: readonly string[]) {
  const observed: ObservedConfiguration[] = [];
  const env = world.webhookEnv();
  const followed = followedBudgets(env, namespaces);
  const budgets = startZoneBudgets({
    log: env.log,
    followed,
    onObserved: (result: ObservedConfiguration) => void observed.push(result),
  });
  started.push(budgets, followed);
  return { budgets, observed, followed };
}

function limits(budgets: ZoneBudgets, namespace = 'mimir'): unknown {
  const inForce = budgets.inForce(namespace);
  return isUnknown(inForce) ? inForce.unknown : inForce.usable.map(({ name, maxUnavailable }) => `${name}=${maxUnavailable}`);
}

const kindKey = 'rollout-operator.grafana.com/v1/zoneawarepoddisruptionbudgets';
const invalid = { maxUnavailable: 5, maxUnavailablePercentage: 5 };

async function settled(options: Parameters<typeof evictionWorld>[0], namespaces?: readonly string[]) {
  const world = evictionWorld(options);
  const following = follow(world, namespaces);
  await world.env.until(() => following.budgets.isSettled());
  return { world, ...following };
}

describe('the budgets in force', () => {
  it('follow additions, updates and deletions', async () => {
    const { world, budgets, observed } = await settled({ objects: [budgetObject()] });
    expect(limits(budgets)).toEqual(['ingester-rollout=1']);
    world.put(budgetObject({ maxUnavailable: 4 }));
    await world.env.settle();
    expect(limits(budgets)).toEqual(['ingester-rollout=4']);
    world.api.remove(kindKey, 'mimir', 'ingester-rollout');
    await world.env.settle();
    expect(limits(budgets)).toEqual([]);
    expect(observed).toEqual(['updated', 'updated', 'deleted']);
  });

  it('keep the last valid version when an update is not valid, and say so', async () => {
    const { world, budgets, observed } = await settled({ objects: [budgetObject()] });
    world.put(budgetObject(invalid));
    await world.env.settle();
    expect(limits(budgets)).toEqual(['ingester-rollout=1']);
    expect(world.log).toEqual([{ level: 'error', message: 'invalid ZoneAwarePodDisruptionBudget' }]);
    world.put(budgetObject({ maxUnavailable: 2 }));
    await world.env.settle();
    expect(limits(budgets)).toEqual(['ingester-rollout=2']);
    expect(observed).toEqual(['updated', 'invalid', 'updated']);
  });

  it('ignore a version that only changes labels', async () => {
    const { world, budgets, observed } = await settled({ objects: [budgetObject()] });
    world.api.change(kindKey, 'mimir', 'ingester-rollout', { metadata: { labels: { team: 'x' } } });
    await world.env.settle();
    expect([limits(budgets), observed]).toEqual([['ingester-rollout=1'], ['updated', 'ignored']]);
  });

  it('a budget that was never valid is named, with the pods it is meant for', async () => {
    const { world, budgets, observed } = await settled({ objects: [budgetObject(invalid)] });
    const inForce = budgets.inForce('mimir');
    if (isUnknown(inForce)) throw new Error(inForce.unknown);
    expect(inForce.usable).toEqual([]);
    expect(unusableFor(inForce, { 'rollout-group': 'ingester' })?.name).toBe('ingester-rollout');
    expect(unusableFor(inForce, { 'rollout-group': 'other' })).toBeUndefined();
    world.api.remove(kindKey, 'mimir', 'ingester-rollout');
    await world.env.settle();
    expect([limits(budgets), observed]).toEqual([[], ['invalid', 'delete-ignored']]);
  });

  it('a budget whose selector cannot be read may be meant for every pod', async () => {
    const { budgets } = await settled({ objects: [budgetObject({ selector: { matchLabels: { zone: 1 } } })] });
    const inForce = budgets.inForce('mimir');
    expect(isUnknown(inForce) ? inForce : unusableFor(inForce, { app: 'web' })?.problem).toContain('is not a map of text');
  });

  it('a deletion that no watch told of is found by the next list', async () => {
    const { world, budgets } = await settled({ objects: [budgetObject()] });
    world.api.frozenPlural = 'zoneawarepoddisruptionbudgets';
    world.api.remove(kindKey, 'mimir', 'ingester-rollout');
    await world.env.settle();
    expect(limits(budgets)).toEqual(['ingester-rollout=1']);
    await world.env.until(() => JSON.stringify(limits(budgets)) === '[]', 900_000);
  });

  it('a recreated budget is not the old one, with any generation', async () => {
    const { world, budgets } = await settled({ objects: [budgetObject()] });
    for (const maxUnavailable of [2, 3, 4]) world.put(budgetObject({ maxUnavailable }));
    world.api.frozenPlural = 'zoneawarepoddisruptionbudgets';
    await world.env.settle();
    world.api.remove(kindKey, 'mimir', 'ingester-rollout');
    world.put(budgetObject({ maxUnavailable: 7 }));
    await world.env.until(() => JSON.stringify(limits(budgets)) === '["ingester-rollout=7"]', 900_000);
  });

  it('of namespaces that are watched, and of no other', async () => {
    const { budgets } = await settled({ objects: [budgetObject()] }, ['mimir']);
    expect([limits(budgets), limits(budgets, 'loki')]).toEqual([
      ['ingester-rollout=1'],
      'namespace loki is not watched for zoneawarepoddisruptionbudgets',
    ]);
  });

  it('are unknown while nothing has been listed, and stay known when the server goes away', async () => {
    const world = evictionWorld({ objects: [budgetObject()] });
    const { budgets } = follow(world);
    expect(limits(budgets)).toBe('zoneawarepoddisruptionbudgets have not been listed yet');
    await world.env.until(() => budgets.isSettled());
    world.env.replaceServer(() => ({ lost: 'before-apply' }));
    world.api.cutWatches();
    await world.env.advance(120_000);
    expect(limits(budgets)).toEqual(['ingester-rollout=1']);
  });

  it('are empty where the kind is not installed', async () => {
    const { budgets } = await settled({ objects: [], customKinds: {} });
    expect(limits(budgets)).toEqual([]);
  });

  it('that were known before are in force for a later listener, and a listener that ended hears no more', async () => {
    const { world, budgets, followed } = await settled({ objects: [budgetObject()] });
    const log = world.webhookEnv().log;
    const later = startZoneBudgets({ log, followed });
    expect(limits(later)).toEqual(['ingester-rollout=1']);
    budgets.stop();
    world.put(budgetObject({ maxUnavailable: 4 }));
    await world.env.settle();
    expect([limits(later), limits(budgets)]).toEqual([['ingester-rollout=4'], ['ingester-rollout=1']]);
  });

  it('leave no timer and no watch behind', async () => {
    const { world, budgets, followed } = await settled({ objects: [budgetObject()] });
    budgets.stop();
    followed.stop();
    await world.env.advance(200_000);
    expect([world.env.timerCount(), world.env.openWatchCount()]).toEqual([0, 0]);
  });
});
