// A decision as it is published: bounded, with the instants since which things are as they are.
import type { GroupDefinition } from '../../policies/definition.ts';
import type { GroupDecision } from '../decision.ts';
import type { Known, Ledger, Snapshot } from '../snapshot.ts';
import type { PublishedDecision, TakenAction } from './published.ts';

export interface PublishInput {
  readonly group: GroupDefinition;
  readonly decision: GroupDecision;
  /** What the decision was made from. */
  readonly snapshot: Snapshot;
  readonly ledger?: Ledger;
  /** What was done in the turn. */
  readonly performed?: readonly TakenAction[];
  /** What was published before: the phase and the waits keep their instants. */
  readonly previous?: PublishedDecision;
  readonly atMs: number;
  readonly leader?: string;
  readonly origin?: string;
}

/** What is to be published; at most `publishedByteLimit` bytes of JSON. */
export declare function publishedDecision(input: PublishInput): PublishedDecision;

/** Whether two published decisions say the same: only instants and ages may differ. */
export declare function samePublished(a: PublishedDecision, b: PublishedDecision): boolean;

/** A published decision as it was stored; unknown, with the reason, when it is none. */
export declare function readPublished(value: unknown): Known<PublishedDecision>;
