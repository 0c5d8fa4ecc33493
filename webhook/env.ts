// What the webhook reaches outside of itself.
import type { ClusterEnv, Log, PodHttp } from '../cluster/env.ts';
import type { KubernetesObject } from '../cluster/request/resource.ts';
import type { Change } from '../cluster/watch/store.ts';
import type { Judgement } from '../engine/decision.ts';
import type { Departure, Known, Ledger, Snapshot, Unknown } from '../engine/snapshot.ts';
import type { GroupDefinition } from '../policies/definition.ts';
import type { Answer, Call, Review } from './review/review.ts';

/** The ports of the webhook. */
export interface WebhookEnv extends ClusterEnv {
  readonly pods: PodHttp;
  readonly log: Log;
}

/** Objects of one kind, as the one watch of this process has them (`Shared` of agent/watched/shared.ts). */
export interface Followed<View> {
  readonly get: (namespace: string, name: string) => View | undefined;
  readonly list: (namespace?: string) => readonly View[];
  /** Why nothing was ever known of a namespace; undefined from the first list on, whatever becomes of the server, and where the kind is missing. */
  readonly neverRead: (namespace: string) => Unknown | undefined;
  /** Whether everything is known, or known not to be readable. */
  readonly isSettled: () => boolean;
  /** Calls back after each change, in their order. The answer ends that. */
  readonly onChange: (listener: (change: Change<View>) => void) => () => void;
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
  /** Hears of an object that was read past what the guard knows: a watch that has swallowed a change of it is found, and mended. */
  readonly readPast?: (kind: 'statefulSet' | 'pod', object: KubernetesObject) => void;
}

/** What pods of the strategy `pinned` are placed by. */
export interface PlacementGuard {
  /** The groups of the namespace as they are known already; unknown until policies and objects have been read. */
  readonly groups: (namespace: string) => Known<readonly GroupDefinition[]>;
  /** Of the StatefulSet, as it was last seen. */
  readonly uidOf: (namespace: string, statefulSet: string) => string | undefined;
  /** As it is stored, read from the quorum. Rejects when it cannot be read, or is not understood. */
  readonly ledger: (group: GroupIdentity) => Promise<Ledger>;
}

/**
 * What native enforcement would refuse of a request, or undefined: it passes there, or enforcement is off in its namespace. Reserves nothing. For
 * endpoints that do what cannot be taken back before `/admission/enforce` is asked about the same request. Never rejects but for a defect.
 */
export type NativePreview = (review: Review, call: Call) => Promise<Answer | undefined>;
