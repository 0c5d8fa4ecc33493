// Restricts plan, diff and doctor to reads, so that none of their defects changes a cluster.
import type { KubernetesHttp, KubernetesRequest } from '../env.ts';
import { TransportFailure } from './failure.ts';

/** POST requests that change nothing. */
const reviews = new Set([
  '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
  '/apis/authorization.k8s.io/v1/subjectaccessreviews',
  '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews',
  '/apis/authentication.k8s.io/v1/selfsubjectreviews',
]);

/** Passes on reads, dry runs and questions about rights; rejects everything else before it is sent. */
export function readOnly(http: KubernetesHttp): KubernetesHttp {
  return {
    request: async (request) => {
      refuseWrite(request);
      return http.request(request);
    },
    stream: async (request, onLine) => {
      refuseWrite(request);
      return http.stream(request, onLine);
    },
  };
}

function refuseWrite({ method, path, site }: KubernetesRequest): void {
  const { pathname, searchParams } = new URL(path, 'http://localhost');
  // A subresource such as proxy or exec acts on a GET.
  const isRead = method === 'GET' && !/\/(?:proxy|exec|attach|portforward)(?:\/|$)/.test(pathname);
  // The server refuses a list with other values than All; this check does not rely on it.
  const dryRuns = searchParams.getAll('dryRun');
  const isDryRun = method !== 'GET' && dryRuns.length === 1 && dryRuns[0] === 'All';
  if (isRead || isDryRun || (method === 'POST' && reviews.has(pathname))) return;
  throw new TransportFailure(`${method} ${pathname} would change the cluster; a read-only command does not send it`, {
    site,
    mayBeApplied: false,
  });
}
