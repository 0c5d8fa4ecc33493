// Defines the output of the engine as plain data: actions, results that block further steps, and the time of the next decision.
//
// The caller of `decideGroup` must carry out a GroupDecision in this order. `agent/turn/turn.ts` does.
//
//  1. Read first, decide after. If an action disrupts pods or changes replicas, the snapshot must be fresh: read the objects again, or wait for
//     the watch cache. Policies and requests must be fresh if an action disrupts pods, or if the run passes a checkpoint (`passesCheckpoint`).
//  2. If the decision violates an invariant (`invariants/`), drop every destructive action. Other actions may continue.
//  3. Write the ledger before the first action, in one write with a precondition on its resource version. The write contains a claim for
//     every disruption, an `asked` preparation for every pod to prepare, the next `run`, and `pinned`. If the write fails, do nothing. If
//     another leader wrote, decide again.
//  4. Carry out `actions` one after the other, in their order, with the UID or resource version of an action as precondition. Stop after a
//     request to the API server that failed or has an unknown outcome, and after a change of replicas that did not succeed. Calls to pods
//     stop nothing.
//  5. Before each destructive action, check with the newest observations: the rest of the decision violates no invariant, and policies,
//     exceptions and requests are unchanged. A scale-up only needs a recent snapshot. If a check fails, drop the rest and decide again.
//  6. Write the outcome to the ledger: remove the claims and pins of actions that certainly had no effect, and add the answers of pods.
//     If no replacement can have had an effect, apply `revertProgress` to the run. A claim with an unknown outcome stays open.
//  7. Publish the decision, Events and notifications after the ledger is written, so that they never announce a state that is not stored.
//  8. If the API server rejected a write, decide again at once, with the write in `refusedWrites` of the snapshot until it is repeated.
//  9. Decide again at `wakeAtMs` at the latest, when an object changes, and when a wanted reading (`wantedReadings`) arrives.
//
// A crash after step 3 loses no disruption: the next process reads the claims and counts them as disruptions until they are settled or expire.
import type { Source } from '../policies/definition.ts';
import type { Phase } from '../policies/rollout/phases.ts';
import type { Drift } from './diff/field-writers.ts';
import type { DisruptionVerdict } from './disruption/disruption.ts';
import type { RunState } from './run/run-state.ts';
import type { Ledger } from './snapshot.ts';

/** A rule's answer. `wait`: time, progress or a request ends it. `no`: a person must act. `skip`: not applicable. `unknown`: unreadable. */
export type RuleOutcome = 'ok' | 'wait' | 'no' | 'skip' | 'unknown';

export interface RuleResult {
  /** A rule of the engine in kebab-case, or `policy/rule` of a RolloutPolicy. */
  readonly rule: string;
  readonly outcome: RuleOutcome;
  /** The observed state, as a clause that starts with its subject. */
  readonly fact: string;
  /** The value with which the state was compared. */
  readonly limit?: string;
  /** The setting or object that causes the result. */
  readonly source?: Source;
  /** The earliest instant at which the result could change without any event. */
  readonly earliestMs?: number;
  /** The digest that an approval must name. */
  readonly digest?: string;
  /** The name of the exception that permits what the rule would block. */
  readonly exception?: string;
  /** Neither time nor progress ends the result, although its outcome is `wait`: a policy rule holds until a person acts. */
  readonly endsBy?: 'person';
  /** The command or edit with which a person ends the result. */
  readonly endsWith?: string;
  /** A duration in the fact that grows with time: its text, and the instant from which it counts. Stored facts name the instant. */
  readonly age?: { readonly words: string; readonly fromMs: number };
}

interface PodTarget {
  readonly namespace: string;
  readonly zone: string;
  readonly statefulSet: string;
  readonly pod: string;
  readonly ordinal: number;
  /** The precondition: the UID of the pod. */
  readonly uid: string;
  /** The revision of the successor pod under the strategy `pinned`. */
  readonly pinTo?: string;
}

/** The StatefulSet that an action writes; `uid` and `resourceVersion` are the preconditions. */
interface SetTarget {
  readonly namespace: string;
  readonly zone: string;
  readonly statefulSet: string;
  readonly uid: string;
  readonly resourceVersion: string;
}

export type Action =
  | (PodTarget & { readonly kind: 'deletePod'; readonly resourceVersion: string; readonly because: 'outdated' | 'stuck' })
  | (PodTarget & { readonly kind: 'evictPod'; readonly because: 'outdated' })
  | (SetTarget & { readonly kind: 'scaleStatefulSet'; readonly from: number; readonly to: number })
  | (SetTarget & {
      /** Writes `spec.updateStrategy.rollingUpdate.partition`. The StatefulSet controller then replaces the exposed pods. */
      readonly kind: 'setPartition';
      readonly from: number;
      readonly to: number;
      /**
       * `outdated`: exposes the next pods. `stuck`: exposes a stuck pod. `updated`: lowered to the lowest updated pod, so that updated
       * pods come back at the update revision. `complete`: raised after a rollout, so that the next template waits. `frozen`: raised,
       * because no run exposed the outdated pods. `pinned`: raised, because the agent replaces pods. `released`: 0, because the group is
       * deleted.
       */
      readonly because: 'outdated' | 'stuck' | 'updated' | 'complete' | 'frozen' | 'pinned' | 'released';
      /** The pods that the controller replaces, from the highest ordinal down. */
      readonly pods: readonly { readonly pod: string; readonly ordinal: number; readonly uid: string }[];
    })
  | {
      readonly kind: 'callPods';
      readonly namespace: string;
      readonly zone: string;
      readonly statefulSet: string;
      readonly call: 'delayed' | 'prepare';
      /** POST asks to prepare, DELETE withdraws. */
      readonly method: 'POST' | 'DELETE';
      /** In the order of the calls. */
      readonly ordinals: readonly number[];
    }
  | {
      readonly kind: 'writeBackReplicas';
      readonly namespace: string;
      readonly apiVersion: string;
      readonly resourceKind: string;
      readonly name: string;
      readonly replicas: number;
    }
  | (SetTarget & { readonly kind: 'advanceCurrentRevision'; readonly revision: string });

/** Reports whether the action deletes or evicts a pod to replace it. */
export function isReplacement(action: Action): action is Extract<Action, { readonly kind: 'deletePod' | 'evictPod' }> {
  return action.kind === 'deletePod' || action.kind === 'evictPod';
}

/** Reports whether the action asks pods to prepare for their removal. */
export function asksToPrepare(action: Action): boolean {
  return action.kind === 'callPods' && action.method === 'POST';
}

export interface ReplacedPod {
  readonly zone: string;
  readonly pod: string;
  readonly ordinal: number;
  readonly uid: string;
  readonly because: 'outdated' | 'stuck';
}

/** Returns the pods that an action replaces, also those that the StatefulSet controller deletes; [] for other actions. */
export function replacedBy(action: Action): readonly ReplacedPod[] {
  if (isReplacement(action)) return [action];
  if (action.kind !== 'setPartition') return [];
  const because = action.because === 'stuck' ? 'stuck' : 'outdated';
  return action.pods.map((pod) => ({ ...pod, zone: action.zone, because }));
}

/** The next step of one zone with the results of all its rules. */
export interface Step {
  /** Unique within a decision: `roll/zone`, `scale/zone`, `after/wave` or `view/zone`. */
  readonly id: string;
  readonly kind: 'roll' | 'scaleUp' | 'scaleDown';
  readonly zone: string;
  /** For a roll: the pods still to be replaced in this wave, in their order. */
  readonly pods: readonly string[];
  readonly from?: number;
  readonly to?: number;
  readonly outcome: 'act' | 'wait' | 'blocked';
  readonly results: readonly RuleResult[];
}

export interface ZoneDecision {
  readonly zone: string;
  readonly statefulSet: string;
  readonly replicas: number;
  readonly updated: number;
  readonly available: number;
  readonly isReady: boolean;
  /** The revisions of the pods, each with its ordinals. `desiredRevision` is the last, if a pod has it. */
  readonly revisions: readonly { readonly revision: string; readonly ordinals: string }[];
  /** `ZoneView.desiredRevision`: pods at this revision count as updated. Absent while it is unknown. */
  readonly desiredRevision?: string;
  /** True if pods count as updated at the revision before a rollback, because the update revision failed. */
  readonly isReturned?: true;
  /** The outdated pods that stay outdated, because no wave includes them. Absent without such pods. */
  readonly podsInNoWave?: number;
  /** Why the counts are meaningless: the StatefulSet does not exist, or the zone could not be read. Absent for a zone that was read. */
  readonly unread?: 'missing' | 'unreadable';
  /** `StatefulSetView.drift`. */
  readonly drift?: Drift;
}

/** Returns the word for the pods that count as updated: after a rollback and during it, they are returned. */
export function updatedWord(zones: readonly Pick<ZoneDecision, 'isReturned'>[]): string {
  const count = zones.filter(({ isReturned }) => isReturned === true).length;
  if (count === 0) return 'updated';
  return count === zones.length ? 'returned' : 'updated or returned';
}

/** A pause, protection, undo, rejection, window, policy rule or failed run that stops steps of the group now, even if no step is due. */
export interface Stop {
  /** The rule that blocks: `run-failed`, `rolled-back`, `paused`, `protected`, `undone`, `approval`, `window`, or `policy/rule`. */
  readonly rule: string;
  /** The person or policy and the reason, as a clause. */
  readonly fact: string;
  readonly limit?: string;
  readonly source?: Source;
  /** The instant at which the stop ends by itself. */
  readonly untilMs?: number;
  readonly by?: string;
  readonly zones: readonly string[];
  /**
   * False for a rolled-back revision while a run is in progress, for an undone revision that is not the update revision, and for paused or
   * protected pods that no step needs.
   */
  readonly isBlocking: boolean;
  /** Only a person ends the stop, and no outdated pod of the group is replaced before. */
  readonly endsBy?: 'person';
  readonly endsWith: string;
  /** Other commands or edits that end the stop. */
  readonly alternatives?: readonly string[];
  /** True for an abort that only pauses, because the requester is unverified or the abort names no run. */
  readonly isAbort?: true;
}

/** A StatefulSet that left the group and keeps the partition of the agent. */
export interface LeftMember {
  /** The zone of the StatefulSet while it was a member. */
  readonly zone: string;
  readonly statefulSet: string;
  /** The consequence, as a clause. */
  readonly fact: string;
  readonly endsWith: string;
  /** Other commands or edits that end the state. */
  readonly alternatives: readonly string[];
}

/** Reports whether the group replaces pods or changes replicas. */
export function isMoving({ phase }: { readonly phase: Phase }): boolean {
  return phase === 'Rolling' || phase === 'Scaling';
}

/** Reports whether nothing is left to do for the group, also if the requested revision was rolled back. */
export function isAtRest({ phase }: { readonly phase: Phase }): boolean {
  return phase === 'Done' || phase === 'RolledBack';
}

export const noGoal = 'nothing to do';

export interface GroupDecision {
  readonly namespace: string;
  readonly group: string;
  /** The number of updated pods and the replicas to reach, as a clause, or `noGoal`. */
  readonly goal: string;
  readonly phase: Phase;
  readonly outcome: 'act' | 'wait' | 'blocked' | 'done';
  readonly wave?: { readonly name: string; readonly index: number; readonly count: number };
  readonly zones: readonly ZoneDecision[];
  readonly steps: readonly Step[];
  readonly actions: readonly Action[];
  /** The blocking results by precedence. The first one is the `leadingResult`. */
  readonly waits: readonly RuleResult[];
  readonly stops: readonly Stop[];
  /** The results that pass only because of an exception, sorted by the end of the exception; absent without such results. */
  readonly permitted?: readonly RuleResult[];
  /** The result of the deadline that fails the run first, at its `earliestMs`; absent while no deadline counts. */
  readonly deadline?: RuleResult;
  /** Results that block no step: of policies, gates in observe mode, cancelled downscales, rollbacks, restarts, and rejected other writes. */
  readonly warnings: readonly RuleResult[];
  /** Absent without such StatefulSets. */
  readonly left?: readonly LeftMember[];
  /** The answers of the zone-aware disruption budgets about the pods that this turn would replace; absent without such pods. */
  readonly budgetAnswers?: readonly Pick<DisruptionVerdict, 'reason' | 'code'>[];
  /** The gates to read. Readings count from `fromMs`, so the gate reader starts there. */
  readonly wantedReadings: readonly { readonly gate: string; readonly fromMs: number }[];
  /** The earliest instant at which time alone could change this decision. */
  readonly wakeAtMs?: number;
  /** The run after this decision, which the ledger stores. */
  readonly run?: RunState;
  /** Pins and templates that the ledger must store before any action. Absent: the group pins no pods. */
  readonly pinned?: Pick<Ledger, 'pins' | 'templates'>;
}

export interface Decision {
  readonly nowMs: number;
  readonly policyDigest: string;
  readonly groups: readonly GroupDecision[];
}

interface RequestCore {
  readonly namespace: string;
  readonly user?: string;
  /** The groups of the user, for conditions; absent if they are unknown. */
  readonly groups?: readonly string[];
  readonly dryRun: boolean;
}

interface SetRequest extends RequestCore {
  readonly statefulSet: string;
}

interface PodRequest extends RequestCore {
  readonly pod: string;
}

/** A write of replicas. `from` or `to` is undefined if the field is `null` in the old or new object. */
interface ReplicaRequest extends SetRequest {
  readonly from: number | undefined;
  readonly to: number | undefined;
}

export type AdmissionRequest =
  | (ReplicaRequest & { readonly kind: 'scale'; readonly via: 'update' | 'patch' | 'apply' | 'scale' })
  | (ReplicaRequest & {
      readonly kind: 'update';
      readonly isTemplateChanged: boolean;
      readonly strategy: 'OnDelete' | 'RollingUpdate';
      /** `spec.updateStrategy.rollingUpdate.partition` after the write. Absent counts as unchanged. */
      readonly partition?: number;
      /** `spec.ordinals.start` after the write. Absent counts as unchanged. */
      readonly firstOrdinal?: number;
      /**
       * The keys of removed or changed labels, of added protection labels, and of changed annotations of the preparation endpoint; and
       * `last-downscale` if the write removes it or sets an earlier time.
       */
      readonly relabels?: readonly string[];
      /** The value of the label with the time between zones, after the write. Absent if the label is removed, or not in `relabels`. */
      readonly betweenZones?: string;
      readonly via: 'update' | 'patch' | 'apply';
    })
  | (SetRequest & {
      readonly kind: 'deleteStatefulSet';
      /** Number of pods deleted with the StatefulSet. Absent counts as 0. */
      readonly pods?: number;
    })
  | (PodRequest & { readonly kind: 'deletePod' })
  | (PodRequest & { readonly kind: 'evictPod' })
  | (SetRequest & {
      readonly kind: 'restart';
      /** The time in the new template. Absent: the present time, or a text that is no time. */
      readonly restartedAtMs?: number;
    });

export interface Judgement {
  readonly outcome: 'allow' | 'deny' | 'prepare';
  /** HTTP status of a denial. Clients of the eviction API retry after 429. */
  readonly code: number;
  readonly request: AdmissionRequest;
  readonly message: string;
  /** The strictest effect that applied. */
  readonly effect: 'allow' | 'warn' | 'requireApproval' | 'hold' | 'deny';
  readonly results: readonly RuleResult[];
  readonly warnings: readonly string[];
  /** The unread object without which no rule can judge the request; absent for a judged request. `failsOpen` tells whether it passes. */
  readonly unjudged?: string;
  /** With `prepare`: the calls before the request is judged again. With `deny`: the calls that withdraw a failed preparation. */
  readonly actions: readonly Action[];
  readonly decisionId: string;
  /** The command that overrides every rule that blocks. Absent if one of them is neither a window nor a policy rule, or accepts no exception. */
  readonly override?: string;
}
