// Asks both sides the requests of policy tests. A case is a request that people found worth a decision.
import { runPolicyTest } from '../engine/policy-test/policy-test.ts';
import { durationMs } from '../policies/duration.ts';
import type { PolicyTest } from '../policies/schema/kinds.ts';
import { firstByKey } from '../policies/values/group-by.ts';
import { compareAnswers, type Flip } from './compare.ts';
import { ownObjects } from './decisions.ts';
import type { Question } from './questions.ts';
import { type BoundGroup, comparableText, type Pair, type Side } from './sides.ts';

/** The maximum number of cases that are asked about one group. */
const maxCases = 300;

/**
 * Returns the cases of the tests of both sides whose answers differ. Cases that one side cannot answer, such as those of other groups, do
 * not count.
 */
export function testFlips(
  pair: Pair,
  sides: { readonly before: Side; readonly after: Side },
  tests: readonly PolicyTest[],
): readonly Flip[] {
  const { before, after } = pair;
  if (before === undefined || after === undefined) return [];
  const distinct = firstByKey(tests, ({ spec }) => comparableText(spec));
  let left = maxCases;
  return distinct.flatMap((test) => {
    if (test.spec.cases.length > left) return [];
    left -= test.spec.cases.length;
    const results = [resultsOf(test, before, sides.before, ownObjects(pair, sides.before, sides.after))];
    results.push(resultsOf(test, after, sides.after, ownObjects(pair, sides.after, sides.before)));
    return questionsOf(test).flatMap((question, index) => {
      const [old, next] = results.map((list) => list[index]);
      return old === undefined || next === undefined ? [] : compareAnswers(question, old, next);
    });
  });
}

function resultsOf(test: PolicyTest, { group, policies }: BoundGroup, { agentNamespace }: Side, manifests: readonly unknown[]) {
  const results = runPolicyTest(test, { bundle: { groups: [group], policies, exceptions: [] }, manifests, agentNamespace });
  return results.map(({ decision, results: answers, asked }) => {
    return asked === undefined ? undefined : { decision, results: answers, warned: asked.warned, pods: [], replicas: {} };
  });
}

function questionsOf({ spec }: PolicyTest): readonly Question[] {
  let nowMs = Date.parse(spec.clock);
  return spec.cases.map(({ name, advance, request: { action } }) => {
    nowMs += advance === undefined ? 0 : durationMs(advance);
    const asksAgent = action === 'none' || action === 'rollout';
    return {
      may: `the request of the case "${name}" may pass`,
      when: '',
      asksAgent,
      nowMs,
      isCase: true,
      build: () => undefined,
      action: action === 'none' ? 'scaleDown' : action,
    };
  });
}
