// Patterns that tell the partition of a pod from its name: which of them can be used at all, and what they find.

export interface PartitionPattern {
  readonly pattern: string;
  /** Number of the capture group that is the partition. */
  readonly group: number;
}

/** The pattern as it is applied, with the number of its capture groups, or why it cannot be used. */
export type InspectedPattern = { readonly problem: string } | { readonly expression: RegExp; readonly groupCount: number };

/** The partition of a pod, or undefined when its name does not match or the group is empty. */
type PartitionOf = (podName: string) => string | undefined;

/** Look-around and back-references, which RE2, the language of the field, does not know. */
const outsideRe2 = /\(\?(?:[=!]|<[=!])|\\[1-9k]/;

/** With more repetitions side by side a name of 63 characters can take seconds to refuse. */
const mostRepetitions = 6;

/**
 * Compiles a pattern. The anchors are plainly concatenated, as grafana/rollout-operator does: a top-level alternation binds loosely
 * (`a-([0-9]+)|b-([0-9]+)` accepts `a-1-x`), and whoever relies on it keeps it. Patterns are written by tenants and matched by backtracking,
 * where RE2 is linear: what could take exponential time is refused.
 */
export function inspectPattern(pattern: string): InspectedPattern {
  if (outsideRe2.test(pattern)) return { problem: 'uses look-around or a back-reference' };
  try {
    const expression = new RegExp(`^${pattern.replaceAll('(?P<', '(?<')}$`);
    const problem = costProblem(pattern);
    if (problem !== undefined) return { problem };
    // With an empty alternative every pattern matches the empty text, and the match lists all groups.
    return { expression, groupCount: (new RegExp(`${expression.source}|`).exec('')?.length ?? 1) - 1 };
  } catch {
    return { problem: 'does not compile' };
  }
}

/** Compiles the pattern once, for all the pods of one question. A pattern that cannot be used matches nothing. */
export function partitionReader({ pattern, group }: PartitionPattern): PartitionOf {
  const inspected = inspectPattern(pattern);
  if ('problem' in inspected) return () => undefined;
  return (podName) => inspected.expression.exec(podName)?.[group] || undefined;
}

/** An escape, a class, the begin or end of a group, an alternative, a quantifier, or any other character. */
const token = /\\.|\[(?:\\.|[^\]\\])*\]|\(|\)|\||[*+?]|\{\d+(?:,\d*)?\}|./gs;

/** Why matching could take exponential time. A group may match one text in several ways, or be repeated, but not both. */
function costProblem(pattern: string): string | undefined {
  const isAmbiguous = [false];
  let repetitions = 0;
  let closed = false;
  let before = '';
  for (const [text] of pattern.matchAll(token)) {
    const depth = isAmbiguous.length - 1;
    const isQuantifier = /^(?:[*+]|\{\d+,?\d*\})$/.test(text);
    if (isQuantifier && before === ')' && closed) return 'repeats a group that holds a repetition or an alternative';
    if (isQuantifier && /[*+,]/.test(text)) repetitions += 1;
    if (repetitions > mostRepetitions) return `has more than ${mostRepetitions} repetitions`;
    if (text === '(') isAmbiguous.push(false);
    else if (text === ')') {
      closed = isAmbiguous.pop() ?? false;
      isAmbiguous[depth - 1] ||= closed;
      // The `?` of `(?:` stands behind its bracket and repeats nothing.
    } else if (text === '|' || (isQuantifier && /[*+,]/.test(text)) || (text === '?' && before !== '(')) isAmbiguous[depth] = true;
    before = text;
  }
  return undefined;
}
