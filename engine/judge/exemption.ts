// Requests that no policy blocks: those of the agent's own workloads, in ending namespaces, and those that fail open.
import { podNamesOf } from '../../policies/objects/agent-deployment.ts';
import type { AdmissionRequest, RuleResult } from '../decision.ts';
import { result } from '../rule.ts';
import type { Snapshot } from '../snapshot.ts';

/** The object of a request by its name, which is known even if no object can be read. */
interface JudgedObject {
  readonly kind: 'statefulSet' | 'pod';
  readonly namespace: string;
  readonly name: string;
}

/** The responsibility of this agent. */
export interface JudgedScope {
  /** The namespace of the agent and the names of its workloads. */
  readonly own?: { readonly namespace: string; readonly names: readonly string[] } | undefined;
  /** The namespaces of this agent; absent: all namespaces. */
  readonly namespaces?: readonly string[] | undefined;
}

/**
 * Reports whether requests for the object are not judged: its namespace is outside the scope, or it is a workload of the agent, which must
 * be able to roll and to leave its node at any time. Pods of a Deployment have its name, a template hash and a random suffix.
 */
export function isExempt({ kind, namespace, name }: JudgedObject, { own, namespaces }: JudgedScope): boolean {
  if (namespaces?.includes(namespace) === false) return true;
  if (own?.namespace !== namespace) return false;
  return own.names.some((owner) => (kind === 'pod' ? new RegExp(podNamesOf(owner)).test(name) : owner === name));
}

/** A request that could not be judged, from its own fields. */
interface UnjudgedRequest {
  readonly verb: 'update' | 'scale' | 'delete' | 'deletePod' | 'evictPod';
  /** It only increases the replicas. */
  readonly onlyGrows: boolean;
  readonly isNamespaceEnding: boolean;
}

/**
 * Reports whether it passes. The deletion of a pod passes, because a pod whose final removal is denied hangs forever. Growth passes, because
 * nothing is at risk and an incident may need it; and so does everything in a namespace that is being deleted. What else cannot be judged is
 * refused (S31).
 */
export function failsOpen({ verb, onlyGrows, isNamespaceEnding }: UnjudgedRequest): boolean {
  return verb === 'deletePod' || onlyGrows || isNamespaceEnding;
}

/** Returns the exemption of a namespace that is being deleted: its deletion covers every object in it. */
export function namespaceEnds({ endingNamespaces = [] }: Snapshot, { namespace }: AdmissionRequest): RuleResult | undefined {
  return endingNamespaces.includes(namespace) ? result('namespace-ends', 'ok', `namespace ${namespace} is being deleted`) : undefined;
}
