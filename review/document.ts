// Defines the review of a pull request as a document: the output of `review -o json`. Every other output format is rendered from it.
import type { GroupPlan, Plan } from '../engine/plan/document.ts';
import type { Source } from '../policies/definition.ts';
import type { PolicyAction } from '../policies/schema/rollout-policy.ts';
import { firstByKey } from '../policies/values/group-by.ts';

/** `changed`: the definition differs, but no rule blocks more or less, and no value permits more in every case. */
export type Direction = 'loosened' | 'tightened' | 'changed';

/** A decision that both sides make differently. */
export interface ChangedDecision {
  readonly action: PolicyAction;
  /** The permission, as a clause: `zones b and c may shrink`. */
  readonly may: string;
  /** The circumstances, each an adverbial clause such as `after zone a shrank`; may be empty. */
  readonly when: readonly string[];
  readonly before: SideDecision;
  readonly after: SideDecision;
  /** The difference as a clause: `zone b may shrink 12h earlier`. */
  readonly text: string;
}

export interface SideDecision {
  /** For a request: `allow`, `warn`, `requireApproval`, `hold` or `deny`. For the agent: `act`, `wait`, `blocked` or `done`. */
  readonly decision: string;
  /** The rules that block. */
  readonly rules: readonly string[];
  /** The time until the decision passes without any event; absent if it passes now, or only with an event. */
  readonly waitSeconds?: number;
  /** The number of pods that the agent replaces now; absent for other requests. */
  readonly pods?: number;
}

/** A rule of one side. */
export interface RulePlace {
  /** The value with which the rule compares the state. */
  readonly limit?: string;
  readonly source?: Source;
}

interface ReviewedException {
  readonly name: string;
  readonly rule: string;
  readonly zone?: string;
  readonly reason: string;
  readonly requestedBy?: string;
  readonly notBefore?: string;
  readonly expires: string;
}

/** One change of policies, with the decisions that it changes. */
export interface PolicyEffect {
  readonly direction: Direction;
  readonly namespace: string;
  readonly group: string;
  /** The change, as a clause: `the time between zones of mimir/ingester falls from 13h to 1h`. */
  readonly cause: string;
  /** The rule that makes the difference. Absent if no decision changes, and for a change of members, waves or replicas. */
  readonly rule?: string;
  readonly before?: RulePlace;
  readonly after?: RulePlace;
  readonly decisions: readonly ChangedDecision[];
  /** The exception that is added, removed or changed. */
  readonly exception?: ReviewedException;
  /** Reports whether a policy test of the head evaluates the rule for this group and action. Absent without tests. */
  readonly isTested?: boolean;
}

export interface PolicyReview {
  readonly effects: readonly PolicyEffect[];
  /** The number of questions that both sides answered. A group with equal policies on both sides has no questions. */
  readonly asked: number;
}

/** The results of the policy tests of one side. */
export interface SideTests {
  readonly passed: number;
  readonly failed: number;
  /** `covered`: the rules that blocked in one case and passed in another. `rules`: all rules that the cases can reach. */
  readonly coverage: { readonly covered: number; readonly rules: number };
  readonly failures: readonly TestFailure[];
}

interface TestFailure {
  readonly file: string;
  /** The place of the case. */
  readonly line: number;
  readonly column: number;
  readonly test: string;
  readonly case: string;
  readonly problems: readonly string[];
}

export interface EnvironmentReview {
  readonly name: string;
  readonly cluster?: string;
  /** The change removes the environment from the reviews. Absent otherwise. */
  readonly isRemoved?: true;
  readonly plan: Plan;
  readonly policies: PolicyReview;
  /** Absent if neither side has a policy test. */
  readonly tests?: { readonly base: SideTests; readonly head: SideTests };
}

export interface Review {
  readonly base: string;
  readonly head: string;
  readonly environments: readonly EnvironmentReview[];
}

const order: readonly Direction[] = ['loosened', 'tightened', 'changed'];

/** Joins the reviews of several groups. Leaves out effects that another effect contains: a removed policy is one effect for each group. */
export function joinReviews(reviews: readonly PolicyReview[]): PolicyReview {
  const effects = reviews.flatMap((review) => review.effects);
  const keyOf = ({ namespace, group, direction, cause }: PolicyEffect): string => `${namespace}/${group} ${direction} ${cause}`;
  const distinct = [...new Map(effects.map((effect) => [keyOf(effect), effect])).values()];
  return {
    effects: distinct.sort((a, b) => order.indexOf(a.direction) - order.indexOf(b.direction)),
    asked: reviews.reduce((sum, { asked }) => sum + asked, 0),
  };
}

/** Returns the number of effects of a direction. */
export function countEffects({ effects }: PolicyReview, direction: Direction): number {
  return effects.filter((effect) => effect.direction === direction).length;
}

interface ImageChange {
  readonly container: string;
  readonly before: string;
  readonly after: string;
  /** The zones whose image changes; absent if it changes in all zones. */
  readonly zones?: readonly string[];
}

/** Returns the changed images of a group, each once. */
export function imageChanges({ changes, zones: all }: Pick<GroupPlan, 'changes' | 'zones'>): readonly ImageChange[] {
  const images = changes.flatMap(({ field, before, after, zones }): readonly ImageChange[] => {
    const container = /containers\[(.+)\]\.image$/.exec(field)?.[1];
    if (container === undefined) return [];
    const isEverywhere = zones.length === 0 || zones.length === all.length;
    return [{ container, before: String(before ?? ''), after: String(after ?? ''), ...(isEverywhere ? {} : { zones }) }];
  });
  return firstByKey(images, ({ container, before, after, zones = [] }) => [container, before, after, ...zones].join('\n'));
}
