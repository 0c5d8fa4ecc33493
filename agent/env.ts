// What the agent reaches outside of itself: the ports of the cluster layer, the pods, the providers of gates, the policy directory and the log.
import type { ClusterEnv, Log, PodHttp } from '../cluster/env.ts';
import type { MetricSourceDefinition } from '../policies/integrations/metric-source.ts';

export type { Log, LogFields, PodHttp, PodRequest, PodResponse } from '../cluster/env.ts';

/** What every question to a metric source says. */
export interface GateQuestion {
  /** Of the group that asks: a source may be there for some namespaces only. */
  readonly namespace: string;
  /** Its name. Where it is and what it is shown as credentials is known to whoever answers, and is in no object of a group. */
  readonly source: string;
  /** What the agent's policy files say of the source; absent when they do not know it. */
  readonly written?: MetricSourceDefinition | undefined;
  /** How often it is asked, in milliseconds: a source may forbid to be asked so often. */
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
  /** Where a NotificationChannel says the service is, with a path of its API. */
  readonly url: string;
  /** Credentials among them: whoever logs a request leaves them out. */
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
  /** Absent: nobody is told of anything. */
  readonly notify?: NotifyHttp;
  /** Absent without `--policies`. */
  readonly policyDirectory?: PolicyDirectory;
}
