// Decides whether a group needs a person.
import type { RuleResult } from '../decision.ts';
import type { PublishedDecision } from './published.ts';

/** The part of a decision that shows why a group waits. */
export type Held = Pick<PublishedDecision, 'phase' | 'outcome'> & { readonly waits: readonly RuleResult[] };

/**
 * Why a group needs a person. `failed`: the run has failed. `blocked`: a rule answers no. `misplaced`: pods came back at another revision,
 * and no further pod is replaced. `approval`, `undone`: a request is missing or in force. `paused`: a pause is in force, possibly until a
 * given time.
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
