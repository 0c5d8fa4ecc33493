// Builds the engine's snapshot of a namespace from policies and caches, with freshly read objects instead of cached ones.
import { snapshotOf } from '../../engine/observe/cluster.ts';
import type { Snapshot, UnreadObject } from '../../engine/snapshot.ts';
import type { AgentConfig } from '../config.ts';
import type { AgentEnv } from '../env.ts';
import type { MetricReader } from '../gates/metric-reader.ts';
import type { ActivePolicies } from '../policies/policies.ts';
import type { Caches, FreshObjects } from '../watched/caches.ts';

export interface KnownParts {
  readonly env: Pick<AgentEnv, 'clock'>;
  readonly config: Pick<AgentConfig, 'agentNamespace'>;
  readonly caches: Pick<Caches, 'observe'>;
  readonly policies: () => ActivePolicies | undefined;
  /** Absent: metric inputs have no readings but those that were looked for. */
  readonly metrics?: Pick<MetricReader, 'readings'>;
}

/** Reads besides policies and caches. Ledgers are added later. */
interface Looked extends Partial<Pick<Snapshot, 'replicaSources' | 'gateReadings' | 'metrics'>> {
  readonly fresh: FreshObjects | undefined;
  readonly unread: readonly UnreadObject[];
}

/** Without I/O. Throws while policies have not been read. */
export function knownSnapshot({ env, config, caches, policies, metrics }: KnownParts, namespace: string, looked: Looked): Snapshot {
  const now = policies();
  if (now === undefined) throw new Error('policies were not read yet');
  const { unread = [], ...view } = caches.observe(namespace, looked.fresh);
  return snapshotOf({
    // Instants are stored as whole milliseconds.
    nowMs: Math.floor(env.clock.nowMs()),
    policyDigest: now.digest,
    agentNamespace: config.agentNamespace,
    groups: now.groups,
    policies: now.policies,
    exceptions: now.exceptions,
    intents: now.intents,
    ...view,
    unread: [...unread, ...looked.unread],
    replicaSources: looked.replicaSources ?? [],
    gateReadings: looked.gateReadings ?? [],
    ledgers: [],
    metrics: looked.metrics ?? metrics?.readings() ?? [],
  });
}
