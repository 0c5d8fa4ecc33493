import { describe, expect, it } from 'vitest';
import { scenarioOf } from '../../scripts/soak/search/draw.ts';
import { featureNames, featuresOf } from '../../scripts/soak/search/features.ts';
import { highestRate } from '../../simulation/faults/drawn.ts';
import { faultClasses } from '../../simulation/faults/fault.ts';
import { type Scenario, scenarioSchema } from '../../simulation/scenario.ts';

const scenarios: readonly Scenario[] = Array.from({ length: 2000 }, (_, seed) => scenarioOf(seed));

function share(isSo: (scenario: Scenario) => boolean): number {
  return scenarios.filter(isSo).length / scenarios.length;
}

describe('the scenario of a seed', () => {
  it('matches the schema of scenarios', () => {
    const issues = scenarios.flatMap(
      (one) => scenarioSchema.safeParse(one).error?.issues.map(({ path, message }) => [one.seed, path, message]) ?? [],
    );
    expect(issues).toEqual([]);
  });

  it('is the same each time', () => {
    expect(scenarioOf(42)).toEqual(scenarioOf(42));
    expect(scenarioOf(42)).not.toEqual(scenarioOf(43));
  });

  it('has a second group in the namespace, and a group in a second namespace, in some of the seeds that are not compared', () => {
    const inPlace = (place: string) => share(({ others = [] }) => others.some(({ namespace }) => namespace === place));
    for (const place of ['mimir', 'mimir-dev']) expect([place, inPlace(place) > 0.09 && inPlace(place) < 0.14]).toEqual([place, true]);
    expect(scenarios.filter(({ seed, others }) => seed % 20 === 0 && others !== undefined)).toEqual([]);
    const others = scenarios.flatMap((one) => (one.others ?? []).map((other) => ({ ...other, first: one.group })));
    expect(others.filter(({ group, first }) => group.webhooks !== first.webhooks || group.gate !== undefined)).toEqual([]);
    expect(others.filter(({ group, namespace }) => namespace === 'mimir' && (group.rules ?? group.windows) !== undefined)).toEqual([]);
    const rolled = others.filter(({ events }) => events.some(({ kind }) => kind === 'setImage'));
    expect(rolled.length / others.length).toBeGreaterThan(0.7);
  });

  it('waits for what happens every five minutes in every eighth seed', () => {
    expect(share(({ quietMs }) => quietMs === undefined)).toBe(0.125);
    expect(scenarioOf(1).quietMs).toBeUndefined();
    // Those that run several times are among the others.
    for (const seed of [100, 40, 20]) expect(scenarioOf(seed).quietMs).toBe(90_000);
  });

  it('leaves each class of rates out in a third to a half of the seeds', () => {
    for (const name of Object.keys(highestRate)) {
      const without = share(({ rates }) => rates[name as keyof typeof rates] === undefined);
      expect([name, without > 0.33 && without < 0.5]).toEqual([name, true]);
    }
  });

  it('stays within the ranges of the catalogue', () => {
    for (const { rates } of scenarios) {
      for (const [name, rate] of Object.entries(rates)) expect(rate).toBeLessThanOrEqual(highestRate[name as keyof typeof rates] ?? 0);
    }
  });

  it('leaves each class of events out in a third to six tenths of the seeds', () => {
    const kindsOf = {
      F10: ['frontEndLags', 'frontEndRestarts'],
      F12: ['pauseProcess'],
      F13: ['deleteLease', 'editLease'],
      F14: ['jumpWallClock'],
      F15: ['slowKubelet', 'stuckTerminating', 'podFlaps', 'nodeLost'],
      F16: ['controllerLags', 'controllerIsStale'],
      F17: ['podFails', 'podDies', 'deletePod', 'nodeDrained', 'scaleByHand'],
    };
    for (const [name, kinds] of Object.entries(kindsOf)) {
      const without = share(({ events }) => !events.some(({ kind }) => kinds.includes(kind)));
      expect([name, without > 0.33 && without < 0.6]).toEqual([name, true]);
    }
  });

  it('loses leaving pods of some groups with a delay, while they prepare', () => {
    const delayed = scenarios.filter(({ group }) => group.replicas === 'delayedMirror');
    const losses = delayed.filter(({ events, group }) =>
      events.some(
        (event) =>
          event.kind === 'deletePod' &&
          events.some(
            (other) =>
              other.kind === 'setReplicas' &&
              event.ordinal >= other.replicas &&
              event.atMs > other.atMs &&
              event.atMs <= other.atMs + 1000 * group.delaySeconds,
          ),
      ),
    );
    expect(losses.length / delayed.length).toBeGreaterThan(0.1);
  });

  it('prepares the pods of half of the groups with a delay also before the removal', () => {
    const delayed = scenarios.filter(({ group }) => group.replicas === 'delayedMirror' && group.webhooks !== true);
    const twice = delayed.filter(({ group }) => group.prepares === true).length / delayed.length;
    expect(twice > 0.4 && twice < 0.6).toBe(true);
    expect(
      scenarios.filter(({ group }) => group.prepares === true && group.replicas !== 'delayedMirror' && group.webhooks !== true),
    ).toEqual([]);
  });

  it('takes webhooks away in some groups that have them, and in no other one', () => {
    const isTaken = ({ events }: Scenario): boolean => events.some(({ kind }) => kind === 'webhookAway');
    const pinned = scenarios.filter(({ group }) => group.strategy === 'pinned' && group.webhooks !== true);
    const without = 1 - pinned.filter(isTaken).length / pinned.length;
    expect(without > 0.33 && without < 0.5).toBe(true);
    expect(
      scenarios.filter((scenario) => scenario.group.strategy !== 'pinned' && scenario.group.webhooks !== true && isTaken(scenario)),
    ).toEqual([]);
  });

  it('has every kind of event, group and number of agents', () => {
    const kinds = new Set(scenarios.flatMap(({ events }) => events.map(({ kind }) => kind)));
    expect([...kinds].sort()).toEqual(
      [
        ...[
          'setImage',
          'setPolicies',
          'setReplicas',
          'request',
          'restart',
          'otherVersion',
          'override',
          'reapply',
          'pause',
          'resume',
          'defineGroup',
          'deletePod',
          'scaleByHand',
          'recreateStatefulSet',
          'leaveGroup',
          'setStrategy',
          'setWaves',
        ],
        ...['podFails', 'podFlaps', 'podDies', 'slowKubelet', 'stuckTerminating', 'nodeLost', 'nodeDrained', 'controllerLags'],
        ...[
          'controllerIsStale',
          'webhookAway',
          'webhookSlow',
          'crash',
          'stop',
          'pauseProcess',
          'jumpWallClock',
          'deleteLease',
          'editLease',
          'frontEndLags',
          'cutOff',
          'rightsRevoked',
          'noConnections',
        ],
        'frontEndRestarts',
      ].sort(),
    );
    const values = (of: (scenario: Scenario) => unknown): readonly unknown[] => [...new Set(scenarios.map(of))].sort();
    expect(values(({ agents }) => agents)).toEqual([1, 2, 3]);
    expect(share(({ group }) => group.strategy === 'partition') > 0.07).toBe(true);
    expect(share(({ group }) => group.strategy === 'pinned') > 0.07).toBe(true);
    expect(scenarios.filter(({ group }) => group.strategy !== undefined && group.kind === 'adopted')).toEqual([]);
    expect(scenarios.filter(({ group }) => group.strategy === 'partition' && group.rotateBy === 'evict')).toEqual([]);
    expect(values(({ group }) => group.zones)).toEqual([2, 3, 4]);
    expect(values(({ group }) => group.podsPerZone)).toEqual([1, 2, 3, 4, 5]);
    expect(values(({ group }) => group.replicas)).toEqual(['delayedMirror', 'leader', 'mirror', 'own']);
    expect(values(({ group }) => group.gate)).toEqual(['flipping', 'passing', undefined]);
    expect(share(({ group }) => group.kind === 'native')).toBeGreaterThan(0.6);
    expect(share(({ group }) => group.kind === 'adopted')).toBeGreaterThan(0.2);
  });

  it('has its events in their order, and all of them while things go wrong', () => {
    for (const { events, safetyMs } of scenarios) {
      const instants = events.map(({ atMs }) => atMs);
      expect(instants).toEqual([...instants].sort((one, other) => one - other));
      for (const event of events) expect(event.atMs + ('forMs' in event ? event.forMs : 0)).toBeLessThan(safetyMs);
    }
  });

  it('ends with an image that works and a group that is not paused', () => {
    for (const { events, seed } of scenarios) {
      const images = events.flatMap((event) => (event.kind === 'setImage' && event.zones === undefined ? [event.image] : []));
      expect([seed, images.at(-1)?.startsWith('broken/') ?? false]).toEqual([seed, false]);
      const pauses = events.filter(({ kind }) => kind === 'pause' || kind === 'resume').map(({ kind }) => kind);
      expect([seed, pauses.at(-1) ?? 'resume']).toEqual([seed, 'resume']);
    }
  });

  it('gives a quarter to a third of the groups waves, and half of them approvals with answers of people', () => {
    const waves = share(({ group }) => group.waves !== undefined);
    const approvals = share(({ group }) => group.waves?.some((wave) => wave.approvals !== undefined) === true);
    expect(waves > 0.25 && waves < 0.35).toBe(true);
    expect(approvals > 0.1 && approvals < 0.2).toBe(true);
    expect(share((scenario) => featuresOf(scenario).includes('request: approve'))).toBeGreaterThan(0.1);
    expect(featureNames.filter((name) => share((scenario) => featuresOf(scenario).includes(name)) < 0.025)).toEqual([]);
    expect(scenarios.filter(({ group }) => group.waves !== undefined && group.kind === 'adopted')).toEqual([]);
  });

  it('asks for something in nearly every seed', () => {
    expect(share(({ events }) => events.some(({ kind }) => kind === 'setImage' || kind === 'setReplicas'))).toBe(1);
  });

  it('draws rates for no class without a rate', () => {
    const drawn = new Set(scenarios.flatMap(({ rates }) => Object.keys(rates)));
    expect([...drawn].every((name) => faultClasses.some((known) => known === name))).toBe(true);
  });
});
