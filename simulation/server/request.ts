// What goes into the model of the API server and what comes out of it, and what its observers are told.

export type Json = Readonly<Record<string, unknown>>;

/** An object as the server stores it: never changed in place, so that whoever holds one holds a moment of the past. */
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

/** Who asks. */
export interface Actor {
  /** As the API server would name it, such as `system:serviceaccount:kube-system:statefulset-controller`. */
  readonly user: string;
  /** Of an agent: which process, such as `a1` for the first life of `a`. */
  readonly process?: string;
  /** Of an agent: the place in its code (KubernetesRequest.site). */
  readonly site?: string;
  /** Of an agent: which time it came to that place (Point.key). */
  readonly point?: string;
  /** When the request left its sender, on the scheduler's clock. */
  readonly sentAtMs?: number;
  /** What the wall clock of that process said then, in milliseconds since 1970. */
  readonly sentWallMs?: number;
}

export interface ModelRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path and query. */
  readonly path: string;
  /** `application/json` when left out. */
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

/** A watch that the server has opened; its lines come through the sink that it was opened with. */
export interface ModelWatch {
  readonly close: () => void;
}

export interface WatchSink {
  /** One JSON text without its line end. */
  readonly line: (text: string) => void;
  /** The server is done with it; no line follows. */
  readonly end: (reason: string) => void;
}

/** One change of the storage. */
export interface Commit {
  /** Of the whole server: each commit has the next one. */
  readonly revision: number;
  /** On the scheduler's clock. */
  readonly atMs: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  /** Plural and group, such as `pods` or `statefulsets.apps`. */
  readonly resource: string;
  /** Absent when it did not exist. */
  readonly before?: ModelObject;
  /** As it is now; as it was last, with the deletion's own resourceVersion, when it is gone. */
  readonly after: ModelObject;
  readonly actor: Actor;
}

/** One request that the server has answered, watches left out. */
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
  /** Revisions of what it changed. */
  readonly revisions: readonly number[];
}

export interface ServerObserver {
  readonly committed?: (commit: Commit) => void;
  readonly answered?: (answered: Answered) => void;
}
