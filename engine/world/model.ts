// The state of the model around the agent, which `step` advances.

import type { Action } from '../decision.ts';
import type { Assumptions } from '../plan/assumptions.ts';
import type { PodView, Snapshot, StatefulSetView } from '../snapshot.ts';

/** Durations of the pods of one StatefulSet, in milliseconds. */
export interface PodDurations {
  readonly drainMs: number;
  readonly startMs: number;
}

/** The quantile of the assumed durations in a world. */
export type Quantile = 'p50' | 'p90';

/** Positions in `snapshot.statefulSets` and `snapshot.pods`. */
export interface Place {
  readonly set: number;
  readonly pods: number;
}

/** A pod and its next change by time alone. Every field is always present, since large groups are walked very often. */
export interface ModelPod {
  readonly view: PodView;
  /** When a terminating pod is gone. */
  readonly goneAtMs: number | undefined;
  /** When a starting pod becomes ready; absent for one that never does. */
  readonly readyAtMs: number | undefined;
}

/** The state of the model: what an observer would see, and what will happen by itself. */
export interface World {
  /** The observable state. `step` keeps `snapshot.pods` and `snapshot.statefulSets` current. */
  readonly snapshot: Snapshot;
  /** Pods by `namespace/statefulSet`, sorted by ordinal. */
  readonly pods: ReadonlyMap<string, readonly ModelPod[]>;
  readonly durations: ReadonlyMap<string, PodDurations>;
  /** Positions of each StatefulSet and its pods in the lists of the snapshot, whose order never changes. */
  readonly places: ReadonlyMap<string, Place>;
  /** When the next thing happens by itself, for StatefulSets in which something will. */
  readonly pending: ReadonlyMap<string, number>;
  /** The timestamps that pods report when they are asked to prepare for a delayed downscale, by `namespace/pod`. */
  readonly reported: ReadonlyMap<string, number>;
  readonly assumptions: Assumptions;
  /** The quantile of the assumed durations in this world. */
  readonly quantile: Quantile;
  /** Serial number for UIDs and resource versions, so that the model needs no randomness. */
  readonly serial: number;
}

/** An input of the world: an action of the agent, a write of another client, or time. */
export type WorldInput =
  | { readonly kind: 'action'; readonly action: Action }
  /** Deletions at one instant. They ask for no budget, so that none depends on what another one left of it. */
  | { readonly kind: 'deletePods'; readonly deletions: readonly Extract<Action, { kind: 'deletePod' }>[] }
  | { readonly kind: 'elapse'; readonly toMs: number }
  /** A StatefulSet that has no pods yet. */
  | { readonly kind: 'createStatefulSet'; readonly set: StatefulSetView }
  | { readonly kind: 'setTemplate'; readonly namespace: string; readonly statefulSet: string; readonly revision: string }
  | { readonly kind: 'setReplicas'; readonly namespace: string; readonly statefulSet: string; readonly replicas: number }
  | { readonly kind: 'podFails'; readonly namespace: string; readonly pod: string; readonly reason?: string }
  | { readonly kind: 'podDies'; readonly namespace: string; readonly pod: string };
