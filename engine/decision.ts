// The output of the engine: what to do now, why not more, and when to look again. Plain data.
import type { Source } from '../policies/definition.ts';
import type { Ledger, RunState } from './snapshot.ts';

/**
 * How a rule answered. `ok`: it does not hold the step. `wait`: it will pass by itself or with progress elsewhere. `no`: policy refuses; a
 * person must change something. `skip`: it does not apply. `unknown`: it could not be decided, which holds the step.
 */
export type RuleOutcome = 'ok' | 'wait' | 'no' | 'skip' | 'unknown';

export interface RuleResult {
  /** A rule of the engine in kebab-case, or `policy/rule` of a RolloutPolicy. */
  readonly rule: string;
  readonly outcome: RuleOutcome;
  /** What was seen, as a sentence part that starts with its subject. */
  readonly fact: string;
  /** What it was compared with. */
  readonly limit?: string;
  /** Where the limit is written. */
  readonly source?: Source;
  /** The earliest instant at which the answer could change by time alone. */
  readonly earliestMs?: number;
  /** Of what waits for an approval, which must name it. */
  readonly digest?: string;
}

interface PodTarget {
  readonly namespace: string;
  readonly zone: string;
  readonly statefulSet: string;
  readonly pod: string;
  readonly ordinal: number;
  /** Precondition of the request. */
  readonly uid: string;
  /** The revision at which the successor is made, where that is not for the StatefulSet controller to say: under the strategy `pinned`. */
  readonly pinTo?: string;
}

export type Action =
  | (PodTarget & { readonly kind: 'deletePod'; readonly resourceVersion: string; readonly because: 'outdated' | 'stuck' })
  | (PodTarget & { readonly kind: 'evictPod'; readonly because: 'outdated' })
  | {
      readonly kind: 'scaleStatefulSet';
      readonly namespace: string;
      readonly zone: string;
      readonly statefulSet: string;
      readonly uid: string;
      readonly resourceVersion: string;
      readonly from: number;
      readonly to: number;
    }
  | {
      /** Writes `spec.updateStrategy.rollingUpdate.partition`; the StatefulSet controller then replaces the pods that are no longer below it. */
      readonly kind: 'setPartition';
      readonly namespace: string;
      readonly zone: string;
      readonly statefulSet: string;
      readonly uid: string;
      readonly resourceVersion: string;
      readonly from: number;
      readonly to: number;
      /**
       * `outdated`: lowered so that the next pods go. `stuck`: lowered to the one pod next in line, which is down already. `updated`: lowered to
       * pods that run the update revision already, so that they keep it. `complete`: raised because every pod runs the update revision, so
       * that the next template waits. `pinned`: raised because the strategy `pinned` replaces pods one by one, and the controller none.
       * `released`: 0, because nothing defines the group any more and it said that its StatefulSets are handed back.
       */
      readonly because: 'outdated' | 'stuck' | 'updated' | 'complete' | 'pinned' | 'released';
      /** The pods that go, in the order of the controller: from the highest ordinal down. */
      readonly pods: readonly { readonly pod: string; readonly ordinal: number; readonly uid: string }[];
    }
  | {
      readonly kind: 'callPods';
      readonly namespace: string;
      readonly zone: string;
      readonly statefulSet: string;
      readonly call: 'delayed' | 'prepare';
      /** POST asks to prepare, DELETE withdraws. */
      readonly method: 'POST' | 'DELETE';
      /** In the order in which they are called. */
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
  | {
      readonly kind: 'advanceCurrentRevision';
      readonly namespace: string;
      readonly zone: string;
      readonly statefulSet: string;
      readonly uid: string;
      readonly resourceVersion: string;
      readonly revision: string;
    };

/** Whether a pod is taken away, to be replaced. */
export function isReplacement(action: Action): action is Extract<Action, { readonly kind: 'deletePod' | 'evictPod' }> {
  return action.kind === 'deletePod' || action.kind === 'evictPod';
}

/** A pod that goes by an action, and why. */
export interface ReplacedPod {
  readonly zone: string;
  readonly pod: string;
  readonly ordinal: number;
  readonly uid: string;
  readonly because: 'outdated' | 'stuck';
}

/** The pods that go by an action to be replaced, whoever deletes them; none for every other action. */
export function replacedBy(action: Action): readonly ReplacedPod[] {
  if (isReplacement(action)) return [action];
  if (action.kind !== 'setPartition') return [];
  const because = action.because === 'stuck' ? 'stuck' : 'outdated';
  return action.pods.map((pod) => ({ ...pod, zone: action.zone, because }));
}

/** One thing the group wants to do next, with every rule that was asked. */
export interface Step {
  /** Stable within a decision: `roll/zone` or `scale/zone`. */
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
  /** What the pods run, oldest first, as ordinals per revision. */
  readonly revisions: readonly { readonly revision: string; readonly ordinals: string }[];
}

export type Phase = 'Done' | 'Rolling' | 'Scaling' | 'Waiting' | 'Paused' | 'Blocked' | 'Failed';

export interface GroupDecision {
  readonly namespace: string;
  readonly group: string;
  /** What the group is to become, in one sentence. */
  readonly goal: string;
  readonly phase: Phase;
  readonly outcome: 'act' | 'wait' | 'blocked' | 'done';
  readonly wave?: { readonly name: string; readonly index: number; readonly count: number };
  readonly zones: readonly ZoneDecision[];
  readonly steps: readonly Step[];
  readonly actions: readonly Action[];
  /** The results that hold the group, the most lasting first. */
  readonly waits: readonly RuleResult[];
  /** Results of policies that only warn, and of gates that only observe. */
  readonly warnings: readonly RuleResult[];
  /** Gates whose readings count from an instant on; whoever gathers readings begins there. */
  readonly wantedReadings: readonly { readonly gate: string; readonly fromMs: number }[];
  /** The earliest instant at which time alone could change this decision. */
  readonly wakeAtMs?: number;
  /** The run after this decision; to be remembered in the ledger. */
  readonly run?: RunState;
  /** What the ledger is to say of pinned pods before anything of this decision is done. Absent: it says nothing of them, and need not. */
  readonly pinned?: Pick<Ledger, 'pins' | 'templates'>;
}

export interface Decision {
  readonly nowMs: number;
  readonly policyDigest: string;
  /** By namespace and name. */
  readonly groups: readonly GroupDecision[];
}

/** One API request that is to be judged. */
export type AdmissionRequest =
  | {
      readonly kind: 'scale';
      readonly namespace: string;
      readonly statefulSet: string;
      /** undefined stands for `null` in the object. */
      readonly from: number | undefined;
      readonly to: number | undefined;
      readonly via: 'update' | 'patch' | 'apply' | 'scale';
      readonly user?: string;
      readonly dryRun: boolean;
    }
  | {
      readonly kind: 'update';
      readonly namespace: string;
      readonly statefulSet: string;
      readonly from: number | undefined;
      readonly to: number | undefined;
      readonly isTemplateChanged: boolean;
      /** The update strategy after the write. */
      readonly strategy: 'OnDelete' | 'RollingUpdate';
      /** `spec.updateStrategy.rollingUpdate.partition` after the write; absent: it stays as it is. */
      readonly partition?: number;
      /** `spec.ordinals.start` after the write; absent: it stays as it is. */
      readonly firstOrdinal?: number;
      /**
       * Labels of the StatefulSet that the write changes or removes, and those that protect by themselves which it adds; the annotation
       * grafana.com/last-downscale when the write removes it or sets it back; and those that say where pods are asked before they go.
       */
      readonly relabels?: readonly string[];
      /** The label of the time between zones after the write; absent: it has none then. Read when `relabels` names it. */
      readonly betweenZones?: string;
      readonly via: 'update' | 'patch' | 'apply';
      readonly user?: string;
      readonly dryRun: boolean;
    }
  | {
      readonly kind: 'deleteStatefulSet';
      readonly namespace: string;
      readonly statefulSet: string;
      /** How many pods go with it. Absent: none that count, as where a whole group is taken away at once. */
      readonly pods?: number;
      readonly user?: string;
      readonly dryRun: boolean;
    }
  | { readonly kind: 'deletePod'; readonly namespace: string; readonly pod: string; readonly user?: string; readonly dryRun: boolean }
  | { readonly kind: 'evictPod'; readonly namespace: string; readonly pod: string; readonly user?: string; readonly dryRun: boolean }
  | {
      readonly kind: 'restart';
      readonly namespace: string;
      readonly statefulSet: string;
      readonly user?: string;
      readonly dryRun: boolean;
    };

export interface Judgement {
  readonly outcome: 'allow' | 'deny' | 'prepare';
  /** HTTP status of a denial, as the eviction API and kubectl understand it. */
  readonly code: number;
  /** What was asked. */
  readonly request: AdmissionRequest;
  /** One sentence, for the person who is refused. */
  readonly message: string;
  /** The strictest effect that applied. */
  readonly effect: 'allow' | 'warn' | 'requireApproval' | 'hold' | 'deny';
  readonly results: readonly RuleResult[];
  readonly warnings: readonly string[];
  /** With `prepare`: the calls to be made before the request is judged again. With `deny`: the calls that take a failed preparation back. */
  readonly actions: readonly Action[];
  readonly decisionId: string;
}
