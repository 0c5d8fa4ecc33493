// The agents of a run: processes that start, die, stand still, are stopped and come back, each with the agent's own loop in it.
import type { LogFields } from '../../agent/env.ts';
import type { TurnListener } from '../../agent/report.ts';
import type { Faults } from '../faults/fault.ts';
import type { PodCalled, ProcessChange } from '../oracles/oracle.ts';
import type { Scenario } from '../scenario.ts';
import type { Scheduler } from '../scheduler.ts';
import type { ModelRequest } from '../server/request.ts';
import type { PodAnswered, PodCall } from './pods.ts';
import type { ServedModel } from './transport.ts';

/** As the API server names the agents. */
export const agentUser = 'system:serviceaccount:rollout-group:rollout-group-agent';
/** Where their Lease is. */
export const agentNamespace = 'rollout-group';
export const leaseName = 'rollout-group';

export interface AgentsOptions {
  readonly scenario: Pick<Scenario, 'seed' | 'agents' | 'clockRates'>;
  readonly scheduler: Scheduler;
  readonly server: ServedModel & { readonly lagFrontEnd: (frontEnd: number, untilMs: number) => void };
  /** How many the server has. */
  readonly frontEnds: number;
  readonly faults: Faults;
  /** The one that is watched. */
  readonly namespace: string;
  /** What the policy directory holds; without one when left out. */
  readonly policies?: readonly { readonly name: string; readonly text: string }[];
  readonly podAnswer: (call: PodCall) => PodAnswered | undefined;
  readonly podCalled: (call: PodCalled) => void;
  /** Somebody else changes the object that the request is about (F4). */
  readonly touch: (request: ModelRequest) => void;
  /** What the loop of this process reports, as long as it lives. */
  readonly listenerOf?: (process: string) => TurnListener;
  readonly processChanged?: (process: string, change: ProcessChange) => void;
  readonly log?: (process: string, level: 'debug' | 'info' | 'warn' | 'error', message: string, fields: LogFields) => void;
  /** For the trace: everything that is sent, answered and delivered. */
  readonly note?: (...parts: readonly (string | number)[]) => void;
}

export interface Leak {
  readonly process: string;
  /** Such as `2 timers` or `1 watch`. */
  readonly what: string;
}

/** Letters name processes whatever life they are in. */
export interface Agents {
  /** Dies at once; nothing when it is dead already. */
  readonly crash: (letter: string, restartAfterMs: number) => void;
  /** Hands over as after SIGTERM, then ends; the next life begins `restartAfterMs` after that. */
  readonly stop: (letter: string, restartAfterMs: number) => void;
  readonly pause: (letter: string, durationMs: number) => void;
  readonly jumpWallClock: (letter: string, byMs: number) => void;
  /** What only a fault holds up comes now, the dead start, clocks run true. */
  readonly heal: () => void;
  /** Names of those that live, such as `a1`. */
  readonly alive: () => readonly string[];
  readonly isReady: () => boolean;
  /** Hands every process over and says what each left behind. Resolves while the scheduler runs on, within half a minute. */
  readonly end: () => Promise<readonly Leak[]>;
  /** Promises that were rejected and nobody had thought of it, so far. */
  readonly unhandled: () => readonly string[];
}

/** Starts as many as the scenario says, one after the other within the first second. */
export declare function startAgents(options: AgentsOptions): Agents;
