// Checks again whether this process may use Leases: a starting API server denies requests that it allows later.
import { ApiFailure, isStatus } from '../cluster/request/failure.ts';
import { isJsonObject, parseJson } from '../cluster/request/json.ts';
import { getObject } from '../cluster/request/read.ts';
import { resources } from '../cluster/request/resource.ts';
import type { AgentEnv } from './env.ts';

interface LeaseTarget {
  readonly namespace: string;
  readonly name: string;
}

type Port = Pick<AgentEnv, 'kubernetes'>;

/** Verbs that the holder of a Lease needs. */
const verbs = ['get', 'create', 'update'] as const;
const timeoutMs = 5_000;

/**
 * True when the server refuses to read the Lease again, or a review says that a verb is denied; never when a review permits them all. False
 * if the server answers otherwise or not at all: another process may hold the Lease. Never rejects.
 */
export async function areLeasesRefused(env: Port, lease: LeaseTarget): Promise<boolean> {
  let isReadRefused = false;
  try {
    await getObject(env, resources.leases, lease, { site: 'leaseProof.read', timeoutMs });
  } catch (error) {
    // Leases are not served, or the namespace does not exist: no process can hold one.
    if (isStatus(error, 404)) return true;
    if (!isStatus(error, 403)) return false;
    isReadRefused = true;
  }
  try {
    for (const verb of verbs) if (!(await isPermitted(env, verb, lease))) return true;
    return false;
  } catch (error) {
    return isReadRefused && isStatus(error, 403, 404);
  }
}

/** Throws ApiFailure and TransportFailure. */
async function isPermitted({ kubernetes }: Port, verb: (typeof verbs)[number], { namespace, name }: LeaseTarget): Promise<boolean> {
  const { group, plural: resource } = resources.leases;
  const site = 'leaseProof.review';
  const response = await kubernetes.request({
    method: 'POST',
    path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    body: JSON.stringify({
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: { namespace, verb, group, resource, ...(verb === 'create' ? {} : { name }) } },
    }),
    timeoutMs,
    site,
  });
  if (response.status !== 200 && response.status !== 201) throw new ApiFailure(response, site);
  const answer = parseJson(response.body);
  const status = isJsonObject(answer) ? answer['status'] : undefined;
  // An answer that cannot be understood denies nothing.
  return !isJsonObject(status) || status['allowed'] !== false;
}
