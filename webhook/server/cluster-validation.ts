// Checks the header X-Cluster: whether a request is meant for this installation.
import type { IncomingMessage } from 'node:http';

/** Requests must carry the header X-Cluster with this value, exactly once. */
export interface ClusterValidation {
  readonly label: string;
  /** Such requests are counted and logged, not refused. */
  readonly isSoft: boolean;
  /** Literal fragments of paths. API servers never send the header, so the paths of webhooks belong here. */
  readonly excludedPaths: readonly string[];
  readonly excludedUserAgents: readonly RegExp[];
}

/** A request for another installation: `given` is the value of the header, empty without one or with several. */
interface WrongCluster {
  readonly wanted: string;
  readonly given: string;
}

/** Returns the mismatch; undefined without one, or for an exempt request. */
export function wrongClusterOf(
  { label: wanted, excludedPaths, excludedUserAgents }: ClusterValidation,
  request: Pick<IncomingMessage, 'headers' | 'headersDistinct'>,
  path: string,
): WrongCluster | undefined {
  const userAgent = request.headers['user-agent'] ?? '';
  const fragments = ['metrics', 'debug/pprof', 'ready', ...excludedPaths];
  if (fragments.some((fragment) => path.includes(`/${fragment}`))) return undefined;
  if (excludedUserAgents.some((pattern) => pattern.test(userAgent))) return undefined;
  const values = request.headersDistinct['x-cluster'] ?? [];
  const given = values.length === 1 ? (values[0] ?? '') : '';
  return given === wanted ? undefined : { wanted, given };
}

/** Returns the body of a refusal with status 511 as JSON. */
export function wrongClusterBody({ wanted, given }: WrongCluster, route: string): string {
  const message = `rejected request with wrong cluster validation label ${JSON.stringify(given)}: it should be ${JSON.stringify(wanted)}`;
  return JSON.stringify({ cluster_validation_error_message: message, route });
}
