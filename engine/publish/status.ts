// The status of a RolloutGroup object and its conditions, from a published decision.
import type { PublishedDecision } from './published.ts';

export interface StatusContext {
  /** `metadata.generation` of the object. */
  readonly generation?: number;
  /** The status as stored: conditions keep their `lastTransitionTime`. */
  readonly previous?: unknown;
  /** Of the zone whose replicas `scale` reads: the first zone that follows nobody. */
  readonly selector?: string;
}

/** The whole status; write it as it is. */
export declare function groupStatus(published: PublishedDecision, context: StatusContext): Readonly<Record<string, unknown>>;

/** `zone-gap` becomes `ZoneGap`, `policy/rule` becomes `PolicyRule`. */
export declare function reasonOf(rule: string): string;
