// What a recorded eviction is: the state of the cluster, the request of the API server, the answer, and what was asked of the API server for it.
type Json = Readonly<Record<string, unknown>>;

export interface EvictionScenario {
  readonly title: string;
  readonly state: {
    readonly objects: readonly Json[];
    /** `verb plural` that the API server refuses. */
    readonly forbidden?: readonly string[];
    /** Parts of `METHOD path` to which no answer comes. */
    readonly broken?: readonly string[];
  };
  /** Evictions that were granted before, in their order. */
  readonly before?: readonly { readonly pod: string; readonly dryRun?: boolean; readonly agoMs?: number }[];
  /** `request` of the AdmissionReview. */
  readonly request: {
    readonly operation?: string;
    readonly subResource?: string;
    readonly namespace?: string;
    readonly name: string;
    readonly dryRun?: boolean;
  };
  readonly answer: { readonly allowed: boolean; readonly code: number; readonly message?: string; readonly warnings?: readonly string[] };
  /** Label of the counter. */
  readonly reason: string;
  /** `METHOD path` of every request about pods and StatefulSets; not looked at when left out. */
  readonly calls?: readonly string[];
}
