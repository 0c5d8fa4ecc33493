// Reads a group for verbs that write: its definition, its StatefulSets as objects, a snapshot to judge requests, and the object to scale.
import { getObject } from '../../cluster/request/read.ts';
import { type KubernetesObject, type Resource, resources } from '../../cluster/request/resource.ts';
import type { Judgement, RuleResult } from '../../engine/decision.ts';
import { observeStatefulSet } from '../../engine/observe/objects.ts';
import { fieldAt } from '../../engine/observe/raw.ts';
import { leadingResult } from '../../engine/rule.ts';
import { isUnknown, type Snapshot, type StatefulSetView } from '../../engine/snapshot.ts';
import type { GroupDefinition, ZoneDefinition } from '../../policies/definition.ts';
import { isSameValue } from '../../policies/values/canonical-json.ts';
import { defined } from '../../policies/values/defined.ts';
import { resourcesOf, rolloutGroups } from '../cluster-snapshot/kinds.ts';
import { definitionDenial, itemsOf, type Listing, requiredStatefulSets } from '../cluster-snapshot/listing.ts';
import type { Cluster } from '../connection.ts';
import { connectionFailure, forbiddenFailure } from '../connection-failure.ts';
import { exitCodes, Failure, notFoundFailure, refusedFailure, usageFailure } from '../failure.ts';
import { missingTodo, todoOf } from '../output/explain.ts';
import { exceptionText, overrideText, sourceText } from '../output/plan/plan-text.ts';
import { type LiveGroup, onlyGroup, readSnapshot, scopeOf } from './groups.ts';
import type { InstallationFacts } from './installation.ts';
import { findGroup } from './named-group.ts';
import { type GroupName, nameOf } from './target.ts';

export interface Member {
  readonly zone: string;
  readonly object: KubernetesObject;
  readonly view: StatefulSetView;
}

export interface Members extends Pick<InstallationFacts, 'unread'> {
  readonly target: GroupName;
  readonly name: string;
  readonly live: LiveGroup;
  readonly members: readonly Member[];
  readonly snapshot: Snapshot;
  /** The snapshot of the objects alone. A webhook judges requests with such a snapshot. */
  readonly stored: Snapshot;
  readonly listing: Listing;
}

/**
 * Reads the group that the text names, and its members. Throws Failure if the group or one of its StatefulSets does not exist, or may not
 * be read.
 */
export async function readMembers(cluster: Cluster, text: string): Promise<Members> {
  const target = await findGroup(cluster, text);
  const { namespace, group } = target;
  const read = await readSnapshot(cluster, scopeOf([target]), (one) => one.namespace === namespace && one.name === group);
  const { listing, snapshot, stored, unread } = read;
  const live = onlyGroup(read);
  const objects = requiredStatefulSets(listing).filter(({ metadata }) => metadata.namespace === namespace);
  const members = live.decision.zones.map(({ zone, statefulSet }) => memberOf(objects, namespace, zone, statefulSet));
  return { target, name: nameOf(target), live, members, snapshot, stored, listing, ...defined({ unread }) };
}

function memberOf(objects: readonly KubernetesObject[], namespace: string, zone: string, statefulSet: string): Member {
  const object = objects.find(({ metadata }) => metadata.name === statefulSet);
  const view = object === undefined ? { unknown: 'it does not exist' } : observeStatefulSet(object);
  if (object !== undefined && !isUnknown(view)) return { zone, object, view };
  throw notFoundFailure(`StatefulSet ${namespace}/${statefulSet} of zone ${zone} cannot be used`, {
    ...(isUnknown(view) ? { why: view.unknown } : {}),
    todo: object === undefined ? missingTodo({ zone, statefulSet }) : `kubectl get statefulset ${statefulSet} -n ${namespace}`,
  });
}

/**
 * Throws Failure with exit code 5 if the judgement denies the request. Returns a sentence for each exception that permits the request. `others`
 * returns more commands that help against the leading result.
 */
export function refuseWhenDenied(
  { outcome, message, results, override }: Judgement,
  name: string,
  others: (leading: RuleResult) => readonly string[] = () => [],
): readonly string[] {
  if (outcome !== 'deny') return results.flatMap((result) => (result.exception === undefined ? [] : exceptionText(result, undefined)));
  const leading = leadingResult(results);
  const explain = `kubectl rollout-group explain ${name}`;
  const written = sourceText(leading?.source);
  throw refusedFailure(message, {
    ...(written === undefined ? {} : { why: `${leading?.rule} is defined at ${written}` }),
    todo: [
      ...(leading === undefined ? [explain] : [todoOf(leading, name)[0] ?? explain, ...others(leading)]),
      ...(override === undefined ? [] : [overrideText(override)]),
    ].join('; '),
  });
}

/**
 * Throws Failure for a template change if Kubernetes would replace the pods of the StatefulSet at once. `what` names the change, such as
 * `a restart of mimir/ingester`.
 */
export function refuseUnguarded({ view, zone }: Member, what: string): void {
  if (view.updateStrategy === 'OnDelete' || view.partition >= view.replicas) return;
  throw refusedFailure(`${what} would not proceed zone by zone`, {
    why: `StatefulSet ${view.namespace}/${view.name} of zone ${zone} has the updateStrategy RollingUpdate with partition ${view.partition}, so Kubernetes would replace its pods at once`,
    todo: 'with strategy: onDelete, give every member the updateStrategy OnDelete; otherwise wait until the agent has raised the partition',
  });
}

/**
 * Reads the StatefulSet again after a conflict. Throws Failure if its spec changed since the preview and the judgement. A change of its status
 * does not matter.
 */
export async function readUnchanged({ env, timeoutMs }: Cluster, { object, view }: Member): Promise<KubernetesObject> {
  const { namespace, name, uid, generation } = view;
  const now = await getObject(env, resources.statefulSets, { namespace, name }, { site: 'act.readMember', timeoutMs });
  const isSame = now?.metadata.uid === uid;
  if (now !== undefined && isSame && now.metadata['generation'] === generation) return now;
  const part = isSameValue(fieldAt(now, ['spec', 'template']), fieldAt(object, ['spec', 'template'])) ? 'spec' : 'template';
  const how = isSame ? `got another ${part} in the meantime` : 'was deleted, and perhaps created again, in the meantime';
  const todo = `check the change: kubectl get statefulset ${name} -n ${namespace} -o yaml`;
  throw new Failure({ exitCode: exitCodes.stale, what: `StatefulSet ${namespace}/${name} ${how}`, todo });
}

interface MemberWrites {
  /** The outcome as a clause, such as `mimir/ingester was restarted`. */
  readonly what: string;
  /** A clause that says why the user may safely repeat the command. */
  readonly again: string;
  readonly isDryRun: boolean;
  /** A clause about an object that was written before the members. With it, a failure at the first member also counts as partial. */
  readonly begun?: string | undefined;
}

/** Writes one member after another. If a write fails, the error names the objects that are already written, except in a dry run. */
export async function writeEach<One>(
  { server }: Cluster,
  ones: readonly One[],
  write: (one: One) => Promise<KubernetesObject>,
  { what, again, isDryRun, begun }: MemberWrites,
): Promise<readonly KubernetesObject[]> {
  const done: KubernetesObject[] = [];
  for (const one of ones) {
    try {
      done.push(await write(one));
    } catch (error) {
      const failure = connectionFailure(error, server);
      const known = [...(begun === undefined ? [] : [begun]), ...membersText(done)];
      if (isDryRun || known.length === 0 || !(failure instanceof Failure)) throw failure;
      const { why, todo, ...details } = failure.details;
      throw new Failure({
        ...details,
        what: `${what} only in part: ${details.what}`,
        why: joined([known.join('; '), why], '; then: '),
        todo: joined([todo, `repeat the command. That is safe: ${again}`], '; then '),
      });
    }
  }
  return done;
}

function membersText(done: readonly KubernetesObject[]): readonly string[] {
  const names = done.map(({ metadata }) => metadata.name).join(', ');
  return done.length === 0 ? [] : [`${names} ${done.length === 1 ? 'already has its' : 'already have their'} new template`];
}

function joined(parts: readonly (string | undefined)[], separator: string): string {
  return parts.filter((part) => part !== undefined).join(separator);
}

export interface ScaleTarget {
  readonly resource: Resource;
  readonly namespace: string;
  readonly name: string;
  /** The zone that --zone names, else the first leading zone. The target sets the replicas of this zone. */
  readonly zone: ZoneDefinition;
  readonly shown: string;
}

/** Finds the object to scale. If there is no such object, throws a Failure that says what to change. */
export async function scaleTarget(cluster: Cluster, { live, listing }: Members, zoneName: string | undefined): Promise<ScaleTarget> {
  const { definition } = live;
  const { namespace, group } = live.decision;
  if (definition === undefined) {
    const denial = definitionDenial(listing);
    if (denial !== undefined) throw forbiddenFailure(denial);
    throw notFoundFailure(`the replica source of ${namespace}/${group} cannot be read here`, {
      why: 'the group is defined in files of the agent, not as an object',
      todo: 'define the group as an object instead: kubectl apply -f FILE',
    });
  }
  const zone = leaderOf(definition, zoneName);
  const { replicas } = zone;
  switch (replicas.kind) {
    case 'leader':
      return { resource: resources.statefulSets, namespace, name: zone.statefulSet, zone, shown: `statefulset/${zone.statefulSet}` };
    case 'count': {
      const object = itemsOf(listing.groups).find(({ metadata }) => metadata.namespace === namespace && metadata.name === group);
      if (object === undefined) throw writtenElsewhere(definition, zone, 'the count is in a policy file', 'change the policy file');
      return { resource: rolloutGroups, namespace, name: group, zone, shown: `rolloutgroup/${group}` };
    }
    case 'mirror': {
      const { apiVersion, read, resourceKind, name } = replicas;
      if (read !== 'scale') {
        const todo =
          read === 'desiredReplicas'
            ? `change minReplicas and maxReplicas: kubectl edit hpa ${name} -n ${namespace}`
            : `change ${resourceKind} ${name}`;
        throw writtenElsewhere(definition, zone, `${resourceKind} ${name} sets its replicas`, todo);
      }
      const resource = (await resourcesOf(cluster, [{ apiVersion, kind: resourceKind }]))(apiVersion, resourceKind);
      if (resource === undefined)
        throw writtenElsewhere(definition, zone, `the API server serves no ${resourceKind} of ${apiVersion}`, `install ${resourceKind}`);
      return { resource, namespace, name, zone, shown: `${resourceKind.toLowerCase()}/${name}` };
    }
  }
}

function leaderOf({ zones, namespace, name }: GroupDefinition, wanted: string | undefined): ZoneDefinition {
  const leaders = zones.filter(({ follows }) => follows === undefined);
  if (wanted !== undefined) {
    const zone = zones.find((candidate) => candidate.name === wanted || candidate.statefulSet === wanted);
    if (zone === undefined)
      throw usageFailure(`${namespace}/${name} has no zone ${wanted}`, `its leading zones: ${leaders.map(({ name }) => name).join(', ')}`);
    if (zone.follows !== undefined)
      throw usageFailure(`zone ${zone.name} follows ${zone.follows} and takes its replicas from there`, `scale ${zone.follows}`);
    return zone;
  }
  const [first, ...others] = leaders;
  if (first === undefined) throw usageFailure(`${namespace}/${name} has no leading zone`, 'lint its policy');
  // Zones with the same source of replicas have one target.
  const key = ({ replicas }: ZoneDefinition): string => JSON.stringify(replicas.kind === 'count' ? 'count' : replicas);
  if (others.length > 0 && (first.replicas.kind === 'leader' || others.some((other) => key(other) !== key(first)))) {
    const every = `for zone in ${leaders.map((leader) => leader.name).join(' ')}; do kubectl rollout-group scale ${namespace}/${name}`;
    const todo = `name one with --zone, or scale all: ${every} --zone $zone --replicas NUMBER; done`;
    throw usageFailure(`${namespace}/${name} has ${leaders.length} leading zones, and each has its own replicas`, todo);
  }
  return first;
}

function writtenElsewhere({ namespace, name }: GroupDefinition, { name: zone }: ZoneDefinition, why: string, todo: string): Failure {
  return refusedFailure(`zone ${zone} of ${namespace}/${name} cannot be scaled here`, { why, todo });
}
