// Gathers the input of the rules for one group.
import type { ExceptionDefinition, GroupDefinition, PolicyDefinition, Source } from '../policies/definition.ts';
import { joinLimits, policiesFor } from '../policies/join.ts';
import { compareText } from '../policies/values/compare-text.ts';
import { getOrCreate, keptByObject } from '../policies/values/map.ts';
import { type GroupView, viewGroup, type ZoneView } from './observe/view.ts';
import { type IntentView, isUnknown, type Known, type Snapshot } from './snapshot.ts';

export interface GroupContext {
  readonly snapshot: Snapshot;
  readonly nowMs: number;
  readonly group: GroupDefinition;
  readonly view: GroupView;
  /** The policies that bind this group, by namespace and name. */
  readonly policies: readonly PolicyDefinition[];
  readonly limits: ReturnType<typeof joinLimits>;
  readonly exceptions: readonly ExceptionDefinition[];
  /** The requests for this group that are in force. */
  readonly intents: Known<readonly IntentView[]>;
}

/** Returns the context of a group. Policies and requests are sorted, so that their order in the snapshot does not matter. */
export function contextOf(snapshot: Snapshot, group: GroupDefinition): GroupContext {
  return contextsOf(snapshot)(group);
}

/** A decision needs the context of one snapshot several times. */
const contextsOf = keptByObject((snapshot: Snapshot) => keptByObject((group: GroupDefinition) => gather(snapshot, group)));

/** The policies of a group and their limits, by the list of all policies. Most snapshots of a plan or a review share this list. */
const boundBy = keptByObject((_all: Snapshot['policies']) =>
  keptByObject((_group: GroupDefinition) => new Map<string | undefined, Pick<GroupContext, 'policies' | 'limits'>>()),
);

function boundPolicies({ policies: all, agentNamespace }: Snapshot, group: GroupDefinition): Pick<GroupContext, 'policies' | 'limits'> {
  return getOrCreate(boundBy(all)(group), agentNamespace, () => {
    const policies = policiesFor(all, group, agentNamespace);
    return { policies, limits: joinLimits(policies.map((policy) => policy.limits)) };
  });
}

function gather(snapshot: Snapshot, group: GroupDefinition): GroupContext {
  const { policies, limits } = boundPolicies(snapshot, group);
  return {
    snapshot,
    nowMs: snapshot.nowMs,
    group,
    view: viewGroup(snapshot, group),
    policies,
    limits,
    exceptions: snapshot.exceptions.filter((exception) => exception.namespace === group.namespace && exception.group === group.name),
    intents: intentsOf(snapshot, group),
  };
}

/** Returns the unexpired requests about the group, sorted by name. */
export function intentsOf(snapshot: Snapshot, group: Pick<GroupDefinition, 'namespace' | 'name'>): Known<readonly IntentView[]> {
  if (isUnknown(snapshot.intents)) return snapshot.intents;
  return snapshot.intents
    .filter((intent) => intent.namespace === group.namespace && intent.group === group.name)
    .filter((intent) => intent.expiresMs === undefined || intent.expiresMs > snapshot.nowMs)
    .sort((a, b) => compareText(a.name, b.name));
}

/** Returns the minimum time between two replacements in milliseconds. If it is above 0, a turn replaces at most one pod. */
export function minIntervalOf({ group, limits }: Pick<GroupContext, 'group' | 'limits'>): number {
  return Math.max(group.rollout.minIntervalMs, limits.minIntervalMs ?? 0);
}

export function zoneNamed(context: GroupContext, name: string | undefined): ZoneView | undefined {
  return name === undefined ? undefined : context.view.zones.find((candidate) => candidate.zone.name === name);
}

/** Returns the place of a setting of the group: the source of the first of these paths that is set. */
export function sourceOf(context: GroupContext, ...paths: readonly string[]): Source | undefined {
  return paths.map((path) => context.group.sources[path]).find((source) => source !== undefined);
}

/** Returns the place of a bound of replicas: the policy with this limit, or the setting of the zone. */
export function boundSource(context: GroupContext, zone: string, field: 'minReplicas' | 'maxReplicas', bound: number): Source | undefined {
  return bound === context.limits[field] ? limitSource(context, field) : sourceOf(context, `zones.${zone}.replicas`);
}

/** Returns the place of the policy that sets a limit. */
export function limitSource(context: GroupContext, field: keyof GroupContext['limits']): Source | undefined {
  const strictest = context.limits[field];
  // `limitSources` uses the field names of the policy file, which have no unit.
  const fieldName = field.replace(/Ms$/, '');
  return context.policies.find((policy) => policy.limits[field] === strictest)?.limitSources[fieldName];
}
