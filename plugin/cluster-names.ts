// Reads the names that completion offers from the cluster and the kubeconfig, within a deadline.
import { listObjects } from '../cluster/request/read.ts';
import { type Resource, resources } from '../cluster/request/resource.ts';
import type { ClusterQuestion, ClusterSubject } from './cluster-candidates.ts';
import { rolloutExceptions, rolloutIntents } from './cluster-snapshot/kinds.ts';
import { listCluster } from './cluster-snapshot/listing.ts';
import { clusterState } from './cluster-snapshot/snapshot.ts';
import { type Cluster, type ConnectionContext, type ConnectionFlags, connect } from './connection.ts';
import { type ReadGroups, readGroups, type Scope } from './live/groups.ts';
import { readRuns } from './live/history.ts';
import { overridableRules } from './live/overridable-rules.ts';
import { groupNamed } from './live/target.ts';

/** The deadline of credentials and requests. With the start of the process, an answer that is not cached takes about 450 ms. */
const deadlineMs = 180;

/** Returns the names, unsorted. Rejects after an error or the deadline. */
export async function namesFor({ subject, flags, group }: ClusterQuestion): Promise<readonly string[]> {
  if (subject === 'context') return contextNames(flags);
  const { asGroup = [] } = flags;
  return withinDeadline(async () => {
    const cluster = await connect(silent, { ...flags, asGroup: [asGroup].flat() }, 'read');
    try {
      return await namesOf({ ...cluster, timeoutMs: deadlineMs }, subject, group);
    } finally {
      cluster.close();
    }
  });
}

/** The context in which a credential plugin neither prompts nor writes, because the user is typing a command. */
const silent: ConnectionContext = {
  env: process.env,
  verbosity: 0,
  stderr: { write: () => true },
  terminal: { isTerminal: false, pluginStderr: 'ignore' },
};

/** Returns the result. Rejects after the deadline, for example if a credential plugin is slow. */
async function withinDeadline<Result>(ask: () => Promise<Result>): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('too late')), deadlineMs);
  });
  try {
    return await Promise.race([ask(), late]);
  } finally {
    clearTimeout(timer);
  }
}

async function contextNames({ kubeconfig }: ConnectionFlags): Promise<readonly string[]> {
  const { contextsOf } = await import('../cluster/kubeconfig/kubeconfig.ts');
  const { connectionProcess } = await import('../cluster/connection/process-env.ts');
  return contextsOf(kubeconfig === undefined ? {} : { kubeconfig }, connectionProcess());
}

async function namesOf(
  cluster: Cluster,
  subject: Exclude<ClusterSubject, 'context'>,
  text: string | undefined,
): Promise<readonly string[]> {
  const { namespace } = cluster;
  if (subject === 'namespace') return objectNames(cluster, resources.namespaces, undefined);
  if (subject === 'request') {
    const kinds = [rolloutIntents, rolloutExceptions];
    return (await Promise.all(kinds.map((kind) => objectNames(cluster, kind, namespace)))).flat();
  }
  const name = text === undefined ? undefined : groupNamed(text, cluster);
  if (subject === 'run') return name === undefined ? [] : (await readRuns(cluster, name)).runs.map(({ id }) => id);
  const scope = { namespace: name?.namespace ?? namespace, names: name === undefined ? [] : [name] };
  if (subject === 'rule') return rulesOf(cluster, scope);
  return groupParts(await readGroups(cluster, scope), subject);
}

/** Returns the rules that `override` accepts for the groups. */
async function rulesOf(cluster: Cluster, scope: Scope): Promise<readonly string[]> {
  const [{ groups, listing }, more] = await Promise.all([
    readGroups(cluster, scope),
    listCluster(cluster, ['policies', 'agentPolicies'], scope.namespace === undefined ? undefined : [scope.namespace]),
  ]);
  const { policies } = clusterState({ ...listing, ...more }, cluster.agentNamespace).policies;
  return groups.flatMap(({ decision }) => overridableRules(policies, decision));
}

function groupParts({ groups, world }: ReadGroups, subject: 'group' | 'zone' | 'wave' | 'gate'): readonly string[] {
  const decisions = groups.map(({ decision }) => decision);
  const isShown = (one: { readonly namespace: string; readonly name: string }): boolean =>
    decisions.some(({ namespace, group }) => namespace === one.namespace && group === one.name);
  switch (subject) {
    case 'group':
      return decisions.map(({ group }) => group);
    case 'zone':
      return decisions.flatMap(({ zones }) => zones.map(({ zone }) => zone));
    case 'wave': {
      const published = decisions.flatMap(({ wave }) => (wave === undefined ? [] : [wave.name]));
      return [...published, ...world.policies.groups.filter(isShown).flatMap(({ rollout }) => rollout.waves.map(({ name }) => name))];
    }
    case 'gate':
      return decisions.flatMap(({ gates }) => gates.map(({ gate }) => gate));
  }
}

async function objectNames({ env, timeoutMs }: Cluster, resource: Resource, namespace: string | undefined): Promise<readonly string[]> {
  const { items } = await listObjects(env, resource, { namespace, site: 'complete', timeoutMs });
  return items.map(({ metadata }) => metadata.name);
}
