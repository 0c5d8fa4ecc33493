// Builds the engine's snapshot of a namespace for turns and webhooks, and adds the ControllerRevisions that pins need.

import type { ClusterEnv } from '../../cluster/env.ts';
import { getObject } from '../../cluster/request/read.ts';
import { resources } from '../../cluster/request/resource.ts';
import { contextOf } from '../../engine/context.ts';
import { snapshotOf } from '../../engine/observe/cluster.ts';
import { observeTemplate } from '../../engine/observe/revisions.ts';
import { withRollback } from '../../engine/run/run.ts';
import { isUnknown, type RevisionView, type Snapshot, type UnreadObject, unknownBecause } from '../../engine/snapshot.ts';
import { wantedRevisions } from '../../engine/strategies/pinned/pins.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { traitsOf } from '../../policies/strategies.ts';
import { canonicalJson, isSameValue } from '../../policies/values/canonical-json.ts';
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
  /** The metric readings of this process, used if `knownSnapshot` is called without metrics. */
  readonly metrics?: Pick<MetricReader, 'readings'>;
}

/** The inputs of a snapshot besides policies and caches. Ledgers are added later. */
interface SnapshotInputs extends Partial<Pick<Snapshot, 'replicaSources' | 'gateReadings' | 'metrics'>> {
  readonly fresh: FreshObjects | undefined;
  readonly unread: readonly UnreadObject[];
}

/** Builds the snapshot without I/O. Throws if the policies have not been read yet. */
export function knownSnapshot({ env, config, caches, policies, metrics }: KnownParts, namespace: string, inputs: SnapshotInputs): Snapshot {
  const active = policies();
  if (active === undefined) throw new Error('policies were not read yet');
  const { unread = [], ...view } = caches.observe(namespace, inputs.fresh);
  return snapshotOf({
    // Times are stored as whole milliseconds.
    nowMs: Math.floor(env.clock.nowMs()),
    policyDigest: active.digest,
    agentNamespace: config.agentNamespace,
    groups: active.groups,
    policies: active.policies,
    exceptions: active.exceptions,
    intents: active.intents,
    ...view,
    unread: [...unread, ...inputs.unread],
    replicaSources: inputs.replicaSources ?? [],
    gateReadings: inputs.gateReadings ?? [],
    ledgers: [],
    metrics: inputs.metrics ?? metrics?.readings() ?? [],
  });
}

/** Returns the group's definition in the snapshot; undefined if the group was removed. */
export function definitionIn({ groups }: Snapshot, group: Pick<GroupDefinition, 'namespace' | 'name'>): GroupDefinition | undefined {
  return groups.find(({ namespace, name }) => namespace === group.namespace && name === group.name);
}

/** Returns whether both definitions are equal. Each refresh creates new objects, so equal definitions are rarely identical. */
export function isSameDefinition(group: GroupDefinition, other: GroupDefinition): boolean {
  return group === other || isSameValue(group, other);
}

/** Returns the definition, policies, exceptions and requests of the group as text. */
export function termsOf(snapshot: Snapshot, group: GroupDefinition): string {
  const { policies, exceptions, intents } = contextOf(snapshot, group);
  return canonicalJson([definitionIn(snapshot, group) ?? null, policies, exceptions, intents]);
}

interface RevisionParts {
  readonly env: Pick<ClusterEnv, 'kubernetes'>;
  readonly timeoutMs: number;
}

/** Adds the revisions that the pins need and the ledger lacks. Never rejects: an unreadable revision is unknown until the next turn. */
export async function withRevisions(
  { env, timeoutMs }: RevisionParts,
  group: GroupDefinition,
  memory: { revisions: ReadonlyMap<string, RevisionView> },
  snapshot: Snapshot,
): Promise<Snapshot> {
  if (!traitsOf(group).pinsPods) return snapshot;
  const { namespace } = group;
  // A rollback that begins in this turn may need revisions that no pod runs any more.
  const wanted = wantedRevisions(withRollback(contextOf(snapshot, group)).view);
  if (wanted.length === 0) {
    memory.revisions = new Map();
    return { ...snapshot, revisions: [] };
  }
  const uids = new Map(snapshot.statefulSets.filter((set) => set.namespace === namespace).map(({ name, uid }) => [name, uid]));
  const entries = await Promise.all(
    wanted.map(async ({ statefulSet, name }): Promise<readonly [string, RevisionView]> => {
      const owner = uids.get(statefulSet) ?? '';
      const key = `${owner} ${name}`;
      const known = memory.revisions.get(key);
      if (known !== undefined) return [key, known];
      return [key, { namespace, statefulSet, name, template: await readTemplate(env, { namespace, name, owner }, timeoutMs) }];
    }),
  );
  memory.revisions = new Map(entries.filter(([, { template }]) => template !== undefined && !isUnknown(template)));
  return { ...snapshot, revisions: entries.map(([, revision]) => revision) };
}

async function readTemplate(
  env: RevisionParts['env'],
  { namespace, name, owner }: { readonly namespace: string; readonly name: string; readonly owner: string },
  timeoutMs: number,
): Promise<RevisionView['template']> {
  const options = { site: 'turn.revision', timeoutMs };
  const found = await getObject(env, resources.controllerRevisions, { namespace, name }, options).catch(unknownBecause);
  return found === undefined || isUnknown(found) ? found : observeTemplate(found, owner);
}
