// Finds the groups that a command line names: by name, by one of their StatefulSets or pods, by labels, or all of them.
import { onStatus } from '../../cluster/request/failure.ts';
import { listObjects } from '../../cluster/request/read.ts';
import { groupBy } from '../../policies/values/group-by.ts';
import { rolloutGroups } from '../cluster-snapshot/kinds.ts';
import { type Cluster, type ConnectionFlags, withCluster } from '../connection.ts';
import type { CommandContext } from '../context.ts';
import { Failure, usageFailure } from '../failure.ts';
import { findSubject, readGroups, type Scope, scopeOf } from './groups.ts';
import { type GroupName, groupNamed, isMemberName, nameOf } from './target.ts';

/** Returns the group of `GROUP`, `NAMESPACE/GROUP`, `rolloutgroup/GROUP`, `sts/NAME` or `pod/NAME`. Throws for an unknown `sts` or `pod`. */
export async function findGroup(cluster: Cluster, text: string): Promise<GroupName> {
  const name = groupNamed(text, cluster);
  if (!isMemberName(text)) return name;
  const { live } = findSubject(await readGroups(cluster, { namespace: name.namespace, names: [] }), name);
  return { namespace: live.decision.namespace, group: live.decision.group };
}

export interface GroupChoice {
  readonly groups?: readonly string[];
  readonly selector?: string;
  readonly allNamespaces?: boolean;
}

/** Returns the scope of the names or of the flags -l and -A. */
export async function chosenScope(cluster: Cluster, { groups = [], selector, allNamespaces }: GroupChoice): Promise<Scope> {
  if (groups.length > 0 && selector !== undefined) throw usageFailure('names and --selector exclude each other', 'omit one of them');
  if (groups.length > 0) return scopeOf(await Promise.all(groups.map((text) => findGroup(cluster, text))));
  const namespace = allNamespaces === true ? undefined : cluster.namespace;
  return { namespace, names: [], ...(selector === undefined ? {} : { only: await labelled(cluster, namespace, selector) }) };
}

/** Returns the groups of the names or of the flags -l and -A. Throws Failure without a name and without these flags. */
export async function chosenGroups(cluster: Cluster, choice: GroupChoice): Promise<readonly GroupName[]> {
  const { groups = [], selector, allNamespaces } = choice;
  if (groups.length === 0 && selector === undefined && allNamespaces !== true)
    throw usageFailure('a group is missing', 'name a group, or select groups with --selector or --all-namespaces');
  const scope = await chosenScope(cluster, choice);
  if (scope.names.length > 0) return scope.names;
  return (await readGroups(cluster, scope)).groups.map(({ decision: { namespace, group } }) => ({ namespace, group }));
}

/**
 * Throws Failure if one of several groups on the command line does not exist, before the verb changes the first group. `group` is the group
 * that the verb is about to change.
 */
export async function refuseUnknownGroups(
  context: CommandContext,
  { group, together = [], ...flags }: ConnectionFlags & { readonly group?: string; readonly together?: readonly string[] },
): Promise<void> {
  if (together.length < 2 || group !== together[0]) return;
  await withCluster(context, flags, 'read', async (cluster) => {
    const { names } = await chosenScope(cluster, { groups: together });
    // A user may read only some namespaces.
    for (const [namespace, own] of groupBy(names, (name) => name.namespace)) {
      await readGroups(cluster, { namespace, names: own }).catch((error: unknown) => {
        throw error instanceof Failure ? new Failure({ ...error.details, what: `nothing was changed: ${error.message}` }) : error;
      });
    }
  });
}

/** Returns why a list of groups is empty. */
export function noGroupsText({ namespace }: Pick<Cluster, 'namespace'>, { selector, allNamespaces }: GroupChoice): string {
  return `no groups found${selector ? ` with the labels ${selector}` : ''}${allNamespaces === true ? '' : ` in namespace ${namespace}`}`;
}

/** Returns the groups whose RolloutGroup matches the selector. Other groups, such as those in files of the agent, never match. */
async function labelled({ env, timeoutMs }: Cluster, namespace: string | undefined, labelSelector: string): Promise<ReadonlySet<string>> {
  const list = listObjects(env, rolloutGroups, { namespace, labelSelector, site: 'live.selector', timeoutMs });
  const { items } = await list.catch(onStatus({ items: [] }, 404));
  return new Set(items.map(({ metadata }) => nameOf({ namespace: metadata.namespace ?? '', group: metadata.name })));
}
