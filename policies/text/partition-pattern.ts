// Compiles the patterns of `spec.disruption.partition`, which read from the name of a pod the part of the data that the pod has. Matching
// takes time proportional to pattern length times name length.
import { RE2JS } from 're2js';

export interface PartitionPattern {
  readonly pattern: string;
  readonly group: number;
}

/** Compiles an RE2 pattern between `^` and `$`. As in grafana/rollout-operator, `a-([0-9]+)|b-([0-9]+)` also matches `a-1-x`. */
export function inspectPattern(pattern: string): ReturnType<typeof compileLinear> {
  return compileLinear(`^${pattern}$`);
}

/** Returns a function that reads the partition from a pod name. It returns undefined if the name does not match or the pattern is invalid. */
export function partitionReader({ pattern, group }: PartitionPattern): (podName: string) => string | undefined {
  const inspected = inspectPattern(pattern);
  if ('problem' in inspected) return () => undefined;
  return (podName) => inspected.exec(podName)?.[group] || undefined;
}

interface LinearPattern {
  readonly groupCount: number;
  /** Returns the text of each group, the whole match first, as RegExp does; undefined if the pattern does not match. */
  readonly exec: (text: string) => readonly (string | undefined)[] | undefined;
}

/** The maximum number of RE2 instructions of a pattern, with repetitions written out. */
const maxInstructions = 1000;

/** The maximum length of a pattern and of a text. A longer text does not match, because no Kubernetes name is longer. */
const longestPattern = 10_000;
const longestText = 253;

/** Compiles a pattern, or returns the problem as the rest of a sentence about the pattern. Never throws. */
export function compileLinear(source: string): LinearPattern | { readonly problem: string } {
  if (source.length > longestPattern) return { problem: 'is too large' };
  let compiled: RE2JS;
  try {
    compiled = RE2JS.compile(source);
  } catch (error) {
    return { problem: problemOf(error instanceof Error ? error.message : '') };
  }
  if (compiled.programSize() > maxInstructions) return { problem: 'is too large' };
  return { groupCount: compiled.groupCount(), exec: (text) => search(compiled, text) };
}

function search(pattern: RE2JS, text: string): readonly (string | undefined)[] | undefined {
  const matcher = pattern.matcher(text);
  if (text.length > longestText || !matcher.find()) return undefined;
  return Array.from({ length: pattern.groupCount() + 1 }, (_, group) => matcher.group(group) ?? undefined);
}

function problemOf(message: string): string {
  if (/`(?:\(\?<?[=!]|\\[1-9k])/.test(message)) return 'uses look-around or a back-reference';
  if (/nests too deeply/.test(message)) return 'is nested too deeply';
  // RE2 also refuses nested repetitions that multiply to more than 1000.
  const repeats = /invalid repeat count: `\{(\d+)(?:,(\d*))?\}`/.exec(message);
  const isNested = repeats !== null && Number(repeats[1]) <= 1000 && !(Number(repeats[2] || repeats[1]) < Number(repeats[1]));
  return /too large/.test(message) || (isNested && Number(repeats[2] || 0) <= 1000) ? 'is too large' : 'does not compile';
}
