// Finds the policies and exceptions of a group, and joins the limits of several policies: the strictest limit wins.
import type { ExceptionDefinition, GroupDefinition, LimitsDefinition, PolicyDefinition } from './definition.ts';
import { matchesSelector } from './label-selector.ts';
import { compareText } from './values/compare-text.ts';
import { defined } from './values/defined.ts';

type JoinedLimits = Omit<LimitsDefinition, 'maxUnavailable'>;

/**
 * Returns the limits that satisfy all given limits: the highest minimum, the lowest maximum, the longest time. `maxUnavailable` is not
 * joined: a count and a percentage can be compared only in a zone of known size.
 */
export function joinLimits(limits: readonly LimitsDefinition[]): JoinedLimits {
  const outermost = (choose: (...values: readonly number[]) => number, field: keyof JoinedLimits): number | undefined => {
    const values = limits.flatMap((limit) => limit[field] ?? []);
    return values.length === 0 ? undefined : choose(...values);
  };
  return defined({
    minReplicas: outermost(Math.max, 'minReplicas'),
    maxReplicas: outermost(Math.min, 'maxReplicas'),
    betweenZonesMs: outermost(Math.max, 'betweenZonesMs'),
    minIntervalMs: outermost(Math.max, 'minIntervalMs'),
  });
}

/** The data of a group that decides which policies apply to it. */
type PolicyTarget = Pick<GroupDefinition, 'namespace' | 'name' | 'labels'>;

/**
 * Returns the policies of a group, sorted by namespace and name. A policy applies to its namespace, or only to the namespaces that it
 * names. Only a policy of the agent's namespace reaches other namespaces; without `agentNamespace` no policy does.
 */
export function policiesFor(
  policies: readonly PolicyDefinition[],
  group: PolicyTarget,
  agentNamespace?: string,
): readonly PolicyDefinition[] {
  return policies
    .filter((policy) => reaches(policy, group.namespace, agentNamespace) && targets(policy, group))
    .sort((a, b) => compareText(a.namespace, b.namespace) || compareText(a.name, b.name));
}

function reaches({ namespace, targets: { namespaces } }: PolicyDefinition, wanted: string, agentNamespace: string | undefined): boolean {
  const mayReach = wanted === namespace || namespace === agentNamespace;
  return mayReach && (namespaces === undefined ? wanted === namespace : namespaces.includes(wanted));
}

function targets({ targets: { groups, selector, all } }: PolicyDefinition, group: PolicyTarget): boolean {
  return all === true || groups?.includes(group.name) === true || (selector !== undefined && matchesSelector(selector, group.labels));
}

type ExceptionAnswer =
  | { readonly kind: 'none' }
  | { readonly kind: 'one'; readonly exception: ExceptionDefinition }
  /** Several exceptions are in force, so none applies: otherwise the exception that allows more would apply by accident. */
  | { readonly kind: 'several'; readonly names: readonly string[] };

/**
 * Returns the exception in force for a rule, group and zone. An exception is in force from `notBefore` until before `expires`. Without a
 * zone, it covers all zones of the group. `exceptions` must be those of the group's namespace.
 */
export function exceptionFor(
  exceptions: readonly ExceptionDefinition[],
  rule: string,
  { group, zone }: { readonly group: string; readonly zone: string | undefined },
  nowMs: number,
): ExceptionAnswer {
  const inForce = exceptions
    .filter((exception) => exception.rule === rule && exception.group === group)
    .filter((exception) => exception.zone === undefined || exception.zone === zone)
    .filter(({ notBeforeMs, expiresMs }) => nowMs < expiresMs && nowMs >= (notBeforeMs ?? Number.NEGATIVE_INFINITY));
  const [first, ...others] = inForce;
  if (first === undefined) return { kind: 'none' };
  return others.length === 0 ? { kind: 'one', exception: first } : { kind: 'several', names: inForce.map(({ name }) => name).sort() };
}
