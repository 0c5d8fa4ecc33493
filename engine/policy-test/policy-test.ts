// Runs the cases of a PolicyTest: compares the answer of the engine with the expectation of each case.

import type { GroupDefinition, PolicyBundle } from '../../policies/definition.ts';
import { durationMs } from '../../policies/duration.ts';
import type { PolicyTest } from '../../policies/schema/kinds.ts';
import type { GivenState, PolicyTestCase } from '../../policies/schema/policy-test.ts';
import { extended } from '../../policies/values/defined.ts';
import { listed } from '../../policies/wording.ts';
import { contextOf } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import { blocks } from '../rule.ts';
import type { Snapshot } from '../snapshot.ts';
import type { Answer } from './answer.ts';
import { reachOf, type WaveReach } from './coverage.ts';
import { ask } from './request.ts';
import { caseState } from './state.ts';

export { coverageOf, type RuleCoverage } from './coverage.ts';

interface PolicyTestInput {
  readonly bundle: PolicyBundle;
  /** Kubernetes objects that represent the running cluster. */
  readonly manifests: readonly unknown[];
  /** The namespace of the agent. Only policies in it may name other namespaces. Absent: no policy may. */
  readonly agentNamespace?: string;
}

export interface CaseResult {
  readonly name: string;
  readonly passed: boolean;
  /** The expectation in short form: `deny by zone-gap`. */
  readonly expected: string;
  /** For requests: `allow`, `warn`, `requireApproval`, `hold`, `deny`. For the agent: `act`, `wait`, `blocked`, `done`. Empty if not run. */
  readonly decision: string;
  /** The rules that block, or the rules that warn if no rule blocks. */
  readonly rules: readonly string[];
  readonly message: string;
  readonly results: readonly RuleResult[];
  /** The reasons why the case failed; empty if it passed. */
  readonly problems: readonly string[];
  /** The request; absent if the case could not run. */
  readonly asked?: CaseSubject;
}

export interface CaseSubject {
  readonly namespace: string;
  readonly group: string;
  readonly action: PolicyTestCase['request']['action'];
  readonly zone?: string;
  readonly isPod: boolean;
  readonly warned: readonly string[];
  readonly waves?: Answer['waves'];
  readonly reach: WaveReach;
}

/** Runs the cases in their order. A case that cannot run gives a result with problems, and throws no error. */
export function runPolicyTest({ spec: { clock, cases, given = {} } }: PolicyTest, input: PolicyTestInput): readonly CaseResult[] {
  let nowMs = Date.parse(clock);
  return cases.map((one) => {
    nowMs += one.advance === undefined ? 0 : durationMs(one.advance);
    return runCase(one, given, input, nowMs);
  });
}

function runCase(one: PolicyTestCase, shared: GivenState, input: PolicyTestInput, nowMs: number): CaseResult {
  const group = groupOf(input.bundle, one.request.group);
  if (typeof group === 'string') return unasked(one, [group]);
  const impossible = impossibleExpectation(one.request, one.expect);
  if (impossible !== undefined) return unasked(one, [impossible]);
  const given = withRollout(mergedGiven(shared, one.given ?? {}), group, one.request);
  const asking = askEngine({ group, given, request: one.request, nowMs }, input);
  if ('problems' in asking) return unasked(one, asking.problems);
  const { answer, snapshot } = asking;
  const found = [...differences(answer, one.expect), ...uncountedZones(one, given, group, answer)];
  return {
    name: one.name,
    passed: found.length === 0,
    expected: describeExpectation(one.expect),
    decision: answer.decision,
    rules: decidingRules(answer),
    message: answer.message,
    results: answer.results,
    problems: found,
    asked: subjectOf(one, group, answer, reachOf(contextOf(snapshot, group))),
  };
}

/** A request in a state, without an expectation. */
export interface PolicyQuestion {
  readonly group: GroupDefinition;
  readonly given: GivenState;
  readonly request: PolicyTestCase['request'];
  readonly nowMs: number;
}

/**
 * Returns the answer of the engine to a request, or why the state or the request is impossible. `groups` replaces the groups that are in
 * force: without any group, only labels protect the StatefulSets of the question.
 */
export function askEngine(
  { group, given, request, nowMs }: PolicyQuestion,
  input: PolicyTestInput & { readonly groups?: readonly GroupDefinition[] },
): { readonly answer: Answer; readonly snapshot: Snapshot } | { readonly problems: readonly string[] } {
  const state = caseState(extended(input, { group, given, nowMs }));
  if (state.problems.length > 0) return { problems: state.problems };
  const snapshot = input.groups === undefined ? state.snapshot : { ...state.snapshot, groups: input.groups };
  const asking = ask({ snapshot, group, given: state.given }, request);
  return 'problem' in asking ? { problems: [asking.problem] } : { answer: asking.answer, snapshot };
}

/** Explains an unexpected `done` of a case that sets `updated` in some zones only: the other zones then have nothing to roll. */
function uncountedZones(
  { request, expect }: PolicyTestCase,
  { zones = {} }: GivenState,
  group: GroupDefinition,
  { decision }: Answer,
): readonly string[] {
  if (request.action !== 'rollout' || decision !== 'done' || expect.decision === 'done') return [];
  const uncounted = group.zones.map(({ name }) => name).filter((name) => zones[name]?.updated === undefined);
  if (uncounted.length === 0 || uncounted.length === group.zones.length) return [];
  const [which, verb] = uncounted.length === 1 ? ['zone', 'does not set'] : ['zones', 'do not set'];
  return [
    `${which} ${listed(uncounted, 'and')} ${verb} updated, so nothing is rolled there; set updated: 0 for a zone that is not updated yet`,
  ];
}

function unasked({ name, expect }: PolicyTestCase, problems: readonly string[]): CaseResult {
  return { name, passed: false, expected: describeExpectation(expect), decision: '', rules: [], message: '', results: [], problems };
}

function subjectOf({ request }: PolicyTestCase, group: GroupDefinition, answer: Answer, reach: WaveReach): CaseSubject {
  return {
    namespace: group.namespace,
    group: group.name,
    action: request.action,
    ...(request.zone === undefined || asksTheAgent(request) ? {} : { zone: request.zone }),
    isPod: request.ordinal !== undefined,
    warned: answer.warned,
    ...(answer.waves === undefined ? {} : { waves: answer.waves }),
    reach,
  };
}

/** Returns the only group, or the group that the request names as `name` or `namespace/name`; a problem as text without such a group. */
function groupOf({ groups }: PolicyBundle, name: string | undefined): GroupDefinition | string {
  const found = groups.filter((group) => name === undefined || name === group.name || name === `${group.namespace}/${group.name}`);
  const known = groups.map((group) => `${group.namespace}/${group.name}`).join(', ') || 'none';
  const [only, ...others] = found;
  if (only === undefined) return name === undefined ? 'the files define no group' : `there is no group ${name}; groups are ${known}`;
  return others.length === 0 ? only : `the request must name one of the groups ${known}`;
}

/** Merges a case over the shared inputs: zones field by field, metrics and gates one by one, everything else as a whole. */
function mergedGiven(shared: GivenState, own: GivenState): GivenState {
  const names = [...new Set([...Object.keys(shared.zones ?? {}), ...Object.keys(own.zones ?? {})])];
  const zones = Object.fromEntries(names.map((name) => [name, { ...shared.zones?.[name], ...own.zones?.[name] }]));
  return { ...shared, ...own, zones, metrics: { ...shared.metrics, ...own.metrics }, gates: { ...shared.gates, ...own.gates } };
}

/** Adds a new template for a request `rollout`, in the zone of the request or in all zones, unless the case counts updated pods. */
function withRollout(given: GivenState, group: GroupDefinition, request: PolicyTestCase['request']): GivenState {
  const isCounted = Object.values(given.zones ?? {}).some((zone) => zone.updated !== undefined);
  if (request.action !== 'rollout' || isCounted) return given;
  const names = request.zone === undefined ? group.zones.map((zone) => zone.name) : [request.zone];
  const rolled = names.map((name) => [name, { ...given.zones?.[name], updated: 0 }]);
  return { ...given, zones: { ...given.zones, ...Object.fromEntries(rolled) } };
}

type Request = PolicyTestCase['request'];
type Expectation = PolicyTestCase['expect'];

const ofRequests: ReadonlySet<string> = new Set(['allow', 'warn', 'requireApproval', 'hold', 'deny']);

function asksTheAgent({ action }: Pick<Request, 'action'>): boolean {
  return action === 'rollout' || action === 'none';
}

/** Returns why no answer to this request can meet the expectation; undefined if an answer can. */
function impossibleExpectation(request: Request, expect: Expectation): string | undefined {
  const asksAgent = asksTheAgent(request);
  if (asksAgent === ofRequests.has(expect.decision)) {
    const words = asksAgent ? 'act, wait, blocked or done' : 'allow, warn, requireApproval, hold or deny';
    return `a request with the action ${request.action} returns ${words}, never ${expect.decision}`;
  }
  const field = (['pods', 'replicas'] as const).find((name) => expect[name] !== undefined);
  return asksAgent || field === undefined ? undefined : `${field} can be expected only if the action is rollout or none`;
}

function decidingRules(answer: Answer): readonly string[] {
  const holding = answer.results.filter(blocks).map((result) => result.rule);
  return [...new Set(holding.length > 0 ? holding : answer.warned)].sort();
}

function describeExpectation({ decision, rules = [] }: Expectation): string {
  return rules.length === 0 ? decision : `${decision} by ${rules.join(', ')}`;
}

function differences(answer: Answer, expect: Expectation): readonly string[] {
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

/** Returns a difference if other rules block instead of this rule, or if no rule blocks and this rule was not evaluated. */
function ruleDifference(answer: Answer, rule: string): readonly string[] {
  const holding = answer.results.filter(blocks).map((result) => result.rule);
  if (holding.length > 0) {
    if (holding.includes(rule)) return [];
    return [`the rule ${rule} does not block (blocked by ${[...new Set(holding)].sort().join(', ')})`];
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
