// Defines the ports of the agent: the cluster layer, pods, metric sources, notification services, the policy directory and the log.
import type { HttpRequest, HttpResponse } from '../cluster/connection/http-exchange.ts';
import type { ClusterEnv, Log, PodHttp, PodRequest, PodResponse } from '../cluster/env.ts';
import type { MetricSourceDefinition } from '../policies/integrations/metric-source.ts';

export type { HttpRequest, HttpResponse } from '../cluster/connection/http-exchange.ts';
export type { Log, LogFields, PodHttp, PodRequest, PodResponse } from '../cluster/env.ts';

/** The fields of every query to a metric source. */
export interface SourceQuery extends Pick<PodRequest, 'timeoutMs' | 'site'> {
  /** The namespace of the gate's group or of the metric's policy. A source may be limited to some namespaces. */
  readonly namespace: string;
  /** The name of the source. Groups and policies contain only this name, never the address or a credential. */
  readonly source: string;
  /** The definition in the agent's policy files; absent if they have none. */
  readonly written?: MetricSourceDefinition | undefined;
  /** The interval between queries in milliseconds. The query is rejected if the source requires a longer interval. */
  readonly everyMs: number;
}

export interface GateQuery extends SourceQuery {
  /** The PromQL of the gate. Prometheus evaluates it at its own current time. */
  readonly query: string;
}

/** A query for the health of a service, for a source that is a Consul. */
export interface ServiceQuery extends SourceQuery {
  readonly service: string;
  readonly datacenter?: string | undefined;
}

export interface GateAnswer extends PodResponse {
  /** Lower-case names. */
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Queries metric sources. Resolves with any answer except a redirect, also with an error status. Rejects on a redirect, without a complete
 * answer within `timeoutMs`, or if the source is unknown, of another kind or not available to the namespace. The Error names neither an
 * address nor a credential.
 */
export interface GateHttp {
  /** The HTTP API of Prometheus, `/api/v1/query`. */
  readonly query: (query: GateQuery) => Promise<GateAnswer>;
  /** The HTTP API of Consul, `/v1/health/service/NAME`. */
  readonly health: (query: ServiceQuery) => Promise<GateAnswer>;
}

/** One request to a notification service. Its `url` starts with the address of the channel. */
export interface NotifyRequest extends HttpRequest {
  readonly site: string;
}

/** Notification services. Redirects are not followed. */
export interface NotifyHttp {
  /** Sends a request. Resolves with any answer. Rejects without a complete answer; the Error names neither an address nor a credential. */
  readonly call: (request: NotifyRequest) => Promise<HttpResponse>;
}

export interface PolicyDirectory {
  /** Returns every policy file with its full text. Rejects if the directory cannot be read. */
  readonly read: () => Promise<readonly { readonly name: string; readonly text: string }[]>;
  /** Calls `onChange` when files may have changed. Returns a function that ends the watch. */
  readonly watch: (onChange: () => void) => () => void;
}

export interface AgentEnv extends ClusterEnv {
  readonly pods: PodHttp;
  readonly log: Log;
  /** Queries to metric sources. If absent, gates with a metric source have no readings, so enforced gates block. */
  readonly gates?: GateHttp;
  /** Requests to notification services. If absent, no notification is sent. */
  readonly notify?: NotifyHttp;
  /** The policy directory; absent without the flag `-policies`. */
  readonly policyDirectory?: PolicyDirectory;
}
