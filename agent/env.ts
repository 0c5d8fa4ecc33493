// Defines the ports of the agent: the cluster layer, pods, metric sources, notification services, the policy directory and the log.
import type { ClusterEnv, Log, PodHttp } from '../cluster/env.ts';
import type { MetricSourceDefinition } from '../policies/integrations/metric-source.ts';

export type { Log, LogFields, PodHttp, PodRequest, PodResponse } from '../cluster/env.ts';

/** Fields of every query to a metric source. */
export interface GateQuestion {
  /** Namespace of the group: a source may be limited to some namespaces. */
  readonly namespace: string;
  /** Name of the source. Its address and credentials are never in an object of a group. */
  readonly source: string;
  /** The definition in the agent's policy files; absent if they have none. */
  readonly written?: MetricSourceDefinition | undefined;
  /** Period of the query in milliseconds; a source may limit it. */
  readonly everyMs: number;
  /** Deadline of the whole answer in milliseconds. */
  readonly timeoutMs: number;
  /** A longer body is a failure. */
  readonly maxBodyBytes: number;
  /** The place in the code that asks. */
  readonly site: string;
}

/** An instant query, for a source that is a Prometheus. */
export interface GateQuery extends GateQuestion {
  /** PromQL of the gate, evaluated at the provider's own time. */
  readonly query: string;
}

/** The health of a service, for a source that is a Consul. */
export interface ServiceQuery extends GateQuestion {
  readonly service: string;
  readonly datacenter?: string | undefined;
}

export interface GateAnswer {
  readonly status: number;
  readonly body: string;
  /** Lower-case names. */
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Queries metric sources, without redirects. Resolves with any answer, also an error status. Rejects if no whole answer arrives within
 * `timeoutMs`, or if the source is unknown, of another kind or not available to the namespace. The Error names neither an address nor a
 * credential.
 */
export interface GateHttp {
  /** The HTTP API of Prometheus, `/api/v1/query`. */
  readonly query: (query: GateQuery) => Promise<GateAnswer>;
  /** The HTTP API of Consul, `/v1/health/service/NAME`. */
  readonly health: (query: ServiceQuery) => Promise<GateAnswer>;
}

/** One request to a server other than the API server. */
export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly url: string;
  /** Headers in addition to Host and Content-Length. May contain credentials: never log them. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** PEM of the trusted authorities; the usual ones if absent. */
  readonly ca?: string;
  /** Deadline of the whole answer in milliseconds. */
  readonly timeoutMs: number;
  /** A longer body is a failure. */
  readonly maxBodyBytes: number;
}

export interface HttpResponse {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** One request to a notification service: the address of the channel with a path of the service's API. */
export interface NotifyRequest extends HttpRequest {
  /** The place in the code that asks. */
  readonly site: string;
}

/** Notification services. Redirects are not followed. */
export interface NotifyHttp {
  /** Resolves with any answer. Rejects when no whole answer came, with an Error that names neither an address nor a credential. */
  readonly call: (request: NotifyRequest) => Promise<HttpResponse>;
}

/** The policy files of the agent's directory. */
export interface PolicyDirectory {
  /** Every policy file, read whole. Rejects when the directory cannot be read. */
  readonly read: () => Promise<readonly { readonly name: string; readonly text: string }[]>;
  /** Calls back after files may have changed. Returns the function that stops it. */
  readonly watch: (onChange: () => void) => () => void;
}

export interface AgentEnv extends ClusterEnv {
  readonly pods: PodHttp;
  readonly log: Log;
  /** Absent: gates with a metric source have no readings, so those that enforce block. */
  readonly gates?: GateHttp;
  /** Absent: no notification is sent. */
  readonly notify?: NotifyHttp;
  /** Absent without `--policies`. */
  readonly policyDirectory?: PolicyDirectory;
}
