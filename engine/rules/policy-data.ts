// The variables that conditions of RolloutPolicies read (docs/conditions.md), taken from a group and the action that is asked about.
import type { PolicyDefinition } from '../../policies/definition.ts';
import { formatDuration } from '../../policies/duration.ts';
import type { GroupContext } from '../context.ts';
import { noData as noDataReason } from '../observe/metrics.ts';
import type { ZoneView } from '../observe/view.ts';
import { isUnknown, type MetricView, type Unknown } from '../snapshot.ts';
import type { PolicyQuestion } from './policy.ts';
import { downscaleTimes } from './zone-gap.ts';

/** Returns the variables of a condition (docs/conditions.md). Unreadable values are unknown. */
export function conditionData(question: PolicyQuestion, policy: PolicyDefinition): Readonly<Record<string, unknown>> {
  const { context, zone, change } = question;
  const { run } = context.view.ledger;
  const { set } = zone;
  const absent: Unknown = { unknown: 'not part of this request' };
  const unread = zone.unknown === undefined ? undefined : { unknown: zone.unknown };
  return {
    action: question.action,
    change: change === undefined ? absent : { from: change.from, to: change.to, delta: change.to - change.from },
    target: {
      name: zone.zone.statefulSet,
      namespace: context.group.namespace,
      zone: zone.zone.name,
      labels: set?.labels ?? absent,
      annotations: set?.annotations ?? absent,
      replicas: unread ?? zone.replicas,
      ready: unread ?? zone.replicas - zone.unavailable.size,
      available: unread ?? zone.replicas - zone.unavailable.size,
      updated: unread ?? zone.updated,
      ...lastDownscale(question),
    },
    group: {
      name: context.group.name,
      namespace: context.group.namespace,
      labels: context.group.labels,
      phase: run?.outcome === 'running' ? 'Rolling' : run?.outcome === 'failed' ? 'Failed' : 'Done',
      ...(run?.outcome === 'running' ? { wave: context.group.rollout.waves[run.wave]?.name ?? '' } : {}),
      zones: context.view.zones.map(zoneData),
      notReadyZones: context.view.zones.some((candidate) => candidate.unknown !== undefined)
        ? { unknown: 'a zone could not be read' }
        : context.view.zones.filter((candidate) => !candidate.isReady).map((candidate) => candidate.zone.name),
    },
    inputs: { metrics: metricData(context, policy) },
    user: question.user === undefined ? absent : { name: question.user },
    now: context.nowMs,
  };
}

function zoneData(view: ZoneView): unknown {
  if (view.unknown !== undefined) {
    const unread = { unknown: view.unknown };
    return {
      name: view.zone.name,
      statefulSet: view.zone.statefulSet,
      replicas: unread,
      ready: unread,
      updated: unread,
      available: unread,
      isReady: unread,
    };
  }
  const ready = view.replicas - view.unavailable.size;
  return {
    name: view.zone.name,
    statefulSet: view.zone.statefulSet,
    follows: view.zone.follows ?? '',
    replicas: view.replicas,
    ready,
    available: ready,
    updated: view.updated,
    isReady: view.isReady,
  };
}

function metricData(context: GroupContext, policy: PolicyDefinition): Readonly<Record<string, number | Unknown>> {
  const values: Record<string, number | Unknown> = {};
  for (const [input, { maxAgeMs, noData }] of Object.entries(policy.metrics)) {
    const reading = context.snapshot.metrics.find(
      (metric) => metric.namespace === policy.namespace && metric.policy === policy.name && metric.input === input,
    );
    values[input] = reading === undefined ? { unknown: 'no reading' } : inputValue(reading, context.nowMs, { maxAgeMs, noData });
  }
  return values;
}

/** Returns the value of a metric input. A reading older than its maximum age is unknown. */
function inputValue(
  { value, atMs, problem }: MetricView,
  nowMs: number,
  { maxAgeMs, noData }: Pick<PolicyDefinition['metrics'][string], 'maxAgeMs' | 'noData'>,
): number | Unknown {
  if (nowMs - atMs > maxAgeMs) {
    return { unknown: `the reading is older than ${formatDuration(maxAgeMs)}${problem === undefined ? '' : `: ${problem}`}` };
  }
  return isUnknown(value) && value.unknown === noDataReason && noData === 'zero' ? 0 : value;
}

/** Returns the instant of the zone's last downscale; absent without a record. */
function lastDownscale({ context, zone }: PolicyQuestion): { readonly lastDownscaleAt?: number | Unknown } {
  const times = downscaleTimes(context, zone);
  if (typeof times === 'string') return { lastDownscaleAt: { unknown: times } };
  return times.length === 0 ? {} : { lastDownscaleAt: Math.max(...times) };
}
