// Requests that no policy blocks: those of the agent's own workloads, in ending namespaces, and those that fail open.
import { podNamesOf } from '../../policies/objects/agent-deployment.ts';
import type { AdmissionRequest, RuleResult } from '../decision.ts';
import { result } from '../rule.ts';
import type { Snapshot } from '../snapshot.ts';

/** What a request is about, by its name alone: it is known when nothing can be read. */
interface JudgedObject {
  readonly kind: 'statefulSet' | 'pod';
  readonly namespace: string;
  readonly name: string;
}

/** Who looks after what. */
export interface JudgedScope {
  /** Of the agent itself: its namespace, and the names of its workloads. */
  readonly own?: { readonly namespace: string; readonly names: readonly string[] } | undefined;
  /** Those that are looked after; every one when left out. */
  readonly namespaces?: readonly string[] | undefined;
}

/**
 * Whether requests about the object are not judged here at all: it is in a namespace that is nobody's, or is a workload of the agent, which must
 * be able to roll and to leave its node whatever becomes of it. Pods of a Deployment are named after it, its template and chance.
 */
export function isExempt({ kind, namespace, name }: JudgedObject, { own, namespaces }: JudgedScope): boolean {
  if (namespaces?.includes(namespace) === false) return true;
  if (own?.namespace !== namespace) return false;
  return own.names.some((owner) => (kind === 'pod' ? new RegExp(podNamesOf(owner)).test(name) : owner === name));
}

/** A request that could not be judged, by its own words. */
interface UnjudgedRequest {
  readonly verb: 'update' | 'scale' | 'delete' | 'deletePod' | 'evictPod';
  /** All that it changes is a number of replicas, which becomes greater. */
  readonly onlyGrows: boolean;
  readonly isNamespaceEnding: boolean;
}

/**
 * Whether it passes all the same. The deletion of a pod does, because one whose final removal is refused hangs for ever; growth does, because
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
