// Patterns that tell the partition of a pod from its name: which of them can be used at all.

/** Look-around and back-references, which RE2, the language of the field, does not know. */
const outsideRe2 = /\(\?(?:[=!]|<[=!])|\\[1-9k]/;

/** A repeated group that ends in a repetition, such as `(a+)+`: matching it can take exponential time here, though not in RE2. */
const repeatedRepetition = /(?:[*+]|\{\d+,\d*\})\)(?:[*+]|\{\d+,\d*\})/;

/** Why a pattern cannot be used, or the number of its capture groups. */
export function inspectPattern(pattern: string): { readonly problem: string } | { readonly groupCount: number } {
  if (outsideRe2.test(pattern)) return { problem: 'uses look-around or a back-reference' };
  if (repeatedRepetition.test(pattern)) return { problem: 'repeats a group that ends in a repetition' };
  try {
    // With an empty alternative every pattern matches the empty text, and the match lists all groups.
    const groups = new RegExp(`${pattern.replaceAll('(?P<', '(?<')}|`).exec('');
    return { groupCount: (groups?.length ?? 1) - 1 };
  } catch {
    return { problem: 'does not compile' };
  }
}
