// What a run consists of: a group, the people and accidents around it, and the faults. Plain data, so that it can be stored, shrunk and repeated.
import { type StrategyName, type StrategyTraits, strategyTraits } from '../policies/strategies.ts';
import type { FaultClass, PlacedFault } from './faults/fault.ts';
import type { Json } from './server/request.ts';

/** A run, whole: the same scenario gives the same run, to the byte. */
export interface Scenario {
  /** What is drawn in the run itself: latencies, who comes first, and the faults of `rates`. */
  readonly seed: number;
  readonly group: GroupShape;
  /** Somebody's own objects and policies in place of those that follow from `group`. */
  readonly given?: GivenGroup;
  /** How many agents run at a time; each is replaced when it dies. */
  readonly agents: number;
  /** Of each agent's monotonic clock, by its letter: `{ a: 1.2 }` runs a fifth too fast. 1 where left out. */
  readonly clockRates?: Readonly<Record<string, number>>;
  /** How long things may go wrong, in virtual milliseconds. */
  readonly safetyMs: number;
  /** How long after that the group may take to converge and be quiet, in virtual milliseconds. */
  readonly healingMs: number;
  /** For so long nothing may be written at the end, in virtual milliseconds; when left out, for longer than anything that is done at times takes. */
  readonly quietMs?: number;
  /** What people, machines and accidents do, in the order of their instants. All of it within `safetyMs`. */
  readonly events: readonly ScenarioEvent[];
  /** Faults drawn at each place at which they are possible, as shares of those places; only until `safetyMs`. */
  readonly rates: Readonly<Partial<Record<FaultClass, number>>>;
  /** Faults at named places, whenever they are reached. */
  readonly faults: readonly PlacedFault[];
}

export interface GroupShape {
  /** By a RolloutGroup object, or by the labels and annotations of grafana/rollout-operator. */
  readonly kind: 'native' | 'adopted';
  /** 1 to 5. */
  readonly zones: number;
  /** Of each zone at the start, 1 to 20. */
  readonly podsPerZone: number;
  /** Pods of a zone that may be down at once. */
  readonly maxUnavailable: number | `${number}%`;
  readonly minReadySeconds: number;
  readonly podManagementPolicy: 'Parallel' | 'OrderedReady';
  /** By DELETE, or by eviction under a PodDisruptionBudget for each zone that allows `maxUnavailable`. */
  readonly rotateBy: 'delete' | 'evict';
  /**
   * `own`: each zone keeps its own. `leader`: zone a leads, the others follow. `mirror`: all follow a ReplicaTemplate. `delayedMirror`: as
   * `mirror`, and pods are prepared for `delaySeconds` before they leave.
   */
  readonly replicas: 'own' | 'leader' | 'mirror' | 'delayedMirror';
  readonly delaySeconds: number;
  /** Between downscales of two zones, in seconds. */
  readonly betweenZonesSeconds: number;
  /** How long a pod takes to drain and to become ready, in milliseconds; each pod draws its own around it. */
  readonly drainMs: number;
  readonly startMs: number;
  /** Of native groups; `onDelete` when left out. */
  readonly strategy?: StrategyName;
  /** Of native groups: a gate enforces after each zone. Its metric is good, or (`flipping`) now and then bad as long as things go wrong. */
  readonly gate?: 'passing' | 'flipping';
}

/** Returns the traits of the strategy of a shape. */
export function traitsOfShape({ strategy }: Pick<GroupShape, 'strategy'>): StrategyTraits {
  return strategyTraits[strategy ?? 'onDelete'];
}

export interface GivenGroup {
  readonly namespace: string;
  readonly name: string;
  /** The wall clock when the run begins, in whole seconds as milliseconds since 1970; 2026-01-15T12:00:00Z when left out. */
  readonly startMs?: number;
  /** In the order of the zones: the first is zone `a` of events. */
  readonly statefulSets: readonly string[];
  /** As they stand at the beginning, without status: StatefulSets (their pods run and are ready), RolloutGroups, budgets, what is mirrored. */
  readonly objects: readonly Json[];
  /** What the agents' policy directory holds. */
  readonly policies: readonly { readonly name: string; readonly text: string }[];
  /** Applied one after the other when the run begins. */
  readonly changes: readonly Json[];
}

/** What happens at an instant, in virtual milliseconds from the beginning. `zone` is a letter. */
export type ScenarioEvent = { readonly atMs: number } & (PeopleEvent | ClusterEvent | ProcessEvent);

/** What people and autoscalers do (F17, F18). */
export type PeopleEvent =
  /** The template of each zone, or of these zones, gets the image; `broken/...` never becomes ready. */
  | { readonly kind: 'setImage'; readonly image: string; readonly zones?: readonly string[] }
  /** Where the number comes from: the leader, the mirrored object, or each StatefulSet. */
  | { readonly kind: 'setReplicas'; readonly replicas: number; readonly zone?: string }
  | { readonly kind: 'pause' }
  | { readonly kind: 'resume' }
  /** `kubectl delete pod` and `kubectl scale`, past every rule. */
  | { readonly kind: 'deletePod'; readonly zone: string; readonly ordinal: number }
  | { readonly kind: 'scaleByHand'; readonly zone: string; readonly replicas: number }
  /** Deleted with its pods left standing (orphaned) or not, and made again under the same name. */
  | { readonly kind: 'recreateStatefulSet'; readonly zone: string; readonly isOrphaning: boolean; readonly afterMs: number }
  /** The label or the member is taken away and comes back. */
  | { readonly kind: 'leaveGroup'; readonly zone: string; readonly forMs: number }
  | { readonly kind: 'setStrategy'; readonly zone: string; readonly type: 'OnDelete' | 'RollingUpdate'; readonly forMs: number };

/** What happens to pods, nodes, controllers and the webhook (F15, F16, F17, F20). */
export type ClusterEvent =
  | { readonly kind: 'podFails'; readonly zone: string; readonly ordinal: number; readonly forMs: number }
  | { readonly kind: 'podFlaps'; readonly zone: string; readonly ordinal: number; readonly times: number }
  | { readonly kind: 'podDies'; readonly zone: string; readonly ordinal: number }
  /** From then on pods start, or end, that much slower. */
  | { readonly kind: 'slowKubelet'; readonly startFactor: number; readonly drainFactor: number; readonly forMs: number }
  | { readonly kind: 'stuckTerminating'; readonly zone: string; readonly ordinal: number; readonly forMs: number }
  | { readonly kind: 'nodeLost'; readonly zone: string; readonly forMs: number }
  /** Its pods are evicted one after the other, as `kubectl drain` does. */
  | { readonly kind: 'nodeDrained'; readonly zone: string }
  | { readonly kind: 'controllerLags'; readonly delayMs: number; readonly forMs: number }
  /** The StatefulSet controller works with a cache of the past, so that it makes pods of the old revision. */
  | { readonly kind: 'controllerIsStale'; readonly forMs: number }
  /** The webhook on the creation of pods does not answer, so that they are made as the StatefulSet controller asks for them. */
  | { readonly kind: 'webhookAway'; readonly forMs: number };

/** What happens to the agents, their servers and their clocks (F10 to F14). `process` is a letter, whatever life it is in. */
type ProcessEvent =
  | { readonly kind: 'crash'; readonly process: string; readonly restartAfterMs: number }
  | { readonly kind: 'stop'; readonly process: string; readonly restartAfterMs: number }
  | { readonly kind: 'pauseProcess'; readonly process: string; readonly durationMs: number }
  | { readonly kind: 'jumpWallClock'; readonly process: string; readonly byMs: number }
  | { readonly kind: 'deleteLease' }
  /** Somebody else is written in as the holder. */
  | { readonly kind: 'editLease' }
  /** A front end of the API server shows nothing new for so long. */
  | { readonly kind: 'frontEndLags'; readonly frontEnd: number; readonly forMs: number }
  /** Every open watch of the front end ends, and what it remembers of the past is gone. */
  | { readonly kind: 'frontEndRestarts'; readonly frontEnd: number; readonly isCompacted: boolean };
