// Reads disruption budgets from Kubernetes JSON: ZoneAwarePodDisruptionBudgets with their validation, and PodDisruptionBudgets.
import { goDurationMs } from '../../policies/duration.ts';
import type { LabelSelector } from '../../policies/schema/scalars.ts';
import { inspectPattern } from '../../policies/text/partition-pattern.ts';
import { defined } from '../../policies/values/defined.ts';
import { isUnknown, type Known, type PodBudgetView, type Unknown, type ZoneBudgetView } from '../snapshot.ts';
import { identity } from './objects.ts';
import { fieldAt, reader } from './raw.ts';

/** Returns the budget, or its first error. The checks have the order of grafana/rollout-operator. */
export function observeZoneBudget(raw: unknown): Known<ZoneBudgetView> {
  const { namespace, name } = identity(reader(raw));
  const spec = fieldAt(raw, ['spec']);
  const problem = zoneBudgetProblem(raw, spec);
  if (problem !== undefined) return { unknown: `ZoneAwarePodDisruptionBudget ${namespace}/${name}: ${problem}` };
  const fields = reader(spec);
  const maxUnavailable = fields.whole('maxUnavailable');
  const maxUnavailablePercent = fields.whole('maxUnavailablePercentage');
  const pattern = fields.text('podNamePartitionRegex') ?? '';
  return {
    namespace,
    name,
    matchLabels: fields.texts('selector.matchLabels'),
    ...(maxUnavailablePercent === undefined ? { maxUnavailable: maxUnavailable ?? 1 } : { maxUnavailablePercent }),
    ...(pattern === '' ? {} : { partition: { pattern, group: fields.whole('podNameRegexGroup') ?? 1 } }),
    crossZoneDelayMs: delayMs(fields.text('crossZoneEvictionDelay') ?? '') ?? 0,
  };
}

/** One version of a ZoneAwarePodDisruptionBudget, valid or not. */
export interface ZoneBudgetVersion {
  readonly namespace: string;
  readonly name: string;
  /** `metadata.generation`; 0 if absent. */
  readonly generation: number;
  readonly view: Known<ZoneBudgetView>;
  /** The labels of the selector, also if other fields are invalid; absent if unreadable. */
  readonly matchLabels?: Readonly<Record<string, string>>;
}

/** Returns one version of a budget. Never throws: the `view` of an invalid budget is unknown. */
export function observeZoneBudgetVersion(raw: unknown): ZoneBudgetVersion {
  const fields = reader(raw);
  const { namespace, name } = identity(fields);
  const isReadable = fields.has('spec.selector.matchLabels');
  const matchLabels = fields.texts('spec.selector.matchLabels');
  const generation = reader(raw).whole('metadata.generation') ?? 0;
  return {
    namespace,
    name,
    generation,
    view: observeZoneBudget(raw),
    ...(isReadable && fields.problem() === undefined ? { matchLabels } : {}),
  };
}

/** The outcome of one version of a budget, as in the metric `zpdb_configurations_observed_total` of grafana/rollout-operator. */
export type BudgetOutcome = 'updated' | 'deleted' | 'ignored' | 'delete-ignored' | 'invalid';

/** The versions of one budget that count. */
export interface KeptBudget {
  /** The last valid version; absent if no version was valid. */
  readonly valid?: { readonly generation: number; readonly view: ZoneBudgetView };
  /** The newest version if it is invalid. */
  readonly invalid?: ZoneBudgetVersion & { readonly view: Unknown };
}

/** Returns what counts after a change of a budget, and the outcome. `version` is undefined after a deletion. */
export function takeVersion(
  kept: KeptBudget | undefined,
  version: ZoneBudgetVersion | undefined,
): { readonly kept?: KeptBudget; readonly outcome: BudgetOutcome } {
  const valid = kept?.valid;
  if (version === undefined) return { outcome: valid === undefined ? 'delete-ignored' : 'deleted' };
  const { generation, view } = version;
  if (isUnknown(view)) return { kept: { ...(valid && { valid }), invalid: { ...version, view } }, outcome: 'invalid' };
  // A change of labels or annotations does not change the generation.
  if (valid !== undefined && generation > 0 && generation <= valid.generation) return { kept: kept ?? {}, outcome: 'ignored' };
  return { kept: { valid: { generation, view } }, outcome: 'updated' };
}

export function observePodBudget(raw: unknown): Known<PodBudgetView> {
  const fields = reader(raw);
  const { namespace, name } = identity(fields);
  const maxUnavailable = countOrPercent(fieldAt(raw, ['spec', 'maxUnavailable']));
  const minAvailable = countOrPercent(fieldAt(raw, ['spec', 'minAvailable']));
  const selector = fields.has('spec.selector') ? labelSelector(fieldAt(raw, ['spec', 'selector'])) : matchesNothing;
  const problem = name === '' ? 'metadata.name is missing' : selector === undefined ? 'spec.selector is not a label selector' : undefined;
  if (selector === undefined || problem !== undefined) return { unknown: `PodDisruptionBudget ${namespace}/${name}: ${problem}` };
  return {
    namespace,
    name,
    selector,
    ...defined({ maxUnavailable, minAvailable }),
  };
}

/** The selector of a budget without `spec.selector`, which selects no pod. An empty selector selects all pods. */
const matchesNothing: LabelSelector = { matchExpressions: [{ key: 'nothing', operator: 'In', values: [] }] };

function zoneBudgetProblem(raw: unknown, spec: unknown): string | undefined {
  if (spec === undefined) return 'spec is missing';
  const kind = fieldAt(raw, ['kind']);
  if (kind !== 'ZoneAwarePodDisruptionBudget') return `kind is ${JSON.stringify(kind) ?? 'missing'}`;
  return limitProblem(spec) ?? patternProblem(spec) ?? selectorProblem(spec) ?? delayProblem(spec);
}

function limitProblem(spec: unknown): string | undefined {
  const fields = reader(spec);
  if (fields.has('maxUnavailable') && fields.has('maxUnavailablePercentage'))
    return 'maxUnavailable and maxUnavailablePercentage are both set';
  const count = fields.whole('maxUnavailable') ?? 0;
  const percent = fields.whole('maxUnavailablePercentage') ?? 0;
  if (count < 0) return `maxUnavailable is ${count}; it must be 0 or more`;
  if (percent < 0 || percent > 100) return `maxUnavailablePercentage is ${percent}; it must be 0 to 100`;
  return fields.problem();
}

function patternProblem(spec: unknown): string | undefined {
  const pattern = fieldAt(spec, ['podNamePartitionRegex']);
  if (pattern === undefined || pattern === '') return undefined;
  if (typeof pattern !== 'string') return 'podNamePartitionRegex is not text';
  const fields = reader(spec);
  const group = fields.whole('podNameRegexGroup');
  if (fields.problem() !== undefined) return fields.problem();
  const inspected = inspectPattern(pattern);
  if ('problem' in inspected) return `podNamePartitionRegex ${pattern} ${inspected.problem}`;
  const { groupCount } = inspected;
  if (groupCount === 0) return `podNamePartitionRegex ${pattern} has no capture group`;
  if (groupCount > 1 && group === undefined) {
    return `podNamePartitionRegex ${pattern} has ${groupCount} capture groups; podNameRegexGroup must name one`;
  }
  // The schema of the CRD requires 1 or more. A negative number would read outside the match.
  if (group !== undefined && (group > groupCount || group < 0))
    return `podNameRegexGroup is ${group}; the pattern has ${groupCount} capture groups`;
  return undefined;
}

function selectorProblem(spec: unknown): string | undefined {
  const labels = fieldAt(spec, ['selector', 'matchLabels']);
  if (labels === undefined) return 'selector.matchLabels is missing';
  const fields = reader(spec);
  fields.texts('selector.matchLabels');
  return fields.problem();
}

function delayProblem(spec: unknown): string | undefined {
  const text = fieldAt(spec, ['crossZoneEvictionDelay']) ?? '';
  if (typeof text !== 'string') return 'crossZoneEvictionDelay is not text';
  const delay = delayMs(text);
  if (delay === undefined) return `crossZoneEvictionDelay ${text} is not a duration`;
  if (delay < 0) return `crossZoneEvictionDelay ${text} is negative`;
  const hasPattern = (fieldAt(spec, ['podNamePartitionRegex']) ?? '') !== '';
  if (delay > 0 && !hasPattern) return 'crossZoneEvictionDelay needs podNamePartitionRegex';
  const percent = reader(spec).whole('maxUnavailablePercentage') ?? 0;
  if (hasPattern && percent > 0) return 'maxUnavailablePercentage cannot be combined with podNamePartitionRegex';
  return undefined;
}

function delayMs(text: string): number | undefined {
  return text === '' ? 0 : goDurationMs(text);
}

function countOrPercent(value: unknown): number | string | undefined {
  return typeof value === 'string' || (typeof value === 'number' && Number.isSafeInteger(value)) ? value : undefined;
}

function labelSelector(value: unknown): LabelSelector | undefined {
  const fields = reader(value);
  const matchLabels = fields.texts('matchLabels');
  const matchExpressions = fields.list('matchExpressions').map((entry) => {
    const expression = reader(entry);
    const values = expression.list('values').filter((item): item is string => typeof item === 'string');
    return { key: expression.text('key') ?? '', operator: operatorOf(expression.text('operator')), values };
  });
  if (typeof value !== 'object' || fields.problem() !== undefined) return undefined;
  return { matchLabels, matchExpressions };
}

/** Returns the operator of an expression. The API server accepts no unknown operator; here it counts as `In`. */
function operatorOf(text: string | undefined): 'In' | 'NotIn' | 'Exists' | 'DoesNotExist' {
  return text === 'NotIn' || text === 'Exists' || text === 'DoesNotExist' ? text : 'In';
}
