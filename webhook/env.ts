// Defines everything outside of the process that the webhook uses, and the observer of its metrics.
import type { ClusterEnv, Log, PodHttp } from '../cluster/env.ts';
import type { KubernetesObject } from '../cluster/request/resource.ts';
import type { Change } from '../cluster/watch/store.ts';
import type { Judgement } from '../engine/decision.ts';
import type { Departure, Known, Ledger, Snapshot, Unknown } from '../engine/snapshot.ts';
import type { GroupDefinition } from '../policies/definition.ts';
import type { Failure } from './review/decide.ts';
import type { Answer, Call, Review } from './review/review.ts';

/** The ports of the webhook. */
export interface WebhookEnv extends ClusterEnv {
  readonly pods: PodHttp;
  readonly log: Log;
}

/** Objects of one kind from the shared watch of the process (`FollowedWatch` of agent/watched/watched.ts). */
export interface Followed<View> {
  readonly get: (namespace: string, name: string) => View | undefined;
  readonly list: (namespace?: string) => readonly View[];
  /** Returns why a namespace was never read; undefined after the first list, and without the kind. */
  readonly neverRead: (namespace: string) => Unknown | undefined;
  /** Returns whether everything is known, or known to be unreadable. */
  readonly isSettled: () => boolean;
  /** Calls back after each change in order. Returns a function that ends it. */
  readonly onChange: (listener: (change: Change<View>) => void) => () => void;
}

/** Identifies the group of a ledger. */
export interface GroupIdentity {
  readonly namespace: string;
  readonly name: string;
}

/** Supplies the state that native endpoints judge by. The agent implements it (agent/admission/). */
export interface Guard {
  /** Returns whether policies and objects are known, so that "no group" is an answer. */
  readonly isSettled: () => boolean;
  /**
   * Returns the known state of a namespace. `ledgers` contains those of `groups`, read from the quorum and compared with the objects;
   * `departures` contains the stored ones. Unreadable state is unknown, never absent. Without groups it answers from caches, except for
   * departures.
   */
  readonly snapshot: (namespace: string, groups: readonly GroupIdentity[], timeoutMs: number) => Promise<Snapshot>;
  /** Stores `next` if the ledger is still `base` from a snapshot. Returns false after another write; rejects if the outcome is unknown. */
  readonly store: (group: GroupIdentity, base: Ledger, next: Ledger, timeoutMs: number) => Promise<boolean>;
  /** Reports a denial: one Event per decision id in ten minutes. Never rejects. */
  readonly denied: (judgement: Judgement, subject: { readonly namespace: string; readonly statefulSet: string }) => void;
}

/** A guard that also stores departures. */
export interface NativeGuard extends Guard {
  /** Stores what StatefulSets of the namespace were removed from, for every process. Rejects if it was not stored. */
  readonly keep: (namespace: string, departures: readonly Departure[], timeoutMs: number) => Promise<void>;
  /** Receives an object that was read directly: a watch that lost a change of it is detected and repaired. */
  readonly readPast?: (kind: 'statefulSet' | 'pod', object: KubernetesObject) => void;
}

/** Supplies what pods of the strategy `pinned` are placed by. */
export interface PlacementGuard {
  /** Returns the known groups of the namespace; unknown until policies and objects were read. */
  readonly groups: (namespace: string) => Known<readonly GroupDefinition[]>;
  /** Returns the UID of the StatefulSet as last observed. */
  readonly uidOf: (namespace: string, statefulSet: string) => string | undefined;
  /** Reads the stored ledger from the quorum. Rejects if it cannot be read or parsed. */
  readonly ledger: (group: GroupIdentity) => Promise<Ledger>;
}

/**
 * Returns the denial of native enforcement, without a claim; undefined if the request passes or enforcement is off. For endpoints that call
 * pods before `/admission/enforce` sees the request. Rejects only for a defect.
 */
export type NativePreview = (review: Review, call: Call) => Promise<Answer | undefined>;

/** A finished HTTP exchange. */
export interface AnsweredRequest {
  readonly method: string;
  /** The path with `_` for other characters than letters and digits, such as `admission_no_downscale`; `other` for unknown paths. */
  readonly route: string;
  /** 0 if the client disconnected before the answer. */
  readonly status: number;
  readonly durationMs: number;
  /** Bytes of bodies, as far as they were read and written. */
  readonly requestBytes: number;
  readonly responseBytes: number;
}

/** A decided review. */
export interface DecidedReview {
  readonly route: string;
  readonly allowed: boolean;
  /** `status.code` of the answer. */
  readonly code?: number;
  readonly failure?: Failure;
  /** The endpoint's own time, after the body was read. */
  readonly durationMs: number;
}

/** Observes requests and connections. Must not throw. */
export interface WebhookObserver {
  readonly inflight: (method: string, route: string, change: 1 | -1) => void;
  readonly answered: (request: AnsweredRequest) => void;
  readonly decided: (review: DecidedReview) => void;
  /** `given` is the value of the header, empty without one or with several; the route is `<unknown-route>` for an unknown path. */
  readonly wrongCluster: (request: { readonly route: string; readonly wanted: string; readonly given: string }) => void;
  /** A connection was closed before its first request: too many in total, too many from one address, or no handshake. */
  readonly refusedConnection: (why: 'limit' | 'peer-limit' | 'handshake') => void;
  /** A certificate was loaded, or could not be loaded. */
  readonly certificate: (isLoaded: boolean) => void;
}

/** Returns the route label of a path, as in the metrics of grafana/rollout-operator. */
export function routeLabel(path: string): string {
  return path
    .toLowerCase()
    .replace(/[^a-z\d]+/g, '_')
    .replace(/^_+|_+$/g, '');
}
