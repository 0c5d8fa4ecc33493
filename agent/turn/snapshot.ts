// Builds the engine's snapshot of a namespace, and compares a group's definition and policies in two snapshots.

import { contextOf } from '../../engine/context.ts';
import { snapshotOf } from '../../engine/observe/cluster.ts';
import type { Snapshot, UnreadObject } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
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

/** The definition of the group that goes with the policies of the snapshot; undefined when they define it no more. */
export function definitionIn({ groups }: Snapshot, group: Pick<GroupDefinition, 'namespace' | 'name'>): GroupDefinition | undefined {
  return groups.find(({ namespace, name }) => namespace === group.namespace && name === group.name);
}

/** Reports whether both definitions are equal. Each refresh creates new objects, so most are equal without being identical. */
export function isSameDefinition(group: GroupDefinition, other: GroupDefinition): boolean {
  return group === other || canonicalJson(group) === canonicalJson(other);
}

/** Returns the definition, policies, exceptions and requests of the group as text. */
export function termsOf(snapshot: Snapshot, group: GroupDefinition): string {
  const { policies, exceptions, intents } = contextOf(snapshot, group);
  return canonicalJson([definitionIn(snapshot, group) ?? null, policies, exceptions, intents]);
}
