// Defines a scenario, the input of a simulation: a group, events and faults as plain data that can be stored, shrunk and repeated.

import { type StrategyName, type StrategyTraits, strategyTraits } from '../policies/strategies.ts';
import type { FaultClass, PlacedFault } from './faults/fault.ts';
import type { Json } from './server/request.ts';

/** The complete input of a simulation. The same scenario gives the same simulation, to the byte. */
export interface Scenario {
  /** The seed of all random numbers: latencies, the order of events at one time, and the faults of `rates`. */
  readonly seed: number;
  readonly group: GroupShape;
  /** The objects and policies of a user, which replace those that `group` describes. */
  readonly given?: GivenGroup;
  /** The number of agents. A dead process is restarted. */
  readonly agents: number;
  /** The rate of each agent's monotonic clock by letter: `{ a: 1.2 }` is a fifth too fast. The default is 1. */
  readonly clockRates?: Readonly<Record<string, number>>;
  /** The duration of faults, in virtual milliseconds. */
  readonly safetyMs: number;
  /** The time after the faults to converge and become quiet, in virtual milliseconds. */
  readonly healingMs: number;
  /** The final time without writes, in virtual milliseconds. The default is longer than the interval of any periodic write. */
  readonly quietMs?: number;
  /** The events in order of time, all within `safetyMs`. */
  readonly events: readonly ScenarioEvent[];
  /** The share of places at which each class of fault is drawn, until `safetyMs`. */
  readonly rates: Readonly<Partial<Record<FaultClass, number>>>;
  /** The faults at named places, which happen when a process reaches the place. */
  readonly faults: readonly PlacedFault[];
}

export interface GroupShape {
  /** `native`: a RolloutGroup object defines the group. `adopted`: labels and annotations of grafana/rollout-operator define it. */
  readonly kind: 'native' | 'adopted';
  /** The number of zones, 1 to 5. */
  readonly zones: number;
  /** The initial pods per zone, 1 to 20. */
  readonly podsPerZone: number;
  /** The pods of a zone that may be unavailable at once. */
  readonly maxUnavailable: number | `${number}%`;
  readonly minReadySeconds: number;
  readonly podManagementPolicy: 'Parallel' | 'OrderedReady';
  /** `delete`: by DELETE. `evict`: by eviction under a PodDisruptionBudget per zone that allows `maxUnavailable`. */
  readonly rotateBy: 'delete' | 'evict';
  /**
   * `own`: each zone has its own replicas. `leader`: the other zones follow zone a. `mirror`: all zones mirror a ReplicaTemplate.
   * `delayedMirror`: as `mirror`, and pods are prepared before their removal.
   */
  readonly replicas: 'own' | 'leader' | 'mirror' | 'delayedMirror';
  readonly delaySeconds: number;
  /** The minimum time between downscales of two zones. */
  readonly betweenZonesSeconds: number;
  /** The mean time in milliseconds until a deleted pod is gone. Each pod varies around this time. */
  readonly drainMs: number;
  /** The mean time in milliseconds until a created pod is ready. Each pod varies around this time. */
  readonly startMs: number;
  /** The strategy of a native group; `onDelete` by default. */
  readonly strategy?: StrategyName;
  /** A gate after each zone of a native group. Its metric is good (`passing`), or sometimes bad during faults (`flipping`). */
  readonly gate?: 'passing' | 'flipping';
}

/** Returns the traits of the strategy of a shape. */
export function traitsOfShape({ strategy }: Pick<GroupShape, 'strategy'>): StrategyTraits {
  return strategyTraits[strategy ?? 'onDelete'];
}

export interface GivenGroup {
  readonly namespace: string;
  readonly name: string;
  /** The wall-clock time at the start, rounded to seconds; 2026-01-15T12:00:00Z by default. */
  readonly startMs?: number;
  /** The StatefulSets in the order of the zones. The first one is zone `a` of events. */
  readonly statefulSets: readonly string[];
  /** The initial objects: StatefulSets (their pods are ready), RolloutGroups, budgets, mirrored objects. */
  readonly objects: readonly Json[];
  /** The files of the agents' policy directory. */
  readonly policies: readonly { readonly name: string; readonly text: string }[];
  /** The manifests that are applied one after the other at the start. */
  readonly changes: readonly Json[];
}

/** One event, in virtual milliseconds from the start. `zone` is a letter. */
export type ScenarioEvent = { readonly atMs: number } & (PeopleEvent | ClusterEvent | ProcessEvent);

/** Events of people and autoscalers (F17, F18). */
export type PeopleEvent =
  /** Sets the image in the templates of all or of these zones. Pods with an image `broken/...` never become ready. */
  | { readonly kind: 'setImage'; readonly image: string; readonly zones?: readonly string[] }
  /** Changes the replicas at their source: the leader, the mirrored object, or each StatefulSet. */
  | { readonly kind: 'setReplicas'; readonly replicas: number; readonly zone?: string }
  | { readonly kind: 'pause' }
  | { readonly kind: 'resume' }
  /** Runs `kubectl delete pod` or `kubectl scale`, which no rule restricts. */
  | { readonly kind: 'deletePod'; readonly zone: string; readonly ordinal: number }
  | { readonly kind: 'scaleByHand'; readonly zone: string; readonly replicas: number }
  /** Deletes the StatefulSet, with or without its pods, and recreates it under the same name. */
  | { readonly kind: 'recreateStatefulSet'; readonly zone: string; readonly isOrphaning: boolean; readonly afterMs: number }
  /** Removes the StatefulSet from the group, and adds it again. */
  | { readonly kind: 'leaveGroup'; readonly zone: string; readonly forMs: number }
  | { readonly kind: 'setStrategy'; readonly zone: string; readonly type: 'OnDelete' | 'RollingUpdate'; readonly forMs: number };

/** Accidents of pods, nodes, controllers and the webhook (F15, F16, F17, F20). */
export type ClusterEvent =
  | { readonly kind: 'podFails'; readonly zone: string; readonly ordinal: number; readonly forMs: number }
  | { readonly kind: 'podFlaps'; readonly zone: string; readonly ordinal: number; readonly times: number }
  | { readonly kind: 'podDies'; readonly zone: string; readonly ordinal: number }
  /** Makes pods start and drain slower by these factors. */
  | { readonly kind: 'slowKubelet'; readonly startFactor: number; readonly drainFactor: number; readonly forMs: number }
  | { readonly kind: 'stuckTerminating'; readonly zone: string; readonly ordinal: number; readonly forMs: number }
  | { readonly kind: 'nodeLost'; readonly zone: string; readonly forMs: number }
  /** Evicts the pods of a node one after the other, as `kubectl drain` does. */
  | { readonly kind: 'nodeDrained'; readonly zone: string }
  | { readonly kind: 'controllerLags'; readonly delayMs: number; readonly forMs: number }
  /** Makes the StatefulSet controller use an old cache, so that it creates pods at the old revision. */
  | { readonly kind: 'controllerIsStale'; readonly forMs: number }
  /** Stops the answers of the webhook on pod creation, so that pods get the revision of the StatefulSet controller. */
  | { readonly kind: 'webhookAway'; readonly forMs: number };

/** Accidents of agents, servers and clocks (F10 to F14). `process` is a letter, which the process keeps when it restarts. */
type ProcessEvent =
  | { readonly kind: 'crash'; readonly process: string; readonly restartAfterMs: number }
  | { readonly kind: 'stop'; readonly process: string; readonly restartAfterMs: number }
  | { readonly kind: 'pauseProcess'; readonly process: string; readonly durationMs: number }
  | { readonly kind: 'jumpWallClock'; readonly process: string; readonly byMs: number }
  | { readonly kind: 'deleteLease' }
  /** Writes another holder into the Lease. */
  | { readonly kind: 'editLease' }
  /** Makes a front end show no new state for this time. */
  | { readonly kind: 'frontEndLags'; readonly frontEnd: number; readonly forMs: number }
  /** Ends every open watch of the front end. If `isCompacted`, its history is lost. */
  | { readonly kind: 'frontEndRestarts'; readonly frontEnd: number; readonly isCompacted: boolean };

/** Returns the letter of an index: `a` for 0. */
export function letterOf(index: number): string {
  return String.fromCharCode('a'.charCodeAt(0) + index);
}

/** Returns the letter of a process: `a` for `a2`. */
export function processLetter(process: string): string {
  return process.replace(/\d+$/, '');
}
