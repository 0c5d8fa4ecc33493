// Whether a group waits for a person.
import type { RuleResult } from '../decision.ts';
import type { PublishedDecision } from './published.ts';

/** The part of a decision that shows why a group waits. */
export type Held = Pick<PublishedDecision, 'phase' | 'outcome'> & { readonly waits: readonly RuleResult[] };

/**
 * What a group waits for. `failed`: the run has ended. `blocked`: a rule says no. `misplaced`: pods came back without their revision, and
 * none goes any more. `approval`, `undone`: a word of somebody. `paused`: somebody holds it, perhaps until a given time.
 */
export type PersonNeeded = 'failed' | 'blocked' | 'misplaced' | 'approval' | 'undone' | 'paused';

/** Returns why the group needs a person; undefined if it continues without one. */
export function personNeeded({ phase, outcome, waits }: Held): PersonNeeded | undefined {
  if (phase === 'Failed') return 'failed';
  if (phase === 'Blocked') return 'blocked';
  if (outcome === 'wait') {
    if (waits.some((wait) => wait.outcome === 'no')) return 'blocked';
    if (waits.some(isMisplacedForGood)) return 'misplaced';
    if (waits.some(({ rule }) => rule === 'approval')) return 'approval';
    if (waits.some(({ rule }) => rule === 'undone')) return 'undone';
  }
  return phase === 'Paused' ? 'paused' : undefined;
}

/** Reports whether the last attempt to pin failed: the rule waits for a retry and has no instant. */
export function isMisplacedForGood({ rule, outcome, earliestMs }: RuleResult): boolean {
  return rule === 'pin-applied' && outcome === 'wait' && earliestMs === undefined;
}
