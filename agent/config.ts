// Defines the configuration of an agent, which flags/settings.ts builds from the flags.

/** A source of group definitions. If several sources define a group, the source that `policySources` names first counts. */
export type PolicySourceName = 'directory' | 'objects' | 'adopted';

export interface AgentConfig {
  /** The watched namespaces; undefined for the whole cluster. */
  readonly namespaces: readonly string[] | undefined;
  /** The namespace of the agent. It contains the Lease. Policies in it may apply to other namespaces. */
  readonly agentNamespace: string;
  /** A name that is unique for each process; by default the host name and a random suffix. */
  readonly identity: string;
  /** The suffix of the host names of pods, with a trailing dot if they are fully qualified. */
  readonly clusterDomain: string;
  readonly policySources: readonly PolicySourceName[];
  /** True if a webhook writes the verified requester into every request. Otherwise no approval counts. */
  readonly areIntentsStamped?: boolean;
  /** If set, the agent reads the commit of a run from the GitOps tool that applied its StatefulSets. */
  readonly commitsFrom?: { readonly argoCdNamespace: string };
  readonly podTimeoutMs: number;
  /** The timeout of a request to the API server in milliseconds. In a turn a read takes at most 30 s, and a write at most 5 s. */
  readonly kubernetesTimeoutMs: number;
  /** The longest first pause after a failed turn of a group, in milliseconds. The pause doubles with each further failure. */
  readonly retryMs: number;
  readonly lease: {
    /**
     * `required`: no action without the Lease. `auto`: without access to Leases, the agent acts without a Lease and reports a degradation.
     * `off`: no Lease.
     */
    readonly mode: 'required' | 'auto' | 'off';
    readonly name: string;
    readonly durationMs: number;
    readonly renewDeadlineMs: number;
    readonly retryPeriodMs: number;
    /** The version of the agent, which the Lease names. */
    readonly version?: string;
  };
  /** The shortest time between two published decisions of one group, in milliseconds. */
  readonly publishEveryMs: number;
}
