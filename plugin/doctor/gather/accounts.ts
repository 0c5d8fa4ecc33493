// Finds the account of each agent that decides in the namespaces of the groups, and reads the rights of the account by access reviews.

import { inParallel } from '../../../cluster/pods.ts';
import { ApiFailure, onStatus } from '../../../cluster/request/failure.ts';
import { getObject } from '../../../cluster/request/read.ts';
import { type KubernetesObject, resourceOf, resources } from '../../../cluster/request/resource.ts';
import { fieldAt } from '../../../engine/observe/raw.ts';
import type { PublishedDecision } from '../../../engine/publish/published.ts';
import type { Requester } from '../../../engine/rules/policy.ts';
import { isUnknown, type Known, type MissingAccess, type Snapshot } from '../../../engine/snapshot.ts';
import type { Configuration } from '../../../install/rights.ts';
import { mirrorsOf } from '../../../install/scope.ts';
import type { GroupDefinition } from '../../../policies/definition.ts';
import { agentName, usualAgentNamespace } from '../../../policies/objects/agent-deployment.ts';
import { traitsOf } from '../../../policies/strategies.ts';
import { defined } from '../../../policies/values/defined.ts';
import { listOf } from '../../../policies/values/list-of.ts';
import { itemsOf, type Listing } from '../../cluster-snapshot/listing.ts';
import type { Cluster } from '../../connection.ts';
import { type AgentLease, agentState, type LatestDecision, leaseOfNamespace, notRunningText, readAgentLeases } from '../../live/agent.ts';
import {
  type AgentRight,
  agentRights,
  isNeeded,
  mirrorRights,
  missingText,
  missingVerbs,
  rightsWithLease,
  servingRights,
  unwatchedText,
} from '../agent-rights.ts';
import type { AccountFact, RightFact } from '../check.ts';

interface AccountsQuestion {
  readonly watched: readonly string[];
  /** The namespaces with groups. In other namespaces the agent needs no rights. Default: every watched namespace. */
  readonly managed?: readonly string[];
  readonly pinned: readonly string[];
  readonly mirrored?: readonly RightInNamespace[];
  /** The registered webhook configurations. If absent, the rights of processes that serve webhooks are not read. */
  readonly configurations?: readonly Configuration[];
  readonly leases: Known<readonly AgentLease[]>;
  readonly published: Known<readonly LatestDecision[]>;
  /** The account from the flag, as `namespace/name`. Its rights are read in every namespace. */
  readonly serviceAccount?: string;
  /** If present, only a Lease in this namespace counts. */
  readonly agentNamespace?: string;
  /** The agent's namespace if no agent holds a Lease, or if the flag names the account. */
  readonly usualNamespace: string;
  /** Selects the rights to review; default: all. */
  readonly isAsked?: (right: AgentRight) => boolean;
}

const nameTheAccount = 'name the account with --agent-service-account NAMESPACE/NAME';

const serviceAccounts = resourceOf('v1', 'serviceaccounts', 'ServiceAccount');

interface DecidingAgent {
  readonly agentNamespace: string;
  /** Absent if no agent holds a Lease. */
  readonly lease?: AgentLease;
  readonly namespaces: string[];
}

/** Returns one entry for each agent, and one for all namespaces whose agent is unknown. */
export async function readAccounts(cluster: Cluster, question: AccountsQuestion): Promise<readonly AccountFact[]> {
  const { deciding, undecided } = assignNamespaces(question);
  const facts: AccountFact[] = [];
  for (const agent of deciding) {
    const pod = await podOf(cluster, agent);
    const account = question.serviceAccount ?? (await accountOf(cluster, agent, pod));
    const { agentNamespace } = agent;
    const words = wordsOf(fieldAt(pod, ['spec']));
    const watched = namespacesFlagOf(words) ?? ['*'];
    const all = words.some((word) => /^--?leader-election=required$/.test(word)) ? rightsWithLease : agentRights;
    const rights = all.filter(question.isAsked ?? (() => true));
    const isWatched = (one: string): boolean => watched.includes('*') || watched.includes(one);
    const namespaces = agent.namespaces.filter((one) => isWatched(one) && (question.managed?.includes(one) ?? true));
    const others = agent.namespaces.filter((one) => !isWatched(one));
    const isKnown = typeof account === 'string';
    const serving = question.configurations === undefined ? [] : servingRightsOf(words, agentNamespace, question.configurations);
    facts.push({
      name: isKnown ? account : agentNamespace,
      watched: namespaces,
      rights: isKnown ? await readRights(cluster, { ...question, account, agentNamespace, namespaces, rights, serving }) : account,
      ...(others.length === 0 ? {} : { unwatched: { namespaces: others, flag: `-namespaces=${watched.join(',')}` } }),
    });
  }
  if (undecided.length > 0) {
    const unknown = `several agents run, and the agent that decides in ${undecided.join(', ')} is unknown; ${nameTheAccount}`;
    facts.push({ name: undecided.join(', '), rights: { unknown } });
  }
  return facts;
}

export interface AgentFacts extends Required<Pick<Snapshot, 'unattended' | 'missingAccess'>> {
  /** One sentence for each reason why an agent of these groups does not run. */
  readonly stopped: readonly string[];
  readonly isAccessUnknown: boolean;
}

/** Reads which agents of the groups do not run, and which access the agents lack. The rule `agent-access` blocks the affected steps. */
export async function readAgentFacts(
  cluster: Cluster,
  groups: readonly GroupDefinition[],
  listing: Pick<Listing, 'groups'>,
  published: ReadonlyMap<string, PublishedDecision>,
): Promise<AgentFacts> {
  const { agentNamespace } = cluster;
  if (groups.length === 0) return { stopped: [], unattended: [], missingAccess: [], isAccessUnknown: false };
  const decided = groups.map(({ namespace, name }) => published.get(`${namespace}/${name}`) ?? { namespace, group: name });
  const agents = await readAgentLeases(cluster, decided);
  const question = {
    watched: [...new Set(groups.map(({ namespace }) => namespace))],
    pinned: groups.filter((group) => traitsOf(group).pinsPods).map(({ namespace }) => namespace),
    mirrored: mirrorsOf(groups)
      .flatMap(mirrorRights)
      .filter(({ right }) => isNeeded(right)),
    leases: agents.leases,
    published: [...published.values()],
    usualNamespace: agentNamespace ?? usualAgentNamespace,
    isAsked: isNeeded,
    ...defined({ agentNamespace }),
  };
  const accounts = await readAccounts(cluster, question).catch(onApiFailure);
  const isAccessUnknown = accounts?.some(({ rights }) => isUnknown(rights)) ?? true;
  const stopped = decided.flatMap((one) => {
    const state = agentState(agents, one);
    const { namespace, group } = one;
    return state.kind === 'stopped' ? [{ namespace, group, fact: notRunningText(state.why), isLost: state.isLost }] : [];
  });
  return {
    stopped: [...new Set(stopped.map(({ fact }) => fact))],
    unattended: stopped.filter(({ isLost }) => isLost),
    missingAccess: [...missingAccess(accounts ?? [], listing), ...(isAccessUnknown ? question.published.flatMap(deniedByServer) : [])],
    isAccessUnknown,
  };
}

/**
 * Returns by namespace why the agent sees no pods there, as a sentence: what it published there stays as it is. Reviews one right of each
 * namespace, because the usual cause is a deleted Role. Empty if the user may not review the rights of the agent.
 */
export async function readBlindNamespaces(
  cluster: Cluster,
  published: readonly PublishedDecision[],
  leases: AccountsQuestion['leases'],
): Promise<ReadonlyMap<string, string>> {
  const { agentNamespace } = cluster;
  const accounts = await readAccounts(cluster, {
    watched: [...new Set(published.map(({ namespace }) => namespace))],
    pinned: [],
    leases,
    published,
    usualNamespace: agentNamespace ?? usualAgentNamespace,
    isAsked: ({ resource, verb }) => resource === 'pods' && verb === 'list',
    ...defined({ agentNamespace }),
  }).catch(onApiFailure);
  const missing = missingAccess(accounts ?? [], {});
  return new Map(missing.toReversed().flatMap(({ namespaces, fact }) => namespaces.map((namespace) => [namespace, fact] as const)));
}

/** Returns why the agent does not see the group; undefined if it is known to see the group. */
export function unseenText({ missingAccess, isAccessUnknown }: AgentFacts, { namespace, name }: GroupDefinition): string | undefined {
  const ofGroup = missingAccess.filter((one) => one.namespaces.includes(namespace) && (one.group ?? name) === name);
  const [first] = ofGroup.filter(({ action }) => action === undefined);
  return first?.fact ?? (isAccessUnknown ? 'the access of the agent is unknown' : undefined);
}

function missingAccess(accounts: readonly AccountFact[], { groups }: Pick<Listing, 'groups'>): readonly MissingAccess[] {
  return accounts.flatMap(({ name, rights, watched = [], unwatched }): readonly MissingAccess[] => [
    ...(unwatched === undefined ? [] : [{ namespaces: unwatched.namespaces, fact: unwatchedText(unwatched) }]),
    ...(isUnknown(rights) ? [] : missingVerbs(rights)).flatMap((one): readonly MissingAccess[] => {
      const { right, namespace } = one;
      const namespaces = right.scope === 'namespace' && namespace !== undefined ? [namespace] : watched;
      const { action, mirroredKind, object } = right;
      const source = mirroredKind === undefined ? undefined : `${mirroredKind} ${object}`;
      const access = { namespaces, fact: missingText(name, one), ...defined({ action, object: source }) };
      if (right.showsGroups !== true) return [access];
      return itemsOf(groups).map(({ metadata }) => ({
        ...access,
        namespaces: namespaces.filter((of) => of === metadata.namespace),
        group: metadata.name,
      }));
    }),
  ]);
}

/** Returns the rights that the API server denied to the agent, as the agent published them. */
function deniedByServer({ namespace, group, waits }: PublishedDecision): readonly MissingAccess[] {
  return waits.flatMap(({ rule, fact }) => (rule === 'agent-access' ? [{ namespaces: [namespace], group, fact }] : []));
}

function assignNamespaces({ watched, leases, published, serviceAccount, agentNamespace, usualNamespace }: AccountsQuestion) {
  const all = itemsOf(leases).filter(({ holder }) => holder !== '');
  const held = agentNamespace === undefined ? all : all.filter(({ namespace }) => namespace === agentNamespace);
  const [first] = held;
  if (serviceAccount !== undefined || held.length < 2) {
    const only: DecidingAgent = {
      agentNamespace: first?.namespace ?? usualNamespace,
      namespaces: [...watched],
      ...(first && { lease: first }),
    };
    // An account that the user names belongs to the agent in `usualNamespace`.
    return { deciding: [serviceAccount === undefined ? only : { ...only, agentNamespace: usualNamespace }], undecided: [] };
  }
  const deciding = new Map<AgentLease, DecidingAgent>();
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

/** Returns the account of the agent's pod, else the default account if it exists. An agent outside the cluster may have neither. */
async function accountOf(
  cluster: Cluster,
  { agentNamespace: namespace, lease }: DecidingAgent,
  pod: KubernetesObject | undefined,
): Promise<Known<string>> {
  const { env, timeoutMs } = cluster;
  const name = fieldAt(pod, ['spec', 'serviceAccountName']);
  if (typeof name === 'string' && name !== '') return `${namespace}/${name}`;
  const usual = `${namespace}/${agentName}`;
  if ((await readUser(cluster))?.user === `system:serviceaccount:${namespace}:${agentName}`) return usual;
  const target = { namespace, name: agentName };
  const read = getObject(env, serviceAccounts, target, { site: 'doctor.agentAccount', timeoutMs });
  const account = await read.catch(onStatus('denied', 403));
  if (account === 'denied') {
    return { unknown: `no permission to get serviceaccounts in ${namespace}, so the account of the agent is unknown; ${nameTheAccount}` };
  }
  if (account !== undefined) return usual;
  const who = lease === undefined ? 'no agent runs' : `no Pod shows the account of ${lease.holder}`;
  return { unknown: `${who}, and there is no ServiceAccount ${usual}; ${nameTheAccount}` };
}

/**
 * Returns the pod of the agent: the holder in the Lease begins with the name of the pod. Undefined without such a pod or without permission
 * to read it.
 */
async function podOf(
  { env, timeoutMs }: Cluster,
  { agentNamespace: namespace, lease }: DecidingAgent,
): Promise<KubernetesObject | undefined> {
  const name = lease?.holder.replace(/_[^_]*$/, '') ?? '';
  if (!/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name)) return undefined;
  return getObject(env, resources.pods, { namespace, name }, { site: 'doctor.agentPod', timeoutMs }).catch(onStatus(undefined, 403));
}

interface RightsQuestion extends Pick<AccountsQuestion, 'pinned' | 'mirrored'> {
  /** `namespace/name` of the service account. */
  readonly account: string;
  readonly agentNamespace: string;
  readonly namespaces: readonly string[];
  readonly rights: readonly AgentRight[];
  readonly serving: readonly RightInNamespace[];
}

type RightInNamespace = Omit<RightFact, 'isAllowed'>;

/** The number of reviews at once. One after the other would be slow if the authorizer calls a webhook. */
const atOnce = 16;

/** Returns each right, with the answer for each namespace that needs it. Unknown if the user may not review the rights of the account. */
export async function readRights(cluster: Cluster, question: RightsQuestion): Promise<Known<readonly RightFact[]>> {
  const { account, agentNamespace, namespaces, pinned, mirrored = [], rights, serving } = question;
  const ofAll = rights.flatMap((right): readonly RightInNamespace[] => {
    const { only } = right;
    const watched = only === undefined ? namespaces : namespaces.filter((one) => pinned.includes(one));
    if (right.scope === 'cluster') return only === undefined || watched.length > 0 ? [{ right }] : [];
    return (right.scope === 'agent' ? [agentNamespace] : watched).map((namespace) => ({ right, namespace }));
  });
  const asked = [...ofAll, ...mirrored.filter((one) => namespaces.some((namespace) => namespace === one.namespace)), ...serving];
  const [namespace = '', name = ''] = account.split('/');
  const user = `system:serviceaccount:${namespace}:${name}`;
  const groups = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'];
  const reviewed = await reviewAll(cluster, asked, { user, groups }).catch(onStatus(undefined, 403));
  if (reviewed !== undefined) return reviewed;
  if ((await readUser(cluster))?.user === user) return reviewAll(cluster, asked);
  return { unknown: `no permission to create subjectaccessreviews, so the rights of ${account} are unknown; try --as ${user}` };
}

async function reviewAll(cluster: Cluster, asked: readonly RightInNamespace[], subject?: object): Promise<readonly RightFact[]> {
  const kind = subject === undefined ? 'SelfSubjectAccessReview' : 'SubjectAccessReview';
  const review = async (one: RightInNamespace): Promise<RightFact> => {
    const { right, namespace } = one;
    const [resource, subresource] = right.resource.split('/');
    const resourceAttributes = { group: right.group, resource, verb: right.verb, subresource, namespace, name: right.object };
    const answer = await post(cluster, 'authorization.k8s.io/v1', kind, { ...subject, resourceAttributes });
    return { ...one, isAllowed: fieldAt(answer, ['status', 'allowed']) === true };
  };
  return inParallel(asked, review, atOnce);
}

/** Returns the user of the connection and its groups; undefined if the API server does not return them. */
export async function readUser(cluster: Cluster): Promise<Required<Requester> | undefined> {
  const answer = await post(cluster, 'authentication.k8s.io/v1', 'SelfSubjectReview').catch(onApiFailure);
  const user = fieldAt(answer, ['status', 'userInfo', 'username']);
  const groups = listOf(fieldAt(answer, ['status', 'userInfo', 'groups'])).filter((group) => typeof group === 'string');
  return typeof user === 'string' ? { user, groups } : undefined;
}

function onApiFailure(error: unknown): undefined {
  if (!(error instanceof ApiFailure)) throw error;
}

async function post({ env, timeoutMs }: Cluster, apiVersion: string, kind: string, spec?: object): Promise<unknown> {
  const path = `/apis/${apiVersion}/${kind.toLowerCase()}s`;
  const body = JSON.stringify({ apiVersion, kind, spec });
  const site = 'doctor.review';
  const response = await env.kubernetes.request({ method: 'POST', path, body, timeoutMs, site });
  if (response.status < 200 || response.status > 299) throw new ApiFailure(response, site);
  return JSON.parse(response.body);
}

export function wordsOf(podSpec: unknown): readonly string[] {
  const words = listOf(fieldAt(podSpec, ['containers'])).flatMap((container): readonly unknown[] =>
    ['command', 'args'].flatMap((field) => fieldAt(container, [field]) ?? []),
  );
  return words.filter((word) => typeof word === 'string');
}

/** Returns the rights that a process with these arguments needs to serve webhooks; [] if it does not keep its certificate in a Secret. */
export function servingRightsOf(
  words: readonly string[],
  namespace: string,
  configurations: readonly Configuration[],
): readonly RightInNamespace[] {
  const secret = words.flatMap((word) => /^--?server-tls\.self-signed-cert\.secret-name=(.+)$/.exec(word)?.[1] ?? []).at(-1);
  const isServing = words.some((word) => /^--?server-tls\.enabled(?:=true)?$/.test(word));
  return secret === undefined || !isServing ? [] : servingRights({ namespace, secret }, configurations);
}

/** Returns the namespaces in `-namespaces`, with `*` for all; undefined without the argument. */
export function namespacesFlagOf(words: readonly string[]): readonly string[] | undefined {
  const named = words.flatMap((word) => /^--?namespaces=(.+)$/.exec(word)?.[1]?.split(',') ?? []);
  return named.length === 0 ? undefined : named.map((one) => one.trim());
}
