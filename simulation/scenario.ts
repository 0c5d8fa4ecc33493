// Defines a scenario: a group, events and faults, as plain data that can be stored, shrunk and repeated.

import { type StrategyName, type StrategyTraits, strategyTraits } from '../policies/strategies.ts';
import type { FaultClass, PlacedFault } from './faults/fault.ts';
import type { Json } from './server/request.ts';

/** A complete run: the same scenario gives the same run, to the byte. */
export interface Scenario {
  /** Seed of draws within the run: latencies, order, and the faults of `rates`. */
  readonly seed: number;
  readonly group: GroupShape;
  /** A user's own objects and policies instead of those of `group`. */
  readonly given?: GivenGroup;
  /** Number of agents at a time; a dead one is replaced. */
  readonly agents: number;
  /** Speed of each agent's monotonic clock by letter: `{ a: 1.2 }` is a fifth too fast. Default 1. */
  readonly clockRates?: Readonly<Record<string, number>>;
  /** Duration of faults, in virtual milliseconds. */
  readonly safetyMs: number;
  /** Time to converge and become quiet after that, in virtual milliseconds. */
  readonly healingMs: number;
  /** Final time without writes, in virtual milliseconds; default: longer than any periodic write. */
  readonly quietMs?: number;
  /** Events in order of time, all within `safetyMs`. */
  readonly events: readonly ScenarioEvent[];
  /** Faults drawn at each possible place, as shares of the places; only until `safetyMs`. */
  readonly rates: Readonly<Partial<Record<FaultClass, number>>>;
  /** Faults at named places, whenever they are reached. */
  readonly faults: readonly PlacedFault[];
}

export interface GroupShape {
  /** By a RolloutGroup object, or by the labels and annotations of grafana/rollout-operator. */
  readonly kind: 'native' | 'adopted';
  /** 1 to 5. */
  readonly zones: number;
  /** Initial pods per zone, 1 to 20. */
  readonly podsPerZone: number;
  /** Pods of a zone that may be down at once. */
  readonly maxUnavailable: number | `${number}%`;
  readonly minReadySeconds: number;
  readonly podManagementPolicy: 'Parallel' | 'OrderedReady';
  /** By DELETE, or by eviction under a PodDisruptionBudget per zone that allows `maxUnavailable`. */
  readonly rotateBy: 'delete' | 'evict';
  /**
   * `own`: each zone keeps its count. `leader`: others follow zone a. `mirror`: all follow a ReplicaTemplate; `delayedMirror` also prepares
   * pods.
   */
  readonly replicas: 'own' | 'leader' | 'mirror' | 'delayedMirror';
  readonly delaySeconds: number;
  /** Between downscales of two zones, in seconds. */
  readonly betweenZonesSeconds: number;
  /** Times to drain and to become ready, in milliseconds; each pod varies around it. */
  readonly drainMs: number;
  readonly startMs: number;
  /** For native groups; default `onDelete`. */
  readonly strategy?: StrategyName;
  /** For native groups: a gate after each zone. Its metric is good, or (`flipping`) sometimes bad during faults. */
  readonly gate?: 'passing' | 'flipping';
}

/** Returns the traits of the strategy of a shape. */
export function traitsOfShape({ strategy }: Pick<GroupShape, 'strategy'>): StrategyTraits {
  return strategyTraits[strategy ?? 'onDelete'];
}

export interface GivenGroup {
  readonly namespace: string;
  readonly name: string;
  /** Wall clock at the start, in whole seconds as milliseconds since 1970; default 2026-01-15T12:00:00Z. */
  readonly startMs?: number;
  /** In order of the zones: the first is zone `a` of events. */
  readonly statefulSets: readonly string[];
  /** Initial objects without status: StatefulSets (with ready pods), RolloutGroups, budgets, mirrored objects. */
  readonly objects: readonly Json[];
  /** Files of the agents' policy directory. */
  readonly policies: readonly { readonly name: string; readonly text: string }[];
  /** Applied one after the other at the start. */
  readonly changes: readonly Json[];
}

/** One event, in virtual milliseconds from the start. `zone` is a letter. */
export type ScenarioEvent = { readonly atMs: number } & (PeopleEvent | ClusterEvent | ProcessEvent);

/** Events of people and autoscalers (F17, F18). */
export type PeopleEvent =
  /** Sets the image in the template of all or these zones; `broken/...` never becomes ready. */
  | { readonly kind: 'setImage'; readonly image: string; readonly zones?: readonly string[] }
  /** Changes the number at its source: the leader, the mirrored object, or each StatefulSet. */
  | { readonly kind: 'setReplicas'; readonly replicas: number; readonly zone?: string }
  | { readonly kind: 'pause' }
  | { readonly kind: 'resume' }
  /** `kubectl delete pod` and `kubectl scale`, without rules. */
  | { readonly kind: 'deletePod'; readonly zone: string; readonly ordinal: number }
  | { readonly kind: 'scaleByHand'; readonly zone: string; readonly replicas: number }
  /** Deletes with or without orphaning pods, and recreates under the same name. */
  | { readonly kind: 'recreateStatefulSet'; readonly zone: string; readonly isOrphaning: boolean; readonly afterMs: number }
  /** Removes the label or the member, and restores it. */
  | { readonly kind: 'leaveGroup'; readonly zone: string; readonly forMs: number }
  | { readonly kind: 'setStrategy'; readonly zone: string; readonly type: 'OnDelete' | 'RollingUpdate'; readonly forMs: number };

/** Accidents of pods, nodes, controllers and the webhook (F15, F16, F17, F20). */
export type ClusterEvent =
  | { readonly kind: 'podFails'; readonly zone: string; readonly ordinal: number; readonly forMs: number }
  | { readonly kind: 'podFlaps'; readonly zone: string; readonly ordinal: number; readonly times: number }
  | { readonly kind: 'podDies'; readonly zone: string; readonly ordinal: number }
  /** Pods start, or end, that much slower from then on. */
  | { readonly kind: 'slowKubelet'; readonly startFactor: number; readonly drainFactor: number; readonly forMs: number }
  | { readonly kind: 'stuckTerminating'; readonly zone: string; readonly ordinal: number; readonly forMs: number }
  | { readonly kind: 'nodeLost'; readonly zone: string; readonly forMs: number }
  /** Evicts its pods one after the other, as `kubectl drain` does. */
  | { readonly kind: 'nodeDrained'; readonly zone: string }
  | { readonly kind: 'controllerLags'; readonly delayMs: number; readonly forMs: number }
  /** The StatefulSet controller uses an old cache, so it creates pods of the old revision. */
  | { readonly kind: 'controllerIsStale'; readonly forMs: number }
  /** The webhook on pod creation does not answer, so pods get the revision of the StatefulSet controller. */
  | { readonly kind: 'webhookAway'; readonly forMs: number };

/** Accidents of agents, servers and clocks (F10 to F14). `process` is a letter for all of its lives. */
type ProcessEvent =
  | { readonly kind: 'crash'; readonly process: string; readonly restartAfterMs: number }
  | { readonly kind: 'stop'; readonly process: string; readonly restartAfterMs: number }
  | { readonly kind: 'pauseProcess'; readonly process: string; readonly durationMs: number }
  | { readonly kind: 'jumpWallClock'; readonly process: string; readonly byMs: number }
  | { readonly kind: 'deleteLease' }
  /** Another holder is written into the Lease. */
  | { readonly kind: 'editLease' }
  /** A front end shows nothing new for this time. */
  | { readonly kind: 'frontEndLags'; readonly frontEnd: number; readonly forMs: number }
  /** Every open watch of the front end ends, and its history is gone. */
  | { readonly kind: 'frontEndRestarts'; readonly frontEnd: number; readonly isCompacted: boolean };

/** Returns `a` for 0. */
export function letterOf(index: number): string {
  return String.fromCharCode('a'.charCodeAt(0) + index);
}

/** Returns the agent of a process: `a` for `a2`. */
export function processLetter(process: string): string {
  return process.replace(/\d+$/, '');
}
