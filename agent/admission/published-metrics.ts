// Reads metric inputs for admission: the readings of this process if it leads, else the published ones.
import { isJsonObject } from '../../cluster/request/json.ts';
import { getObject } from '../../cluster/request/read.ts';
import { resources } from '../../cluster/request/resource.ts';
import { boundInputs, metricsOf, newestMetrics, readingOf } from '../../engine/publish/metrics.ts';
import { statusMapName } from '../../engine/publish/published.ts';
import { readPublished } from '../../engine/publish/read.ts';
import { isUnknown, type MetricView } from '../../engine/snapshot.ts';
import type { GroupDefinition, PolicyDefinition } from '../../policies/definition.ts';
import type { AgentEnv } from '../env.ts';
import type { MetricReader } from '../gates/metric-reader.ts';
import { GroupObjects } from '../published/group-objects.ts';

export interface JudgedMetrics {
  /**
   * Returns the metric readings for the rules that bind these groups. Never rejects: an unreadable metric has no reading, so it is unknown.
   * Reads nothing if no rule needs a metric.
   */
  readonly read: (
    groups: readonly GroupDefinition[],
    policies: readonly PolicyDefinition[],
    timeoutMs: number,
  ) => Promise<readonly MetricView[]>;
}

interface JudgedMetricsParts {
  readonly env: AgentEnv;
  readonly agentNamespace: string;
  /** Readings of this process; absent if it reads no metrics. */
  readonly own?: Pick<MetricReader, 'readings'> | undefined;
}

/** Reads the published decision of each group: the status of its RolloutGroup, or its ConfigMap. */
export function judgedMetrics({ env, agentNamespace, own }: JudgedMetricsParts): JudgedMetrics {
  const published = async (group: GroupDefinition, timeoutMs: number): Promise<unknown> => {
    const object = await new GroupObjects(env, timeoutMs).read(group, 'admission.getPublished');
    const status = object?.['status'];
    if (object !== undefined) return isJsonObject(status) ? status['decision'] : undefined;
    const target = { namespace: group.namespace, name: statusMapName(group.name) };
    const map = await getObject(env, resources.configMaps, target, { site: 'admission.getPublished', timeoutMs });
    const data = map?.['data'];
    return isJsonObject(data) ? data['decision'] : undefined;
  };

  return {
    read: async (groups, policies, timeoutMs) => {
      const known = own?.readings() ?? [];
      const found = await Promise.all(
        groups.map(async (group): Promise<readonly MetricView[]> => {
          const bound = boundInputs(policies, group, agentNamespace);
          const missing = bound.filter((one) => readingOf(known, one) === undefined);
          if (missing.length === 0) return [];
          try {
            const decision = readPublished(await published(group, timeoutMs));
            return isUnknown(decision) ? [] : metricsOf(decision, missing, env.clock.nowMs());
          } catch {
            return [];
          }
        }),
      );
      return [...known, ...newestMetrics(found.flat())];
    },
  };
}
