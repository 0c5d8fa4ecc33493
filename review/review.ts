// Reviews the policies of a change: asks both sides the same questions, and names every change that loosens or tightens a decision.

import { fieldAt } from '../engine/observe/raw.ts';
import type { CaseResult } from '../engine/policy-test/policy-test.ts';
import type { PolicyTest } from '../policies/schema/kinds.ts';
import { groupBy } from '../policies/values/group-by.ts';
import { keptByObject } from '../policies/values/map.ts';
import type { Sides } from './causes.ts';
import { decisionsOf } from './decisions.ts';
import { unseenChanges } from './definitions.ts';
import type { Direction, PolicyEffect, PolicyReview } from './document.ts';
import { effectsOf } from './effects.ts';
import { exceptionEffects } from './exceptions.ts';
import { type BoundGroup, comparableText, type Pair, pairGroups, type Side } from './sides.ts';
import { testFlips } from './test-cases.ts';

interface ReviewedTests {
  /** The results of the policy tests of the head. */
  readonly cases: readonly CaseResult[];
  /** The policy tests of both sides. */
  readonly tests: readonly PolicyTest[];
}

/** Compares the policies of both sides at an instant. */
export function reviewPolicies(sides: Sides, nowMs: number, { cases, tests }: ReviewedTests = { cases: [], tests: [] }): PolicyReview {
  const reviews = pairGroups(sides.before, sides.after).map((pair) => reviewPair(pair, sides, { nowMs, tests }));
  const effects = reviews.flatMap((review) => review.effects).map((effect) => withTests(effect, cases));
  return {
    effects: distinctEffects(effects).sort((a, b) => order.indexOf(a.direction) - order.indexOf(b.direction)),
    asked: reviews.reduce((sum, { asked }) => sum + asked, 0),
  };
}

const order: readonly Direction[] = ['loosened', 'tightened', 'changed'];

function reviewPair(pair: Pair, sides: Sides, { nowMs, tests }: { readonly nowMs: number } & Pick<ReviewedTests, 'tests'>): PolicyReview {
  const exceptions = exceptionEffects(pair, nowMs);
  if (decidingText(pair.before, pair, sides.before) === decidingText(pair.after, pair, sides.after))
    return { effects: exceptions, asked: 0 };
  const { flips, asked } = decisionsOf(pair, sides, nowMs);
  const effects = effectsOf([...flips, ...testFlips(pair, sides, tests)], pair, sides);
  return { effects: [...effects, ...unseenChanges(pair, effects), ...exceptions], asked };
}

/** Returns the text of every definition that decides about a group: its own, its policies, and the budgets of its namespace. */
function decidingText(side: BoundGroup | undefined, { namespace }: Pair, { manifests }: Side): string {
  const budgets = budgetsIn(manifests).get(namespace) ?? [];
  return comparableText({ group: side?.group, policies: side?.policies ?? [], values: budgets.map(({ text }) => text) });
}

/** The texts of the budgets by namespace: every group of a namespace has the same ones. */
const budgetsIn = keptByObject((manifests: readonly unknown[]) => {
  const budgets = manifests.filter((object) => /DisruptionBudget$/.test(String(fieldAt(object, ['kind']))));
  const texts = budgets.map((budget) => {
    return { namespace: String(fieldAt(budget, ['metadata', 'namespace']) ?? 'default'), text: comparableText(budget) };
  });
  return groupBy(texts, ({ namespace }) => namespace);
});

/** Leaves out effects that another effect contains: a removed policy is one effect for each group. */
function distinctEffects(effects: readonly PolicyEffect[]): PolicyEffect[] {
  return [
    ...new Map(effects.map((effect) => [`${effect.namespace}/${effect.group} ${effect.direction} ${effect.cause}`, effect])).values(),
  ];
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
