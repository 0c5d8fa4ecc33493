// Defines the configuration of an agent. The flags produce it (flags/settings.ts); tests and the simulation make their own.

/** Lists the sources of groups in the order in which the first definition counts. */
export type PolicySourceName = 'directory' | 'objects' | 'adopted';

export interface AgentConfig {
  /** Namespaces that are watched; undefined for the whole cluster. */
  readonly namespaces: readonly string[] | undefined;
  /** Namespace of the agent: its Lease, and policies that may name other namespaces. */
  readonly agentNamespace: string;
  /** Unique for each process: the name of the pod and a random suffix. */
  readonly identity: string;
  /** Ends the host names of pods; with the trailing dot when it is fully qualified. */
  readonly clusterDomain: string;
  readonly policySources: readonly PolicySourceName[];
  /** Reports whether a webhook stamps the requester into every request. Without it no requester is verified, so no approval counts. */
  readonly areIntentsStamped?: boolean;
  /** Timeout of each request to a pod, in milliseconds. */
  readonly podTimeoutMs: number;
  /** Timeout of a request to the API server in milliseconds. Requests of a turn have shorter timeouts. */
  readonly kubernetesTimeoutMs: number;
  /** The shortest pause before a group whose turn failed is tried again, in milliseconds. */
  readonly retryMs: number;
  readonly lease: {
    /** `required`: no action without the Lease. `auto`: the agent acts alone if Leases are forbidden, and reports it. `off`: alone. */
    readonly mode: 'required' | 'auto' | 'off';
    readonly name: string;
    readonly durationMs: number;
    readonly renewDeadlineMs: number;
    readonly retryPeriodMs: number;
  };
  /** The shortest time between two published decisions of one group, in milliseconds. */
  readonly publishEveryMs: number;
}
