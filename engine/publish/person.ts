// What of a published decision asks for a person: time alone does not let such a group go on.
import type { RuleResult } from '../decision.ts';
import type { PublishedDecision } from './published.ts';

/** What a decision knows of why it does not move; also of one that was just made. */
export type Held = Pick<PublishedDecision, 'phase' | 'outcome'> & { readonly waits: readonly RuleResult[] };

/**
 * What a group waits for. `failed`: the run has ended. `blocked`: a rule says no. `misplaced`: pods came back without their revision, and
 * none goes any more. `approval`, `undone`: a word of somebody. `paused`: somebody holds it, perhaps until a given time.
 */
export type PersonNeeded = 'failed' | 'blocked' | 'misplaced' | 'approval' | 'undone' | 'paused';

/** Why it does not go on without a person; undefined while it does. */
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

/** Pods came back without their revision as often as they are tried: the rule waits for a word, and names no instant. */
export function isMisplacedForGood({ rule, outcome, earliestMs }: RuleResult): boolean {
  return rule === 'pin-applied' && outcome === 'wait' && earliestMs === undefined;
}
