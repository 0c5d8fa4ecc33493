// Patterns that tell the partition of a pod from its name: which of them can be used at all, and what they find.
import { compileLinear, type LinearPattern } from './linear-pattern.ts';

export interface PartitionPattern {
  readonly pattern: string;
  /** Number of the capture group that is the partition. */
  readonly group: number;
}

/** The pattern as it is applied, with the number of its capture groups, or why it cannot be used. */
type InspectedPattern = { readonly problem: string } | LinearPattern;

/** The partition of a pod, or undefined when its name does not match or the group is empty. */
type PartitionOf = (podName: string) => string | undefined;

/**
 * Compiles a pattern of RE2. The anchors are plainly concatenated, as grafana/rollout-operator does: a top-level alternation binds loosely
 * (`a-([0-9]+)|b-([0-9]+)` accepts `a-1-x`), and whoever relies on it keeps it. Patterns are written by tenants, so they are matched in linear
 * time, as RE2 does, and not by the backtracking of JavaScript.
 */
export function inspectPattern(pattern: string): InspectedPattern {
  return compileLinear(`^${pattern}$`);
}

/** Compiles the pattern once, for all the pods of one question. A pattern that cannot be used matches nothing. */
export function partitionReader({ pattern, group }: PartitionPattern): PartitionOf {
  const inspected = inspectPattern(pattern);
  if ('problem' in inspected) return () => undefined;
  return (podName) => inspected.exec(podName)?.[group] || undefined;
}
