// Builds the URL of a pod from validated parts, so that no policy or annotation can name another host. Also runs calls in parallel.

interface PodEndpoint {
  readonly scheme: 'http' | 'https';
  readonly port: number;
  /** The path and query; a missing leading slash is added. */
  readonly path: string;
}

interface PodAddress {
  readonly namespace: string;
  readonly pod: string;
  /** `spec.serviceName` of the StatefulSet. */
  readonly serviceName: string;
  /** With a trailing dot if it is fully qualified. */
  readonly clusterDomain: string;
}

const label = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
const domain = /^(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*\.?$/;
/** The path and query of RFC 3986 from the first slash, without fragment and broken escapes. */
const pathGrammar = /^\/(?:[A-Za-z0-9\-._~!$&'()*+,;=:/?]|%[0-9A-Fa-f]{2})*$/;
const longestPath = 1024;

/** Returns `scheme://<pod>.<serviceName>.<namespace>.svc.<clusterDomain>:port/path`. Throws a RangeError that names the invalid part. */
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

/** Percent-encodes characters that a URL must not contain. White space, `#`, backslashes and existing escapes stay. */
function escaped(path: string): string {
  return path.replace(/[^A-Za-z0-9\-._~!$&'()*+,;=:/?%@#\\\s]/gu, encodeURIComponent);
}

function check(what: string, text: string, grammar: RegExp): void {
  if (!grammar.test(text)) throw new RangeError(`${what} is not a host name: ${JSON.stringify(text.slice(0, 80))}`);
}

/** Starts the tasks in order, at most `atMost` at a time. Returns their results in order, without undefined. Rejects if a task rejects. */
export async function inParallel<Item, Result>(
  items: readonly Item[],
  task: (item: Item) => Promise<Result | undefined>,
  atMost = 32,
): Promise<readonly Result[]> {
  const results: (Result | undefined)[] = [];
  const queue = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of queue) results[index] = await task(item);
  };
  await Promise.all(Array.from({ length: Math.min(atMost, items.length) }, worker));
  return results.filter((result) => result !== undefined);
}
