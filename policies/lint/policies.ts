// Checks policies for lint: targets, rules, limits, conditions and windows. Also checks the conditions of gates.
import { type ConditionProblem, checkCondition, checkMessage } from '../condition/check.ts';
import { gateVariables, ruleVariables } from '../condition/variables.ts';
import type { GroupDefinition, LimitsDefinition, PolicyDefinition, WindowDefinition, ZoneDefinition } from '../definition.ts';
import { type Finding, finding } from '../findings/finding.ts';
import { policiesFor } from '../join.ts';
import type { Loaded } from '../load.ts';
import { asksForApproval } from '../rollout/rules-without-exception.ts';
import { type PolicyAction, policyAction } from '../schema/rollout-policy.ts';
import type { CountOrPercent } from '../schema/scalars.ts';
import { checkSchedule, windowState } from '../window/window.ts';
import { lowerFirst } from '../wording.ts';
import type { Path, Places } from '../yaml/document.ts';
import {
  eachGroup,
  eachPolicy,
  findNamed,
  groupOf,
  type LintCheck,
  type LintContext,
  repeatedNames,
  targetsOf,
  unknownGroup,
} from './context.ts';

type Policy = Loaded<'RolloutPolicy'>;

const findUnknownTargets: LintCheck = eachPolicy((policy, context) => {
  const { groups = [], namespaces = [policy.namespace] } = policy.value.spec.targets;
  return groups.flatMap((name, index) => {
    if (namespaces.some((namespace) => groupOf(context, namespace, name) !== undefined)) return [];
    return [unknownGroup(context, policy.place(['spec', 'targets', 'groups', index]), name, namespaces)];
  });
});

const findForeignNamespaces: LintCheck = eachPolicy((policy, { agentNamespace }) => {
  const { namespaces } = policy.value.spec.targets;
  if (!namespaces || policy.namespace === agentNamespace || namespaces.every((one) => one === policy.namespace)) return [];
  const message = `a policy of the namespace ${policy.namespace} cannot target ${namespaces.join(', ')}: only policies of the agent's namespace can`;
  return [finding('RG2302', policy.place(['spec', 'targets', 'namespaces'], 'key'), message)];
});

const findDuplicateRules: LintCheck = eachPolicy((policy) => [
  ...repeatedNames(policy, ['spec', 'rules'], 'rule', policy.value.spec.rules ?? []),
  ...repeatedNames(policy, ['spec', 'windows'], 'window', policy.value.spec.windows ?? []),
]);

const checkRuleApprovals: LintCheck = eachPolicy((policy) =>
  (policy.value.spec.rules ?? []).flatMap((rule, index): readonly Finding[] => {
    const asks = asksForApproval(rule);
    if (asks && !rule.approval) {
      const message = `the rule ${rule.name} accepts an approval from any user: approval.from is missing`;
      return [finding('RG2304', policy.place(['spec', 'rules', index, 'effect']), message)];
    }
    if (asks || !rule.approval) return [];
    const place = policy.place(['spec', 'rules', index, 'approval'], 'key');
    return [finding('RG2011', place, `the approval of the rule ${rule.name} has no effect: the effect of the rule is ${rule.effect}`)];
  }),
);

const findEmptyPolicies: LintCheck = eachPolicy((policy) => {
  const { rules = [], windows = [], limits = {} } = policy.value.spec;
  if (rules.length > 0 || windows.length > 0 || Object.keys(limits).length > 0) return [];
  const message = `the policy ${policy.name} does nothing: it has no rules, no windows and no limits`;
  return [finding('RG2309', policy.place(['spec'], 'key'), message)];
});

/** Reports a limit if every group of the policy already has a setting that is at least as strict. */
const findLimitsWithoutEffect: LintCheck = eachPolicy((policy, context) => {
  const resolved = findNamed(context.bundle.policies, policy);
  const bound = targetsOf(context, policy);
  if (!resolved || bound.length === 0) return [];
  return limitChecks
    .filter(({ field }) => resolved.limits[field] !== undefined)
    .filter(({ isIdle }) => bound.every((group) => group.zones.every((zone) => isIdle(resolved.limits, zone, group))))
    .map(({ field }) => limitFinding(policy, field, bound));
});

function limitFinding(policy: Policy, field: keyof LimitsDefinition, bound: readonly GroupDefinition[]): Finding {
  const written = field.replace(/Ms$/, '');
  const names = bound.map((group) => group.name).join(', ');
  const message = `the limit ${written} has no effect: a value that is at least as strict is already set in ${names}`;
  return finding('RG2303', policy.place(['spec', 'limits', written]), message);
}

const limitChecks: readonly {
  readonly field: keyof LimitsDefinition;
  readonly isIdle: (limits: LimitsDefinition, zone: ZoneDefinition, group: GroupDefinition) => boolean;
}[] = [
  { field: 'maxUnavailable', isIdle: (limits, zone) => isAtMost(zone.maxUnavailable, limits.maxUnavailable) },
  { field: 'minReplicas', isIdle: (limits, { bounds }) => (bounds.min ?? 0) >= (limits.minReplicas ?? 0) },
  { field: 'maxReplicas', isIdle: (limits, { bounds }) => (bounds.max ?? Number.POSITIVE_INFINITY) <= (limits.maxReplicas ?? 0) },
  { field: 'betweenZonesMs', isIdle: (limits, { betweenZonesMs = 0 }) => betweenZonesMs >= (limits.betweenZonesMs ?? 0) },
  { field: 'minIntervalMs', isIdle: (limits, _, { rollout }) => rollout.minIntervalMs >= (limits.minIntervalMs ?? 0) },
];

/** Returns whether a setting is at least as strict as the limit. A count and a percentage can be compared only in a zone of known size. */
function isAtMost(own: CountOrPercent | 'fromBudget', limit: CountOrPercent | undefined): boolean {
  if (typeof own === 'number' && typeof limit === 'number') return own <= limit;
  if (typeof own !== 'string' || typeof limit !== 'string' || own === 'fromBudget') return limit === '100%';
  return Number.parseInt(own, 10) <= Number.parseInt(limit, 10);
}

export const checkRuleConditions: LintCheck = eachPolicy((policy) => {
  const variables = ruleVariables(Object.keys(policy.value.spec.inputs?.metrics ?? {}));
  return (policy.value.spec.rules ?? []).flatMap((rule, index) => [
    ...(rule.when === undefined ? [] : problemFindings(policy, ['spec', 'rules', index, 'when'], checkCondition(rule.when, variables))),
    ...problemFindings(policy, ['spec', 'rules', index, 'message'], checkMessage(rule.message ?? '', variables)),
  ]);
});

const checkGateConditions: LintCheck = eachGroup((group) =>
  (group.value.spec.gates ?? []).flatMap(({ pass }, index) =>
    pass === undefined ? [] : problemFindings(group, ['spec', 'gates', index, 'pass'], checkCondition(pass, gateVariables)),
  ),
);

function problemFindings(document: Places, path: Path, problems: readonly ConditionProblem[]): readonly Finding[] {
  return problems.map(({ code, path: below, message, hint }) => {
    const part = code === 'RG3001' || code === 'RG3002' ? 'key' : 'value';
    return finding(code, document.place([...path, ...below], part), lowerFirst(message), { hint: hint?.replace(/\?$/, '') });
  });
}

export const checkWindowTimes: LintCheck = eachPolicy((policy, context) => {
  const windows = findNamed(context.bundle.policies, policy)?.windows ?? [];
  return windows.flatMap(({ schedule, ranges }, index) => [
    ...(schedule ? checkSchedule(schedule) : []).map(({ code, field, message, hint }) =>
      finding(code, policy.place(['spec', 'windows', index, 'schedule', field]), lowerFirst(message), { hint }),
    ),
    ...(ranges ?? []).flatMap(({ fromMs, toMs }, position): readonly Finding[] => {
      if (toMs > fromMs) return [];
      const place = policy.place(['spec', 'windows', index, 'ranges', position, 'to']);
      return [finding('RG2406', place, `the range ${position + 1} is empty: it ends at or before its beginning`)];
    }),
  ]);
});

/** Reports two policies of one group whose allow windows for an action are never open at the same time. */
const findDisjointWindows: LintCheck = (context) => {
  const reported = new Set<string>();
  return context.bundle.groups.flatMap((group) =>
    policyAction.options.flatMap((action) =>
      allowPairs(context, group, action).flatMap(([one, other]): readonly Finding[] => {
        const key = `${one.policy.namespace}/${one.policy.name} ${other.policy.namespace}/${other.policy.name}`;
        const document = findNamed(context.policies, other.policy);
        if (reported.has(key) || !document || !neverOverlap(one.windows, other.windows)) return [];
        reported.add(key);
        const index = other.policy.windows.findIndex((window) => other.windows.includes(window));
        const message = `${action} of ${group.name} is always blocked: the allow windows of ${one.policy.name} and ${other.policy.name} are never open together`;
        const related = one.windows.slice(0, 1).map((window) => window.source);
        return [finding('RG2407', document.place(['spec', 'windows', index, 'name']), message, { related })];
      }),
    ),
  );
};

interface AllowWindows {
  readonly policy: PolicyDefinition;
  readonly windows: readonly WindowDefinition[];
}

function allowPairs(
  context: LintContext,
  group: GroupDefinition,
  action: PolicyAction,
): readonly (readonly [AllowWindows, AllowWindows])[] {
  const bound = policiesFor(context.bundle.policies, group, context.agentNamespace)
    .map((policy) => ({ policy, windows: policy.windows.filter((one) => one.kind === 'allow' && one.actions.includes(action)) }))
    .filter(({ windows }) => windows.length > 0);
  return bound.flatMap((other, index) => bound.slice(0, index).map((one) => [one, other] as const));
}

const dayMs = 86_400_000;

/** The maximum number of openings that the search visits. A search that ends without a result causes no finding. */
const openingsLimit = 200;

/** Reports whether no opening of one side overlaps an opening of the other side. Returns false if that is unknown. */
function neverOverlap(one: readonly WindowDefinition[], other: readonly WindowDefinition[]): boolean {
  const all = [...one, ...other];
  // A window that is invalid or never opens has another finding.
  if (all.some(({ schedule }) => schedule && checkSchedule(schedule).length > 0)) return false;
  const begins = all.flatMap(({ ranges }) => (ranges ?? []).map(({ fromMs }) => fromMs));
  const fromMs = begins.length > 0 ? Math.min(...begins) : Date.UTC(2026, 0, 1);
  const toMs = fromMs + (repeatsWeekly(all) ? 15 : 367) * dayMs;
  // The search walks through the openings of ranges if it can, because ranges end.
  const [walked, met] = other.every(({ ranges }) => ranges) ? [other, one] : [one, other];
  return walked.every((window) => isDisjoint(window, met, fromMs, toMs));
}

/** Reports whether all windows repeat weekly in one time zone, so that two weeks show every case. */
function repeatsWeekly(windows: readonly WindowDefinition[]): boolean {
  const zones = new Set(windows.map(({ schedule }) => schedule?.timeZone));
  return zones.size === 1 && windows.every(({ schedule }) => /^\S+\s+\S+\s+\*\s+\*\s/.test(schedule?.cron ?? ''));
}

function isDisjoint(window: WindowDefinition, others: readonly WindowDefinition[], fromMs: number, toMs: number): boolean {
  let atMs: number | undefined = fromMs;
  for (let count = 0; count < 2 * openingsLimit; count += 1) {
    if (atMs === undefined || atMs > toMs) return true;
    const state = windowState(window, atMs);
    const { closesMs = Number.POSITIVE_INFINITY } = state;
    if (state.isOpen && opensBefore(others, atMs, closesMs)) return false;
    atMs = state.isOpen ? state.closesMs : state.nextOpensMs;
  }
  return false;
}

function opensBefore(windows: readonly WindowDefinition[], fromMs: number, toMs: number): boolean {
  return windows.some((window) => {
    const { isOpen, nextOpensMs } = windowState(window, fromMs);
    return isOpen || (nextOpensMs !== undefined && nextOpensMs < toMs);
  });
}

export const policyChecks: readonly LintCheck[] = [
  findUnknownTargets,
  findForeignNamespaces,
  findDuplicateRules,
  checkRuleApprovals,
  findEmptyPolicies,
  findLimitsWithoutEffect,
  checkRuleConditions,
  checkGateConditions,
  checkWindowTimes,
  findDisjointWindows,
];
