// Defines the facts that doctor gathers and the results of its checks. Checks are pure; a fact that could not be read is unknown.
import type { KubernetesObject } from '../../cluster/request/resource.ts';
import type { ObservedPod } from '../../engine/observe/objects.ts';
import { isUnknown, type Known, type PodBudgetView, type StatefulSetView, type Unknown } from '../../engine/snapshot.ts';
import type { PolicyProblem } from '../../install/registered-policies.ts';
import type { Configuration } from '../../install/rights.ts';
import type { GroupDefinition, PolicyDefinition } from '../../policies/definition.ts';
import type { FindingCode } from '../../policies/findings/codes.ts';
import type { Finding } from '../../policies/findings/finding.ts';
import type { Kind } from '../../policies/schema/kinds.ts';
import type { AgentLease, LatestDecision } from '../live/agent.ts';
import type { AgentRight } from './agent-rights.ts';

export type Verdict = 'ok' | 'warn' | 'FAIL' | 'SKIP';

/** An answer of a check, without the subject of the check. */
export interface Outcome {
  readonly verdict: Verdict;
  /** The finding, or why the check was skipped; without a full stop at the end. */
  readonly message: string;
  readonly code?: FindingCode;
  /** The problems that the message summarizes, one sentence each. */
  readonly details?: readonly string[];
}

export interface CheckResult extends Outcome {
  /** The subject in a word or two, such as `agent` or `HPA`. */
  readonly check: string;
}

export type Check = (facts: Facts) => readonly CheckResult[];

export type KnownFacts<Needed extends keyof Facts> = Facts & { readonly [Name in Needed]: Exclude<Facts[Name], Unknown> };

/** Returns a check of this subject. The check is skipped if a needed fact is unknown, so `find` receives these facts as known. */
export function check<Needed extends keyof Facts = never>(
  subject: string,
  needed: readonly Needed[],
  find: (facts: KnownFacts<Needed>) => readonly Outcome[],
): Check {
  return (facts) => {
    const unread = needed.map((name): unknown => facts[name]).find((fact): fact is Unknown => isUnknown(fact));
    const outcomes = unread === undefined ? find(facts as KnownFacts<Needed>) : skipped(unread.unknown);
    return outcomes.map((outcome) => ({ check: subject, ...outcome }));
  };
}

export interface KindFact {
  readonly kind: Kind;
  readonly isServed: boolean;
  /** True if the installed definition contains the definition of this version. Unknown if the user may not read it. */
  readonly isOurs: Known<boolean>;
}

export interface RightFact {
  readonly right: AgentRight;
  /** Absent for a right in the whole cluster. */
  readonly namespace?: string;
  readonly isAllowed: boolean;
}

export interface AccountFact {
  /** `namespace/name`. If the account is unknown: the agent's namespace, or the checked namespaces whose agent is unknown. */
  readonly name: string;
  readonly rights: Known<readonly RightFact[]>;
  /** The checked namespaces that the agent watches and in which it needs rights. Absent for an unknown agent, and for a webhook process. */
  readonly watched?: readonly string[];
  readonly unwatched?: {
    readonly namespaces: readonly string[];
    readonly flag: string;
  };
}

export interface OperatorFact {
  readonly namespace: string;
  readonly name: string;
  readonly image: string;
  readonly replicas: number;
}

export interface AutoscalerFact {
  readonly namespace: string;
  /** `HorizontalPodAutoscaler` or `ScaledObject`. */
  readonly kind: string;
  readonly name: string;
  readonly target: { readonly kind: string; readonly name: string };
}

export interface ChannelFact {
  readonly namespace: string;
  readonly group: string;
  readonly channel: string;
  readonly problem: string;
}

export interface LedgerFact {
  readonly namespace: string;
  readonly name: string;
  /** True if the agent releases the StatefulSets when no policy defines the group. */
  readonly isReleased?: boolean;
  /** The time at which the agent saw that no policy defines the group. */
  readonly goneMs?: number;
}

export interface UnansweredFact {
  readonly message: string;
  /** True if the problem blocks a group or leaves it unprotected. */
  readonly isNeeded: boolean;
}

interface EnforcedNamespace {
  readonly name: string;
  readonly isOptedIn: boolean;
  /** True if a webhook at `/admission/no-downscale` denies downscales. Absent if no such webhook does, or if no group needs one. */
  readonly deniesDownscale?: Known<boolean>;
}

export interface RegistrationFact {
  readonly isRegistered: boolean;
  readonly configurations: readonly Configuration[];
  readonly services: readonly string[];
  /** The differences of the stored configurations from those of this version, one sentence each. */
  readonly problems: readonly string[];
  /** The StatefulSets that the agent has not yet added to the configurations, as `namespace/name`; default none. */
  readonly lagging?: readonly string[];
  /** The reasons why webhooks cannot answer; absent without such a reason. */
  readonly unanswered?: readonly UnansweredFact[];
  readonly namespaces: readonly EnforcedNamespace[];
}

/** The admission policies. With them, the API server denies requests even if no webhook answers. */
export interface AdmissionPolicyFact {
  /** False before Kubernetes 1.30. */
  readonly isServed: boolean;
  readonly problems: readonly PolicyProblem[];
}

export interface SecretsFact {
  /** The number of keys that sources and channels name. */
  readonly named: number;
  readonly problems: readonly string[];
  readonly forbidden: readonly string[];
}

export interface Facts {
  readonly nowMs: number;
  /** The clock of the API server at `nowMs`; unknown if the response of the API server contains no time. */
  readonly serverMs: Known<number>;
  /** The largest difference of the two clocks that the measurement itself can cause. */
  readonly clockDoubtMs: number;
  /** For example `v1.35.2`. */
  readonly serverVersion: Known<string>;
  /** True if the feature gate MaxUnavailableStatefulSet of the API server is on. Unknown if the user may not read its metrics. */
  readonly maxUnavailableGate: Known<boolean>;
  readonly agentNamespace: string;
  /** The Leases of agents. Unknown if no agent holds a Lease that the user may read, and the user may not read every Lease. */
  readonly leases: Known<readonly AgentLease[]>;
  /** The reason why `leases` or `autoscalers` may be incomplete. */
  readonly unread?: { readonly leases?: Unknown; readonly autoscalers?: Unknown };
  readonly published: Known<readonly LatestDecision[]>;
  readonly kinds: Known<readonly KindFact[]>;
  /** The accounts of agents that decide in the checked namespaces, and of webhook processes, with the rights that each account needs. */
  readonly accounts: readonly AccountFact[];
  readonly operators: Known<readonly OperatorFact[]>;
  readonly autoscalers: Known<readonly AutoscalerFact[]>;
  /** Unknown if the user may not list RolloutGroups: then the adopted groups are not all groups. */
  readonly groups: Known<readonly GroupDefinition[]>;
  readonly createdMs: ReadonlyMap<string, number>;
  /** The policies in the checked namespaces and in the agent's namespace. */
  readonly policies: Known<readonly PolicyDefinition[]>;
  /** The findings of lint and adoption in the live objects. */
  readonly findings: Known<readonly Finding[]>;
  /** Raw objects, with managed fields. */
  readonly statefulSets: readonly KubernetesObject[];
  readonly sets: readonly StatefulSetView[];
  readonly pods: Known<readonly ObservedPod[]>;
  readonly budgets: Known<readonly PodBudgetView[]>;
  readonly ledgers: Known<readonly LedgerFact[]>;
  readonly registration: Known<RegistrationFact>;
  /** Absent if no policy is installed or expected. */
  readonly admissionPolicies?: Known<AdmissionPolicyFact>;
  readonly secrets: Known<SecretsFact>;
  readonly failingChannels?: Known<readonly ChannelFact[]>;
}

export function isMember({ namespace, zones }: GroupDefinition, set: { readonly namespace: string; readonly name: string }): boolean {
  return namespace === set.namespace && zones.some(({ statefulSet }) => statefulSet === set.name);
}

export function result(verdict: Verdict, message: string, code?: FindingCode): Outcome {
  return { verdict, message, ...(code === undefined ? {} : { code }) };
}

/** Returns a skipped check with the reason. A skipped check never counts as passed. */
export function skipped(why: string): readonly Outcome[] {
  return [result('SKIP', why)];
}

/** Returns the results, or one `ok` result with this message; a skipped check if a list that the message needs is unknown. */
export function orOk(results: readonly Outcome[], message: string, needed?: Known<unknown>): readonly Outcome[] {
  if (results.length > 0) return results;
  return isUnknown(needed) ? skipped(needed.unknown) : [result('ok', message)];
}
