// Joins several policies: the strictest effect and the strictest limit win, in any order of policies.
import type { ExceptionDefinition, LimitsDefinition, PolicyDefinition } from './definition.ts';
import { matchesSelector } from './label-selector.ts';
import type { CountOrPercent } from './schema/scalars.ts';
import { compareText } from './values/compare-text.ts';
import { defined } from './values/defined.ts';

/** The effects of rules, the strictest first. */
export const effects = ['deny', 'hold', 'requireApproval', 'warn', 'allow'] as const;

export type Effect = (typeof effects)[number];

/** Returns the strictest of the effects; `allow` for an empty list. */
export function strictest(given: readonly Effect[]): Effect {
  return effects.find((effect) => given.includes(effect)) ?? 'allow';
}

/**
 * Returns the limits that satisfy all given limits: the highest minimum, the lowest maximum, the longest time. A count and a percentage can
 * be compared only in a zone of known size, so callers must pass `replicas` before they disrupt a pod. Without `replicas`, a count wins.
 */
export function joinLimits(limits: readonly LimitsDefinition[], replicas: number = Number.POSITIVE_INFINITY): LimitsDefinition {
  return defined({
    maxUnavailable: smallestMaxUnavailable(valuesOf(limits, 'maxUnavailable'), replicas),
    minReplicas: highest(valuesOf(limits, 'minReplicas')),
    maxReplicas: lowest(valuesOf(limits, 'maxReplicas')),
    betweenZonesMs: highest(valuesOf(limits, 'betweenZonesMs')),
    minIntervalMs: highest(valuesOf(limits, 'minIntervalMs')),
  });
}

/** Returns the value that allows the fewest unavailable pods; of equal values the count, then the lower percentage. */
function smallestMaxUnavailable(values: readonly CountOrPercent[], replicas: number): CountOrPercent | undefined {
  const order = (value: CountOrPercent): readonly number[] =>
    typeof value === 'number' ? [value, 0, value] : [podsOf(value, replicas), 1, Number.parseInt(value, 10)];
  return [...values].sort((a, b) => compareAll(order(a), order(b)))[0];
}

/** Returns the pods of a percentage, rounded down to at least one. Only the count 0 means no pod. */
function podsOf(percentage: string, replicas: number): number {
  return Math.max(1, Math.floor((Number.parseInt(percentage, 10) * replicas) / 100));
}

function compareAll(a: readonly number[], b: readonly number[]): number {
  const index = a.findIndex((value, at) => value !== b[at]);
  return index === -1 ? 0 : (a[index] ?? 0) < (b[index] ?? 0) ? -1 : 1;
}

function valuesOf<Field extends keyof LimitsDefinition>(
  limits: readonly LimitsDefinition[],
  field: Field,
): NonNullable<LimitsDefinition[Field]>[] {
  return limits.flatMap((limit) => limit[field] ?? []);
}

function highest(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : Math.max(...values);
}

function lowest(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : Math.min(...values);
}

/** The data of a group that decides which policies apply to it. */
interface PolicyTarget {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Further labels that policies may select, such as those before a change. So the removal of a label never evades a policy. */
  readonly otherLabels?: readonly Readonly<Record<string, string>>[];
}

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
  if (all === true || groups?.includes(group.name)) return true;
  if (selector === undefined) return false;
  return [group.labels, ...(group.otherLabels ?? [])].some((labels) => matchesSelector(selector, labels));
}

type ExceptionAnswer =
  | { readonly kind: 'none' }
  | { readonly kind: 'one'; readonly exception: ExceptionDefinition }
  /** Several exceptions are in force, so none applies: otherwise the exception that allows more would apply by accident. */
  | { readonly kind: 'several'; readonly names: readonly string[] };

/**
 * Returns the exception in force for a rule, group and zone, from `notBefore` until before `expires`. An exception without a zone covers
 * all zones. `exceptions` must be those of the group's namespace.
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
