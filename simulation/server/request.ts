// Defines the requests and answers of the model of the API server, and the events for its observers.

export type Json = Readonly<Record<string, unknown>>;

/** A stored object. It is never mutated, so a reference keeps its version. */
export interface ModelObject extends Json {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Json & {
    readonly name: string;
    readonly namespace?: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly generation?: number;
    /** The time in RFC 3339 with whole seconds, as the API server writes it. */
    readonly creationTimestamp: string;
    readonly deletionTimestamp?: string;
    readonly deletionGracePeriodSeconds?: number;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly finalizers?: readonly string[];
    readonly ownerReferences?: readonly {
      readonly kind: string;
      readonly name: string;
      readonly uid: string;
      readonly controller?: boolean;
    }[];
  };
}

export interface Actor {
  /** The user name, such as `system:serviceaccount:kube-system:statefulset-controller`. */
  readonly user: string;
  /** The groups of the user besides `system:authenticated`. */
  readonly groups?: readonly string[];
  /** The process of an agent, such as `a1` for the first life of `a`. */
  readonly process?: string;
  /** The place in the code of an agent (KubernetesRequest.site). */
  readonly site?: string;
  /** The key of the fault point of this request (Point.key), such as `a1/act.evictPod#3`. */
  readonly point?: string;
  /** The time at which the request was sent, on the scheduler's clock. */
  readonly sentAtMs?: number;
  /** The time at which the request was sent, on the wall clock of the process. */
  readonly sentWallMs?: number;
  /**
   * The admission of a disruption by a webhook: the process whose webhook let it pass, the time at which the review was sent, the UID
   * of the reviewed object, whether the webhook judged the request, the group that its answer names, and the failure policy of the webhook.
   */
  readonly admission?: {
    readonly by: string;
    readonly sentAtMs: number;
    readonly uid: string;
    readonly isJudged: boolean;
    readonly group?: string | undefined;
    readonly failurePolicy: 'Fail' | 'Ignore';
  };
}

export interface ModelRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  /** The content type; `application/json` by default. */
  readonly contentType?: string;
  readonly accept?: string;
  readonly body?: string;
  readonly actor: Actor;
}

export interface ModelResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A watch that the API server opened. Its lines go to the sink. */
export interface ModelWatch {
  readonly close: () => void;
}

export interface WatchSink {
  /** Receives one line: a JSON text without the line end. */
  readonly line: (text: string) => void;
  /** Called when the API server ends the watch. No line follows. */
  readonly end: (reason: string) => void;
}

export interface Commit {
  /** The revision of the storage, which each commit increases by one. */
  readonly revision: number;
  /** The time on the scheduler's clock. */
  readonly atMs: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  /** The plural and the group, such as `pods` or `statefulsets.apps`. */
  readonly resource: string;
  /** Absent for a new object. */
  readonly before?: ModelObject;
  /** The new state. For a deleted object, the last state with the resourceVersion of the deletion. */
  readonly after: ModelObject;
  readonly actor: Actor;
}

/** One answered request. Requests for watches and for discovery are not reported. */
export interface Answered {
  readonly request: ModelRequest;
  readonly atMs: number;
  readonly verb: 'get' | 'list' | 'create' | 'update' | 'patch' | 'delete';
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  /** The subresource; empty for a request to the object itself. */
  readonly subresource: string;
  readonly isDryRun: boolean;
  readonly status: number;
  readonly revisions: readonly number[];
}

export interface ServerObserver {
  readonly committed?: (commit: Commit) => void;
  readonly answered?: (answered: Answered) => void;
}
