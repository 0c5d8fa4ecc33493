// What doctor looks at, and what a check answers. Checks are pure: everything they need was gathered before, and what could not be is unknown.
import type { KubernetesObject } from '../../cluster/request/resource.ts';
import type { ObservedPod } from '../../engine/observe/objects.ts';
import type { Known, PodBudgetView, StatefulSetView } from '../../engine/snapshot.ts';
import type { PolicyProblem } from '../../install/registered-policies.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import type { FindingCode } from '../../policies/findings/codes.ts';
import type { Finding } from '../../policies/findings/finding.ts';
import type { Kind } from '../../policies/schema/kinds.ts';
import type { AgentRight } from './agent-rights.ts';

export type Verdict = 'ok' | 'warn' | 'FAIL' | 'SKIP';

export interface CheckResult {
  /** The subject in a word or two, such as `agent` or `HPA`. */
  readonly check: string;
  readonly verdict: Verdict;
  /** One sentence without a full stop: what was seen, or why it could not be. */
  readonly message: string;
  readonly code?: FindingCode;
  /** What the message sums up, one sentence each. */
  readonly details?: readonly string[];
}

export type Check = (facts: Facts) => readonly CheckResult[];

export interface LeaseFact {
  readonly namespace: string;
  readonly name: string;
  /** Empty when nobody holds it. */
  readonly holder: string;
  readonly renewedMs: number | undefined;
  /** When its holder took it. */
  readonly acquiredMs: number | undefined;
  readonly durationMs: number;
}

export interface PublishedFact {
  readonly namespace: string;
  readonly group: string;
  readonly decidedMs: number;
  readonly leader?: string;
  /** StatefulSets of its zones. */
  readonly members?: readonly string[];
  /** What holds the group because pinned pods came back at another revision. */
  readonly misplaced?: string;
}

export interface KindFact {
  readonly kind: Kind;
  readonly isServed: boolean;
  /** Whether the installed definition says the same as ours. Unknown when it may not be read. */
  readonly isOurs: Known<boolean>;
}

export interface RightFact {
  readonly right: AgentRight;
  /** Absent: the cluster. */
  readonly namespace?: string;
  readonly isAllowed: boolean;
}

export interface AccountFact {
  /** `namespace/name`, or the namespaces when it is not known whose rights count there. */
  readonly name: string;
  readonly rights: Known<readonly RightFact[]>;
  /** Namespaces that were asked about and that its agent is not told to look after; absent: none. */
  readonly unwatched?: UnwatchedFact;
}

interface UnwatchedFact {
  readonly namespaces: readonly string[];
  /** The flag that names the others. */
  readonly told: string;
}

export interface OperatorFact {
  readonly namespace: string;
  readonly name: string;
  readonly image: string;
  /** Pods that run. */
  readonly replicas: number;
}

export interface AutoscalerFact {
  readonly namespace: string;
  /** `HorizontalPodAutoscaler` or `ScaledObject`. */
  readonly kind: string;
  readonly name: string;
  readonly target: { readonly kind: string; readonly name: string };
}

/** A channel that a group is told by, and that fails. */
export interface ChannelFact {
  readonly namespace: string;
  readonly group: string;
  readonly channel: string;
  readonly problem: string;
}

export interface LedgerFact {
  readonly namespace: string;
  /** Of the ConfigMap. */
  readonly name: string;
  /** Whether its StatefulSets are handed back once nothing defines the group. */
  readonly isReleased?: boolean;
  /** When the agent saw that nothing defines the group any more. */
  readonly goneMs?: number;
}

export interface UnansweredFact {
  readonly message: string;
  /** Whether a group stands still, or is not protected, because of it. */
  readonly isNeeded: boolean;
}

/** What is registered of our webhooks. */
export interface RegistrationFact {
  /** Whether any of our own configurations is there. */
  readonly areThere: boolean;
  /** The Services that are asked, as `namespace/name`. */
  readonly services: readonly string[];
  /** In what they differ from what an installation registers, one sentence each. */
  readonly problems: readonly string[];
  /** Why nobody can answer, one sentence each; absent: nobody looked. */
  readonly unanswered?: readonly UnansweredFact[];
  /** Of groups. */
  readonly namespaces: readonly { readonly name: string; readonly isOptedIn: boolean }[];
}

/** What the API server refuses by itself. */
export interface AdmissionPolicyFact {
  /** False before Kubernetes 1.30. */
  readonly isServed: boolean;
  /** In what it differs from what an installation has. */
  readonly problems: readonly PolicyProblem[];
}

/** The Secrets that metric sources and notification channels name. */
export interface SecretsFact {
  /** How many keys. */
  readonly named: number;
  /** What is not there, with the object that names it; nothing of what is. */
  readonly problems: readonly string[];
  /** Names of Secrets that may not be read. */
  readonly forbidden: readonly string[];
}

export interface Facts {
  /** The clock of this machine. */
  readonly nowMs: number;
  /** The clock of the API server at that instant, as far as its answers tell. */
  readonly serverMs: Known<number>;
  /** How far the two may seem apart without being so. */
  readonly clockDoubtMs: number;
  /** `v1.35.2`. */
  readonly serverVersion: Known<string>;
  readonly agentNamespace: string;
  /** Leases of agents, wherever they may be read. */
  readonly leases: Known<readonly LeaseFact[]>;
  readonly published: Known<readonly PublishedFact[]>;
  readonly kinds: Known<readonly KindFact[]>;
  /** Of each agent that decides in the namespaces that are looked at, with the rights that it needs there. */
  readonly accounts: readonly AccountFact[];
  readonly operators: Known<readonly OperatorFact[]>;
  readonly autoscalers: Known<readonly AutoscalerFact[]>;
  readonly groups: readonly GroupDefinition[];
  /** What lint and adoption find in the live objects. */
  readonly findings: readonly Finding[];
  /** Raw, with managed fields. */
  readonly statefulSets: readonly KubernetesObject[];
  readonly sets: readonly StatefulSetView[];
  readonly pods: Known<readonly ObservedPod[]>;
  readonly budgets: Known<readonly PodBudgetView[]>;
  readonly ledgers: Known<readonly LedgerFact[]>;
  /** Absent: nobody looked. */
  readonly registration?: Known<RegistrationFact>;
  /** Absent: nothing is installed, or nobody looked. */
  readonly admissionPolicies?: Known<AdmissionPolicyFact>;
  /** Absent: nobody looked. */
  readonly secrets?: Known<SecretsFact>;
  /** Those that fail; absent when it was not looked at. */
  readonly failingChannels?: readonly ChannelFact[];
}

/** A check that could not be made, with the reason; never shown as passed. */
export function skipped(check: string, why: string): readonly CheckResult[] {
  return [{ check, verdict: 'SKIP', message: why }];
}

/** The results, or one that says that all is well. */
export function orOk(check: string, results: readonly CheckResult[], message: string): readonly CheckResult[] {
  return results.length > 0 ? results : [{ check, verdict: 'ok', message }];
}
