// Finds the MetricSource of a query: in the policy files or in the agent's namespace, in the order of the policy sources.
import type { ClusterEnv } from '../../cluster/env.ts';
import { ApiFailure } from '../../cluster/request/failure.ts';
import { getObject } from '../../cluster/request/read.ts';
import type { Resource } from '../../cluster/request/resource.ts';
import { formatDuration } from '../../policies/duration.ts';
import { type MetricSourceDefinition, metricSourceOf } from '../../policies/integrations/metric-source.ts';
import { loadObjects } from '../../policies/live/objects.ts';
import { apiGroup, apiVersion } from '../../policies/schema/kinds.ts';
import type { AgentConfig } from '../config.ts';
import type { GateQuestion } from '../env.ts';

export interface SourceParts extends Pick<AgentConfig, 'agentNamespace' | 'policySources'> {
  readonly kubernetes: ClusterEnv['kubernetes'];
}

const resource: Resource = {
  group: apiGroup,
  version: apiVersion.slice(apiGroup.length + 1),
  plural: 'metricsources',
  kind: 'MetricSource',
  isNamespaced: true,
};

/** The source, when the namespace may ask it, and so often. Rejects with an Error that says why not; anybody may read it. */
export async function findSource(parts: SourceParts, question: GateQuestion): Promise<MetricSourceDefinition> {
  const { source: name, namespace, everyMs } = question;
  const source = await definedSource(parts, question);
  if (source === undefined) throw new Error(`there is no metric source ${name}`);
  // Lint checks this in files, the API server in objects.
  if (source.prometheus?.bearerToken && source.prometheus.basicAuth)
    throw new Error(`the metric source ${name} has both a token and a password`);
  if (!source.namespaces.includes(namespace)) throw new Error(`the metric source ${name} is not available to namespace ${namespace}`);
  if (everyMs < source.minIntervalMs) {
    const allowed = formatDuration(source.minIntervalMs);
    throw new Error(`the metric source ${name} allows a query every ${allowed}, not every ${formatDuration(everyMs)}`);
  }
  return source;
}

async function definedSource(
  parts: SourceParts,
  { source: name, written, timeoutMs }: GateQuestion,
): Promise<MetricSourceDefinition | undefined> {
  for (const place of parts.policySources) {
    if (place === 'directory' && written !== undefined) return written;
    const found = place === 'objects' ? await objectOf(parts, name, timeoutMs) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

async function objectOf(
  { kubernetes, agentNamespace }: SourceParts,
  name: string,
  timeoutMs: number,
): Promise<MetricSourceDefinition | undefined> {
  const object = await getObject({ kubernetes }, resource, { namespace: agentNamespace, name }, { site: 'gate.source', timeoutMs }).catch(
    (error: unknown) => {
      // The kind is not installed: then it has no objects.
      if (error instanceof ApiFailure && error.status === 404) return undefined;
      throw new Error(`the metric source ${name} cannot be read${error instanceof ApiFailure ? ` (HTTP ${error.status})` : ''}`);
    },
  );
  if (object === undefined) return undefined;
  // An object of our own kind is read as any policy is: what does not match its schema is not used in part.
  const [document] = loadObjects([object]).documents;
  if (document?.kind !== 'MetricSource') throw new Error(`the metric source ${name} is not valid; run lint for the reason`);
  return metricSourceOf(document.value);
}
