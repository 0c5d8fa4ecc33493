// Patterns that read the partition of a pod from its name.
import { compileLinear, type LinearPattern } from './linear-pattern.ts';

export interface PartitionPattern {
  readonly pattern: string;
  /** Number of the capture group that is the partition. */
  readonly group: number;
}

/** A compiled pattern, or the problem of the pattern. */
type InspectedPattern = { readonly problem: string } | LinearPattern;

/** Returns the partition of a pod; undefined if its name does not match or the group is empty. */
type PartitionOf = (podName: string) => string | undefined;

/**
 * Compiles an RE2 pattern. The anchors are concatenated as in grafana/rollout-operator: a top-level alternation binds loosely
 * (`a-([0-9]+)|b-([0-9]+)` matches `a-1-x`). Tenants write the patterns, so matching takes linear time.
 */
export function inspectPattern(pattern: string): InspectedPattern {
  return compileLinear(`^${pattern}$`);
}

/** Returns a function that reads the partition from a pod name. An invalid pattern matches no name. */
export function partitionReader({ pattern, group }: PartitionPattern): PartitionOf {
  const inspected = inspectPattern(pattern);
  if ('problem' in inspected) return () => undefined;
  return (podName) => inspected.exec(podName)?.[group] || undefined;
}
