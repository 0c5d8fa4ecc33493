// Finds the reasons why webhooks cannot be answered: a missing caBundle, a missing Service or no ready endpoint.
import { isStatus } from '../../../cluster/request/failure.ts';
import { getObject, listObjects } from '../../../cluster/request/read.ts';
import type { KubernetesObject, Resource } from '../../../cluster/request/resource.ts';
import { fieldAt } from '../../../engine/observe/raw.ts';
import type { Registered } from '../../../install/registered.ts';
import { pinConfigurationName } from '../../../install/webhooks.ts';
import type { Cluster } from '../../connection.ts';
import type { UnansweredFact } from '../check.ts';

export interface StoredConfiguration extends Registered {
  /** Another writer than the agent sets `caBundle`. */
  readonly isInjected: boolean;
}

/** Annotations with which cert-manager sets `caBundle`. */
const foreignInjectors = ['cert-manager.io/inject-ca-from', 'cert-manager.io/inject-ca-from-secret', 'cert-manager.io/inject-apiserver-ca'];

export function isInjectedByOthers({ metadata: { annotations = {} } }: KubernetesObject): boolean {
  return foreignInjectors.some((one) => annotations[one] !== undefined);
}

const services: Resource = { group: '', version: 'v1', plural: 'services', kind: 'Service', isNamespaced: true };
const endpointSlices: Resource = {
  group: 'discovery.k8s.io',
  version: 'v1',
  plural: 'endpointslices',
  kind: 'EndpointSlice',
  isNamespaced: true,
};

interface AnswersQuestion {
  readonly agentNamespace: string;
  /** `pin`: a group needs the configuration that pins pods. `other`: a group needs another configuration. */
  readonly isNeeded: { readonly pin: boolean; readonly other: boolean };
}

/** Returns the problems, empty if every webhook can be answered. Services that may not be read are left out. */
export async function readUnanswered(
  cluster: Cluster,
  stored: readonly StoredConfiguration[],
  { agentNamespace, isNeeded }: AnswersQuestion,
): Promise<readonly UnansweredFact[]> {
  const pins = ({ name }: Registered): boolean => name === pinConfigurationName({ namespace: agentNamespace });
  const needs = (one: Registered): boolean => (pins(one) ? isNeeded.pin : isNeeded.other);
  const found: UnansweredFact[] = [];
  const needed = new Map<string, boolean>();
  for (const one of stored) {
    const bare = one.webhooks.filter(isBare);
    if (bare.length > 0 && !one.isInjected) {
      const isAll = bare.length === one.webhooks.length;
      const where = `${one.kind} ${one.name}`;
      const lack = isAll ? `${where} has no caBundle` : `${bare.length} of ${one.webhooks.length} webhooks in ${where} have no caBundle`;
      const message = `${lack}: the API server trusts no certificate of the webhooks. The agent writes it when it serves webhooks; see its log`;
      found.push({ message, isNeeded: needs(one) });
    }
    for (const row of one.webhooks) {
      const [namespace, name] = ['namespace', 'name'].map((field) => fieldAt(row, ['clientConfig', 'service', field]));
      if (typeof namespace !== 'string' || typeof name !== 'string') continue;
      const key = `${namespace}/${name}`;
      needed.set(key, needs(one) || needed.get(key) === true);
    }
  }
  for (const [service, isServiceNeeded] of [...needed].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const problem = await problemOf(cluster, service);
    if (problem !== undefined) found.push({ message: problem, isNeeded: isServiceNeeded });
  }
  return found;
}

function isBare(row: Readonly<Record<string, unknown>>): boolean {
  const bundle = fieldAt(row, ['clientConfig', 'caBundle']);
  return typeof bundle !== 'string' || bundle === '';
}

/** Returns undefined if the Service has a ready endpoint, or if it may not be read. */
async function problemOf({ env, timeoutMs }: Cluster, service: string): Promise<string | undefined> {
  const [namespace = '', name = ''] = service.split('/');
  try {
    if ((await getObject(env, services, { namespace, name }, { site: 'doctor.service', timeoutMs })) === undefined) {
      return `Service ${service} of the webhooks does not exist`;
    }
    const labelSelector = `kubernetes.io/service-name=${name}`;
    const { items } = await listObjects(env, endpointSlices, { namespace, labelSelector, site: 'doctor.endpoints', timeoutMs });
    if (items.some(isReady)) return undefined;
    return `Service ${service} of the webhooks has no ready endpoint. Run: kubectl get pods -n ${namespace}`;
  } catch (error) {
    if (!isStatus(error, 403, 404)) throw error;
    return undefined;
  }
}

/** A missing condition counts as true, as in Kubernetes. */
function isReady(slice: KubernetesObject): boolean {
  const endpoints = slice['endpoints'];
  return Array.isArray(endpoints) && endpoints.some((one) => fieldAt(one, ['conditions', 'ready']) !== false);
}
