// What the webhook reaches outside of itself.
import type { ClusterEnv, Log, PodHttp } from '../cluster/env.ts';
import type { Judgement } from '../engine/decision.ts';
import type { Departure, Ledger, Snapshot } from '../engine/snapshot.ts';

/** The ports of the webhook. */
export interface WebhookEnv extends ClusterEnv {
  readonly pods: PodHttp;
  readonly log: Log;
}

/** A group as the ledger knows it. */
export interface GroupIdentity {
  readonly namespace: string;
  readonly name: string;
}

/**
 * What the native endpoints judge by. The agent's part supplies it (agent/admission/), in its own process or in one that only serves webhooks;
 * tests make one by hand.
 */
export interface Guard {
  /** Whether policies and objects are known, so that "no group" is an answer and not ignorance. */
  readonly isSettled: () => boolean;
  /**
   * Everything that is known of a namespace now: policies, StatefulSets, pods, budgets, as in the engine's Snapshot; `ledgers` holds those that
   * are named in `groups`, read from the quorum and looked at with the objects as they are, and `departures` what the namespace has been told to
   * keep. What cannot be read is unknown, never absent. Without groups it answers from what is known already, but for the departures.
   */
  readonly snapshot: (namespace: string, groups: readonly GroupIdentity[], timeoutMs: number) => Promise<Snapshot>;
  /** Stores `next` if the ledger is still `base`, one out of a snapshot. False when somebody else wrote it; rejects when that cannot be told. */
  readonly store: (group: GroupIdentity, base: Ledger, next: Ledger, timeoutMs: number) => Promise<boolean>;
  /** Tells people of a denial: one Event for each decision id in ten minutes. Never rejects. */
  readonly denied: (judgement: Judgement, subject: { readonly namespace: string; readonly statefulSet: string }) => void;
}

/** With what native enforcement stores beside ledgers. */
export interface NativeGuard extends Guard {
  /** Remembers what StatefulSets of the namespace were taken out of, for every process to know. Rejects when it could not be stored. */
  readonly keep: (namespace: string, departures: readonly Departure[], timeoutMs: number) => Promise<void>;
}
