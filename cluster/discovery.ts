// Which kinds of object the API server serves, and under which path.
import type { ClusterEnv } from './env.ts';
import type { Resource } from './resource.ts';

export interface Discovery {
  /** Every resource of that kind, the version that the server prefers first; subresources are not among them. */
  readonly find: (kind: { readonly group: string; readonly version?: string | undefined; readonly kind: string }) => readonly Resource[];
  /** Whether the resource is served, in that version. */
  readonly has: (resource: Pick<Resource, 'group' | 'version' | 'plural'>) => boolean;
  /** Whether the resource has that subresource, such as `scale`. */
  readonly hasSubresource: (resource: Pick<Resource, 'group' | 'version' | 'plural'>, subresource: string) => boolean;
  /** False when the group could not be read: then `has` and `find` say nothing about it. */
  readonly knows: (resource: Pick<Resource, 'group'> & { readonly version?: string | undefined }) => boolean;
  /** What could not be read. */
  readonly failures: readonly DiscoveryFailure[];
}

export interface DiscoveryFailure {
  readonly group: string;
  readonly version: string;
  readonly message: string;
}

/** Asks the API server. Rejects with ApiFailure or TransportFailure when not even the groups can be listed. */
export function discover(_env: Pick<ClusterEnv, 'kubernetes'>, _options?: { readonly timeoutMs?: number }): Promise<Discovery> {
  throw new Error('not there yet');
}
