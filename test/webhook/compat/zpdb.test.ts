import { afterEach, describe, expect, it } from 'vitest';
import { countZoneBudgets } from '../../../agent/metrics/zone-budget-counter.ts';
import type { BudgetOutcome } from '../../../engine/observe/budget.ts';
import { isUnknown } from '../../../engine/snapshot.ts';
import { startZoneBudgets, unusableFor, type ZoneBudgets, zpdbValidation } from '../../../webhook/compat/zpdb.ts';
import type { Answer, Review } from '../../../webhook/review/review.ts';
import { followedBudgets } from '../../kit/followed.ts';
import { budgetObject } from './eviction-objects.ts';
import { type EvictionWorld, evictionReview, evictionWorld } from './eviction-world.ts';

const started: { readonly stop: () => void }[] = [];
afterEach(() => {
  for (const budgets of started.splice(0)) budgets.stop();
});

function follow(world: EvictionWorld, namespaces?: readonly string[]) {
  const observed: BudgetOutcome[] = [];
  const env = world.webhookEnv();
  const followed = followedBudgets(env, namespaces);
  const stopCounting = countZoneBudgets(env, followed, (outcome) => void observed.push(outcome));
  const counted = startZoneBudgets({ log: env.log, followed });
  const stop = (): void => {
    stopCounting();
    counted.stop();
  };
  const budgets = { ...counted, stop };
  started.push(budgets, followed);
  return { budgets, observed, followed };
}

function limits(budgets: ZoneBudgets, namespace = 'mimir'): unknown {
  const inForce = budgets.inForce(namespace);
  return isUnknown(inForce) ? inForce.unknown : inForce.usable.map(({ name, maxUnavailable }) => `${name}=${maxUnavailable}`);
}

const kindKey = 'zoneawarepoddisruptionbudgets.rollout-operator.grafana.com';
const invalid = { maxUnavailable: 5, maxUnavailablePercentage: 5 };

async function settled(options: Parameters<typeof evictionWorld>[0], namespaces?: readonly string[]) {
  const world = evictionWorld(options);
  const following = follow(world, namespaces);
  await world.env.until(() => following.budgets.isSettled());
  return { world, ...following };
}

describe('the current budgets', () => {
  it('follow additions, updates and deletions', async () => {
    const { world, budgets, observed } = await settled({ objects: [budgetObject()] });
    expect(limits(budgets)).toEqual(['ingester-rollout=1']);
    world.put(budgetObject({ maxUnavailable: 4 }));
    await world.env.advance(100);
    expect(limits(budgets)).toEqual(['ingester-rollout=4']);
    world.api.remove(kindKey, 'mimir', 'ingester-rollout');
    await world.env.advance(100);
    expect(limits(budgets)).toEqual([]);
    expect(observed).toEqual(['updated', 'updated', 'deleted']);
  });

  it('keep the last valid version if an update is invalid, and report it', async () => {
    const { world, budgets, observed } = await settled({ objects: [budgetObject()] });
    world.put(budgetObject(invalid));
    await world.env.advance(100);
    expect(limits(budgets)).toEqual(['ingester-rollout=1']);
    expect(world.log).toEqual([{ level: 'error', message: 'invalid ZoneAwarePodDisruptionBudget' }]);
    world.put(budgetObject({ maxUnavailable: 2 }));
    await world.env.advance(100);
    expect(limits(budgets)).toEqual(['ingester-rollout=2']);
    expect(observed).toEqual(['updated', 'invalid', 'updated']);
  });

  it('ignore a version that only changes labels', async () => {
    const { world, budgets, observed } = await settled({ objects: [budgetObject()] });
    world.api.change(kindKey, 'mimir', 'ingester-rollout', { metadata: { labels: { team: 'x' } } });
    await world.env.advance(100);
    expect([limits(budgets), observed]).toEqual([['ingester-rollout=1'], ['updated', 'ignored']]);
  });

  it('are counted again every four minutes, so that the rate of invalid versions over five minutes stays above 0', async () => {
    const { world, observed } = await settled({ objects: [budgetObject(), budgetObject({ ...invalid }, 'other')] });
    expect([...observed].sort()).toEqual(['invalid', 'updated']);
    await world.env.advance(3 * 240_000);
    expect(observed.slice(2).sort()).toEqual([...Array(3).fill('ignored'), ...Array(3).fill('invalid')].sort());
  });

  it('a budget that was never valid is named, with its pods', async () => {
    const { world, budgets, observed } = await settled({ objects: [budgetObject(invalid)] });
    const inForce = budgets.inForce('mimir');
    if (isUnknown(inForce)) throw new Error(inForce.unknown);
    expect(inForce.usable).toEqual([]);
    expect(unusableFor(inForce, { 'rollout-group': 'ingester' })?.name).toBe('ingester-rollout');
    expect(unusableFor(inForce, { 'rollout-group': 'other' })).toBeUndefined();
    world.api.remove(kindKey, 'mimir', 'ingester-rollout');
    await world.env.advance(100);
    expect([limits(budgets), observed]).toEqual([[], ['invalid', 'delete-ignored']]);
  });

  it('a budget with an unreadable selector may apply to every pod', async () => {
    const { budgets } = await settled({ objects: [budgetObject({ selector: { matchLabels: { zone: 1 } } })] });
    const inForce = budgets.inForce('mimir');
    expect(isUnknown(inForce) ? inForce : unusableFor(inForce, { app: 'web' })?.problem).toContain('is not a map of text');
  });

  it('a deletion that no watch reported is found by the next list', async () => {
    const { world, budgets } = await settled({ objects: [budgetObject()] });
    world.api.hold('zoneawarepoddisruptionbudgets.rollout-operator.grafana.com');
    world.api.remove(kindKey, 'mimir', 'ingester-rollout');
    await world.env.advance(100);
    expect(limits(budgets)).toEqual(['ingester-rollout=1']);
    await world.env.until(() => JSON.stringify(limits(budgets)) === '[]', 900_000);
  });

  it('a recreated budget is not the old one, with any generation', async () => {
    const { world, budgets } = await settled({ objects: [budgetObject()] });
    for (const maxUnavailable of [2, 3, 4]) world.put(budgetObject({ maxUnavailable }));
    world.api.hold('zoneawarepoddisruptionbudgets.rollout-operator.grafana.com');
    await world.env.advance(100);
    world.api.remove(kindKey, 'mimir', 'ingester-rollout');
    world.put(budgetObject({ maxUnavailable: 7 }));
    await world.env.until(() => JSON.stringify(limits(budgets)) === '["ingester-rollout=7"]', 900_000);
  });

  it('of watched namespaces only', async () => {
    const { budgets } = await settled({ objects: [budgetObject()] }, ['mimir']);
    expect([limits(budgets), limits(budgets, 'loki')]).toEqual([
      ['ingester-rollout=1'],
      'namespace loki is not watched for zoneawarepoddisruptionbudgets',
    ]);
  });

  it('are unknown before the first list, and stay known if the server is gone', async () => {
    const world = evictionWorld({ objects: [budgetObject()] });
    const { budgets } = follow(world);
    expect(limits(budgets)).toBe('zoneawarepoddisruptionbudgets have not been listed yet');
    await world.env.until(() => budgets.isSettled());
    world.env.replaceServer(() => ({ lost: 'before-apply' }));
    world.api.cutWatches();
    await world.env.advance(120_000);
    expect(limits(budgets)).toEqual(['ingester-rollout=1']);
  });

  it('are empty if the kind is not installed', async () => {
    const { budgets } = await settled({ objects: [], kinds: [] });
    expect(limits(budgets)).toEqual([]);
  });

  it('that were known before apply for a later listener, and an ended listener gets no more events', async () => {
    const { world, budgets, followed } = await settled({ objects: [budgetObject()] });
    const log = world.webhookEnv().log;
    const later = startZoneBudgets({ log, followed });
    expect(limits(later)).toEqual(['ingester-rollout=1']);
    budgets.stop();
    world.put(budgetObject({ maxUnavailable: 4 }));
    await world.env.advance(100);
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

type Json = Readonly<Record<string, unknown>>;

const endpoint = zpdbValidation();

function review(object: Json | undefined, overrides: Partial<Review> = {}): Review {
  const { object: _object, ...rest } = evictionReview('', {
    kind: { group: 'rollout-operator.grafana.com', version: 'v1', kind: 'ZoneAwarePodDisruptionBudget' },
    resource: { group: 'rollout-operator.grafana.com', version: 'v1', resource: 'zoneawarepoddisruptionbudgets' },
    subresource: '',
    ...overrides,
  });
  return object === undefined ? rest : { ...rest, object };
}

const call = { deadlineMs: 9000, signal: new AbortController().signal };
const validate = (object: Json | undefined, overrides?: Partial<Review>): Promise<Answer> =>
  endpoint.handle(review(object, overrides), call);
const message = async (spec: Json): Promise<string | undefined> => {
  const answer = await validate(budgetObject(spec));
  expect(answer).toEqual(
    answer.allowed ? { allowed: true, code: 200 } : { allowed: false, code: 400, reason: 'BadRequest', message: answer.message },
  );
  return answer.message?.replace('ZoneAwarePodDisruptionBudget mimir/ingester-rollout: ', '');
};

const pattern = 'ingester-zone-[a-z]-([0-9]+)';

describe('a budget that cannot be enforced is denied, with the first failure', () => {
  it.each<[string, Json, string]>([
    ['both limits, even 0', { maxUnavailable: 0, maxUnavailablePercentage: 0 }, 'maxUnavailable and maxUnavailablePercentage are both set'],
    ['a count that is text', { maxUnavailable: '1' }, 'maxUnavailable is not a whole number'],
    ['a count that is no whole number', { maxUnavailable: 1.5 }, 'maxUnavailable is not a whole number'],
    ['a negative count', { maxUnavailable: -1 }, 'maxUnavailable is -1; it must be 0 or more'],
    ['a percentage that is text', { maxUnavailablePercentage: '10' }, 'maxUnavailablePercentage is not a whole number'],
    ['a percentage below 0', { maxUnavailablePercentage: -1 }, 'maxUnavailablePercentage is -1; it must be 0 to 100'],
    ['a percentage above 100', { maxUnavailablePercentage: 101 }, 'maxUnavailablePercentage is 101; it must be 0 to 100'],
    ['a pattern that is no text', { podNamePartitionRegex: 5 }, 'podNamePartitionRegex is not text'],
    ['a group that is no number', { podNamePartitionRegex: '(', podNameRegexGroup: 'one' }, 'podNameRegexGroup is not a whole number'],
    ['a pattern that does not compile', { podNamePartitionRegex: '(' }, 'podNamePartitionRegex ( does not compile'],
    ['a pattern without a group', { podNamePartitionRegex: 'a-[0-9]+' }, 'podNamePartitionRegex a-[0-9]+ has no capture group'],
    ['a pattern whose only group captures nothing', { podNamePartitionRegex: '(?:a)' }, 'podNamePartitionRegex (?:a) has no capture group'],
    [
      'several groups and none named',
      { podNamePartitionRegex: '(a)-([0-9]+)' },
      'podNamePartitionRegex (a)-([0-9]+) has 2 capture groups; podNameRegexGroup must name one',
    ],
    [
      'a group beyond the last',
      { podNamePartitionRegex: '(a)-([0-9]+)', podNameRegexGroup: 3 },
      'podNameRegexGroup is 3; the pattern has 2 capture groups',
    ],
    [
      'a negative group, which would crash the matcher of the original',
      { podNamePartitionRegex: pattern, podNameRegexGroup: -1 },
      'podNameRegexGroup is -1; the pattern has 1 capture groups',
    ],
    ['no labels', { selector: {} }, 'selector.matchLabels is missing'],
    ['no selector', { selector: null }, 'selector.matchLabels is missing'],
    ['a label that is no text', { selector: { matchLabels: { zone: 1 } } }, 'selector.matchLabels is not a map of text'],
    ['a delay that is no text', { podNamePartitionRegex: pattern, crossZoneEvictionDelay: 5 }, 'crossZoneEvictionDelay is not text'],
    ['a delay in days', { podNamePartitionRegex: pattern, crossZoneEvictionDelay: '1d' }, 'crossZoneEvictionDelay 1d is not a duration'],
    ['a negative delay', { podNamePartitionRegex: pattern, crossZoneEvictionDelay: '-5m' }, 'crossZoneEvictionDelay -5m is negative'],
    ['a delay without a pattern', { crossZoneEvictionDelay: '5m' }, 'crossZoneEvictionDelay needs podNamePartitionRegex'],
    [
      'a percentage with a pattern',
      { podNamePartitionRegex: pattern, maxUnavailablePercentage: 10 },
      'maxUnavailablePercentage cannot be combined with podNamePartitionRegex',
    ],
  ])('%s', async (_case, spec, expected) => {
    expect(await message(spec)).toBe(expected);
  });

  it('look-around and back-references, which RE2 does not support', async () => {
    for (const bad of ['(?=a)(b)', '(?!a)(b)', '(?<=a)(b)', '(a)\\1']) {
      expect(await message({ podNamePartitionRegex: bad })).toContain(`podNamePartitionRegex ${bad} `);
    }
  });

  it.each<[string, Json, string]>([
    ['limits before pattern', { maxUnavailable: -1, podNamePartitionRegex: '(' }, 'maxUnavailable is'],
    ['pattern before selector', { podNamePartitionRegex: '(', selector: {} }, 'podNamePartitionRegex ( '],
    ['selector before delay', { selector: {}, crossZoneEvictionDelay: 'x' }, 'selector.matchLabels'],
    ['the delay itself before what it needs', { crossZoneEvictionDelay: 'x', maxUnavailablePercentage: 5 }, 'crossZoneEvictionDelay x'],
  ])('%s', async (_case, spec, expected) => {
    expect(await message(spec)).toContain(expected);
  });

  it('no spec, and only then another kind', async () => {
    const { spec: _spec, ...bare } = budgetObject();
    expect((await validate({ ...bare, kind: 'Pod' })).message).toContain('spec is missing');
    expect((await validate({ ...budgetObject(), kind: 'Pod' })).message).toContain('kind is "Pod"');
  });

  it('a review without an object', async () => {
    expect(await validate(undefined)).toMatchObject({ allowed: false, code: 400 });
  });
});

describe('an enforceable budget passes', () => {
  it.each<[string, Json]>([
    ['no limit at all', {}],
    ['a limit of 0', { maxUnavailable: 0 }],
    ['a percentage of 100', { maxUnavailablePercentage: 100 }],
    ['an empty selector', { maxUnavailable: 1, selector: { matchLabels: {} } }],
    ['an empty pattern, whose group is not looked at', { podNamePartitionRegex: '', podNameRegexGroup: 'one' }],
    ['one group', { podNamePartitionRegex: pattern }],
    ['several groups and one of them named', { podNamePartitionRegex: '(a)-(?:b)-([0-9]+)', podNameRegexGroup: 2 }],
    ['a delay', { podNamePartitionRegex: pattern, crossZoneEvictionDelay: '1h5m0.5s' }],
    ['an empty delay', { crossZoneEvictionDelay: '' }],
    ['a delay of 0 without a pattern', { crossZoneEvictionDelay: '0' }],
    ['a percentage of 0 with a pattern', { podNamePartitionRegex: pattern, maxUnavailablePercentage: 0 }],
    ['fields that nobody knows', { maxUnavailable: 1, colour: 'red' }],
  ])('%s', async (_case, spec) => {
    expect(await message(spec)).toBeUndefined();
  });

  it('with dry run and without, created or updated', async () => {
    for (const operation of ['CREATE', 'UPDATE']) {
      for (const dryRun of [false, true]) {
        expect(await validate(budgetObject(), { operation, dryRun })).toEqual({ allowed: true, code: 200 });
        expect((await validate(budgetObject({ maxUnavailable: -1 }), { operation, dryRun })).allowed).toBe(false);
      }
    }
  });
});

it('a failure denies', () => {
  expect(endpoint.onFailure(review(budgetObject()), 'it was late')).toMatchObject({ allowed: false, code: 400 });
});
