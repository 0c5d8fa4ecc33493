// Defines the ports that the models around the agents share: the API server, the clocks, the seed, and the parts of generated groups.
import type { GateAnswer, GateQuery, PolicyDirectory } from '../../agent/env.ts';
import type { GateFault } from '../faults/fault.ts';
import type { BookJudge } from '../oracles/all.ts';
import type { GateAnswered, OracleFactory } from '../oracles/oracle.ts';
import type { EventFields, GroupName, GroupObjects, GroupShape, PolicyState, Scenario } from '../scenario.ts';
import type { Scheduler } from '../scheduler.ts';
import type { Actor, Json } from '../server/request.ts';
import type { ModelServer } from '../server/server.ts';
import type { Admission, AdmissionPorts } from './admitted.ts';
import type { Client } from './client.ts';

/** The access of the models to the API server: reads of the newest state, writes without preconditions, and every commit. */
export type ClusterApi = Pick<
  ModelServer,
  'get' | 'list' | 'create' | 'change' | 'apply' | 'remove' | 'terminate' | 'evict' | 'observe' | 'terminateNamespace' | 'isTerminating'
>;

export interface World {
  readonly server: ClusterApi;
  readonly scheduler: Pick<Scheduler, 'nowMs' | 'after'>;
  /** Returns the wall-clock time of the cluster. */
  readonly wallMs: () => number;
  readonly seed: number;
}

export interface GateServer {
  /** Returns the answer to a query that arrives now; `silence` if no answer is sent. */
  readonly answer: (
    question: Pick<GateQuery, 'source' | 'query'> & { readonly process: string },
    fault?: GateFault,
  ) => GateAnswer | 'silence';
}

export interface GateServerOptions {
  readonly gate: NonNullable<GroupShape['gate']>;
  readonly seed: number;
  /** Returns the current time on the scheduler's clock. */
  readonly nowMs: () => number;
  /** Returns the wall-clock time of the server. */
  readonly wallMs: () => number;
  /** The time (scheduler clock) from which a flipping gate always passes. */
  readonly flipsUntilMs: number;
  readonly answered?: (answer: GateAnswered) => void;
}

export interface PoliciesOptions extends Pick<World, 'server' | 'scheduler'> {
  readonly shape: GroupShape;
  readonly client: Client;
  readonly actor: Actor;
  readonly namespace: string;
  readonly group: string;
  readonly report: (what: string) => void;
  /** Called after each change of the policy directory. */
  readonly directoryChanged: (state: PolicyState) => void;
}

/** The policies of a generated group, which people change in Git. */
export interface PoliciesInGit {
  /** The directory of the agents; undefined if the policies are objects. */
  readonly directory: PolicyDirectory | undefined;
  /** Changes the policies for a time. Returns false if the event has no effect. */
  change(event: EventFields<'setPolicies'>): boolean;
  restore(): void;
}

/** The parts that a simulation of generated groups has, and that a group of a user does not need. */
export interface GeneratedParts {
  /** The judges with the book of places. They replace `bookJudges`. */
  readonly judges: Readonly<Record<string, BookJudge>>;
  /** Creates the judge of a group whose namespace is being deleted. */
  readonly judgeTermination: OracleFactory;
  /** Creates the webhooks that review requests; undefined for groups without webhooks. */
  readonly createAdmission: (scenario: Scenario, ports: AdmissionPorts) => Admission | undefined;
  /** Returns the objects of the group. Before a native group is defined (`isDefinedLater`), its StatefulSets have the partition 0. */
  readonly groupObjects: (shape: GroupShape, isDefinedLater: boolean, name?: GroupName) => GroupObjects;
  /** Returns `spec.rollout.waves` of the group; undefined without waves. */
  readonly waveSpecs: (shape: GroupShape) => readonly Json[] | undefined;
  readonly createPolicies: (options: PoliciesOptions) => PoliciesInGit;
  readonly createGateServer: (options: GateServerOptions) => GateServer;
}
