// Properties of the semantic policy diff over random groups and policies: it sees no spelling, and a reverted change reverts its direction.
import { describe, expect, it } from 'vitest';
import type { GroupDefinition, PolicyDefinition } from '../../policies/definition.ts';
import type { Direction, PolicyReview } from '../../review/document.ts';
import { reviewPolicies } from '../../review/review.ts';
import type { Side } from '../../review/sides.ts';
import { kitNowMs } from '../kit/objects.ts';
import { randomFrom } from '../kit/random.ts';
import { randomGroup, randomPolicies } from '../kit/random-definitions.ts';

function side(group: GroupDefinition, policies: readonly PolicyDefinition[]): Side {
  return { bundle: { groups: [group], policies, exceptions: [] }, manifests: [], agentNamespace: 'rollout-group' };
}

function drawn(seed: number): { readonly group: GroupDefinition; readonly policies: readonly PolicyDefinition[] } {
  const random = randomFrom(seed);
  const chance = (share: number): boolean => random.next() < share;
  return { group: randomGroup(random, chance), policies: randomPolicies(random, chance) };
}

/** The group and policies with every list reversed whose order has no meaning, and with other places. */
function respelled({ group, policies }: ReturnType<typeof drawn>): Side {
  const place = { file: 'elsewhere.yaml', line: 99, column: 1 };
  const reversed = policies.map((policy) => ({
    ...policy,
    source: place,
    rules: [...policy.rules].reverse().map((rule) => ({ ...rule, source: place, actions: [...rule.actions].reverse() })),
    windows: [...policy.windows].reverse().map((window) => ({ ...window, source: place, actions: [...window.actions].reverse() })),
  }));
  return side({ ...group, sources: { '': place }, gates: [...group.gates].reverse() }, reversed.reverse());
}

const opposite: Readonly<Record<Direction, Direction>> = { loosened: 'tightened', tightened: 'loosened', changed: 'changed' };

function summary({ effects }: PolicyReview, map: (direction: Direction) => Direction = (direction) => direction): readonly string[] {
  return [...new Set(effects.map(({ direction, rule }) => `${map(direction)} ${rule ?? ''}`))].sort();
}

const seeds = Array.from({ length: 12 }, (_, index) => index + 1);

describe('the review of policies', () => {
  it('finds nothing in a change of spelling, order or place', () => {
    for (const seed of seeds) {
      const one = drawn(seed);
      expect([seed, reviewPolicies({ before: side(one.group, one.policies), after: respelled(one) }, kitNowMs).effects]).toEqual([
        seed,
        [],
      ]);
    }
  });

  it('finds the opposite if the change is reverted', () => {
    for (const seed of seeds) {
      const [one, two] = [drawn(seed), drawn(seed + 1000)];
      const sides = { before: side(one.group, one.policies), after: side(two.group, two.policies) };
      const there = reviewPolicies(sides, kitNowMs);
      const back = reviewPolicies({ before: sides.after, after: sides.before }, kitNowMs);
      expect([seed, summary(back)]).toEqual([seed, summary(there, (direction) => opposite[direction])]);
    }
  });

  it('calls a removed policy a loosening, and nothing in it a tightening', () => {
    for (const seed of seeds) {
      const { group, policies } = drawn(seed);
      const { effects } = reviewPolicies({ before: side(group, policies), after: side(group, []) }, kitNowMs);
      expect([seed, effects.filter(({ direction }) => direction === 'tightened'), effects[0]?.direction]).toEqual([seed, [], 'loosened']);
    }
  });

  it('calls every protection that is removed a loosening', () => {
    for (const field of ['noDownscale', 'noDelete', 'noEviction'] as const) {
      for (const seed of seeds.slice(0, 4)) {
        const { group, policies } = drawn(seed);
        const withField = (value: boolean) => ({ ...group, zones: group.zones.map((zone) => ({ ...zone, [field]: value })) });
        const { effects } = reviewPolicies({ before: side(withField(true), policies), after: side(withField(false), policies) }, kitNowMs);
        expect([seed, field, effects.filter(({ direction }) => direction === 'tightened'), effects[0]?.direction]).toEqual([
          seed,
          field,
          [],
          'loosened',
        ]);
      }
    }
  });
});
