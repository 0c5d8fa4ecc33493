// A recorded scenario of a compatibility endpoint, as data: what is there, what is asked, what goes wrong, and what must come of it.

export type Json = Readonly<Record<string, unknown>>;

/** One request of the API server. The runner makes an AdmissionReview of it. */
export interface ScenarioRequest {
  /** `admission.k8s.io/v1` when left out. */
  readonly apiVersion?: string;
  readonly namespace?: string;
  /** Plural, such as `statefulsets`. */
  readonly resource: string;
  readonly subresource?: string;
  readonly name: string;
  /** `UPDATE` when left out. */
  readonly operation?: string;
  /** The stored object when left out. */
  readonly oldObject?: unknown;
  readonly object?: unknown;
  /** Makes the new object of the stored one. */
  readonly patch?: Json;
  /** Left out of the review when undefined, as a client other than an API server may do. */
  readonly dryRun?: boolean;
  readonly user?: string;
}

/** What happens instead of, or before, the usual answer of the API server. */
export interface ApiFault {
  /** `METHOD path`, without the query. */
  readonly on: string;
  /** Of the requests that match; 1 is the first. All of them when left out. */
  readonly nth?: number;
  /** Refused with this Status; `lost` ends the connection before the request arrives; `silent` gives no answer at all. */
  readonly answer?: { readonly status: number; readonly message: string; readonly reason?: string } | 'lost' | 'silent';
  /** Somebody else's merge patch, stored just before. */
  readonly meanwhile?: { readonly resource: string; readonly name: string; readonly patch: Json };
  /** Somebody else's object, created just before. */
  readonly created?: { readonly resource: string; readonly object: Json };
}

/** How a pod answers: an HTTP status, after a while; `silent` gives no answer, `refused` ends the connection at once. */
export type PodBehaviour = number | 'silent' | 'refused' | { readonly status: number; readonly delayMs: number };

/** A request to the API server as `METHOD path`, with the label selector of a list behind it, or a call to a pod as `METHOD url`. */
export type ExpectedCall = string | { readonly call: string; readonly body: Json };

export interface WebhookScenario {
  /** A sentence about what must hold. */
  readonly name: string;
  /** Rows of the tables that it proves; those there are stand in rows.ts. */
  readonly rows: readonly string[];
  /** Path of the endpoint. */
  readonly endpoint: string;
  /** Handed to the maker of the endpoint; see endpoints.ts. */
  readonly settings?: Json;
  /** Objects by plural and group, such as `statefulsets.apps`. */
  readonly state: Readonly<Record<string, readonly Json[]>>;
  /** Asked just before, and not answered yet, by the same endpoint; its calls are not looked at. */
  readonly inHand?: ScenarioRequest;
  readonly request: ScenarioRequest;
  readonly faults?: readonly ApiFault[];
  /** By `METHOD pod`; 200 to whatever is not named. */
  readonly pods?: Readonly<Record<string, PodBehaviour>>;
  readonly expected: {
    readonly allowed: boolean;
    readonly code?: number;
    readonly reason?: string;
    /** Parts of the message; no message when left out. */
    readonly message?: readonly string[];
    /** Parts of each warning; no warnings when left out. */
    readonly warnings?: readonly (readonly string[])[];
    /** All calls in their order; bodies are compared as far as they are given. */
    readonly calls: readonly ExpectedCall[];
    /** Parts of objects afterwards, by `resource/name`; undefined: there is none. */
    readonly after?: Readonly<Record<string, Json | undefined>>;
  };
}
