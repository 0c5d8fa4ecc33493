// Compares an answer with the expectation of a case, and names the differences.
import type { PolicyTestCase } from '../../policies/schema/policy-test.ts';
import { blocks } from '../rule.ts';
import type { Answer } from './answer.ts';

type Request = PolicyTestCase['request'];
type Expectation = PolicyTestCase['expect'];

const ofRequests: ReadonlySet<string> = new Set(['allow', 'warn', 'requireApproval', 'hold', 'deny']);

/** Reports whether the case expects a decision of the agent instead of a judgement of a request. */
export function asksTheAgent({ action }: Pick<Request, 'action'>): boolean {
  return action === 'rollout' || action === 'none';
}

/** Why the expectation could not be met by any answer to this request; undefined when it could. */
export function impossibleExpectation(request: Request, expect: Expectation): string | undefined {
  const asksAgent = asksTheAgent(request);
  if (asksAgent === ofRequests.has(expect.decision)) {
    const words = asksAgent ? 'act, wait, blocked or done' : 'allow, warn, requireApproval, hold or deny';
    return `a request ${request.action} returns ${words}, never ${expect.decision}`;
  }
  const field = (['pods', 'replicas'] as const).find((name) => expect[name] !== undefined);
  return asksAgent || field === undefined ? undefined : `${field} can be expected only in requests rollout and none`;
}

/** The rules that hold the answer; those that warn when nothing holds it. Sorted, each once. */
export function decidingRules(answer: Answer): readonly string[] {
  const holding = answer.results.filter(blocks).map((result) => result.rule);
  return [...new Set(holding.length > 0 ? holding : answer.warned)].sort();
}

/** The expectation in a few words: `deny by zone-gap`. */
export function describeExpectation({ decision, rules = [] }: Expectation): string {
  return rules.length === 0 ? decision : `${decision} by ${rules.join(', ')}`;
}

/** Every difference between the answer and what is expected, each as one sentence part. */
export function differences(answer: Answer, expect: Expectation): readonly string[] {
  return [
    ...(answer.decision === expect.decision ? [] : [`the decision is ${answer.decision}, expected is ${expect.decision}`]),
    ...(expect.rules ?? []).flatMap((rule) => ruleDifference(answer, rule)),
    ...(expect.message === undefined || answer.message.includes(expect.message)
      ? []
      : [`the message does not contain "${expect.message}"`]),
    ...(expect.pods === undefined ? [] : listDifference('pods replaced now', answer.pods, expect.pods)),
    ...(expect.replicas === undefined ? [] : listDifference('replicas written now', written(answer.replicas), written(expect.replicas))),
  ];
}

/** A rule must be among those that hold the answer; where nothing holds it, among those that were asked. */
function ruleDifference(answer: Answer, rule: string): readonly string[] {
  const holding = answer.results.filter(blocks).map((result) => result.rule);
  if (holding.length > 0) {
    if (holding.includes(rule)) return [];
    return [`the rule ${rule} does not block it (blocked by ${[...new Set(holding)].sort().join(', ')})`];
  }
  const asked = [...answer.results.map((result) => result.rule), ...answer.warned];
  return asked.includes(rule) ? [] : [`the rule ${rule} was not evaluated`];
}

function written(replicas: Readonly<Record<string, number>>): readonly string[] {
  return Object.entries(replicas).map(([zone, count]) => `${zone}: ${count}`);
}

function listDifference(what: string, found: readonly string[], expected: readonly string[]): readonly string[] {
  const text = (list: readonly string[]): string => [...list].sort().join(', ') || 'none';
  return text(found) === text(expected) ? [] : [`${what}: ${text(found)}, expected are ${text(expected)}`];
}
