// Reads the metric inputs that the webhooks need: the readings of this process, and published readings for all other inputs.
import { asJsonObject } from '../../cluster/request/json.ts';
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

interface InputParts {
  readonly env: AgentEnv;
  readonly agentNamespace: string;
  /** The readings of this process; absent if it reads no metrics. */
  readonly own?: Pick<MetricReader, 'readings'> | undefined;
  readonly timeoutMs: number;
}

/** Reads the metric inputs of the rules of these groups. Never rejects: an unreadable metric has no reading, so it is unknown. */
export async function readInputs(
  { env, agentNamespace, own, timeoutMs }: InputParts,
  groups: readonly GroupDefinition[],
  policies: readonly PolicyDefinition[],
): Promise<readonly MetricView[]> {
  const known = own?.readings() ?? [];
  const found = await Promise.all(
    groups.map(async (group): Promise<readonly MetricView[]> => {
      const bound = boundInputs(policies, group, agentNamespace);
      const missing = bound.filter((one) => readingOf(known, one) === undefined);
      if (missing.length === 0) return [];
      try {
        const decision = readPublished(await publishedDecision(env, group, timeoutMs));
        return isUnknown(decision) ? [] : metricsOf(decision, missing, env.clock.nowMs());
      } catch {
        return [];
      }
    }),
  );
  return [...known, ...newestMetrics(found.flat())];
}

/** Reads the published decision of the group: from the status of the RolloutGroup if it exists, else from the status ConfigMap. */
async function publishedDecision(env: AgentEnv, group: GroupDefinition, timeoutMs: number): Promise<unknown> {
  const site = 'admission.getPublished';
  const object = await new GroupObjects(env, timeoutMs).read(group, site);
  if (object !== undefined) return asJsonObject(object['status'])['decision'];
  const target = { namespace: group.namespace, name: statusMapName(group.name) };
  const map = await getObject(env, resources.configMaps, target, { site, timeoutMs });
  return asJsonObject(map?.['data'])['decision'];
}
