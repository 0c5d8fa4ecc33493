// Defines a sequence of operations on one StatefulSet, its pods and its PodDisruptionBudget, as plain data.

/** `withoutBlock`: RollingUpdate without the block `rollingUpdate`. */
export type StrategyKind = 'OnDelete' | 'RollingUpdate' | 'withoutBlock';

export interface Created {
  readonly podManagementPolicy: 'OrderedReady' | 'Parallel';
  readonly strategy: StrategyKind;
  readonly partition: number;
  /** Only for a control plane with the feature gate MaxUnavailableStatefulSet. */
  readonly maxUnavailable?: number | string;
  readonly replicas: number;
  readonly start: number;
  /** 0, or a time that no pod reaches before a step makes it old. */
  readonly minReadySeconds: 0 | 86_400;
  readonly version: number;
}

/** `young`: ready since now. `ready`: ready for longer than any `minReadySeconds`. */
export type PodState = 'ready' | 'young' | 'unready' | 'failed' | 'succeeded';

export type Step = { readonly isFixed?: boolean } & (
  | ({ readonly kind: 'create' } & Created)
  | { readonly kind: 'replicas'; readonly replicas: number }
  | { readonly kind: 'template'; readonly version: number }
  | { readonly kind: 'strategy'; readonly strategy: StrategyKind; readonly partition: number; readonly maxUnavailable?: number | string }
  | { readonly kind: 'minReady'; readonly seconds: 0 | 86_400 }
  | { readonly kind: 'start'; readonly ordinal: number }
  /** Deletes the StatefulSet and keeps its pods. */
  | { readonly kind: 'orphan' }
  | { readonly kind: 'delete'; readonly ordinal: number }
  | { readonly kind: 'evict'; readonly ordinal: number }
  /** Removes the pod if it was terminating before the step, as its kubelet does at the end. */
  | { readonly kind: 'gone'; readonly ordinal: number }
  /** Keeps the pod, even if it is removed, until another step takes the finalizer off it. */
  | { readonly kind: 'finalizer'; readonly ordinal: number; readonly isSet: boolean }
  | { readonly kind: 'pod'; readonly ordinal: number; readonly state: PodState }
  /** Removes every terminating pod, and makes every other pod ready that has not ended: one pod after the other. */
  | { readonly kind: 'kubelets'; readonly isDescending?: true }
  /** Changes the node of all pods. While it is lost, no kubelet works. */
  | { readonly kind: 'node'; readonly state: NodeState }
  /** Writes the PodDisruptionBudget; without a spec, deletes it. */
  | { readonly kind: 'budget'; readonly spec?: Readonly<Record<string, number | string>> }
);

/** A step that is one request, or one change of the node. */
export type SingleStep = Exclude<Step, { readonly kind: 'kubelets' }>;

/**
 * `lost`: the kubelet of the node is silent, and the node controller has noticed it. `evicting`: so long ago that the node controller deletes
 * the pods that exist now. `back`: the kubelet reports again.
 */
export type NodeState = 'lost' | 'evicting' | 'back';

export interface StepSequence {
  readonly operations: readonly Step[];
}
