// The label `path` of requests to the API server: what is asked for, without namespaces and names.

const shape =
  /^\/(?:api|apis\/(?<group>[^/]+))\/(?<version>[^/]+)\/(?:(?:watch\/)?namespaces\/[^/]+\/(?=[^/]+)(?!status$|finalize$))?(?<resource>[^/]+)(?:\/(?<name>[^/]+)(?:\/(?<sub>.+))?)?$/;

/**
 * `core/v1/pods collection`, `apps/v1/statefulsets object`, `core/v1/pods object eviction subresource`. Lists and watches are both collections.
 * Any other path stays unchanged.
 */
export function kubernetesPathLabel(pathAndQuery: string): string {
  const path = pathAndQuery.replace(/[?#][\s\S]*$/, '');
  const { group = 'core', version, resource, name, sub } = shape.exec(path)?.groups ?? {};
  if (version === undefined || resource === undefined) return path;
  const kind = name === undefined ? 'collection' : sub === undefined ? 'object' : `object ${sub} subresource`;
  return `${group}/${version}/${resource} ${kind}`;
}
