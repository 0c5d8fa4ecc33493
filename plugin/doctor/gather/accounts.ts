// Finds the account of each agent that decides in the namespaces of the groups, and reads its rights.
import { isStatus } from '../../../cluster/request/failure.ts';
import { getObject } from '../../../cluster/request/read.ts';
import { type KubernetesObject, type Resource, resources } from '../../../cluster/request/resource.ts';
import { fieldAt } from '../../../engine/observe/raw.ts';
import { isUnknown, type Known } from '../../../engine/snapshot.ts';
import type { Cluster } from '../../connection.ts';
import { leaseOfNamespace } from '../../live/published-decisions.ts';
import { namespacesFlagOf } from '../../source/agent-namespace.ts';
import type { AccountFact, LeaseFact, PublishedFact } from '../check.ts';
import { readRights, whoAmI } from './rights.ts';

interface AccountsQuestion {
  /** Namespaces of the groups. */
  readonly watched: readonly string[];
  /** Namespaces with groups whose pods are pinned. */
  readonly pinned: readonly string[];
  /** Namespaces with groups whose replicas come from a ReplicaTemplate. */
  readonly mirroring?: readonly string[];
  readonly leases: Known<readonly LeaseFact[]>;
  readonly published: Known<readonly PublishedFact[]>;
  /** `namespace/name` from the flag, for every namespace. */
  readonly serviceAccount?: string;
  /** The agent's namespace from the flag. */
  readonly agentNamespace?: string;
  /** The expected namespace of the agent while no agent holds a Lease. */
  readonly usualNamespace: string;
}

/** In deploy/rbac.yaml. */
const agentAccount = 'rollout-group-agent';
const tellUs = 'name it with --agent-service-account NAMESPACE/NAME';

const serviceAccounts: Resource = { group: '', version: 'v1', plural: 'serviceaccounts', kind: 'ServiceAccount', isNamespaced: true };

/** An agent and the namespaces that it decides about. */
interface Deciding {
  readonly agentNamespace: string;
  /** Absent if no agent holds a Lease. */
  readonly lease?: LeaseFact;
  readonly namespaces: string[];
}

/** Returns one entry for each agent, and one for all namespaces whose agent is unknown. */
export async function readAccounts(cluster: Cluster, question: AccountsQuestion): Promise<readonly AccountFact[]> {
  const { deciding, undecided } = share(question);
  const facts: AccountFact[] = [];
  for (const agent of deciding) {
    const pod = await podOf(cluster, agent);
    const account = question.serviceAccount ?? (await accountOf(cluster, agent, pod));
    const { agentNamespace } = agent;
    const told = namespacesFlagOf(fieldAt(pod, ['spec']));
    const isWatched = (one: string): boolean => told === undefined || told.includes('*') || told.includes(one);
    const namespaces = agent.namespaces.filter(isWatched);
    const others = agent.namespaces.filter((one) => !isWatched(one));
    const unwatched = others.length === 0 ? {} : { unwatched: { namespaces: others, told: `-namespaces=${(told ?? []).join(',')}` } };
    if (typeof account !== 'string') facts.push({ name: agentNamespace, rights: account, ...unwatched });
    else {
      const { pinned, mirroring = [] } = question;
      facts.push({
        name: account,
        rights: await readRights(cluster, { account, agentNamespace, namespaces, pinned, mirroring }),
        ...unwatched,
      });
    }
  }
  if (undecided.length > 0) {
    const unknown = `several agents run, and the agent that decides in ${undecided.join(', ')} is unknown; ${tellUs}`;
    facts.push({ name: undecided.join(', '), rights: { unknown } });
  }
  return facts;
}

function share({ watched, leases, published, serviceAccount, agentNamespace, usualNamespace }: AccountsQuestion) {
  const all = isUnknown(leases) ? [] : leases.filter(({ holder }) => holder !== '');
  const held = agentNamespace === undefined ? all : all.filter(({ namespace }) => namespace === agentNamespace);
  const [first] = held;
  if (serviceAccount !== undefined || held.length < 2) {
    const only: Deciding = { agentNamespace: first?.namespace ?? usualNamespace, namespaces: [...watched], ...(first && { lease: first }) };
    // An account from the flag is that of the deciding agent.
    return { deciding: [serviceAccount === undefined ? only : { ...only, agentNamespace: usualNamespace }], undecided: [] };
  }
  const deciding = new Map<LeaseFact, Deciding>();
  const undecided: string[] = [];
  for (const namespace of watched) {
    const lease = leaseOfNamespace(held, published, namespace);
    if (lease === undefined) {
      undecided.push(namespace);
      continue;
    }
    const agent = deciding.get(lease) ?? { agentNamespace: lease.namespace, lease, namespaces: [] };
    agent.namespaces.push(namespace);
    deciding.set(lease, agent);
  }
  return { deciding: [...deciding.values()], undecided };
}

/**
 * Returns the account of the agent's pod, else the default account if it exists. An agent with another name outside the cluster has
 * neither.
 */
async function accountOf(
  cluster: Cluster,
  { agentNamespace: namespace, lease }: Deciding,
  pod: KubernetesObject | undefined,
): Promise<Known<string>> {
  const { env, timeoutMs } = cluster;
  const name = fieldAt(pod, ['spec', 'serviceAccountName']);
  if (typeof name === 'string' && name !== '') return `${namespace}/${name}`;
  const usual = `${namespace}/${agentAccount}`;
  if ((await whoAmI(cluster)) === `system:serviceaccount:${namespace}:${agentAccount}`) return usual;
  try {
    const site = 'doctor.agentAccount';
    const account = await getObject(env, serviceAccounts, { namespace, name: agentAccount }, { site, timeoutMs });
    if (account !== undefined) return usual;
  } catch (error) {
    if (!isStatus(error, 403)) throw error;
    return { unknown: `no permission to get serviceaccounts in ${namespace}, so the account of the agent is unknown; ${tellUs}` };
  }
  const who = lease === undefined ? 'no agent runs' : `no Pod tells the account of ${lease.holder}`;
  return { unknown: `${who}, and there is no ServiceAccount ${usual}; ${tellUs}` };
}

/** The identity of an agent begins with the name of its pod. Returns undefined without such a pod, or if pods may not be read. */
async function podOf({ env, timeoutMs }: Cluster, { agentNamespace: namespace, lease }: Deciding): Promise<KubernetesObject | undefined> {
  const name = lease?.holder.replace(/_[^_]*$/, '') ?? '';
  if (!/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name)) return undefined;
  try {
    return await getObject(env, resources.pods, { namespace, name }, { site: 'doctor.agentPod', timeoutMs });
  } catch (error) {
    if (isStatus(error, 403)) return undefined;
    throw error;
  }
}
