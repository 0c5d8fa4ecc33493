// What the agent reaches outside of itself: the ports of the cluster layer, the pods, the providers of gates, the policy directory and the log.
import type { ClusterEnv, Log, PodHttp } from '../cluster/env.ts';

export type { Log, LogFields, PodHttp, PodRequest, PodResponse } from '../cluster/env.ts';

/** One instant query, for the provider that a gate names. */
export interface GateQuery {
  /** Of the group that asks: a provider may be there for some namespaces only. */
  readonly namespace: string;
  /** The provider's name. Where it is and what it is shown as credentials is known to whoever answers, and is in no object of a group. */
  readonly source: string;
  /** PromQL as the gate has it, to be asked without an instant: what counts is the provider's own now. */
  readonly query: string;
  /** Until the whole answer is there. */
  readonly timeoutMs: number;
  /** A longer body is a failure. */
  readonly maxBodyBytes: number;
  /** The place in the code that asks. */
  readonly site: string;
}

export interface GateAnswer {
  readonly status: number;
  readonly body: string;
}

/** Providers of gates, with the HTTP API of Prometheus (`/api/v1/query`). Redirects are not followed. */
export interface GateHttp {
  /**
   * Resolves with any answer. Rejects when no whole answer came within `timeoutMs`, and when the provider is unknown or not there for the
   * namespace, with an Error that says so and names neither an address nor a credential.
   */
  readonly query: (query: GateQuery) => Promise<GateAnswer>;
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
  /** Absent: no gate is ever read, so those that enforce hold. */
  readonly gates?: GateHttp;
  /** Absent without `--policies`. */
  readonly policyDirectory?: PolicyDirectory;
}
