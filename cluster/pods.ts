// Builds the address of a pod from validated parts, so that no policy or annotation can name another host, and calls many pods at once.

/** The endpoint of a pod. */
interface PodEndpoint {
  readonly scheme: 'http' | 'https';
  readonly port: number;
  /** Path and query; a missing leading slash is added. */
  readonly path: string;
}

interface PodAddress {
  readonly namespace: string;
  readonly pod: string;
  /** `spec.serviceName` of the StatefulSet. */
  readonly serviceName: string;
  /** With the trailing dot when it is fully qualified. */
  readonly clusterDomain: string;
}

const label = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
const domain = /^(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*\.?$/;
/** Path and query as RFC 3986 writes them, from the first slash on; no user information, no fragment, no broken escape. */
const pathGrammar = /^\/(?:[A-Za-z0-9\-._~!$&'()*+,;=:/?]|%[0-9A-Fa-f]{2})*$/;
const longestPath = 1024;

/**
 * The URL at which a pod is asked: `scheme://<pod>.<serviceName>.<namespace>.svc.<clusterDomain>:port/path`.
 *
 * @throws RangeError that names the part which is not valid.
 */
export function podUrl(address: PodAddress, endpoint: PodEndpoint): string {
  const { namespace, pod, serviceName, clusterDomain } = address;
  check('the name of the pod', pod, domain);
  check('spec.serviceName', serviceName, label);
  check('the namespace', namespace, label);
  check('the cluster domain', clusterDomain, domain);
  const { scheme, port, path } = endpoint;
  if (scheme !== 'http' && scheme !== 'https') throw new RangeError('the scheme of the endpoint is neither http nor https');
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new RangeError(`port ${port} of the endpoint is not between 1 and 65535`);
  const rooted = escaped(path.startsWith('/') ? path : `/${path}`);
  if (rooted.length > longestPath || !pathGrammar.test(rooted)) throw new RangeError('the path of the endpoint is not a valid URL path');
  const host = `${pod}.${serviceName}.${namespace}.svc.${clusterDomain}`;
  return `${scheme}://${host}:${port}${rooted}`;
}

/** The path with what may not stand in a URL as it is percent-encoded; a percent sign is taken as the begin of an escape. */
function escaped(path: string): string {
  return path.replace(/[^A-Za-z0-9\-._~!$&'()*+,;=:/?%@#\\\s]/gu, encodeURIComponent);
}

function check(what: string, text: string, grammar: RegExp): void {
  if (!grammar.test(text)) throw new RangeError(`${what} is not a host name: ${JSON.stringify(text.slice(0, 80))}`);
}

/** States how many pods are asked at a time. */
const parallelCalls = 32;

/**
 * What the tasks answered, in the order of the items; at most 32 tasks at a time, begun in that order. A task that answers undefined did
 * nothing, and is left out. Rejects with what a task rejects with.
 */
export async function inParallel<Item, Result>(
  items: readonly Item[],
  task: (item: Item) => Promise<Result | undefined>,
): Promise<readonly Result[]> {
  const results: (Result | undefined)[] = [];
  const queue = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of queue) results[index] = await task(item);
  };
  await Promise.all(Array.from({ length: Math.min(parallelCalls, items.length) }, worker));
  return results.filter((result) => result !== undefined);
}
