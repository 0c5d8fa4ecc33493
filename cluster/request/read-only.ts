// Restricts commands that only read, and dry runs, to requests that change nothing, so that a defect cannot change a cluster.
import type { KubernetesHttp, KubernetesRequest } from '../env.ts';
import { TransportFailure } from './failure.ts';

/** The paths of POST requests that change nothing. */
const reviews = new Set([
  '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
  '/apis/authorization.k8s.io/v1/subjectaccessreviews',
  '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews',
  '/apis/authentication.k8s.io/v1/selfsubjectreviews',
]);

/** Returns a client that sends reads, dry runs and reviews of permissions. It rejects every other request without sending it. */
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
  // A GET of a subresource such as proxy or exec may change something.
  const isRead = method === 'GET' && !/\/(?:proxy|exec|attach|portforward)(?:\/|$)/.test(pathname);
  // The server rejects every other value than All; this check does not rely on that.
  const dryRuns = searchParams.getAll('dryRun');
  const isDryRun = method !== 'GET' && dryRuns.length === 1 && dryRuns[0] === 'All';
  if (isRead || isDryRun || (method === 'POST' && reviews.has(pathname))) return;
  throw new TransportFailure(`${method} ${pathname} would change the cluster; a read-only command does not send it`, {
    site,
    mayBeApplied: false,
  });
}
