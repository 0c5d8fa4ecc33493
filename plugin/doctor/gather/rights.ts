// Reads the rights of the agent's account: by access reviews, or from the own rules if doctor runs as the agent.
import { ApiFailure, isStatus } from '../../../cluster/request/failure.ts';
import { fieldAt } from '../../../engine/observe/raw.ts';
import type { Known } from '../../../engine/snapshot.ts';
import type { Cluster } from '../../connection.ts';
import { type AgentRight, agentRights } from '../agent-rights.ts';
import type { RightFact } from '../check.ts';

interface RightsQuestion {
  /** `namespace/name` of the service account. */
  readonly account: string;
  readonly agentNamespace: string;
  /** The namespaces that the agent watches. */
  readonly namespaces: readonly string[];
  /** The watched namespaces with groups whose pods are pinned. */
  readonly pinned: readonly string[];
  /** The watched namespaces with groups whose replicas come from a ReplicaTemplate; default none. */
  readonly mirroring?: readonly string[];
  /** Default: every right of the agent. */
  readonly rights?: readonly AgentRight[];
}

interface Asked {
  readonly right: AgentRight;
  readonly namespace?: string;
}

/** Concurrent reviews; an authorizer that calls a webhook is slow. */
const atOnce = 16;

/** Returns every right in every namespace. Unknown if the rights of the account may not be reviewed. */
export async function readRights(cluster: Cluster, question: RightsQuestion): Promise<Known<readonly RightFact[]>> {
  const { account, agentNamespace, namespaces, pinned, mirroring = [], rights = agentRights } = question;
  const needing = { pinned, mirroring };
  const asked = rights.flatMap((right): readonly Asked[] => {
    if (right.scope === 'cluster') return [{ right }];
    const { only } = right;
    const watched = only === undefined ? namespaces : namespaces.filter((one) => needing[only].includes(one));
    return (right.scope === 'agent' ? [agentNamespace] : watched).map((namespace) => ({ right, namespace }));
  });
  const [namespace = '', name = ''] = account.split('/');
  const user = `system:serviceaccount:${namespace}:${name}`;
  try {
    const facts: RightFact[] = [];
    for (let start = 0; start < asked.length; start += atOnce) {
      facts.push(...(await Promise.all(asked.slice(start, start + atOnce).map((one) => review(cluster, one, user, namespace)))));
    }
    return facts;
  } catch (error) {
    if (!isStatus(error, 403)) throw error;
  }
  if ((await whoAmI(cluster)) === user) return ownRights(cluster, asked);
  return { unknown: `no permission to create subjectaccessreviews, so the rights of ${account} are unknown; try --as ${user}` };
}

async function review(cluster: Cluster, { right, namespace }: Asked, user: string, home: string): Promise<RightFact> {
  const [resource = '', subresource] = right.resource.split('/');
  const spec = {
    user,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${home}`, 'system:authenticated'],
    resourceAttributes: {
      group: right.group,
      resource,
      verb: right.verb,
      ...(subresource === undefined ? {} : { subresource }),
      ...(namespace === undefined ? {} : { namespace }),
    },
  };
  const answer = await post(cluster, '/apis/authorization.k8s.io/v1/subjectaccessreviews', 'SubjectAccessReview', spec);
  return { right, isAllowed: fieldAt(answer, ['status', 'allowed']) === true, ...(namespace === undefined ? {} : { namespace }) };
}

/** Returns the user name of the connection; undefined if the API server does not tell it. */
export async function whoAmI(cluster: Cluster): Promise<string | undefined> {
  try {
    const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
    const answer = await post(cluster, path, 'SelfSubjectReview', undefined, 'authentication.k8s.io/v1');
    const name = fieldAt(answer, ['status', 'userInfo', 'username']);
    return typeof name === 'string' ? name : undefined;
  } catch (error) {
    if (error instanceof ApiFailure) return undefined;
    throw error;
  }
}

async function ownRights(cluster: Cluster, asked: readonly Asked[]): Promise<readonly RightFact[]> {
  const rules = new Map<string, readonly unknown[]>();
  for (const namespace of new Set(asked.map((one) => one.namespace ?? 'default'))) {
    const path = '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews';
    const answer = await post(cluster, path, 'SelfSubjectRulesReview', { namespace });
    const found = fieldAt(answer, ['status', 'resourceRules']);
    rules.set(namespace, Array.isArray(found) ? found : []);
  }
  return asked.map(({ right, namespace }) => ({
    right,
    isAllowed: (rules.get(namespace ?? 'default') ?? []).some((rule) => gives(rule, right)),
    ...(namespace === undefined ? {} : { namespace }),
  }));
}

/** Reports whether a rule grants the right for every object of the resource. */
export function gives(rule: unknown, { group, resource, verb }: Pick<AgentRight, 'group' | 'resource' | 'verb'>): boolean {
  const has = (field: string, value: string): boolean => {
    const list = fieldAt(rule, [field]);
    return Array.isArray(list) && (list.includes(value) || list.includes('*'));
  };
  const names = fieldAt(rule, ['resourceNames']);
  const isForAll = !Array.isArray(names) || names.length === 0;
  return isForAll && has('apiGroups', group) && has('resources', resource) && has('verbs', verb);
}

async function post(
  { env, timeoutMs }: Cluster,
  path: string,
  kind: string,
  spec: object | undefined,
  apiVersion = 'authorization.k8s.io/v1',
): Promise<unknown> {
  const body = JSON.stringify({ apiVersion, kind, ...(spec === undefined ? {} : { spec }) });
  const site = 'doctor.review';
  const response = await env.kubernetes.request({ method: 'POST', path, body, timeoutMs, site });
  if (response.status < 200 || response.status > 299) throw new ApiFailure(response, site);
  return JSON.parse(response.body);
}
