// Patterns that tell the partition of a pod from its name, as ZoneAwarePodDisruptionBudgets and native groups write them.

export interface PartitionPattern {
  readonly pattern: string;
  /** Number of the capture group that is the partition. */
  readonly group: number;
}

/**
 * The pattern as it is applied. The anchors are plainly concatenated, as grafana/rollout-operator does: a top-level alternation binds
 * loosely (`a-([0-9]+)|b-([0-9]+)` accepts `a-1-x`), and whoever relies on it keeps it. Undefined when it does not compile, or uses what
 * RE2, the language of the field, does not know: look-around and back-references.
 */
export function compilePattern(pattern: string): RegExp | undefined {
  if (/\(\?(?:[=!]|<[=!])|\\[1-9k]/.test(pattern)) return undefined;
  try {
    return new RegExp(`^${pattern.replaceAll('(?P<', '(?<')}$`);
  } catch {
    return undefined;
  }
}

/** How many capture groups the pattern has; undefined when it does not compile. */
export function captureGroupCount(pattern: string): number | undefined {
  const compiled = compilePattern(pattern);
  if (compiled === undefined) return undefined;
  // With an empty alternative every pattern matches the empty text, and the match lists all groups.
  return (new RegExp(`${compiled.source}|`).exec('')?.length ?? 1) - 1;
}

/** The partition of a pod, or undefined when its name does not match or the group is empty. */
export type PartitionOf = (podName: string) => string | undefined;

/** Compiles the pattern once, for all the pods of one question. A pattern that does not compile matches nothing. */
export function partitionReader(partition: PartitionPattern): PartitionOf {
  const compiled = compilePattern(partition.pattern);
  if (compiled === undefined) return () => undefined;
  return (podName) => compiled.exec(podName)?.[partition.group] || undefined;
}
