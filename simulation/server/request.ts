// Defines the requests and answers of the model server, and what observers receive.

export type Json = Readonly<Record<string, unknown>>;

/** An object as stored: never mutated, so a reference keeps its moment. */
export interface ModelObject extends Json {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Json & {
    readonly name: string;
    readonly namespace?: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly generation?: number;
    /** RFC 3339, whole seconds, as the API server writes it. */
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

/** The requester. */
export interface Actor {
  /** User name, such as `system:serviceaccount:kube-system:statefulset-controller`. */
  readonly user: string;
  /** For an agent: the process, such as `a1` for the first life of `a`. */
  readonly process?: string;
  /** For an agent: the place in its code (KubernetesRequest.site). */
  readonly site?: string;
  /** For an agent: the visit of that place (Point.key). */
  readonly point?: string;
  /** When the request was sent, on the scheduler's clock. */
  readonly sentAtMs?: number;
  /** Wall clock of the process at that time, in milliseconds since 1970. */
  readonly sentWallMs?: number;
}

export interface ModelRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path and query. */
  readonly path: string;
  /** Default `application/json`. */
  readonly contentType?: string;
  readonly accept?: string;
  readonly body?: string;
  readonly actor: Actor;
}

export interface ModelResponse {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A watch that the server opened; its lines go to the sink. */
export interface ModelWatch {
  readonly close: () => void;
}

export interface WatchSink {
  /** One JSON text without its line end. */
  readonly line: (text: string) => void;
  /** The server ended it; no line follows. */
  readonly end: (reason: string) => void;
}

/** One change of the storage. */
export interface Commit {
  /** Counter of the whole server. */
  readonly revision: number;
  /** On the scheduler's clock. */
  readonly atMs: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  /** Plural and group, such as `pods` or `statefulsets.apps`. */
  readonly resource: string;
  /** Absent for a new object. */
  readonly before?: ModelObject;
  /** The current state; for a deleted object the last state with the deletion's resourceVersion. */
  readonly after: ModelObject;
  readonly actor: Actor;
}

/** One answered request, without watches. */
export interface Answered {
  readonly request: ModelRequest;
  readonly atMs: number;
  readonly verb: 'get' | 'list' | 'create' | 'update' | 'patch' | 'delete';
  /** As in Commit. */
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  /** Empty without one. */
  readonly subresource: string;
  readonly isDryRun: boolean;
  readonly status: number;
  /** Revisions of its changes. */
  readonly revisions: readonly number[];
}

export interface ServerObserver {
  readonly committed?: (commit: Commit) => void;
  readonly answered?: (answered: Answered) => void;
}
