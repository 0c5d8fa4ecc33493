// Publishes the readings of metric inputs, so that admission and the plugin need no access to the metric sources.
import type { GroupDefinition, PolicyDefinition } from '../../policies/definition.ts';
import { inputsRead } from '../../policies/integrations/metric-source.ts';
import { policiesFor } from '../../policies/join.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { defined } from '../../policies/values/defined.ts';
import { hashText } from '../../policies/values/hash.ts';
import { isUnknown, isWithinClockSkew, type MetricView, type Snapshot } from '../snapshot.ts';
import { type PublishedDecision, type PublishedMetric, publishedMetricLimit } from './published.ts';

interface BoundInput {
  readonly policy: PolicyDefinition;
  readonly input: string;
  readonly metric: PolicyDefinition['metrics'][string];
}

/** Returns the inputs of the rules that bind the group, sorted by policy and name. */
export function boundInputs(
  policies: readonly PolicyDefinition[],
  group: GroupDefinition,
  agentNamespace: string | undefined,
): readonly BoundInput[] {
  return policiesFor(policies, group, agentNamespace).flatMap((policy) =>
    inputsRead(policy).flatMap((input) => {
      const metric = policy.metrics[input];
      return metric === undefined ? [] : [{ policy, input, metric }];
    }),
  );
}

/** Returns the published inputs of the group, at most `publishedMetricLimit`; absent without inputs. */
export function publishedMetrics(group: GroupDefinition, snapshot: Snapshot): { readonly metrics?: readonly PublishedMetric[] } {
  const metrics = boundInputs(snapshot.policies, group, snapshot.agentNamespace).map((bound): PublishedMetric => {
    const { policy, input, metric } = bound;
    const reading = readingOf(snapshot.metrics, bound);
    const { source, maxAgeMs } = metric;
    const known = { namespace: policy.namespace, policy: policy.name, input, source, question: questionOf(metric), maxAgeMs };
    if (reading === undefined) return known;
    const { value, atMs, problem } = reading;
    return { ...known, ...(isUnknown(value) ? { unknown: value.unknown } : { value }), atMs, ...defined({ problem }) };
  });
  return metrics.length === 0 ? {} : { metrics: metrics.slice(0, publishedMetricLimit) };
}

/** Returns the published readings that the policies need now, without readings from the future. The rules check their age. */
export function metricsOf(
  { metrics = [] }: Pick<PublishedDecision, 'metrics'>,
  bound: readonly BoundInput[],
  nowMs: number,
): readonly MetricView[] {
  return bound.flatMap(({ policy: { namespace, name: policy }, input, metric }): MetricView[] => {
    const found = metrics.find((one) => one.namespace === namespace && one.policy === policy && one.input === input);
    if (found?.atMs === undefined || found.question !== questionOf(metric) || !isWithinClockSkew({ nowMs }, found.atMs)) return [];
    const { atMs, problem } = found;
    const value = found.value ?? { unknown: found.unknown ?? 'no reading' };
    return [{ namespace, policy, input, value, atMs, ...(problem === undefined ? {} : { problem }) }];
  });
}

/** Returns the latest reading of each input, because groups may publish different readings of the same input. */
export function newestMetrics(metrics: readonly MetricView[]): readonly MetricView[] {
  const byInput = new Map<string, MetricView>();
  for (const metric of metrics) {
    const key = `${metric.namespace}/${metric.policy}/${metric.input}`;
    const other = byInput.get(key);
    if (other === undefined || metric.atMs > other.atMs) byInput.set(key, metric);
  }
  return [...byInput.values()];
}

export function readingOf(metrics: readonly MetricView[], { policy, input }: BoundInput): MetricView | undefined {
  return metrics.find((one) => one.namespace === policy.namespace && one.policy === policy.name && one.input === input);
}

/** Returns a hash of the source and the query. A reading of an earlier query does not count for the current query. */
function questionOf({ source, query }: BoundInput['metric']): string {
  return hashText(canonicalJson([source, query]));
}
