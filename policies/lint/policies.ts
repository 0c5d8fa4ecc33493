// Lint checks of policies: unknown targets, duplicate names and limits without effect.
import type { GroupDefinition, LimitsDefinition, ZoneDefinition } from '../definition.ts';
import { type Finding, finding } from '../findings/finding.ts';
import { policiesFor } from '../join.ts';
import type { Loaded } from '../load.ts';
import type { CountOrPercent } from '../schema/scalars.ts';
import { eachPolicy, groupOf, type LintCheck, repeats, unknownGroup } from './context.ts';

type Policy = Loaded<'RolloutPolicy'>;

/** Reports targets that are not groups. */
export const findUnknownTargets: LintCheck = (context) =>
  context.policies.flatMap((policy) => {
    const { groups = [], namespaces = [policy.namespace] } = policy.value.spec.targets;
    return groups.flatMap((name, index) => {
      if (namespaces.some((namespace) => groupOf(context, namespace, name) !== undefined)) return [];
      return [unknownGroup(context, policy.place(['spec', 'targets', 'groups', index]), name, namespaces)];
    });
  });

export const findForeignNamespaces: LintCheck = ({ policies, agentNamespace }) =>
  policies.flatMap((policy) => {
    const { namespaces } = policy.value.spec.targets;
    if (!namespaces || policy.namespace === agentNamespace || namespaces.every((one) => one === policy.namespace)) return [];
    const message = `a policy of the namespace ${policy.namespace} cannot target ${namespaces.join(', ')}: only policies of the agent's namespace can`;
    return [finding('RG2302', policy.place(['spec', 'targets', 'namespaces'], 'key'), message)];
  });

/** Reports duplicate names of rules and of windows. */
export const findDuplicateRules: LintCheck = eachPolicy((policy) =>
  (['rules', 'windows'] as const).flatMap((list) => {
    const items = policy.value.spec[list] ?? [];
    return repeats<{ readonly name: string }>(items, (item) => item.name).map(({ index }) =>
      finding('RG2108', policy.place(['spec', list, index, 'name']), `the ${list.slice(0, -1)} name ${items[index]?.name} is used twice`),
    );
  }),
);

export const checkRuleApprovals: LintCheck = eachPolicy((policy) =>
  (policy.value.spec.rules ?? []).flatMap((rule, index): readonly Finding[] => {
    const asks = rule.effect === 'requireApproval' || rule.onUnknown === 'requireApproval';
    if (asks && !rule.approval) {
      return [
        finding(
          'RG2304',
          policy.place(['spec', 'rules', index, 'effect']),
          `the rule ${rule.name} accepts an approval from any user: approval.from is missing`,
        ),
      ];
    }
    if (asks || !rule.approval) return [];
    const place = policy.place(['spec', 'rules', index, 'approval'], 'key');
    return [finding('RG2011', place, `the approval of the rule ${rule.name} has no effect: the effect of the rule is ${rule.effect}`)];
  }),
);

export const findEmptyPolicies: LintCheck = eachPolicy((policy) => {
  const { rules = [], windows = [], limits = {} } = policy.value.spec;
  if (rules.length > 0 || windows.length > 0 || Object.keys(limits).length > 0) return [];
  return [
    finding('RG2309', policy.place(['spec'], 'key'), `the policy ${policy.name} does nothing: it has no rules, no windows and no limits`),
  ];
});

/** Reports limits that are not stricter than the settings of every group of the policy. */
export const findLimitsWithoutEffect: LintCheck = ({ policies, bundle, agentNamespace }) =>
  policies.flatMap((policy) => {
    const resolved = bundle.policies.find((one) => one.namespace === policy.namespace && one.name === policy.name);
    if (!resolved) return [];
    const bound = bundle.groups.filter((group) => policiesFor([resolved], group, agentNamespace).length > 0);
    if (bound.length === 0) return [];
    return limitChecks
      .filter(({ field, isIdle }) => resolved.limits[field] !== undefined && bound.every((group) => isIdle(resolved.limits, group)))
      .map(({ field }) => limitFinding(policy, field, bound));
  });

function limitFinding(policy: Policy, field: keyof LimitsDefinition, bound: readonly GroupDefinition[]): Finding {
  const written = field.replace(/Ms$/, '');
  const names = bound.map((group) => group.name).join(', ');
  return finding(
    'RG2303',
    policy.place(['spec', 'limits', written]),
    `the limit ${written} has no effect: ${names} already sets a value that is at least as strict`,
  );
}

const limitChecks: readonly {
  readonly field: keyof LimitsDefinition;
  readonly isIdle: (limits: LimitsDefinition, group: GroupDefinition) => boolean;
}[] = [
  { field: 'maxUnavailable', isIdle: (limits, group) => allZones(group, (zone) => isAtMost(zone.maxUnavailable, limits.maxUnavailable)) },
  { field: 'minReplicas', isIdle: (limits, group) => allZones(group, ({ bounds }) => (bounds.min ?? 0) >= (limits.minReplicas ?? 0)) },
  {
    field: 'maxReplicas',
    isIdle: (limits, group) => allZones(group, ({ bounds }) => (bounds.max ?? Number.POSITIVE_INFINITY) <= (limits.maxReplicas ?? 0)),
  },
  {
    field: 'betweenZonesMs',
    isIdle: (limits, group) => allZones(group, ({ betweenZonesMs }) => (betweenZonesMs ?? 0) >= (limits.betweenZonesMs ?? 0)),
  },
  { field: 'minIntervalMs', isIdle: (limits, group) => group.rollout.minIntervalMs >= (limits.minIntervalMs ?? 0) },
];

function allZones(group: GroupDefinition, test: (zone: ZoneDefinition) => boolean): boolean {
  return group.zones.every(test);
}

/** A number and a percentage compare only in a zone of known size. */
function isAtMost(own: CountOrPercent | 'fromBudget', limit: CountOrPercent | undefined): boolean {
  if (typeof own === 'number' && typeof limit === 'number') return own <= limit;
  if (typeof own !== 'string' || typeof limit !== 'string' || own === 'fromBudget') return limit === '100%';
  return Number.parseInt(own, 10) <= Number.parseInt(limit, 10);
}
