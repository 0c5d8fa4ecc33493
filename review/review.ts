// Reviews the policies of a change: asks both sides the same questions, and names every change that loosens or tightens a decision.

import type { CaseResult } from '../engine/policy-test/policy-test.ts';
import type { PolicyTest } from '../policies/schema/kinds.ts';
import { decisionsOf } from './decisions.ts';
import { unseenChanges } from './definitions.ts';
import { joinReviews, type PolicyEffect, type PolicyReview } from './document.ts';
import { effectsOf } from './effects.ts';
import { exceptionEffects } from './exceptions.ts';
import { changedSettings } from './settings.ts';
import { decidingText, type Pair, pairGroups, type Sides } from './sides.ts';
import { type Change, splitChange } from './split.ts';
import { testFlips } from './test-cases.ts';

export interface ReviewedTests {
  /** The results of the policy tests of the head. */
  readonly cases: readonly CaseResult[];
  /** The policy tests of both sides. */
  readonly tests: readonly PolicyTest[];
}

/** A part of the groups: that with this index of `count` parts with about the same number of groups. */
export interface Part {
  readonly index: number;
  readonly count: number;
}

/** Compares the policies of both sides at an instant, for all groups or for a part of the groups. */
export function reviewPolicies(
  sides: Sides,
  nowMs: number,
  { cases, tests, part: { index, count } = { index: 0, count: 1 } }: ReviewedTests & { readonly part?: Part } = { cases: [], tests: [] },
): PolicyReview {
  const pairs = pairGroups(sides.before, sides.after);
  const [start, end] = [index, index + 1].map((place) => Math.round((pairs.length * place) / count));
  const reviews = pairs.slice(start, end).map((pair) => reviewPair(pair, sides, { nowMs, tests }));
  return joinReviews(reviews.map(({ effects, asked }) => ({ effects: effects.map((effect) => withTests(effect, cases)), asked })));
}

function reviewPair(pair: Pair, sides: Sides, options: ReviewOptions): PolicyReview {
  const exceptions = exceptionEffects(pair, options.nowMs);
  const ends = [decidingText(pair.before, pair, sides.before), decidingText(pair.after, pair, sides.after)];
  if (ends[0] === ends[1]) return { effects: exceptions, asked: 0 };
  const reviews = splitChange({ pair, sides }, ends).map((change) => reviewChange(change, options));
  return {
    effects: [...reviews.flatMap(({ effects }) => effects), ...exceptions],
    asked: reviews.reduce((sum, { asked }) => sum + asked, 0),
  };
}

interface ReviewOptions extends Pick<ReviewedTests, 'tests'> {
  readonly nowMs: number;
}

function reviewChange({ pair, sides }: Change, { nowMs, tests }: ReviewOptions): PolicyReview {
  const { flips, asked } = decisionsOf(pair, sides, nowMs);
  const settings = changedSettings(pair);
  const seen = effectsOf([...flips, ...testFlips(pair, sides, tests)], { pair, sides, settings });
  return { effects: [...seen.map(({ effect }) => effect), ...unseenChanges(pair, settings, seen)], asked };
}

/** Says whether a case of the head evaluates the rule for this group, or asks for the action if the head has no such rule. */
function withTests(effect: PolicyEffect, cases: readonly CaseResult[]): PolicyEffect {
  const own = cases.filter(({ asked }) => asked?.namespace === effect.namespace && asked.group === effect.group);
  if (cases.length === 0 || effect.rule === undefined || effect.exception !== undefined) return effect;
  const actions = effect.decisions.map(({ action }) => action);
  const isTested = own.some(({ results, asked }) => {
    const isEvaluated = results.some(({ rule, outcome }) => rule === effect.rule && outcome !== 'skip');
    return isEvaluated || (effect.after === undefined && actions.some((action) => action === asked?.action));
  });
  return { ...effect, isTested };
}
