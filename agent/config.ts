// What an agent is told to do. Made from flags (process/flags.ts); tests and simulation make their own.

/** Where groups may be defined, in the order in which the first definition counts. */
export type PolicySourceName = 'directory' | 'objects' | 'adopted';

export interface AgentConfig {
  /** Namespaces that are watched; undefined for the whole cluster. */
  readonly namespaces: readonly string[] | undefined;
  /** Where the agent itself lives: its Lease, and the policies that may name other namespaces. */
  readonly agentNamespace: string;
  /** Unique for each process: name of the pod and something random. */
  readonly identity: string;
  /** Ends the host names of pods; with the trailing dot when it is fully qualified. */
  readonly clusterDomain: string;
  readonly policySources: readonly PolicySourceName[];
  /** Whether a webhook stamps who asked into every intent; nobody is believed to have asked, and so to have approved, when left out. */
  readonly areIntentsStamped?: boolean;
  /** For calls to pods: each request, in milliseconds. */
  readonly podTimeoutMs: number;
  /** For requests to the API server that are no writes of the acting path, in milliseconds. */
  readonly kubernetesTimeoutMs: number;
  /** The shortest pause before a group whose turn failed is tried again, in milliseconds. */
  readonly retryMs: number;
  readonly lease: {
    /** `required`: nothing is done without it. `auto`: without permission for Leases the agent works alone, and says so. `off`: alone. */
    readonly mode: 'required' | 'auto' | 'off';
    readonly name: string;
    readonly durationMs: number;
    readonly renewDeadlineMs: number;
    readonly retryPeriodMs: number;
  };
  /** The shortest time between two published decisions of one group, in milliseconds. */
  readonly publishEveryMs: number;
}
