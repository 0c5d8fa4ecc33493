// The policies of a running cluster: a directory, objects and adopted StatefulSets, put in order so that every group has one definition.
import type { ExceptionDefinition, GroupDefinition, PolicyDefinition } from '../definition.ts';
import type { Finding } from '../findings/finding.ts';
import type { PolicyFile } from '../load.ts';

export type LiveSource = 'directory' | 'objects' | 'adopted';

export interface LiveInput {
  /** Policy files, as they lie in the agent's directory. */
  readonly directory?: readonly PolicyFile[];
  /** Objects of our kinds, as the API server returns them. */
  readonly objects?: readonly unknown[];
  /** StatefulSets of `apps/v1`, as the API server returns them. */
  readonly statefulSets: readonly unknown[];
  /** Where a group may be defined, the first definition counts; a source that is not listed defines nothing. */
  readonly order: readonly LiveSource[];
  readonly agentNamespace: string;
  /** Namespaces whose groups are looked after; every one when left out. */
  readonly namespaces?: readonly string[];
  /** Whether `requestedBy` of intents is stamped by a webhook; without one nobody is believed to have asked. */
  readonly areIntentsStamped?: boolean;
}

/** What a person asked for, as the engine reads it. */
export interface LiveIntent {
  readonly namespace: string;
  readonly name: string;
  readonly group: string;
  readonly action:
    | 'pause'
    | 'approve'
    | 'reject'
    | 'promote'
    | 'abort'
    | 'retry'
    | 'undo'
    | 'restart'
    | 'scale'
    | 'cancel'
    | 'protect'
    | 'hold';
  readonly zone?: string;
  readonly wave?: string;
  readonly rule?: string;
  readonly runId?: string;
  readonly reason?: string;
  readonly expiresMs?: number;
  readonly requestedBy?: { readonly user: string; readonly groups: readonly string[]; readonly atMs: number };
}

export interface LivePolicies {
  /** Sorted by namespace and name, and so are the others. */
  readonly groups: readonly GroupDefinition[];
  readonly policies: readonly PolicyDefinition[];
  readonly exceptions: readonly ExceptionDefinition[];
  readonly intents: readonly LiveIntent[];
  readonly findings: readonly Finding[];
  /** Of groups, policies and exceptions; the same whatever the order of the inputs, and whatever file and line they stand in. */
  readonly digest: string;
  /** Where a group is defined. */
  readonly origin: (group: { readonly namespace: string; readonly name: string }) => LiveSource | undefined;
}

/** What the sources define together. Never throws: what cannot be used is a finding and leaves out only itself. */
export declare function resolveLive(input: LiveInput): LivePolicies;

/** Changes exactly when adoption could read the StatefulSet differently; empty for one that is not adopted. */
export declare function adoptionDigest(statefulSet: unknown): string;
