// A state of a namespace that grafana/rollout-operator would find, and the writes that it would answer with.

/** A pod, as far as it differs from one that runs, is ready and has the revision that its StatefulSet wants. */
export interface PodState {
  readonly revision?: 'old' | 'new' | 'none';
  /** `unready`: a container is not ready. `waiting`: a container waits for this reason. `missing`: there is no such pod. */
  readonly state?: 'ready' | 'unready' | 'terminating' | 'missing' | { readonly waiting: string };
  /** Condition Ready although the containers say otherwise, and the other way round. */
  readonly condition?: 'True' | 'False';
}

export interface SetState {
  readonly name: string;
  readonly replicas: number;
  /** What `status` says; as many as there are ready pods when left out. */
  readonly readyReplicas?: number;
  readonly statusReplicas?: number;
  readonly strategy?: 'OnDelete' | 'RollingUpdate';
  readonly labels?: Readonly<Record<string, string>>;
  /** Without the prefix when it is one of `grafana.com/`. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** By ordinal. */
  readonly pods?: Readonly<Record<number, PodState>>;
  /** All pods but those in `pods`. */
  readonly everyPod?: PodState;
  readonly currentRevision?: 'old' | 'new' | 'empty';
}

/** A pod server's answer to one method, for pods whose name matches. */
export interface PodAnswer {
  readonly pods: RegExp;
  readonly method: 'POST' | 'DELETE';
  readonly status: number;
  /** How long ago the pod says it prepared, in seconds. */
  readonly preparedSecondsAgo?: number;
  readonly body?: string;
}

export interface Scenario {
  readonly name: string;
  readonly sets: readonly SetState[];
  /** Replica templates by name: `spec.replicas` and `status.replicas`. */
  readonly templates?: Readonly<Record<string, { readonly spec: number; readonly status?: number }>>;
  /** `spec` of ZoneAwarePodDisruptionBudgets by name. */
  readonly budgets?: Readonly<Record<string, object>>;
  /** What the templates ask for as soon as the agent has made these calls. */
  readonly later?: { readonly after: readonly string[]; readonly templates: Readonly<Record<string, number>> };
  /** A pod of another workload that carries the label `name` of a StatefulSet. */
  readonly foreignPods?: readonly { readonly name: string; readonly label: string; readonly pod?: PodState }[];
  readonly answers?: readonly PodAnswer[];
  /** `VERB resource/name[/subresource] body`, the body without preconditions. */
  readonly writes: readonly string[];
  /** `METHOD pod[:port] path[?query]`, the port when it is not 80. The order within one method and one StatefulSet does not matter. */
  readonly calls?: readonly string[];
  /** What the original does instead, as a heading of docs/migrate-from-rollout-operator.md. */
  readonly difference?: string;
  /** The pass counts as failed in the metrics. */
  readonly isFailure?: true;
}

const zone = (letter: string): string => `ingester-zone-${letter}`;

/** Zones a, b, ... with three replicas, all well; each argument changes one. */
export function zones(...changes: readonly Partial<SetState>[]): readonly SetState[] {
  return changes.map((change, index) => ({ name: zone('abcdefgh'[index] ?? '?'), replicas: 3, ...change }));
}

/** Every pod still has the old revision. */
export const outdated: Partial<SetState> = { everyPod: { revision: 'old' }, currentRevision: 'old' };

/** Nothing is different. */
export const fine: Partial<SetState> = {};
