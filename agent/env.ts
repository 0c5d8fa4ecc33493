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
  /** States how often it is asked, in milliseconds: a source may forbid to be asked so often. */
  readonly everyMs: number;
  /** Until the whole answer is there. */
  readonly timeoutMs: number;
  /** A longer body is a failure. */
  readonly maxBodyBytes: number;
  /** The place in the code that asks. */
  readonly site: string;
}

/** An instant query, for a source that is a Prometheus. */
export interface GateQuery extends GateQuestion {
  /** PromQL as the gate has it, to be asked without an instant: what counts is the provider's own now. */
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
 * The metric sources of gates. Redirects are not followed. Each resolves with any answer, and rejects when no whole one came within
 * `timeoutMs`, and when the source is unknown, of another kind or not there for the namespace, with an Error that says so and names neither an
 * address nor a credential.
 */
export interface GateHttp {
  /** The HTTP API of Prometheus, `/api/v1/query`. */
  readonly query: (query: GateQuery) => Promise<GateAnswer>;
  /** The HTTP API of Consul, `/v1/health/service/NAME`. */
  readonly health: (query: ServiceQuery) => Promise<GateAnswer>;
}

/** One request to a service that people are told by. */
export interface NotifyRequest {
  readonly method: 'GET' | 'POST';
  /** Address from the NotificationChannel with a path of the service's API. */
  readonly url: string;
  /** Contains credentials: never log it. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** PEM of the authorities that may sign the certificate of the server; the usual ones when left out. */
  readonly ca?: string;
  /** Until the whole answer is there. */
  readonly timeoutMs: number;
  /** A longer body is a failure. */
  readonly maxBodyBytes: number;
  /** The place in the code that asks. */
  readonly site: string;
}

export interface NotifyResponse {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Services that people are told by. Redirects are not followed. */
export interface NotifyHttp {
  /** Resolves with any answer. Rejects when no whole answer came, with an Error that names neither an address nor a credential. */
  readonly call: (request: NotifyRequest) => Promise<NotifyResponse>;
}

/** Policy files as they lie in the agent's directory. */
export interface PolicyDirectory {
  /** Every policy file, read whole. Rejects when the directory cannot be read. */
  readonly read: () => Promise<readonly { readonly name: string; readonly text: string }[]>;
  /** Calls back after files may have changed; the answer stops it. */
  readonly watch: (onChange: () => void) => () => void;
}

export interface AgentEnv extends ClusterEnv {
  readonly pods: PodHttp;
  readonly log: Log;
  /** Absent: no gate that asks a metric source is ever read, so those that enforce hold. */
  readonly gates?: GateHttp;
  /** Absent: no notification is sent. */
  readonly notify?: NotifyHttp;
  /** Absent without `--policies`. */
  readonly policyDirectory?: PolicyDirectory;
}
