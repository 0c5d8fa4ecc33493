// Defines the ports through which the webhook reaches the cluster and the agent, and the observer of its metrics.
import type { HttpServerObserver } from '../cluster/connection/http-server.ts';
import type { ClusterEnv, Log, PodHttp } from '../cluster/env.ts';
import type { KubernetesObject } from '../cluster/request/resource.ts';
import type { Change } from '../cluster/watch/store.ts';
import type { Judgement } from '../engine/decision.ts';
import type { Departure, Known, Ledger, Snapshot, Unknown } from '../engine/snapshot.ts';
import type { SeenSet } from '../engine/strategies/pinned/placement.ts';
import type { GroupDefinition } from '../policies/definition.ts';
import type { Failure } from './review/decide.ts';
import type { Answer, Call, Review } from './review/review.ts';

export interface WebhookEnv extends ClusterEnv {
  readonly pods: PodHttp;
  readonly log: Log;
}

/** The objects of one kind from the shared watch of the process (`FollowedWatch` of agent/watched/watched.ts). */
export interface Followed<View> {
  readonly list: (namespace?: string) => readonly View[];
  /** Returns why a namespace was never read; undefined after the first list, or if the cluster does not have the kind. */
  readonly neverRead: (namespace: string) => Unknown | undefined;
  /** Returns whether all objects are known, or are known to be unreadable. */
  readonly isSettled: () => boolean;
  /** Calls the listener after each change, in order. Returns a function that removes the listener. */
  readonly onChange: (listener: (change: Change<View>) => void) => () => void;
}

export interface GroupIdentity {
  readonly namespace: string;
  readonly name: string;
}

/** The source of the state on which endpoints decide about disruptions. The agent implements it in agent/admission/. */
export interface Guard {
  /** Returns whether policies and objects are known. Only then is it certain that an object has no group. */
  readonly isSettled: () => boolean;
  /**
   * Returns the state of a namespace. Reads the departures (see `NativeGuard`) and the ledgers of `groups` with quorum reads. Reads pods
   * and StatefulSets of `groups` too if a claim is open or the caches may be too old. Unreadable state is unknown, never absent. Compares
   * caches older than ten seconds with lists from the API server, so that a new group or policy is known. Rejects if it cannot.
   */
  readonly snapshot: (namespace: string, groups: readonly GroupIdentity[], timeoutMs: number) => Promise<Snapshot>;
  /** Replaces the ledger `base` of a snapshot by `next`. Returns false if another write changed the ledger. Rejects for other failures. */
  readonly store: (group: GroupIdentity, base: Ledger, next: Ledger, timeoutMs: number) => Promise<boolean>;
  /** Reports a denial, or the use of an exception, as an Event, at most once per decision id in ten minutes. Never throws. */
  readonly report: (judgement: Judgement, subject: { readonly namespace: string; readonly statefulSet: string }) => void;
}

/** A guard that also stores departures: StatefulSets that left their group or lost a protective label. */
export interface NativeGuard extends Guard, Pick<PlacementGuard, 'groups'> {
  /** Stores departures for all processes. Rejects if the write failed. */
  readonly keep: (namespace: string, departures: readonly Departure[], timeoutMs: number) => Promise<void>;
  /** Receives an object that was read from the API server. The agent then repairs a watch that lost a change of the object. */
  readonly readPast?: (kind: 'statefulSet' | 'pod', object: KubernetesObject) => void;
}

/** The source of the state that decides the revision of new pods under the strategy `pinned`. */
export interface PlacementGuard {
  /** Returns the known groups of the namespace; unknown until policies and objects were read. */
  readonly groups: (namespace: string) => Known<readonly GroupDefinition[]>;
  /** Returns the StatefulSet as last seen; undefined if it was not seen. */
  readonly statefulSet: (namespace: string, name: string) => SeenSet | undefined;
  /** Reads the stored ledger with a quorum read. Rejects if it cannot be read or parsed. */
  readonly ledger: (group: GroupIdentity) => Promise<Ledger>;
}

/**
 * Returns the denial of `/admission/enforce` and stores no claim. Returns undefined if the request passes or enforcement is off. Endpoints
 * use it before they call pods or store claims, because `/admission/enforce` gets the request later. Rejects only for a defect.
 */
export type NativePreview = (review: Review, call: Call) => Promise<Answer | undefined>;

export interface DecidedReview {
  readonly route: string;
  readonly allowed: boolean;
  readonly failure?: Failure;
  /** Time of the decision, from the parsed body to the answer. */
  readonly durationMs: number;
}

/** The observer of requests and connections, for metrics. Must not throw. */
export interface WebhookObserver extends HttpServerObserver {
  readonly decided: (review: DecidedReview) => void;
  /** A connection was closed before its first request: too many connections in total or from one address, or no handshake. */
  readonly refusedConnection: (why: 'limit' | 'peer-limit' | 'handshake') => void;
}

/** Returns the route label of a path, such as `admission_no_downscale`, as in the metrics of grafana/rollout-operator. */
export function routeLabel(path: string): string {
  return path
    .toLowerCase()
    .replace(/[^a-z\d]+/g, '_')
    .replace(/^_+|_+$/g, '');
}
