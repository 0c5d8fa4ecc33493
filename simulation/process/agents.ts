// Starts, suspends, crashes, stops and restarts the processes of a simulation. Each process runs the real loop of the agent.
import type { LogFields, PolicyDirectory } from '../../agent/env.ts';
import type { TurnListener } from '../../agent/report.ts';
import type { Reviewer } from '../cluster/admitted.ts';
import type { PodCall, PodReply } from '../cluster/cluster.ts';
import type { GateServer } from '../cluster/world.ts';
import type { Faults } from '../faults/fault.ts';
import type { MachineState, PodCalled, ProcessChange } from '../oracles/oracle.ts';
import { draw } from '../random.ts';
import { letterOf, processLetter, type Scenario } from '../scenario.ts';
import type { Scheduler } from '../scheduler.ts';
import type { ModelRequest } from '../server/request.ts';
import type { ModelServer } from '../server/server.ts';
import { type AgentProcess, startAgentProcess } from './agent-process.ts';
import { createHolds, createMachineClock, type Holds, type MachineClock, ProcessTime, runStartMs } from './clock.ts';
import { createPlaces, type Life, slowestWayMs } from './life.ts';
import type { TransportOptions } from './transport.ts';

export { agentNamespace, agentUser, leaseName } from './agent-process.ts';

export interface AgentsOptions {
  readonly scenario: Pick<Scenario, 'seed' | 'agents' | 'clockRates'>;
  readonly scheduler: Scheduler;
  readonly server: Pick<ModelServer, 'handle' | 'watch' | 'lagFrontEnd' | 'goBackFrontEnd'>;
  readonly frontEnds: number;
  readonly faults: Faults;
  readonly namespaces: readonly string[];
  /** Without it the agents have no policy directory. */
  readonly policyDirectory?: PolicyDirectory;
  readonly podAnswer: (call: PodCall) => PodReply | undefined;
  readonly podCalled: (call: PodCalled) => void;
  readonly gateServer?: GateServer;
  /** Asks the webhooks about a request of an agent (transport.ts). */
  readonly admit?: NonNullable<TransportOptions['admit']>;
  /** Writes to the stored object before the request arrives, as another client would (fault class F4). */
  readonly touch: (request: ModelRequest) => void;
  /** Returns the listener that receives the reports of the loop while the process is alive. */
  readonly listenerOf?: (process: string) => TurnListener;
  readonly processChanged?: (process: string, change: ProcessChange) => void;
  readonly log?: (process: string, level: 'debug' | 'info' | 'warn' | 'error', message: string, fields: LogFields) => void;
  /** Receives each request, answer and delivered line, for the trace. */
  readonly note?: (...parts: readonly (string | number)[]) => void;
}

export interface Leak {
  readonly process: string;
  /** The resources that the process left open, or its late end: for example `2 timers` or `1 open watch`. */
  readonly what: string;
}

interface Running {
  readonly life: Life;
  agentProcess?: AgentProcess;
  isStopping: boolean;
}

interface Machine {
  readonly letter: string;
  readonly clock: MachineClock;
  lives: number;
  running?: Running;
}

/** The pause between the shutdown and the check for leaks. Most requests in flight end during this pause. */
const lingerMs = 1_000;
/** The longest duration of a request without faults: the slowest latency in both directions. */
const longestAnswerMs = 2 * slowestWayMs;

/**
 * Starts, ends and restarts the processes of the scenario. A process keeps its letter when it restarts. The name of a life, for example
 * `a1` for the first life of `a`, is its identity in the Lease. A Node.js process can play one simulation at a time.
 */
export class Agents {
  readonly #options: AgentsOptions;
  readonly #seed: number;
  readonly #holds: Holds;
  readonly #defects: string[] = [];
  #pasts = 0;
  #isEnding = false;
  readonly #machines = new Map<string, Machine>();
  #pastUntilMs = 0;
  readonly #unwatch = watchRejections((message) => this.#defects.push(message));

  constructor(options: AgentsOptions) {
    const { scenario, scheduler } = options;
    this.#options = options;
    this.#seed = scenario.seed;
    this.#holds = createHolds(scheduler);
    for (let index = 0; index < scenario.agents; index += 1) {
      const letter = letterOf(index);
      const machine = { letter, clock: createMachineClock(scheduler, scenario.clockRates?.[letter]), lives: 0 };
      this.#machines.set(letter, machine);
      scheduler.after(Math.round(draw(this.#seed, `${letter} starts`) * 1000), () => this.#start(machine));
    }
  }

  /** Shuts the process down as after SIGTERM, and starts it again `restartAfterMs` later. Returns false if it is dead or stopping. */
  stop(letter: string, restartAfterMs: number): boolean {
    const found = this.#runningOf(letter);
    if (found?.running.agentProcess === undefined || found.running.isStopping) return false;
    found.running.isStopping = true;
    void found.running.agentProcess.handOver().then(() => this.#endLife(found.machine, found.running, 'stopped', restartAfterMs));
    return true;
  }

  /** Crashes the process at once, and starts it again `restartAfterMs` later. Returns false if it is dead. */
  crash(letter: string, restartAfterMs: number): boolean {
    const found = this.#runningOf(letter);
    found?.running.life.crash(restartAfterMs);
    return found !== undefined;
  }

  /** Suspends the process. Returns false if it is dead. */
  pause(letter: string, durationMs: number): boolean {
    const found = this.#runningOf(letter);
    found?.running.life.time.pause(durationMs);
    return found !== undefined;
  }

  /** Moves the wall clock of the process's machine. Returns false if the scenario has no such process. */
  jumpWallClock(letter: string, byMs: number): boolean {
    const machine = this.#machines.get(letter);
    machine?.clock.jumpWallClock(byMs);
    return machine !== undefined;
  }

  /** Ends all delays of faults: starts dead processes, resumes suspended processes and corrects clocks. */
  heal(): void {
    for (const { clock } of this.#machines.values()) clock.mend();
    this.#holds.release();
  }

  /** Returns the state of the clock of the machine of a process such as `a1`, and the last suspension of its living process. */
  clockOf(process: string): MachineState {
    const { clock, running } = this.#machines.get(processLetter(process)) ?? {};
    if (clock === undefined) return { rate: 1, wallErrorMs: 0 };
    const { pausedAtMs = 0, pausedUntilMs = 0 } = running?.life.time ?? {};
    const wallErrorMs = clock.wallMs() - runStartMs - this.#options.scheduler.nowMs();
    const { elapsedSinceMs, trueMs } = clock;
    return { rate: clock.rate(), elapsedSinceMs, trueMs, wallErrorMs, jumpedAtMs: clock.jumpedAtMs(), pausedAtMs, pausedUntilMs };
  }

  /** Returns the names of living processes, such as `a1`. */
  alive(): readonly string[] {
    return [...this.#machines.values()].flatMap(({ running }) => (running === undefined ? [] : [running.life.name]));
  }

  /** Returns whether every process is alive and ready. */
  isReady(): boolean {
    return [...this.#machines.values()].every(({ running }) => running?.agentProcess?.agent.isReady() === true);
  }

  /** Returns whether a process has a dead watch that it has not closed. */
  isWatchDead(): boolean {
    return [...this.#machines.values()].some(({ running }) => running !== undefined && running.life.open.dead > 0);
  }

  /** Returns the processes whose webhooks answer. A process that shuts down is no longer ready. */
  reviewers(): readonly Reviewer[] {
    return [...this.#machines.values()].flatMap(({ running }) =>
      running?.agentProcess?.isServing() === true && !running.isStopping
        ? [{ life: running.life, review: running.agentProcess.review }]
        : [],
    );
  }

  /** Shuts every process down and returns the leaks. Resolves within 32 s of virtual time. */
  async end(): Promise<readonly Leak[]> {
    this.#isEnding = true;
    const running = [...this.#machines.values()].flatMap((machine) => machine.running ?? []);
    const leaks = await Promise.all(running.map((given) => this.#leaksOf(given)));
    return leaks.flat();
  }

  /** Returns the unexpected errors in agents: unhandled rejections and errors of listeners. */
  defects(): readonly string[] {
    return [...this.#defects];
  }

  /** Ends every process at once. Must be called after the simulation. */
  close(): void {
    this.#isEnding = true;
    for (const { running } of this.#machines.values()) if (running !== undefined) endTime(running.life);
    this.#unwatch();
  }

  #showVersion(revision: number, forMs: number): void {
    const { scheduler, server, frontEnds } = this.#options;
    this.#pastUntilMs = scheduler.nowMs() + forMs;
    for (let frontEnd = 0; frontEnd < frontEnds; frontEnd += 1) server.goBackFrontEnd(frontEnd, revision, this.#pastUntilMs);
  }

  #frozenFrontEnd(forMs: number): number {
    this.#pasts += 1;
    const frontEnd = Math.floor(draw(this.#seed, `front end of past ${this.#pasts}`) * this.#options.frontEnds);
    this.#options.server.lagFrontEnd(frontEnd, this.#options.scheduler.nowMs() + forMs);
    return frontEnd;
  }

  #start(machine: Machine): void {
    if (this.#isEnding || machine.running !== undefined) return;
    machine.lives += 1;
    const name = `${machine.letter}${machine.lives}`;
    const time = new ProcessTime({
      scheduler: this.#options.scheduler,
      machine: machine.clock,
      holds: this.#holds,
      seed: this.#seed,
      name,
      onPaused: () => this.#options.processChanged?.(name, 'paused'),
      onResumed: () => this.#options.processChanged?.(name, 'resumed'),
    });
    const life: Life = {
      name,
      seed: this.#seed,
      scheduler: this.#options.scheduler,
      time,
      holds: this.#holds,
      faults: this.#options.faults,
      places: createPlaces(name, this.#options.scheduler),
      crash: (restartAfterMs) => this.#endLife(machine, running, 'crashed', restartAfterMs),
      note: this.#options.note ?? (() => undefined),
      open: { requests: 0, watches: 0, begun: 0, dead: 0 },
      onEnd: new Set(),
    };
    const running: Running = { life, isStopping: false };
    machine.running = running;
    this.#options.processChanged?.(name, 'started');
    // The process may crash at its first request, before `startAgentProcess` returns.
    running.agentProcess = startAgentProcess({
      ...this.#options,
      life,
      frozenFrontEnd: (behindMs) => this.#frozenFrontEnd(behindMs),
      showVersion: (revision, forMs) => this.#showVersion(revision, forMs),
      isPastShown: () => this.#options.scheduler.nowMs() < this.#pastUntilMs,
      onDefect: (message) => this.#defects.push(message),
    });
  }

  #endLife(machine: Machine, { life }: Running, change: 'crashed' | 'stopped', restartAfterMs: number): void {
    if (!life.time.isAlive()) return;
    endTime(life);
    delete machine.running;
    this.#options.processChanged?.(life.name, change);
    this.#holds.after(restartAfterMs, () => this.#start(machine));
  }

  #runningOf(letter: string): { readonly machine: Machine; readonly running: Running } | undefined {
    const machine = this.#machines.get(letter);
    return machine?.running === undefined ? undefined : { machine, running: machine.running };
  }

  #later(delayMs: number): Promise<void> {
    return new Promise((resolve) => void this.#options.scheduler.after(delayMs, resolve));
  }

  async #leaksOf({ life, agentProcess }: Running): Promise<readonly Leak[]> {
    // A process that crashes during its shutdown has no leaks.
    const death = new Promise<undefined>((resolve) => life.onEnd.add(() => resolve(undefined)));
    const end = await Promise.race([agentProcess?.handOver(), death]);
    await this.#later(lingerMs);
    const inFlight = life.open.requests;
    const { begun } = life.open;
    // A request in flight is not a leak if it ends without a further request.
    if (inFlight > 0 && openNow(life, inFlight).length === 0) await this.#later(longestAnswerMs);
    if (!life.time.isAlive()) return [];
    const left = [...openNow(life), ...counted(life.open.begun - begun, 'later request')];
    endTime(life);
    this.#options.processChanged?.(life.name, 'stopped');
    return [...(end === 'late' ? ['a hand-over that took too long'] : []), ...left].map((what) => ({ process: life.name, what }));
  }
}

function endTime({ time, onEnd }: Life): void {
  time.end();
  for (const callback of [...onEnd]) callback();
}

/** Describes the open timers, requests and watches. Leaves out as many requests, and their timeouts, as `requests` says. */
function openNow({ time, open }: Life, requests = 0): readonly string[] {
  const { watches } = open;
  return [
    ...counted(time.timerCount() - requests, 'timer'),
    ...counted(open.requests - requests, 'open request'),
    ...counted(watches, 'open watch'),
  ];
}

function counted(count: number, what: string): readonly string[] {
  if (count === 0) return [];
  const plural = what.endsWith('watch') ? `${what}es` : `${what}s`;
  return [`${count} ${count === 1 ? what : plural}`];
}

/** Reports unhandled rejections, because the executable exits on them. Returns a function that ends the reports. */
function watchRejections(report: (message: string) => void): () => void {
  const note = (error: unknown): void =>
    report(`an unhandled rejection: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  process.on('unhandledRejection', note);
  return () => process.off('unhandledRejection', note);
}
