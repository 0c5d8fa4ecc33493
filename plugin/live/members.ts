// A group for verbs that write: its definition, its StatefulSets as objects and a snapshot to judge requests.
import type { KubernetesObject } from '../../cluster/request/resource.ts';
import type { Judgement } from '../../engine/decision.ts';
import { observeStatefulSet } from '../../engine/observe/objects.ts';
import { leadingResult } from '../../engine/rule.ts';
import { isUnknown, type Snapshot, type StatefulSetView } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { itemsOf, type Listing } from '../cluster-snapshot/listing.ts';
import type { Cluster } from '../connection.ts';
import { exitCodes, Failure } from '../failure.ts';
import { sourceText } from '../output/plan/plan-text.ts';
import type { LiveGroup } from './groups.ts';
import { readSnapshot, scopeOf } from './read.ts';
import type { GroupName } from './target.ts';

export interface Member {
  readonly zone: string;
  readonly object: KubernetesObject;
  readonly view: StatefulSetView;
}

export interface Members {
  readonly live: LiveGroup;
  /** Absent when the group is defined in files of the agent. */
  readonly definition?: GroupDefinition;
  readonly members: readonly Member[];
  readonly snapshot: Snapshot;
  readonly listing: Listing;
}

/** Reads a group and its members. @throws Failure when the group or one of its StatefulSets does not exist. */
export async function readMembers(cluster: Cluster, name: GroupName): Promise<Members> {
  const isGroup = (group: GroupDefinition) => group.namespace === name.namespace && group.name === name.group;
  const { groups, world, listing, snapshot } = await readSnapshot(cluster, scopeOf([name]), isGroup);
  const [live] = groups;
  if (live === undefined) throw new Failure({ exitCode: exitCodes.notFound, what: `group ${name.namespace}/${name.group} does not exist` });
  const definition = world.policies.groups.find(isGroup);
  const members = live.decision.zones.map(({ zone, statefulSet }) => memberOf(listing, name.namespace, zone, statefulSet));
  return { live, members, snapshot, listing, ...(definition && { definition }) };
}

function memberOf({ statefulSets }: Listing, namespace: string, zone: string, statefulSet: string): Member {
  const object = itemsOf(statefulSets).find(({ metadata }) => metadata.namespace === namespace && metadata.name === statefulSet);
  const view = object === undefined ? { unknown: 'it does not exist or may not be read' } : observeStatefulSet(object);
  if (object !== undefined && !isUnknown(view)) return { zone, object, view };
  throw new Failure({
    exitCode: exitCodes.notFound,
    what: `StatefulSet ${namespace}/${statefulSet} of zone ${zone} cannot be used`,
    ...(isUnknown(view) ? { why: view.unknown } : {}),
    todo: `kubectl get statefulset ${statefulSet} -n ${namespace}`,
  });
}

/** @throws Failure with exit code 5 when the judgement denies the request. */
export function refuseWhenDenied({ outcome, message, results }: Judgement, name: string): void {
  if (outcome !== 'deny') return;
  const leading = leadingResult(results);
  const written = sourceText(leading?.source);
  throw new Failure({
    exitCode: exitCodes.refused,
    what: message,
    ...(written === undefined ? {} : { why: `${leading?.rule} is defined at ${written}` }),
    todo: `kubectl rollout-group explain ${name}`,
  });
}

/**
 * Refuses a new template on a StatefulSet that Kubernetes itself would roll at once, in all zones together. `what` names the change, such as
 * `a restart of mimir/ingester`. @throws Failure then.
 */
export function refuseUnguarded({ view, zone }: Member, what: string): void {
  if (view.updateStrategy === 'OnDelete' || view.partition >= view.firstOrdinal + view.replicas) return;
  throw new Failure({
    exitCode: exitCodes.refused,
    what: `${what} would not proceed zone by zone`,
    why: `StatefulSet ${view.namespace}/${view.name} of zone ${zone} has the strategy RollingUpdate with partition ${view.partition}, so Kubernetes would replace its pods at once`,
    todo: 'give every member the strategy OnDelete, or a partition above its ordinals',
  });
}
